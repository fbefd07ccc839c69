// Discrete uniform draws: random_, randint and randperm. A range below 2^28 takes one 32-bit draw,
// a wider one a 64-bit draw, reduced modulo the range; the small bias is part of the contract.

#include <ATen/native/random/engine/RawFill.h>

#include <ATen/native/random/engine/Visit.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace at::native::random {
namespace {

constexpr int64_t kPollEvery = 1 << 16;
constexpr uint64_t kNarrowRange = uint64_t{1} << 28;

template <class T> constexpr bool is_floating =
    std::is_floating_point_v<T> || std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>;

/// Bits of the significand: up to 2^digits all integers are representable.
template <class T> constexpr int digits() {
  if constexpr (std::is_same_v<T, c10::Half>) return 11;
  if constexpr (std::is_same_v<T, c10::BFloat16>) return 8;
  return std::numeric_limits<T>::digits;
}

/// The type's name as error messages of PyTorch spell it.
template <class T> constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_same_v<T, uint8_t>) return "unsigned char";
  if constexpr (std::is_same_v<T, int8_t>) return "signed char";
  if constexpr (std::is_same_v<T, int16_t>) return "short int";
  if constexpr (std::is_same_v<T, int32_t>) return "int";
  if constexpr (std::is_same_v<T, int64_t>) return "long int";
  if constexpr (std::is_same_v<T, uint16_t>) return "short unsigned int";
  if constexpr (std::is_same_v<T, uint32_t>) return "unsigned int";
  if constexpr (std::is_same_v<T, uint64_t>) return "long unsigned int";
  if constexpr (std::is_same_v<T, float>) return "float";
  if constexpr (std::is_same_v<T, double>) return "double";
  if constexpr (std::is_same_v<T, c10::Half>) return "c10::Half";
  return "c10::BFloat16";
}

template <class T> double as_double(int64_t value) {
  if constexpr (std::is_same_v<T, double>) return static_cast<double>(value);
  if constexpr (std::is_same_v<T, float>) return static_cast<float>(value);
  return static_cast<float>(T(static_cast<float>(value)));
}

/// Whether an int64 is within the values of T.
template <class T> bool fits(int64_t value) {
  if constexpr (std::is_same_v<T, c10::Half>) {
    return value >= -65504 && value <= 65504;
  } else if constexpr (is_floating<T>) {
    return true;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return value >= 0;
  } else {
    return value >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
           value <= static_cast<int64_t>(std::numeric_limits<T>::max());
  }
}

/// The distance of neighbours in T around `magnitude`, which is above 2^digits.
template <class T> double gap_at(uint64_t magnitude) {
  return std::ldexp(1.0, 63 - __builtin_clzll(magnitude) - digits<T>() + 1);
}

int64_t saturate(double value) {
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  return value < -0x1p63 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value);
}

/// The bounds moved inside to representable values, by PyTorch's rule: a bound moves when its
/// neighbour inside the range rounds to T on or beyond it, unless that is 2^63.
template <class T> void shrink_to_representable(int64_t& from, int64_t& to) {
  constexpr int64_t kExact = int64_t{1} << digits<T>();
  const double top = as_double<T>(to - 1), bottom = as_double<T>(from + 1);
  if (to - 1 > kExact && top < 0x1p63 && saturate(top) >= to) {
    to = saturate(top - gap_at<T>(static_cast<uint64_t>(to - 1)));
  }
  if (from < -kExact && saturate(bottom) < from) {
    from = saturate(bottom + gap_at<T>(-static_cast<uint64_t>(from + 1)));
  }
}

template <class T> T element(uint64_t draw, IntRange range) {
  const uint64_t offset = range.range == 0 ? draw : draw % range.range;
  const int64_t value = static_cast<int64_t>(offset + static_cast<uint64_t>(range.base));
  if constexpr (std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

/// r % divisor by two multiplications: the fraction r / divisor in 64 bits, times the divisor.
/// Exact for 32-bit numbers (D. Lemire et al., "Faster remainder by direct computation", 2019).
class FastRemainder {
 public:
  explicit FastRemainder(uint32_t divisor)
      : reciprocal_(std::numeric_limits<uint64_t>::max() / divisor + 1), divisor_(divisor) {}
  uint32_t operator()(uint32_t r) const {
    const uint64_t fraction = reciprocal_ * r;
    return static_cast<uint32_t>(static_cast<unsigned __int128>(fraction) * divisor_ >> 64);
  }

 private:
  uint64_t reciprocal_;
  uint32_t divisor_;
};

template <class T>
void fill_narrow_range(Mt19937& engine, T* out, int64_t n, uint32_t range, int64_t base) {
  constexpr int64_t kSlab = 2048;
  const FastRemainder remainder(range);
  uint32_t raw[kSlab];
  for (int64_t done = 0; done < n; done += kSlab) {
    const int64_t count = std::min(n - done, kSlab);
    engine.fill(raw, count);
    for (int64_t i = 0; i < count; ++i) out[done + i] = element<T>(remainder(raw[i]), {0, base});
  }
}

template <class T> void warn_imprecise(const char* name, int64_t value) {
  constexpr int64_t kExact = int64_t{1} << digits<T>();
  if (value >= -kExact && value <= kExact) return;
  TORCH_WARN(name, " is out of bounds [-(2^", digits<T>(), "), 2^", digits<T>(),
             "]. Due to precision limitations ", type_name<T>(),
             " can support discrete uniform distribution only within this range.");
}

} // namespace

IntRange int_range(ScalarType dtype, int64_t from, int64_t to) {
  IntRange result{};
  TORCH_CHECK(!c10::isComplexType(dtype),
              "check_random_bounds handles only integral, floating-point and boolean types");
  visit_real(dtype, "random_from_to", [&](auto tag) {
    using T = typename decltype(tag)::type;
    TORCH_CHECK(from < to, "random_ expects 'from' to be less than 'to', but got from=", from,
                " >= to=", to);
    if constexpr (is_floating<T>) {
      const int64_t asked_from = from, asked_to = to;
      shrink_to_representable<T>(from, to);
      TORCH_CHECK(from < to,
                  "random_ expects 'from' casted to dtype to be less than 'to' casted to "
                  "dtype, but got from=",
                  from, " >= to=", to);
      TORCH_CHECK(fits<T>(from), "from is out of bounds for ", type_name<T>());
      TORCH_CHECK(fits<T>(to - 1), "to - 1 is out of bounds for ", type_name<T>());
      warn_imprecise<T>("from", asked_from);
      warn_imprecise<T>("to - 1", asked_to - 1);
    } else {
      TORCH_CHECK(fits<T>(from), "from is out of bounds for ", type_name<T>());
      TORCH_CHECK(fits<T>(to - 1), "to - 1 is out of bounds for ", type_name<T>());
    }
    result = {static_cast<uint64_t>(to) - static_cast<uint64_t>(from), from};
  });
  return result;
}

IntRange int_range_from(ScalarType dtype, int64_t from) {
  IntRange result{};
  TORCH_CHECK(!c10::isComplexType(dtype),
              "random_from_to handles only integral, floating-point and boolean types");
  visit_real(dtype, "random_from_to", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (from == std::numeric_limits<int64_t>::min()) { // all 64 bits
      constexpr bool kWide =
          std::is_same_v<T, int64_t> || (is_floating<T> && !std::is_same_v<T, c10::Half>);
      if (!kWide) throw_no_kernel("random_full_64_bits_range_kernel_cpu", dtype);
      result = {0, 0};
      return;
    }
    TORCH_CHECK(fits<T>(from), "from is out of bounds for ", type_name<T>());
    uint64_t last; // the largest value drawn
    if constexpr (is_floating<T>) {
      last = uint64_t{1} << digits<T>();
      TORCH_CHECK(from <= static_cast<int64_t>(last), "random_ expects 'from' to be at most 2^",
                  digits<T>(), " for ", type_name<T>(), ", but got from=", from);
    } else {
      last = static_cast<uint64_t>(std::numeric_limits<T>::max());
    }
    result = {last - static_cast<uint64_t>(from) + 1, from};
  });
  return result;
}

void fill_int_range(Mt19937& engine, ScalarType dtype, void* out, int64_t n, IntRange range) {
  visit_real(dtype, "random_from_to_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out);
    if (range.range != 0 && range.range < kNarrowRange) {
      fill_narrow_range(engine, data, n, static_cast<uint32_t>(range.range), range.base);
    } else {
      for (int64_t i = 0; i < n; ++i) data[i] = element<T>(engine.random64(), range);
    }
  });
}

void fill_random(Mt19937& engine, ScalarType dtype, void* out, int64_t n) {
  visit_common_and_bool(dtype, "random_kernel_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out);
    if constexpr (std::is_same_v<T, bool>) {
      for (int64_t i = 0; i < n; ++i) data[i] = (engine.random() & 1) != 0;
    } else {
      const IntRange range = int_range_from(dtype, 0);
      // By the width of the type here, not of the range.
      if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
        for (int64_t i = 0; i < n; ++i) data[i] = element<T>(engine.random64(), range);
      } else {
        for (int64_t i = 0; i < n; ++i) data[i] = element<T>(engine.random(), range);
      }
    }
  });
}

void fill_randperm(Mt19937& engine, ScalarType dtype, void* out, int64_t n) {
  visit_common(dtype, "randperm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = static_cast<T*>(out);
    for (int64_t i = 0; i < n; ++i) {
      if (i % kPollEvery == 0) check_interrupt();
      data[i] = element<T>(static_cast<uint64_t>(i), {0, 0});
    }
    const bool narrow = n <= std::numeric_limits<uint32_t>::max();
    for (int64_t i = 0; i < n - 1; ++i) {
      const uint64_t rest = static_cast<uint64_t>(n - i);
      const uint64_t draw =
          narrow ? engine.random() % static_cast<uint32_t>(rest) : engine.random64() % rest;
      std::swap(data[i], data[i + static_cast<int64_t>(draw)]);
    }
  });
}

} // namespace at::native::random
