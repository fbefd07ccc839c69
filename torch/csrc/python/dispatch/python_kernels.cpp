// Definitions and registrations from Python. A Python callable becomes a boxed kernel: its
// arguments are taken from the stack, its result is checked against the schema and put back.
#include <torch/csrc/python/dispatch/python_kernels.h>

#include <torch/csrc/python/dispatch/dispatch_keys.h>
#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/dispatch/operators.h>
#include <torch/csrc/python/dispatch/result_check.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <ATen/core/Dispatcher.h>
#include <torch/csrc/autograd/vision.h>

#include <string>

namespace torch::python {
namespace {

// A callable with the arguments it wants in front: the key set where asked for, and for a fallback,
// which serves any operator, the operator itself.
class PythonKernel final : public at::BoxedKernel {
 public:
  PythonKernel(PyObject* function, bool with_keyset, bool with_operator)
      : function_(PyRef::borrow(function)), with_keyset_(with_keyset),
        with_operator_(with_operator) {}
  ~PythonKernel() override {
    if (!python_exists()) {
      function_.release();
      return;
    }
    WithGil gil;
    function_ = PyRef();
  }

  void call(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack& stack) override {
    WithGil gil;
    const at::FunctionSchema& schema = op.schema();
    PythonCall call = call_from_stack(schema, stack);
    PyRef head = checked(PyList_New(0));
    if (with_keyset_) check_status(PyList_Append(head.get(), checked(wrap(keys)).get()));
    if (with_operator_) check_status(PyList_Append(head.get(), overload_object(op).get()));
    if (PyList_GET_SIZE(head.get()) > 0) {
      PyRef front = checked(PyList_AsTuple(head.get()));
      call.args = checked(PySequence_Concat(front.get(), call.args.get()));
    }
    PyRef result = checked(PyObject_Call(function_.get(), call.args.get(), call.kwargs.get()));
    const auto given = stack.end() - static_cast<std::ptrdiff_t>(schema.arguments.size());
    at::Stack arguments(given, stack.end());
    push_result(op, stack, result.get());
    const auto made = stack.end() - static_cast<std::ptrdiff_t>(schema.returns.size());
    check_results(op, keys, std::move(arguments), at::Stack(made, stack.end()));
  }

 private:
  PyRef function_;
  bool with_keyset_, with_operator_;
};

const at::OperatorEntry* existing(const char* name, const char* overload) {
  const at::OperatorEntry* op = at::Dispatcher::singleton().find(name, overload);
  TORCH_CHECK(op != nullptr, "operator ", name, overload[0] ? "." : "", overload,
              " does not exist");
  return op;
}

// _library_define(schema, tags=()): "ns::name.overload(args) -> returns"; returns (name, overload).
PyObject* py_define(PyObject*, PyObject* args) {
  const char* schema = nullptr;
  PyObject* tags = nullptr;
  if (!PyArg_ParseTuple(args, "s|O", &schema, &tags)) return nullptr;
  return guarded([&] {
    std::vector<std::string> names;
    if (tags) {
      PyRef items = checked(PySequence_Fast(tags, "tags must be a sequence"));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
        names.push_back(text_of(PySequence_Fast_GET_ITEM(items.get(), i)));
      }
    }
    const at::OperatorEntry* op = at::Dispatcher::singleton().define(schema, std::move(names));
    return Py_BuildValue("ss", op->name, op->overload);
  });
}

PyObject* py_undefine(PyObject*, PyObject* args) {
  const char *name = nullptr, *overload = "";
  if (!PyArg_ParseTuple(args, "s|s", &name, &overload)) return nullptr;
  return guarded([&] {
    at::Dispatcher::singleton().undefine(existing(name, overload));
    return new_none();
  });
}

// _library_impl(name, overload, key, function, with_keyset=False): an id for _library_remove. None
// as the function is the fallthrough kernel.
PyObject* py_impl(PyObject*, PyObject* args) {
  const char *name = nullptr, *overload = nullptr;
  PyObject *key = nullptr, *function = nullptr;
  int with_keyset = 0;
  if (!PyArg_ParseTuple(args, "ssOO|p", &name, &overload, &key, &function, &with_keyset)) {
    return nullptr;
  }
  return guarded([&] {
    at::RuntimeKernel kernel;
    if (function == Py_None) {
      kernel.boxed = at::fallthrough_kernel();
    } else if (PyCallable_Check(function)) {
      kernel.boxed = c10::make_intrusive<PythonKernel>(function, with_keyset != 0, false);
    } else {
      raise_type_error(c10::str("a kernel must be callable, got ", type_name(function)));
    }
    kernel.debug = "registered from Python";
    const at::OperatorEntry* op = existing(name, overload);
    if (is_absent_key(key)) return PyLong_FromLong(0); // of no registration
    const uint64_t id =
        at::Dispatcher::singleton().register_kernel(op, key_from(key), std::move(kernel));
    return PyLong_FromUnsignedLongLong(id);
  });
}

PyObject* py_remove(PyObject*, PyObject* args) {
  const char *name = nullptr, *overload = nullptr;
  unsigned long long id = 0;
  if (!PyArg_ParseTuple(args, "ssK", &name, &overload, &id)) return nullptr;
  return guarded([&] {
    if (const auto* op = at::Dispatcher::singleton().find(name, overload)) {
      at::Dispatcher::singleton().deregister_kernel(op, id);
    }
    return new_none();
  });
}

PyObject* py_fallback(PyObject*, PyObject* args) {
  PyObject *key = nullptr, *function = nullptr;
  int with_keyset = 0;
  if (!PyArg_ParseTuple(args, "OO|p", &key, &function, &with_keyset)) return nullptr;
  return guarded([&] {
    c10::intrusive_ptr<at::BoxedKernel> kernel;
    if (function == Py_None) {
      kernel = at::fallthrough_kernel();
    } else if (PyCallable_Check(function)) {
      kernel = c10::make_intrusive<PythonKernel>(function, with_keyset != 0, true);
    } else {
      raise_type_error(c10::str("a kernel must be callable, got ", type_name(function)));
    }
    if (is_absent_key(key)) return new_none();
    const c10::DispatchKey parsed = key_from(key);
    TORCH_CHECK(!c10::isAliasDispatchKey(parsed) && parsed != c10::DispatchKey::Undefined,
                "a fallback needs a key of its own, got ", parsed);
    TORCH_CHECK(parsed != c10::DispatchKey::Python, "the fallback of the key Python is built in");
    at::Dispatcher::singleton().register_fallback(parsed, std::move(kernel));
    return new_none();
  });
}
PyObject* py_remove_fallback(PyObject*, PyObject* key) {
  return guarded([&] {
    if (is_absent_key(key)) return new_none();
    const c10::DispatchKey parsed = key_from(key);
    TORCH_CHECK(!c10::isAliasDispatchKey(parsed) && parsed != c10::DispatchKey::Python,
                "no fallback of ", parsed, " can be removed");
    at::Dispatcher::singleton().deregister_fallback(parsed);
    return new_none();
  });
}

PyObject* py_register_vision(PyObject*, PyObject*) {
  return guarded([&] {
    torch::vision::register_operators();
    return new_none();
  });
}

PyMethodDef functions[] = {
    {"_register_vision_operators", py_register_vision, METH_NOARGS, nullptr},
    {"_library_define", py_define, METH_VARARGS, "_library_define(schema, tags=())"},
    {"_library_undefine", py_undefine, METH_VARARGS, "_library_undefine(name, overload='')"},
    {"_library_impl", py_impl, METH_VARARGS,
     "_library_impl(name, overload, key, function, with_keyset=False)"},
    {"_library_remove", py_remove, METH_VARARGS, "_library_remove(name, overload, id)"},
    {"_library_fallback", py_fallback, METH_VARARGS,
     "_library_fallback(key, function, with_keyset=False)"},
    {"_library_remove_fallback", py_remove_fallback, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_python_kernels(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

} // namespace torch::python
