// torch.Size: a tuple of ints that stays a Size under slicing, concatenation and repetition. It is
// made for every read of `tensor.shape`, so the constructor from C++ goes straight to the tuple.
#include <torch/csrc/python/sym/sym.h>
#include <torch/csrc/python/types/types.h>

#include <c10/util/SafeArithmetic.h>

namespace torch::python {

PyTypeObject SizeType = type_object("torch.Size");

namespace {

PyObject* tuple_as_size(PyRef tuple) {
  if (!tuple || is_size(tuple.get())) return tuple.release();
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple.get());
  PyObject* out = SizeType.tp_alloc(&SizeType, n);
  if (!out) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), i);
    Py_INCREF(item);
    PyTuple_SET_ITEM(out, i, item);
  }
  return out;
}

// Replaces integer-like items (0-d tensors, NumPy ints) by ints and refuses the rest; symbolic
// sizes stay what they are.
bool normalise_items(PyObject* size) {
  for (Py_ssize_t i = 0, n = PyTuple_GET_SIZE(size); i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(size, i);
    if (PyLong_CheckExact(item) || is_sym_int(item)) continue;
    PyObject* number = PyFloat_Check(item) ? nullptr : PyNumber_Index(item);
    if (!number) {
      PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                   type_name(item));
      return false;
    }
    PyTuple_SET_ITEM(size, i, number);
    Py_DECREF(item);
  }
  return true;
}

PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyRef self(PyTuple_Type.tp_new(type, args, kwargs));
  if (!self || !normalise_items(self.get())) return nullptr;
  return self.release();
}

PyObject* size_repr(PyObject* self) {
  return guarded([&]() -> PyObject* {
    std::string out = "torch.Size([";
    for (Py_ssize_t i = 0, n = PyTuple_GET_SIZE(self); i < n; ++i) {
      if (i) out += ", ";
      out += repr_of(PyTuple_GET_ITEM(self, i));
    }
    out += "])";
    return PyUnicode_FromStringAndSize(out.data(), static_cast<Py_ssize_t>(out.size()));
  });
}

// Both orders of operands arrive here: size + tuple through the sequence slot of Size, and
// tuple + size through its number slot, which runs before tuple's own concatenation.
PyObject* size_add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) {
    PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not %s) to torch.Size",
                 type_name(PyTuple_Check(a) ? b : a));
    return nullptr;
  }
  PyRef out(tuple_as_size(PyRef(PyTuple_Type.tp_as_sequence->sq_concat(a, b))));
  if (!out || !normalise_items(out.get())) return nullptr;
  return out.release();
}

PyObject* size_repeat(PyObject* self, Py_ssize_t times) {
  return tuple_as_size(PyRef(PyTuple_Type.tp_as_sequence->sq_repeat(self, times)));
}

PyObject* size_subscript(PyObject* self, PyObject* key) {
  PyRef item(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
  if (item && PySlice_Check(key)) return tuple_as_size(std::move(item));
  return item.release();
}

PyObject* size_numel(PyObject* self, PyObject*) {
  PyRef product(PyLong_FromLong(1));
  for (Py_ssize_t i = 0, n = PyTuple_GET_SIZE(self); product && i < n; ++i) {
    product = PyRef(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i)));
  }
  return product.release();
}

PyObject* size_reduce(PyObject* self, PyObject*) {
  PyRef items(PyTuple_New(PyTuple_GET_SIZE(self)));
  if (!items) return nullptr;
  for (Py_ssize_t i = 0, n = PyTuple_GET_SIZE(self); i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(self, i);
    Py_INCREF(item);
    PyTuple_SET_ITEM(items.get(), i, item);
  }
  return Py_BuildValue("O(O)", Py_TYPE(self), items.get());
}

PyMethodDef methods[] = {
    {"numel", size_numel, METH_NOARGS, "The number of elements a tensor of this size has."},
    {"__reduce__", size_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PySequenceMethods as_sequence;
PyMappingMethods as_mapping;
PyNumberMethods as_number;

PyObject* fill(PyObject* tuple, c10::IntArrayRef values) {
  if (!tuple) return nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    PyObject* item = PyLong_FromLongLong(values[i]);
    if (!item) {
      Py_DECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
  }
  return tuple;
}

} // namespace

// Programs meet few shapes and read them often. Sizes are immutable, so the last object made for a
// shape is given again: a direct-mapped table of shapes of up to four dimensions, used under the
// GIL.
namespace {
struct CachedSize {
  size_t ndim = 0;
  int64_t sizes[4];
  PyObject* object = nullptr;
};
constexpr size_t kCachedSizes = 128;
CachedSize cached_sizes[kCachedSizes];

CachedSize& cache_slot(c10::IntArrayRef sizes) {
  uint64_t hash = sizes.size();
  for (int64_t s : sizes) hash = (hash ^ static_cast<uint64_t>(s)) * 0x9E3779B97F4A7C15ull;
  return cached_sizes[hash >> 57];
}

bool holds(const CachedSize& slot, c10::IntArrayRef sizes) {
  if (slot.object == nullptr || slot.ndim != sizes.size()) return false;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (slot.sizes[i] != sizes[i]) return false;
  return true;
}
} // namespace

PyObject* make_size(c10::IntArrayRef sizes) {
  if (sizes.size() > 4)
    return fill(SizeType.tp_alloc(&SizeType, static_cast<Py_ssize_t>(sizes.size())), sizes);
  CachedSize& slot = cache_slot(sizes);
  if (!holds(slot, sizes)) {
    PyObject* fresh =
        fill(SizeType.tp_alloc(&SizeType, static_cast<Py_ssize_t>(sizes.size())), sizes);
    if (!fresh) return nullptr;
    Py_XDECREF(slot.object);
    slot.object = fresh;
    slot.ndim = sizes.size();
    for (size_t i = 0; i < sizes.size(); ++i) slot.sizes[i] = sizes[i];
  }
  Py_INCREF(slot.object);
  return slot.object;
}

PyObject* make_int_tuple(c10::IntArrayRef values) {
  return fill(PyTuple_New(static_cast<Py_ssize_t>(values.size())), values);
}

bool init_size(PyObject* module) {
  as_sequence.sq_concat = size_add;
  as_sequence.sq_repeat = size_repeat;
  as_mapping.mp_subscript = size_subscript;
  as_number.nb_add = size_add;
  SizeType.tp_base = &PyTuple_Type;
  SizeType.tp_flags = Py_TPFLAGS_DEFAULT;
  SizeType.tp_new = size_new;
  SizeType.tp_repr = size_repr;
  SizeType.tp_methods = methods;
  SizeType.tp_as_sequence = &as_sequence;
  SizeType.tp_as_mapping = &as_mapping;
  SizeType.tp_as_number = &as_number;
  return add_type(module, &SizeType);
}

} // namespace torch::python
