// The small value types of torch: dtype, layout, memory_format, qscheme, device, Size, finfo, iinfo
// and Generator. dtype, layout, memory_format and qscheme values are singletons, so identity is
// equality and a C++ value maps to its object by a table look-up.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <c10/core/Device.h>
#include <c10/core/Generator.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

namespace torch::python {

// A singleton whose value is a small enum; `name` is what repr prints.
template <class Enum> struct PyEnumValue {
  PyObject_HEAD Enum value;
  const char* name;
};
using PyDtype = PyEnumValue<c10::ScalarType>;
using PyLayout = PyEnumValue<c10::Layout>;
using PyMemoryFormat = PyEnumValue<c10::MemoryFormat>;

struct PyDevice {
  PyObject_HEAD c10::Device device;
};
struct PyGenerator {
  PyObject_HEAD at::Generator generator;
};

extern PyTypeObject DtypeType;
extern PyTypeObject LayoutType;
extern PyTypeObject MemoryFormatType;
extern PyTypeObject QschemeType;
extern PyTypeObject DeviceType;
extern PyTypeObject SizeType;
extern PyTypeObject GeneratorType;

inline bool is_dtype(PyObject* o) { return Py_TYPE(o) == &DtypeType; }
inline bool is_layout(PyObject* o) { return Py_TYPE(o) == &LayoutType; }
inline bool is_memory_format(PyObject* o) { return Py_TYPE(o) == &MemoryFormatType; }
inline bool is_device(PyObject* o) { return Py_TYPE(o) == &DeviceType; }
inline bool is_generator(PyObject* o) { return PyObject_TypeCheck(o, &GeneratorType); }
inline bool is_size(PyObject* o) { return Py_TYPE(o) == &SizeType; }

// The value of an object of that type; the caller has checked the type.
inline c10::ScalarType dtype_value(PyObject* o) { return reinterpret_cast<PyDtype*>(o)->value; }
inline c10::Layout layout_value(PyObject* o) { return reinterpret_cast<PyLayout*>(o)->value; }
inline c10::MemoryFormat memory_format_value(PyObject* o) {
  return reinterpret_cast<PyMemoryFormat*>(o)->value;
}
inline const c10::Device& device_value(PyObject* o) {
  return reinterpret_cast<PyDevice*>(o)->device;
}
inline const at::Generator& generator_value(PyObject* o) {
  return reinterpret_cast<PyGenerator*>(o)->generator;
}

// torch.dtype, or one of the Python types float, int, bool, complex. False when it is neither.
bool dtype_from_object(PyObject* o, c10::ScalarType* out);
// torch.device, str or int; throws for a bad text, returns false when it is none of these.
bool device_from_object(PyObject* o, c10::Device* out);

// New references.
PyObject* wrap(c10::ScalarType type);
PyObject* wrap(c10::Layout layout);
PyObject* wrap(c10::MemoryFormat format);
PyObject* wrap(c10::Device device);
PyObject* wrap(const at::Generator& generator);
// torch.Size of the given lengths.
PyObject* make_size(c10::IntArrayRef sizes);
// A plain tuple of ints.
PyObject* make_int_tuple(c10::IntArrayRef values);

bool init_dtype(PyObject* module);
bool init_layout(PyObject* module); // layout, memory_format, qscheme
bool init_device(PyObject* module);
bool init_size(PyObject* module);
bool init_finfo(PyObject* module);
bool init_generator(PyObject* module);

} // namespace torch::python
