// Where extensions look for at::parallel_for.
#pragma once
#include <ATen/parallel/Parallel.h>
