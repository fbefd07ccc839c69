#pragma once
// Checks of arguments that many operators make, with one wording: which arguments, what was
// expected of them, what each of them is. An operator lists its demands on a Checker that knows its
// name; nothing is formatted unless one of them fails.
#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <string>

namespace at {
TORCH_API void assert_no_internal_overlap(const Tensor& out);
TORCH_API void assert_no_overlap(const Tensor& out, const Tensor& other);
} // namespace at

namespace at::native {

/// An argument and the name it has in messages. Both live as long as the call.
struct Argument {
  const char* name;
  const Tensor& tensor;
};

class Checker {
 public:
  /// `op` begins every message: "put_()", "_int_mm".
  constexpr explicit Checker(const char* op) : op_(op) {}

  // Each returns the checker, so that demands can be written in a row, and throws Error (IndexError
  // where it is the content of an index) when one does not hold.
  using Arguments = std::initializer_list<Argument>;
  const Checker& same_dtype(Arguments arguments) const;
  const Checker& same_device(Arguments arguments) const;
  const Checker& index_is_long(const Tensor& index) const;
  /// "Expected self to be of dimension 2 but got 3".
  const Checker& rank(Argument argument, int64_t dim) const;

 private:
  const char* op_;
};

/// "3x4": the size of a matrix, or of the last two dimensions, for messages.
std::string matrix_size(const Tensor& t, const char* by = "x");

/// Throws unless two matrices have a product: the first has as many columns as the second rows.
void check_multiplies(const Tensor& mat1, const Tensor& mat2);

/// Throws unless all are on one device: "Expected all tensors to be on the same device, but got
/// self on cpu and mask on cuda:0".
void check_one_device(Checker::Arguments arguments);

/// Throws if the written tensor shares memory with itself or with one that is read.
template <class... Read> void check_writes_apart(const Tensor& written, const Read&... read) {
  assert_no_internal_overlap(written);
  (assert_no_overlap(written, read), ...);
}

} // namespace at::native
