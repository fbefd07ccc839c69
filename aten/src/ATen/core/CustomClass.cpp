// The registry of classes, and what IValues of their instances need.
#include <ATen/core/CustomClass.h>

#include <ATen/core/TypeTraits.h>

#include <mutex>
#include <typeindex>

namespace at {
namespace {

const std::string kPrefix = "__torch__.torch.classes.";

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<CustomClass>> by_name;
  std::map<std::type_index, const CustomClass*> by_type;
};
// Never destroyed: libraries that are unloaded late may still look at it.
Registry& registry() {
  static Registry* const it = new Registry;
  return *it;
}

bool is_identifier(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (i == 0 || c < '0' || c > '9')) return false;
  }
  return !text.empty();
}

IValue call_one(const CustomMethod& method, Stack stack) {
  method.call(stack);
  return stack.back();
}

const CustomMethod* find_in(const CustomClass::Methods& methods, const std::string& name) {
  const auto found = methods.find(name);
  return found == methods.end() ? nullptr : found->second.get();
}

} // namespace

void CustomMethod::name_arguments(size_t skip, const std::vector<CustomArgument>& named) {
  if (named.empty()) return;
  TORCH_CHECK(named.size() == schema.arguments.size() - skip, name, ": ", named.size(),
              " argument names were given for ", schema.arguments.size() - skip,
              " arguments; name all of them or none");
  bool optional = false;
  for (const CustomArgument& each : named) {
    SchemaArgument& argument = schema.arguments[skip++];
    TORCH_CHECK(each.value || !optional, name, ": the argument '", each.name,
                "' without a default follows one that has a default");
    argument.name = each.name;
    if (!each.value) continue;
    optional = true;
    argument.has_default = true;
    argument.default_value = *each.value;
    argument.default_text = ivalue::repr(*each.value);
  }
}

CustomClass::CustomClass(std::string ns, std::string name, std::string doc)
    : ns_(std::move(ns)), name_(std::move(name)), qualified_name_(kPrefix + ns_ + "." + name_),
      doc_(std::move(doc)) {}

CustomClass& CustomClass::create(std::string ns, std::string name, const std::type_info& type,
                                 std::string doc) {
  TORCH_CHECK(is_identifier(ns), "torch::class_: the namespace must be a valid name, but got '", ns,
              "'");
  TORCH_CHECK(is_identifier(name), "torch::class_: the class must have a valid name, but got '",
              name, "'");
  std::unique_ptr<CustomClass> made(
      new CustomClass(std::move(ns), std::move(name), std::move(doc)));
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  TORCH_CHECK(all.by_name.count(made->qualified_name_) == 0, "torch::class_: a class named '",
              made->qualified_name_, "' is registered already");
  TORCH_CHECK(all.by_type.count(type) == 0, "torch::class_: the C++ type of '",
              made->qualified_name_, "' is registered already");
  CustomClass& out = *made;
  all.by_type[type] = &out;
  all.by_name[out.qualified_name_] = std::move(made);
  return out;
}

const CustomClass* CustomClass::find(const std::string& name) {
  const std::string full = name.rfind("__torch__.", 0) == 0 ? name : kPrefix + name;
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.by_name.find(full);
  return found == all.by_name.end() ? nullptr : found->second.get();
}

const CustomClass* CustomClass::find(const std::type_info& type) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.by_type.find(type);
  return found == all.by_type.end() ? nullptr : found->second;
}

std::vector<const CustomClass*> CustomClass::all() {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::vector<const CustomClass*> out;
  for (const auto& [name, each] : all.by_name) out.push_back(each.get());
  return out;
}

const CustomMethod* CustomClass::method(const std::string& name) const {
  return find_in(methods_, name);
}
const CustomMethod* CustomClass::static_method(const std::string& name) const {
  return find_in(static_methods_, name);
}
const CustomProperty* CustomClass::property(const std::string& name) const {
  for (const CustomProperty& each : properties_) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

void CustomClass::add_method(CustomMethod method) {
  TORCH_CHECK(methods_.count(method.name) == 0, qualified_name_, " has a method '", method.name,
              "' already; methods have no overloads");
  const std::string name = method.name;
  methods_[name] = std::make_shared<CustomMethod>(std::move(method));
}
void CustomClass::add_static_method(CustomMethod method) {
  TORCH_CHECK(static_methods_.count(method.name) == 0, qualified_name_, " has a static method '",
              method.name, "' already; methods have no overloads");
  const std::string name = method.name;
  static_methods_[name] = std::make_shared<CustomMethod>(std::move(method));
}
void CustomClass::add_property(CustomProperty made) {
  TORCH_CHECK(property(made.name) == nullptr, qualified_name_, " has a property '", made.name,
              "' already");
  properties_.push_back(std::move(made));
}

IValue CustomClass::construct(Stack arguments) const {
  const CustomMethod* init = method("__init__");
  TORCH_CHECK(init != nullptr, qualified_name_,
              " cannot be instantiated: it has no constructor; register one with "
              ".def(torch::init<...>())");
  return call_one(*init, std::move(arguments));
}

IValue CustomClass::get_state(const IValue& instance) const {
  TORCH_CHECK(can_pickle(), "Tried to serialize object ", qualified_name_,
              " which does not have a __getstate__ method defined; register one with def_pickle");
  return call_one(*method("__getstate__"), {instance});
}
IValue CustomClass::from_state(IValue state) const {
  TORCH_CHECK(can_pickle(), "Tried to deserialize object ", qualified_name_,
              " which does not have a __setstate__ method defined; register one with def_pickle");
  return call_one(*method("__setstate__"), {std::move(state)});
}

namespace {
const CustomClass& registered(const std::type_info& type) {
  const CustomClass* found = CustomClass::find(type);
  TORCH_CHECK(found != nullptr, "the C++ class ", type.name(),
              " is not registered: declare it with torch::class_ in a TORCH_LIBRARY block");
  return *found;
}
} // namespace

const CustomClass& CustomClass::of(const IValue& value) {
  const c10::intrusive_ptr<torch::CustomClassHolder> instance = ivalue::instance(value);
  const torch::CustomClassHolder& object = *instance;
  return registered(typeid(object));
}

namespace types {
std::string class_name(const std::type_info& type) { return registered(type).qualified_name(); }

torch::CustomClassHolder* instance_of(const IValue& value, const std::type_info& type) {
  const CustomClass& wanted = registered(type);
  const CustomClass& got = CustomClass::of(value);
  if (&wanted != &got) {
    throw c10::TypeError(c10::str("expected a value of type ", wanted.qualified_name(),
                                  " but got one of type ", got.qualified_name()));
  }
  return static_cast<torch::CustomClassHolder*>(value.ref.get());
}
} // namespace types

} // namespace at
