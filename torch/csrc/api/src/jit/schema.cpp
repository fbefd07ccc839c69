// Types by name, and schemas read from their text: the same text that Python reads, so that both
// front ends see the same operators.
#include <torch/csrc/api/src/jit/schema.h>

#include <ATen/core/FunctionSchema.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>

namespace torch::jit::source {

using Kind = Type::Kind;

// ---- types
namespace {

TypePtr make_type(Kind kind, std::string name, std::vector<TypePtr> inner = {}) {
  auto out = std::make_shared<Type>();
  out->kind = kind;
  out->name = std::move(name);
  out->inner = std::move(inner);
  return out;
}
std::string listed(const std::vector<TypePtr>& types) {
  std::string out;
  for (const TypePtr& type : types) out += (out.empty() ? "" : ", ") + type->name;
  return out;
}
// The types a value of this type can have.
std::vector<TypePtr> members_of(const TypePtr& type) {
  if (type->kind == Kind::Union) return type->inner;
  if (type->kind != Kind::Optional) return {type};
  std::vector<TypePtr> out = members_of(type->inner[0]);
  out.push_back(simple_type(Kind::None));
  return out;
}

} // namespace

TypePtr simple_type(Kind kind) {
  static const std::vector<TypePtr> known = [] {
    constexpr std::pair<Kind, const char*> names[] = {
        {Kind::Tensor, "Tensor"},       {Kind::Int, "int"},         {Kind::Float, "float"},
        {Kind::Bool, "bool"},           {Kind::Complex, "complex"}, {Kind::Str, "str"},
        {Kind::Number, "number"},       {Kind::None, "NoneType"},   {Kind::Device, "Device"},
        {Kind::Generator, "Generator"}, {Kind::Storage, "Storage"}, {Kind::Any, "Any"},
        {Kind::AnyList, "list"},        {Kind::AnyTuple, "tuple"},  {Kind::Stream, "Stream"},
        {Kind::Enum, "AnyEnumType"},
    };
    std::vector<TypePtr> out(size_t(Kind::Function) + 1);
    for (const auto& [kind, name] : names) out[size_t(kind)] = make_type(kind, name);
    return out;
  }();
  return known[size_t(kind)];
}
TypePtr list_of(const TypePtr& e) { return make_type(Kind::List, "List[" + e->name + "]", {e}); }
TypePtr optional_of(const TypePtr& e) {
  if (e->kind == Kind::None || e->kind == Kind::Any || e->kind == Kind::Optional) return e;
  if (e->kind == Kind::Union) {
    std::vector<TypePtr> members = e->inner;
    members.push_back(simple_type(Kind::None));
    return union_of(members);
  }
  return make_type(Kind::Optional, "Optional[" + e->name + "]", {e});
}
TypePtr future_of(const TypePtr& e) {
  return make_type(Kind::Future, "Future[" + e->name + "]", {e});
}
TypePtr dict_of(const TypePtr& key, const TypePtr& value) {
  return make_type(Kind::Dict, "Dict[" + key->name + ", " + value->name + "]", {key, value});
}
TypePtr tuple_of(std::vector<TypePtr> elements) {
  std::string name = "Tuple[" + (elements.empty() ? std::string("()") : listed(elements)) + "]";
  return make_type(Kind::Tuple, std::move(name), std::move(elements));
}
TypePtr union_of(const std::vector<TypePtr>& members) {
  std::vector<TypePtr> flat;
  for (const TypePtr& member : members)
    for (const TypePtr& part : members_of(member))
      if (std::none_of(flat.begin(), flat.end(), [&](const TypePtr& t) { return same(t, part); }))
        flat.push_back(part);
  if (flat.size() == 1) return flat[0];
  if (flat.size() == 2 && (flat[0]->kind == Kind::None || flat[1]->kind == Kind::None))
    return optional_of(flat[flat[0]->kind == Kind::None ? 1 : 0]);
  return make_type(Kind::Union, "Union[" + listed(flat) + "]", flat);
}

bool is_subtype(const TypePtr& a, const TypePtr& b) {
  if (same(a, b) || b->kind == Kind::Any) return true;
  if (a->kind == Kind::Union || a->kind == Kind::Optional) {
    const std::vector<TypePtr> members = members_of(a);
    return std::all_of(members.begin(), members.end(),
                       [&](const TypePtr& t) { return is_subtype(t, b); });
  }
  if (b->kind == Kind::Optional) return a->kind == Kind::None || is_subtype(a, b->inner[0]);
  if (b->kind == Kind::Union)
    return std::any_of(b->inner.begin(), b->inner.end(),
                       [&](const TypePtr& t) { return is_subtype(a, t); });
  if (b->kind == Kind::Number)
    return a->kind == Kind::Int || a->kind == Kind::Float || a->kind == Kind::Complex;
  if (b->kind == Kind::AnyList) return a->kind == Kind::List;
  if (b->kind == Kind::AnyTuple) return a->kind == Kind::Tuple;
  if (b->kind == Kind::Enum && b->name == "AnyEnumType") return a->kind == Kind::Enum;
  if (a->kind == Kind::Tuple && b->kind == Kind::Tuple) {
    if (!b->fields.empty() || a->inner.size() != b->inner.size()) return false;
    for (size_t i = 0; i < a->inner.size(); ++i)
      if (!is_subtype(a->inner[i], b->inner[i])) return false;
    return true;
  }
  if (a->kind == Kind::Future && b->kind == Kind::Future)
    return is_subtype(a->inner[0], b->inner[0]);
  if (b->kind == Kind::Interface && a->kind == Kind::Class) return true; // looked up when called
  return false;
}

TypePtr unify(const TypePtr& a, const TypePtr& b) {
  if (is_subtype(a, b)) return b;
  if (is_subtype(b, a)) return a;
  if (a->kind == Kind::None) return optional_of(b);
  if (b->kind == Kind::None) return optional_of(a);
  if (a->kind == Kind::Optional || b->kind == Kind::Optional) {
    const TypePtr inner = unify(plain(a), plain(b));
    return inner ? optional_of(inner) : nullptr;
  }
  if (a->kind == Kind::Tuple && b->kind == Kind::Tuple && a->inner.size() == b->inner.size()) {
    std::vector<TypePtr> parts;
    for (size_t i = 0; i < a->inner.size(); ++i) {
      parts.push_back(unify(a->inner[i], b->inner[i]));
      if (!parts.back()) return nullptr;
    }
    return tuple_of(std::move(parts));
  }
  return nullptr;
}

TypePtr type_of_value(const IValue& v) {
  using Tag = IValue::Tag;
  switch (v.tag) {
  case Tag::None:
    return simple_type(Kind::None);
  case Tag::Tensor:
    return simple_type(Kind::Tensor);
  case Tag::Double:
    return simple_type(Kind::Float);
  case Tag::Bool:
    return simple_type(Kind::Bool);
  case Tag::Complex:
    return simple_type(Kind::Complex);
  case Tag::String:
    return simple_type(Kind::Str);
  case Tag::Device:
    return simple_type(Kind::Device);
  case Tag::Int:
  case Tag::ScalarType:
  case Tag::Layout:
  case Tag::MemoryFormat:
    return simple_type(Kind::Int);
  case Tag::IntList:
    return list_of(simple_type(Kind::Int));
  case Tag::DoubleList:
    return list_of(simple_type(Kind::Float));
  case Tag::BoolList:
    return list_of(simple_type(Kind::Bool));
  case Tag::TensorList:
    return list_of(simple_type(Kind::Tensor));
  case Tag::List:
    return list_of(v.toListRef().empty() ? simple_type(Kind::Any)
                                         : type_of_value(v.toListRef()[0]));
  default:
    break;
  }
  if (const Tuple* tuple = as<Tuple>(v)) {
    if (tuple->type) return tuple->type;
    std::vector<TypePtr> parts;
    for (const IValue& item : tuple->items) parts.push_back(type_of_value(item));
    return tuple_of(std::move(parts));
  }
  if (const EnumValue* e = as<EnumValue>(v)) return e->type;
  if (const Dict* dict = as<Dict>(v); dict && dict->size() > 0) {
    const auto [key, value] = *dict->begin();
    return dict_of(type_of_value(key), type_of_value(value));
  }
  return simple_type(Kind::Any);
}

// ---- matching
bool has_variable(const Type& type) {
  return is_variable(type) || std::any_of(type.inner.begin(), type.inner.end(),
                                          [](const TypePtr& t) { return has_variable(*t); });
}

bool bind_type(const TypePtr& formal, const TypePtr& actual, Bindings& bound) {
  if (is_variable(*formal)) {
    const auto [found, added] = bound.try_emplace(formal->name, actual);
    return added || is_subtype(actual, found->second);
  }
  if (formal->kind == Kind::Optional) {
    if (actual->kind == Kind::None) return true;
    return bind_type(formal->inner[0], plain(actual), bound);
  }
  if (formal->kind == Kind::List && actual->kind == Kind::List) {
    const TypePtr &want = formal->inner[0], &have = actual->inner[0];
    if (want->kind == Kind::Optional && same(want->inner[0], have)) return true;
    if (want->kind == Kind::Number && is_subtype(have, want)) return true;
    return has_variable(*want) ? bind_type(want, have, bound) : same(formal, actual);
  }
  if (formal->kind == actual->kind && has_variable(*formal)) {
    if (formal->inner.size() != actual->inner.size()) return false;
    for (size_t i = 0; i < formal->inner.size(); ++i)
      if (!bind_type(formal->inner[i], actual->inner[i], bound)) return false;
    return true;
  }
  return is_subtype(actual, formal);
}

TypePtr substitute(const TypePtr& type, const Bindings& bound) {
  if (is_variable(*type)) {
    const auto found = bound.find(type->name);
    return found == bound.end() ? simple_type(Kind::Any) : found->second;
  }
  if (!has_variable(*type)) return type;
  std::vector<TypePtr> parts;
  for (const TypePtr& part : type->inner) parts.push_back(substitute(part, bound));
  switch (type->kind) {
  case Kind::List:
    return list_of(parts[0]);
  case Kind::Optional:
    return optional_of(parts[0]);
  case Kind::Future:
    return future_of(parts[0]);
  case Kind::Dict:
    return dict_of(parts[0], parts[1]);
  default:
    return tuple_of(std::move(parts));
  }
}

// ---- the text of schemas
namespace {

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  Schema schema() {
    Schema out;
    out.text = text_;
    const size_t open = text_.find('(');
    TORCH_CHECK(open != std::string::npos, "not a schema: ", text_);
    const std::string head = text_.substr(0, open);
    const size_t dot = head.find('.');
    out.name = head.substr(0, dot);
    if (dot != std::string::npos) out.overload = head.substr(dot + 1);
    at_ = open + 1;
    bool named = false;
    while (!accept(")")) {
      if (accept("...")) {
        out.vararg = true;
      } else if (accept("*")) {
        named = true;
      } else {
        out.arguments.push_back(argument());
        out.arguments.back().kwarg_only = named;
      }
      accept(",");
    }
    expect("->");
    returns(out);
    return out;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view token) {
    skip();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    TORCH_CHECK(accept(token), "expected '", token, "' in the schema ", text_);
  }
  std::string word() {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    return text_.substr(start, at_ - start);
  }

  struct Typed {
    TypePtr type;
    int64_t size = -1;
  };
  Typed type() {
    Typed out;
    if (accept("(")) {
      std::vector<TypePtr> parts;
      while (!accept(")")) {
        parts.push_back(type().type);
        accept(",");
      }
      out.type = parts.size() == 1 ? parts[0] : tuple_of(std::move(parts));
    } else {
      out.type = named();
    }
    while (true) {
      if (accept("(")) { // an alias
        while (at_ < text_.size() && text_[at_++] != ')') {
        }
      } else if (accept("[")) {
        if (!accept("]")) {
          out.size = std::atoll(word().c_str());
          expect("]");
        }
        out.type = list_of(out.type);
      } else if (accept("?")) {
        out.type = out.type->kind == Kind::Optional || is_variable(*out.type)
                       ? make_type(Kind::Optional, "Optional[" + out.type->name + "]", {out.type})
                       : optional_of(out.type);
      } else {
        return out;
      }
    }
  }
  TypePtr named() {
    const std::string name = word();
    if (name == "Dict") {
      expect("(");
      const TypePtr key = type().type;
      expect(",");
      const TypePtr value = type().type;
      expect(")");
      return make_type(Kind::Dict, "Dict[" + key->name + ", " + value->name + "]", {key, value});
    }
    if (name == "Future") {
      expect("(");
      const TypePtr inner = type().type;
      expect(")");
      return future_of(inner);
    }
    static const std::unordered_map<std::string, Kind> names = {
        {"Tensor", Kind::Tensor},   {"int", Kind::Int},          {"SymInt", Kind::Int},
        {"float", Kind::Float},     {"SymFloat", Kind::Float},   {"bool", Kind::Bool},
        {"SymBool", Kind::Bool},    {"complex", Kind::Complex},  {"str", Kind::Str},
        {"Scalar", Kind::Number},   {"number", Kind::Number},    {"ScalarType", Kind::Int},
        {"Layout", Kind::Int},      {"MemoryFormat", Kind::Int}, {"QScheme", Kind::Int},
        {"DeviceIndex", Kind::Int}, {"Device", Kind::Device},    {"Generator", Kind::Generator},
        {"Storage", Kind::Storage}, {"Stream", Kind::Stream},    {"Any", Kind::Any},
        {"NoneType", Kind::None},   {"Dimname", Kind::Str},      {"AnyEnumType", Kind::Enum},
    };
    const auto found = names.find(name);
    return found != names.end() ? simple_type(found->second) : make_type(Kind::Any, "$" + name);
  }

  Formal argument() {
    Formal out;
    const Typed typed = type();
    out.type = typed.type;
    out.size = typed.size;
    out.name = word();
    if (accept("=")) {
      out.has_default = true;
      out.value = value();
      const TypePtr& kind = plain(out.type);
      if (kind->kind == Kind::Float && out.value.isInt())
        out.value = IValue(static_cast<double>(out.value.toInt()));
      if (kind->kind == Kind::List && !is_list(out.value) && !out.value.isNone()) {
        const IValue item = out.value;
        out.value = new_list(*kind->inner[0]);
        for (int64_t i = 0; i < std::max<int64_t>(out.size, 1); ++i) list_push(out.value, item);
      } else if (kind->kind == Kind::List && out.value.tag == IValue::Tag::List) {
        const std::vector<IValue> items = out.value.toListRef();
        out.value = new_list(*kind->inner[0]);
        for (const IValue& item : items) list_push(out.value, item);
      }
    }
    return out;
  }
  IValue value() {
    skip();
    if (accept("[")) {
      std::vector<IValue> items;
      while (!accept("]")) {
        items.push_back(value());
        accept(",");
      }
      return IValue(std::move(items));
    }
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) return quoted();
    const bool negative = accept("-");
    const std::string text = number_or_word();
    static const std::unordered_map<std::string, IValue> names = {
        {"None", IValue()},
        {"True", IValue(true)},
        {"False", IValue(false)},
        {"contiguous_format", IValue(0)},
        {"preserve_format", IValue(1)},
        {"channels_last", IValue(2)},
        {"channels_last_3d", IValue(3)},
        {"strided", IValue(0)},
        {"Mean", IValue(1)},
        {"Sum", IValue(2)},
        {"long", IValue(4)},
        {"float", IValue(6)},
        {"double", IValue(7)},
        {"inf", IValue(std::numeric_limits<double>::infinity())},
    };
    const auto found = names.find(text);
    if (found != names.end())
      return negative && found->second.isDouble() ? IValue(-found->second.toDouble())
                                                  : found->second;
    if (text.find_first_of(".e") == std::string::npos) {
      const int64_t number = std::atoll(text.c_str());
      return IValue(negative ? -number : number);
    }
    const double number = std::strtod(text.c_str(), nullptr);
    return IValue(negative ? -number : number);
  }
  std::string number_or_word() {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' ||
            text_[at_] == '.' || (text_[at_] == '-' && text_[at_ - 1] == 'e')))
      ++at_;
    return text_.substr(start, at_ - start);
  }
  IValue quoted() {
    const char quote = text_[at_++];
    std::string out;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        const size_t code = std::string_view("ntr").find(text_[at_]);
        out += code == std::string_view::npos ? text_[at_] : "\n\t\r"[code];
      } else {
        out += text_[at_];
      }
      ++at_;
    }
    ++at_;
    return IValue(std::move(out));
  }
  void returns(Schema& out) {
    if (accept("...")) return;
    if (!accept("(")) {
      out.returns.push_back(type().type);
      return;
    }
    while (!accept(")")) {
      if (accept("...")) continue;
      out.returns.push_back(type().type);
      word(); // a name
      accept(",");
    }
  }

  const std::string& text_;
  size_t at_ = 0;
};

const std::unordered_map<std::string, std::vector<size_t>>& builtin_index() {
  static const auto index = [] {
    std::unordered_map<std::string, std::vector<size_t>> out;
    const std::vector<Builtin>& all = builtins();
    for (size_t i = 0; i < all.size(); ++i)
      out[all[i].schema.substr(0, all[i].schema.find_first_of(".("))].push_back(i);
    return out;
  }();
  return index;
}

} // namespace

std::vector<Schema> schemas_of(const std::string& name) {
  std::vector<Schema> out;
  for (const at::OperatorEntry* entry : at::Dispatcher::singleton().overloads(name)) {
    const std::string text = entry->schema().str();
    out.push_back(Reader(text).schema());
    out.back().entry = entry;
  }
  const auto found = builtin_index().find(name);
  if (found != builtin_index().end())
    for (const size_t i : found->second) {
      out.push_back(Reader(builtins()[i].schema).schema());
      out.back().builtin = builtins()[i].fn;
    }
  static const std::unordered_map<std::string, std::string> same_as = {
      {"aten::__and__", "aten::bitwise_and"},
      {"aten::__or__", "aten::bitwise_or"},
      {"aten::__xor__", "aten::bitwise_xor"},
      {"aten::__lshift__", "aten::bitwise_left_shift"},
      {"aten::__rshift__", "aten::bitwise_right_shift"},
  };
  const auto other = same_as.find(name);
  if (other != same_as.end())
    for (Schema& schema : schemas_of(other->second)) out.push_back(std::move(schema));
  return out;
}

} // namespace torch::jit::source
