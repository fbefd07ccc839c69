// See custom_geometry.h.
#include <torch/csrc/python/dispatch/custom_geometry.h>

#include <c10/core/DispatchKeySet.h>

#include <cstring>

namespace torch::python {

uint8_t custom_geometry_flags(const char* policy, bool device, bool layout) {
  uint8_t flags = static_cast<uint8_t>((device ? kCustomDevice : 0) | (layout ? kCustomLayout : 0));
  if (!policy) return flags;
  const bool sizes = std::strcmp(policy, "sizes") == 0;
  TORCH_CHECK(sizes || std::strcmp(policy, "strides") == 0,
              "Unknown sizes_strides_policy: expected \"sizes\" or \"strides\", got ", policy);
  return static_cast<uint8_t>(flags | kCustomStrides | (sizes ? kCustomSizes : 0));
}

void set_custom_geometry(PyObject* object, uint8_t flags) {
  reinterpret_cast<PyTensor*>(object)->custom = flags;
}

PyRef custom_answer_slow(PyObject* self, const char* question, PyObject* extra) {
  const auto excluded = c10::DispatchKeySet::from_raw(c10::tls_dispatch_keys.excluded);
  if (excluded.has(c10::DispatchKey::Python)) return PyRef();
  static PyObject* slot = nullptr;
  PyObject* ask = cached_attribute(slot, "torch._custom_geometry", "ask");
  if (!ask) throw python_error();
  PyRef name = checked(PyUnicode_FromString(question));
  PyObject* args[] = {self, name.get(), extra};
  PyRef answer = checked(PyObject_Vectorcall(ask, args, extra ? 3 : 2, nullptr));
  return answer.get() == Py_None ? PyRef() : std::move(answer);
}

} // namespace torch::python
