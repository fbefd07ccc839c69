// PyInit__C: builds torch._C from its parts and installs the generated operator bindings. Functions
// of torch live in `torch._C._VariableFunctions`, those of torch.nn.functional in `torch._C._nn`,
// and so on; methods go straight into the tensor type.
#include <torch/csrc/dynamo/codec.h>
#include <torch/csrc/fx/fx.h>
#include <torch/csrc/python/aot/aot.h>
#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/autograd/anomaly.h>
#include <torch/csrc/python/autograd/compiled_backward.h>
#include <torch/csrc/python/autograd/engine.h>
#include <torch/csrc/python/autograd/forward.h>
#include <torch/csrc/python/autograd/function.h>
#include <torch/csrc/python/autograd/modes.h>
#include <torch/csrc/python/autograd/node.h>
#include <torch/csrc/python/autograd/saved.h>
#include <torch/csrc/python/bind_tables.h>
#include <torch/csrc/python/inductor/inductor.h>
#include <torch/csrc/python/runtime/autocast.h>
#include <torch/csrc/python/runtime/backends.h>
#include <torch/csrc/python/tensor/construct.h>
#ifndef CRESSET_NO_CUDA
#include <torch/csrc/python/cuda/cuda.h>
#endif
#include <torch/csrc/python/dispatch/dispatch.h>
#include <torch/csrc/python/dispatch/functional.h>
#include <torch/csrc/python/dispatch/functorch.h>
#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/distributed/bridge.h>
#include <torch/csrc/python/jit/jit.h>
#include <torch/csrc/python/nn/module_base.h>
#include <torch/csrc/python/pytree/pytree.h>
#include <torch/csrc/python/runtime/exceptions.h>
#include <torch/csrc/python/runtime/profiler.h>
#include <torch/csrc/python/runtime/runtime.h>
#include <torch/csrc/python/sym/sym.h>
#include <torch/csrc/python/tensor/indexing.h>
#include <torch/csrc/python/tensor/interop.h>
#include <torch/csrc/python/tensor/storage.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/types/types.h>

#include <cstring>

namespace torch::python {
namespace {

// A submodule of torch._C with generated functions; `owner` is the public module they appear in.
// The functions of torch say that they are torch's. The others (linalg_inv) say where their name
// can be looked up: there the public module has another name for them (inv), and pickle asks.
bool add_functions(PyObject* module, const char* name, const char* owner,
                   PyMethodDef* const* shards) {
  const std::string full = std::string("torch._C.") + name;
  PyRef space(PyModule_New(full.c_str()));
  PyRef home(PyUnicode_FromString(std::strcmp(owner, "torch") == 0 ? owner : full.c_str()));
  if (!space || !home) return false;
  for (; *shards; ++shards) {
    for (PyMethodDef* def = *shards; def->ml_name; ++def) {
      PyRef function(PyCFunction_NewEx(def, nullptr, home.get()));
      if (!function || PyObject_SetAttrString(space.get(), def->ml_name, function.get()) < 0) {
        return false;
      }
    }
  }
  register_function_owner(owner, space.get());
  if (PyDict_SetItemString(PyImport_GetModuleDict(), full.c_str(), space.get()) < 0) return false;
  return add_object(module, name, space.release());
}

// Generated methods, where no hand-written one of that name exists.
bool add_generated_methods() {
  PyObject* dict = TensorBaseType.tp_dict;
  for (PyMethodDef* const* shards = tensor_method_shards; *shards; ++shards) {
    for (PyMethodDef* def = *shards; def->ml_name; ++def) {
      PyRef name(PyUnicode_InternFromString(def->ml_name));
      if (!name) return false;
      const int known = PyDict_Contains(dict, name.get());
      if (known < 0) return false;
      if (known) continue;
      PyRef descriptor(new_method(&TensorBaseType, def));
      if (!descriptor || PyDict_SetItem(dict, name.get(), descriptor.get()) < 0) return false;
    }
  }
  PyType_Modified(&TensorBaseType);
  return true;
}

bool add_operators(PyObject* module) {
  return add_generated_methods() &&
         add_functions(module, "_VariableFunctions", "torch", torch_function_shards) &&
         add_functions(module, "_nn", "torch.nn.functional", nn_function_shards) &&
         add_functions(module, "_linalg", "torch.linalg", linalg_function_shards) &&
         add_functions(module, "_special", "torch.special", special_function_shards) &&
         add_functions(module, "_fft", "torch.fft", fft_function_shards) &&
         add_functions(module, "_sparse", "torch.sparse", sparse_function_shards) &&
         add_functions(module, "_nested", "torch.nested", nested_function_shards);
}

// _get_return_type(name): the struct sequence of an operator with named results, or None.
PyObject* get_return_type(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    if (!PyUnicode_Check(name)) raise_type_error("expected the name of an operator");
    for (const NamedReturn* const* def = named_returns; *def; ++def) {
      if (utf8(name) != (*def)->name) continue;
      auto* type = reinterpret_cast<PyObject*>(named_type(**def));
      Py_XINCREF(type);
      return type;
    }
    return new_none();
  });
}
PyObject* return_type_names(PyObject*, PyObject*) {
  PyRef out(PyList_New(0));
  for (const NamedReturn* const* def = named_returns; out && *def; ++def) {
    PyRef name(PyUnicode_FromString((*def)->name));
    if (!name || PyList_Append(out.get(), name.get()) < 0) return nullptr;
  }
  return out.release();
}

// Types, caches and the GIL's state are the process's own: one interpreter can use them.
bool check_interpreter() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return true;
  PyErr_SetString(PyExc_ImportError,
                  "torch can be imported in the main interpreter only, not in a subinterpreter; "
                  "use threads or processes");
  return false;
}
// CPython gives a subinterpreter a copy of the module that the main one has imported.
PyObject* require_main_interpreter(PyObject*, PyObject*) {
  return check_interpreter() ? new_none() : nullptr;
}

PyMethodDef functions[] = {
    {"_require_main_interpreter", require_main_interpreter, METH_NOARGS, nullptr},
    {"_get_return_type", get_return_type, METH_O, nullptr},
    {"_return_type_names", return_type_names, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "torch._C", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

bool init_devices(PyObject* m) {
#ifndef CRESSET_NO_CUDA
  return init_cuda(m);
#else
  return add_object(m, "_has_cuda", new_bool(false));
#endif
}

bool init_all(PyObject* m) {
  return watch_interpreter_exit() && init_exceptions(m) && init_dtype(m) && init_layout(m) &&
         init_size(m) && init_shape_env(m) && init_sym_node(m) && init_sym(m) &&
         init_torch_function(m) && init_tensor(m) && init_device(m) && init_finfo(m) &&
         init_generator(m) && init_storage(m) && init_construct(m) && init_indexing(m) &&
         init_interop(m) && init_runtime(m) && init_dispatch(m) && init_autograd_node(m) &&
         init_compiled_backward(m) && init_autograd_function(m) && init_autograd_engine(m) &&
         init_autograd_anomaly(m) && init_autograd_modes(m) && init_autograd_saved(m) &&
         init_autograd_forward(m) && init_functorch(m) && init_functional(m) && init_autocast(m) &&
         init_profiler(m) && init_module_base(m) && init_pytree(m) && fx::init_fx(m) &&
         dynamo::init_dynamo(m) && init_aot(m) && init_inductor(m) && init_aoti(m) && init_jit(m) &&
         init_devices(m) && init_backends(m) && init_bridge(m) && add_operators(m);
}

} // namespace
} // namespace torch::python

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__C() {
  using namespace torch::python;
  if (!check_interpreter()) return nullptr;
  PyRef module(PyModule_Create(&definition));
  if (!module || !init_all(module.get())) return nullptr;
  return module.release();
}
