// Levels and dual tensors of forward-mode differentiation, for torch/autograd/forward_ad.py.
#include <torch/csrc/python/autograd/forward.h>

#include <torch/csrc/autograd/forward_mode.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {
namespace {

PyObject* py_enter(PyObject*, PyObject*) {
  return guarded([] { return wrap(autograd::enter_dual_level()); });
}
PyObject* py_exit(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"level", nullptr};
  long long level = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "L", const_cast<char**>(names), &level))
    return nullptr;
  return guarded([&] {
    autograd::exit_dual_level(level);
    return new_none();
  });
}
const at::Tensor& tensor_argument(PyObject* o, const char* name) {
  if (!is_tensor(o))
    raise_type_error(std::string(name) + " must be a Tensor, not " + Py_TYPE(o)->tp_name);
  return tensor_of(o);
}
PyObject* py_make(PyObject*, PyObject* args) {
  PyObject *primal = nullptr, *tangent = nullptr;
  long long level = 0;
  if (!PyArg_ParseTuple(args, "OOL", &primal, &tangent, &level)) return nullptr;
  return guarded([&] {
    return wrap(autograd::make_dual(tensor_argument(primal, "tensor"),
                                    tensor_argument(tangent, "tangent"), level));
  });
}
PyObject* py_unpack(PyObject*, PyObject* dual) {
  return guarded([&] {
    const at::Tensor& t = tensor_argument(dual, "tensor");
    return wrap(std::make_tuple(autograd::primal_of(t), autograd::tangent_of(t)));
  });
}

// Whether operators carry tangents on, on this thread.
PyObject* py_is_enabled(PyObject*, PyObject*) {
  return new_bool(c10::tls_autograd_state.fw_grad_mode);
}
PyObject* py_set_enabled(PyObject*, PyObject* value) {
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  c10::tls_autograd_state.fw_grad_mode = truth != 0;
  return new_none();
}

PyMethodDef functions[] = {{"_is_fwd_grad_enabled", py_is_enabled, METH_NOARGS, nullptr},
                           {"_set_fwd_grad_mode", py_set_enabled, METH_O, nullptr},
                           {"_enter_dual_level", py_enter, METH_NOARGS, nullptr},
                           {"_exit_dual_level", reinterpret_cast<PyCFunction>(py_exit),
                            METH_VARARGS | METH_KEYWORDS, nullptr},
                           {"_make_dual", py_make, METH_VARARGS, nullptr},
                           {"_unpack_dual", py_unpack, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_autograd_forward(PyObject* module) {
  return PyModule_AddFunctions(module, functions) >= 0;
}

} // namespace torch::python
