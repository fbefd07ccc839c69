// ATen's name for the printing of tensors.
#pragma once
#include <ATen/core/Formatting.h>
