// Products of matrices of 8-bit floating numbers that carry scales, _scaled_mm. Every such number
// is exact in float32, and so is the product of two: the factors are widened, summed in float32 and
// scaled, and the result is rounded once to the dtype asked for. ScaledProduct.cuda.cpp leaves the
// sums to the GPU's own 8-bit products.
#include <ATen/native/matmul/ScaledProduct.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/matmul/Native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>

namespace at::native {
namespace {

bool is_single(const Tensor& scale) { return scale.scalar_type() == kFloat && scale.numel() == 1; }
bool is_vector(const Tensor& scale, int64_t rows, int64_t columns) {
  return scale.scalar_type() == kFloat && scale.dim() == 2 && scale.size(0) == rows &&
         scale.size(1) == columns && scale.is_contiguous();
}
bool has_scale(const std::optional<Tensor>& t) { return t && t->defined(); }

} // namespace

ScaledProduct scaled_product(const Tensor& self, const Tensor& mat2, const Tensor& scale_a,
                             const Tensor& scale_b, const std::optional<Tensor>& bias,
                             std::optional<ScalarType> out_dtype) {
  TORCH_CHECK(self.dim() == 2, "mat1 must be a matrix, got ", self.scalar_type(), self.sizes());
  TORCH_CHECK(mat2.dim() == 2, "mat2 must be a matrix, got ", mat2.scalar_type(), mat2.sizes());
  const int64_t m = self.size(0), k = self.size(1), n = mat2.size(1);
  TORCH_CHECK(k == mat2.size(0), "mat_a and mat_b shapes cannot be multiplied (", m, "x", k,
              " and ", mat2.size(0), "x", n, ")");
  const bool whole = is_single(scale_a) && is_single(scale_b);
  const bool by_row = is_vector(scale_a, m, 1) && is_vector(scale_b, 1, n);
  TORCH_CHECK_VALUE(
      c10::isFloat8Type(self.scalar_type()) && c10::isFloat8Type(mat2.scalar_type()) &&
          (whole || by_row),
      "Invalid scaling configuration. The matrices must be float8 and the scales float32: one "
      "number for each matrix, or contiguous, one for each row of the first (",
      m, "x1) and each column of the second (1x", n, "). Got matrices ", self.scalar_type(),
      self.sizes(), " and ", mat2.scalar_type(), mat2.sizes(), ", scales ", scale_a.scalar_type(),
      scale_a.sizes(), " and ", scale_b.scalar_type(), scale_b.sizes());
  TORCH_CHECK(!has_scale(bias) || bias->numel() == n, "Bias must be size ", n, " but got ",
              has_scale(bias) ? bias->numel() : 0);
  return {m, n, k, whole, out_dtype.value_or(self.scalar_type())};
}

Tensor finish_scaled(const Tensor& sums, const ScaledProduct& p, const Tensor& scale_a,
                     const Tensor& scale_b, const std::optional<Tensor>& bias,
                     const std::optional<Tensor>& scale_result) {
  Tensor product = at::mul(at::mul(sums, scale_a), scale_b);
  if (has_scale(bias)) product = at::add(product, bias->to(kFloat).reshape({p.n}));
  if (has_scale(scale_result) && c10::isFloat8Type(p.dtype))
    product = at::div(product, *scale_result);
  return product.to(p.dtype);
}

Tensor scaled_mm_cpu(const Tensor& self, const Tensor& mat2, const Tensor& scale_a,
                     const Tensor& scale_b, const std::optional<Tensor>& bias,
                     const std::optional<Tensor>& scale_result, std::optional<ScalarType> out_dtype,
                     bool /*use_fast_accum*/) {
  const ScaledProduct p = scaled_product(self, mat2, scale_a, scale_b, bias, out_dtype);
  return finish_scaled(at::mm(self.to(kFloat), mat2.to(kFloat)), p, scale_a, scale_b, bias,
                       scale_result);
}

Tensor scaled_mm_meta(const Tensor& self, const Tensor& mat2, const Tensor& scale_a,
                      const Tensor& scale_b, const std::optional<Tensor>& bias,
                      const std::optional<Tensor>& /*scale_result*/,
                      std::optional<ScalarType> out_dtype, bool /*use_fast_accum*/) {
  const ScaledProduct p = scaled_product(self, mat2, scale_a, scale_b, bias, out_dtype);
  return detail::empty({p.m, p.n}, p.dtype, Device(kMeta));
}

} // namespace at::native
