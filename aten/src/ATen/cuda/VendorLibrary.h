// Where the vendor's libraries are looked for: the system's search path first, then the CUDA
// toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda), then the folders in which the vendor's Python
// packages lie beside this one; and the tables of function pointers through which they are called.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>

#include <c10/util/ArrayRef.h>

namespace at::cuda {

// A function of a library by its name, and where in a table its address is put.
struct VendorFunction {
  const char* name;
  size_t place;
};
#define CRESSET_VENDOR_FUNCTION(Table, name)                                                       \
  { #name, offsetof(Table, name) }

// Loads, for good, the first of `names` that can be loaded (earlier names are preferred in every
// place) and writes the addresses into `table`. False where the library or a function is missing.
bool fill_vendor_table(void* table, std::initializer_list<const char*> names,
                       c10::ArrayRef<VendorFunction> functions);

// A filled table that lives as long as the process, or null.
template <class Table> const Table* vendor_table(std::initializer_list<const char*> names,
                                                 c10::ArrayRef<VendorFunction> functions) {
  auto table = std::make_unique<Table>();
  return fill_vendor_table(table.get(), names, functions) ? table.release() : nullptr;
}

} // namespace at::cuda
