// frexp, complex and polar on CUDA. See Parts.h.
#include <ATen/native/pointwise/Parts.h>

#include <ATen/cuda/PointwiseLaunch.h>

namespace at::native {
namespace {

using at::cuda::Kernel;

constexpr const char* kProgram = "native/pointwise/Parts.cuh";
#define CRESSET_PAIR(name, type)                                                                   \
  {                                                                                                \
    {kProgram, name "_flat_" type}, { kProgram, name "_strided_" type }                            \
  }
// By Part, then half, bfloat16, float, double.
Kernel kernels[4][4][2] = {
    {CRESSET_PAIR("mantissa", "f16"), CRESSET_PAIR("mantissa", "bf16"),
     CRESSET_PAIR("mantissa", "f32"), CRESSET_PAIR("mantissa", "f64")},
    {CRESSET_PAIR("exponent", "f16"), CRESSET_PAIR("exponent", "bf16"),
     CRESSET_PAIR("exponent", "f32"), CRESSET_PAIR("exponent", "f64")},
    {CRESSET_PAIR("complex", "f16"), CRESSET_PAIR("complex", "bf16"),
     CRESSET_PAIR("complex", "f32"), CRESSET_PAIR("complex", "f64")},
    {CRESSET_PAIR("polar", "f16"), CRESSET_PAIR("polar", "bf16"), CRESSET_PAIR("polar", "f32"),
     CRESSET_PAIR("polar", "f64")},
};
#undef CRESSET_PAIR

int column_of(ScalarType dtype) {
  return dtype == kHalf ? 0 : dtype == kBFloat16 ? 1 : dtype == kFloat ? 2 : 3;
}

} // namespace

void part_cuda(Part part, const Tensor& out, ArrayRef<Tensor> operands) {
  const ScalarType dtype = operands[0].scalar_type();
  at::cuda::PairLaunch call(kernels[static_cast<int>(part)][column_of(dtype)],
                            static_cast<int>(operands.size()), out);
  for (size_t k = 0; k < operands.size(); ++k) call.set(static_cast<int>(k), operands[k], dtype);
  call.run();
}

} // namespace at::native
