// Values of scripted programs that operators of the dispatcher never see: tuples, dictionaries,
// objects, enumerations, futures. Each stands behind an IValue of the tag Opaque, so that the
// dispatcher's IValue stays as small as its operators need. Lists are those of IValue: typed
// vectors behind a counted pointer, which scripted code changes in place.
#pragma once
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <vector>

#include <ATen/core/IValue.h>

namespace torch::jit {

using at::IValue;
using at::Stack;

struct Function;
struct ClassInfo;

// The static type of a value, as far as the interpreter must know it: to convert arguments, to
// choose the representation of a list, and for isinstance.
struct TORCH_API Type : std::enable_shared_from_this<Type> {
  enum class Kind : uint8_t {
    Tensor,
    Int,
    Float,
    Bool,
    Complex,
    Str,
    Number,
    None,
    Device,
    Generator,
    Storage,
    Any,
    List,
    Dict,
    Tuple,
    Optional,
    Union,
    Future,
    Class,
    Interface,
    Enum,
    Python,
    AnyList,
    AnyTuple,
    Stream,
    Function,
  };
  virtual ~Type() = default;
  Kind kind = Kind::Any;
  std::string name; // as annotations spell it
  std::vector<std::shared_ptr<Type>> inner;
  std::vector<std::string> fields; // of a named tuple
  std::shared_ptr<ClassInfo> cls;
  std::vector<std::string> methods; // of an interface
};
using TypePtr = std::shared_ptr<Type>;

struct TORCH_API Boxed : c10::intrusive_ptr_target {
  enum class Kind : uint8_t { Tuple, Dict, Object, Future, Enum, Python };
  explicit Boxed(Kind kind) : kind(kind) {}
  const Kind kind;
};

struct TORCH_API Tuple final : Boxed {
  static constexpr Kind kKind = Kind::Tuple;
  explicit Tuple(std::vector<IValue> v, TypePtr t = nullptr)
      : Boxed(kKind), items(std::move(v)), type(std::move(t)) {}
  std::vector<IValue> items;
  TypePtr type; // of a named tuple
};

struct TORCH_API ValueHash {
  size_t operator()(const IValue& v) const;
};
struct TORCH_API ValueEqual {
  bool operator()(const IValue& a, const IValue& b) const;
};

// Keeps the order of insertion, as Python's does: entries in that order, and a table of their
// places by hash. A removed entry stays behind as a hole until holes are half of the entries.
struct TORCH_API Dict final : Boxed {
  static constexpr Kind kKind = Kind::Dict;
  Dict() : Boxed(kKind) {}
  const IValue* find(const IValue& key) const;
  void set(const IValue& key, IValue value);
  bool erase(const IValue& key);
  void clear();
  size_t size() const { return live_; }

  struct Entry {
    IValue key, value;
    size_t hash = 0;
    bool live = true;
  };
  // Gives pairs of references to key and value.
  struct Iterator {
    const Entry *at, *end;
    std::pair<const IValue&, const IValue&> operator*() const { return {at->key, at->value}; }
    Iterator& operator++() {
      do ++at;
      while (at != end && !at->live);
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at != other.at; }
  };
  Iterator begin() const {
    Iterator out{entries_.data(), entries_.data() + entries_.size()};
    while (out.at != out.end && !out.at->live) ++out.at;
    return out;
  }
  Iterator end() const {
    const Entry* last = entries_.data() + entries_.size();
    return {last, last};
  }
  // The entry that was added last, of a dictionary that is not empty.
  std::pair<const IValue&, const IValue&> last() const {
    return {entries_.back().key, entries_.back().value};
  }

 private:
  size_t slot_of(const IValue& key, size_t hash) const;
  void rebuild();
  std::vector<Entry> entries_; // the last one is live
  std::vector<int32_t> table_; // places in entries_, by hash; its size is a power of two
  size_t live_ = 0, used_ = 0; // entries, and slots of the table that are not free
};

// A class of scripted code: names of slots and the methods an interface call finds by name.
struct TORCH_API ClassInfo {
  std::string name;
  std::vector<std::string> slots;
  std::unordered_map<std::string, std::shared_ptr<Function>> methods;
  bool is_module = false;
  int slot(const std::string& attribute) const; // -1 when there is none
};

struct TORCH_API Object final : Boxed {
  static constexpr Kind kKind = Kind::Object;
  explicit Object(std::shared_ptr<ClassInfo> c) : Boxed(kKind), cls(std::move(c)) {
    slots.resize(cls->slots.size());
  }
  std::shared_ptr<ClassInfo> cls;
  std::vector<IValue> slots;
  // Raised by every write of a slot: whoever mirrors the slots sees that it must look again.
  uint64_t version = 0;
};

struct TORCH_API EnumValue final : Boxed {
  static constexpr Kind kKind = Kind::Enum;
  EnumValue(TypePtr t, std::string n, IValue v)
      : Boxed(kKind), type(std::move(t)), name(std::move(n)), value(std::move(v)) {}
  TypePtr type;
  std::string name;
  IValue value;
};

// The value as a T, or null. Nothing derives from these types, so that comparing the type is
// enough.
template <class T> T* as(const IValue& v) {
  static_assert(std::is_final_v<T> && std::is_base_of_v<Boxed, T>);
  if (v.tag != IValue::Tag::Opaque) return nullptr;
  c10::intrusive_ptr_target* target = v.ref.get();
  return target && typeid(*target) == typeid(T) ? static_cast<T*>(target) : nullptr;
}
template <class T> T& need(const IValue& v, const char* what) {
  T* out = as<T>(v);
  if (!out) throw c10::TypeError(c10::str("expected a ", what, " but got a value of ", v.kind()));
  return *out;
}
template <class T, class... A> IValue make(A&&... a) {
  return IValue::opaque(c10::make_intrusive<T>(std::forward<A>(a)...));
}
TORCH_API IValue make_tuple(std::vector<IValue> items, TypePtr type = nullptr);

// ---- lists of any representation ------------------------------------------------------------
TORCH_API bool is_list(const IValue& v);
TORCH_API IValue new_list(const Type& element);
TORCH_API IValue new_list_like(const IValue& list);
TORCH_API size_t list_size(const IValue& list);
TORCH_API IValue list_get(const IValue& list, size_t i);
TORCH_API void list_set(const IValue& list, size_t i, const IValue& value);
TORCH_API void list_push(const IValue& list, const IValue& value);
TORCH_API void list_insert(const IValue& list, size_t i, const IValue& value);
TORCH_API void list_erase(const IValue& list, size_t i);
TORCH_API void list_resize(const IValue& list, size_t n);
// An index that counts from the end when negative; IndexError when it lies outside.
TORCH_API size_t checked_index(int64_t i, size_t n, const char* what);

// ---- any value --------------------------------------------------------------------------------
TORCH_API bool values_equal(const IValue& a, const IValue& b);
TORCH_API bool same_object(const IValue& a, const IValue& b);
TORCH_API bool less(const IValue& a, const IValue& b);
// The text of str(); inside containers, strings are quoted as repr() does.
TORCH_API std::string value_text(const IValue& v, bool quoted = false);
TORCH_API std::string float_text(double v);
TORCH_API std::string quoted_text(const std::string& v);
// Whether the value is an instance of the type, contents included.
TORCH_API bool is_instance(const IValue& v, const Type& type);

} // namespace torch::jit
