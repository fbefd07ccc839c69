// Memory shared with other libraries: NumPy arrays (found through sys.modules, never imported for
// the sake of a look), Python's buffer protocol and DLPack.
#pragma once
#include <optional>

#include <torch/csrc/python/runtime/support.h>

#include <ATen/core/Tensor.h>

namespace torch::python {

// Whether `o` is a numpy.ndarray (subclasses included) or a NumPy scalar. False while NumPy is not
// loaded.
bool is_numpy_array(PyObject* o);
bool is_numpy_scalar(PyObject* o);
// The dtype of a NumPy array or scalar; nullopt for those without a counterpart here.
std::optional<c10::ScalarType> numpy_scalar_type(PyObject* array_or_scalar);

// A tensor on the memory of an ndarray, which it keeps alive. Throws for dtypes, byte orders and
// strides that tensors do not have. `warn_readonly`: warn once when the array must not be written.
at::Tensor tensor_from_numpy(PyObject* array, bool warn_readonly);
// A flat tensor on the memory of any object with the buffer protocol, which it keeps alive.
at::Tensor tensor_from_buffer(PyObject* object, c10::ScalarType dtype, int64_t count,
                              int64_t offset);
// An ndarray on the memory of a CPU tensor, which it keeps alive. With `force`, what cannot be
// shared (gradients, other devices, conjugate views) is detached, moved and resolved first.
PyObject* tensor_to_numpy(const at::Tensor& tensor, bool force);

// A tensor on what `__dlpack__` or a DLPack capsule offers.
at::Tensor tensor_from_dlpack_capsule(PyObject* capsule);

bool init_interop(PyObject* module);
bool init_dlpack(PyObject* module);

} // namespace torch::python
