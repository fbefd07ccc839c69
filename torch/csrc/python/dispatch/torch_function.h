// __torch_function__: which types override operators, the thread's stack of modes, and the call
// into Python. Operator bindings ask two cheap questions on every call: is some argument not a
// plain tensor, and is a mode active anywhere in the process. Only a yes leads here.
#pragma once
#include <torch/csrc/python/tensor/tensor.h>

#include <c10/util/SmallVector.h>

namespace torch::python {

enum TypeTrait : uint8_t {
  kIsTensorType = 1, // derives from TensorBase
  kOverrides = 2,    // has a __torch_function__ that is not disabled
  kDispatches = 4    // a tensor type with a __torch_dispatch__ that is not disabled
};
// Traits of a type, cached by its version.
uint8_t type_traits(PyTypeObject* type);

// Modes pushed by all threads together; while zero no thread-local state needs a look.
extern int active_function_modes;
bool function_mode_active_slow() noexcept;
inline bool function_mode_active() noexcept {
  return C10_UNLIKELY(active_function_modes != 0) && function_mode_active_slow();
}
// Subclass overrides are not switched off on this thread.
bool overrides_enabled() noexcept;

// A tensor (or tensor-like) whose __torch_function__ must be asked.
inline bool has_override(PyObject* o) {
  return !is_plain_tensor(o) && (type_traits(Py_TYPE(o)) & kOverrides) && overrides_enabled();
}

// Arguments with overrides in the order in which they are asked: as given, subclasses first, one
// per type. References are borrowed.
class Overloads {
 public:
  void add(PyObject* o);
  // Adds the items of a tuple or list.
  void add_sequence(PyObject* sequence);
  bool empty() const { return args_.empty(); }
  const PyObject* const* begin() const { return args_.begin(); }
  const PyObject* const* end() const { return args_.end(); }
  size_t size() const { return args_.size(); }
  PyObject* operator[](size_t i) const { return args_[i]; }

 private:
  c10::SmallVector<PyObject*, 6> args_;
};

// Asks the active mode and then each overload; `args` is a tuple, `kwargs` a dict or nullptr. A new
// reference, or nullptr with the error set.
PyObject* run_torch_function(PyObject* func, const Overloads& overloads, PyObject* args,
                             PyObject* kwargs, const char* public_name);

// For properties: returns true, with the outcome in *result, when `self` or a mode takes the read
// of property `name` over.
bool property_override(PyObject* self, const char* name, PyObject** result);
// The same for a write; *status is what the setter returns.
bool property_set_override(PyObject* self, const char* name, PyObject* value, int* status);
// For slots of the type ("__getitem__", ...): func is the attribute `name` of TensorBase.
bool slot_override(const char* name, PyObject* const* args, Py_ssize_t nargs, PyObject** result);

// For methods that parse their arguments themselves: true, with the outcome in *result, when `self`
// or a mode takes the call of method `name` over.
bool method_override(const char* name, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                     PyObject* kwnames, PyObject** result);

// Where the functions of a public module ("torch", "torch.nn.functional") live in torch._C.
void register_function_owner(const char* public_module, PyObject* owner);
// The public callable of a function, as __torch_function__ receives it; a new reference.
PyObject* public_callable(const char* module, const char* name);

// Objects that stand in for "no override": torch._C._disabled_torch_function_impl and its sibling.
extern PyObject* disabled_torch_function;
extern PyObject* disabled_torch_dispatch;

bool init_torch_function(PyObject* module);

} // namespace torch::python
