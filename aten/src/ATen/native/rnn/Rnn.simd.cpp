// The loops of RnnKernel.h. `map` calls a generic lambda with a register's worth of units at a time
// and with single units at the end; everything of a unit is computed while it is in registers.
#include <type_traits>

#include <ATen/native/rnn/RnnKernel.h>
#include <ATen/vec/ValueMath.h>
#include <ATen/vec/VecIO.h>

namespace at::native::rnn {
namespace CRESSET_ISA {
namespace {
using vec::opmath_t;
using vec::Vec;

template <class T> struct Row {
  using A = opmath_t<T>;
  static const T* in(const void* p) { return static_cast<const T*>(p); }
  static T* out(void* p) { return static_cast<T*>(p); }

  template <class V> C10_ALWAYS_INLINE static V load(const T* p, int64_t i) {
    if constexpr (vec::is_vec_v<V>)
      return vec::VecIO<T>::load(reinterpret_cast<const char*>(p + i));
    else
      return static_cast<V>(p[i]);
  }
  template <class V> C10_ALWAYS_INLINE static void store(T* p, int64_t i, V v) {
    if constexpr (vec::is_vec_v<V>)
      vec::VecIO<T>::store(reinterpret_cast<char*>(p + i), v);
    else
      p[i] = static_cast<T>(v);
  }
  // f(V(), i) for registers from i on, then for single elements.
  template <class F> C10_ALWAYS_INLINE static void map(int64_t n, const F& f) {
    using V = Vec<A>;
    int64_t i = 0;
    for (; i + V::kLanes <= n; i += V::kLanes) f(V(A(0)), i);
    for (; i < n; ++i) f(A(0), i);
  }
  template <class V> C10_ALWAYS_INLINE static V sigmoid(V x) {
    const V one = V(A(1));
    return one / (one + vm::exp(-x));
  }

  static void lstm(void* gates_, void* c_, void* h_, void* c_before_, void* tanh_c_, int64_t n) {
    T* gates = out(gates_);
    T* c = out(c_);
    T* h = out(h_);
    T* c_before = out(c_before_);
    T* tanh_c = out(tanh_c_);
    map(n, [&](auto v, int64_t k) {
      using V = decltype(v);
      const V i = sigmoid(load<V>(gates, k)), f = sigmoid(load<V>(gates, n + k)),
              g = vm::tanh(load<V>(gates, 2 * n + k)), o = sigmoid(load<V>(gates, 3 * n + k));
      const V before = load<V>(c, k), now = f * before + i * g, t = vm::tanh(now);
      store(c, k, now);
      store(h, k, o * t);
      if (c_before != nullptr) {
        store(c_before, k, before);
        store(tanh_c, k, t);
        store(gates, k, i);
        store(gates, n + k, f);
        store(gates, 2 * n + k, g);
        store(gates, 3 * n + k, o);
      }
    });
  }

  static void lstm_backward(const void* gates_, const void* c_before_, const void* tanh_c_,
                            const void* dh_, void* dc_, void* dgates_, int64_t n) {
    const T* gates = in(gates_);
    const T* c_before = in(c_before_);
    const T* tanh_c = in(tanh_c_);
    const T* dh = in(dh_);
    T* dc = out(dc_);
    T* dgates = out(dgates_);
    map(n, [&](auto v, int64_t k) {
      using V = decltype(v);
      const V one = V(A(1));
      const V i = load<V>(gates, k), f = load<V>(gates, n + k), g = load<V>(gates, 2 * n + k),
              o = load<V>(gates, 3 * n + k), t = load<V>(tanh_c, k), d = load<V>(dh, k);
      const V dcell = load<V>(dc, k) + d * o * (one - t * t);
      store(dgates, k, dcell * g * i * (one - i));
      store(dgates, n + k, dcell * load<V>(c_before, k) * f * (one - f));
      store(dgates, 2 * n + k, dcell * i * (one - g * g));
      store(dgates, 3 * n + k, d * t * o * (one - o));
      store(dc, k, dcell * f);
    });
  }

  static void gru(const void* of_input_, const void* of_hidden_, void* h_, void* saved_,
                  int64_t n) {
    const T* of_input = in(of_input_);
    const T* of_hidden = in(of_hidden_);
    T* h = out(h_);
    T* saved = out(saved_);
    map(n, [&](auto v, int64_t k) {
      using V = decltype(v);
      const V r = sigmoid(load<V>(of_input, k) + load<V>(of_hidden, k)),
              z = sigmoid(load<V>(of_input, n + k) + load<V>(of_hidden, n + k)),
              hidden = load<V>(of_hidden, 2 * n + k),
              fresh = vm::tanh(load<V>(of_input, 2 * n + k) + r * hidden);
      store(h, k, fresh + z * (load<V>(h, k) - fresh));
      if (saved != nullptr) {
        store(saved, k, r);
        store(saved, n + k, z);
        store(saved, 2 * n + k, fresh);
        store(saved, 3 * n + k, hidden);
      }
    });
  }

  static void gru_backward(const void* saved_, const void* h_before_, void* dh_, void* d_input_,
                           void* d_hidden_, int64_t n) {
    const T* saved = in(saved_);
    const T* h_before = in(h_before_);
    T* dh = out(dh_);
    T* d_input = out(d_input_);
    T* d_hidden = out(d_hidden_);
    map(n, [&](auto v, int64_t k) {
      using V = decltype(v);
      const V one = V(A(1));
      const V r = load<V>(saved, k), z = load<V>(saved, n + k), fresh = load<V>(saved, 2 * n + k),
              hidden = load<V>(saved, 3 * n + k), d = load<V>(dh, k);
      const V dfresh = d * (one - z) * (one - fresh * fresh);
      const V dz = d * (load<V>(h_before, k) - fresh) * z * (one - z);
      const V dr = dfresh * hidden * r * (one - r);
      store(d_input, k, dr);
      store(d_input, n + k, dz);
      store(d_input, 2 * n + k, dfresh);
      store(d_hidden, k, dr);
      store(d_hidden, n + k, dz);
      store(d_hidden, 2 * n + k, dfresh * r);
      store(dh, k, d * z);
    });
  }

  static void plain(void* h_, int64_t n, bool relu) {
    T* h = out(h_);
    if (relu) {
      map(n, [&](auto v, int64_t k) {
        using V = decltype(v);
        const V x = load<V>(h, k), zero = V(A(0));
        store(h, k, vm::select(x < zero, zero, x));
      });
    } else {
      map(n, [&](auto v, int64_t k) { store(h, k, vm::tanh(load<decltype(v)>(h, k))); });
    }
  }
  static void plain_backward(const void* h_, const void* dh_, void* dgates_, int64_t n, bool relu) {
    const T* h = in(h_);
    const T* dh = in(dh_);
    T* dgates = out(dgates_);
    map(n, [&](auto v, int64_t k) {
      using V = decltype(v);
      const V y = load<V>(h, k), d = load<V>(dh, k), zero = V(A(0));
      store(dgates, k, relu ? vm::select(y > zero, d, zero) : d * (V(A(1)) - y * y));
    });
  }

  static void add(const void* a, const void* b, void* to, int64_t n) {
    map(n, [&](auto v, int64_t k) {
      using V = decltype(v);
      store(out(to), k, load<V>(in(a), k) + load<V>(in(b), k));
    });
  }
  static void multiply(const void* a, const void* b, void* to, int64_t n) {
    map(n, [&](auto v, int64_t k) {
      using V = decltype(v);
      store(out(to), k, load<V>(in(a), k) * load<V>(in(b), k));
    });
  }
};

// Products of few rows with weights that are used again and again. A panel of two registers'
// columns stays in the first-level cache while blocks of rows pass; sums run over k in order, one
// register for each row and half of the panel.
template <class T> struct Panels {
  using V = Vec<T>;
  static constexpr int kWidth = 2 * V::kLanes;
  static constexpr int kRows = vec::kVecBytes == 64 ? 8 : 4; // as many as registers allow

  static void arrange(const void* w_, int64_t n_stride, int64_t k_stride, int64_t n, int64_t k,
                      void* panels_) {
    const T* w = static_cast<const T*>(w_);
    T* out = static_cast<T*>(panels_);
    for (int64_t first = 0; first < n; first += kWidth) {
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t c = 0; c < kWidth; ++c) {
          const int64_t column = first + c;
          *out++ = column < n ? w[column * n_stride + i * k_stride] : T(0);
        }
      }
    }
  }

  template <int kCount> static void block(const T* a, int64_t lda, const T* panel, int64_t k, T* c,
                                          int64_t ldc, int64_t width, bool add) {
    V low[kCount], high[kCount];
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) low[r] = high[r] = V(T(0));
    for (int64_t i = 0; i < k; ++i) {
      const V left = V::load(panel + i * kWidth), right = V::load(panel + i * kWidth + V::kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kCount; ++r) {
        const V value = V(a[r * lda + i]);
        low[r] = vm::fma(value, left, low[r]);
        high[r] = vm::fma(value, right, high[r]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) {
      T* to = c + r * ldc;
      if (width == kWidth) {
        (add ? V::load(to) + low[r] : low[r]).store(to);
        (add ? V::load(to + V::kLanes) + high[r] : high[r]).store(to + V::kLanes);
        continue;
      }
      T whole[kWidth];
      low[r].store(whole);
      high[r].store(whole + V::kLanes);
      for (int64_t i = 0; i < width; ++i) to[i] = add ? to[i] + whole[i] : whole[i];
    }
  }

  static void product(const void* a_, int64_t lda, int64_t rows, const void* panels_, int64_t n,
                      int64_t k, int64_t begin, int64_t end, void* c_, int64_t ldc, bool add) {
    const T* a = static_cast<const T*>(a_);
    T* c = static_cast<T*>(c_);
    for (int64_t p = begin; p < end; ++p) {
      const T* panel = static_cast<const T*>(panels_) + p * kWidth * k;
      const int64_t column = p * kWidth, width = n - column < kWidth ? n - column : kWidth;
      int64_t r = 0;
      for (; r + kRows <= rows; r += kRows)
        block<kRows>(a + r * lda, lda, panel, k, c + r * ldc + column, ldc, width, add);
      for (; r + 2 <= rows; r += 2)
        block<2>(a + r * lda, lda, panel, k, c + r * ldc + column, ldc, width, add);
      if (r < rows) block<1>(a + r * lda, lda, panel, k, c + r * ldc + column, ldc, width, add);
    }
  }
};

template <class T> void put(Table& table) {
  using R = Row<T>;
  Loops& loops = table.loops[static_cast<int>(c10::scalar_type_of<T>)];
  loops.lstm = &R::lstm;
  loops.lstm_backward = &R::lstm_backward;
  loops.gru = &R::gru;
  loops.gru_backward = &R::gru_backward;
  loops.plain = &R::plain;
  loops.plain_backward = &R::plain_backward;
  loops.add = &R::add;
  loops.multiply = &R::multiply;
  if constexpr (std::is_same_v<T, opmath_t<T>>) {
    loops.panel = Panels<T>::kWidth;
    loops.arrange = &Panels<T>::arrange;
    loops.product = &Panels<T>::product;
  }
}
} // namespace

void fill(Table& table) {
  put<float>(table);
  put<double>(table);
  put<c10::Half>(table);
  put<c10::BFloat16>(table);
}
} // namespace CRESSET_ISA
} // namespace at::native::rnn
