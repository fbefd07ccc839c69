// The modified Bessel functions of the first kind, orders 0 and 1, for scalars and registers. With
// the growth e^|x| divided out they are smooth: a polynomial in x up to 8 (order 1: times x) and
// one in 1 / x, times 1 / sqrt(x), beyond. Coefficients are Chebyshev fits computed in 60 digits on
// the interval mapped to [-1, 1], with relative error 3e-17; float computes in double with the
// short tables, 2e-10.
#pragma once

#include <ATen/native/pointwise/SpecialMath.h>

namespace at::native::special {
inline namespace CRESSET_ISA {

CRESSET_TABLE double kI0Small[] = {
    0.2070019212239867,     -0.11300432688620536,   0.09451562853995125,   -0.08904344136077733,
    0.08734341617550884,    -0.08496338091542556,   0.07927522590752974,   -0.06954119563154397,
    0.05677703201501785,    -0.04298594929673067,   0.03017791206221918,   -0.019682655784004566,
    0.011960077703464203,   -0.006792394821044967,  0.0036171271654272855, -0.0018119029764120445,
    0.0008563135177565376,  -0.0003828654139905961, 0.0001624084559061418, -6.55678677969644e-05,
    2.5198651465609148e-05, -9.183910794736519e-06, 3.232396382443255e-06, -1.1419495259048662e-06,
    3.659216730162776e-07,  -8.594601526025913e-08, 2.679771004975793e-08, -1.631130691668671e-08,
    4.394426308340083e-09};
CRESSET_TABLE double kI0SmallShort[] = {
    0.2070019212239867,    -0.11300432654348828,    0.09451562842516041,    -0.08904346645630873,
    0.08734342458197082,   -0.08496284076533661,    0.07927504492355045,    -0.06954651412975588,
    0.056778814790985566,  -0.04295725075501792,    0.030168286136064423,   -0.019775351506074058,
    0.01199119818260163,   -0.006605936634764051,   0.0035544414024135983,  -0.0020461388965098723,
    0.0009352321298116495, -0.00020636329707506994, 0.00010271931878805943, -0.00013592006898095621,
    4.9179807024730725e-05};
CRESSET_TABLE double kI0Big[] = {
    0.4021765094450081,      0.0033605519836678913,   0.00013621607438951463,
    1.114303378845176e-05,   1.4838476780922646e-06,  2.9735992084667734e-07,
    8.872014585661555e-08,   3.932512321137824e-08,   2.156780676115673e-08,
    7.559364098665437e-09,   -6.856484545962442e-09,  -1.3427511481900905e-08,
    -5.0175940345046716e-09, 7.600254486433509e-09,   6.522264862032271e-09,
    -3.5862834111582305e-09, -4.5305710768621196e-09, 1.6084886155781772e-09,
    2.163681278413876e-09,   -6.327909921997027e-10,  -6.494591114401118e-10,
    1.7698085539456536e-10,  9.114760157514253e-11,   -2.4421972688131832e-11};
CRESSET_TABLE double kI0BigShort[] = {
    0.4021765094053054,     0.0033605520313900634,  0.000136217407834547,   1.1141542189580863e-05,
    1.4754756356201013e-06, 3.0383309086686276e-07, 1.0910232941075882e-07, 3.3635802235185296e-08};
CRESSET_TABLE double kI1Small[] = {
    0.044687709875608835,    -0.061124338029666284,  0.06805759990951162,
    -0.0684826062058269,     0.06376740371340611,    -0.05528003922699226,
    0.044674572621282986,    -0.03367135552107505,   0.023686016957350876,
    -0.015571309244077562,   0.009583962153764291,   -0.005534567846988655,
    0.0030057624040464932,   -0.001538874564273584,  0.0007445123998749739,
    -0.0003411760229204836,  0.00014842110758080817, -6.142361409267038e-05,
    2.4233987591498262e-05,  -9.136529630106953e-06, 3.29361514435675e-06,
    -1.1327198008251626e-06, 3.7617292810159424e-07, -1.2424046295570417e-07,
    3.7901404602356164e-08,  -8.986801013193351e-09, 2.644330576999187e-09,
    -1.4165980180332847e-09, 3.6696752013169966e-10};
CRESSET_TABLE double kI1SmallShort[] = {
    0.044687709875608835,   -0.06112433799007499,   0.06805759989689755,    -0.0684826091053086,
    0.06376740463728496,    -0.055279976798581335,  0.044674552725048805,   -0.03367197055283874,
    0.023686213041875678,   -0.0155679877622009,    0.009582902619497388,   -0.00554530937067591,
    0.0030091916424835638,  -0.0015172283196528769, 0.0007375935634886747,  -0.0003684467431909782,
    0.00015715397534503563, -4.077280388096948e-05, 1.7599730578225902e-05, -1.745472071400764e-05,
    5.984122024648426e-06};
CRESSET_TABLE double kI1Big[] = {
    0.38939845902587233,     -0.009749577193235765,   -0.00021923576383137776,
    -1.5038547198221758e-05, -1.8349102493990178e-06, -3.4838563464253135e-07,
    -1.0001075046243961e-07, -4.3128498031006734e-08, -2.3394122958362557e-08,
    -8.432168972932417e-09,  6.84757829926934e-09,    1.4051746928735543e-08,
    5.5720183980930355e-09,  -7.687251308765992e-09,  -6.9444186339873875e-09,
    3.501765193290176e-09,   4.763780078020254e-09,   -1.5218214060680734e-09,
    -2.2624401109204446e-09, 5.870664618471487e-10,   6.7727478454462e-10,
    -1.6283264322621244e-10, -9.491890392992048e-11,  2.2421768596847442e-11};
CRESSET_TABLE double kI1BigShort[] = {0.3893984590744713,      -0.009749577241315432,
                                      -0.00021923738535629923, -1.5037047143805947e-05,
                                      -1.8250069387125121e-06, -3.5481954165334105e-07,
                                      -1.2318419674047784e-07, -3.7856024793316294e-08};

// e^-|x| I_kOrder(x) of doubles.
template <int kOrder, bool kShort, class V> CRESSET_FN V bessel_i_scaled(V x) {
  const V a = vm::abs(x), limit(8.0), one(1.0);
  const auto choose = [](V u, const auto& order0, const auto& order1) {
    if constexpr (kOrder == 0) {
      return polynomial(u, order0);
    } else {
      return polynomial(u, order1);
    }
  };
  const V u = vm::fma(a, V(0.25), -one);
  V r = kShort ? choose(u, kI0SmallShort, kI1SmallShort) : choose(u, kI0Small, kI1Small);
  r = kOrder == 0 ? r : r * a;
  const auto outside = a > limit;
  if (vm::reg::any(outside)) {
    const V z = one / a, t = vm::fma(z, V(16.0), -one);
    const V p = kShort ? choose(t, kI0BigShort, kI1BigShort) : choose(t, kI0Big, kI1Big);
    r = vm::select(outside, p * vm::sqrt(z), r);
  }
  // The fit is two units off at 0, where the function is 1.
  return kOrder == 0 ? vm::select(a == V(0.0), one, r) : vm::copysign(r, x);
}
// With the growth put back in two steps, since e^|x| alone may overflow where the result does not.
template <int kOrder, bool kShort, class V> CRESSET_FN V bessel_i_grown(V x) {
  const V a = vm::abs(x), root = vm::exp(a * V(0.5));
  const V r = bessel_i_scaled<kOrder, kShort>(x) * root * root;
  return vm::select(vm::isinf(a), kOrder == 0 ? a : x, r);
}

template <int kOrder, class V> CRESSET_FN V bessel_ie(V x) {
  if constexpr (sizeof(vm::element_t<V>) == sizeof(float)) {
    return vm::reg::in_double(x, [](auto wide) { return bessel_i_scaled<kOrder, true>(wide); });
  } else {
    return bessel_i_scaled<kOrder, false>(x);
  }
}
template <int kOrder, class V> CRESSET_FN V bessel_i(V x) {
  if constexpr (sizeof(vm::element_t<V>) == sizeof(float)) {
    return vm::reg::in_double(x, [](auto wide) { return bessel_i_grown<kOrder, true>(wide); });
  } else {
    return bessel_i_grown<kOrder, false>(x);
  }
}

} // namespace CRESSET_ISA
} // namespace at::native::special
