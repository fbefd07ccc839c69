// Matrix products that keep a wider result than their inputs (out_dtype): the inputs are widened
// and the ordinary product runs on them. A half or bfloat16 number is exact in float32, so nothing
// is lost against accumulating in float32 and never rounding back, and the gradient comes for free.
#include <ATen/native/Checks.h>
#include <ATen/native/matmul/Native.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
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

Tensor _int_mm(const Tensor& self, const Tensor& mat2) {
  Checker("_int_mm").rank({"self", self}, 2).rank({"mat2", mat2}, 2);
  const int64_t inner[2] = {self.size(1), mat2.size(0)};
  TORCH_CHECK(inner[0] == inner[1], "_int_mm: self.size(1) needs to match mat2.size(0) but got ",
              inner[0], " and ", inner[1]);
  const ScalarType left = self.scalar_type(), right = mat2.scalar_type();
  TORCH_CHECK(left == kChar || left == kByte,
              "_int_mm: Expected self dtype to be int8 or uint8 but got ", left);
  TORCH_CHECK(right == kChar, "_int_mm: Expected mat2 dtype to be of type int8 but got ", right);
  return at::mm(self.to(kInt), mat2.to(kInt));
}

// The sums are in float32, in which 8-bit weights are exact, and rounded once.
Tensor _weight_int8pack_mm(const Tensor& self, const Tensor& mat2, const Tensor& scales) {
  const ScalarType dtype = self.scalar_type();
  TORCH_CHECK(dtype == kFloat || dtype == kHalf || dtype == kBFloat16,
              "_weight_int8pack_mm: expect A to be either 32-bit or 16-bit float tensor.");
  TORCH_CHECK(self.dim() == 2, "_weight_int8pack_mm: expect A to be 2-D tensor.");
  TORCH_CHECK(mat2.scalar_type() == kChar, "_weight_int8pack_mm: expect B to be int8 tensor.");
  TORCH_CHECK(mat2.dim() == 2 && mat2.size(1) == self.size(1),
              "_weight_int8pack_mm: expect B.size(1) == ", self.size(1));
  TORCH_CHECK(scales.dim() == 1 && scales.size(0) == mat2.size(0),
              "_weight_int8pack_mm: expect scales to be 1d tensor with size ", mat2.size(0));
  TORCH_CHECK(scales.scalar_type() == dtype, "expected scalar type ", dtype, " but found ",
              scales.scalar_type());
  const Tensor sums = at::mm(self.to(kFloat), mat2.to(kFloat).transpose(0, 1));
  return at::mul(sums, scales.to(kFloat)).to(dtype);
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
