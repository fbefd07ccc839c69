// The operators behind torch.distributions on CUDA: the host side of Distributions.cuh.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/CUDAGenerator.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/random/Native.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/div.h>
#include <ATen/ops/min.h>
#include <ATen/ops/sum.h>
#include <c10/util/NumericLimits.h>

namespace at::native {
namespace {
using cuda::Kernel;
using Gen = std::optional<Generator>;

constexpr const char* kProgram = "native/random/Distributions.cuh";
constexpr int kThreads = 128;
constexpr uint64_t kNumbersPerElement = 1024; // set aside; a draw takes a few dozen at most
const Kernel kGamma[4] = CRESSET_FLOATING_KERNELS(kProgram, "sample_gamma");
const Kernel kPoisson[4] = CRESSET_FLOATING_KERNELS(kProgram, "sample_poisson");
const Kernel kBinomial[4] = CRESSET_FLOATING_KERNELS(kProgram, "sample_binomial");
const Kernel kGammaSlope[4] = CRESSET_FLOATING_KERNELS(kProgram, "gamma_slope");
const Kernel kDirichletSlope[4] = CRESSET_FLOATING_KERNELS(kProgram, "dirichlet_slope");

// out[i] = f of the inputs' i-th elements; with `state` from the generator where one is asked for.
template <class... State> Tensor each(const Kernel (&kernels)[4], const char* name,
                                      IntArrayRef sizes, std::initializer_list<Tensor> inputs,
                                      const State&... state) {
  const Tensor& like = *inputs.begin();
  const ScalarType dtype = like.scalar_type();
  const int slot = cuda::floating_slot(dtype, name);
  const Tensor out = detail::empty(sizes, dtype, like.device());
  if (out.numel() == 0) return out;
  Tensor in[3];
  const void* from[3] = {};
  int count = 0;
  for (const Tensor& t : inputs) {
    in[count] = t.expand(sizes).to(dtype).contiguous();
    from[count] = in[count].const_data_ptr();
    ++count;
  }
  const unsigned blocks = cuda::blocks_for(out.numel(), kThreads);
  const auto stream = cuda::current_stream();
  void* const to = out.mutable_data_ptr();
  const long n = out.numel();
  if (count == 1)
    cuda::launch(kernels[slot], blocks, kThreads, 0, stream, from[0], to, n, state...);
  else if (count == 2)
    cuda::launch(kernels[slot], blocks, kThreads, 0, stream, from[0], from[1], to, n, state...);
  else
    cuda::launch(kernels[slot], blocks, kThreads, 0, stream, from[0], from[1], from[2], to, n,
                 state...);
  return out;
}

device::PhiloxState stream_of(const Gen& generator, const Tensor& like) {
  return cuda::take_philox(generator, like.device(), kNumbersPerElement);
}

} // namespace

Tensor standard_gamma_cuda(const Tensor& self, Gen generator) {
  return each(kGamma, "gamma_cuda", self.sizes(), {self}, stream_of(generator, self));
}

Tensor poisson_cuda(const Tensor& self, Gen generator) {
  TORCH_CHECK(self.numel() == 0 || !(at::_ops::min::call(self).item<double>() < 0),
              "invalid Poisson rate, expected rate to be non-negative");
  return each(kPoisson, "poisson_cuda", self.sizes(), {self}, stream_of(generator, self));
}

Tensor binomial_cuda(const Tensor& count, const Tensor& prob, Gen generator) {
  cuda::check_same_device({&count, &prob});
  TORCH_CHECK_VALUE(
      c10::isFloatingType(count.scalar_type()),
      "binomial only supports floating-point dtypes for count, got: ", count.scalar_type());
  TORCH_CHECK_VALUE(
      c10::isFloatingType(prob.scalar_type()),
      "binomial only supports floating-point dtypes for prob, got: ", prob.scalar_type());
  TORCH_CHECK(count.scalar_type() == prob.scalar_type(), "Found dtype ", prob.scalar_type(),
              " but expected ", count.scalar_type());
  const DimVector sizes = broadcast_shapes(count.sizes(), prob.sizes());
  return each(kBinomial, "binomial_cuda", sizes, {count, prob}, stream_of(generator, prob));
}

// Gamma draws divided by their sum, both in double: small shapes give draws that a narrower type
// could not tell from zero.
Tensor sample_dirichlet_cuda(const Tensor& self, Gen generator) {
  const ScalarType dtype = self.scalar_type();
  cuda::floating_slot(dtype, "dirichlet");
  if (self.numel() == 0) return detail::empty(self.sizes(), dtype, self.device());
  const Tensor draws = standard_gamma_cuda(self.to(kDouble), generator);
  const int64_t last = -1;
  const Tensor shares = self.dim() == 0
                            ? at::div(draws, draws)
                            : at::div(draws, at::sum(draws, IntArrayRef(&last, 1), true));
  const auto limits = [&](auto tag) {
    using L = c10::numeric_limits<decltype(tag)>;
    return std::pair<double, double>(static_cast<double>(L::min()),
                                     1 - static_cast<double>(L::epsilon()) / 2);
  };
  const auto [least, most] = dtype == kDouble  ? limits(double())
                             : dtype == kFloat ? limits(float())
                             : dtype == kHalf  ? limits(c10::Half())
                                               : limits(c10::BFloat16());
  return at::clamp(shares, least, most).to(dtype);
}

Tensor standard_gamma_grad_cuda(const Tensor& self, const Tensor& output) {
  cuda::check_same_device({&self, &output});
  const DimVector sizes = broadcast_shapes(self.sizes(), output.sizes());
  return each(kGammaSlope, "_standard_gamma_grad_cuda", sizes, {self, output});
}

Tensor dirichlet_grad_cuda(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  cuda::check_same_device({&x, &alpha, &total});
  const DimVector sizes =
      broadcast_shapes(broadcast_shapes(x.sizes(), alpha.sizes()), total.sizes());
  return each(kDirichletSlope, "_dirichlet_grad_cuda", sizes, {x, alpha, total});
}

} // namespace at::native
