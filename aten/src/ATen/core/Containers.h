// Values of IValues beyond what the dispatcher's own operators take: tuples, dictionaries and
// instances of registered classes. Each stands behind an IValue of Tag::Opaque, so that the IValue
// kernels see stays as small as kernels need. Here are also the questions that need to look inside
// of every kind of value: identity, equality, hash, deep copy.
#pragma once
#include <unordered_map>

#include <ATen/core/IValue.h>

namespace torch {
// The base of C++ classes that scripts and Python use (see torch/custom_class.h).
struct TORCH_API CustomClassHolder : c10::intrusive_ptr_target {
  ~CustomClassHolder() override;
};
} // namespace torch

namespace at {

struct TORCH_API TupleValue final : c10::intrusive_ptr_target {
  explicit TupleValue(std::vector<IValue> items) : items(std::move(items)) {}
  ~TupleValue() override;
  static c10::intrusive_ptr<TupleValue> create(std::vector<IValue> items) {
    return c10::make_intrusive<TupleValue>(std::move(items));
  }
  const std::vector<IValue>& elements() const { return items; }
  std::vector<IValue> items;
};

// Keeps the order of insertion. Keys: numbers, text, devices, tuples of these, tensors by identity.
struct TORCH_API DictValue final : c10::intrusive_ptr_target {
  using Entry = std::pair<IValue, IValue>;
  ~DictValue() override;
  // The position of a key, or the number of entries.
  size_t find(const IValue& key) const;
  // True when the key is new. An existing one gets the value only where `replace` says so.
  bool insert(IValue key, IValue value, bool replace);
  bool erase(const IValue& key);
  void clear();
  std::vector<Entry> entries;

 private:
  struct Hash {
    size_t operator()(const IValue& v) const;
  };
  struct Equal {
    bool operator()(const IValue& a, const IValue& b) const;
  };
  std::unordered_map<IValue, size_t, Hash, Equal> index_;
};

namespace ivalue {

// The object of type T behind the value, or null.
template <class T> T* opaque(const IValue& v) {
  return v.tag == IValue::Tag::Opaque ? dynamic_cast<T*>(v.ref.get()) : nullptr;
}
TORCH_API IValue make_tuple(std::vector<IValue> items);
// The values of a tuple; TypeError for anything else.
TORCH_API const std::vector<IValue>& tuple_items(const IValue& value);
// The values of a list of any kind; TypeError for anything else.
TORCH_API std::vector<IValue> list_items(const IValue& value);
TORCH_API bool is_list(const IValue& value);
// Counted pointers to the dictionary or the instance inside; TypeError for anything else.
TORCH_API c10::intrusive_ptr<DictValue> dict(const IValue& value);
TORCH_API c10::intrusive_ptr<torch::CustomClassHolder> instance(const IValue& value);

// Whether both are one object: for numbers and None, whether they are equal.
TORCH_API bool is_same(const IValue& a, const IValue& b);
// Whether they share memory that one of them could write.
TORCH_API bool is_alias_of(const IValue& a, const IValue& b);
// Equal numbers, text and containers; tensors and instances compare by identity.
TORCH_API bool equal(const IValue& a, const IValue& b);
// TypeError for values that cannot be keys.
TORCH_API size_t hash(const IValue& value);
// A value without parts shared with this one; what was one object inside stays one.
TORCH_API IValue deepcopy(const IValue& value);
// How a schema writes the value as a default.
TORCH_API std::string repr(const IValue& value);
// The value's type as schemas spell it.
TORCH_API std::string type_name(const IValue& value);

} // namespace ivalue
} // namespace at
