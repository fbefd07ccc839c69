// Element type conversions, all pairs, once per instruction set. Contiguous runs are plain loops
// the compiler vectorises; Half and BFloat16 against float, which it cannot, go through the
// registers' own conversions.
#include <ATen/iter/CastTable.h>
#include <ATen/vec/VecIO.h>
#include <c10/core/ScalarType.h>

namespace at::cast {
namespace CRESSET_ISA {
namespace {

using c10::is_complex_v;

// A floating value outside an integer's range gives some integer, never undefined behaviour.
template <class To> To integer_from(double v) {
  if (!(v > -9.3e18 && v < 1.9e19)) return static_cast<To>(v != v ? 0 : INT64_MIN);
  return v >= 9223372036854775808.0 ? static_cast<To>(static_cast<uint64_t>(v))
                                    : static_cast<To>(static_cast<int64_t>(v));
}
template <class T> constexpr bool is_reduced = sizeof(T) <= 2 && !std::is_integral_v<T>;

template <class To, class From> C10_ALWAYS_INLINE To convert(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (is_complex_v<From>) {
    if constexpr (is_complex_v<To>) {
      using R = typename To::value_type;
      return To(convert<R>(v.real_), convert<R>(v.imag_));
    } else if constexpr (std::is_same_v<To, bool>) {
      return convert<bool>(v.real_) || convert<bool>(v.imag_);
    } else {
      return convert<To>(v.real_);
    }
  } else if constexpr (is_complex_v<To>) {
    using R = typename To::value_type;
    return To(convert<R>(v), R(0.0f));
  } else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (std::is_integral_v<From>)
      return v != 0;
    else if constexpr (is_reduced<From>)
      return static_cast<float>(v) != 0;
    else
      return v != 0;
  } else if constexpr (is_reduced<From>) {
    return convert<To>(static_cast<float>(v));
  } else if constexpr (is_reduced<To>) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    // 32-bit and narrower targets of float take the machine's truncating conversion through 64
    // bits.
    if constexpr (sizeof(To) < 8) {
      const From bounded = v > From(-9.2e18) && v < From(9.2e18) ? v : From(0);
      return static_cast<To>(static_cast<int64_t>(bounded));
    } else {
      return integer_from<To>(v);
    }
  } else {
    return static_cast<To>(v);
  }
}

template <class To, class From> __attribute__((optimize("O3"))) void
run_contiguous(To* __restrict to, const From* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
}

// Bytes of a bool tensor may hold anything, where other memory is viewed as one.
template <class To> __attribute__((optimize("O3"))) void
run_contiguous(To* __restrict to, const bool* __restrict from, int64_t n) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(bytes[i] != 0);
}

// float <-> Half/BFloat16 by registers; the tail goes element by element with the same rounding.
template <class To, class From> void run_reduced(char* to, const char* from, int64_t n) {
  constexpr int64_t lanes = vec::Vec<float>::kLanes;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    vec::VecIO<To>::store(to + i * sizeof(To), vec::VecIO<From>::load(from + i * sizeof(From)));
  for (; i < n; ++i)
    reinterpret_cast<To*>(to)[i] = convert<To>(reinterpret_cast<const From*>(from)[i]);
}

template <class T> constexpr bool is_half_like =
    std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>;

template <class To, class From>
void loop(char* const* data, const int64_t* strides, int64_t n, const void*) {
  char* to = data[0];
  const char* from = data[1];
  if (strides[0] == sizeof(To) && strides[1] == sizeof(From)) {
    if constexpr ((is_half_like<To> && std::is_same_v<From, float>) ||
                  (is_half_like<From> && std::is_same_v<To, float>)) {
      run_reduced<To, From>(to, from, n);
    } else {
      run_contiguous(reinterpret_cast<To*>(to), reinterpret_cast<const From*>(from), n);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    From v;
    if constexpr (std::is_same_v<From, bool>) {
      v = *from != 0;
    } else {
      __builtin_memcpy(&v, from, sizeof(From));
    }
    const To converted = convert<To>(v);
    __builtin_memcpy(to, &converted, sizeof(To));
    to += strides[0];
    from += strides[1];
  }
}

template <class To> void fill_row(CastTable& table, c10::ScalarType to) {
#define CELL(From, Name)                                                                           \
  table.loop[static_cast<int>(to)][static_cast<int>(c10::ScalarType::Name)] = &loop<To, From>;
  CRESSET_FORALL_ARITHMETIC_TYPES(CELL)
  CRESSET_FORALL_FLOAT8_TYPES(CELL)
  CELL(c10::Float8_e8m0fnu, Float8_e8m0fnu)
#undef CELL
}
} // namespace

void fill(CastTable& table) {
#define ROW(To, Name) fill_row<To>(table, c10::ScalarType::Name);
  CRESSET_FORALL_ARITHMETIC_TYPES(ROW)
  CRESSET_FORALL_FLOAT8_TYPES(ROW)
  ROW(c10::Float8_e8m0fnu, Float8_e8m0fnu)
#undef ROW
}

} // namespace CRESSET_ISA
} // namespace at::cast
