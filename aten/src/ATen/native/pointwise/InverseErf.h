// The inverse error function and the quantile of the normal distribution, for scalars and
// registers. Both are one smooth ratio, erfinv(y) / y, as a function of w = -log(1 - y^2): a
// polynomial up to w = 6.25, which all but one in a thousand of uniform arguments meet, and three
// in sqrt(w) beyond. Coefficients are Chebyshev fits computed in 60 digits on the interval mapped
// to [-1, 1] (relative error 2e-17, 8e-9 for float). Measured errors: 3 units in the last place of
// float and double.
#pragma once

#include <ATen/native/pointwise/SpecialMath.h>

namespace at::native::special {
inline namespace CRESSET_ISA {

CRESSET_TABLE double kErfinvCentral[] = {
    1.6536545626831027,      0.7504943200799635,     -0.05892256710377784,
    -0.022604447453449802,   0.017808361818295655,   -0.00413731437741443,
    -0.0012716922684373015,  0.0012324855686812834,  -0.0002643936684366174,
    -0.0001168888399309713,  9.33673917780479e-05,   -1.5027710420277575e-05,
    -1.1257319182677936e-05, 7.1300572630824496e-06, -6.83718721812117e-07,
    -1.059321402540731e-06,  5.394320648707009e-07,  -1.0185147576818285e-08,
    -9.867713140174249e-08,  3.915473114023045e-08,  4.792369996100387e-09,
    -8.562787796742932e-09,  1.5401738716654886e-09, 7.689312733742569e-10,
    -2.7032254091069344e-10};
CRESSET_TABLE float kErfinvCentralFloat[] = {1.65365457f,      0.750494318f,   -0.0589229555f,
                                             -0.0226043014f,   0.0178129056f,  -0.00413904576f,
                                             -0.00129118271f,  0.00124011787f, -0.000226487465f,
                                             -0.000132525528f, 5.93016843e-5f, 6.54345559e-7f};
CRESSET_TABLE double kErfinvNear[] = {
    3.5875041872852242,      1.2608470495124553,     0.0032100697498899885,
    -0.0025130603601855976,  0.0013296875362446413,  -0.0008104755783764461,
    0.0006085808890185243,   -0.00045646593709769,   0.0002819156748837284,
    -0.00011949303030927574, 1.4562074542977125e-05, 2.4981716655158706e-05,
    -2.3521161743451563e-05, 1.0192373247633269e-05, -9.143671830035124e-07,
    -1.8795404773622346e-06, 1.3831661900439078e-06, -4.33759544618799e-07,
    -1.846829249986558e-08,  9.278127051701379e-08,  -5.360675359862195e-08,
    1.4446605451272868e-08,  2.911665563973756e-09,  -3.825346968744879e-09,
    9.260008657108533e-10};
CRESSET_TABLE double kErfinvMiddle[] = {
    7.8771136061629345,      3.022820564013602,       -0.00422894476901349,
    0.0005157132406068382,   0.00010177940293221117,  -0.0001238996856453092,
    7.194938095362434e-05,   -3.459837154801653e-05,  1.523054741609205e-05,
    -6.3637926361145205e-06, 2.5662295875220187e-06,  -1.008201805150648e-06,
    3.905415203557081e-07,   -1.4828659279244004e-07, 4.782993056035693e-08,
    -1.5736850343252322e-08, 2.0117002816601914e-08,  -1.0801687246467527e-08,
    -1.5323241792017583e-08, 1.0136907840886632e-08,  1.336087317039778e-08,
    -8.668244444260481e-09,  -6.3721005809113e-09,    4.222896006391786e-09,
    1.4099682884087622e-09,  -9.588244726445521e-10};
CRESSET_TABLE double kErfinvFar[] = {
    19.17624194192431,       8.270517136180011,       -0.006423689945207442,
    0.0020778477091400417,   -0.0006739587845258619,  0.0002147410981159174,
    -6.562521537795367e-05,  1.8451149809940566e-05,  -4.293253414057884e-06,
    4.697421148952404e-07,   3.2356662401889425e-07,  -3.4047839296503166e-07,
    2.246573739852648e-07,   -1.2935516707486827e-07, 6.74756218323379e-08,
    -2.9592680428966624e-08, 1.4493495711013718e-08,  -1.1438800334994835e-08,
    5.222650134239362e-09,   8.074084442512603e-10,   -3.27665560945565e-10,
    -1.1351396233814683e-09, 5.014764869255734e-10};

template <class V> CRESSET_FN V erfinv_ratio_tail(V w) {
  const V s = vm::sqrt(w);
  const V near = polynomial((s - V(3.75)) * V(0.8), kErfinvNear);
  const V middle = polynomial((s - V(8.0)) * V(1.0 / 3), kErfinvMiddle);
  const V far = polynomial((s - V(19.25)) * V(1.0 / 8.25), kErfinvFar);
  return vm::select(s < V(5.0), near, vm::select(s < V(11.0), middle, far));
}
// erfinv(y) / y for w = -log(1 - y^2) from 0 to 756, which is beyond the smallest double.
template <class V> CRESSET_FN V erfinv_ratio(V w) {
  using T = vm::element_t<V>;
  const V u = vm::fma(w, V(T(0.32)), V(T(-1)));
  V ratio;
  if constexpr (sizeof(T) == sizeof(float)) {
    ratio = polynomial(u, kErfinvCentralFloat);
  } else {
    ratio = polynomial(u, kErfinvCentral);
  }
  const auto outside = w > V(T(6.25));
  if (C10_UNLIKELY(vm::reg::any(outside))) {
    if constexpr (sizeof(T) == sizeof(float)) {
      const V tail = vm::reg::in_double(w, [](auto wide) { return erfinv_ratio_tail(wide); });
      ratio = vm::select(outside, tail, ratio);
    } else {
      ratio = vm::select(outside, erfinv_ratio_tail(w), ratio);
    }
  }
  return ratio;
}

// Beyond 1 in size the logarithm, and so the result, is NaN.
template <class V> CRESSET_FN V erfinv(V y) {
  using T = vm::element_t<V>;
  const V one(T(1)), inf(c10::numeric_limits<T>::infinity());
  const V r = y * erfinv_ratio(-vm::log(vm::fma(-y, y, one)));
  return vm::select(vm::abs(y) == one, vm::copysign(inf, y), r);
}
// sqrt(2) erfinv(2 p - 1), where 1 - (2 p - 1)^2 = 4 p (1 - p) keeps the digits of a small p.
template <class V> CRESSET_FN V ndtri(V p) {
  using T = vm::element_t<V>;
  const V one(T(1)), zero(T(0)), inf(c10::numeric_limits<T>::infinity());
  // What lies outside is decided at the end and takes no part in the branches before.
  const auto inside = (p > zero) & (p < one);
  const V q = vm::select(inside, p, V(T(0.5)));
  const V w = -vm::log((q * V(T(4))) * (one - q));
  const V r = V(c10::sqrt_2<T>) * (q + q - one) * erfinv_ratio(w);
  const V outside = vm::select(p == zero, -inf, vm::select(p == one, inf, V(T(kNan))));
  return vm::select(inside, r, outside);
}

} // namespace CRESSET_ISA
} // namespace at::native::special
