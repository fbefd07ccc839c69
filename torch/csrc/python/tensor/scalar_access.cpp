// Reading elements straight from memory, by dtype.
#include <torch/csrc/python/tensor/scalar_access.h>

#include <ATen/functorch/Level.h>
#include <ATen/parallel/Stretches.h>
#include <torch/csrc/python/tensor/construct.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <cstring>

namespace torch::python {
namespace {

// Memory holds the values as they are; `keys` are those that may object to reading it.
bool readable_with(const at::Tensor& tensor, uint64_t keys) {
  constexpr c10::DispatchKeySet kBlocking{c10::DispatchKey::Python, c10::DispatchKey::Conjugate,
                                          c10::DispatchKey::Negative, c10::DispatchKey::Fake,
                                          c10::DispatchKey::FuncTorchBatched};
  return tensor.is_cpu() && tensor.layout() == c10::Layout::Strided && !(keys & kBlocking.raw()) &&
         tensor.unsafeGetTensorImpl()->data() != nullptr;
}

// No mode wants to see the read, either.
bool readable(const at::Tensor& tensor) {
  return readable_with(tensor, tensor.key_set().raw() | c10::tls_dispatch_keys.included);
}

template <class T> T load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
// Foreign bytes may be neither 0 nor 1, which a bool must be.
template <> bool load<bool>(const char* p) { return *p != 0; }

bool read(c10::ScalarType type, const char* p, c10::Scalar* out) {
  switch (type) {
#define CRESSET_CASE(T, Name)                                                                      \
  case c10::ScalarType::Name:                                                                      \
    *out = c10::Scalar(load<T>(p));                                                                \
    return true;
    CRESSET_FORALL_ARITHMETIC_TYPES(CRESSET_CASE)
#undef CRESSET_CASE
#define CRESSET_CASE(T, Name)                                                                      \
  case c10::ScalarType::Name:                                                                      \
    *out = c10::Scalar(static_cast<float>(load<T>(p)));                                            \
    return true;
    CRESSET_FORALL_FLOAT8_TYPES(CRESSET_CASE)
    CRESSET_CASE(c10::Float8_e8m0fnu, Float8_e8m0fnu)
    // Two numbers to the byte, which a list of elements cannot tell apart: the byte itself.
    CRESSET_CASE(uint8_t, Float4_e2m1fn_x2)
#undef CRESSET_CASE
  default:
    return false;
  }
}

// What an element costs, for Steps.
constexpr int64_t kElementSteps = 16;

PyObject* new_element(const char* p, bool) { return PyBool_FromLong(load<bool>(p)); }
PyObject* new_element(const char* p, int64_t) { return PyLong_FromLongLong(load<int64_t>(p)); }
PyObject* new_element(const char* p, int32_t) { return PyLong_FromLong(load<int32_t>(p)); }
PyObject* new_element(const char* p, float) { return PyFloat_FromDouble(load<float>(p)); }
PyObject* new_element(const char* p, double) { return PyFloat_FromDouble(load<double>(p)); }

template <class T>
void fill_list(PyObject* list, const char* p, int64_t step, int64_t n, at::Steps& steps) {
  for (int64_t i = 0; i < n; ++i) {
    steps.add(kElementSteps);
    PyObject* item = new_element(p + i * step, T());
    if (item == nullptr) throw python_error();
    PyList_SET_ITEM(list, i, item);
  }
}

// The common dtypes have loops of their own; null for others.
using FillList = void (*)(PyObject*, const char*, int64_t, int64_t, at::Steps&);
FillList filler_for(c10::ScalarType type) {
  switch (type) {
  case c10::ScalarType::Bool:
    return fill_list<bool>;
  case c10::ScalarType::Int:
    return fill_list<int32_t>;
  case c10::ScalarType::Long:
    return fill_list<int64_t>;
  case c10::ScalarType::Float:
    return fill_list<float>;
  case c10::ScalarType::Double:
    return fill_list<double>;
  default:
    return nullptr;
  }
}

PyObject* list_of(const at::Tensor& tensor, const char* p, int64_t dim, at::Steps& steps) {
  steps.add(kElementSteps);
  if (dim == tensor.dim()) {
    c10::Scalar value;
    TORCH_CHECK_NOT_IMPLEMENTED(read(tensor.scalar_type(), p, &value),
                                "tolist is not implemented for dtype ", tensor.scalar_type());
    return wrap(value);
  }
  const int64_t n = tensor.sizes()[dim];
  const int64_t step = tensor.strides()[dim] * tensor.itemsize();
  PyRef out = checked(PyList_New(n));
  // Python code may run before it is filled: a signal's handler must not find it.
  PyObject_GC_UnTrack(out.get());
  const FillList fill = dim + 1 == tensor.dim() ? filler_for(tensor.scalar_type()) : nullptr;
  if (fill != nullptr) {
    fill(out.get(), p, step, n, steps);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      PyObject* item = list_of(tensor, p + i * step, dim + 1, steps);
      if (!item) throw python_error();
      PyList_SET_ITEM(out.get(), i, item);
    }
  }
  PyObject_GC_Track(out.get());
  return out.release();
}

} // namespace

c10::Scalar item_of(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.numel() == 1, "a Tensor with ", tensor.numel(),
              " elements cannot be converted to Scalar");
  c10::Scalar value;
  if (C10_LIKELY(readable(tensor)) &&
      read(tensor.scalar_type(), static_cast<const char*>(tensor.data_ptr()), &value)) {
    return value;
  }
  return tensor.item();
}

bool truth_of(const at::Tensor& tensor) {
  const int64_t n = tensor.numel();
  TORCH_CHECK(n != 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(n == 1, "Boolean value of Tensor with more than one value is ambiguous");
  TORCH_CHECK(
      !at::functorch::varies_by_sample(tensor),
      "vmap: It looks like you're attempting to use a Tensor in some data-dependent control "
      "flow. We don't support that yet, please rewrite it with torch.where or other "
      "operations on the whole tensor.");
  return item_of(tensor).toBool();
}

namespace {
// Elements that are not in memory, one by one: item() makes symbols of them, or says why not.
PyRef list_of_items(const at::Tensor& tensor) {
  if (tensor.dim() == 0) {
    const PyRef shown = checked(wrap(tensor));
    return checked(PyObject_CallMethod(shown.get(), "item", nullptr));
  }
  const int64_t count = tensor.size(0);
  PyRef list = checked(PyList_New(count));
  for (int64_t i = 0; i < count; ++i)
    PyList_SET_ITEM(list.get(), i, list_of_items(tensor.select(0, i)).release());
  return list;
}
} // namespace

PyObject* tensor_to_list(const at::Tensor& tensor) {
  // A list is no operator: modes do not hear of it, and a subclass has to make its own.
  TORCH_CHECK(!tensor.key_set().has(c10::DispatchKey::Python),
              ".tolist() is not supported for tensor subclasses that define __torch_dispatch__");
  at::Steps steps;
  if (tensor.numel() == 0 || readable_with(tensor, tensor.key_set().raw())) {
    return list_of(tensor, static_cast<const char*>(tensor.data_ptr()), 0, steps);
  }
  if (tensor.key_set().has(c10::DispatchKey::Fake) ||
      tensor.key_set().has(c10::DispatchKey::Functionalize))
    return list_of_items(tensor).release();
  const at::Tensor plain = converted(tensor, c10::Device(), tensor.scalar_type()).clone();
  TORCH_CHECK_NOT_IMPLEMENTED(readable(plain), "tolist is not implemented for ", tensor);
  return list_of(plain, static_cast<const char*>(plain.data_ptr()), 0, steps);
}

} // namespace torch::python
