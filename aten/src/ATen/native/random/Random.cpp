// Random fills and the factories made of them. Numbers are drawn in memory order under the
// generator's mutex; the engine gives PyTorch's streams.
#include <algorithm>
#include <cmath>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/random/Bounds.h>
#include <ATen/native/random/Native.h>
#include <ATen/native/random/engine/RawFill.h>
#include <ATen/ops/add.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/cauchy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/expand.h>
#include <ATen/ops/exponential.h>
#include <ATen/ops/geometric.h>
#include <ATen/ops/log_normal.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/random.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/uniform.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {
namespace {
using random::Mt19937;
using Gen = std::optional<Generator>;

// The dimensions as they lie in memory, outermost first.
DimVector memory_order(const Tensor& self) {
  DimVector order(self.dim());
  for (int64_t i = 0; i < self.dim(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return self.strides()[a] > self.strides()[b]; });
  return order;
}

// Calls fill(engine, data) for the whole tensor as one block; tensors with gaps are filled through
// a block of their own.
template <class F> Tensor& fill_with(Tensor& self, const Gen& generator, const F& fill) {
  if (!is_symbolic(self)) assert_no_internal_overlap(self);
  self.unsafeGetTensorImpl()->bump_version();
  if (self.is_meta() || self.numel() == 0) return self;
  CPUGeneratorImpl& gen = cpu_generator(generator);
  if (self.is_non_overlapping_and_dense()) {
    // The lock is taken without the interpreter's: a fill that polls for Ctrl-C under the lock may
    // have to wait for the interpreter.
    BlockingRegion unlocked;
    std::lock_guard<std::mutex> lock(gen.mutex);
    fill(gen.engine, self.data_ptr());
    return self;
  }
  const Tensor ordered = self.permute(memory_order(self));
  const Tensor block = detail::empty(ordered.sizes(), self.scalar_type());
  {
    BlockingRegion unlocked;
    std::lock_guard<std::mutex> lock(gen.mutex);
    fill(gen.engine, block.data_ptr());
  }
  ordered.copy_(block);
  return self;
}

void check_floating(const Tensor& self, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.is_floating_point() || self.is_complex(), "\"", name,
                              "\" not implemented for '", self.scalar_type(), "'");
}

Tensor fresh(SymIntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin_memory) {
  return at::empty_symint(size, dtype, layout, device, pin_memory, std::nullopt);
}
// A result that was made by filling it: that write is no write to the tensor that a caller sees.
Tensor& as_new(Tensor& filled) {
  filled.unsafeGetTensorImpl()->set_version(0);
  return filled;
}
Tensor fresh_like(const Tensor& self) {
  return at::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
}
} // namespace

// ---- in place ---------------------------------------------------------------------------------
Tensor& uniform_(Tensor& self, double from, double to, Gen generator) {
  if (self.is_complex()) {
    Tensor parts = at::view_as_real(self);
    at::_ops::uniform_::call(parts, from, to, generator);
    return self;
  }
  check_floating(self, "check_uniform_bounds");
  if (!self.is_meta()) check_uniform_bounds(self, from, to);
  return fill_with(self, generator, [&](Mt19937& engine, void* data) {
    random::fill_uniform(engine, self.scalar_type(), data, self.numel(), from, to);
  });
}

Tensor& normal_(Tensor& self, double mean, double std, Gen generator) {
  TORCH_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  if (self.is_complex()) {
    Tensor parts = at::view_as_real(self);
    // Both parts share the variance, and each has the mean.
    at::_ops::normal_::call(parts, mean, std / std::sqrt(2.0), generator);
    return self;
  }
  if (!self.is_meta() && self.numel() == 0) return self;
  check_floating(self, "normal_kernel_cpu");
  // From 16 elements on contiguous memory is filled in blocks; anything else element by element.
  const bool blocks = self.is_contiguous();
  return fill_with(self, generator, [&](Mt19937& engine, void* data) {
    if (blocks)
      random::fill_normal(engine, self.scalar_type(), data, self.numel(), mean, std);
    else
      random::fill_normal_one_by_one(engine, self.scalar_type(), data, self.numel(), mean, std);
  });
}

Tensor& log_normal_(Tensor& self, double mean, double std, Gen generator) {
  TORCH_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
  check_floating(self, "log_normal");
  return fill_with(self, generator, [&](Mt19937& engine, void* data) {
    random::fill_log_normal(engine, self.scalar_type(), data, self.numel(), mean, std);
  });
}
Tensor& exponential_(Tensor& self, double lambd, Gen generator) {
  TORCH_CHECK(lambd > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
  TORCH_CHECK(self.is_floating_point(),
              "Exponential distribution is a continuous probability distribution. dtype must be a "
              "floating point but you specified ",
              self.scalar_type());
  return fill_with(self, generator, [&](Mt19937& engine, void* data) {
    random::fill_exponential(engine, self.scalar_type(), data, self.numel(), lambd);
  });
}
Tensor& cauchy_(Tensor& self, double median, double sigma, Gen generator) {
  TORCH_CHECK(sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  TORCH_CHECK(self.is_floating_point(),
              "Cauchy distribution is a continuous probability distribution. dtype must be a "
              "floating point but you specified ",
              self.scalar_type());
  return fill_with(self, generator, [&](Mt19937& engine, void* data) {
    random::fill_cauchy(engine, self.scalar_type(), data, self.numel(), median, sigma);
  });
}
Tensor& geometric_(Tensor& self, double p, Gen generator) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  return fill_with(self, generator, [&](Mt19937& engine, void* data) {
    random::fill_geometric(engine, self.scalar_type(), data, self.numel(), p);
  });
}

// ---- bernoulli --------------------------------------------------------------------------------
Tensor& bernoulli_float_(Tensor& self, double p, Gen generator) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  return fill_with(self, generator, [&](Mt19937& engine, void* data) {
    random::fill_bernoulli(engine, self.scalar_type(), data, self.numel(), p);
  });
}
Tensor& bernoulli_tensor_(Tensor& self, const Tensor& p, Gen generator) {
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "\"bernoulli_tensor_cpu_self_\" not implemented ",
                              "for '", self.scalar_type(), "'");
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isFloatingType(p.scalar_type()),
                              "\"bernoulli_tensor_cpu_p_\" not implemented for '", p.scalar_type(),
                              "'");
  const DimVector order = memory_order(self);
  const Tensor spread =
      at::_ops::expand::call(p, self.sym_sizes(), false).permute(order).contiguous();
  if (!is_symbolic(self)) assert_no_internal_overlap(self);
  self.unsafeGetTensorImpl()->bump_version();
  if (self.is_meta() || self.numel() == 0) return self;
  CPUGeneratorImpl& gen = cpu_generator(generator);
  const Tensor ordered = self.permute(order);
  const bool dense = ordered.is_contiguous();
  const Tensor block = dense ? ordered : detail::empty(ordered.sizes(), self.scalar_type());
  {
    BlockingRegion unlocked;
    std::lock_guard<std::mutex> lock(gen.mutex);
    random::fill_bernoulli_tensor(gen.engine, self.scalar_type(), block.data_ptr(), self.numel(),
                                  p.scalar_type(), spread.data_ptr());
  }
  if (!dense) ordered.copy_(block);
  return self;
}
Tensor bernoulli(const Tensor& self, Gen generator) {
  Tensor out = at::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                              MemoryFormat::Contiguous);
  return as_new(at::_ops::bernoulli__Tensor::call(out, self, generator));
}
Tensor bernoulli_p(const Tensor& self, double p, Gen generator) {
  Tensor out = at::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                              MemoryFormat::Contiguous);
  return as_new(at::_ops::bernoulli__float::call(out, p, generator));
}
Tensor bernoulli_tensor(const Tensor& self, const Tensor& p, Gen generator) {
  Tensor out = fresh_like(self);
  return as_new(at::_ops::bernoulli__Tensor::call(out, p, generator));
}

// ---- integers ---------------------------------------------------------------------------------
Tensor& random_(Tensor& self, Gen generator) {
  return fill_with(self, generator, [&](Mt19937& engine, void* data) {
    random::fill_random(engine, self.scalar_type(), data, self.numel());
  });
}
Tensor& random_from_(Tensor& self, int64_t from, std::optional<int64_t> to, Gen generator) {
  const random::IntRange range = to ? random::int_range(self.scalar_type(), from, *to)
                                    : random::int_range_from(self.scalar_type(), from);
  return fill_with(self, generator, [&](Mt19937& engine, void* data) {
    random::fill_int_range(engine, self.scalar_type(), data, self.numel(), range);
  });
}
Tensor& random_to_(Tensor& self, int64_t to, Gen generator) {
  return at::_ops::random__from::call(self, 0, to, generator);
}

Tensor randint_low_generator(int64_t low, int64_t high, IntArrayRef size, Gen generator,
                             std::optional<ScalarType> dtype, std::optional<Layout> layout,
                             std::optional<Device> device, std::optional<bool> pin_memory) {
  Tensor out =
      fresh(c10::as_symint_array(size), dtype ? *dtype : kLong, layout, device, pin_memory);
  return as_new(at::_ops::random__from::call(out, low, high, generator));
}
Tensor randint_low(int64_t low, int64_t high, IntArrayRef size, std::optional<ScalarType> dtype,
                   std::optional<Layout> layout, std::optional<Device> device,
                   std::optional<bool> pin_memory) {
  return randint_low_generator(low, high, size, std::nullopt, dtype, layout, device, pin_memory);
}
Tensor randint(int64_t high, IntArrayRef size, std::optional<ScalarType> dtype,
               std::optional<Layout> layout, std::optional<Device> device,
               std::optional<bool> pin_memory) {
  return randint_low_generator(0, high, size, std::nullopt, dtype, layout, device, pin_memory);
}
Tensor randint_generator(int64_t high, IntArrayRef size, Gen generator,
                         std::optional<ScalarType> dtype, std::optional<Layout> layout,
                         std::optional<Device> device, std::optional<bool> pin_memory) {
  return randint_low_generator(0, high, size, generator, dtype, layout, device, pin_memory);
}
Tensor randint_like_low_generator(const Tensor& self, int64_t low, int64_t high, Gen generator,
                                  std::optional<ScalarType> dtype, std::optional<Layout> layout,
                                  std::optional<Device> device, std::optional<bool> pin_memory,
                                  std::optional<MemoryFormat> memory_format) {
  Tensor out = at::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  return as_new(at::_ops::random__from::call(out, low, high, generator));
}
Tensor randint_like_low(const Tensor& self, int64_t low, int64_t high,
                        std::optional<ScalarType> dtype, std::optional<Layout> layout,
                        std::optional<Device> device, std::optional<bool> pin_memory,
                        std::optional<MemoryFormat> memory_format) {
  return randint_like_low_generator(self, low, high, std::nullopt, dtype, layout, device,
                                    pin_memory, memory_format);
}
Tensor randint_like(const Tensor& self, int64_t high, std::optional<ScalarType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device,
                    std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format) {
  return randint_like_low_generator(self, 0, high, std::nullopt, dtype, layout, device, pin_memory,
                                    memory_format);
}
Tensor randint_like_generator(const Tensor& self, int64_t high, Gen generator,
                              std::optional<ScalarType> dtype, std::optional<Layout> layout,
                              std::optional<Device> device, std::optional<bool> pin_memory,
                              std::optional<MemoryFormat> memory_format) {
  return randint_like_low_generator(self, 0, high, generator, dtype, layout, device, pin_memory,
                                    memory_format);
}
Tensor randint_like_tensor(const Tensor& self, const Tensor& high, std::optional<ScalarType> dtype,
                           std::optional<Layout> layout, std::optional<Device> device,
                           std::optional<bool> pin_memory,
                           std::optional<MemoryFormat> memory_format) {
  TORCH_CHECK(high.numel() == 1 && high.dim() == 0 && high.is_cpu(),
              "high must be a scalar tensor and on CPU");
  return randint_like(self, high.item<int64_t>(), dtype, layout, device, pin_memory, memory_format);
}

Tensor randperm_generator(int64_t n, Gen generator, std::optional<ScalarType> dtype,
                          std::optional<Layout> layout, std::optional<Device> device,
                          std::optional<bool> pin_memory) {
  const ScalarType type = dtype ? *dtype : kLong;
  TORCH_CHECK_NOT_IMPLEMENTED(type != kBool && !c10::isComplexType(type),
                              "\"randperm\" not implemented for '", type, "'");
  Tensor out = fresh(SymInt(n), type, layout, device, pin_memory);
  if (out.is_meta() || n == 0) return out;
  dtype_switch<RealTypes>(type, "randperm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      static_cast<void>(Scalar(n - 1).to<T>()); // raises where the dtype does not hold it
    } else if (type != kBFloat16) {
      // The integers that are elements without gaps; BFloat16 has had no such limit.
      const int bits = sizeof(T) == 8 ? 53 : sizeof(T) == 4 ? 24 : 11;
      TORCH_CHECK(n - 1 <= int64_t(1) << bits, "n cannot be greater than ",
                  bits == 11 ? std::string("2049") : c10::str("2^", bits, "+1"), " for ", type,
                  " type.");
    }
  });
  CPUGeneratorImpl& gen = cpu_generator(generator);
  BlockingRegion unlocked;
  std::lock_guard<std::mutex> lock(gen.mutex);
  random::fill_randperm(gen.engine, type, out.data_ptr(), n);
  return out;
}
Tensor randperm(int64_t n, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                std::optional<Device> device, std::optional<bool> pin_memory) {
  return at::_ops::randperm_generator::call(n, std::nullopt, dtype, layout, device, pin_memory);
}

// ---- rand and randn ---------------------------------------------------------------------------
Tensor rand_generator(SymIntArrayRef size, Gen generator, std::optional<ScalarType> dtype,
                      std::optional<Layout> layout, std::optional<Device> device,
                      std::optional<bool> pin_memory) {
  Tensor out = fresh(size, dtype, layout, device, pin_memory);
  return as_new(at::_ops::uniform_::call(out, 0, 1, generator));
}
Tensor rand(SymIntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
            std::optional<Device> device, std::optional<bool> pin_memory) {
  return rand_generator(size, std::nullopt, dtype, layout, device, pin_memory);
}
Tensor randn_generator(SymIntArrayRef size, Gen generator, std::optional<ScalarType> dtype,
                       std::optional<Layout> layout, std::optional<Device> device,
                       std::optional<bool> pin_memory) {
  Tensor out = fresh(size, dtype, layout, device, pin_memory);
  return as_new(at::_ops::normal_::call(out, 0, 1, generator));
}
Tensor randn(SymIntArrayRef size, std::optional<ScalarType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin_memory) {
  return randn_generator(size, std::nullopt, dtype, layout, device, pin_memory);
}
Tensor rand_like_generator(const Tensor& self, Gen generator, std::optional<ScalarType> dtype,
                           std::optional<Layout> layout, std::optional<Device> device,
                           std::optional<bool> pin_memory,
                           std::optional<MemoryFormat> memory_format) {
  Tensor out = at::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  return as_new(at::_ops::uniform_::call(out, 0, 1, generator));
}
Tensor rand_like(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                 std::optional<Device> device, std::optional<bool> pin_memory,
                 std::optional<MemoryFormat> memory_format) {
  return rand_like_generator(self, std::nullopt, dtype, layout, device, pin_memory, memory_format);
}
Tensor randn_like_generator(const Tensor& self, Gen generator, std::optional<ScalarType> dtype,
                            std::optional<Layout> layout, std::optional<Device> device,
                            std::optional<bool> pin_memory,
                            std::optional<MemoryFormat> memory_format) {
  Tensor out = at::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  return as_new(at::_ops::normal_::call(out, 0, 1, generator));
}
Tensor randn_like(const Tensor& self, std::optional<ScalarType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory,
                  std::optional<MemoryFormat> memory_format) {
  return randn_like_generator(self, std::nullopt, dtype, layout, device, pin_memory, memory_format);
}

// ---- functional forms of the in-place fills ---------------------------------------------------
Tensor uniform(const Tensor& self, double from, double to, Gen generator) {
  Tensor out = fresh_like(self);
  return as_new(at::_ops::uniform_::call(out, from, to, generator));
}
Tensor normal_functional(const Tensor& self, double mean, double std, Gen generator) {
  Tensor out = fresh_like(self);
  return as_new(at::_ops::normal_::call(out, mean, std, generator));
}
Tensor log_normal(const Tensor& self, double mean, double std, Gen generator) {
  Tensor out = fresh_like(self);
  return as_new(at::_ops::log_normal_::call(out, mean, std, generator));
}
Tensor exponential(const Tensor& self, double lambd, Gen generator) {
  Tensor out = fresh_like(self);
  return as_new(at::_ops::exponential_::call(out, lambd, generator));
}
Tensor cauchy(const Tensor& self, double median, double sigma, Gen generator) {
  Tensor out = fresh_like(self);
  return as_new(at::_ops::cauchy_::call(out, median, sigma, generator));
}
Tensor geometric(const Tensor& self, double p, Gen generator) {
  Tensor out = fresh_like(self);
  return as_new(at::_ops::geometric_::call(out, p, generator));
}

} // namespace at::native
