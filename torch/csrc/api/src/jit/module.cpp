// Modules and methods for C++ programs: handles on an object and on the code of its archive. Values
// are converted where they pass between programs and users.
#include <torch/jit.h>

#include <fstream>
#include <istream>
#include <ostream>

#include <torch/csrc/api/src/jit/archive.h>

namespace torch::jit {

// ---- calls
namespace {

// The type of an argument as errors say it; lists that are empty count as lists of tensors.
std::string type_name_of(const IValue& value) {
  if (!at::ivalue::is_list(value)) return source::type_of_value(value)->name;
  const std::vector<IValue> items = at::ivalue::list_items(value);
  return "List[" + (items.empty() ? "Tensor" : type_name_of(items[0])) + "]";
}

// Calls with what `stack` holds, the user's arguments behind it and defaults for the rest.
IValue call_with(const source::Callable& callable, Stack stack, const std::vector<IValue>& args,
                 const Kwargs& kwargs) {
  const std::vector<source::Formal>& formals = callable.arguments;
  const size_t bound = stack.size();
  TORCH_CHECK(args.size() + bound <= formals.size(), callable.name, "() expected at most ",
              formals.size() - bound, " argument(s) but received ", args.size());
  size_t named = 0;
  for (size_t i = bound; i < formals.size(); ++i) {
    const auto given = kwargs.find(formals[i].name);
    const bool placed = i - bound < args.size();
    if (given != kwargs.end()) ++named;
    const IValue* value = placed                   ? &args[i - bound]
                          : given != kwargs.end()  ? &given->second
                          : formals[i].has_default ? &formals[i].value
                                                   : nullptr;
    TORCH_CHECK(value, callable.name, "() is missing value for argument '", formals[i].name, "'");
    TORCH_CHECK(!placed || given == kwargs.end(), callable.name, "() got two values for argument '",
                formals[i].name, "'");
    try {
      stack.push_back(for_programs(*value, *formals[i].type));
    } catch (const c10::Error&) {
      throw c10::Error(c10::str(callable.name, "() Expected a value of type '",
                                formals[i].type->name, "' for argument '", formals[i].name,
                                "' but instead found type '", type_name_of(*value), "'."));
    }
  }
  TORCH_CHECK(named == kwargs.size(), callable.name, "() got an unknown keyword argument");
  callable.function->run(stack);
  return stack.empty() ? IValue() : for_users(stack.back());
}

} // namespace

// ---- methods
const std::string& Method::name() const { return callable_->name; }
size_t Method::num_inputs() const { return callable_->arguments.size(); }

IValue Method::operator()(std::vector<IValue> args, const Kwargs& kwargs) const {
  return call_with(*callable_, self_ ? Stack{IValue::opaque(self_)} : Stack(), args, kwargs);
}
void Method::run(std::vector<IValue>& stack) const {
  IValue result = (*this)(std::move(stack));
  stack.clear();
  stack.push_back(std::move(result));
}

// ---- modules
Module::Module() = default;
Module::Module(c10::intrusive_ptr<Object> object, std::shared_ptr<ModuleCode> code)
    : object_(std::move(object)), code_(std::move(code)) {}
Module::Module(const Module&) = default;
Module::Module(Module&&) noexcept = default;
Module& Module::operator=(const Module&) = default;
Module& Module::operator=(Module&&) noexcept = default;
Module::~Module() = default;

Object& Module::self() const {
  TORCH_CHECK(object_, "an empty torch::jit::Module was used; load one first");
  return *object_;
}
std::string Module::type_name() const { return self().cls->name; }

std::optional<Method> Module::find_method(const std::string& name) const {
  const auto& methods = code_ ? code_->class_of(self()).methods
                              : throw c10::Error("an empty torch::jit::Module was used");
  const auto found = methods.find(name);
  if (found == methods.end()) return std::nullopt;
  return Method(object_, code_, found->second.get());
}
Method Module::get_method(const std::string& name) const {
  std::optional<Method> found = find_method(name);
  TORCH_CHECK(found, "Method '", name, "' is not defined.");
  return *found;
}
std::vector<Method> Module::get_methods() const {
  std::vector<Method> out;
  self();
  for (const auto& [name, callable] : code_->class_of(*object_).methods)
    out.push_back(Method(object_, code_, callable.get()));
  return out;
}
IValue Module::forward(std::vector<IValue> inputs, const Kwargs& kwargs) const {
  return get_method("forward")(std::move(inputs), kwargs);
}

bool Module::hasattr(const std::string& name) const {
  return self().cls->slot(name) >= 0 || code_->class_of(*object_).constants.count(name) != 0;
}
IValue Module::attr(const std::string& name) const {
  const int slot = self().cls->slot(name);
  if (slot >= 0) return for_users(object_->slots[size_t(slot)]);
  const auto& constants = code_->class_of(*object_).constants;
  const auto found = constants.find(name);
  TORCH_CHECK(found != constants.end(), "Module ", object_->cls->name, " has no attribute '", name,
              "'");
  return for_users(found->second);
}
IValue Module::attr(const std::string& name, IValue or_else) const {
  return hasattr(name) ? attr(name) : or_else;
}
Module Module::submodule(const std::string& name) const {
  for (const Named<Module>& child : named_children())
    if (child.name == name) return child.value;
  throw c10::Error(c10::str("Module ", type_name(), " has no submodule '", name, "'"));
}
void Module::setattr(const std::string& name, const IValue& value) {
  const int slot = self().cls->slot(name);
  TORCH_CHECK(slot >= 0, "Module ", object_->cls->name, " has no attribute '", name, "'");
  object_->slots[size_t(slot)] = for_programs(value, *code_->class_of(*object_).attribute(name));
  ++object_->version;
}

// ---- what a module holds
namespace {

template <class T> std::vector<T> values_of(const std::vector<Named<T>>& named) {
  std::vector<T> out;
  for (const Named<T>& each : named) out.push_back(each.value);
  return out;
}

} // namespace

std::vector<Named<Module>> Module::named_children() const {
  std::vector<Named<Module>> out;
  for (size_t i = 0; i < self().slots.size(); ++i) {
    Object* child = as<Object>(object_->slots[i]);
    if (child && child->cls->is_module)
      out.push_back({object_->cls->slots[i],
                     Module(c10::intrusive_ptr<Object>::unsafe_retain(child), code_)});
  }
  return out;
}
std::vector<Named<Module>> Module::named_modules() const {
  std::vector<Named<Module>> out{{"", *this}};
  for (const Named<Module>& child : named_children())
    for (Named<Module>& inner : child.value.named_modules())
      out.push_back({inner.name.empty() ? child.name : child.name + "." + inner.name,
                     std::move(inner.value)});
  return out;
}
std::vector<Named<at::Tensor>> Module::tensors(const std::string& role, bool recurse) const {
  std::vector<Named<at::Tensor>> out;
  for (const Named<Module>& module :
       recurse ? named_modules() : std::vector<Named<Module>>{{"", *this}}) {
    const Object& object = module.value.self();
    const auto& roles = code_->class_of(object).roles;
    for (size_t i = 0; i < object.slots.size(); ++i) {
      const auto found = roles.find(object.cls->slots[i]);
      if (found == roles.end() || found->second != role || !object.slots[i].isTensor()) continue;
      const std::string prefix = module.name.empty() ? "" : module.name + ".";
      out.push_back({prefix + object.cls->slots[i], object.slots[i].toTensor()});
    }
  }
  return out;
}
std::vector<Named<at::Tensor>> Module::named_parameters(bool recurse) const {
  return tensors("parameter", recurse);
}
std::vector<Named<at::Tensor>> Module::named_buffers(bool recurse) const {
  return tensors("buffer", recurse);
}
std::vector<at::Tensor> Module::parameters(bool r) const { return values_of(named_parameters(r)); }
std::vector<at::Tensor> Module::buffers(bool r) const { return values_of(named_buffers(r)); }
std::vector<Module> Module::modules() const { return values_of(named_modules()); }
std::vector<Module> Module::children() const { return values_of(named_children()); }
std::vector<Named<IValue>> Module::named_attributes(bool recurse) const {
  std::vector<Named<IValue>> out;
  for (const Named<Module>& module :
       recurse ? named_modules() : std::vector<Named<Module>>{{"", *this}}) {
    const Object& object = module.value.self();
    const std::string prefix = module.name.empty() ? "" : module.name + ".";
    for (size_t i = 0; i < object.slots.size(); ++i)
      out.push_back({prefix + object.cls->slots[i], for_users(object.slots[i])});
  }
  return out;
}

// ---- changing all of it
void Module::convert(const std::function<at::Tensor(const at::Tensor&)>& change) {
  const at::NoGradGuard no_grad;
  for (const bool parameters : {true, false})
    for (const Named<at::Tensor>& each : tensors(parameters ? "parameter" : "buffer", true)) {
      at::Tensor tensor = each.value;
      tensor.set_data(change(tensor.detach()));
    }
}
void Module::to(at::Device device, at::ScalarType dtype, bool non_blocking) {
  convert([&](const at::Tensor& t) {
    return t.to(device, t.is_floating_point() ? dtype : t.scalar_type(), non_blocking);
  });
}
void Module::to(at::ScalarType dtype, bool non_blocking) {
  convert(
      [&](const at::Tensor& t) { return t.is_floating_point() ? t.to(dtype, non_blocking) : t; });
}
void Module::to(at::Device device, bool non_blocking) {
  convert([&](const at::Tensor& t) { return t.to(device, t.scalar_type(), non_blocking); });
}
void Module::train(bool on) {
  for (const Module& module : modules()) {
    const int slot = module.self().cls->slot("training");
    if (slot >= 0) module.self().slots[size_t(slot)] = IValue(on);
  }
}
bool Module::is_training() const { return attr("training", IValue(true)).toBool(); }

namespace {

IValue copied(const IValue& v, bool deep, std::unordered_map<const Object*, IValue>& made) {
  if (const Object* object = as<Object>(v)) {
    const auto known = made.find(object);
    if (known != made.end()) return known->second;
    auto copy = c10::make_intrusive<Object>(object->cls);
    IValue& place = made[object];
    place = IValue::opaque(copy);
    const IValue out = place;
    for (size_t i = 0; i < object->slots.size(); ++i)
      copy->slots[i] = copied(object->slots[i], deep, made);
    return out;
  }
  if (!deep) return v;
  if (v.isTensor()) {
    const at::Tensor tensor = v.toTensor();
    return IValue(tensor.detach().clone().set_requires_grad(tensor.requires_grad()));
  }
  if (const Tuple* tuple = as<Tuple>(v)) {
    std::vector<IValue> items;
    for (const IValue& item : tuple->items) items.push_back(copied(item, deep, made));
    return make_tuple(std::move(items), tuple->type);
  }
  if (const Dict* dict = as<Dict>(v)) {
    auto out = c10::make_intrusive<Dict>();
    for (const auto& [key, item] : *dict) out->set(key, copied(item, deep, made));
    return IValue::opaque(std::move(out));
  }
  if (!is_list(v)) return v;
  IValue out = new_list_like(v);
  for (size_t i = 0; i < list_size(v); ++i) list_push(out, copied(list_get(v, i), deep, made));
  return out;
}

} // namespace

Module Module::copy() const {
  auto out = c10::make_intrusive<Object>(self().cls);
  out->slots = object_->slots;
  return Module(std::move(out), code_);
}
Module Module::clone() const {
  std::unordered_map<const Object*, IValue> made;
  self();
  const IValue out = copied(IValue::opaque(object_), false, made);
  return Module(c10::intrusive_ptr<Object>::unsafe_retain(as<Object>(out)), code_);
}
Module Module::deepcopy() const {
  std::unordered_map<const Object*, IValue> made;
  self();
  const IValue out = copied(IValue::opaque(object_), true, made);
  return Module(c10::intrusive_ptr<Object>::unsafe_retain(as<Object>(out)), code_);
}

// ---- files
void Module::save(std::ostream& out, const ExtraFilesMap& extra_files) const {
  const std::string file = write_archive(self(), *code_, extra_files);
  out.write(file.data(), static_cast<std::streamsize>(file.size()));
  TORCH_CHECK(out, "torch::jit::Module::save: the stream took less than ", file.size(), " bytes");
}
void Module::save(const std::string& filename, const ExtraFilesMap& extra_files) const {
  std::ofstream out(filename, std::ios::binary);
  TORCH_CHECK(out, "torch::jit::Module::save: cannot open ", filename, " for writing");
  save(out, extra_files);
}

namespace {

Module load_stream(std::istream& in, std::optional<at::Device> device, ExtraFilesMap* extra) {
  std::string file;
  char buffer[65536];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0)
    file.append(buffer, static_cast<size_t>(in.gcount()));
  Loaded loaded = read_archive(file, device, extra);
  return Module(std::move(loaded.object), std::move(loaded.code));
}
Module load_file(const std::string& filename, std::optional<at::Device> device,
                 ExtraFilesMap* extra) {
  std::ifstream in(filename, std::ios::binary);
  TORCH_CHECK(in, "open file failed because of errno on fopen: file path: ", filename);
  return load_stream(in, device, extra);
}

} // namespace

Module load(std::istream& in, std::optional<at::Device> device) {
  return load_stream(in, device, nullptr);
}
Module load(std::istream& in, std::optional<at::Device> device, ExtraFilesMap& extra_files) {
  return load_stream(in, device, &extra_files);
}
Module load(const std::string& filename, std::optional<at::Device> device) {
  return load_file(filename, device, nullptr);
}
Module load(const std::string& filename, std::optional<at::Device> device,
            ExtraFilesMap& extra_files) {
  return load_file(filename, device, &extra_files);
}

} // namespace torch::jit
