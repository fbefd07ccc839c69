// Where the vendor's libraries are looked for: the system's search path first, then the CUDA
// toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda), then the folders in which the vendor's Python
// packages lie beside this one.
#pragma once

#include <initializer_list>

namespace at::cuda {

// The first of `names` that can be loaded, for good, or null. Earlier names are preferred in every
// place.
void* open_vendor_library(std::initializer_list<const char*> names);

} // namespace at::cuda
