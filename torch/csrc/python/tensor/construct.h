// Tensors from Python data: torch.tensor, as_tensor, asarray, from_numpy, frombuffer, new_tensor
// and the old constructors torch.Tensor(...), torch.FloatTensor(...), x.new(...).
#pragma once
#include <optional>

#include <torch/csrc/python/runtime/support.h>

#include <ATen/core/Tensor.h>

namespace torch::python {

// What is asked of a tensor made from data. An open dtype is inferred, an open device is the CPU.
struct ConstructOptions {
  std::optional<c10::ScalarType> dtype;
  std::optional<c10::Device> device;
  bool copy = true; // always copy, even where memory could be shared
};

// A tensor with the values of a number, a nested sequence, a NumPy array or a tensor. Throws.
// A tensor made of Python data, as modes see it come into being.
at::Tensor lifted(at::Tensor made);
at::Tensor tensor_from_data(PyObject* data, const ConstructOptions& options);
// A one-dimensional tensor in the memory of a storage. The bytes of an UntypedStorage are read as
// `dtype` (int64 when open); the elements of a TypedStorage have one, to which they are converted
// from their own. Undefined when `data` is no storage. Throws.
at::Tensor tensor_from_storage(PyObject* data, std::optional<c10::ScalarType> dtype);
// The dtype that `data` has or that its Python numbers lead to. Throws when there is none.
c10::ScalarType infer_scalar_type(PyObject* data);
// A list used as an index: masks stay masks, everything else becomes int64.
at::Tensor indexing_tensor_from_data(PyObject* data, c10::Device device);

// `tensor` on `device` with `dtype`: itself when it is so already and no copy is asked for.
at::Tensor converted(const at::Tensor& tensor, c10::Device device, c10::ScalarType dtype,
                     bool copy = false);

// torch.Tensor(...) and subclasses: the constructor of the tensor type. Throws.
PyObject* legacy_tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);

// torch.FloatTensor(...), x.new(...): the same for a given dtype and device.
at::Tensor legacy_tensor(c10::ScalarType dtype, c10::Device device, PyObject* args,
                         PyObject* kwargs);

bool init_construct(PyObject* module);

} // namespace torch::python
