// The operators; kernels themselves are not public.
#pragma once
#include <ATen/Functions.h>
