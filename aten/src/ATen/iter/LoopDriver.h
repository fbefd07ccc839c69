// The layout-handling half of every vectorised element loop, compiled once. Operators supply a
// kernel that walks whole registers; the driver feeds it, straight from memory where it can and
// through small buffers for broadcast elements, strided operands and the last partial register. So
// every element of a tensor passes through the same code: a result does not depend on its layout or
// on its position.
#pragma once

#include <cstdint>

#include <c10/macros/Macros.h>

namespace at::native {

// Computes `registers` registers of results into out, which advances by one register's results a
// step; in[k] advances by step[k] bytes, which is 0 for a broadcast operand.
using VecKernel = void (*)(char* out, const char* const* in, const int64_t* step, int64_t registers,
                           const void* params);

inline constexpr int kMaxLoopInputs = 4;
inline constexpr int kMaxRegisterBytes = 128; // two AVX-512 registers: split complex numbers

struct VecLoopShape {
  VecKernel kernel;
  int inputs;
  int lanes;   // elements per step
  int in_size; // bytes per element
  int out_size;
};

// A Loop1d body. lanes * in_size and lanes * out_size are at most kMaxRegisterBytes.
TORCH_API void run_vec_loop(const VecLoopShape& shape, char* const* data, const int64_t* strides,
                            int64_t n, const void* params);

} // namespace at::native
