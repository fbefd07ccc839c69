// Rows of complex numbers, as registers of real and of imaginary parts. Other layouts are Fold's.
// Included by kernel files only.
#pragma once

#include <ATen/native/reduce/Fold.h>

namespace at::native::reduce {
namespace CRESSET_ISA {

template <class Op, class T> struct FoldComplex {
  using Base = Fold<Op, T>;

  static T row(const char* in, int64_t n, T param) {
    using R = vec::Vec<c10::real_type_t<T>>;
    using V = c10::complex<R>;
    using IO = vec::VecIO<T>;
    constexpr int64_t lanes = R::kLanes, step = lanes * static_cast<int64_t>(sizeof(T));
    const T one = Op::template identity<T>();
    const V identity(R(one.real_), R(one.imag_)), p(R(param.real_), R(param.imag_));
    V acc[4] = {identity, identity, identity, identity};
    int64_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes, in += 4 * step) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) acc[k] = Op::fold(acc[k], Op::map(IO::load(in + k * step), p));
    }
    for (; i + lanes <= n; i += lanes, in += step)
      acc[0] = Op::fold(acc[0], Op::map(IO::load(in), p));
    const V all = Op::fold(Op::fold(acc[0], acc[1]), Op::fold(acc[2], acc[3]));
    T lane[lanes];
    IO::store(reinterpret_cast<char*>(lane), all);
    for (int64_t h = lanes / 2; h > 0; h /= 2) {
      for (int64_t k = 0; k < h; ++k) lane[k] = Op::fold(lane[k], lane[k + h]);
    }
    for (; i < n; ++i, in += sizeof(T)) lane[0] = Op::fold(lane[0], Base::element(in, param));
    return lane[0];
  }

  static void leaf(char* out, const LeafArgs& a) {
    if (a.stride != static_cast<int64_t>(sizeof(T))) return Base::leaf(out, a);
    T* acc = reinterpret_cast<T*>(out);
    for (int64_t i = 0; i < a.outputs; ++i)
      acc[i] = row(a.in + i * a.output_stride, a.count, static_cast<T>(a.param));
  }
};

// After fill_fold: puts these loops in the place of Fold's.
template <class Op, class... Ts>
void fill_fold_complex(ReduceTable& table, ReduceOp op, Types<Ts...>) {
  ((table.kernel[static_cast<int>(op)][static_cast<int>(c10::scalar_type_of<Ts>)].leaf =
        &FoldComplex<Op, Ts>::leaf),
   ...);
}

} // namespace CRESSET_ISA
} // namespace at::native::reduce
