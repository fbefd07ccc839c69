// Parser and printer of operator schemas.
#include <ATen/core/FunctionSchema.h>

#include <cctype>
#include <cstdlib>

namespace at {
namespace {

struct TypeName {
  const char* text;
  SchemaType::Kind kind;
};
using Kind = SchemaType::Kind;
const TypeName kTypes[] = {
    {"Tensor", Kind::Tensor},
    {"int", Kind::Int},
    {"SymInt", Kind::SymInt},
    {"float", Kind::Float},
    {"bool", Kind::Bool},
    {"str", Kind::Str},
    {"Scalar", Kind::Scalar},
    {"ScalarType", Kind::ScalarType},
    {"Layout", Kind::Layout},
    {"Device", Kind::Device},
    {"MemoryFormat", Kind::MemoryFormat},
    {"Generator", Kind::Generator},
    {"Storage", Kind::Storage},
    {"Stream", Kind::Stream},
    {"complex", Kind::Complex},
    {"Dimname", Kind::Dimname},
    {"QScheme", Kind::QScheme},
    {"Any", Kind::Any},
    {"SymBool", Kind::Bool},
    {"SymFloat", Kind::Float},
    {"DeviceIndex", Kind::Int},
    {"number", Kind::Scalar},
    {"t", Kind::Var},
    {"NoneType", Kind::None},
};

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  FunctionSchema schema() {
    FunctionSchema out;
    out.name = word();
    if (accept("::")) out.name += "::" + word();
    if (accept(".")) out.overload = word();
    expect("(");
    bool kwarg_only = false;
    while (!accept(")")) {
      if (accept("...")) {
        out.is_vararg = true;
        for (const SchemaArgument& argument : out.arguments) {
          if (argument.has_default) fail("schemas with vararg (...) can't have default value args");
        }
      } else if (accept("*")) {
        kwarg_only = true;
      } else {
        SchemaArgument argument = parse_argument();
        argument.kwarg_only = kwarg_only;
        argument.is_out = kwarg_only && argument.alias && argument.alias->is_write;
        out.arguments.push_back(std::move(argument));
      }
      if (!accept(",") && !peek(")")) fail("expected ',' or ')'");
    }
    expect("->");
    parse_returns(out);
    skip();
    if (at_ != text_.size()) fail("unexpected text after the schema");
    return out;
  }

 private:
  void parse_returns(FunctionSchema& out) {
    if (accept("...")) {
      out.is_varret = true;
      return;
    }
    if (!accept("(")) {
      out.returns.push_back(parse_return());
      return;
    }
    while (!accept(")")) {
      if (accept("..."))
        out.is_varret = true;
      else
        out.returns.push_back(parse_return());
      if (!accept(",") && !peek(")")) fail("expected ',' or ')'");
    }
  }

  SchemaArgument parse_return() {
    SchemaArgument out = parse_type();
    skip();
    if (at_ < text_.size() &&
        (std::isalpha(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      out.name = word();
    return out;
  }

  SchemaArgument parse_argument() {
    SchemaArgument out = parse_type();
    out.name = word();
    if (accept("=")) {
      out.has_default = true;
      skip();
      const size_t start = at_;
      out.default_value = parse_default(out.type);
      out.default_text = text_.substr(start, at_ - start);
    }
    return out;
  }

  // The type before brackets, question marks and aliases.
  SchemaType parse_plain_type() {
    if (accept("(")) return SchemaType::container(Kind::Tuple, parse_contained());
    const std::string name = word();
    if (name == "__torch__") {
      SchemaType out{Kind::Class};
      out.class_name = name;
      while (accept(".")) out.class_name += "." + word();
      return out;
    }
    if (name == "Dict") {
      expect("(");
      SchemaType out = SchemaType::container(Kind::Dict, parse_contained());
      if (out.contained.size() != 2) fail("a Dict has a type of keys and one of values");
      return out;
    }
    for (const TypeName& t : kTypes) {
      if (name == t.text) return {t.kind};
    }
    fail("unknown type '" + name + "'");
  }
  std::vector<SchemaType> parse_contained() {
    std::vector<SchemaType> out;
    while (!accept(")")) {
      out.push_back(parse_type().type);
      if (!accept(",") && !peek(")")) fail("expected ',' or ')'");
    }
    return out;
  }

  SchemaArgument parse_type() {
    SchemaArgument out;
    out.type = parse_plain_type();
    if (peek("(")) out.alias = parse_alias();
    for (;;) {
      if (accept("?")) {
        if (peek("["))
          out.type.element_optional = true;
        else
          out.type.optional = true;
      } else if (accept("[")) {
        if (out.type.is_list) out.type = SchemaType::container(Kind::List, {out.type});
        out.type.is_list = out.type.kind != Kind::List;
        skip();
        if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])))
          out.type.list_size = integer();
        expect("]");
        if (!out.alias && peek("(")) out.alias = parse_alias();
      } else {
        return out;
      }
    }
  }

  AliasInfo parse_alias() {
    AliasInfo out;
    expect("(");
    out.before = alias_set();
    if (accept("!")) out.is_write = true;
    if (accept("->")) {
      out.after = alias_set();
      if (accept("!")) out.is_write = true;
    }
    expect(")");
    return out;
  }
  std::string alias_set() {
    if (accept("*")) return "*";
    std::string out = word();
    while (accept("|")) out += "|" + word();
    return out;
  }

  IValue parse_default(const SchemaType& type) {
    skip();
    if (accept("[")) return parse_list(type);
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) return IValue(quoted());
    if (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) ||
                               text_[at_] == '-' || text_[at_] == '.'))
      return number(type);
    const std::string name = word();
    if (name == "None") return IValue();
    if (name == "True") return IValue(true);
    if (name == "False") return IValue(false);
    if (name == "inf") return IValue(__builtin_inf());
    if (name == "nan") return IValue(__builtin_nan(""));
    if (name == "contiguous_format") return IValue(MemoryFormat::Contiguous);
    if (name == "preserve_format") return IValue(MemoryFormat::Preserve);
    if (name == "channels_last") return IValue(MemoryFormat::ChannelsLast);
    if (name == "strided") return IValue(Layout::Strided);
    if (name == "Mean") return IValue(int64_t(1));
    if (name == "Sum") return IValue(int64_t(2));
    for (int i = 0; i < c10::NumScalarTypes; ++i) {
      const c10::ScalarTypeInfo& info = c10::kScalarTypeInfo[i];
      if (name == info.name || (*info.legacy_name && name == info.legacy_name))
        return IValue(static_cast<ScalarType>(i));
    }
    fail("unknown default value '" + name + "'");
  }

  IValue parse_list(const SchemaType& type) {
    std::vector<int64_t> ints;
    std::vector<double> doubles;
    std::vector<bool> bools;
    while (!accept("]")) {
      if (accept("True"))
        bools.push_back(true);
      else if (accept("False"))
        bools.push_back(false);
      else {
        const IValue v = number(type);
        if (v.isInt()) ints.push_back(v.toInt());
        doubles.push_back(v.toDouble());
      }
      if (!accept(",") && !peek("]")) fail("expected ',' or ']'");
    }
    if (type.kind == Kind::Bool) return IValue(bools);
    if (type.kind == Kind::Float) return IValue(doubles);
    if (type.kind == Kind::Tensor) return IValue(std::vector<Tensor>());
    return IValue(ints);
  }

  IValue number(const SchemaType& type) {
    skip();
    char* end = nullptr;
    const char* start = text_.c_str() + at_;
    const double d = std::strtod(start, &end);
    if (end == start) fail("expected a number");
    const std::string spelled(start, static_cast<const char*>(end));
    at_ += end - start;
    const bool integral = spelled.find_first_of(".eEinfa") == std::string::npos;
    if (type.kind == Kind::Float || !integral) return IValue(d);
    return IValue(static_cast<int64_t>(std::strtoll(spelled.c_str(), nullptr, 10)));
  }
  int64_t integer() {
    const IValue v = number(SchemaType{Kind::Int});
    return v.toInt();
  }
  std::string quoted() {
    const char mark = text_[at_++];
    const size_t end = text_.find(mark, at_);
    if (end == std::string::npos) fail("unterminated string");
    std::string out = text_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool peek(const char* token) {
    skip();
    return text_.compare(at_, std::char_traits<char>::length(token), token) == 0;
  }
  bool accept(const char* token) {
    if (!peek(token)) return false;
    at_ += std::char_traits<char>::length(token);
    return true;
  }
  void expect(const char* token) {
    if (!accept(token)) fail(std::string("expected '") + token + "'");
  }
  std::string word() {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    if (start == at_) fail("expected a name");
    return text_.substr(start, at_ - start);
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw c10::Error(
        c10::str("cannot parse the schema '", text_, "': ", why, " at position ", at_));
  }

  const std::string& text_;
  size_t at_ = 0;
};

std::string alias_text(const AliasInfo& alias) {
  std::string out = "(" + alias.before;
  if (alias.is_write) out += "!";
  if (!alias.after.empty()) out += " -> " + alias.after;
  return out + ")";
}
} // namespace

FunctionSchema FunctionSchema::parse(const std::string& text) { return Parser(text).schema(); }

SchemaType SchemaType::list_of(SchemaType element) {
  if (element.is_list || element.kind == Kind::List) return container(Kind::List, {element});
  element.element_optional = std::exchange(element.optional, false);
  element.is_list = true;
  return element;
}

SchemaType SchemaType::container(Kind kind, std::vector<SchemaType> contained) {
  SchemaType out{kind};
  out.contained = std::move(contained);
  return out;
}

namespace {
std::string plain_name(const SchemaType& type) {
  std::string inside;
  for (const SchemaType& each : type.contained) inside += (inside.empty() ? "" : ", ") + each.str();
  switch (type.kind) {
  case Kind::Class:
    return type.class_name;
  case Kind::Tuple:
    return "(" + inside + ")";
  case Kind::Dict:
    return "Dict(" + inside + ")";
  case Kind::List:
    return inside + "[]";
  default:
    for (const TypeName& t : kTypes) {
      if (t.kind == type.kind) return t.text;
    }
    return "";
  }
}
} // namespace

std::string SchemaType::str() const {
  std::string out = plain_name(*this);
  if (element_optional) out += "?";
  if (is_list) out += list_size >= 0 ? "[" + std::to_string(list_size) + "]" : "[]";
  if (optional) out += "?";
  return out;
}

std::string SchemaArgument::str() const {
  std::string out = type.str();
  if (alias) {
    const size_t bracket = out.find_first_of("[?");
    out.insert(bracket == std::string::npos ? out.size() : bracket, alias_text(*alias));
  }
  if (!name.empty()) out += " " + name;
  if (has_default) out += "=" + default_text;
  return out;
}

std::string FunctionSchema::str() const {
  std::string out = name + (overload.empty() ? "" : "." + overload) + "(";
  bool star = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i) out += ", ";
    if (arguments[i].kwarg_only && !star) {
      out += "*, ";
      star = true;
    }
    out += arguments[i].str();
  }
  if (is_vararg) out += arguments.empty() ? "..." : ", ...";
  out += ") -> ";
  if (returns.size() == 1 && !is_varret) return out + returns[0].str();
  out += "(";
  for (size_t i = 0; i < returns.size(); ++i) {
    if (i) out += ", ";
    out += returns[i].str();
  }
  if (is_varret) out += returns.empty() ? "..." : ", ...";
  return out + ")";
}

bool FunctionSchema::is_mutable() const {
  for (const SchemaArgument& a : arguments)
    if (a.alias && a.alias->is_write) return true;
  return false;
}
bool FunctionSchema::is_view() const {
  for (const SchemaArgument& r : returns)
    if (r.alias && !r.alias->is_write) return true;
  return false;
}

} // namespace at
