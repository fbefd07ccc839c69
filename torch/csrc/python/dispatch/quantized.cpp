// The registration of torch.ops.quantized on request, and the scheme of a quantized tensor: the
// type torch.qscheme is Python's alone, so no operator returns one.
#include <torch/csrc/python/dispatch/quantized.h>

#include <ATen/core/QuantizedTensor.h>
#include <torch/csrc/python/tensor/wrap.h>
#include <torch/csrc/quantized/operators.h>

namespace torch::python {
namespace {

PyObject* py_register(PyObject*, PyObject*) {
  return guarded([&] {
    torch::quantized::register_operators();
    return new_none();
  });
}

// The number of the tensor's scheme in the order of torch.qscheme.
PyObject* py_scheme(PyObject*, PyObject* tensor) {
  return guarded([&] {
    TORCH_CHECK_TYPE(is_tensor(tensor), "qscheme(): expected a tensor, got ",
                     Py_TYPE(tensor)->tp_name);
    const auto scheme = at::quantized::quantizer_of(tensor_of(tensor), "qscheme")->scheme;
    return PyLong_FromLong(static_cast<long>(scheme));
  });
}

PyMethodDef functions[] = {{"_register_quantized_operators", py_register, METH_NOARGS, nullptr},
                           {"_quantization_scheme", py_scheme, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_quantized(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

} // namespace torch::python
