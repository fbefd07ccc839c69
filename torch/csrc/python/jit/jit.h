// torch._C's part of scripted programs: types, classes and functions as the front end (torch/jit)
// builds them, and calls of functions with Python arguments.
#pragma once
#include <torch/csrc/jit/program.h>
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

// A type that a Python class stands behind: named tuples and enumerations.
struct ScriptType final : jit::Type {
  PyRef python;
};

// A Python value that scripted code only passes on.
struct PythonValue final : jit::Boxed {
  static constexpr Kind kKind = Kind::Python;
  explicit PythonValue(PyRef v) : Boxed(kKind), value(std::move(v)) {}
  ~PythonValue() override;
  PyRef value;
};

// Thrown for a value that does not fit its type; says why.
struct CastError : std::exception {
  explicit CastError(std::string why) : why(std::move(why)) {}
  const char* what() const noexcept override { return why.c_str(); }
  std::string why;
};

at::IValue to_script(PyObject* o, const jit::Type& type); // CastError when it does not fit
PyRef to_python(const at::IValue& value);

// Handles. Each `new_` throws.
jit::TypePtr type_of_handle(PyObject* o);
std::shared_ptr<jit::ClassInfo> class_of_handle(PyObject* o);
std::shared_ptr<jit::Function> function_of_handle(PyObject* o);
PyRef new_object_handle(const at::IValue& object);
// The object behind a handle or behind the `_c` of a module or class instance; null when `o` is
// neither.
bool object_of(PyObject* o, at::IValue* out);

bool init_jit_types(PyObject* module);
bool init_jit_functions(PyObject* module);
inline bool init_jit(PyObject* module) {
  return init_jit_types(module) && init_jit_functions(module);
}

} // namespace torch::python
