// Finding classes and functions in the source files of an archive, and what their annotations and
// constants mean.
#include <torch/csrc/api/src/jit/unit.h>

#include <algorithm>
#include <limits>

namespace torch::jit::source {

using Kind = Type::Kind;

TypePtr Class::attribute(const std::string& name) const {
  for (const auto& [known, type] : attributes)
    if (known == name) return type;
  return nullptr;
}

Unit::Unit(Read read, std::vector<IValue> constants)
    : read_(std::move(read)), constants_(std::move(constants)) {}
Unit::~Unit() = default;

const IValue& Unit::constant(const std::string& name) const {
  const bool numbered = name.size() > 1 && name.size() < 10 && name[0] == 'c' &&
                        name.find_first_not_of("0123456789", 1) == std::string::npos;
  TORCH_CHECK(numbered && size_t(std::stoul(name.substr(1))) < constants_.size(),
              "the archive has no constant ", name);
  return constants_[std::stoul(name.substr(1))];
}

const std::vector<Schema>& Unit::schemas(const std::string& name) {
  const auto found = schemas_.find(name);
  if (found != schemas_.end()) return found->second;
  return schemas_[name] = schemas_of(name);
}

const Stmt* Unit::definition(const std::string& name, std::string* path) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return nullptr;
  *path = "code/" + name.substr(0, dot) + ".py";
  std::replace(path->begin() + 5, path->end() - 3, '.', '/');
  auto found = files_.find(*path);
  if (found == files_.end()) {
    const std::optional<std::string> text = read_(*path);
    found = files_.emplace(*path, text ? parse(*text, *path) : Body()).first;
  }
  for (const StmtPtr& step : found->second)
    if (step->name == name.substr(dot + 1)) return step.get();
  return nullptr;
}

Class* Unit::find_class(const std::string& name) {
  const auto found = classes_.find(name);
  if (found != classes_.end()) return found->second.get();
  std::string path;
  const Stmt* node = definition(name, &path);
  if (!node || node->kind != Stmt::Kind::Class) return nullptr;
  return make_class(name, *node, path);
}

Callable* Unit::find_function(const std::string& name) {
  const auto found = functions_.find(name);
  if (found != functions_.end()) return found->second.get();
  std::string path;
  const Stmt* node = definition(name, &path);
  if (!node || node->kind != Stmt::Kind::Def) return nullptr;
  Callable* made = (functions_[name] = declare(*node, path, node->name)).get();
  pending_.push_back(made);
  return made;
}

std::unique_ptr<Callable> Unit::declare(const Stmt& node, const std::string& path,
                                        const std::string& name) {
  auto out = std::make_unique<Callable>();
  out->name = name;
  out->node = &node;
  out->path = path;
  out->function->name = name;
  for (const Parameter& p : node.parameters) {
    Formal formal;
    formal.name = p.name;
    formal.type = p.type ? type_of(*p.type) : simple_type(Kind::Tensor);
    if (p.value) {
      formal.has_default = true;
      formal.value = constant_of(*p.value, formal.type);
    }
    out->arguments.push_back(std::move(formal));
  }
  out->returns = node.type ? type_of(*node.type) : simple_type(Kind::None);
  return out;
}

void Unit::compile_pending() {
  while (!pending_.empty()) {
    Callable* next = pending_.back();
    pending_.pop_back();
    compile(*this, *next);
  }
}

// ---- classes
Class* Unit::make_class(const std::string& name, const Stmt& node, const std::string& path) {
  Class& made = *(classes_[name] = std::make_unique<Class>());
  const std::string base = node.bases.empty() ? "" : node.bases[0]->dotted();
  auto type = std::make_shared<Type>();
  type->name = name;
  made.type = type;
  if (base == "NamedTuple") {
    make_named_tuple(made, name, node);
    return &made;
  }
  if (base == "Enum") {
    make_enumeration(made, name, node);
    return &made;
  }
  const bool is_interface = base == "Interface" || base == "ModuleInterface";
  type->kind = is_interface ? Kind::Interface : Kind::Class;
  made.is_module = base == "Module" || base == "ModuleInterface";
  if (!is_interface) {
    type->cls = std::make_shared<ClassInfo>();
    type->cls->name = name;
    type->cls->is_module = made.is_module;
  }
  for (const StmtPtr& step : node.body) add_member(made, *step, path);
  return &made;
}

void Unit::add_member(Class& made, const Stmt& step, const std::string& path) {
  const auto slot = [&](const std::string& name, TypePtr type) {
    TORCH_CHECK(made.type->cls, "an interface of the archive has attributes");
    made.type->cls->slots.push_back(name);
    made.attributes.emplace_back(name, std::move(type));
  };
  if (step.kind == Stmt::Kind::Def) {
    Callable* method = (made.methods[step.name] = declare(step, path, step.name)).get();
    if (made.type->kind == Kind::Interface) {
      made.type->methods.push_back(step.name);
      return;
    }
    made.type->cls->methods[step.name] = method->function;
    pending_.push_back(method);
  } else if (step.kind == Stmt::Kind::Declare && step.target->kind == Expr::Kind::Name) {
    const TypePtr type = type_of(*step.type);
    if (step.value)
      made.constants[step.target->text] = constant_of(*step.value, type);
    else
      slot(step.target->text, type);
  } else if (step.kind == Stmt::Kind::Assign && step.target->kind == Expr::Kind::Name) {
    const std::string& list = step.target->text;
    if (list != "__parameters__" && list != "__buffers__") return;
    for (const ExprPtr& item : step.value->items)
      made.roles[item->text] = list == "__buffers__" ? "buffer" : "parameter";
  } else if (step.kind == Stmt::Kind::Assign && step.target->kind == Expr::Kind::Subscript) {
    slot(step.target->items[1]->text, type_of(*step.value));
  }
}

void Unit::make_named_tuple(Class& made, const std::string& name, const Stmt& node) {
  made.type->kind = Kind::Tuple;
  made.type->name = name;
  for (const StmtPtr& step : node.body) {
    if (step->kind != Stmt::Kind::Declare) continue;
    made.type->fields.push_back(step->target->text);
    made.type->inner.push_back(type_of(*step->type));
    if (step->value)
      made.constants[step->target->text] = constant_of(*step->value, made.type->inner.back());
  }
}

void Unit::make_enumeration(Class& made, const std::string& name, const Stmt& node) {
  made.type->kind = Kind::Enum;
  made.type->name = name;
  for (const StmtPtr& step : node.body) {
    if (step->kind != Stmt::Kind::Assign) continue;
    const IValue value = constant_of(*step->value, simple_type(Kind::Any));
    if (made.type->inner.empty()) made.type->inner.push_back(type_of_value(value));
    made.members[step->target->text] = make<EnumValue>(made.type, step->target->text, value);
  }
  TORCH_CHECK(!made.members.empty(), "the enumeration ", name, " of the archive is empty");
}

// ---- nested functions
namespace {
void names_in(const Expr& e, std::vector<std::string>& out) {
  if (e.kind == Expr::Kind::Name && std::find(out.begin(), out.end(), e.text) == out.end())
    out.push_back(e.text);
  for (const ExprPtr& item : e.items) names_in(*item, out);
  for (const auto& [key, item] : e.keywords) names_in(*item, out);
}
void names_in(const Body& body, std::vector<std::string>& out) {
  for (const StmtPtr& step : body) {
    if (step->value) names_in(*step->value, out);
    if (step->target && step->target->kind != Expr::Kind::Name) names_in(*step->target, out);
    names_in(step->body, out);
    names_in(step->other, out);
  }
}
} // namespace

std::vector<std::string> free_names(const Stmt& function) {
  std::vector<std::string> out;
  names_in(function.body, out);
  for (const Parameter& p : function.parameters)
    out.erase(std::remove(out.begin(), out.end(), p.name), out.end());
  return out;
}

// ---- annotations and constants
TypePtr Unit::type_of(const Expr& e) {
  static const std::unordered_map<std::string, Kind> names = {
      {"Tensor", Kind::Tensor},   {"int", Kind::Int},          {"float", Kind::Float},
      {"bool", Kind::Bool},       {"complex", Kind::Complex},  {"str", Kind::Str},
      {"number", Kind::Number},   {"Scalar", Kind::Number},    {"NoneType", Kind::None},
      {"Device", Kind::Device},   {"Any", Kind::Any},          {"Generator", Kind::Generator},
      {"Storage", Kind::Storage}, {"Stream", Kind::Stream},    {"Layout", Kind::Int},
      {"ScalarType", Kind::Int},  {"MemoryFormat", Kind::Int}, {"list", Kind::AnyList},
      {"tuple", Kind::AnyTuple},
  };
  if (e.kind == Expr::Kind::None) return simple_type(Kind::None);
  if (e.kind == Expr::Kind::Name) {
    const auto found = names.find(e.text);
    if (found != names.end()) return simple_type(found->second);
  }
  if (e.kind == Expr::Kind::Subscript) {
    const std::string outer = e.items[0]->dotted();
    std::vector<TypePtr> parts;
    const Expr& inner = *e.items[1];
    if (inner.kind == Expr::Kind::Tuple) {
      for (const ExprPtr& item : inner.items) parts.push_back(type_of(*item));
    } else {
      parts.push_back(type_of(inner));
    }
    if (outer == "List" && parts.size() == 1) return list_of(parts[0]);
    if (outer == "Optional" && parts.size() == 1) return optional_of(parts[0]);
    if (outer == "Future" && parts.size() == 1) return future_of(parts[0]);
    if (outer == "Final" && parts.size() == 1) return parts[0];
    if (outer == "Dict" && parts.size() == 2) return dict_of(parts[0], parts[1]);
    if (outer == "Tuple") return tuple_of(std::move(parts));
    if (outer == "Union" && !parts.empty()) return union_of(parts);
    throw c10::Error(c10::str("Unknown type constructor ", outer));
  }
  const std::string name = e.dotted();
  TORCH_CHECK(++depth_ < 200, "classes of the archive are nested too deep");
  Class* found = name.empty() ? nullptr : find_class(name);
  --depth_;
  TORCH_CHECK(found, "Unknown type name '", name, "'");
  return found->type;
}

IValue Unit::constant_of(const Expr& e, const TypePtr& type) {
  const TypePtr& wanted = plain(type);
  switch (e.kind) {
  case Expr::Kind::None:
    return IValue();
  case Expr::Kind::True:
    return IValue(true);
  case Expr::Kind::False:
    return IValue(false);
  case Expr::Kind::Int:
    return wanted->kind == Kind::Float ? IValue(static_cast<double>(e.integer)) : IValue(e.integer);
  case Expr::Kind::Float:
    return IValue(e.real);
  case Expr::Kind::Complex:
    return IValue(c10::complex<double>(0, e.real));
  case Expr::Kind::String:
    return IValue(e.text);
  case Expr::Kind::Negate: {
    const IValue value = constant_of(*e.items[0], type);
    TORCH_CHECK(value.isInt() || value.isDouble(), "a default of the archive is not a number");
    return value.isInt() ? IValue(-value.toInt()) : IValue(-value.toDouble());
  }
  case Expr::Kind::Name:
    if (e.text == "inf") return IValue(std::numeric_limits<double>::infinity());
    if (e.text == "nan") return IValue(std::numeric_limits<double>::quiet_NaN());
    break;
  case Expr::Kind::Attribute:
    if (e.items[0]->dotted() == "CONSTANTS") return constant(e.text);
    if (Class* owner = find_class(e.items[0]->dotted()); owner && owner->members.count(e.text))
      return owner->members.at(e.text);
    break;
  case Expr::Kind::List: {
    const TypePtr element = wanted->kind == Kind::List ? wanted->inner[0] : simple_type(Kind::Any);
    IValue out = new_list(*element);
    for (const ExprPtr& item : e.items) list_push(out, constant_of(*item, element));
    return out;
  }
  case Expr::Kind::Tuple: {
    std::vector<IValue> items;
    for (size_t i = 0; i < e.items.size(); ++i)
      items.push_back(
          constant_of(*e.items[i], wanted->kind == Kind::Tuple && i < wanted->inner.size()
                                       ? wanted->inner[i]
                                       : simple_type(Kind::Any)));
    return make_tuple(std::move(items));
  }
  case Expr::Kind::Call: {
    const std::string name = e.items[0]->dotted();
    const bool text = e.items.size() == 2 && e.items[1]->kind == Expr::Kind::String;
    if (name == "torch.device" && text) return IValue(at::Device(e.items[1]->text));
    if (name == "float" && text) return IValue(std::strtod(e.items[1]->text.c_str(), nullptr));
    if (name == "annotate" && e.items.size() == 3)
      return constant_of(*e.items[2], type_of(*e.items[1]));
    break;
  }
  default:
    break;
  }
  throw c10::Error("a default value or constant of the archive is not a constant expression");
}

} // namespace torch::jit::source
