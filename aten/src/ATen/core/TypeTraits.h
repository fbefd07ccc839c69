// Which C++ types an operator or a method of a registered class may take and return: one trait per
// type says how a schema names it, how a value of it is read from an IValue and written to one.
#pragma once
#include <array>
#include <string_view>
#include <unordered_map>

#include <ATen/core/Dict.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/List.h>

namespace at::types {

// schema(): the type's name. read(): the value, throws TypeError when the kinds differ. Kept: what
// keeps the value alive during a call, for views of memory.
template <class T> struct Type;
template <class T> using Kept = typename Type<T>::Kept;

// The name of a registered class; Error when it is not.
TORCH_API std::string class_name(const std::type_info& type);
// The instance of a class behind a value; TypeError for another class and other values.
TORCH_API torch::CustomClassHolder* instance_of(const IValue& value, const std::type_info& type);

// The element types of lists that kernels read as they are.
template <class T> constexpr bool kKernelList =
    std::is_same_v<T, int64_t> || std::is_same_v<T, double> || std::is_same_v<T, bool> ||
    std::is_same_v<T, Tensor> || std::is_same_v<T, std::optional<Tensor>> ||
    std::is_same_v<T, Scalar> || std::is_same_v<T, IValue>;

template <class T> IValue write(T value) { return Type<T>::write(std::move(value)); }

#define CRESSET_TYPE(T, KIND, EXPRESSION)                                                          \
  template <> struct Type<T> {                                                                     \
    using Kept = T;                                                                                \
    static SchemaType schema() { return {SchemaType::Kind::KIND}; }                                \
    static T read(const IValue& v) { return EXPRESSION; }                                          \
    static IValue write(T v) { return IValue(std::move(v)); }                                      \
  };
CRESSET_TYPE(Tensor, Tensor, v.toTensor())
CRESSET_TYPE(int64_t, Int, v.toInt())
CRESSET_TYPE(SymInt, SymInt, v.toSymInt())
CRESSET_TYPE(double, Float, v.toDouble())
CRESSET_TYPE(bool, Bool, v.toBool())
CRESSET_TYPE(std::string, Str, v.toStringRef())
CRESSET_TYPE(Scalar, Scalar, v.toScalar())
CRESSET_TYPE(c10::complex<double>, Complex, v.toComplexDouble())
CRESSET_TYPE(Device, Device, v.toDevice())
CRESSET_TYPE(ScalarType, ScalarType, v.toScalarType())
CRESSET_TYPE(Layout, Layout, v.toLayout())
CRESSET_TYPE(MemoryFormat, MemoryFormat, v.toMemoryFormat())
CRESSET_TYPE(c10::Generator, Generator, v.toGenerator())
CRESSET_TYPE(Storage, Storage, v.toStorage())
CRESSET_TYPE(IValue, Any, v)
#undef CRESSET_TYPE

template <> struct Type<std::string_view> {
  using Kept = std::string;
  static SchemaType schema() { return {SchemaType::Kind::Str}; }
  static std::string read(const IValue& v) { return v.toStringRef(); }
  static IValue write(std::string_view v) { return IValue(v); }
};
template <class T> struct Type<std::vector<T>> {
  using Kept = std::vector<T>;
  static SchemaType schema() { return SchemaType::list_of(Type<T>::schema()); }
  static std::vector<T> read(const IValue& v) {
    if constexpr (std::is_same_v<T, int64_t>) {
      if (v.isIntList()) return v.toIntList();
    } else if constexpr (std::is_same_v<T, Tensor>) {
      if (v.isTensorList()) return v.toTensorList();
    }
    {
      std::vector<T> out;
      for (const IValue& item : ivalue::list_items(v)) out.push_back(Type<T>::read(item));
      return out;
    }
  }
  static IValue write(std::vector<T> v) {
    if constexpr (kKernelList<T>) {
      return IValue(std::move(v));
    } else {
      std::vector<IValue> out;
      for (T& each : v) out.push_back(Type<T>::write(std::move(each)));
      return IValue(std::move(out));
    }
  }
};
template <class T> struct Type<ArrayRef<T>> {
  using Kept = std::vector<T>;
  static SchemaType schema() { return Type<std::vector<T>>::schema(); }
  static std::vector<T> read(const IValue& v) { return Type<std::vector<T>>::read(v); }
  static IValue write(ArrayRef<T> v) { return Type<std::vector<T>>::write(v.vec()); }
};
template <class T, size_t N> struct Type<std::array<T, N>> {
  using Kept = std::array<T, N>;
  static SchemaType schema() {
    SchemaType out = Type<std::vector<T>>::schema();
    out.list_size = static_cast<int64_t>(N);
    return out;
  }
  static std::array<T, N> read(const IValue& v) {
    const std::vector<T> items = Type<std::vector<T>>::read(v);
    TORCH_CHECK(items.size() == N, "expected a list of ", N, " values, got ", items.size());
    std::array<T, N> out;
    for (size_t i = 0; i < N; ++i) out[i] = items[i];
    return out;
  }
  static IValue write(const std::array<T, N>& v) {
    return Type<std::vector<T>>::write(std::vector<T>(v.begin(), v.end()));
  }
};
template <class T> struct Type<c10::List<T>> {
  using Kept = c10::List<T>;
  static SchemaType schema() { return Type<std::vector<T>>::schema(); }
  // Shared with lists of no particular type; those that kernels know are copied.
  static c10::List<T> read(const IValue& v) {
    using Items = typename c10::List<T>::Items;
    if (v.tag == IValue::Tag::List)
      return c10::List<T>::sharing(
          c10::intrusive_ptr<Items>::unsafe_retain(static_cast<Items*>(v.ref.get())));
    return c10::List<T>::sharing(c10::make_intrusive<Items>(ivalue::list_items(v)));
  }
  static IValue write(c10::List<T> v) {
    if constexpr (kKernelList<T> && !std::is_same_v<T, IValue>) {
      return IValue(v.vec());
    } else {
      IValue out;
      out.tag = IValue::Tag::List;
      out.ref = v.shared_items();
      return out;
    }
  }
};
template <class K, class V> struct Type<c10::Dict<K, V>> {
  using Kept = c10::Dict<K, V>;
  static SchemaType schema() {
    return SchemaType::container(SchemaType::Kind::Dict, {Type<K>::schema(), Type<V>::schema()});
  }
  static c10::Dict<K, V> read(const IValue& v) { return c10::Dict<K, V>::sharing(ivalue::dict(v)); }
  static IValue write(c10::Dict<K, V> v) { return IValue::opaque(v.shared_impl()); }
};
template <class K, class V> struct Type<std::unordered_map<K, V>> {
  using Kept = std::unordered_map<K, V>;
  static SchemaType schema() { return Type<c10::Dict<K, V>>::schema(); }
  static std::unordered_map<K, V> read(const IValue& v) {
    std::unordered_map<K, V> out;
    for (const auto& entry : Type<c10::Dict<K, V>>::read(v))
      out.emplace(entry.key(), entry.value());
    return out;
  }
  static IValue write(const std::unordered_map<K, V>& v) {
    c10::Dict<K, V> out;
    for (const auto& [key, value] : v) out.insert(key, value);
    return IValue::opaque(out.shared_impl());
  }
};
template <class T> struct Type<std::optional<T>> {
  using Kept = std::optional<types::Kept<T>>;
  static SchemaType schema() {
    SchemaType out = Type<T>::schema();
    out.optional = true;
    return out;
  }
  static Kept read(const IValue& v) {
    if (v.isNone()) return std::nullopt;
    return Type<T>::read(v);
  }
  static IValue write(std::optional<T> v) { return v ? Type<T>::write(std::move(*v)) : IValue(); }
};
template <class T> struct Type<c10::OptionalArrayRef<T>> : Type<std::optional<ArrayRef<T>>> {};
template <class... Ts> struct Type<std::tuple<Ts...>> {
  using Kept = std::tuple<Ts...>;
  static SchemaType schema() {
    return SchemaType::container(SchemaType::Kind::Tuple, {Type<Ts>::schema()...});
  }
  static std::tuple<Ts...> read(const IValue& v) {
    return read_all(ivalue::tuple_items(v), std::index_sequence_for<Ts...>());
  }
  static IValue write(std::tuple<Ts...> v) {
    return std::apply(
        [](auto&... each) {
          return ivalue::make_tuple(
              {Type<std::decay_t<decltype(each)>>::write(std::move(each))...});
        },
        v);
  }

 private:
  template <size_t... I>
  static std::tuple<Ts...> read_all(const std::vector<IValue>& items, std::index_sequence<I...>) {
    TORCH_CHECK(items.size() == sizeof...(Ts), "expected a tuple of ", sizeof...(Ts),
                " values, got ", items.size());
    return std::tuple<Ts...>(Type<Ts>::read(items[I])...);
  }
};
template <class T> struct Type<c10::intrusive_ptr<T>> {
  using Kept = c10::intrusive_ptr<T>;
  static SchemaType schema() {
    SchemaType out{SchemaType::Kind::Class};
    out.class_name = class_name(typeid(T));
    return out;
  }
  static c10::intrusive_ptr<T> read(const IValue& v) {
    return c10::intrusive_ptr<T>::unsafe_retain(static_cast<T*>(instance_of(v, typeid(T))));
  }
  static IValue write(c10::intrusive_ptr<T> v) {
    return v ? IValue::opaque(std::move(v)) : IValue();
  }
};
// A tuple of no particular types.
template <> struct Type<c10::intrusive_ptr<TupleValue>> {
  using Kept = c10::intrusive_ptr<TupleValue>;
  static SchemaType schema() { return {SchemaType::Kind::Any}; }
  static c10::intrusive_ptr<TupleValue> read(const IValue& v) {
    ivalue::tuple_items(v);
    return c10::intrusive_ptr<TupleValue>::unsafe_retain(ivalue::opaque<TupleValue>(v));
  }
  static IValue write(c10::intrusive_ptr<TupleValue> v) {
    return v ? IValue::opaque(std::move(v)) : IValue();
  }
};

// The schema of a function by its types alone: arguments are named _0, _1, ...
template <class Ret, class... Args> FunctionSchema inferred_schema(std::string name) {
  FunctionSchema out;
  out.name = std::move(name);
  (out.arguments.push_back(
       {"_" + std::to_string(out.arguments.size()), Type<std::decay_t<Args>>::schema()}),
   ...);
  if constexpr (std::is_void_v<Ret>)
    out.returns.push_back({"_0", SchemaType{SchemaType::Kind::None}});
  else
    out.returns.push_back({"_0", Type<std::decay_t<Ret>>::schema()});
  return out;
}

#ifndef CRESSET_KERNEL_TU
template <class T> struct UserValue<c10::List<T>> : std::true_type {};
template <class K, class V> struct UserValue<c10::Dict<K, V>> : std::true_type {};
template <class K, class V> struct UserValue<std::unordered_map<K, V>> : std::true_type {};
template <class... Ts> struct UserValue<std::tuple<Ts...>> : std::true_type {};
template <class T> struct UserValue<std::vector<T>> : std::bool_constant<!kKernelList<T>> {};
template <class T> struct UserValue<c10::intrusive_ptr<T>>
    : std::is_base_of<torch::CustomClassHolder, T> {};
template <> struct UserValue<c10::intrusive_ptr<TupleValue>> : std::true_type {};
#endif

} // namespace at::types
