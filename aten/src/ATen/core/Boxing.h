// Adapters between typed kernels and boxed ones, instantiated once per C++ signature. See
// Note [Constant operator table] in Dispatcher.h.
#pragma once
#include <array>
#include <tuple>
#include <utility>

#include <ATen/core/Dispatcher.h>
#include <ATen/core/IValue.h>

namespace at {
namespace boxing {

// Arg<T>: an argument of type T read from an IValue, kept alive for the call.
template <class T> struct Arg;
#define CRESSET_BOXING_ARG(Type, Stored, expression)                                               \
  template <> struct Arg<Type> {                                                                   \
    explicit Arg(const IValue& v) : value(expression) {}                                           \
    Type get() { return value; }                                                                   \
    Stored value;                                                                                  \
  };
CRESSET_BOXING_ARG(const Tensor&, Tensor, v.toTensor())
CRESSET_BOXING_ARG(Tensor&, Tensor, v.toTensor())
CRESSET_BOXING_ARG(int64_t, int64_t, v.toSymInt().guard_int())
CRESSET_BOXING_ARG(SymInt, SymInt, v.toSymInt())
CRESSET_BOXING_ARG(double, double, v.toDouble())
CRESSET_BOXING_ARG(bool, bool, v.toBool())
CRESSET_BOXING_ARG(std::string_view, std::string, v.toStringRef())
CRESSET_BOXING_ARG(const Scalar&, Scalar, v.toScalar())
CRESSET_BOXING_ARG(Device, Device, v.toDevice())
CRESSET_BOXING_ARG(ScalarType, ScalarType, v.toScalarType())
CRESSET_BOXING_ARG(Layout, Layout, v.toLayout())
CRESSET_BOXING_ARG(MemoryFormat, MemoryFormat, v.toMemoryFormat())
CRESSET_BOXING_ARG(c10::Generator, c10::Generator, v.toGenerator())
CRESSET_BOXING_ARG(Storage, Storage, v.toStorage())
CRESSET_BOXING_ARG(ArrayRef<double>, std::vector<double>, v.toDoubleList())
CRESSET_BOXING_ARG(TensorList, std::vector<Tensor>, v.toTensorList())
CRESSET_BOXING_ARG(OptionalTensorList, std::vector<std::optional<Tensor>>, v.toOptionalTensorList())
CRESSET_BOXING_ARG(ArrayRef<Scalar>, std::vector<Scalar>, v.toScalarList())
#undef CRESSET_BOXING_ARG
inline bool is_number(const IValue& v) { return v.isInt() || v.isSymbol(); }
template <> struct Arg<IntArrayRef> {
  explicit Arg(const IValue& v)
      : value(is_number(v) ? std::vector<int64_t>{v.toSymInt().raw()} : v.toIntList()) {}
  IntArrayRef get() {
    return c10::as_int_array(
        SymIntArrayRef(reinterpret_cast<const SymInt*>(value.data()), value.size()));
  }
  std::vector<int64_t> value;
};
template <> struct Arg<SymIntArrayRef> {
  explicit Arg(const IValue& v)
      : value(is_number(v) ? std::vector<int64_t>{v.toSymInt().raw()} : v.toIntList()) {}
  SymIntArrayRef get() { return {reinterpret_cast<const SymInt*>(value.data()), value.size()}; }
  std::vector<int64_t> value;
};
template <size_t N> struct Arg<std::array<bool, N>> {
  explicit Arg(const IValue& v) {
    const std::vector<bool> list = v.toBoolList();
    TORCH_CHECK(list.size() == N, "expected a list of ", N, " bools, got ", list.size());
    for (size_t i = 0; i < N; ++i) value[i] = list[i];
  }
  std::array<bool, N> get() { return value; }
  std::array<bool, N> value;
};
template <class T> struct Arg<std::optional<T>> {
  explicit Arg(const IValue& v) {
    if (!v.isNone()) inner.emplace(v);
  }
  std::optional<T> get() { return inner ? std::optional<T>(inner->get()) : std::nullopt; }
  std::optional<Arg<T>> inner;
};
template <class T> struct Arg<c10::OptionalArrayRef<T>> : Arg<std::optional<ArrayRef<T>>> {
  using Arg<std::optional<ArrayRef<T>>>::Arg;
};
template <class T> struct Arg<const std::optional<T>&> {
  explicit Arg(const IValue& v) {
    if (!v.isNone()) value.emplace(Arg<const T&>(v).get());
  }
  const std::optional<T>& get() { return value; }
  std::optional<T> value;
};

inline void push(Stack& stack, const Tensor& t) { stack.emplace_back(t); }
template <class T> void push(Stack& stack, const T& value) { stack.emplace_back(value); }
template <class... Ts> void push(Stack& stack, const std::tuple<Ts...>& values) {
  std::apply([&](const auto&... each) { (push(stack, each), ...); }, values);
}

// Result<T>: the results of a boxed call read back as T.
template <class T> struct Result {
  static T take(Stack& stack, size_t at) {
    if constexpr (std::is_same_v<T, std::vector<Tensor>>)
      return stack[at].toTensorList();
    else
      return Arg<T>(stack[at]).get();
  }
};
template <> struct Result<Tensor> {
  static Tensor take(Stack& stack, size_t at) { return stack[at].toTensor(); }
};
template <> struct Result<Scalar> {
  static Scalar take(Stack& stack, size_t at) { return stack[at].toScalar(); }
};
template <class... Ts> struct Result<std::tuple<Ts...>> {
  static std::tuple<Ts...> take(Stack& stack, size_t at) {
    return take_all(stack, at, std::index_sequence_for<Ts...>());
  }
  template <size_t... I>
  static std::tuple<Ts...> take_all(Stack& stack, size_t at, std::index_sequence<I...>) {
    return std::tuple<Ts...>(Result<Ts>::take(stack, at + I)...);
  }
};

// Calls the boxed kernel that `context` resolved to; the stack holds arguments, then results.
TORCH_API void call_boxed_kernel(KernelContext context, Stack& stack);

template <class Ret, class... Args> struct Adapter {
  static Ret unboxed(KernelContext context, Args... args) {
    Stack stack;
    stack.reserve(sizeof...(Args) + 4);
    (push(stack, args), ...);
    call_boxed_kernel(context, stack);
    if constexpr (std::is_void_v<Ret>) {
      return;
    } else if constexpr (std::is_same_v<Ret, Tensor&>) {
      return pick_mutable(args...);
    } else if constexpr (is_reference_tuple<Ret>::value) {
      return pick_mutables<Ret>(std::make_index_sequence<std::tuple_size_v<Ret>>(), args...);
    } else {
      return Result<Ret>::take(stack, 0);
    }
  }
  static void boxed(void* fn, KernelContext context, Stack& stack) {
    using Fn = Ret (*)(KernelContext, Args...);
    call(reinterpret_cast<Fn>(fn), context, stack, std::index_sequence_for<Args...>());
  }

 private:
  template <class T> struct is_reference_tuple : std::false_type {};
  template <class... Ts> struct is_reference_tuple<std::tuple<Ts&...>>
      : std::bool_constant<(sizeof...(Ts) > 0)> {};

  // The reference an in-place or out operator returns is the argument it wrote.
  static Tensor& pick_mutable(Args... args) {
    Tensor* found = nullptr;
    (void)std::initializer_list<int>{(found = pointer_if_mutable(args, found), 0)...};
    return *found;
  }
  template <class R, size_t... I> static R pick_mutables(std::index_sequence<I...>, Args... args) {
    Tensor* found[sizeof...(I) + 1] = {};
    size_t count = 0;
    (void)std::initializer_list<int>{
        (collect(static_cast<Args>(args), found, count, sizeof...(I)), 0)...};
    return R(*found[I]...);
  }
  static void collect(Tensor& t, Tensor** found, size_t& count, size_t limit) {
    if (count < limit) found[count++] = &t;
  }
  template <class T> static void collect(const T&, Tensor**, size_t&, size_t) {}
  static Tensor* pointer_if_mutable(Tensor& t, Tensor* before) { return before ? before : &t; }
  template <class T> static Tensor* pointer_if_mutable(const T&, Tensor* before) { return before; }

  template <size_t... I> static void call(Ret (*fn)(KernelContext, Args...), KernelContext context,
                                          Stack& stack, std::index_sequence<I...>) {
    constexpr size_t n = sizeof...(Args);
    [[maybe_unused]] const size_t base = stack.size() - n;
    std::tuple<Arg<Args>...> holders{Arg<Args>(stack[base + I])...};
    if constexpr (std::is_void_v<Ret>) {
      fn(context, std::get<I>(holders).get()...);
      stack.resize(base);
    } else {
      decltype(auto) result = fn(context, std::get<I>(holders).get()...);
      Stack results;
      push(results, result);
      stack.resize(base);
      for (IValue& v : results) stack.push_back(std::move(v));
    }
  }
};

template <class Fn> struct AdapterOf;
template <class Ret, class... Args> struct AdapterOf<Ret(Args...)> {
  using type = Adapter<Ret, Args...>;
};
} // namespace boxing

// The adapters of a signature, as a constant.
template <class Fn>
inline const BoxingOps kBoxingOps{reinterpret_cast<void*>(&boxing::AdapterOf<Fn>::type::unboxed),
                                  &boxing::AdapterOf<Fn>::type::boxed};
template <class Fn> const BoxingOps* boxing_ops() { return &kBoxingOps<Fn>; }

} // namespace at
