// The table of operators on sparse tensors: filled by Kernels.cpp, read by Fallback.cpp.
#pragma once
#include <string>
#include <unordered_map>

#include <ATen/core/Dispatcher.h>
#include <ATen/core/IValue.h>
#include <ATen/native/sparse/SparseTensor.h>

namespace at::sparse {

// Takes its arguments from the stack and leaves the results there.
using Handler = void (*)(const OperatorEntry& op, Stack& stack);
using Handlers = std::unordered_map<std::string, Handler>;

// By "name.overload": of COO tensors, and of compressed ones.
void add_kernels(Handlers& coo, Handlers& csr);
void add_shape_kernels(Handlers& coo, Handlers& csr);
void add_compressed_kernels(Handlers& csr);

// A view with two dimensions swapped, both counted from the front.
Tensor transposed_compressed(const Tensor& self, int64_t a, int64_t b);

inline void answer(Stack& stack, Tensor result) {
  stack.clear();
  stack.emplace_back(std::move(result));
}

} // namespace at::sparse
