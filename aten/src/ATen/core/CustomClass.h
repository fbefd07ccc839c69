// Classes written in C++ and used from Python and from scripts (torch::class_). A class is a record
// of methods over stacks of IValues; an instance is any object derived from CustomClassHolder, held
// by an IValue together with its class. Records live as long as the process.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <typeinfo>

#include <ATen/core/Containers.h>
#include <ATen/core/FunctionSchema.h>

namespace at {

struct CustomArgument {
  std::string name;
  std::optional<IValue> value; // the default
};

struct TORCH_API CustomMethod {
  std::string name;
  // Of a method that is not static the first argument is the instance.
  FunctionSchema schema;
  // Takes the arguments of the schema from the stack and pushes one result, None for nothing.
  std::function<void(Stack&)> call;
  std::string doc;
  // Gives the arguments after the first `skip` their names and defaults: all of them or none.
  void name_arguments(size_t skip, const std::vector<CustomArgument>& named);
};

struct TORCH_API CustomProperty {
  std::string name;
  std::shared_ptr<CustomMethod> getter;
  std::shared_ptr<CustomMethod> setter; // null when it cannot be set
  std::string doc;
};

class TORCH_API CustomClass {
 public:
  using Methods = std::map<std::string, std::shared_ptr<CustomMethod>>;

  const std::string& ns() const { return ns_; }
  const std::string& name() const { return name_; }
  const std::string& doc() const { return doc_; }
  // "__torch__.torch.classes.ns.Name"
  const std::string& qualified_name() const { return qualified_name_; }

  // Null when there is none.
  const CustomMethod* method(const std::string& name) const;
  const CustomMethod* static_method(const std::string& name) const;
  const CustomProperty* property(const std::string& name) const;
  const Methods& methods() const { return methods_; }
  const std::vector<CustomProperty>& properties() const { return properties_; }
  bool can_pickle() const { return method("__getstate__") && method("__setstate__"); }

  // Error when one of this name exists.
  void add_method(CustomMethod method);
  void add_static_method(CustomMethod method);
  void add_property(CustomProperty property);

  // "__init__" on the arguments, without an instance. Error when the class has none.
  IValue construct(Stack arguments) const;
  // The state of an instance and an instance from a state; Error for classes that have no
  // def_pickle.
  IValue get_state(const IValue& instance) const;
  IValue from_state(IValue state) const;

  // Registers a class for a C++ type; Error when the name or the type is taken.
  static CustomClass& create(std::string ns, std::string name, const std::type_info& type,
                             std::string doc);
  // By "ns.Name" or by the qualified name; null when there is none.
  static const CustomClass* find(const std::string& name);
  static const CustomClass* find(const std::type_info& type);
  // The class of an instance; Error when the value is none, or its C++ type is not registered.
  static const CustomClass& of(const IValue& instance);
  static std::vector<const CustomClass*> all();

 private:
  CustomClass(std::string ns, std::string name, std::string doc);
  std::string ns_, name_, qualified_name_, doc_;
  Methods methods_, static_methods_;
  std::vector<CustomProperty> properties_;
};

} // namespace at
