// Sampling made of the fills: normal with tensor parameters, multinomial, dropout and its
// relatives.
#include <algorithm>
#include <cmath>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/GeneratedSupport.h>
#include <ATen/native/random/Native.h>
#include <ATen/native/random/engine/RawFill.h>
#include <ATen/ops/add.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/min.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/new_empty.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/permute.h>
#include <ATen/ops/rrelu_with_noise.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/parallel/Stretches.h>
#include <c10/core/SymNumbers.h>

namespace at::native {
namespace {
using Gen = std::optional<Generator>;

void check_std(const Tensor& std) {
  TORCH_CHECK(!std.is_complex(), "normal expects standard deviation to be non-complex");
  if (std.is_meta() || std.numel() == 0) return;
  if (!std.is_cpu()) {
    TORCH_CHECK(at::_ops::min::call(std).item<double>() >= 0,
                "normal expects all elements of std >= 0.0");
    return;
  }
  const Tensor flat = std.contiguous().to(kDouble);
  const double* value = flat.data_ptr<double>();
  parallel_for(0, flat.numel(), 32768, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      TORCH_CHECK(value[i] >= 0, "normal expects all elements of std >= 0.0");
  });
}

// mean + std * standard normal, in the dtype of the means.
Tensor shifted_normal(const Tensor& mean, const Tensor& std, IntArrayRef size, Gen generator) {
  Tensor out =
      at::empty(size, mean.scalar_type(), kStrided, mean.device(), std::nullopt, std::nullopt);
  at::_ops::normal_::call(out, 0, 1, generator);
  const Tensor shifted = at::add(at::mul(out, std), mean);
  return shifted.scalar_type() == mean.scalar_type() ? shifted : shifted.to(mean.scalar_type());
}
} // namespace

// ---- normal -----------------------------------------------------------------------------------
Tensor normal_tensor_float(const Tensor& mean, double std, Gen generator) {
  TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  Tensor out = at::empty_like(mean, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                              MemoryFormat::Contiguous);
  at::_ops::normal_::call(out, 0, std, generator);
  return at::add(out, mean);
}
Tensor normal_float_tensor(double mean, const Tensor& std, Gen generator) {
  check_std(std);
  Tensor out = at::empty_like(std, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                              MemoryFormat::Contiguous);
  at::_ops::normal_::call(out, 0, 1, generator);
  return at::add(at::mul(out, std), Scalar(mean));
}
Tensor normal_tensor_tensor(const Tensor& mean, const Tensor& std, Gen generator) {
  check_std(std);
  return shifted_normal(mean, std, broadcast_shapes(mean.sizes(), std.sizes()), generator);
}
Tensor normal_float_float(double mean, double std, IntArrayRef size, Gen generator,
                          std::optional<ScalarType> dtype, std::optional<Layout> layout,
                          std::optional<Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  Tensor out = at::empty(size, dtype, layout, device, pin_memory, std::nullopt);
  return at::_ops::normal_::call(out, mean, std, generator);
}

// ---- multinomial ------------------------------------------------------------------------------
Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement, Gen generator) {
  TORCH_CHECK(self.dim() > 0 && self.dim() <= 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(
      c10::isFloatingType(self.scalar_type()),
      "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(num_samples > 0, "cannot sample n_sample <= 0 samples");
  const int64_t categories = self.size(-1);
  TORCH_CHECK(replacement || num_samples <= categories,
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  TORCH_CHECK(categories <= (int64_t(1) << 24), "number of categories cannot exceed 2^24");
  const int64_t rows = self.dim() == 1 ? 1 : self.size(0);
  Tensor out =
      at::empty(self.dim() == 1 ? IntArrayRef({num_samples}) : IntArrayRef({rows, num_samples}),
                kLong, kStrided, self.device(), std::nullopt, std::nullopt);
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor weights = self.contiguous();
  // The noise lies in memory as the weights do, or by rows where rows are repeated.
  const bool by_column = self.dim() == 2 && self.stride(0) != 0 && self.stride(0) < self.stride(1);
  CPUGeneratorImpl& gen = cpu_generator(generator);
  BlockingRegion unlocked;
  std::lock_guard<std::mutex> lock(gen.mutex);
  random::fill_multinomial(gen.engine, self.scalar_type(), weights.data_ptr(), rows, categories,
                           num_samples, replacement, out.data_ptr<int64_t>(), by_column);
  return out;
}

// ---- dropout ----------------------------------------------------------------------------------
namespace {
void check_probability(double p) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}
// What is kept is divided by the probability of keeping it, which integers cannot be.
void check_scaled(const Tensor& input) {
  TORCH_CHECK(!c10::isIntegralType(input.scalar_type(), true),
              "result type Float can't be cast to the desired output type ", input.scalar_type());
}
// One number per channel: (N, C, 1, 1, ...).
Tensor feature_noise(const Tensor& input) {
  TORCH_CHECK(input.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
  c10::SmallVector<c10::SymInt, 6> sizes{input.sym_size(0), input.sym_size(1)};
  for (int64_t i = 2; i < input.dim(); ++i) sizes.push_back(1);
  return at::_ops::new_empty::call(input, sizes, std::nullopt, std::nullopt, std::nullopt,
                                   std::nullopt);
}
// Of a symbolic size only this is asked, so that a trace serves others.
bool has_none(const Tensor& input) {
  return c10::guard_or_false(c10::sym_eq(input.sym_numel(), 0));
}
// Through the dispatcher: the input, and so the noise, may be one of a function transform.
// A draw in place fills the memory in order; the form without a write that a trace makes of it
// fills the dimensions in order. Over dimensions in the order of the memory both are the same.
void draw(Tensor& noise, double p) {
  if (seen_by_handlers(noise) && !noise.is_contiguous() && noise.is_non_overlapping_and_dense()) {
    const c10::SymIntArrayRef strides = noise.sym_strides();
    DimVector order;
    for (int64_t d = 0; d < noise.dim(); ++d) order.push_back(d);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return strides[a].hint().value_or(0) > strides[b].hint().value_or(0);
    });
    Tensor in_memory = at::_ops::permute::call(noise, order);
    at::_ops::bernoulli__float::call(in_memory, p, std::nullopt);
    return;
  }
  at::_ops::bernoulli__float::call(noise, p, std::nullopt);
}
Tensor drop(const Tensor& input, double p, bool train, bool features) {
  check_probability(p);
  if (p == 0 || !train || has_none(input)) return input;
  if (p == 1) return at::mul(input, at::zeros_like(input));
  if (input.is_cuda() && (input.has_storage() || records_whole_operators()) && !features)
    return std::get<0>(at::native_dropout(input, p, true));
  Tensor noise = features ? feature_noise(input) : at::empty_like(input);
  draw(noise, 1 - p);
  check_scaled(input);
  if (C10_LIKELY(!seen_by_handlers(input)))
    return at::mul(input, at::mul(noise, Scalar(1.0 / (1 - p))));
  return at::mul(input, at::_ops::div__Scalar::call(noise, 1 - p));
}
// Keeps mean and variance of a self-normalising network: dropped units take the value -alpha'.
Tensor alpha_drop(const Tensor& input, double p, bool train, bool features) {
  check_probability(p);
  if (p == 0 || !train || has_none(input)) return input;
  if (p == 1) return at::mul(input, at::zeros_like(input));
  constexpr double alpha = 1.7580993408473766;
  const double a = 1.0 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  Tensor noise = features ? feature_noise(input) : at::empty_like(input);
  draw(noise, 1 - p);
  Tensor shift = at::add(noise, Scalar(-1.0));
  at::_ops::mul__Scalar::call(shift, alpha * a);
  at::_ops::add__Scalar::call(shift, alpha * a * p, 1);
  at::_ops::mul__Scalar::call(noise, a);
  Tensor out = at::mul(input, noise);
  return at::_ops::add__Tensor::call(out, shift, 1);
}
} // namespace

Tensor dropout(const Tensor& input, double p, bool train) { return drop(input, p, train, false); }
Tensor feature_dropout(const Tensor& input, double p, bool train) {
  return drop(input, p, train, true);
}
Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  return alpha_drop(input, p, train, false);
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  return alpha_drop(input, p, train, true);
}
// Where nothing is dropped nothing is written: a leaf that requires a gradient may stand there.
static Tensor& store_unless_same(Tensor& self, const Tensor& result) {
  return result.is_same(self) ? self : self.copy_(result);
}
Tensor& dropout_(Tensor& self, double p, bool train) {
  return store_unless_same(self, drop(self, p, train, false));
}
Tensor& feature_dropout_(Tensor& self, double p, bool train) {
  return store_unless_same(self, drop(self, p, train, true));
}
Tensor& alpha_dropout_(Tensor& self, double p, bool train) {
  return store_unless_same(self, alpha_drop(self, p, train, false));
}
Tensor& feature_alpha_dropout_(Tensor& self, double p, bool train) {
  return store_unless_same(self, alpha_drop(self, p, train, true));
}

std::tuple<Tensor, Tensor> native_dropout_parts(const Tensor& input, double p,
                                                std::optional<bool> train) {
  if (has_none(input)) return {input, at::empty_like(input)};
  if (train && !*train) return {input.clone(), at::empty_like(input, kBool).fill_(true)};
  check_probability(p);
  Tensor mask = at::empty_like(input, kBool);
  at::_ops::bernoulli__float::call(mask, 1 - p, std::nullopt);
  check_scaled(input);
  return {at::mul(at::mul(input, mask), Scalar(p == 1 ? 0.0 : 1.0 / (1 - p))), mask};
}

// ---- randomised leaky ReLU --------------------------------------------------------------------
namespace {
template <class T> void rrelu_train(const Tensor& self, const Tensor& noise, const Tensor& out,
                                    double lower, double upper, random::Mt19937& engine) {
  const T* in = self.data_ptr<T>();
  T* to = out.data_ptr<T>();
  T* factor = noise.data_ptr<T>();
  // Bounds and slope are rounded to the type that is computed in, as the stream we match has them.
  using Bound = std::conditional_t<sizeof(T) == 8, double, float>;
  lower = static_cast<double>(static_cast<Bound>(lower));
  upper = static_cast<double>(static_cast<Bound>(upper));
  Steps steps;
  for (int64_t i = 0; i < self.numel(); ++i) {
    steps.add(4);
    const double x = static_cast<double>(in[i]);
    if (x <= 0) {
      double drawn = 0;
      random::fill_uniform(engine, kDouble, &drawn, 1, lower, upper);
      const Bound slope = static_cast<Bound>(drawn);
      to[i] = static_cast<T>(static_cast<Bound>(x) * slope);
      factor[i] = static_cast<T>(slope);
    } else {
      to[i] = in[i];
      factor[i] = static_cast<T>(1.0);
    }
  }
}
} // namespace

Tensor rrelu_with_noise_cpu(const Tensor& self, Tensor& noise, const Scalar& lower,
                            const Scalar& upper, bool training, Gen generator) {
  const double low = lower.toDouble(), high = upper.toDouble();
  TORCH_CHECK(low <= high, "Lower bound should be less than or equal to the upper bound");
  const Tensor input = self.contiguous();
  Tensor out = detail::empty(self.sizes(), self.scalar_type(), self.device());
  if (out.is_meta()) return out;
  if (training) {
    TORCH_CHECK(noise.sizes() == self.sizes() && noise.is_contiguous() &&
                    noise.scalar_type() == self.scalar_type(),
                "noise tensor must be contiguous and have the same shape and dtype as self");
    CPUGeneratorImpl& gen = cpu_generator(generator);
    BlockingRegion unlocked;
    std::lock_guard<std::mutex> lock(gen.mutex);
    dtype_switch<FloatingTypes>(self.scalar_type(), "rrelu_with_noise_out_cpu", [&](auto tag) {
      rrelu_train<typename decltype(tag)::type>(input, noise, out, low, high, gen.engine);
    });
    noise.unsafeGetTensorImpl()->bump_version();
    return out;
  }
  const double slope = (low + high) / 2;
  dtype_switch<FloatingTypes>(self.scalar_type(), "rrelu_with_noise_out_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = input.data_ptr<T>();
    T* to = out.data_ptr<T>();
    parallel_for(0, out.numel(), 32768, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double x = static_cast<double>(from[i]);
        to[i] = static_cast<T>(x <= 0 ? x * slope : x);
      }
    });
  });
  return out;
}
Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
             Gen generator) {
  Tensor noise = at::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                                MemoryFormat::Contiguous);
  return at::_ops::rrelu_with_noise::call(self, noise, lower, upper, training, generator);
}
Tensor& rrelu_(Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
               Gen generator) {
  const Tensor kept = generated::kept_for_backward(self);
  return self.copy_(rrelu(kept, lower, upper, training, generator));
}

} // namespace at::native
