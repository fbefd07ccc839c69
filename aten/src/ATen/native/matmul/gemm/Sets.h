// Builders of the per-type kernel tables, shared by the *.simd.cpp files.
#pragma once

#include <ATen/native/matmul/gemm/Pack.h>
#include <ATen/native/matmul/gemm/SkinnyKernel.h>
#include <ATen/native/matmul/gemm/TileKernel.h>

namespace at::native::gemm::CRESSET_ISA {

template <class T, class CT, int MR, int NV> constexpr KernelSet make_real_set() {
  using Kind = RealKind<FmaStep<CT>, T, MR, NV>;
  constexpr bool same = sizeof(T) == sizeof(CT);
  KernelSet set{};
  set.elem_size = sizeof(T);
  set.acc_size = sizeof(CT);
  set.mr = MR;
  set.nr = NV * lanes<CT>;
  set.vl = lanes<CT>;
  set.a_step = sizeof(CT);
  set.b_vec_step = kVecBytes;
  set.k_per_step = 1;
  set.steps_per_k = 1;
  set.a_in_place = same;
  set.b_in_place = same;
  set.c_in_place = same;
  set.pack_a = &pack_a_real<T, CT>;
  set.pack_b = &pack_b_real<T, CT>;
  set.tile = &compute_tile<Kind>;
  set.finish = &finish_tile<Kind>;
  set.add = &add_reals<CT>;
  if constexpr (CT(0.5) != CT(0)) {
    set.dot = &dot_tile<T, CT>;
    set.rows = &rows_tile<T, CT>;
  }
  return set;
}

template <class CT> constexpr KernelSet make_complex_set() {
  using Kind = ComplexKind<CT>;
  KernelSet set{};
  set.elem_size = 2 * sizeof(CT);
  set.acc_size = 2 * sizeof(CT);
  set.mr = Kind::MR;
  set.nr = Kind::NV / 2 * lanes<CT>;
  set.vl = lanes<CT>;
  set.a_step = sizeof(CT);
  set.b_vec_step = 2 * kVecBytes;
  set.k_per_step = 1;
  set.steps_per_k = 2;
  set.a_in_place = true;
  set.pack_a = &pack_a_complex<CT>;
  set.pack_b = &pack_b_complex<CT>;
  set.tile = &compute_tile<Kind>;
  set.finish = &finish_tile<Kind>;
  set.add = &add_reals<CT>;
  return set;
}

} // namespace at::native::gemm::CRESSET_ISA
