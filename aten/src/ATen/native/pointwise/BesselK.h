// The modified Bessel functions of the second kind, orders 0 and 1, for scalars and registers. Up
// to 2 the logarithm times the function of the first kind is split off, which leaves a polynomial
// in x^2 (order 1: over x); beyond, e^x sqrt(x) K(x) is a polynomial in 1 / x. Coefficients are
// Chebyshev fits computed in 34 digits on the interval mapped to [-1, 1]; float computes in double
// with the short tables, whose relative error is below 5e-10.
#pragma once

#include <ATen/native/pointwise/BesselI.h>

namespace at::native::special {
inline namespace CRESSET_ISA {

CRESSET_TABLE double kK0Small[] = {
    -0.30362077291575545,   0.3404973210133806,    0.07177701034240512,    0.005053392643196092,
    0.00018280555827901256, 4.054506619948951e-06, 6.093361934166155e-08,  6.623013294285102e-10,
    5.45210758801694e-12,   3.518416609353651e-14, 1.8282990225823977e-16, 7.814781857140668e-19};
CRESSET_TABLE double kK0SmallShort[] = {
    -0.30362077291575545,   0.34049732108582653,   0.07177701034300148,  0.0050533920636324,
    0.00018280555350815847, 4.055665724242694e-06, 6.094316092988099e-08};
CRESSET_TABLE double kK0Big[] = {
    1.2185953385133905,      -0.03107146182488956,    0.0030328918102739684,
    -0.00047976905676177953, 9.95605474833179e-05,    -2.473520469856151e-05,
    7.002244501469854e-06,   -2.1911758298158814e-06, 7.427907784929485e-07,
    -2.689222882101184e-07,  1.0289639495514684e-07,  -4.126177693056258e-08,
    1.7243919486226528e-08,  -7.536587919571339e-09,  3.3817802903756824e-09,
    -1.3876925452165377e-09, 6.35456059769422e-10,    -6.19955377160385e-10,
    3.3601958167193244e-10,  2.3064033964405705e-10,  -1.472844638563886e-10,
    -2.71854364299908e-10,   1.622264366672498e-10,   1.1023898044608679e-10,
    -6.667676805752227e-11,  -2.8693049171860142e-11, 1.70880916029945e-11};
CRESSET_TABLE double kK0BigShort[] = {
    1.2185953385133905,    -0.03107146177341297,    0.003032891786156027,  -0.0004797704864992991,
    9.956121706286958e-05, -2.4723996048100157e-05, 6.997000834715301e-06, -2.2281900711098837e-06,
    7.600726803618969e-07, -2.1131943013856502e-07, 7.609835135804827e-08, -8.117952793851104e-08,
    3.5674420349623523e-08};
CRESSET_TABLE double kK1Small[] = {
    0.8850882877295894,     -0.3322409552403131,    -0.24383852886774365,
    -0.027854235219771848,  -0.0013831688466153064, -3.891869064369595e-05,
    -7.081133770184678e-07, -9.032127548326391e-09, -8.532735114049789e-11,
    -6.213805760202496e-13, -3.596218101407312e-15, -1.6940259166566913e-17};
CRESSET_TABLE double kK1SmallShort[] = {
    0.8850882877295894,    -0.33224095622832095,    -0.24383852887707702,  -0.02785422731577669,
    -0.001383168771948761, -3.8934498226216296e-05, -7.082627077496909e-07};
CRESSET_TABLE double kK1Big[] = {
    1.363151890371342,       0.10334973775386527,     -0.005566729880073119,
    0.0007357241549033262,   -0.0001395902196312159,  3.28438657068089e-05,
    -8.96120614398344e-06,   2.73003931168027e-06,    -9.067203469612786e-07,
    3.2299816462037967e-07,  -1.219688795067239e-07,  4.837802386556985e-08,
    -2.0031192903927542e-08, 8.680511006575475e-09,   -3.86764387075988e-09,
    1.5871116313418612e-09,  -7.237465098138614e-10,  6.857859248283152e-10,
    -3.6979880002823833e-10, -2.46101906455705e-10,   1.5739303945667356e-10,
    2.945269891421564e-10,   -1.7540377251019773e-10, -1.1908900034003334e-10,
    7.192100903584105e-11,   3.109186281922316e-11,   -1.8483036069674827e-11};
CRESSET_TABLE double kK1BigShort[] = {
    1.363151890371342,     0.10334973769516044,    -0.0055667298527422296, 0.0007357257855584929,
    -0.000139590978478581, 3.2831078845414773e-05, -8.955262062458188e-06, 2.7722841599320106e-06,
    -9.26318796272246e-07, 2.5720155511011664e-07, -9.155566377085175e-08, 9.405266934726709e-08,
    -4.09815130589709e-08};

// K_kOrder(x) of doubles, times e^x where scaled.
template <int kOrder, bool kScaled, bool kShort, class V> CRESSET_FN V bessel_k_wide(V x) {
  const V one(1.0), zero(0.0), limit(2.0);
  const auto choose = [](V u, const auto& order0, const auto& order1) {
    if constexpr (kOrder == 0) {
      return polynomial(u, order0);
    } else {
      return polynomial(u, order1);
    }
  };
  const V e = vm::exp(kScaled ? x : -x);
  const V z = one / x, t = vm::fma(z, V(4.0), -one);
  const V far = kShort ? choose(t, kK0BigShort, kK1BigShort) : choose(t, kK0Big, kK1Big);
  V r = far * vm::sqrt(z) * (kScaled ? one : e);
  const auto near = x <= limit;
  if (vm::reg::any(near)) {
    const V u = vm::fma(x * x, V(0.5), -one), l = vm::log(x * V(0.5));
    const V p = kShort ? choose(u, kK0SmallShort, kK1SmallShort) : choose(u, kK0Small, kK1Small);
    const V first = bessel_i_scaled<kOrder, kShort>(x) * (kScaled ? e : one / e);
    const V value = kOrder == 0 ? p - l * first : p * z + l * first;
    r = vm::select(near, kScaled ? value * e : value, r);
  }
  r = vm::select(x == zero, V(kInf), vm::select(x < zero, V(kNan), r));
  return vm::select(x == V(kInf), zero, r);
}

template <int kOrder, bool kScaled, class V> CRESSET_FN V bessel_k(V x) {
  if constexpr (sizeof(vm::element_t<V>) == sizeof(float)) {
    return vm::reg::in_double(x,
                              [](auto wide) { return bessel_k_wide<kOrder, kScaled, true>(wide); });
  } else {
    return bessel_k_wide<kOrder, kScaled, false>(x);
  }
}

} // namespace CRESSET_ISA
} // namespace at::native::special
