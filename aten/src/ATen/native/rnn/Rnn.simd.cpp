// The loops of RnnKernel.h. `map` calls a generic lambda with a register's worth of units at a time
// and with single units at the end; everything of a unit is computed while it is in registers.
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

template <class T> void put(Table& table) {
  using R = Row<T>;
  table.loops[static_cast<int>(c10::scalar_type_of<T>)] = {
      &R::lstm,  &R::lstm_backward,  &R::gru, &R::gru_backward,
      &R::plain, &R::plain_backward, &R::add, &R::multiply};
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
