// Conversions of a whole tensor: to(), type(), cpu(), cuda() and the dtype methods (float(),
// long(),
// ...). All end in one operator, to.device; a tensor that already is what was asked for is returned
// as the same object.
#include <torch/csrc/python/tensor/tensor.h>

#include <torch/csrc/python/args/arg_parser.h>

#include <ATen/fake/FakeTensorImpl.h>
#include <ATen/ops/to.h>
#include <c10/core/DeviceHooks.h>

#include <string>

namespace torch::python {
namespace {

struct Wanted {
  std::optional<c10::Device> device;
  std::optional<c10::ScalarType> dtype;
  bool non_blocking = false;
  bool copy = false;
  std::optional<c10::MemoryFormat> format;
};

bool same_device(c10::Device have, c10::Device want) {
  return have == want || (have.type() == want.type() && !want.has_index());
}

// "cpu:0" is the CPU, "cuda" the current device; tensors always carry the full form.
// A fake tensor only claims to be there: no driver is needed.
c10::Device plain_device(c10::Device device, const at::Tensor& self) {
  if (device.is_cpu()) return c10::Device();
  if (device.has_index()) return device;
  return at::fake::is_fake(self) ? at::fake::indexed(device) : c10::usable_device(device);
}

PyObject* convert(ArgValues& a, const Wanted& wanted) {
  const at::Tensor& self = a.tensor(0);
  const c10::Device device = plain_device(wanted.device.value_or(self.device()), self);
  const c10::ScalarType dtype = wanted.dtype.value_or(self.scalar_type());
  const c10::MemoryFormat format = wanted.format.value_or(c10::MemoryFormat::Preserve);
  const bool same_layout =
      format == c10::MemoryFormat::Preserve || self.suggest_memory_format() == format;
  if (!wanted.copy && same_device(self.device(), device) && self.scalar_type() == dtype &&
      same_layout) {
    return wrap_self(a);
  }
  // The form that names only what was asked for, so that handlers below see just that.
  if (!wanted.device) {
    return wrap(
        at::_ops::to_dtype::call(self, dtype, wanted.non_blocking, wanted.copy, wanted.format));
  }
  return wrap(at::_ops::to_dtype_layout::call(self, wanted.dtype, std::nullopt, device,
                                              std::nullopt, wanted.non_blocking, wanted.copy,
                                              wanted.format));
}

// ---- to() ---------------------------------------------------------------------------------------
constexpr Param kSelf = {"self", P::Tensor, 0, 0, nullptr};
constexpr Param kNonBlocking = {"non_blocking", P::Bool, kHasDefault, 0, "False"};
constexpr Param kCopy = {"copy", P::Bool, kHasDefault, 0, "False"};
constexpr Param kFormat = {"memory_format", P::MemoryFormat, kHasDefault | kKwOnly | kOptional, 0,
                           "None"};
constexpr Param kToDevice[] = {kSelf,
                               {"device", P::Device, kHasDefault | kOptional, 0, "None"},
                               {"dtype", P::ScalarType, kHasDefault | kOptional, 0, "None"},
                               kNonBlocking,
                               kCopy,
                               kFormat};
constexpr Param kToDtype[] = {
    kSelf, {"dtype", P::ScalarType, 0, 0, nullptr}, kNonBlocking, kCopy, kFormat};
constexpr Param kToTensor[] = {
    kSelf, {"tensor", P::Tensor, 0, 0, nullptr}, kNonBlocking, kCopy, kFormat};
constexpr Param kToOther[] = {
    kSelf, {"other", P::Tensor, 0, 0, nullptr}, kNonBlocking, kCopy, kFormat};

// The arguments that all forms end with, from index `at` on.
void read_tail(ArgValues& a, int index, Wanted& wanted) {
  wanted.non_blocking = a.given(index) && a.boolean(index);
  wanted.copy = a.given(index + 1) && a.boolean(index + 1);
  wanted.format = a.opt_memory_format(index + 2);
}

PyObject* invoke_to_device(ArgValues& a) {
  Wanted wanted;
  wanted.device = a.opt_device(1);
  wanted.dtype = a.opt_scalar_type(2);
  read_tail(a, 3, wanted);
  return convert(a, wanted);
}
PyObject* invoke_to_dtype(ArgValues& a) {
  Wanted wanted;
  wanted.dtype = a.scalar_type(1);
  read_tail(a, 2, wanted);
  return convert(a, wanted);
}
PyObject* invoke_to_tensor(ArgValues& a) {
  const at::Tensor& other = a.tensor(1);
  Wanted wanted;
  wanted.device = other.device();
  wanted.dtype = other.scalar_type();
  read_tail(a, 2, wanted);
  return convert(a, wanted);
}

const Signature kToSignatures[] = {
    {kToDevice, 6, 5, 0, invoke_to_device, "to(Device device=None, ScalarType dtype=None, ...)"},
    {kToDtype, 5, 4, 0, invoke_to_dtype, "to(ScalarType dtype, ...)"},
    {kToTensor, 5, 4, 0, invoke_to_tensor, "to(Tensor tensor, ...)"},
    {kToOther, 5, 4, kHidden, invoke_to_tensor, "to(Tensor other, ...)"}};
const Function kTo = {"to", "torch.Tensor", kToSignatures, 4};
PyObject* py_to(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kTo, self, args, n, names);
}

// ---- cpu(), cuda() ------------------------------------------------------------------------------
constexpr Param kCpuParams[] = {kSelf, kFormat};
constexpr Param kCudaParams[] = {
    kSelf, {"device", P::Device, kHasDefault | kOptional, 0, "None"}, kNonBlocking, kFormat};
PyObject* invoke_cpu(ArgValues& a) {
  Wanted wanted;
  wanted.device = c10::Device();
  wanted.format = a.opt_memory_format(1);
  return convert(a, wanted);
}
PyObject* invoke_cuda(ArgValues& a) {
  Wanted wanted;
  wanted.device = a.present(1) ? a.device(1) : c10::Device(c10::kCUDA);
  TORCH_CHECK(wanted.device->is_cuda(), "Invalid device, must be cuda device");
  wanted.non_blocking = a.given(2) && a.boolean(2);
  wanted.format = a.opt_memory_format(3);
  return convert(a, wanted);
}
const Signature kCpuSignature[] = {{kCpuParams, 2, 1, 0, invoke_cpu, "cpu(*, memory_format=None)"}};
const Signature kCudaSignature[] = {
    {kCudaParams, 4, 3, 0, invoke_cuda, "cuda(Device device=None, bool non_blocking=False)"}};
const Function kCpu = {"cpu", "torch.Tensor", kCpuSignature, 1};
const Function kCuda = {"cuda", "torch.Tensor", kCudaSignature, 1};
PyObject* py_cpu(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kCpu, self, args, n, names);
}
PyObject* py_cuda(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kCuda, self, args, n, names);
}

// ---- float(), long(), ... -----------------------------------------------------------------------
// One Function per dtype; the dtype of a call is found again by the function's name.
struct DtypeMethod {
  const char* name;
  c10::ScalarType dtype;
};
constexpr DtypeMethod kDtypeMethods[] = {{"float", c10::kFloat},
                                         {"double", c10::kDouble},
                                         {"half", c10::kHalf},
                                         {"bfloat16", c10::kBFloat16},
                                         {"int", c10::kInt},
                                         {"long", c10::kLong},
                                         {"short", c10::kShort},
                                         {"char", c10::kChar},
                                         {"byte", c10::kByte},
                                         {"bool", c10::kBool},
                                         {"cfloat", c10::kComplexFloat},
                                         {"cdouble", c10::kComplexDouble},
                                         {"chalf", c10::kComplexHalf}};

template <size_t kIndex> PyObject* invoke_dtype(ArgValues& a) {
  Wanted wanted;
  wanted.dtype = kDtypeMethods[kIndex].dtype;
  wanted.format = a.opt_memory_format(1);
  return convert(a, wanted);
}
template <size_t kIndex>
PyObject* py_dtype(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  static const Signature signature[] = {
      {kCpuParams, 2, 1, 0, invoke_dtype<kIndex>, kDtypeMethods[kIndex].name}};
  static const Function function = {kDtypeMethods[kIndex].name, "torch.Tensor", signature, 1};
  return call(function, self, args, n, names);
}

// ---- type() -------------------------------------------------------------------------------------
std::string type_string(const at::Tensor& tensor) {
  const c10::Device device = tensor.device();
  const char* prefix = device.is_cpu() ? "" : c10::device_type_name(device.type());
  return c10::str("torch.", prefix, *prefix ? "." : "", tensor.is_sparse() ? "sparse." : "",
                  tensor.scalar_type(), "Tensor");
}

// "torch.FloatTensor", "torch.cuda.HalfTensor", or a class with such a name.
void parse_type_string(const std::string& text, Wanted& wanted) {
  std::string_view rest(text);
  auto eat = [&](std::string_view prefix) {
    const bool found = rest.substr(0, prefix.size()) == prefix;
    if (found) rest.remove_prefix(prefix.size());
    return found;
  };
  const bool known = eat("torch.");
  wanted.device = c10::Device(known && eat("cuda.") ? c10::kCUDA : c10::kCPU);
  for (int i = 0; known && i < c10::NumScalarTypes; ++i) {
    const auto type = static_cast<c10::ScalarType>(i);
    if (rest == std::string(c10::toString(type)) + "Tensor") {
      wanted.dtype = type;
      return;
    }
  }
  if (known && rest == "Tensor") {
    wanted.dtype = c10::get_default_dtype();
    return;
  }
  raise(PyExc_ValueError, c10::str("invalid type: '", text, "'"));
}

std::string class_path(PyObject* cls) {
  if (!PyType_Check(cls)) return text_of(cls);
  PyRef module = checked(PyObject_GetAttrString(cls, "__module__"));
  PyRef name = checked(PyObject_GetAttrString(cls, "__name__"));
  const std::string owner = text_of(module.get());
  return owner == "builtins" ? text_of(name.get()) : owner + "." + text_of(name.get());
}

constexpr Param kTypeParams[] = {
    kSelf, {"dtype", P::Object, kHasDefault | kOptional, 0, "None"}, kNonBlocking, kFormat};
PyObject* invoke_type(ArgValues& a) {
  if (!a.present(1)) return wrap(type_string(a.tensor(0)));
  PyObject* what = a.object(1);
  Wanted wanted;
  if (is_dtype(what)) {
    wanted.dtype = dtype_value(what);
  } else {
    parse_type_string(PyUnicode_Check(what) ? std::string(utf8(what)) : class_path(what), wanted);
  }
  wanted.non_blocking = a.given(2) && a.boolean(2);
  wanted.format = a.opt_memory_format(3);
  return convert(a, wanted);
}
const Signature kTypeSignature[] = {
    {kTypeParams, 4, 3, 0, invoke_type, "type(dtype=None, bool non_blocking=False)"}};
const Function kType = {"type", "torch.Tensor", kTypeSignature, 1};
PyObject* py_type(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kType, self, args, n, names);
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

} // namespace

#define CRESSET_DTYPE(index)                                                                       \
  { kDtypeMethods[index].name, as_method(py_dtype<index>), kFast, nullptr }
PyMethodDef tensor_conversion_methods[] = {
    {"to", as_method(py_to), kFast,
     "to(device=None, dtype=None, non_blocking=False, copy=False, *, memory_format=None)"},
    {"cpu", as_method(py_cpu), kFast, "cpu(*, memory_format=None)"},
    {"cuda", as_method(py_cuda), kFast,
     "cuda(device=None, non_blocking=False, *, memory_format=None)"},
    {"type", as_method(py_type), kFast, "type(dtype=None, non_blocking=False)"},
    CRESSET_DTYPE(0),
    CRESSET_DTYPE(1),
    CRESSET_DTYPE(2),
    CRESSET_DTYPE(3),
    CRESSET_DTYPE(4),
    CRESSET_DTYPE(5),
    CRESSET_DTYPE(6),
    CRESSET_DTYPE(7),
    CRESSET_DTYPE(8),
    CRESSET_DTYPE(9),
    CRESSET_DTYPE(10),
    CRESSET_DTYPE(11),
    CRESSET_DTYPE(12),
    {nullptr, nullptr, 0, nullptr}};
#undef CRESSET_DTYPE

} // namespace torch::python
