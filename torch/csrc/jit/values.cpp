// Containers of scripted programs and what every value can do: compare, hash, print.
#include <torch/csrc/jit/lists.h>
#include <torch/csrc/jit/tasks.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstring>
#include <sstream>

#include <ATen/core/Formatting.h>
#include <ATen/ops/equal.h>

namespace torch::jit {

using Tag = IValue::Tag;

IValue make_tuple(std::vector<IValue> items, TypePtr type) {
  return make<Tuple>(std::move(items), std::move(type));
}

int ClassInfo::slot(const std::string& attribute) const {
  const auto found = std::find(slots.begin(), slots.end(), attribute);
  return found == slots.end() ? -1 : static_cast<int>(found - slots.begin());
}

// ---- dictionaries -----------------------------------------------------------------------------
size_t ValueHash::operator()(const IValue& v) const {
  switch (v.tag) {
  case Tag::String:
    return std::hash<std::string>()(v.toStringRef());
  case Tag::Double:
    return std::hash<double>()(v.bits.d[0]);
  case Tag::Int:
  case Tag::Bool:
    return std::hash<double>()(static_cast<double>(v.bits.i));
  case Tag::Complex:
    return std::hash<double>()(v.bits.d[0]) ^ std::hash<double>()(v.bits.d[1]) * 3;
  case Tag::Device:
    return std::hash<int64_t>()(v.bits.i);
  case Tag::None:
    return 0;
  default:
    break;
  }
  if (const EnumValue* e = as<EnumValue>(v)) return std::hash<std::string>()(e->name);
  if (const Tuple* t = as<Tuple>(v)) {
    size_t out = 17;
    for (const IValue& item : t->items) out = out * 31 + (*this)(item);
    return out;
  }
  TORCH_CHECK(!is_list(v) && !as<Dict>(v), "unhashable type: a list or dictionary");
  return std::hash<const void*>()(v.ref.get());
}

bool ValueEqual::operator()(const IValue& a, const IValue& b) const {
  if (a.tag == Tag::String && b.tag == Tag::String) return a.toStringRef() == b.toStringRef();
  if (a.tag == Tag::Int && b.tag == Tag::Int) return a.bits.i == b.bits.i;
  if (a.isTensor() && b.isTensor()) return a.ref.get() == b.ref.get();
  return values_equal(a, b);
}

namespace {
constexpr int32_t kFree = -1, kHole = -2; // of Dict's table
constexpr size_t kNowhere = ~size_t(0);
// Hashes of small integers differ in few bits.
size_t first_place(size_t hash, size_t mask) {
  return (hash * size_t(0x9E3779B97F4A7C15) >> 20) & mask;
}
} // namespace

// The place in the table that holds the key, or kNowhere.
size_t Dict::slot_of(const IValue& key, size_t hash) const {
  if (table_.empty()) return kNowhere;
  const size_t mask = table_.size() - 1;
  for (size_t i = first_place(hash, mask);; i = (i + 1) & mask) {
    const int32_t place = table_[i];
    if (place == kFree) return kNowhere;
    if (place == kHole) continue;
    const Entry& entry = entries_[static_cast<size_t>(place)];
    if (entry.hash == hash && ValueEqual()(entry.key, key)) return i;
  }
}

// Closes the holes, and makes a table that is at most half full after as many entries again.
void Dict::rebuild() {
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), [](auto& e) { return !e.live; }),
                 entries_.end());
  TORCH_CHECK(entries_.size() < size_t(1) << 30, "a dictionary of scripted code is too large");
  size_t size = 8;
  while (size < 4 * entries_.size()) size *= 2;
  table_.assign(size, kFree);
  for (size_t n = 0; n < entries_.size(); ++n) {
    size_t i = first_place(entries_[n].hash, size - 1);
    while (table_[i] != kFree) i = (i + 1) & (size - 1);
    table_[i] = static_cast<int32_t>(n);
  }
  used_ = entries_.size();
}

const IValue* Dict::find(const IValue& key) const {
  const size_t slot = slot_of(key, ValueHash()(key));
  return slot == kNowhere ? nullptr : &entries_[static_cast<size_t>(table_[slot])].value;
}
void Dict::set(const IValue& key, IValue value) {
  const size_t hash = ValueHash()(key), known = slot_of(key, hash);
  if (known != kNowhere) {
    entries_[static_cast<size_t>(table_[known])].value = std::move(value);
    return;
  }
  if (2 * (used_ + 1) > table_.size()) rebuild();
  const size_t mask = table_.size() - 1;
  size_t i = first_place(hash, mask);
  while (table_[i] >= 0) i = (i + 1) & mask;
  used_ += table_[i] == kFree;
  table_[i] = static_cast<int32_t>(entries_.size());
  entries_.push_back({key, std::move(value), hash, true});
  ++live_;
}
bool Dict::erase(const IValue& key) {
  const size_t slot = slot_of(key, ValueHash()(key));
  if (slot == kNowhere) return false;
  Entry& entry = entries_[static_cast<size_t>(table_[slot])];
  table_[slot] = kHole;
  // What the entry held may be the last reference to something large, or `key` itself.
  const Entry removed = std::exchange(entry, Entry{IValue(), IValue(), 0, false});
  --live_;
  while (!entries_.empty() && !entries_.back().live) entries_.pop_back();
  if (entries_.size() > 2 * live_ + 8) rebuild();
  return true;
}
void Dict::clear() {
  entries_.clear();
  table_.clear();
  live_ = used_ = 0;
}

// ---- lists ------------------------------------------------------------------------------------
bool is_list(const IValue& v) { return (v.tag >= Tag::IntList && v.tag <= Tag::List); }

IValue new_list(const Type& element) {
  using K = Type::Kind;
  switch (element.kind) {
  case K::Tensor:
    return IValue(std::vector<at::Tensor>());
  case K::Int:
    return IValue(std::vector<int64_t>());
  case K::Float:
    return IValue(std::vector<double>());
  case K::Bool:
    return IValue(std::vector<bool>());
  case K::Optional:
    if (element.inner[0]->kind == K::Tensor)
      return IValue(std::vector<std::optional<at::Tensor>>());
    [[fallthrough]];
  default:
    return IValue(std::vector<IValue>());
  }
}

IValue new_list_like(const IValue& list) {
  return visit_list(list, [](auto& v) { return IValue(std::remove_reference_t<decltype(v)>()); });
}
size_t list_size(const IValue& list) {
  return visit_list(list, [](auto& v) { return v.size(); });
}
IValue list_get(const IValue& list, size_t i) {
  return visit_list(list, [&](auto& v) {
    using T = typename std::remove_reference_t<decltype(v)>::value_type;
    return IValue(static_cast<T>(v.at(i)));
  });
}
void list_set(const IValue& list, size_t i, const IValue& value) {
  visit_list(list, [&](auto& v) {
    using T = typename std::remove_reference_t<decltype(v)>::value_type;
    v.at(i) = item_as<T>(value);
  });
}
void list_push(const IValue& list, const IValue& value) {
  visit_list(list, [&](auto& v) {
    using T = typename std::remove_reference_t<decltype(v)>::value_type;
    v.push_back(item_as<T>(value));
  });
}
void list_insert(const IValue& list, size_t i, const IValue& value) {
  visit_list(list, [&](auto& v) {
    using T = typename std::remove_reference_t<decltype(v)>::value_type;
    v.insert(v.begin() + static_cast<long>(i), item_as<T>(value));
  });
}
void list_erase(const IValue& list, size_t i) {
  visit_list(list, [&](auto& v) { v.erase(v.begin() + static_cast<long>(i)); });
}
void list_resize(const IValue& list, size_t n) {
  visit_list(list, [&](auto& v) { v.resize(n); });
}
size_t checked_index(int64_t i, size_t n, const char* what) {
  const int64_t at = i < 0 ? i + static_cast<int64_t>(n) : i;
  if (at < 0 || at >= static_cast<int64_t>(n))
    throw c10::IndexError(c10::str(what, " index out of range"));
  return static_cast<size_t>(at);
}

// ---- any value --------------------------------------------------------------------------------
namespace {

bool is_number(const IValue& v) {
  return v.tag == Tag::Int || v.tag == Tag::Double || v.tag == Tag::Bool || v.tag == Tag::Complex;
}
std::complex<double> complex_of(const IValue& v) {
  if (v.tag == Tag::Complex) return {v.bits.d[0], v.bits.d[1]};
  return {v.tag == Tag::Double ? v.bits.d[0] : static_cast<double>(v.bits.i), 0.0};
}
bool sequences_equal(const std::vector<IValue>& a, const std::vector<IValue>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), values_equal);
}
bool dicts_equal(const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a) {
    const IValue* other = b.find(key);
    if (!other || !values_equal(value, *other)) return false;
  }
  return true;
}
bool lists_equal(const IValue& a, const IValue& b) {
  const size_t n = list_size(a);
  if (n != list_size(b)) return false;
  for (size_t i = 0; i < n; ++i)
    if (!values_equal(list_get(a, i), list_get(b, i))) return false;
  return true;
}

} // namespace

bool values_equal(const IValue& a, const IValue& b) {
  if (is_number(a) && is_number(b)) {
    if (a.tag != Tag::Double && b.tag != Tag::Double && a.tag != Tag::Complex &&
        b.tag != Tag::Complex)
      return a.bits.i == b.bits.i;
    return complex_of(a) == complex_of(b);
  }
  if (is_list(a) && is_list(b)) return lists_equal(a, b);
  if (a.tag != b.tag) return false;
  switch (a.tag) {
  case Tag::None:
    return true;
  case Tag::String:
    return a.toStringRef() == b.toStringRef();
  case Tag::Tensor:
    if (a.ref.get() == b.ref.get()) return true;
    return a.toTensor().sizes() == b.toTensor().sizes() && at::equal(a.toTensor(), b.toTensor());
  case Tag::Device:
  case Tag::ScalarType:
  case Tag::Layout:
  case Tag::MemoryFormat:
    return a.bits.i == b.bits.i;
  default:
    break;
  }
  if (a.ref.get() == b.ref.get()) return true;
  const Tuple *ta = as<Tuple>(a), *tb = as<Tuple>(b);
  if (ta && tb) return sequences_equal(ta->items, tb->items);
  const Dict *da = as<Dict>(a), *db = as<Dict>(b);
  if (da && db) return dicts_equal(*da, *db);
  const EnumValue *ea = as<EnumValue>(a), *eb = as<EnumValue>(b);
  return ea && eb && ea->name == eb->name && ea->type->name == eb->type->name;
}

bool same_object(const IValue& a, const IValue& b) {
  if (a.tag == Tag::None || b.tag == Tag::None) return a.tag == b.tag;
  if (a.ref || b.ref)
    return a.ref.get() == b.ref.get() ||
           (!is_list(a) && !a.isTensor() && !as<Dict>(a) && values_equal(a, b));
  return a.tag == b.tag && values_equal(a, b);
}

bool less(const IValue& a, const IValue& b) {
  if (a.tag == Tag::String && b.tag == Tag::String) return a.toStringRef() < b.toStringRef();
  const Tuple *ta = as<Tuple>(a), *tb = as<Tuple>(b);
  const bool alike = bool(ta) == bool(tb) && is_list(a) == is_list(b) &&
                     (a.tag == Tag::String) == (b.tag == Tag::String);
  TORCH_CHECK(alike, "Only values of same type can be compared, not ", a.kind(), " and ", b.kind());
  TORCH_CHECK(ta || a.tag != Tag::Opaque, "values of type ", as<Dict>(a) ? "dictionary" : "object",
              " are not sortable");
  if (ta && tb)
    return std::lexicographical_compare(ta->items.begin(), ta->items.end(), tb->items.begin(),
                                        tb->items.end(), less);
  if (is_list(a) && is_list(b)) {
    const size_t n = std::min(list_size(a), list_size(b));
    for (size_t i = 0; i < n; ++i) {
      const IValue x = list_get(a, i), y = list_get(b, i);
      if (less(x, y)) return true;
      if (less(y, x)) return false;
    }
    return list_size(a) < list_size(b);
  }
  if (a.isTensor() || b.isTensor()) return a.toScalar().toDouble() < b.toScalar().toDouble();
  if ((a.tag == Tag::Int || a.tag == Tag::Bool) && (b.tag == Tag::Int || b.tag == Tag::Bool))
    return a.bits.i < b.bits.i;
  return a.toDouble() < b.toDouble();
}

std::string float_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  char text[40];
  const double size = std::fabs(v);
  const bool plain = v == 0 || (size >= 1e-4 && size < 1e16);
  const auto end = std::to_chars(text, text + sizeof text, v,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string out(text, end.ptr);
  if (plain && out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string quoted_text(const std::string& v) {
  const char mark = v.find('\'') != v.npos && v.find('"') == v.npos ? '"' : '\'';
  std::string out(1, mark);
  for (const char c : v) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (c == mark || c == '\\')
      (out += '\\') += c;
    else
      out += c;
  }
  return out + mark;
}

namespace {

template <class Items, class Text>
std::string joined(const char* open, const Items& items, const char* close, Text&& text) {
  std::string out = open;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ", ";
    first = false;
    out += text(item);
  }
  return out + close;
}
std::string item_text(const IValue& v) { return value_text(v, true); }
std::string tensor_text(const at::Tensor& tensor) {
  std::ostringstream out;
  at::print(out, tensor);
  return out.str();
}

std::string complex_text(const IValue& v) {
  auto part = [](double d) {
    std::string text = float_text(d);
    if (text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0)
      text.resize(text.size() - 2);
    return text;
  };
  const std::string imag = part(v.bits.d[1]) + "j";
  if (v.bits.d[0] == 0) return imag;
  return "(" + part(v.bits.d[0]) + (imag[0] == '-' ? "" : "+") + imag + ")";
}

std::string boxed_text(const IValue& v) {
  if (const Tuple* t = as<Tuple>(v)) {
    if (t->type && t->type->fields.size() == t->items.size()) {
      std::string out = t->type->name.substr(t->type->name.rfind('.') + 1) + "(";
      for (size_t i = 0; i < t->items.size(); ++i)
        out += (i ? ", " : "") + t->type->fields[i] + "=" + item_text(t->items[i]);
      return out + ")";
    }
    return joined("(", t->items, t->items.size() == 1 ? ",)" : ")", item_text);
  }
  if (const Dict* d = as<Dict>(v)) {
    return joined("{", *d, "}",
                  [](const auto& e) { return item_text(e.first) + ": " + item_text(e.second); });
  }
  if (const EnumValue* e = as<EnumValue>(v))
    return e->type->name.substr(e->type->name.rfind('.') + 1) + "." + e->name;
  if (const Object* o = as<Object>(v)) return "<" + o->cls->name + " object>";
  if (as<Future>(v)) return "<Future>";
  return "<object>";
}

} // namespace

std::string value_text(const IValue& v, bool quoted) {
  switch (v.tag) {
  case Tag::None:
    return "None";
  case Tag::Int:
    return std::to_string(v.bits.i);
  case Tag::Bool:
    return v.bits.i ? "True" : "False";
  case Tag::Double:
    return float_text(v.bits.d[0]);
  case Tag::Complex:
    return complex_text(v);
  case Tag::String:
    return quoted ? quoted_text(v.toStringRef()) : v.toStringRef();
  case Tag::Tensor:
    return tensor_text(v.toTensor());
  case Tag::Device: {
    std::string out;
    append(out, v.toDevice());
    return out;
  }
  case Tag::ScalarType:
  case Tag::Layout:
  case Tag::MemoryFormat:
    return std::to_string(v.bits.i);
  case Tag::Opaque:
    return boxed_text(v);
  default:
    break;
  }
  if (is_list(v)) {
    std::vector<IValue> items;
    for (size_t i = 0; i < list_size(v); ++i) items.push_back(list_get(v, i));
    return joined("[", items, "]", item_text);
  }
  return c10::str("<", v.kind(), ">");
}

namespace {

bool list_matches(const IValue& v, const Type& element) {
  using K = Type::Kind;
  if (!is_list(v)) return false;
  // A typed vector says what it holds, also when it is empty.
  switch (v.tag) {
  case Tag::IntList:
    if (element.kind == K::Int) return true;
    break;
  case Tag::DoubleList:
    if (element.kind == K::Float) return true;
    break;
  case Tag::BoolList:
    if (element.kind == K::Bool) return true;
    break;
  case Tag::TensorList:
    if (element.kind == K::Tensor) return true;
    break;
  default: {
    for (size_t i = 0; i < list_size(v); ++i)
      if (!is_instance(list_get(v, i), element)) return false;
    return true;
  }
  }
  if (element.kind == K::Any) return true;
  for (size_t i = 0; i < list_size(v); ++i)
    if (!is_instance(list_get(v, i), element)) return false;
  return list_size(v) > 0;
}

bool boxed_matches(const IValue& v, const Type& type) {
  using K = Type::Kind;
  switch (type.kind) {
  case K::Dict: {
    const Dict* dict = as<Dict>(v);
    if (!dict) return false;
    for (const auto& [key, value] : *dict)
      if (!is_instance(key, *type.inner[0]) || !is_instance(value, *type.inner[1])) return false;
    return true;
  }
  case K::Tuple: {
    const Tuple* tuple = as<Tuple>(v);
    if (!tuple || tuple->items.size() != type.inner.size()) return false;
    if (!type.fields.empty() && tuple->type && tuple->type->name != type.name) return false;
    for (size_t i = 0; i < type.inner.size(); ++i)
      if (!is_instance(tuple->items[i], *type.inner[i])) return false;
    return true;
  }
  case K::Class: {
    const Object* object = as<Object>(v);
    return object && type.cls && object->cls->name == type.cls->name;
  }
  case K::Interface: {
    const Object* object = as<Object>(v);
    if (!object) return false;
    for (const std::string& method : type.methods)
      if (!object->cls->methods.count(method)) return false;
    return true;
  }
  case K::Enum: {
    const EnumValue* member = as<EnumValue>(v);
    return member && member->type->name == type.name;
  }
  case K::Future:
    return as<Future>(v) != nullptr;
  case K::AnyTuple:
    return as<Tuple>(v) != nullptr;
  case K::Python:
    return v.tag == Tag::Opaque;
  default:
    return false;
  }
}

} // namespace

bool is_instance(const IValue& v, const Type& type) {
  using K = Type::Kind;
  switch (type.kind) {
  case K::Any:
    return true;
  case K::Tensor:
    return v.tag == Tag::Tensor;
  case K::Int:
    return v.tag == Tag::Int || v.tag == Tag::ScalarType || v.tag == Tag::Layout ||
           v.tag == Tag::MemoryFormat;
  case K::Float:
    return v.tag == Tag::Double;
  case K::Bool:
    return v.tag == Tag::Bool;
  case K::Complex:
    return v.tag == Tag::Complex;
  case K::Number:
    return v.tag == Tag::Int || v.tag == Tag::Double || v.tag == Tag::Complex;
  case K::Str:
    return v.tag == Tag::String;
  case K::None:
    return v.tag == Tag::None;
  case K::Device:
    return v.tag == Tag::Device;
  case K::Generator:
    return v.tag == Tag::Generator || v.tag == Tag::None;
  case K::Storage:
    return v.tag == Tag::Storage;
  case K::AnyList:
    return is_list(v);
  case K::List:
    return list_matches(v, *type.inner[0]);
  case K::Optional:
    return v.isNone() || is_instance(v, *type.inner[0]);
  case K::Union:
    return std::any_of(type.inner.begin(), type.inner.end(),
                       [&](const TypePtr& t) { return is_instance(v, *t); });
  default:
    return boxed_matches(v, type);
  }
}

} // namespace torch::jit
