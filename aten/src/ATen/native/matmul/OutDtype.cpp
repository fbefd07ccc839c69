// Matrix products that keep a wider result than their inputs (out_dtype): the inputs are widened
// and the ordinary product runs on them. A half or bfloat16 number is exact in float32, so nothing
// is lost against accumulating in float32 and never rounding back, and the gradient comes for free.
#include <ATen/native/matmul/Native.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>

namespace at::native {
namespace {
void check_out_dtype(ScalarType in, ScalarType out) {
  const bool reduced = in == kHalf || in == kBFloat16;
  TORCH_CHECK(out == in || (reduced && out == kFloat),
              "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs, but got ",
              out, " for inputs of type ", in);
}
Tensor widen(const Tensor& t, ScalarType out) { return t.scalar_type() == out ? t : t.to(out); }
void check_operands(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "input dtypes must be the same, but got ",
              a.scalar_type(), " and ", b.scalar_type());
}
void check_added(const Tensor& self, const Tensor& product, ScalarType out) {
  TORCH_CHECK(self.scalar_type() == out || self.scalar_type() == product.scalar_type(),
              "self dtype must match either out_dtype or the dtype of the factors, but got ",
              self.scalar_type());
}
} // namespace

Tensor mm_dtype(const Tensor& self, const Tensor& mat2, ScalarType out_dtype) {
  check_operands(self, mat2);
  check_out_dtype(self.scalar_type(), out_dtype);
  return at::mm(widen(self, out_dtype), widen(mat2, out_dtype));
}

Tensor _addmm_activation(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                         const Scalar& beta, const Scalar& alpha, bool use_gelu) {
  const Tensor sum = at::addmm(self, mat1, mat2, beta, alpha);
  return use_gelu ? at::gelu(sum) : at::relu(sum);
}

Tensor bmm_dtype(const Tensor& self, const Tensor& mat2, ScalarType out_dtype) {
  check_operands(self, mat2);
  check_out_dtype(self.scalar_type(), out_dtype);
  return at::bmm(widen(self, out_dtype), widen(mat2, out_dtype));
}

Tensor addmm_dtype(const Tensor& self, const Tensor& mat1, const Tensor& mat2, ScalarType out_dtype,
                   const Scalar& beta, const Scalar& alpha) {
  check_operands(mat1, mat2);
  check_out_dtype(mat1.scalar_type(), out_dtype);
  check_added(self, mat1, out_dtype);
  return at::addmm(widen(self, out_dtype), widen(mat1, out_dtype), widen(mat2, out_dtype), beta,
                   alpha);
}

Tensor baddbmm_dtype(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                     ScalarType out_dtype, const Scalar& beta, const Scalar& alpha) {
  check_operands(batch1, batch2);
  check_out_dtype(batch1.scalar_type(), out_dtype);
  check_added(self, batch1, out_dtype);
  return at::baddbmm(widen(self, out_dtype), widen(batch1, out_dtype), widen(batch2, out_dtype),
                     beta, alpha);
}

} // namespace at::native
