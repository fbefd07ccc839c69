// The host side of RandomFill.cuh: random fills on CUDA, random permutations, multinomial samples
// and dropout. Each call takes four numbers per element group off the generator, whatever it needs,
// so a later call's numbers do not depend on an earlier one's distribution.
#include <cmath>
#include <limits>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/CUDAGenerator.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/random/Bounds.h>
#include <ATen/native/random/Native.h>
#include <ATen/native/random/RandomFill.args.h>
#include <ATen/native/random/engine/RawFill.h>
#include <ATen/native/sort/RadixSort.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/view_as_real.h>

namespace at::native {
namespace {
using cuda::blocks_for;
using cuda::Kernel;
using Gen = std::optional<Generator>;

constexpr const char* kProgram = "native/random/RandomFill.cuh";

struct TypeKernels {
  ScalarType dtype;
  Kernel fill, bernoulli;
};
#define CRESSET_RANDOM(dtype, name)                                                                \
  {                                                                                                \
    dtype, {kProgram, "random_fill_" name}, { kProgram, "bernoulli_each_" name }                   \
  }
const TypeKernels kTypes[] = {
    CRESSET_RANDOM(kFloat, "f32"),  CRESSET_RANDOM(kDouble, "f64"),
    CRESSET_RANDOM(kHalf, "f16"),   CRESSET_RANDOM(kBFloat16, "bf16"),
    CRESSET_RANDOM(kByte, "u8"),    CRESSET_RANDOM(kChar, "i8"),
    CRESSET_RANDOM(kShort, "i16"),  CRESSET_RANDOM(kInt, "i32"),
    CRESSET_RANDOM(kLong, "i64"),   CRESSET_RANDOM(kUInt16, "u16"),
    CRESSET_RANDOM(kUInt32, "u32"), CRESSET_RANDOM(kUInt64, "u64"),
    CRESSET_RANDOM(kBool, "bool"),
};
const Kernel kDropout[4] = {{kProgram, "dropout_f32"},
                            {kProgram, "dropout_f64"},
                            {kProgram, "dropout_f16"},
                            {kProgram, "dropout_bf16"}};
const Kernel kKeys(kProgram, "random_keys"), kSearch(kProgram, "multinomial_search");

const TypeKernels& kernels_for(ScalarType dtype, const char* op) {
  for (const TypeKernels& k : kTypes)
    if (k.dtype == dtype) return k;
  TORCH_CHECK_NOT_IMPLEMENTED(false, "\"", op, "\" not implemented for '", dtype, "'");
  return kTypes[0];
}

using namespace device; // the kinds of RandomFill.args.h
using Settings = device::RandomSettings;

constexpr uint64_t kNumbersPerCall = 4;

Settings settings_for(Distribution distribution, double a, double b, ScalarType dtype) {
  Settings s;
  s.distribution = distribution;
  s.a = a;
  s.b = b;
  s.wide = dtype == kDouble;
  return s;
}

// Fills self in memory order.
Tensor& fill(Tensor& self, const Gen& generator, Settings s, const char* op) {
  const TypeKernels& kernels = kernels_for(self.scalar_type(), op);
  assert_no_internal_overlap(self);
  self.unsafeGetTensorImpl()->bump_version();
  if (self.numel() == 0) return self;
  const bool dense = self.is_non_overlapping_and_dense();
  const Tensor target =
      dense ? self : detail::empty(self.sizes(), self.scalar_type(), self.device());
  s.state = cuda::take_philox(generator, self.device(), kNumbersPerCall);
  s.n = self.numel();
  cuda::launch(kernels.fill, blocks_for(s.n, s.wide ? 512 : 1024), 256, 0, cuda::current_stream(),
               target.mutable_data_ptr(), s);
  if (!dense) self.copy_(target);
  return self;
}

void check_floating(const Tensor& self, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), "\"", name, "\" not implemented for '",
                              self.scalar_type(), "'");
}

} // namespace

// ---- fills
Tensor& uniform_cuda_(Tensor& self, double from, double to, Gen generator) {
  if (self.is_complex()) {
    Tensor parts = at::view_as_real(self);
    uniform_cuda_(parts, from, to, generator);
    return self;
  }
  check_floating(self, "check_uniform_bounds");
  check_uniform_bounds(self, from, to);
  return fill(self, generator, settings_for(kUniform, from, to, self.scalar_type()), "uniform");
}
Tensor& normal_cuda_(Tensor& self, double mean, double std, Gen generator) {
  TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  if (self.is_complex()) {
    Tensor parts = at::view_as_real(self);
    normal_cuda_(parts, 0.0, std / std::sqrt(2.0), generator);
    if (mean != 0.0) {
      Tensor real_part = parts.select(-1, 0);
      real_part.copy_(at::add(real_part, Scalar(mean)));
    }
    return self;
  }
  check_floating(self, "normal_kernel_cuda");
  return fill(self, generator, settings_for(kNormal, mean, std, self.scalar_type()), "normal");
}
Tensor& log_normal_cuda_(Tensor& self, double mean, double std, Gen generator) {
  TORCH_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
  check_floating(self, "log_normal");
  return fill(self, generator, settings_for(kLogNormal, mean, std, self.scalar_type()),
              "log_normal");
}
Tensor& exponential_cuda_(Tensor& self, double lambd, Gen generator) {
  TORCH_CHECK(lambd > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
  TORCH_CHECK(self.is_floating_point(),
              "Exponential distribution is a continuous probability distribution. dtype must be a "
              "floating point but you specified ",
              self.scalar_type());
  return fill(self, generator, settings_for(kExponential, lambd, 0, self.scalar_type()),
              "exponential");
}
Tensor& cauchy_cuda_(Tensor& self, double median, double sigma, Gen generator) {
  TORCH_CHECK(sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  TORCH_CHECK(self.is_floating_point(),
              "Cauchy distribution is a continuous probability distribution. dtype must be a "
              "floating point but you specified ",
              self.scalar_type());
  return fill(self, generator, settings_for(kCauchy, median, sigma, self.scalar_type()), "cauchy");
}
Tensor& geometric_cuda_(Tensor& self, double p, Gen generator) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  return fill(self, generator, settings_for(kGeometric, p, 0, self.scalar_type()), "geometric");
}
Tensor& bernoulli_float_cuda_(Tensor& self, double p, Gen generator) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  return fill(self, generator, settings_for(kBernoulli, p, 0, self.scalar_type()), "bernoulli");
}
Tensor& bernoulli_tensor_cuda_(Tensor& self, const Tensor& p, Gen generator) {
  TORCH_CHECK(c10::isFloatingType(p.scalar_type()),
              "expected probabilities tensor to have floating type, got ", p.scalar_type());
  const TypeKernels& kernels = kernels_for(self.scalar_type(), "bernoulli");
  cuda::check_same_device({&self, &p});
  const Tensor spread = p.to(kFloat).expand(self.sizes()).contiguous();
  assert_no_internal_overlap(self);
  self.unsafeGetTensorImpl()->bump_version();
  if (self.numel() == 0) return self;
  const Tensor target =
      self.is_contiguous() ? self : detail::empty(self.sizes(), self.scalar_type(), self.device());
  Settings s;
  s.state = cuda::take_philox(generator, self.device(), kNumbersPerCall);
  s.n = self.numel();
  cuda::launch(kernels.bernoulli, blocks_for(s.n, 1024), 256, 0, cuda::current_stream(),
               target.mutable_data_ptr(), spread.const_data_ptr(), s);
  if (!target.is_same(self)) self.copy_(target);
  return self;
}

// ---- integers
namespace {
Tensor& fill_integers(Tensor& self, const Gen& generator, random::IntRange range) {
  Settings s;
  s.distribution = kInteger;
  s.range = range.range;
  s.base = range.base;
  s.wide = range.range == 0 || range.range > (uint64_t(1) << 32);
  return fill(self, generator, s, "random_");
}
} // namespace

Tensor& random_cuda_(Tensor& self, Gen generator) {
  if (self.scalar_type() == kBool) return fill_integers(self, generator, {2, 0});
  return fill_integers(self, generator, random::int_range_from(self.scalar_type(), 0));
}
Tensor& random_from_cuda_(Tensor& self, int64_t from, std::optional<int64_t> to, Gen generator) {
  return fill_integers(self, generator,
                       to ? random::int_range(self.scalar_type(), from, *to)
                          : random::int_range_from(self.scalar_type(), from));
}

Tensor randperm_generator_cuda(int64_t n, Gen generator, std::optional<ScalarType> dtype,
                               std::optional<Layout> layout, std::optional<Device> device,
                               std::optional<bool> pin_memory) {
  TORCH_CHECK(n >= 0 && n <= std::numeric_limits<int32_t>::max(),
              "n must be non-negative and below 2^31, got ", n);
  const ScalarType type = dtype ? *dtype : kLong;
  TORCH_CHECK_NOT_IMPLEMENTED(type != kBool && !c10::isComplexType(type),
                              "\"randperm\" not implemented for '", type, "'");
  Tensor out = at::empty({n}, type, layout, device, pin_memory, std::nullopt);
  if (n == 0) return out;
  Settings s;
  s.state = cuda::take_philox(generator, out.device(), kNumbersPerCall);
  s.n = n;
  const Tensor keys = detail::empty({1, n}, kLong, out.device());
  cuda::launch(kKeys, blocks_for(n, 512), 256, 0, cuda::current_stream(), keys.mutable_data_ptr(),
               s);
  out.copy_(radix_sort_cuda(keys, Tensor(), 63).values.view({n}));
  return out;
}

Tensor multinomial_cuda(const Tensor& self, int64_t num_samples, bool replacement, Gen generator) {
  TORCH_CHECK(self.dim() > 0 && self.dim() <= 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(
      c10::isFloatingType(self.scalar_type()),
      "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(num_samples > 0, "cannot sample n_sample <= 0 samples");
  const int64_t categories = self.size(-1);
  TORCH_CHECK(replacement || num_samples <= categories,
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  const int64_t rows = self.dim() == 1 ? 1 : self.size(0);
  const bool single = self.dim() == 1;
  if (rows == 0) return detail::empty({0, num_samples}, kLong, self.device());
  const Tensor weights = self.to(kDouble).contiguous().view({rows, categories});
  TORCH_CHECK(at::_ops::min::call(weights).item<double>() >= 0 &&
                  std::isfinite(at::_ops::max::call(weights).item<double>()),
              "probability tensor contains either `inf`, `nan` or element < 0");
  Tensor out = detail::empty({rows, num_samples}, kLong, self.device());
  if (replacement) {
    const Tensor cdf = at::cumsum(weights, 1).contiguous();
    TORCH_CHECK(at::_ops::min::call(cdf.select(1, categories - 1)).item<double>() > 0,
                "invalid multinomial distribution (sum of probabilities <= 0)");
    Settings s;
    s.state = cuda::take_philox(generator, self.device(), kNumbersPerCall);
    cuda::launch(kSearch, blocks_for(rows * num_samples, 256), 256, 0, cuda::current_stream(),
                 cdf.const_data_ptr(), out.mutable_data_ptr(), rows, categories, num_samples, s);
  } else {
    // The largest of p / Exp(1) is a draw from p; the next ones are draws from what is left.
    Tensor noise = detail::empty({rows, categories}, kDouble, self.device());
    exponential_cuda_(noise, 1, generator);
    out = std::get<1>(at::topk(at::div(weights, noise), num_samples, 1));
  }
  return single ? out.view({num_samples}) : out;
}

// ---- dropout
std::tuple<Tensor, Tensor> native_dropout_cuda(const Tensor& input, double p,
                                               std::optional<bool> train) {
  if (input.numel() == 0) return {input, at::empty_like(input, kBool)};
  if (train && !*train) return {input.clone(), at::empty_like(input, kBool).fill_(true)};
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  const int slot = cuda::floating_slot(input.scalar_type(), "dropout_cuda");
  // A base of its own is aligned, as the kernel's packs need; a view may not be.
  Tensor x = input.is_non_overlapping_and_dense() ? input : input.contiguous();
  if (!cuda::is_aligned16(x.const_data_ptr())) x = x.clone();
  const Tensor out = detail::empty_strided(x.sizes(), x.strides(), x.scalar_type(), x.device());
  const Tensor mask = detail::empty_strided(x.sizes(), x.strides(), kBool, x.device());
  Settings s = settings_for(kBernoulli, 1 - p, 0, kFloat);
  s.state = cuda::take_philox(std::nullopt, x.device(), kNumbersPerCall);
  s.n = x.numel();
  cuda::launch(kDropout[slot], blocks_for(s.n, 1024), 256, 0, cuda::current_stream(),
               x.const_data_ptr(), out.mutable_data_ptr(), mask.mutable_data_ptr(), s);
  return {out, mask};
}

} // namespace at::native
