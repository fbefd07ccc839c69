// What extension modules of ours besides torch._C need from it: tensors as Python objects, and
// errors. They are loaded when first used, long after torch._C, whose symbols are its own; so it
// hands them a table in a capsule.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <ATen/core/Tensor.h>

namespace torch::python {

struct Bridge {
  bool (*is_tensor)(PyObject* o);
  const at::Tensor& (*tensor_of)(PyObject* o);
  PyObject* (*wrap_tensor)(const at::Tensor& tensor); // a new reference; throws
  void (*set_error)() noexcept;                       // inside catch (...)
};
inline constexpr char kBridgeName[] = "torch._C._bridge";

// Adds the capsule to torch._C.
bool init_bridge(PyObject* module);

} // namespace torch::python
