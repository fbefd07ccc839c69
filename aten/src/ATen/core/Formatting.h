// Printing of tensors to C++ streams.
#pragma once
#include <iosfwd>

#include <ATen/core/Tensor.h>

namespace at {

// Rows and columns of each matrix, then the type: "[ CPUFloatType{2,3} ]". Lines are broken at
// `line_width` columns.
TORCH_API void print(std::ostream& out, const Tensor& tensor, int64_t line_width = 80);
TORCH_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
// To the standard output.
TORCH_API void print(const Tensor& tensor, int64_t line_width = 80);
TORCH_API std::ostream& operator<<(std::ostream& out, const std::vector<Tensor>& list);

} // namespace at

namespace c10 {
TORCH_API std::ostream& operator<<(std::ostream& out, const Scalar& value);
class TensorOptions;
TORCH_API std::ostream& operator<<(std::ostream& out, const TensorOptions& options);
} // namespace c10
