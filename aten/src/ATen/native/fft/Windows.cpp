// The window functions of torch: each a formula of the position, computed in double and rounded
// once. A periodic window of n points is the symmetric one of n + 1 without its last.
#include <ATen/core/Tensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/fft/Native.h>
#include <ATen/native/pointwise/BesselI.h>
#include <ATen/ops/_to_copy.h>
#include <ATen/ops/empty.h>
#include <ATen/parallel/Stretches.h>

#include <cmath>

namespace at::native {
namespace {

constexpr double kTwoPi = 6.28318530717958647693;

struct Options {
  std::optional<ScalarType> dtype;
  std::optional<Layout> layout;
  std::optional<Device> device;
  std::optional<bool> pin_memory;
};

// value(t) for t from 0 to 1 over the points.
template <class F>
Tensor window(const char* name, int64_t length, bool periodic, const Options& o, const F& value) {
  const ScalarType dtype = o.dtype ? *o.dtype : c10::get_default_dtype();
  TORCH_CHECK(!o.layout || *o.layout == kStrided, name,
              " is not implemented for sparse types, got: ", *o.layout);
  TORCH_CHECK(c10::isFloatingType(dtype) || c10::isComplexType(dtype), name,
              " expects floating point dtypes, got: ", dtype);
  TORCH_CHECK(length >= 0, name,
              " requires non-negative window_length, got window_length=", length);
  const bool on_host = !o.device || o.device->is_cpu() || o.device->is_meta();
  const Tensor out = at::empty({length}, dtype, o.layout, on_host ? o.device : Device(kCPU),
                               o.pin_memory, std::nullopt);
  if (out.is_meta() || (length == 0 && on_host)) return out;
  const double steps = static_cast<double>(periodic ? length : length - 1);
  dtype_switch<FloatingTypes>(dtype, name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = static_cast<T*>(out.data_ptr());
    parallel_for(0, length, 4096, [&](int64_t begin, int64_t end) {
      serial_for(begin, end, 64, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i)
          to[i] = static_cast<T>(length == 1 ? 1.0 : value(static_cast<double>(i) / steps));
      });
    });
  });
  // A window is small and made once: a device gets a copy.
  return on_host ? out
                 : at::_to_copy(out, std::nullopt, std::nullopt, o.device, std::nullopt, false,
                                std::nullopt);
}

Tensor cosines(const char* name, int64_t length, bool periodic, double alpha, double beta,
               const Options& o) {
  return window(name, length, periodic, o,
                [=](double t) { return alpha - beta * std::cos(kTwoPi * t); });
}

} // namespace

#define WINDOW_OPTIONS                                                                             \
  std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,     \
      std::optional<bool> pin_memory

Tensor bartlett_window_periodic(int64_t length, bool periodic, WINDOW_OPTIONS) {
  return window("bartlett_window", length, periodic, {dtype, layout, device, pin_memory},
                [](double t) { return 1 - std::abs(2 * t - 1); });
}
Tensor bartlett_window(int64_t length, WINDOW_OPTIONS) {
  return bartlett_window_periodic(length, true, dtype, layout, device, pin_memory);
}

Tensor blackman_window_periodic(int64_t length, bool periodic, WINDOW_OPTIONS) {
  return window(
      "blackman_window", length, periodic, {dtype, layout, device, pin_memory},
      [](double t) { return 0.42 - 0.5 * std::cos(kTwoPi * t) + 0.08 * std::cos(2 * kTwoPi * t); });
}
Tensor blackman_window(int64_t length, WINDOW_OPTIONS) {
  return blackman_window_periodic(length, true, dtype, layout, device, pin_memory);
}

Tensor hamming_window_periodic_alpha_beta(int64_t length, bool periodic, double alpha, double beta,
                                          WINDOW_OPTIONS) {
  return cosines("hamming_window", length, periodic, alpha, beta,
                 {dtype, layout, device, pin_memory});
}
Tensor hamming_window_periodic_alpha(int64_t length, bool periodic, double alpha, WINDOW_OPTIONS) {
  return hamming_window_periodic_alpha_beta(length, periodic, alpha, 0.46, dtype, layout, device,
                                            pin_memory);
}
Tensor hamming_window_periodic(int64_t length, bool periodic, WINDOW_OPTIONS) {
  return hamming_window_periodic_alpha(length, periodic, 0.54, dtype, layout, device, pin_memory);
}
Tensor hamming_window(int64_t length, WINDOW_OPTIONS) {
  return hamming_window_periodic(length, true, dtype, layout, device, pin_memory);
}

Tensor hann_window_periodic(int64_t length, bool periodic, WINDOW_OPTIONS) {
  return cosines("hann_window", length, periodic, 0.5, 0.5, {dtype, layout, device, pin_memory});
}
Tensor hann_window(int64_t length, WINDOW_OPTIONS) {
  return hann_window_periodic(length, true, dtype, layout, device, pin_memory);
}

Tensor kaiser_window_beta(int64_t length, bool periodic, double beta, WINDOW_OPTIONS) {
  const double most = special::bessel_i<0>(beta);
  return window("kaiser_window", length, periodic, {dtype, layout, device, pin_memory},
                [=](double t) {
                  const double x = 2 * t - 1;
                  return special::bessel_i<0>(beta * std::sqrt(std::max(0.0, 1 - x * x))) / most;
                });
}
Tensor kaiser_window_periodic(int64_t length, bool periodic, WINDOW_OPTIONS) {
  return kaiser_window_beta(length, periodic, 12.0, dtype, layout, device, pin_memory);
}
Tensor kaiser_window(int64_t length, WINDOW_OPTIONS) {
  return kaiser_window_periodic(length, true, dtype, layout, device, pin_memory);
}
#undef WINDOW_OPTIONS

} // namespace at::native
