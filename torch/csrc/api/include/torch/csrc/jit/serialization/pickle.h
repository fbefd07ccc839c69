// Values as bytes in Python's pickle format, without the zip file around them that
// torch::pickle_save writes.
#pragma once
#include <vector>

#include <ATen/core/ivalue.h>

namespace torch::jit {

// Tensors go into the table, which has to be given to unpickle().
std::vector<char> pickle(const c10::IValue& value, std::vector<at::Tensor>* tensor_table = nullptr);
c10::IValue unpickle(const char* data, size_t size, at::ArrayRef<at::Tensor> tensor_table = {});

} // namespace torch::jit
