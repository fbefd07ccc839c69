// Shape functions of the matrix products.
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/CTypeName.h>
#include <ATen/native/Checks.h>
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/matmul/Native.h>

namespace at::meta {
using native::Ints;
using native::is_symbolic;
using native::sizes_of;
namespace {
void check_dtypes(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(),
              "expected m1 and m2 to have the same dtype, but got: ",
              native::c_type_name(a.scalar_type()), " != ", native::c_type_name(b.scalar_type()));
}
void check_product(const Tensor& a, const Tensor& b, const char* a_name, const char* b_name) {
  for (const native::Argument& matrix : {native::Argument{a_name, a}, native::Argument{b_name, b}})
    TORCH_CHECK(matrix.tensor.dim() == 2, matrix.name, " must be a matrix\n  got a ",
                matrix.tensor.dim(), "-D tensor");
  native::check_multiplies(a, b);
  check_dtypes(a, b);
}
void check_added_dtype(const Tensor& self, const Tensor& mat) {
  TORCH_CHECK(self.scalar_type() == mat.scalar_type(),
              "self and mat2 must have the same dtype, but got ", self.scalar_type(), " and ",
              mat.scalar_type());
}
// Whether what is added to a product expands to it.
template <class Int> void check_fits(ArrayRef<Int> added, ArrayRef<Int> shape) {
  TORCH_CHECK(added.size() <= shape.size(), "expand: the number of sizes provided (", shape.size(),
              ") must be greater or equal to the number of dimensions in the tensor (",
              added.size(), ")");
  for (size_t back = 1; back <= added.size(); ++back) {
    const Int have = added[added.size() - back], want = shape[shape.size() - back];
    const bool one = c10::guard_or_false(c10::sym_eq(have, 1));
    TORCH_CHECK(one || c10::expect_true(c10::sym_eq(have, want)),
                "The expanded size of the tensor (", want, ") must match the existing size (", have,
                ") at non-singleton dimension ", shape.size() - back, ".  Target sizes: ", shape,
                ".  Tensor sizes: ", added);
  }
}
template <class Int> void check_self(const Tensor& self, const Tensor& mat, ArrayRef<Int> shape) {
  check_added_dtype(self, mat);
  check_fits<Int>(sizes_of<Int>(self), shape);
}
void set_output(OutputBuilder& out, IntArrayRef shape, ScalarType dtype) {
  out.set(0, shape, dtype);
}
void set_output(OutputBuilder& out, SymIntArrayRef shape, ScalarType dtype) {
  out.set_symint(0, shape, dtype);
}
// a @ b of matrices, or of batches of them, plus what `added` points to, if anything.
template <class Int>
void set_product(OutputBuilder& out, const Tensor* added, const Tensor& a, const Tensor& b) {
  Ints<Int> shape(sizes_of<Int>(a));
  shape.back() = sizes_of<Int>(b).back();
  if (added != nullptr) check_self<Int>(*added, a, shape);
  set_output(out, ArrayRef<Int>(shape), a.scalar_type());
}
void set_product(OutputBuilder& out, const Tensor* added, const Tensor& a, const Tensor& b) {
  const bool symbols = is_symbolic(a) || is_symbolic(b) || (added && is_symbolic(*added));
  if (symbols)
    set_product<SymInt>(out, added, a, b);
  else
    set_product<int64_t>(out, added, a, b);
}
void check_batches(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(b.dim() == 3, "batch2 must be a 3D tensor");
  const SymIntArrayRef x = a.sym_sizes(), y = b.sym_sizes();
  const bool fits =
      c10::expect_true(c10::sym_eq(y[0], x[0])) && c10::expect_true(c10::sym_eq(y[1], x[2]));
  TORCH_CHECK(fits, "Expected size for first two dimensions of batch2 tensor to be: [", x[0], ", ",
              x[2], "] but got: [", y[0], ", ", y[1], "].");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "expected scalar type ", a.scalar_type(),
              " but found ", b.scalar_type());
}
void check_mv_dtypes(const Tensor& self, const Tensor& mat, const Tensor& vec) {
  TORCH_CHECK(mat.scalar_type() == vec.scalar_type() && self.scalar_type() == vec.scalar_type(),
              "addmv input tensors must have the same dtype, but got ", self.scalar_type(), ", ",
              mat.scalar_type(), ", and ", vec.scalar_type());
}
} // namespace

void meta_mm(OutputBuilder& out, const Tensor& self, const Tensor& mat2) {
  check_product(self, mat2, "self", "mat2");
  set_product(out, nullptr, self, mat2);
}
void meta_addmm(OutputBuilder& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                const Scalar& beta, const Scalar& alpha) {
  check_added_dtype(self, mat2);
  check_product(mat1, mat2, "mat1", "mat2");
  set_product(out, &self, mat1, mat2);
}
void meta_bmm(OutputBuilder& out, const Tensor& self, const Tensor& mat2) {
  check_batches(self, mat2);
  set_product(out, nullptr, self, mat2);
}
void meta_baddbmm(OutputBuilder& out, const Tensor& self, const Tensor& batch1,
                  const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
  check_batches(batch1, batch2);
  set_product(out, &self, batch1, batch2);
}
void meta_addbmm(OutputBuilder& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                 const Scalar& beta, const Scalar& alpha) {
  check_batches(batch1, batch2);
  const int64_t shape[2] = {batch1.size(1), batch2.size(2)};
  check_self<int64_t>(self, batch1, shape);
  out.set(0, shape, batch1.scalar_type());
}
namespace {
// mat @ vec, plus what `added` points to, if anything.
void set_mv(OutputBuilder& out, const Tensor* added, const Tensor& mat, const Tensor& vec) {
  const int64_t rank = added == nullptr ? 1 : added->dim();
  TORCH_CHECK(rank <= 1 && mat.dim() == 2 && vec.dim() == 1,
              "vector + matrix @ vector expected, got ", rank, ", ", mat.dim(), ", ", vec.dim());
  const SymInt rows = mat.sym_size(0), count = added == nullptr ? rows : added->sym_numel();
  const bool fits =
      c10::guard_or_false(c10::sym_eq(count, 1)) || c10::expect_true(c10::sym_eq(count, rows));
  TORCH_CHECK(fits && c10::expect_true(c10::sym_eq(mat.sym_size(1), vec.sym_size(0))),
              "size mismatch, got input (", count, "), mat (", native::matrix_size(mat), "), vec (",
              vec.sym_size(0), ")");
  check_mv_dtypes(added == nullptr ? vec : *added, mat, vec);
  out.set_symint(0, rows, mat.scalar_type());
}
} // namespace
void meta_mv(OutputBuilder& out, const Tensor& self, const Tensor& vec) {
  set_mv(out, nullptr, self, vec);
}
void meta_addmv(OutputBuilder& out, const Tensor& self, const Tensor& mat, const Tensor& vec,
                const Scalar& beta, const Scalar& alpha) {
  set_mv(out, &self, mat, vec);
}
namespace {
// The product of two vectors of one dtype and length.
void set_dot(OutputBuilder& out, const Tensor& left, const Tensor& right) {
  const int64_t ranks[2] = {left.dim(), right.dim()};
  const SymInt n = left.sym_numel(), m = right.sym_numel();
  TORCH_CHECK(ranks[0] == 1 && ranks[1] == 1, "1D tensors expected, but got ", ranks[0], "D and ",
              ranks[1], "D tensors");
  const ScalarType dtype = left.scalar_type();
  TORCH_CHECK(dtype == right.scalar_type(),
              "dot : expected both vectors to have same dtype, but found ", dtype, " and ",
              right.scalar_type());
  TORCH_CHECK(c10::expect_true(c10::sym_eq(n, m)), "inconsistent tensor size, expected tensor [", n,
              "] and src [", m, "] to have the same number of elements, but got ", n, " and ", m,
              " elements respectively");
  out.set(0, {}, dtype);
}
} // namespace
void meta_dot(OutputBuilder& out, const Tensor& self, const Tensor& tensor) {
  set_dot(out, self, tensor);
}
void meta_vdot(OutputBuilder& out, const Tensor& self, const Tensor& other) {
  set_dot(out, self, other);
}
namespace {
template <class Int> void set_linear(OutputBuilder& out, const Tensor& input, const Tensor& weight,
                                     const std::optional<Tensor>& bias) {
  TORCH_CHECK(input.dim() >= 1 && weight.dim() >= 1,
              "both arguments to linear need to be at least 1D, but they are ", input.dim(),
              "D and ", weight.dim(), "D");
  TORCH_CHECK(weight.dim() == 2 || weight.dim() == 1,
              "linear(): weight must be a matrix or a vector, got ", weight.dim(), " dimensions");
  const ArrayRef<Int> sizes = sizes_of<Int>(input), wanted = sizes_of<Int>(weight);
  const Int features = sizes.back();
  Int rows = 1;
  for (int64_t i = 0; i + 1 < input.dim(); ++i) rows = rows * sizes[i];
  TORCH_CHECK(c10::expect_true(c10::sym_eq(features, wanted.back())),
              "mat1 and mat2 shapes cannot be multiplied (", rows, "x", features, " and ",
              wanted.back(), "x", weight.dim() == 2 ? wanted[0] : Int(1),
              ")\n  input's last dimension (", features, ") must equal weight's last dimension (",
              wanted.back(), ")");
  if (!bias || !bias->defined()) check_dtypes(input, weight);
  TORCH_CHECK(input.scalar_type() == weight.scalar_type(),
              "mat1 and mat2 must have the same dtype, but got ", input.scalar_type(), " and ",
              weight.scalar_type());
  Ints<Int> shape(sizes);
  if (weight.dim() == 2)
    shape.back() = wanted[0];
  else
    shape.pop_back();
  if (bias && bias->defined()) {
    TORCH_CHECK(bias->scalar_type() == input.scalar_type(),
                "self and mat2 must have the same dtype, but got ", bias->scalar_type(), " and ",
                input.scalar_type());
    // A vector is added to the rows, of which all leading dimensions are made.
    const Int row_shape[2] = {rows, shape.empty() ? Int(1) : shape.back()};
    if (bias->dim() == 1 && weight.dim() == 2)
      check_fits<Int>(sizes_of<Int>(*bias), row_shape);
    else
      check_fits<Int>(sizes_of<Int>(*bias), shape);
  }
  set_output(out, ArrayRef<Int>(shape), input.scalar_type());
}
} // namespace
void meta_linear(OutputBuilder& out, const Tensor& input, const Tensor& weight,
                 const std::optional<Tensor>& bias) {
  if (native::any_symbolic(input, weight, bias))
    set_linear<SymInt>(out, input, weight, bias);
  else
    set_linear<int64_t>(out, input, weight, bias);
}

} // namespace at::meta
