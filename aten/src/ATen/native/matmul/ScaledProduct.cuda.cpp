// _scaled_mm on CUDA by cuBLASLt's products of 8-bit floating numbers. These take the first matrix
// by rows, the second by columns, sizes that are multiples of 16, and no two matrices of e5m2;
// other products are widened. Scales of whole matrices are applied by the product itself, which
// then writes the result's dtype; scales of rows and columns, a bias and results of 8 bits by a
// kernel after it, from sums in float32.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/CublasLt.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/matmul/Native.h>
#include <ATen/native/matmul/ScaledProduct.h>
#include <ATen/ops/mm.h>

namespace at::native {
namespace {

bool is_narrow(ScalarType dtype) {
  return dtype == ScalarType::Float8_e4m3fn || dtype == ScalarType::Float8_e5m2;
}

bool has_units() {
  const auto& properties = cuda::current_properties();
  return properties.major > 8 || (properties.major == 8 && properties.minor == 9);
}

bool fits(const Tensor& a, const Tensor& b, const ScaledProduct& p) {
  if (!is_narrow(a.scalar_type()) || !is_narrow(b.scalar_type()) ||
      (a.scalar_type() == ScalarType::Float8_e5m2 && b.scalar_type() == ScalarType::Float8_e5m2))
    return false;
  if (p.m == 0 || p.n == 0 || p.k == 0 || p.m % 16 != 0 || p.n % 16 != 0 || p.k % 16 != 0)
    return false;
  const bool by_rows = a.stride(1) == 1 && a.stride(0) >= p.k && a.stride(0) % 16 == 0;
  const bool by_columns = b.stride(0) == 1 && b.stride(1) >= p.k && b.stride(1) % 16 == 0;
  return by_rows && by_columns && cuda::is_aligned16(a.const_data_ptr()) &&
         cuda::is_aligned16(b.const_data_ptr()) && has_units();
}

// out = scale_a scale_b a b, with null for a scale of one.
void queue(const Tensor& a, const Tensor& b, const float* scale_a, const float* scale_b, bool fast,
           const ScaledProduct& s, const Tensor& out) {
  cuda::Product p;
  p.m = s.n;
  p.n = s.m;
  p.k = s.k;
  p.dtype = static_cast<int8_t>(b.scalar_type());
  p.dtype_b = static_cast<int8_t>(a.scalar_type());
  p.dtype_d = static_cast<int8_t>(out.scalar_type());
  p.lda = b.stride(1);
  p.ldb = a.stride(0);
  p.ldc = p.ldd = s.n;
  p.transpose_a = true;
  p.scaled = true;
  p.fast = fast;
  p.align_a = cuda::alignment_log2(b.const_data_ptr());
  p.align_b = cuda::alignment_log2(a.const_data_ptr());
  p.align_c = p.align_d = cuda::alignment_log2(out.const_data_ptr());
  p.device = out.device().index();
  const float one = 1, zero = 0;
  void* const d = out.mutable_data_ptr();
  cuda::ProductData data{b.const_data_ptr(), a.const_data_ptr(), d, d, nullptr, &one, &zero};
  data.scale_a = scale_b;
  data.scale_b = scale_a;
  cuda::run_product(p, data, cuda::current_stream());
}

} // namespace

Tensor scaled_mm_cuda(const Tensor& self, const Tensor& mat2, const Tensor& scale_a,
                      const Tensor& scale_b, const std::optional<Tensor>& bias,
                      const std::optional<Tensor>& scale_result,
                      std::optional<ScalarType> out_dtype, bool use_fast_accum) {
  const ScaledProduct p = scaled_product(self, mat2, scale_a, scale_b, bias, out_dtype);
  cuda::check_same_device({&self, &mat2, &scale_a, &scale_b, cuda::given(bias)});
  if (!fits(self, mat2, p))
    return finish_scaled(at::mm(self.to(kFloat), mat2.to(kFloat)), p, scale_a, scale_b, bias,
                         scale_result);
  const bool plain = p.dtype == kBFloat16 || p.dtype == kHalf || p.dtype == kFloat;
  if (p.whole && plain && !(bias && bias->defined())) {
    const Tensor out = detail::empty({p.m, p.n}, p.dtype, self.device());
    queue(self, mat2, scale_a.const_data_ptr<float>(), scale_b.const_data_ptr<float>(),
          use_fast_accum, p, out);
    return out;
  }
  const Tensor sums = detail::empty({p.m, p.n}, kFloat, self.device());
  queue(self, mat2, nullptr, nullptr, use_fast_accum, p, sums);
  return finish_scaled(sums, p, scale_a, scale_b, bias, scale_result);
}

} // namespace at::native
