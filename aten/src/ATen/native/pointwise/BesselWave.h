// The Bessel functions of the first and second kind, orders 0 and 1, for scalars and registers. Up
// to 8 they are polynomials in x^2 (order 1: times x), the second kind after the logarithm times
// the first and the pole are split off; beyond, they are a wave whose two amplitudes, P and Q of
// the asymptotic expansion, are polynomials in (8 / x)^2. Coefficients are Chebyshev fits computed
// in 40 digits on the interval mapped to [-1, 1]; float computes in double with the short tables.
// Errors are absolute, relative to the height of the wave: 4e-16, and 3e-11 of the short tables.
#pragma once

#include <ATen/native/pointwise/BesselI.h>

namespace at::native::special {
inline namespace CRESSET_ISA {

CRESSET_TABLE double kJ0Near[] = {
    0.04582966485981377,    0.9303012472958572,     -0.6484692830871837,    -0.8080888076696872,
    1.0383794611437211,     -0.5074680458471,       0.14598884856759264,    -0.028472718610882047,
    0.004058078989140991,   -0.0004435459224311503, 3.8473197855944365e-05, -2.717749223632098e-06,
    1.5956109104549218e-07, -7.91532308295207e-09,  3.3634475788173604e-10, -1.243301171273326e-11,
    4.0037632815796753e-13};
CRESSET_TABLE double kJ0NearShort[] = {
    0.04582966485985501,   0.9303012473211156,     -0.6484692830912249,    -0.8080888083768181,
    1.0383794612083732,    -0.5074680401912429,    0.14598884817974522,    -0.028472737996272656,
    0.004058080096994947,  -0.0004435136304450602, 3.8471573691622546e-05, -2.743555615291057e-06,
    1.6074130052053944e-07};
CRESSET_TABLE double kJ1Near[] = {
    -0.05814382795599107,  0.08105866038589796,    0.15151665143806636,    -0.2595948652859303,
    0.15858376432721838,   -0.05474581821284722,   0.012456814392263375,   -0.0020290394945705996,
    0.0002494945813597261, -2.404574865968694e-05, 1.8684526037206013e-06, -1.196708186787801e-07,
    6.431190177265836e-09, -2.943013798001659e-10, 1.1658972367678622e-11, -4.0045728425886457e-13};
CRESSET_TABLE double kJ1NearShort[] = {
    -0.0581438279591498,     0.08105866038683641,    0.15151665166545802,
    -0.25959486531220377,    0.15858376167492014,    -0.05474581800269753,
    0.01245682570486779,     -0.002029040214886714,  0.0002494727766272698,
    -2.4044548680329956e-05, 1.8878124846577398e-06, -1.2062992616405862e-07};
CRESSET_TABLE double kY0Near[] = {
    -0.382250654459425,      -0.8284358903604587,    1.6470964788745466,     0.14412632369302475,
    -1.0775477338215995,     0.6721770783431679,     -0.21895747096171628,   0.046367047681375125,
    -0.00702574105727097,    0.000806158605961636,   -7.279541882454115e-05, 5.3213188103997145e-06,
    -3.2185078445935923e-07, 1.6390875014077404e-08, -7.13046146536789e-10,  2.6926938054524057e-11,
    -8.840112096073101e-13};
CRESSET_TABLE double kY0NearShort[] = {
    -0.38225065445951245,   -0.8284358904127764,   1.6470964788831157,    0.1441263251576888,
    -1.0775477339586854,    0.6721770666284324,    -0.21895747013934655,  0.04636708783292951,
    -0.007025743406277194,  0.0008060917235185063, -7.27919751348068e-05, 5.374765862226448e-06,
    -3.2435307605631007e-07};
CRESSET_TABLE double kY1Near[] = {
    0.07075985882118005,     -0.24337743079193114,  0.02336757172099348,    0.23507209206669755,
    -0.19639839859930203,    0.07854786922242532,   -0.01962875683311711,   0.0034224907399188495,
    -0.0004438173434420147,  4.467433012646365e-05, -3.601000022590458e-06, 2.3804930420514178e-07,
    -1.3153147367094951e-08, 6.169688029066965e-10, -2.499531546171249e-11, 8.760001143977853e-13};
CRESSET_TABLE double kY1NearShort[] = {
    0.07075985882764216,    -0.24337743079389892,  0.023367571255801564,   0.2350720921217878,
    -0.19639839317335875,   0.07854786878178699,   -0.019628779975515754,  0.0034224922502476512,
    -0.0004437727383283657, 4.467181410945059e-05, -3.640601625548431e-06, 2.4006020156533926e-07};
CRESSET_TABLE double kPhase0P[] = {
    0.9994572757882519,    -0.0005363673192129672,  6.137416080109497e-06,  -2.0527448261170675e-07,
    1.280376144080092e-08, -1.2121098178951377e-09, 1.5500565496632596e-10, -2.491146535471666e-11,
    4.786995821368028e-12, -1.0157485021065676e-12, 2.4531772967345006e-13, -1.0251790052831013e-13,
    3.339452259070809e-14};
CRESSET_TABLE double kPhase0PShort[] = {0.9994572757933776,     -0.0005363673221816524,
                                        6.137324403330828e-06,  -2.052509632287965e-07,
                                        1.3045171708121106e-08, -1.2582546203579312e-09};
CRESSET_TABLE double kPhase0Q[] = {
    -0.01555511387951352,   6.833149099344083e-05, -1.477138832589449e-06,  7.106214852192226e-08,
    -5.668717017471248e-09, 6.432789503382007e-10, -9.469830663448226e-11,  1.7029372022291316e-11,
    -3.605043103124562e-12, 8.689732394690306e-13, -2.0979723806283122e-13, 5.756325587995953e-14,
    -3.417306155904644e-14, 1.2731367623367943e-14};
CRESSET_TABLE double kPhase0QShort[] = {-0.015555113882687497,   6.833149306046783e-05,
                                        -1.4770821494626364e-06, 7.104580461094222e-08,
                                        -5.817532749493056e-09,  6.752195047469982e-10};
CRESSET_TABLE double kPhase1P[] = {
    1.0009070262780821,      0.0008988049416705579,   -7.9596946984383e-06,
    2.4536766222672443e-07,  -1.4708512991275258e-08, 1.3603058049468316e-09,
    -1.713107485294131e-10,  2.720406848040165e-11,   -5.191158004646548e-12,
    1.1462229852806783e-12,  -2.6335760672461096e-13, 6.864486664846182e-14,
    -3.5455617466606254e-14, 1.2489929194563941e-14};
CRESSET_TABLE double kPhase1PShort[] = {1.0009070262724233,      0.0008988049449120545,
                                        -7.959593474984967e-06,  2.453419786938555e-07,
                                        -1.4975125992850454e-08, 1.4107037855331743e-09};
CRESSET_TABLE double kPhase1Q[] = {
    0.04677687402744898,    -9.621458822054632e-05, 1.8212018511674905e-06, -8.291960701313517e-08,
    6.420133519314915e-09,  -7.151113611051071e-10, 1.0394482901993273e-10, -1.8520736145988993e-11,
    3.8929927766683146e-12, -9.33138059712287e-13,  2.2462055932168237e-13, -6.144675787095688e-14,
    3.620117603894229e-14,  -1.3449019339973269e-14};
CRESSET_TABLE double kPhase1QShort[] = {0.04677687403092886,    -9.621459046560295e-05,
                                        1.8211396969289703e-06, -8.29018527986983e-08,
                                        6.583354662120443e-09,  -7.498181901083112e-10};

// One of two polynomials, by the order.
template <int kOrder, class V, int kCount0, int kCount1>
CRESSET_FN V of_order(V u, const double (&zero)[kCount0], const double (&one)[kCount1]) {
  if constexpr (kOrder == 0) {
    return polynomial(u, zero);
  } else {
    return polynomial(u, one);
  }
}

// The function of the first kind for |x| <= 8.
template <int kOrder, bool kShort, class V> CRESSET_FN V bessel_j_near(V x, V u) {
  const V p = kShort ? of_order<kOrder>(u, kJ0NearShort, kJ1NearShort)
                     : of_order<kOrder>(u, kJ0Near, kJ1Near);
  return kOrder == 0 ? p : p * x;
}
// The function of the second kind for 0 < x <= 8.
template <int kOrder, bool kShort, class V> CRESSET_FN V bessel_y_near(V x, V u) {
  const V turn(0.6366197723675814); // 2 / pi
  const V p = kShort ? of_order<kOrder>(u, kY0NearShort, kY1NearShort)
                     : of_order<kOrder>(u, kY0Near, kY1Near);
  const V first = vm::log(x) * bessel_j_near<kOrder, kShort>(x, u);
  return kOrder == 0 ? vm::fma(turn, first, p) : vm::fma(turn, first - V(1.0) / x, p * x);
}

// The function of the first (kKind 1) or second kind for x >= 8. With the wave's angle x - pi / 4,
// or x - 3 pi / 4, its sine and cosine are sums of those of x, whatever the size of x.
template <int kKind, int kOrder, bool kShort, class V> CRESSET_FN V bessel_far(V x) {
  const V z = V(8.0) / x, t = vm::fma(z * z, V(2.0), V(-1.0));
  const V p = kShort ? of_order<kOrder>(t, kPhase0PShort, kPhase1PShort)
                     : of_order<kOrder>(t, kPhase0P, kPhase1P);
  const V q = z * (kShort ? of_order<kOrder>(t, kPhase0QShort, kPhase1QShort)
                          : of_order<kOrder>(t, kPhase0Q, kPhase1Q));
  const V sine = vm::sin(x), cosine = vm::cos(x);
  const V sum = sine + cosine, difference = sine - cosine;
  const V c = kOrder == 0 ? sum : difference, s = kOrder == 0 ? difference : -sum;
  const V height = vm::sqrt(z * V(0.039788735772973836)); // 1 / (8 pi)
  return height * (kKind == 1 ? p * c - q * s : p * s + q * c);
}

template <int kKind, int kOrder, bool kShort, class V> CRESSET_FN V bessel_wave_wide(V x) {
  const V limit(8.0), zero(0.0), a = vm::abs(x);
  const auto far = a > limit;
  const V inside = vm::select(far, limit, a), u = vm::fma(inside * inside, V(0.03125), V(-1.0));
  V r;
  if constexpr (kKind == 1) {
    r = bessel_j_near<kOrder, kShort>(inside, u);
  } else {
    r = bessel_y_near<kOrder, kShort>(inside, u);
  }
  if (vm::reg::any(far)) {
    const V wave = bessel_far<kKind, kOrder, kShort>(vm::select(far, a, limit));
    r = vm::select(far, vm::select(a == V(kInf), zero, wave), r);
  }
  if constexpr (kKind == 2) {
    return vm::select(x == zero, V(-kInf), vm::select(x < zero, V(kNan), r));
  } else {
    return kOrder == 0 ? vm::select(x == zero, V(1.0), r) : vm::select(x < zero, -r, r);
  }
}

// J_kOrder (kKind 1), Y_kOrder (kKind 2). The second kind is not defined below 0.
template <int kKind, int kOrder, class V> CRESSET_FN V bessel_wave(V x) {
  if constexpr (sizeof(vm::element_t<V>) == sizeof(float)) {
    return vm::reg::in_double(
        x, [](auto wide) { return bessel_wave_wide<kKind, kOrder, true>(wide); });
  } else {
    return bessel_wave_wide<kKind, kOrder, false>(x);
  }
}

} // namespace CRESSET_ISA
} // namespace at::native::special
