// Scripted modules in C++ programs: what torch.jit.save wrote, loaded and run without Python.
//
//   torch::jit::Module module = torch::jit::load("model.pt");
//   at::Tensor out = module.forward({input}).toTensor();
//
// A Module is a handle: copies share the object, clone() and deepcopy() do not. Methods may run on
// several threads at once as long as none of them writes attributes. Whatever is wrong with a file
// or a call is a c10::Error.
#pragma once
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/jit/values.h>
#include <torch/types.h>

namespace torch::jit {

struct ModuleCode; // the code of the archive a module comes from
namespace source {
struct Callable;
} // namespace source

using Kwargs = std::unordered_map<std::string, c10::IValue>;
using ExtraFilesMap = std::unordered_map<std::string, std::string>;

// A tensor, value or module with its name ("layer.0.weight").
template <class T> struct Named {
  std::string name;
  T value;
};

// A method of a module, bound to it, or a function.
class Method {
 public:
  c10::IValue operator()(std::vector<c10::IValue> args, const Kwargs& kwargs = {}) const;
  void run(std::vector<c10::IValue>& stack) const; // arguments in, the result out
  const std::string& name() const;
  size_t num_inputs() const; // with the module itself

 private:
  friend class Module;
  friend class CompilationUnit;
  Method(c10::intrusive_ptr<Object> self, std::shared_ptr<ModuleCode> code,
         const source::Callable* callable)
      : self_(std::move(self)), code_(std::move(code)), callable_(callable) {}
  c10::intrusive_ptr<Object> self_;
  std::shared_ptr<ModuleCode> code_;
  const source::Callable* callable_;
};

class Module {
 public:
  Module(); // empty: every question about it is an Error
  Module(c10::intrusive_ptr<Object> object, std::shared_ptr<ModuleCode> code);
  Module(const Module&);
  Module(Module&&) noexcept;
  Module& operator=(const Module&);
  Module& operator=(Module&&) noexcept;
  ~Module();

  c10::IValue forward(std::vector<c10::IValue> inputs, const Kwargs& kwargs = {}) const;
  c10::IValue operator()(std::vector<c10::IValue> inputs) const {
    return forward(std::move(inputs));
  }
  Method get_method(const std::string& name) const;
  std::optional<Method> find_method(const std::string& name) const;
  std::vector<Method> get_methods() const;
  template <class... Args> c10::IValue run_method(const std::string& name, Args&&... args) const {
    return get_method(name)({c10::IValue(std::forward<Args>(args))...});
  }

  // Attributes, parameters, buffers and submodules by their name in this module.
  c10::IValue attr(const std::string& name) const;
  c10::IValue attr(const std::string& name, c10::IValue or_else) const;
  Module submodule(const std::string& name) const;
  bool hasattr(const std::string& name) const;
  void setattr(const std::string& name, const c10::IValue& value);

  std::vector<at::Tensor> parameters(bool recurse = true) const;
  std::vector<at::Tensor> buffers(bool recurse = true) const;
  std::vector<Module> modules() const;
  std::vector<Module> children() const;
  std::vector<Named<at::Tensor>> named_parameters(bool recurse = true) const;
  std::vector<Named<at::Tensor>> named_buffers(bool recurse = true) const;
  std::vector<Named<Module>> named_modules() const;
  std::vector<Named<Module>> named_children() const;
  std::vector<Named<c10::IValue>> named_attributes(bool recurse = true) const;
  std::string type_name() const; // "__torch__.Net"

  void to(at::Device device, at::ScalarType dtype, bool non_blocking = false);
  void to(at::ScalarType dtype, bool non_blocking = false);
  void to(at::Device device, bool non_blocking = false);
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;

  Module copy() const;     // shares tensors and submodules
  Module clone() const;    // submodules are copied, tensors shared
  Module deepcopy() const; // nothing is shared

  void save(std::ostream& out, const ExtraFilesMap& extra_files = {}) const;
  void save(const std::string& filename, const ExtraFilesMap& extra_files = {}) const;

  const c10::intrusive_ptr<Object>& object() const { return object_; }

 private:
  friend class Method;
  Object& self() const;
  std::vector<Named<at::Tensor>> tensors(const std::string& role, bool recurse) const;
  void convert(const std::function<at::Tensor(const at::Tensor&)>& change);
  c10::intrusive_ptr<Object> object_;
  std::shared_ptr<ModuleCode> code_;
};

// `device` is where tensors go; without one they stay where they were saved, where that exists.
// `extra_files` names records to read; their values are filled in.
Module load(std::istream& in, std::optional<at::Device> device = std::nullopt);
Module load(std::istream& in, std::optional<at::Device> device, ExtraFilesMap& extra_files);
Module load(const std::string& filename, std::optional<at::Device> device = std::nullopt);
Module load(const std::string& filename, std::optional<at::Device> device,
            ExtraFilesMap& extra_files);

// Functions of a text. Parameters without annotation are tensors; what a function returns follows
// from its code.
class CompilationUnit {
 public:
  CompilationUnit() = default;
  explicit CompilationUnit(const std::string& source);
  ~CompilationUnit();
  // Adds the functions of another text. Nothing is added where it has an error.
  void define(const std::string& source);
  std::optional<Method> find_function(const std::string& name) const;
  Method get_function(const std::string& name) const;
  std::vector<Method> get_functions() const;
  template <class... Args> c10::IValue run_method(const std::string& name, Args&&... args) const {
    return get_function(name)({c10::IValue(std::forward<Args>(args))...});
  }

 private:
  std::string text_;
  std::shared_ptr<ModuleCode> code_;
  std::map<std::string, const source::Callable*> functions_;
};
// The functions of a text in the language of torch.jit.script.
std::shared_ptr<CompilationUnit> compile(const std::string& source);

namespace script {
using CompilationUnit = ::torch::jit::CompilationUnit;
using Module = ::torch::jit::Module;
using Method = ::torch::jit::Method;
} // namespace script

} // namespace torch::jit

namespace torch::script {
using Module = ::torch::jit::Module;
} // namespace torch::script
