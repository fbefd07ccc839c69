// Eight registers of partial sums (four pairs for complex numbers), added in a tree at the end.
#include <ATen/native/matmul/Dot.h>
#include <ATen/vec/ValueMath.h>
#include <ATen/vec/VecIO.h>

namespace at::native::dot {
namespace CRESSET_ISA {
namespace {

template <class T> T add_lanes(vec::Vec<T> v) {
  T lane[vec::Vec<T>::kLanes];
  v.store(lane);
  for (int h = vec::Vec<T>::kLanes / 2; h > 0; h /= 2) {
    for (int k = 0; k < h; ++k) lane[k] += lane[k + h];
  }
  return lane[0];
}

template <class T> void dot_real(const void* a, const void* b, int64_t n, bool, void* sum) {
  using V = vec::Vec<T>;
  constexpr int64_t lanes = V::kLanes;
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  V acc[8];
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) acc[k] = V(T(0));
  int64_t i = 0;
  for (; i + 8 * lanes <= n; i += 8 * lanes) {
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k)
      acc[k] = vm::muladd(V::load(x + i + k * lanes), V::load(y + i + k * lanes), acc[k]);
  }
  for (; i + lanes <= n; i += lanes) acc[0] = vm::muladd(V::load(x + i), V::load(y + i), acc[0]);
#pragma GCC unroll 3
  for (int h = 4; h > 0; h /= 2) {
#pragma GCC unroll 4
    for (int k = 0; k < h; ++k) acc[k] = acc[k] + acc[k + h];
  }
  T total = add_lanes(acc[0]);
  for (; i < n; ++i) total += x[i] * y[i];
  *static_cast<T*>(sum) = total;
}

// The four products of parts are summed apart: where a is conjugated only their signs differ.
template <class T>
void dot_complex(const void* a, const void* b, int64_t n, bool conjugate, void* sum) {
  using C = c10::complex<T>;
  using V = vec::Vec<T>;
  using IO = vec::VecIO<C>;
  constexpr int64_t lanes = V::kLanes;
  const C* x = static_cast<const C*>(a);
  const C* y = static_cast<const C*>(b);
  V rr[2] = {T(0), T(0)}, ii[2] = {T(0), T(0)}, ri[2] = {T(0), T(0)}, ir[2] = {T(0), T(0)};
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      const auto p = IO::load(reinterpret_cast<const char*>(x + i + k * lanes));
      const auto q = IO::load(reinterpret_cast<const char*>(y + i + k * lanes));
      rr[k] = vm::fma(p.real_, q.real_, rr[k]);
      ii[k] = vm::fma(p.imag_, q.imag_, ii[k]);
      ri[k] = vm::fma(p.real_, q.imag_, ri[k]);
      ir[k] = vm::fma(p.imag_, q.real_, ir[k]);
    }
  }
  T real_real = add_lanes(rr[0] + rr[1]), imag_imag = add_lanes(ii[0] + ii[1]);
  T real_imag = add_lanes(ri[0] + ri[1]), imag_real = add_lanes(ir[0] + ir[1]);
  for (; i < n; ++i) {
    real_real += x[i].real_ * y[i].real_;
    imag_imag += x[i].imag_ * y[i].imag_;
    real_imag += x[i].real_ * y[i].imag_;
    imag_real += x[i].imag_ * y[i].real_;
  }
  const T sign = conjugate ? T(-1) : T(1);
  *static_cast<C*>(sum) = C(real_real - sign * imag_imag, real_imag + sign * imag_real);
}

} // namespace

void fill(Table& table) {
  const auto slot = [&](c10::ScalarType type) -> DotFn& {
    return table.dot[static_cast<int>(type)];
  };
  slot(c10::ScalarType::Float) = &dot_real<float>;
  slot(c10::ScalarType::Double) = &dot_real<double>;
  slot(c10::ScalarType::Long) = &dot_real<int64_t>;
  slot(c10::ScalarType::ComplexFloat) = &dot_complex<float>;
  slot(c10::ScalarType::ComplexDouble) = &dot_complex<double>;
}

} // namespace CRESSET_ISA
} // namespace at::native::dot
