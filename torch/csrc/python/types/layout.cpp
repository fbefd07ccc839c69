// torch.layout, torch.memory_format and torch.qscheme: enumerations whose values are singletons
// with a name. They differ only in the enum behind them, so one template makes all three.
#include <torch/csrc/python/types/types.h>

#include <string>

namespace torch::python {

PyTypeObject LayoutType = type_object("torch.layout");
PyTypeObject MemoryFormatType = type_object("torch.memory_format");
PyTypeObject QschemeType = type_object("torch.qscheme");

namespace {

constexpr int kNumLayouts = static_cast<int>(c10::Layout::NumOptions);
constexpr int kNumFormats = static_cast<int>(c10::MemoryFormat::NumOptions);
constexpr const char* kQschemeNames[] = {"per_tensor_affine", "per_channel_affine",
                                         "per_tensor_symmetric", "per_channel_symmetric",
                                         "per_channel_affine_float_qparams"};

PyObject* layouts[kNumLayouts];
PyObject* formats[kNumFormats];

// All three structures agree in where `name` lies relative to a byte-sized value.
const char* name_of(PyObject* self) { return reinterpret_cast<PyLayout*>(self)->name; }

PyObject* enum_repr(PyObject* self) { return PyUnicode_FromFormat("torch.%s", name_of(self)); }
// Pickles as an attribute of module torch, which is where the values live.
PyObject* enum_reduce(PyObject* self, PyObject*) { return PyUnicode_FromString(name_of(self)); }

PyMethodDef methods[] = {{"__reduce__", enum_reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

bool ready(PyObject* module, PyTypeObject* type) {
  type->tp_basicsize = sizeof(PyLayout);
  type->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  type->tp_repr = enum_repr;
  type->tp_methods = methods;
  if (!add_type(module, type)) return false;
  PyRef owner(PyUnicode_FromString("torch"));
  return owner && PyDict_SetItemString(type->tp_dict, "__module__", owner.get()) == 0;
}

template <class Enum>
PyObject* add_value(PyObject* module, PyTypeObject* type, Enum value, const char* name) {
  static_assert(sizeof(PyEnumValue<Enum>) == sizeof(PyLayout));
  auto* object = PyObject_New(PyEnumValue<Enum>, type);
  if (!object) return nullptr;
  object->value = value;
  object->name = name;
  auto* py = reinterpret_cast<PyObject*>(object);
  return PyObject_SetAttrString(module, name, py) < 0 ? nullptr : py;
}

} // namespace

PyObject* wrap(c10::Layout layout) {
  PyObject* object = layouts[static_cast<int>(layout)];
  Py_INCREF(object);
  return object;
}

PyObject* wrap(c10::MemoryFormat format) {
  PyObject* object = formats[static_cast<int>(format)];
  Py_INCREF(object);
  return object;
}

bool init_layout(PyObject* module) {
  if (!ready(module, &LayoutType) || !ready(module, &MemoryFormatType) ||
      !ready(module, &QschemeType)) {
    return false;
  }
  for (int i = 0; i < kNumLayouts; ++i) {
    const auto value = static_cast<c10::Layout>(i);
    layouts[i] = add_value(module, &LayoutType, value, c10::layout_name(value));
    if (!layouts[i]) return false;
  }
  for (int i = 0; i < kNumFormats; ++i) {
    const auto value = static_cast<c10::MemoryFormat>(i);
    formats[i] = add_value(module, &MemoryFormatType, value, c10::memory_format_name(value));
    if (!formats[i]) return false;
  }
  uint8_t index = 0;
  for (const char* name : kQschemeNames) {
    if (!add_value(module, &QschemeType, index++, name)) return false;
  }
  return true;
}

} // namespace torch::python
