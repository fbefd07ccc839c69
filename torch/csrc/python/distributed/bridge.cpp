// The table of Bridge, filled by torch._C.
#include <torch/csrc/python/distributed/bridge.h>

#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {

bool init_bridge(PyObject* module) {
  static Bridge table = {
      [](PyObject* o) { return is_tensor(o); },
      [](PyObject* o) -> const at::Tensor& { return tensor_of(o); },
      [](const at::Tensor& tensor) { return wrap(tensor); },
      []() noexcept { set_error_from_exception(); },
  };
  return add_object(module, "_bridge", PyCapsule_New(&table, kBridgeName, nullptr));
}

} // namespace torch::python
