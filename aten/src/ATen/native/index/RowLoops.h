// The element loops that RowWalk runs: moving elements (by size) and combining them (by type).
#pragma once
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/index/RowWalk.h>

#include <cstring>
#include <type_traits>

namespace at::native {

// The type in which elements of T are combined.
template <class T> struct Computed { using type = T; };
template <> struct Computed<c10::Half> { using type = float; };
template <> struct Computed<c10::BFloat16> { using type = float; };
template <> struct Computed<c10::complex<c10::Half>> { using type = c10::complex<float>; };

template <class T> inline typename Computed<T>::type load_computed(const T& v) {
  return static_cast<typename Computed<T>::type>(v);
}

template <class T> inline bool is_nan_value(const T& v) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return v != v;
}

// ---- combinations; NaN wins in Max and Min. Unsigned arithmetic keeps integer overflow defined.
struct AddOp {
  template <class C> static C apply(C a, C b) {
    if constexpr (std::is_same_v<C, bool>)
      return a || b;
    else if constexpr (std::is_integral_v<C>)
      return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
      return a + b;
  }
};
struct MulOp {
  template <class C> static C apply(C a, C b) {
    if constexpr (std::is_same_v<C, bool>)
      return a && b;
    else if constexpr (std::is_integral_v<C>)
      return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
};
struct MaxOp {
  template <class C> static C apply(C a, C b) { return is_nan_value(a) || a > b ? a : b; }
};
struct MinOp {
  template <class C> static C apply(C a, C b) { return is_nan_value(a) || a < b ? a : b; }
};

// ---- moving
template <class U, bool kStore>
void move_row(char* indexed, char* linear, int64_t n, int64_t si, int64_t sl, const void*) {
  char* to = kStore ? indexed : linear;
  const char* from = kStore ? linear : indexed;
  const int64_t st = kStore ? si : sl, sf = kStore ? sl : si;
  constexpr int64_t size = sizeof(U);
  if (st == size && sf == size) {
    std::memcpy(to, from, static_cast<size_t>(n) * size);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<U*>(to + i * st) = *reinterpret_cast<const U*>(from + i * sf);
}

template <class U, bool kStore> void move_points(char* indexed, const int64_t* offsets,
                                                 char* linear, const int64_t* linear_offsets,
                                                 int64_t stride, int64_t n, const void*) {
  const auto move = [&](int64_t i, char* l) {
    U* a = reinterpret_cast<U*>(indexed + offsets[i]);
    U* b = reinterpret_cast<U*>(l);
    if constexpr (kStore)
      *a = *b;
    else
      *b = *a;
  };
  if (linear_offsets != nullptr) {
    for (int64_t i = 0; i < n; ++i) move(i, linear + linear_offsets[i]);
  } else if (stride == static_cast<int64_t>(sizeof(U))) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; ++i) move(i, linear + i * static_cast<int64_t>(sizeof(U)));
  } else {
    for (int64_t i = 0; i < n; ++i) move(i, linear + i * stride);
  }
}

// kStore: from the linear to the indexed side.
template <bool kStore> RowLoops move_loops(int64_t itemsize) {
  RowLoops loops{};
  itemsize_switch(itemsize, [&](auto tag) {
    using U = typename decltype(tag)::type;
    loops = RowLoops{move_row<U, kStore>, move_points<U, kStore>};
  });
  return loops;
}

// ---- combining: indexed = Op(indexed, linear). kScaled: the context points to a factor (of the
// computed type) for the linear side.
template <class T, class Op, bool kScaled>
inline void combine(T& to, const T& from, const void* context) {
  using C = typename Computed<T>::type;
  C value = load_computed(from);
  if constexpr (kScaled) value = MulOp::apply(*static_cast<const C*>(context), value);
  to = static_cast<T>(Op::template apply<C>(load_computed(to), value));
}

template <class T, class Op, bool kScaled>
void combine_row(char* indexed, char* linear, int64_t n, int64_t si, int64_t sl, const void* c) {
  if (si == sizeof(T) && sl == sizeof(T)) {
    T* to = reinterpret_cast<T*>(indexed);
    const T* from = reinterpret_cast<const T*>(linear);
    for (int64_t i = 0; i < n; ++i) combine<T, Op, kScaled>(to[i], from[i], c);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    combine<T, Op, kScaled>(*reinterpret_cast<T*>(indexed + i * si),
                            *reinterpret_cast<const T*>(linear + i * sl), c);
}

template <class T, class Op, bool kScaled>
void combine_points(char* indexed, const int64_t* offsets, char* linear,
                    const int64_t* linear_offsets, int64_t stride, int64_t n, const void* c) {
  for (int64_t i = 0; i < n; ++i) {
    const char* from = linear + (linear_offsets != nullptr ? linear_offsets[i] : i * stride);
    combine<T, Op, kScaled>(*reinterpret_cast<T*>(indexed + offsets[i]),
                            *reinterpret_cast<const T*>(from), c);
  }
}

template <class T, class Op, bool kScaled = false> constexpr RowLoops combine_loops() {
  return RowLoops{combine_row<T, Op, kScaled>, combine_points<T, Op, kScaled>};
}

// Addition for every dtype (index_put with accumulate, put, embedding).
RowLoops add_loops(ScalarType dtype, const char* name);

} // namespace at::native
