// Operators behind torch.distributions: gamma, Dirichlet, Poisson and binomial samples and the
// derivatives of the first two. Elements are drawn one after another in memory order, since each
// takes as many numbers from the stream as its rejections ask for.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/random/Native.h>
#include <ATen/native/random/PathwiseGradient.h>
#include <ATen/native/random/engine/Mt19937.h>
#include <ATen/native/random/engine/Samplers.h>
#include <ATen/parallel/Stretches.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace at::native {
namespace {
using Gen = std::optional<Generator>;
using random::Mt19937;

Tensor contiguous_like(const Tensor& self) {
  return detail::empty(self.sizes(), self.scalar_type(), self.device());
}

template <class T> double smallest_normal() {
  return static_cast<double>(c10::numeric_limits<T>::min());
}

// The type of the shape in gamma draws: float for the half types.
template <class T> using Shape = std::conditional_t<std::is_same_v<T, double>, double, float>;

// out[i] = sample(engine, in[i]) for every element, under the generator's lock.
template <class F>
Tensor sample_each(const Tensor& self, const char* name, const Gen& generator, const F& sample) {
  Tensor out = contiguous_like(self);
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor in = self.contiguous();
  CPUGeneratorImpl& gen = cpu_generator(generator);
  BlockingRegion unlocked;
  std::lock_guard<std::mutex> lock(gen.mutex);
  dtype_switch<FloatingTypes>(self.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = in.data_ptr<T>();
    T* to = out.data_ptr<T>();
    for (int64_t i = 0; i < out.numel(); ++i) {
      to[i] = static_cast<T>(sample(gen.engine, static_cast<double>(from[i]), tag));
    }
  });
  return out;
}

constexpr int64_t kGrain = 256; // a derivative takes about a microsecond

} // namespace

Tensor standard_gamma_cpu(const Tensor& self, Gen generator) {
  return sample_each(self, "gamma_cpu", generator, [](Mt19937& engine, double alpha, auto tag) {
    using T = typename decltype(tag)::type;
    // A draw that underflows would make the logarithm of the density infinite.
    return std::max(random::sample_gamma(engine, static_cast<Shape<T>>(alpha)),
                    smallest_normal<T>());
  });
}

Tensor poisson_cpu(const Tensor& self, Gen generator) {
  return sample_each(self, "poisson_cpu", generator, [](Mt19937& engine, double rate, auto) {
    TORCH_CHECK(rate >= 0, "invalid Poisson rate, expected rate to be non-negative");
    return random::sample_poisson(engine, rate);
  });
}

Tensor binomial_cpu(const Tensor& count, const Tensor& prob, Gen generator) {
  const DimVector sizes = broadcast_shapes(count.sizes(), prob.sizes());
  TORCH_CHECK_VALUE(
      c10::isFloatingType(count.scalar_type()),
      "binomial only supports floating-point dtypes for count, got: ", count.scalar_type());
  TORCH_CHECK_VALUE(
      c10::isFloatingType(prob.scalar_type()),
      "binomial only supports floating-point dtypes for prob, got: ", prob.scalar_type());
  TORCH_CHECK(count.scalar_type() == prob.scalar_type(), "Found dtype ", prob.scalar_type(),
              " but expected ", count.scalar_type());
  Tensor out = detail::empty(sizes, prob.scalar_type(), prob.device());
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor counts = count.expand(sizes).contiguous();
  const Tensor probs = prob.expand(sizes).contiguous();
  CPUGeneratorImpl& gen = cpu_generator(generator);
  BlockingRegion unlocked;
  std::lock_guard<std::mutex> lock(gen.mutex);
  dtype_switch<FloatingTypes>(out.scalar_type(), "binomial_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int64_t i = 0; i < out.numel(); ++i) {
      const A trials = static_cast<A>(counts.data_ptr<T>()[i]);
      const A p = static_cast<A>(probs.data_ptr<T>()[i]);
      out.data_ptr<T>()[i] = static_cast<T>(random::sample_binomial(gen.engine, trials, p));
    }
  });
  return out;
}

// Gamma draws divided by their sum over the last dimension, both in double: small shapes give draws
// that a narrower type could not tell from zero.
Tensor sample_dirichlet_cpu(const Tensor& self, Gen generator) {
  Tensor out = contiguous_like(self);
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor in = self.contiguous();
  const int64_t columns = self.dim() == 0 ? 1 : self.size(-1);
  std::vector<double> draws(static_cast<size_t>(columns));
  CPUGeneratorImpl& gen = cpu_generator(generator);
  BlockingRegion unlocked;
  std::lock_guard<std::mutex> lock(gen.mutex);
  dtype_switch<FloatingTypes>(self.scalar_type(), "dirichlet", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const double least = smallest_normal<T>();
    const double most = 1 - static_cast<double>(c10::numeric_limits<T>::epsilon()) / 2;
    const T* shape = in.data_ptr<T>();
    T* share = out.data_ptr<T>();
    for (int64_t r = 0; r < out.numel() / columns; ++r) {
      double sum = 0;
      for (double& draw : draws) {
        draw = std::max(random::sample_gamma(gen.engine, static_cast<double>(*shape++)),
                        smallest_normal<double>());
        sum += draw;
      }
      for (const double draw : draws) {
        // In this order NaN stays: both functions answer their first argument then.
        *share++ = static_cast<T>(std::max(std::min(draw / sum, most), least));
      }
    }
  });
  return out;
}

Tensor standard_gamma_grad_cpu(const Tensor& self, const Tensor& output) {
  const DimVector sizes = broadcast_shapes(self.sizes(), output.sizes());
  Tensor out = detail::empty(sizes, self.scalar_type(), self.device());
  if (out.is_meta()) return out;
  const Tensor shape = self.expand(sizes).contiguous();
  const Tensor sample = output.expand(sizes).to(self.scalar_type()).contiguous();
  dtype_switch<FloatingTypes>(out.scalar_type(), "_standard_gamma_grad_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
      Steps steps;
      for (int64_t i = begin; i < end; ++i) {
        steps.add(512);
        out.data_ptr<T>()[i] = static_cast<T>(random::gamma_slope(
            static_cast<double>(shape.data_ptr<T>()[i]),
            static_cast<double>(sample.data_ptr<T>()[i]), random::small_term<T>()));
      }
    });
  });
  return out;
}

Tensor dirichlet_grad_cpu(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  const DimVector sizes =
      broadcast_shapes(broadcast_shapes(x.sizes(), alpha.sizes()), total.sizes());
  Tensor out = detail::empty(sizes, x.scalar_type(), x.device());
  if (out.is_meta()) return out;
  const Tensor xs = x.expand(sizes).contiguous();
  const Tensor alphas = alpha.expand(sizes).to(x.scalar_type()).contiguous();
  const Tensor totals = total.expand(sizes).to(x.scalar_type()).contiguous();
  dtype_switch<FloatingTypes>(out.scalar_type(), "_dirichlet_grad_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
      Steps steps;
      for (int64_t i = begin; i < end; ++i) {
        steps.add(512);
        const double a = static_cast<double>(alphas.data_ptr<T>()[i]);
        const double b = static_cast<double>(totals.data_ptr<T>()[i]) - a;
        out.data_ptr<T>()[i] = static_cast<T>(random::beta_slope(
            static_cast<double>(xs.data_ptr<T>()[i]), a, b, random::small_term<T>()));
      }
    });
  });
  return out;
}

} // namespace at::native
