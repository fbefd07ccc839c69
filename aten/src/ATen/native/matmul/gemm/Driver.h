// The product as the driver sees it: bytes and strides, with the element type behind a KernelSet.
#pragma once

#include <ATen/native/matmul/gemm/KernelSet.h>

namespace at::native::gemm {

struct Operand {
  const char* data;
  int64_t rs, cs; // in elements
};

struct Problem {
  int64_t m, n, k;
  Operand a, b;
  char* c;
  int64_t c_rs, c_cs;
  const void* alpha; // acc_t<T>, live until the call returns
  const void* beta;
  bool beta_zero, beta_one;
  const char* bias; // n elements, or nullptr
};

struct Batch {
  int64_t count;
  int64_t a, b, c; // in elements from matrix to matrix
};

// Whether a call may use other threads than its own.
enum class Threads { Caller, Pool };

void run(Elem elem, const Problem& p, Threads threads);
void run_batched(Elem elem, const Problem& p, const Batch& batch);

} // namespace at::native::gemm
