// What extension modules besides torch._C need from it, ours and those of others (torch/python.h):
// tensors and other values as Python objects, and errors. They are loaded when first used, long
// after torch._C, whose symbols are its own; so it hands them a table in a capsule.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <ATen/core/FunctionSchema.h>
#include <ATen/core/Tensor.h>

namespace torch::python {

struct Bridge {
  // Raised with every change of this table or of the classes it passes.
  static constexpr int kLayout = 1;
  int layout;
  bool (*is_tensor)(PyObject* o);
  const at::Tensor& (*tensor_of)(PyObject* o);
  PyObject* (*wrap_tensor)(const at::Tensor& tensor); // a new reference; throws
  void (*set_error)() noexcept;                       // inside catch (...)
  // Reads an object as a value of the type; false where it does not fit. Throws what reading
  // throws.
  bool (*to_value)(PyObject* o, const at::SchemaType& type, at::IValue& value);
  PyObject* (*from_value)(const at::IValue& value); // a new reference; throws
};
inline constexpr char kBridgeName[] = "torch._C._bridge";

// Adds the capsule to torch._C.
bool init_bridge(PyObject* module);

} // namespace torch::python
