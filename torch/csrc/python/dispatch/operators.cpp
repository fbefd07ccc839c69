// What programs ask the dispatcher about its operators: names, schemas, kernels; and the objects of
// torch.ops.
#include <torch/csrc/python/dispatch/operators.h>

#include <ATen/functorch/Interpret.h>
#include <torch/csrc/python/dispatch/custom_class.h>
#include <torch/csrc/python/dispatch/dispatch_keys.h>
#include <torch/csrc/python/dispatch/load_failures.h>
#include <torch/csrc/python/dispatch/operator_call.h>
#include <torch/csrc/python/dispatch/schema_type.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <string>
#include <unordered_map>

namespace torch::python {
namespace {

// ---- functions of the module --------------------------------------------------------------------
const at::OperatorEntry* find_operator(const char* name, const char* overload) {
  const at::OperatorEntry* op = at::Dispatcher::singleton().find(name, overload);
  TORCH_CHECK(op != nullptr, "No such operator ", name, overload[0] ? "." : "", overload);
  return op;
}

PyObject* py_get_operation(PyObject*, PyObject* args) {
  const char *name = nullptr, *overload = "";
  if (!PyArg_ParseTuple(args, "s|s", &name, &overload)) return nullptr;
  return guarded([&] { return new_operator(*find_operator(name, overload)); });
}
PyObject* py_get_schema(PyObject*, PyObject* args) {
  const char *name = nullptr, *overload = "";
  if (!PyArg_ParseTuple(args, "s|s", &name, &overload)) return nullptr;
  return guarded([&] { return new_schema(find_operator(name, overload)->schema()); });
}
// The overload names of an operator; an empty list when there is no such operator.
PyObject* py_overload_names(PyObject*, PyObject* name) {
  return guarded([&] {
    if (!PyUnicode_Check(name)) raise_type_error("expected the name of an operator");
    PyRef out = checked(PyList_New(0));
    for (const at::OperatorEntry* op : at::Dispatcher::singleton().overloads(utf8(name))) {
      PyRef text = checked(PyUnicode_FromString(op->overload));
      check_status(PyList_Append(out.get(), text.get()));
    }
    return out.release();
  });
}
PyObject* py_all_names(PyObject*, PyObject*) {
  return guarded([] {
    PyRef out = checked(PyList_New(0));
    for (const at::OperatorEntry* op : at::Dispatcher::singleton().all()) {
      PyRef text = checked(wrap(op->full_name()));
      check_status(PyList_Append(out.get(), text.get()));
    }
    return out.release();
  });
}

// Whether an operator has a kernel of its own for a key; of the two kinds of batching, the one that
// vmap uses.
bool registered_for(const at::OperatorEntry& op, const std::string& key) {
  using at::functorch::BatchedBy;
  if (key == "FuncTorchBatched") return at::functorch::batched_by(op) == BatchedBy::Rule;
  if (key == "FuncTorchBatchedDecomposition")
    return at::functorch::batched_by(op) == BatchedBy::Definition;
  return op.has_kernel(c10::parseDispatchKey(key));
}
// _dispatch_get_registrations_for_dispatch_key(key=""): the names of the operators that have a
// kernel for it; all names without a key.
PyObject* py_registrations(PyObject*, PyObject* args) {
  const char* key = "";
  if (!PyArg_ParseTuple(args, "|s", &key)) return nullptr;
  return guarded([&] {
    PyRef out = checked(PyList_New(0));
    for (const at::OperatorEntry* op : at::Dispatcher::singleton().all()) {
      if (*key != 0 && !registered_for(*op, key)) continue;
      PyRef text = checked(wrap(op->full_name()));
      check_status(PyList_Append(out.get(), text.get()));
    }
    return out.release();
  });
}

// _jit_get_all_schemas(): the schemas of all operators.
PyObject* py_all_schemas(PyObject*, PyObject*) {
  return guarded([&] {
    PyRef out = checked(PyList_New(0));
    for (const at::OperatorEntry* op : at::Dispatcher::singleton().all())
      check_status(PyList_Append(out.get(), checked(new_schema(op->schema())).get()));
    return out.release();
  });
}

const at::OperatorEntry* find_full(const std::string& full) {
  const size_t dot = full.find('.', full.find("::") == full.npos ? 0 : full.find("::"));
  const std::string name = full.substr(0, dot);
  const std::string overload = dot == full.npos ? "" : full.substr(dot + 1);
  return at::Dispatcher::singleton().find(name, overload);
}

// _dispatch_has_kernel("aten::add.Tensor")
PyObject* py_has_kernel(PyObject*, PyObject* name) {
  return guarded([&] {
    if (!PyUnicode_Check(name)) raise_type_error("expected the name of an operator");
    return new_bool(find_full(std::string(utf8(name))) != nullptr);
  });
}
template <bool kComputed> PyObject* py_has_kernel_for_key(PyObject*, PyObject* args) {
  const char* name = nullptr;
  PyObject* key = nullptr;
  if (!PyArg_ParseTuple(args, "sO", &name, &key)) return nullptr;
  return guarded([&] {
    const at::OperatorEntry* op = find_full(name);
    TORCH_CHECK(op != nullptr, "operator ", name, " does not exist");
    const c10::DispatchKey parsed = key_from(key);
    return new_bool(kComputed ? op->has_kernel_for(parsed) : op->has_kernel(parsed));
  });
}

PyMethodDef functions[] = {
    {"_get_operation", py_get_operation, METH_VARARGS, "_get_operation(name, overload='')"},
    {"_get_schema", py_get_schema, METH_VARARGS, "_get_schema(name, overload='')"},
    {"_get_overload_names", py_overload_names, METH_O, "_get_overload_names(name)"},
    {"_dispatch_get_all_op_names", py_all_names, METH_NOARGS, nullptr},
    {"_jit_get_all_schemas", py_all_schemas, METH_NOARGS, nullptr},
    {"_dispatch_get_registrations_for_dispatch_key", py_registrations, METH_VARARGS, nullptr},
    {"_dispatch_has_kernel", py_has_kernel, METH_O, nullptr},
    {"_dispatch_has_kernel_for_dispatch_key", py_has_kernel_for_key<false>, METH_VARARGS, nullptr},
    {"_dispatch_has_computed_kernel_for_dispatch_key", py_has_kernel_for_key<true>, METH_VARARGS,
     nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

PyRef overload_object(const at::OperatorEntry& op) {
  static auto* cache = new std::unordered_map<const at::OperatorEntry*, PyObject*>;
  const auto known = cache->find(&op);
  if (known != cache->end()) return PyRef::borrow(known->second);
  static PyObject* ops = nullptr;
  if (!cached_attribute(ops, "torch", "ops")) throw python_error();
  const std::string name = op.name;
  const size_t colons = name.find("::");
  PyRef space = checked(PyObject_GetAttrString(ops, name.substr(0, colons).c_str()));
  PyRef packet = checked(PyObject_GetAttrString(space.get(), name.substr(colons + 2).c_str()));
  PyRef overload =
      checked(PyObject_GetAttrString(packet.get(), op.overload[0] ? op.overload : "default"));
  Py_INCREF(overload.get());
  cache->emplace(&op, overload.get());
  return overload;
}

bool init_operators(PyObject* module) {
  return init_operator_types(module) && init_schema_types(module) && init_custom_classes(module) &&
         init_load_failures(module) && PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
