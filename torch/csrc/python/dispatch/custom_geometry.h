// Subclasses that answer questions about their shape, device or layout themselves: objects made
// with dispatch_sizes_strides_policy, dispatch_device or dispatch_layout. Python's questions
// (x.shape, x.stride(), x.device, ...) go to __torch_dispatch__ as operators; None means the stored
// answer. Operators see such a tensor through __torch_dispatch__ anyway, so C++ keeps the stored
// geometry.
#pragma once
#include <torch/csrc/python/tensor/tensor.h>

namespace torch::python {

enum CustomGeometry : uint8_t {
  kCustomStrides = 1, // strides, offset and contiguity
  kCustomSizes = 2,   // the same, and sizes
  kCustomDevice = 4,
  kCustomLayout = 8
};

// The flags for arguments of _make_subclass and its like; `policy` is "sizes", "strides" or null.
uint8_t custom_geometry_flags(const char* policy, bool device, bool layout);
void set_custom_geometry(PyObject* object, uint8_t flags);

// What the class says to `question` (a name in torch/_custom_geometry.py), or null for the stored
// answer. `flags`: the kinds of objects that are asked. Throws python_error.
PyRef custom_answer_slow(PyObject* self, const char* question, PyObject* extra);
inline PyRef custom_answer(PyObject* self, uint8_t flags, const char* question,
                           PyObject* extra = nullptr) {
  if (C10_LIKELY(is_plain_tensor(self))) return PyRef();
  if (!(reinterpret_cast<PyTensor*>(self)->custom & flags)) return PyRef();
  return custom_answer_slow(self, question, extra);
}

} // namespace torch::python
