// What the CUDA driver of pointwise operators knows of one functor: enough to find its machine code
// in the library or to write its program for the run-time compiler, and the functions loaded so
// far. torchgen defines one such constant per loop table (ATen/cuda/PointwisePrograms.cpp), for the
// `pointwise:` entries of native_functions.yaml and for the tables in pointwise_tables.yaml.
#pragma once

#include <atomic>
#include <cstdint>

#include <ATen/iter/LoopTable.h>
#include <c10/cuda/DriverTypes.h>

namespace at::cuda {

struct PointwiseProgram {
  const char* table;   // kernels are <table>_flat_<type> and <table>_strided_<type>
  const char* functor; // in namespace at::native::fn
  const char* header;  // that defines it, as included
  const char* image;   // the embedded machine code that holds the kernels
  uint8_t inputs;
  uint8_t params;
  native::OutKind out;
  uint64_t types; // bit t: there are kernels for ScalarType t

  // [device][type][flat or strided], allocated at the first launch; see Pointwise.cpp.
  mutable std::atomic<std::atomic<c10::cuda::CUfunction>*> functions = nullptr;
};

} // namespace at::cuda
