// Reading and writing archives: a pickle of the module's object, one of constants, and source
// files.
#include <torch/csrc/api/src/jit/archive.h>

#include <cstring>

#include <ATen/core/ivalue.h>
#include <torch/csrc/api/src/serialize/pickle.h>
#include <torch/csrc/utils/zip.h>
#include <torch/types.h>

namespace torch::jit {

using serialize::Pickled;
using serialize::PickledPtr;
using source::Unit;
using TypeKind = Type::Kind;

const source::Class& ModuleCode::class_of(const Object& object) const {
  const source::Class* found = unit->find_class(object.cls->name);
  TORCH_CHECK(found, "the archive has no class ", object.cls->name);
  return *found;
}

// ---- between users and programs
IValue for_users(const IValue& v) {
  if (const Tuple* tuple = as<Tuple>(v)) {
    std::vector<IValue> items;
    for (const IValue& item : tuple->items) items.push_back(for_users(item));
    return at::ivalue::make_tuple(std::move(items));
  }
  if (const Dict* dict = as<Dict>(v)) {
    auto out = c10::make_intrusive<at::DictValue>();
    for (const auto& [key, item] : *dict) out->insert(for_users(key), for_users(item), true);
    return IValue::opaque(std::move(out));
  }
  if (v.tag == IValue::Tag::List) {
    std::vector<IValue> items;
    for (const IValue& item : v.toListRef()) items.push_back(for_users(item));
    return IValue(std::move(items));
  }
  return v;
}

namespace {

[[noreturn]] void misfit(const IValue& v, const Type& type) {
  throw c10::Error(c10::str("Expected a value of type '", type.name, "' but got ", v.kind()));
}
IValue list_for_programs(const IValue& v, const Type& type) {
  IValue out = new_list(*type.inner[0]);
  for (const IValue& item : at::ivalue::list_items(v))
    list_push(out, for_programs(item, *type.inner[0]));
  return out;
}
IValue tuple_for_programs(const IValue& v, const Type& type) {
  const auto* given = at::ivalue::opaque<at::TupleValue>(v);
  if (!given || given->items.size() != type.inner.size()) misfit(v, type);
  std::vector<IValue> items;
  for (size_t i = 0; i < type.inner.size(); ++i)
    items.push_back(for_programs(given->items[i], *type.inner[i]));
  return make_tuple(std::move(items),
                    type.fields.empty() ? nullptr : const_cast<Type&>(type).shared_from_this());
}

} // namespace

IValue for_programs(const IValue& v, const Type& type) {
  switch (type.kind) {
  case TypeKind::Optional:
    return v.isNone() ? v : for_programs(v, *type.inner[0]);
  case TypeKind::List:
    if (!at::ivalue::is_list(v)) misfit(v, type);
    return list_for_programs(v, type);
  case TypeKind::Tuple:
    if (as<Tuple>(v)) break;
    return tuple_for_programs(v, type);
  case TypeKind::Dict: {
    if (as<Dict>(v)) break;
    const auto* given = at::ivalue::opaque<at::DictValue>(v);
    if (!given) misfit(v, type);
    auto out = c10::make_intrusive<Dict>();
    for (const auto& [key, item] : given->entries)
      out->set(for_programs(key, *type.inner[0]), for_programs(item, *type.inner[1]));
    return IValue::opaque(std::move(out));
  }
  case TypeKind::Float:
    if (v.isInt()) return IValue(static_cast<double>(v.toInt()));
    break;
  default:
    break;
  }
  if (!is_instance(v, type)) misfit(v, type);
  return v;
}

namespace {

// ---- reading
class Builder {
 public:
  explicit Builder(Unit& unit) : unit_(unit) {}

  IValue value(const Pickled& p, const TypePtr& type, int depth = 0) {
    TORCH_CHECK(depth < 500, "the archive is nested too deep");
    using Kind = Pickled::Kind;
    const TypePtr& wanted = source::plain(type);
    switch (p.kind) {
    case Kind::None:
      return IValue();
    case Kind::Bool:
      return IValue(p.number != 0);
    case Kind::Int:
      return wanted->kind == TypeKind::Float ? IValue(static_cast<double>(p.number))
                                             : IValue(p.number);
    case Kind::Double:
      return IValue(p.real);
    case Kind::String:
      return wanted->kind == TypeKind::Device ? IValue(at::Device(p.text)) : IValue(p.text);
    case Kind::Tensor:
      return IValue(p.tensor);
    case Kind::List:
      return list(p, wanted, depth);
    case Kind::Tuple: {
      if (wanted->kind == TypeKind::List) return list(p, wanted, depth);
      std::vector<IValue> items;
      for (size_t i = 0; i < p.items.size(); ++i)
        items.push_back(value(*p.items[i], part(wanted, i, TypeKind::Tuple), depth + 1));
      return make_tuple(std::move(items), wanted->fields.empty() ? nullptr : wanted);
    }
    case Kind::Dict: {
      auto out = c10::make_intrusive<Dict>();
      for (size_t i = 0; i + 1 < p.items.size(); i += 2)
        out->set(value(*p.items[i], part(wanted, 0, TypeKind::Dict), depth + 1),
                 value(*p.items[i + 1], part(wanted, 1, TypeKind::Dict), depth + 1));
      return IValue::opaque(std::move(out));
    }
    case Kind::Object:
      return object(p, depth);
    default:
      throw c10::Error("the archive has a value that scripted code cannot hold");
    }
  }

 private:
  static TypePtr part(const TypePtr& type, size_t i, TypeKind kind) {
    if (type->kind == kind && i < type->inner.size()) return type->inner[i];
    return source::simple_type(TypeKind::Any);
  }
  IValue list(const Pickled& p, const TypePtr& wanted, int depth) {
    TypePtr element = part(wanted, 0, TypeKind::List);
    std::vector<IValue> items;
    for (const PickledPtr& item : p.items) items.push_back(value(*item, element, depth + 1));
    if (element->kind == TypeKind::Any && !items.empty()) element = source::type_of_value(items[0]);
    IValue out = new_list(*element);
    for (const IValue& item : items) list_push(out, item);
    return out;
  }
  IValue object(const Pickled& p, int depth) {
    const auto known = made_.find(&p);
    if (known != made_.end()) return known->second;
    source::Class* cls = unit_.find_class(p.text);
    TORCH_CHECK(cls, "the archive has no class ", p.text);
    const Pickled& state = *p.items.at(0);
    if (cls->type->kind == TypeKind::Enum) {
      for (const auto& [name, member] : cls->members)
        if (state.items.size() == 1 &&
            values_equal(need<EnumValue>(member, "member").value,
                         value(*state.items[0], cls->type->inner[0], depth + 1)))
          return made_[&p] = member;
      throw c10::Error(c10::str("the archive has no such member of ", p.text));
    }
    if (cls->type->kind == TypeKind::Tuple) return made_[&p] = value(state, cls->type, depth + 1);
    TORCH_CHECK(cls->type->cls, p.text, " of the archive is not a class");
    auto made = c10::make_intrusive<Object>(cls->type->cls);
    IValue out = IValue::opaque(made);
    made_[&p] = out;
    const auto restore = cls->methods.find("__setstate__");
    if (restore != cls->methods.end()) {
      restore_state(*restore->second, out, state, depth);
      return out;
    }
    TORCH_CHECK(state.kind == Pickled::Kind::Dict, "the state of ", p.text, " is not a dictionary");
    for (size_t i = 0; i + 1 < state.items.size(); i += 2) {
      const std::string& name = state.items[i]->text;
      const int slot = made->cls->slot(name);
      if (slot < 0) continue;
      const TypePtr type = cls->attribute(name);
      made->slots[size_t(slot)] = value(*state.items[i + 1], type, depth + 1);
      TORCH_CHECK(is_instance(made->slots[size_t(slot)], *type) ||
                      source::plain(type)->kind == TypeKind::List,
                  "the attribute '", name, "' of ", p.text, " is not of type ", type->name);
    }
    return out;
  }
  void restore_state(source::Callable& method, const IValue& self, const Pickled& state,
                     int depth) {
    unit_.compile_pending();
    TORCH_CHECK(method.arguments.size() == 2, "__setstate__ of the archive takes one argument");
    Stack stack{self, value(state, method.arguments[1].type, depth + 1)};
    method.function->run(stack);
  }

  Unit& unit_;
  std::unordered_map<const Pickled*, IValue> made_;
};

bool starts_with(const std::string& text, std::string_view head) {
  return text.compare(0, head.size(), head) == 0;
}

} // namespace

Loaded read_archive(std::string_view file, std::optional<at::Device> device,
                    std::unordered_map<std::string, std::string>* extra_files) {
  const serialize::ZipReader zip(file);
  TORCH_CHECK(zip.has("data.pkl") && zip.has("constants.pkl"),
              "PytorchStreamReader failed locating file constants.pkl: the file is not a "
              "TorchScript archive");
  TORCH_CHECK(!zip.has("byteorder") || zip.get("byteorder") == "little",
              "archives of machines with another byte order are not supported");
  auto code = std::make_shared<ModuleCode>();
  for (const std::string& name : zip.names())
    if (starts_with(name, "code/") || starts_with(name, "constants"))
      code->records[name] = std::string(zip.get(name));
  const PickledPtr constants = serialize::read_record(zip, "constants.pkl", "constants", device,
                                                      serialize::Objects::Allowed);
  TORCH_CHECK(constants->kind == Pickled::Kind::Tuple || constants->kind == Pickled::Kind::List,
              "the constants of the archive are not a list");
  const auto& records = code->records;
  Unit::Read read = [&records](const std::string& path) -> std::optional<std::string> {
    const auto found = records.find(path);
    return found == records.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
  Unit nothing(read, {});
  std::vector<IValue> values;
  for (const PickledPtr& item : constants->items)
    values.push_back(Builder(nothing).value(*item, source::simple_type(TypeKind::Any)));
  code->unit = std::make_unique<Unit>(std::move(read), std::move(values));
  const PickledPtr data =
      serialize::read_record(zip, "data.pkl", "data", device, serialize::Objects::Allowed);
  TORCH_CHECK(data->kind == Pickled::Kind::Object, "the archive does not hold a module");
  const IValue root = Builder(*code->unit).value(*data, source::simple_type(TypeKind::Any));
  Object& object = need<Object>(root, "module");
  code->unit->compile_pending();
  if (extra_files)
    for (auto& [name, contents] : *extra_files)
      if (zip.has("extra/" + name)) contents = std::string(zip.get("extra/" + name));
  return {c10::intrusive_ptr<Object>::unsafe_retain(&object), std::move(code)};
}

// ---- writing
namespace {

class Writer {
 public:
  explicit Writer(const ModuleCode& code)
      : code_(code), pickle_([this](const Tensor& t) { return store(t); },
                             [this](const IValue& v) { return other(v); }) {}

  std::string run(const Object& root, const std::unordered_map<std::string, std::string>& extra) {
    object(root);
    serialize::ZipWriter zip;
    for (size_t i = 0; i < stored_.size(); ++i) {
      const Tensor& t = stored_[i];
      const char* data = t.numel() == 0 ? "" : static_cast<const char*>(t.const_data_ptr());
      zip.add("archive/data/" + std::to_string(i), std::string_view(data, t.nbytes()));
    }
    zip.add("archive/data.pkl", pickle_.finish());
    for (const auto& [name, contents] : code_.records) zip.add("archive/" + name, contents);
    for (const auto& [name, contents] : extra) zip.add("archive/extra/" + name, contents);
    zip.add("archive/version", "3\n");
    zip.add("archive/byteorder", "little");
    return zip.finish();
  }

 private:
  std::string store(const Tensor& tensor) {
    stored_.push_back(tensor.cpu());
    return std::to_string(stored_.size() - 1);
  }
  void object(const Object& o) {
    const auto known = places_.find(&o);
    if (known != places_.end()) {
      pickle_.recall(known->second);
      return;
    }
    const size_t dot = o.cls->name.rfind('.');
    pickle_.global(o.cls->name.substr(0, dot).c_str(), o.cls->name.substr(dot + 1).c_str());
    pickle_.raw(")\x81");
    places_[&o] = pickle_.remember();
    const source::Class& cls = code_.class_of(o);
    const auto get_state = cls.methods.find("__getstate__");
    if (get_state != cls.methods.end()) {
      Stack stack{
          IValue::opaque(c10::intrusive_ptr<Object>::unsafe_retain(const_cast<Object*>(&o)))};
      get_state->second->function->run(stack);
      pickle_.value(stack.back());
    } else {
      pickle_.begin_dict();
      for (size_t i = 0; i < o.slots.size(); ++i) {
        pickle_.text(o.cls->slots[i]);
        pickle_.value(o.slots[i]);
      }
      pickle_.end_dict();
    }
    pickle_.raw("b");
  }
  // Values that files of tensors do not have. False where there is no form for one.
  bool other(const IValue& v) {
    if (const Object* o = as<Object>(v)) {
      object(*o);
    } else if (const Tuple* tuple = as<Tuple>(v)) {
      pickle_.raw("(");
      for (const IValue& item : tuple->items) pickle_.value(item);
      pickle_.raw("t");
    } else if (const Dict* dict = as<Dict>(v)) {
      pickle_.begin_dict();
      for (const auto& [key, item] : *dict) {
        pickle_.value(key);
        pickle_.value(item);
      }
      pickle_.end_dict();
    } else if (v.tag == IValue::Tag::IntList) {
      typed_list("build_intlist", v);
    } else if (v.tag == IValue::Tag::DoubleList) {
      typed_list("build_doublelist", v);
    } else if (v.tag == IValue::Tag::BoolList) {
      typed_list("build_boollist", v);
    } else if (v.tag == IValue::Tag::TensorList) {
      typed_list("build_tensorlist", v);
    } else if (v.tag == IValue::Tag::Device) {
      pickle_.text(v.toDevice().str());
    } else {
      return false;
    }
    return true;
  }
  void typed_list(const char* maker, const IValue& v) {
    pickle_.global("torch.jit._pickle", maker);
    pickle_.raw("(](");
    for (size_t i = 0; i < list_size(v); ++i) pickle_.value(list_get(v, i));
    pickle_.raw("etR");
  }

  const ModuleCode& code_;
  serialize::PickleWriter pickle_;
  std::vector<Tensor> stored_;
  std::unordered_map<const Object*, size_t> places_;
};

} // namespace

std::string write_archive(const Object& object, const ModuleCode& code,
                          const std::unordered_map<std::string, std::string>& extra_files) {
  return Writer(code).run(object, extra_files);
}

} // namespace torch::jit
