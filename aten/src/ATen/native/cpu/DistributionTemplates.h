// Kernels that fill memory of the CPU from a generator of any class with random() (32 bits) and
// random64(); for ATen/native/DistributionTemplates.h.
#pragma once
#include <limits>
#include <mutex>

#include <ATen/native/DistributionTemplates.h>

namespace at::native::templates::cpu {

// Calls draw(scalar) for each element in order, the generator being locked.
template <class RNG, class Draw> void fill_in_order(Tensor& self, RNG* generator, Draw draw) {
  Tensor out = self.is_contiguous() ? self : at::empty(self.sizes(), self.options());
  const std::lock_guard<std::mutex> lock(generator->mutex);
  AT_DISPATCH_ALL_TYPES_AND3(kBool, kHalf, kBFloat16, self.scalar_type(), "random_", [&] {
    scalar_t* const data = out.mutable_data_ptr<scalar_t>();
    const int64_t count = out.numel();
    for (int64_t i = 0; i < count; ++i) draw(data[i]);
  });
  if (!out.is_same(self)) self.copy_(out);
}

// Numbers that need more than 32 bits are drawn from 64.
template <class RNG> uint64_t draw_below(RNG* generator, uint64_t range) {
  if (range == 0) return generator->random64();
  if (range > std::numeric_limits<uint32_t>::max()) return generator->random64() % range;
  return generator->random() % range;
}

template <class RNG> struct RandomKernel {
  void operator()(Tensor& self, RNG* generator) const {
    fill_in_order(self, generator, [generator](auto& element) {
      using T = std::decay_t<decltype(element)>;
      const uint64_t range = static_cast<uint64_t>(whole_numbers<T>().greatest) + 1;
      element = static_cast<T>(static_cast<int64_t>(draw_below(generator, range)));
    });
  }
};

template <class RNG> struct RandomFromToKernel {
  void operator()(Tensor& self, uint64_t range, int64_t from, RNG* generator) const {
    fill_in_order(self, generator, [=](auto& element) {
      using T = std::decay_t<decltype(element)>;
      const uint64_t drawn = static_cast<uint64_t>(from) + draw_below(generator, range);
      element = static_cast<T>(static_cast<int64_t>(drawn));
    });
  }
};

} // namespace at::native::templates::cpu
