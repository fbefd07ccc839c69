// The checks of random_ for kernels of other packages: what is left to a kernel is to draw numbers
// from its generator and to store them. Kernels for memory of the CPU are in
// ATen/native/cpu/DistributionTemplates.h.
#pragma once
#include <cstdint>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/core/GeneratorUser.h>
#include <c10/util/NumericLimits.h>

namespace at::native::templates {

// The integers that an element type can hold without a gap: [least, greatest].
struct WholeNumbers {
  int64_t least;
  int64_t greatest;
};
template <class T> constexpr WholeNumbers whole_numbers() {
  using Limits = c10::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return {0, 1};
  } else if constexpr (Limits::is_integer) {
    return {static_cast<int64_t>(Limits::lowest()), static_cast<int64_t>(Limits::max())};
  } else {
    const int64_t bound = int64_t(1) << Limits::digits;
    return {-bound, bound};
  }
}
inline WholeNumbers whole_numbers(ScalarType type) {
  WholeNumbers out{};
  AT_DISPATCH_ALL_TYPES_AND3(kBool, kHalf, kBFloat16, type, "random_",
                             [&] { out = whole_numbers<scalar_t>(); });
  return out;
}

// Kernel<RNG>()(self, generator) fills `self` with numbers between zero and what fits.
template <template <class> class Kernel, class RNG>
Tensor& random_impl(Tensor& self, std::optional<Generator> generator) {
  RNG* const own = check_generator<RNG>(std::move(generator));
  if (self.numel() > 0) Kernel<RNG>()(self, own);
  return self;
}

// Kernel<RNG>()(self, range, from, generator) fills `self` with numbers of [from, from + range);
// a range of zero stands for 2**64.
template <template <class> class Kernel, class RNG>
Tensor& random_from_to_impl(Tensor& self, int64_t from, std::optional<int64_t> to,
                            std::optional<Generator> generator) {
  RNG* const own = check_generator<RNG>(std::move(generator));
  const WholeNumbers fit = whole_numbers(self.scalar_type());
  TORCH_CHECK(from >= fit.least && from <= fit.greatest, "from is out of bounds for ",
              self.scalar_type());
  uint64_t range = 0;
  if (to) {
    TORCH_CHECK(from < *to, "random_ expects 'from' to be less than 'to', but got from=", from,
                " >= to=", *to);
    TORCH_CHECK(*to - 1 >= fit.least && *to - 1 <= fit.greatest, "to - 1 is out of bounds for ",
                self.scalar_type());
    range = static_cast<uint64_t>(*to) - static_cast<uint64_t>(from);
  } else {
    range = static_cast<uint64_t>(fit.greatest) - static_cast<uint64_t>(from) + 1;
  }
  if (self.numel() > 0) Kernel<RNG>()(self, range, from, own);
  return self;
}

} // namespace at::native::templates
