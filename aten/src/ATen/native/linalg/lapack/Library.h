// The opened library, for the calls in this folder only.
#pragma once

namespace at::native::lapack {
// The address of a routine by its Fortran name ("dgetrf"); opens the library first. Throws
// c10::Error when the library or the routine is missing.
void* symbol(const char* name);
} // namespace at::native::lapack
