// See Containers.h.
#include <ATen/core/Containers.h>

#include <ATen/core/CustomClass.h>
#include <ATen/ops/clone.h>

namespace torch {
CustomClassHolder::~CustomClassHolder() = default;
} // namespace torch

namespace at {
using Tag = IValue::Tag;

TupleValue::~TupleValue() = default;
DictValue::~DictValue() = default;

size_t DictValue::Hash::operator()(const IValue& v) const { return ivalue::hash(v); }
bool DictValue::Equal::operator()(const IValue& a, const IValue& b) const {
  return ivalue::equal(a, b);
}

size_t DictValue::find(const IValue& key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? entries.size() : found->second;
}

bool DictValue::insert(IValue key, IValue value, bool replace) {
  const auto [at, is_new] = index_.emplace(key, entries.size());
  if (is_new)
    entries.emplace_back(std::move(key), std::move(value));
  else if (replace)
    entries[at->second].second = std::move(value);
  return is_new;
}

bool DictValue::erase(const IValue& key) {
  const auto found = index_.find(key);
  if (found == index_.end()) return false;
  const size_t at = found->second;
  index_.erase(found);
  entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(at));
  for (auto& [other, position] : index_)
    if (position > at) --position;
  return true;
}

void DictValue::clear() {
  entries.clear();
  index_.clear();
}

namespace ivalue {
namespace {

[[noreturn]] void mismatch(const char* wanted, const IValue& got) {
  throw c10::TypeError(
      c10::str("expected a value of type ", wanted, " but got one of type ", type_name(got)));
}

bool is_plain(Tag tag) {
  switch (tag) {
  case Tag::Int:
  case Tag::Bool:
  case Tag::Double:
  case Tag::Complex:
  case Tag::Device:
  case Tag::ScalarType:
  case Tag::Layout:
  case Tag::MemoryFormat:
  case Tag::Symbol:
    return true;
  default:
    return false;
  }
}

bool is_number(const IValue& v) {
  return v.isInt() || v.isDouble() || v.isBool() || v.tag == Tag::Complex;
}

bool plain_equal(const IValue& a, const IValue& b) {
  if (a.tag == Tag::Double) return a.bits.d[0] == b.bits.d[0];
  if (a.tag == Tag::Complex) return a.bits.d[0] == b.bits.d[0] && a.bits.d[1] == b.bits.d[1];
  return a.bits.i == b.bits.i;
}

bool all_equal(const std::vector<IValue>& a, const std::vector<IValue>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!equal(a[i], b[i])) return false;
  return true;
}

bool dicts_equal(const DictValue& a, const DictValue& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const DictValue::Entry& entry : a.entries) {
    const size_t at = b.find(entry.first);
    if (at == b.entries.size() || !equal(b.entries[at].second, entry.second)) return false;
  }
  return true;
}

// What one deep copy has copied so far, by the address of the original.
struct Copier {
  std::unordered_map<const void*, IValue> done;

  IValue copy(const IValue& value) {
    if (!value.ref) return value;
    const auto before = done.find(value.ref.get());
    if (before != done.end()) return before->second;
    IValue out = fresh(value);
    done.emplace(value.ref.get(), out);
    return out;
  }

  std::vector<IValue> copy_all(const std::vector<IValue>& values) {
    std::vector<IValue> out;
    for (const IValue& value : values) out.push_back(copy(value));
    return out;
  }

  IValue fresh(const IValue& value) {
    switch (value.tag) {
    case Tag::Tensor:
      return IValue(at::clone(value.toTensor(), std::nullopt));
    case Tag::TensorList: {
      std::vector<Tensor> out;
      for (const Tensor& t : value.toTensorList()) out.push_back(copy(IValue(t)).toTensor());
      return IValue(std::move(out));
    }
    case Tag::OptionalTensorList: {
      std::vector<std::optional<Tensor>> out;
      for (const std::optional<Tensor>& t : value.toOptionalTensorList())
        out.push_back(t ? std::optional<Tensor>(copy(IValue(*t)).toTensor()) : std::nullopt);
      return IValue(std::move(out));
    }
    case Tag::List:
      return IValue(copy_all(value.toList()));
    case Tag::IntList:
      return IValue(value.toIntList());
    case Tag::DoubleList:
      return IValue(value.toDoubleList());
    case Tag::BoolList:
      return IValue(value.toBoolList());
    case Tag::ScalarList:
      return IValue(value.toScalarList());
    case Tag::Opaque:
      return fresh_opaque(value);
    default:
      return value; // text and handles do not change
    }
  }

  IValue fresh_opaque(const IValue& value) {
    if (const auto* tuple = opaque<TupleValue>(value)) return make_tuple(copy_all(tuple->items));
    if (const auto* before = opaque<DictValue>(value)) {
      auto out = c10::make_intrusive<DictValue>();
      for (const DictValue::Entry& e : before->entries)
        out->insert(copy(e.first), copy(e.second), true);
      return IValue::opaque(std::move(out));
    }
    if (opaque<torch::CustomClassHolder>(value)) {
      const CustomClass& its_class = CustomClass::of(value);
      return its_class.from_state(copy(its_class.get_state(value)));
    }
    mismatch("tuple, dict or custom class", value);
  }
};

} // namespace

IValue make_tuple(std::vector<IValue> items) {
  return IValue::opaque(c10::make_intrusive<TupleValue>(std::move(items)));
}

const std::vector<IValue>& tuple_items(const IValue& value) {
  const auto* tuple = opaque<TupleValue>(value);
  if (tuple == nullptr) mismatch("tuple", value);
  return tuple->items;
}

bool is_list(const IValue& value) {
  switch (value.tag) {
  case Tag::IntList:
  case Tag::DoubleList:
  case Tag::BoolList:
  case Tag::TensorList:
  case Tag::OptionalTensorList:
  case Tag::ScalarList:
  case Tag::List:
    return true;
  default:
    return false;
  }
}

std::vector<IValue> list_items(const IValue& value) {
  std::vector<IValue> out;
  const auto copy = [&](const auto& values) {
    for (const auto& each : values) out.emplace_back(each);
  };
  switch (value.tag) {
  case Tag::List:
    return value.toList();
  case Tag::IntList:
    copy(value.toIntList());
    break;
  case Tag::DoubleList:
    copy(value.toDoubleList());
    break;
  case Tag::BoolList:
    for (const bool each : value.toBoolList()) out.emplace_back(each);
    break;
  case Tag::TensorList:
    copy(value.toTensorList());
    break;
  case Tag::OptionalTensorList:
    copy(value.toOptionalTensorList());
    break;
  case Tag::ScalarList:
    copy(value.toScalarList());
    break;
  default:
    mismatch("list", value);
  }
  return out;
}

c10::intrusive_ptr<DictValue> dict(const IValue& value) {
  auto* found = opaque<DictValue>(value);
  if (found == nullptr) mismatch("dict", value);
  return c10::intrusive_ptr<DictValue>::unsafe_retain(found);
}

c10::intrusive_ptr<torch::CustomClassHolder> instance(const IValue& value) {
  auto* found = opaque<torch::CustomClassHolder>(value);
  if (found == nullptr) mismatch("custom class", value);
  return c10::intrusive_ptr<torch::CustomClassHolder>::unsafe_retain(found);
}

bool is_same(const IValue& a, const IValue& b) {
  if (a.tag != b.tag) return false;
  if (a.isNone()) return true;
  return is_plain(a.tag) ? plain_equal(a, b) : a.ref == b.ref;
}

bool is_alias_of(const IValue& a, const IValue& b) {
  if (a.tag != b.tag || a.isNone() || is_plain(a.tag)) return false;
  if (a.isTensor()) return a.toTensor().is_alias_of(b.toTensor());
  return a.ref == b.ref;
}

bool equal(const IValue& a, const IValue& b) {
  if (is_same(a, b)) return true;
  if (is_number(a) && is_number(b)) return a.toComplexDouble() == b.toComplexDouble();
  if (is_list(a) && is_list(b)) return all_equal(list_items(a), list_items(b));
  if (a.isString() && b.isString()) return a.toStringRef() == b.toStringRef();
  const auto* first = opaque<TupleValue>(a);
  const auto* second = opaque<TupleValue>(b);
  if (first && second) return all_equal(first->items, second->items);
  const auto* mine = opaque<DictValue>(a);
  const auto* other = opaque<DictValue>(b);
  return mine && other && dicts_equal(*mine, *other);
}

size_t hash(const IValue& value) {
  switch (value.tag) {
  case Tag::None:
    return 0;
  case Tag::String:
    return std::hash<std::string>()(value.toStringRef());
  case Tag::Int:
  case Tag::Bool: // equal to the floats of the same value
    return std::hash<double>()(static_cast<double>(value.bits.i));
  case Tag::Double:
  case Tag::Complex:
    return std::hash<double>()(value.bits.d[0]);
  case Tag::Tensor:
    return std::hash<const void*>()(value.ref.get());
  default:
    break;
  }
  if (is_plain(value.tag)) return std::hash<int64_t>()(value.bits.i);
  if (opaque<torch::CustomClassHolder>(value)) return std::hash<const void*>()(value.ref.get());
  if (const auto* tuple = opaque<TupleValue>(value)) {
    size_t out = 0;
    for (const IValue& item : tuple->items) out = out * 31 + hash(item);
    return out;
  }
  throw c10::TypeError("unhashable type: '" + type_name(value) + "'");
}

IValue deepcopy(const IValue& value) { return Copier().copy(value); }

std::string repr(const IValue& value) {
  if (value.isNone()) return "None";
  if (value.isBool()) return value.toBool() ? "True" : "False";
  if (value.isInt()) return std::to_string(value.toInt());
  if (value.isDouble()) return c10::str(value.toDouble());
  if (value.isString()) return "\"" + value.toStringRef() + "\"";
  const auto* tuple = opaque<TupleValue>(value);
  if (!tuple && !is_list(value)) return "<" + type_name(value) + ">";
  std::string inside;
  for (const IValue& item : tuple ? tuple->items : list_items(value))
    inside += (inside.empty() ? "" : ", ") + repr(item);
  return tuple ? "(" + inside + ")" : "[" + inside + "]";
}

std::string type_name(const IValue& value) {
  if (opaque<TupleValue>(value)) return "tuple";
  if (opaque<DictValue>(value)) return "dict";
  if (opaque<torch::CustomClassHolder>(value)) return CustomClass::of(value).qualified_name();
  return value.kind();
}

} // namespace ivalue
} // namespace at
