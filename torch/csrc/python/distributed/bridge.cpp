// The table of Bridge, filled by torch._C.
#include <torch/csrc/python/distributed/bridge.h>

#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {

bool init_bridge(PyObject* module) {
  static Bridge table = {
      Bridge::kLayout,
      [](PyObject* o) { return is_tensor(o); },
      [](PyObject* o) -> const at::Tensor& { return tensor_of(o); },
      [](const at::Tensor& tensor) { return wrap(tensor); },
      []() noexcept { set_error_from_exception(); },
      [](PyObject* o, const at::SchemaType& type, at::IValue& value) {
        if (!fits_type(o, type)) return false;
        value = to_ivalue(o, type, "argument", "value");
        return true;
      },
      [](const at::IValue& value) { return from_ivalue(value, nullptr).release(); },
  };
  return add_object(module, "_bridge", PyCapsule_New(&table, kBridgeName, nullptr));
}

} // namespace torch::python
