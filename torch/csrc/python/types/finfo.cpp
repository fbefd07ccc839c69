// torch.finfo and torch.iinfo: the limits of a dtype, as NumPy's classes of that name show them.
#include <torch/csrc/python/types/types.h>

#include <torch/csrc/python/args/arg_parser.h>

#include <c10/util/NumericLimits.h>

#include <cstdio>

namespace torch::python {
namespace {

PyTypeObject FinfoType = type_object("torch.finfo");
PyTypeObject IinfoType = type_object("torch.iinfo");

struct PyInfo {
  PyObject_HEAD c10::ScalarType dtype;
};
c10::ScalarType dtype_of(PyObject* self) { return reinterpret_cast<PyInfo*>(self)->dtype; }

struct Limits {
  double lowest, max, eps, tiny, resolution;
};

template <class T> Limits limits_of(double resolution) {
  using L = c10::numeric_limits<T>;
  return {static_cast<double>(L::lowest()), static_cast<double>(L::max()),
          static_cast<double>(L::epsilon()), static_cast<double>(L::min()), resolution};
}

// Resolution is 10^-(decimal digits that survive a round trip), by convention of NumPy.
Limits limits(c10::ScalarType type) {
  switch (c10::toRealValueType(type)) {
  case c10::kDouble:
    return limits_of<double>(1e-15);
  case c10::kHalf:
    return limits_of<c10::Half>(1e-3);
  case c10::kBFloat16:
    return limits_of<c10::BFloat16>(1e-2);
  case c10::ScalarType::Float8_e4m3fn:
    return limits_of<c10::Float8_e4m3fn>(1);
  case c10::ScalarType::Float8_e5m2:
    return limits_of<c10::Float8_e5m2>(1);
  case c10::ScalarType::Float8_e4m3fnuz:
    return limits_of<c10::Float8_e4m3fnuz>(1);
  case c10::ScalarType::Float8_e5m2fnuz:
    return limits_of<c10::Float8_e5m2fnuz>(1);
  case c10::ScalarType::Float8_e8m0fnu:
    return {5.877471754111438e-39, 1.7014118346046923e+38, 1, 5.877471754111438e-39, 1};
  default:
    return limits_of<float>(1e-6);
  }
}

// The integers that the levels of a quantized dtype are; other dtypes as they are.
c10::ScalarType levels_of(c10::ScalarType type) {
  switch (type) {
  case c10::ScalarType::QInt8:
    return c10::kChar;
  case c10::ScalarType::QUInt8:
    return c10::kByte;
  case c10::ScalarType::QInt32:
    return c10::kInt;
  default:
    return type;
  }
}

int bits_of(c10::ScalarType type) {
  return static_cast<int>(c10::elementSize(c10::toRealValueType(type))) * 8;
}

// ---- construction -------------------------------------------------------------------------------
PyObject* new_info(PyTypeObject* type, c10::ScalarType dtype) {
  auto* self = reinterpret_cast<PyInfo*>(type->tp_alloc(type, 0));
  if (self) self->dtype = dtype;
  return reinterpret_cast<PyObject*>(self);
}

PyObject* make_finfo(ArgValues& a) {
  const c10::ScalarType dtype = a.present(0) ? a.scalar_type(0) : c10::get_default_dtype();
  if (!c10::isFloatingType(dtype) && !c10::isComplexType(dtype) && !c10::isFloat8Type(dtype)) {
    raise_type_error(
        "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
        "'torch.finfo'");
  }
  return new_info(&FinfoType, c10::toRealValueType(dtype));
}

PyObject* make_iinfo(ArgValues& a) {
  const c10::ScalarType dtype = a.scalar_type(0);
  if (dtype == c10::kBool) raise_type_error("torch.bool is not supported by torch.iinfo");
  const bool integral = c10::isIntegralType(levels_of(dtype), false);
  if (!integral && !c10::isStorageOnlyType(dtype)) {
    raise_type_error("torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                     "'torch.iinfo'");
  }
  TORCH_CHECK_NOT_IMPLEMENTED(integral, "\"dtype\" not implemented for '", dtype, "'");
  return new_info(&IinfoType, dtype);
}

constexpr Param kFinfoParams[] = {{"type", P::ScalarType, kHasDefault | kOptional, 0, "None"}};
constexpr Param kIinfoParams[] = {{"type", P::ScalarType, 0, 0, nullptr}};
const Signature kFinfoSignature[] = {
    {kFinfoParams, 1, 1, kNoOverride, make_finfo, "finfo(dtype type=None)"}};
const Signature kIinfoSignature[] = {
    {kIinfoParams, 1, 1, kNoOverride, make_iinfo, "iinfo(dtype type)"}};
const Function kFinfo = {"finfo", "torch", kFinfoSignature, 1};
const Function kIinfo = {"iinfo", "torch", kIinfoSignature, 1};

PyObject* finfo_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return call_tuple(kFinfo, nullptr, args, kwargs);
}
PyObject* iinfo_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return call_tuple(kIinfo, nullptr, args, kwargs);
}

// ---- properties ---------------------------------------------------------------------------------
PyObject* info_bits(PyObject* self, void*) { return PyLong_FromLong(bits_of(dtype_of(self))); }
PyObject* info_dtype(PyObject* self, void*) {
  return PyUnicode_FromString(c10::info(dtype_of(self)).name);
}

template <double Limits::*kField> PyObject* finfo_field(PyObject* self, void*) {
  return guarded([&] { return PyFloat_FromDouble(limits(dtype_of(self)).*kField); });
}

PyObject* iinfo_min(PyObject* self, void*) {
  const c10::ScalarType type = levels_of(dtype_of(self));
  if (!c10::isSignedType(type)) return PyLong_FromLong(0);
  return PyLong_FromLongLong(-static_cast<long long>((1ULL << (bits_of(type) - 1)) - 1) - 1);
}
PyObject* iinfo_max(PyObject* self, void*) {
  const c10::ScalarType type = levels_of(dtype_of(self));
  const unsigned long long all = ~0ULL >> (64 - bits_of(type));
  return PyLong_FromUnsignedLongLong(c10::isSignedType(type) ? all >> 1 : all);
}

PyObject* finfo_repr(PyObject* self) {
  return guarded([&] {
    const Limits l = limits(dtype_of(self));
    char text[256];
    std::snprintf(
        text, sizeof text,
        "finfo(resolution=%g, min=%g, max=%g, eps=%g, smallest_normal=%g, tiny=%g, dtype=%s)",
        l.resolution, l.lowest, l.max, l.eps, l.tiny, l.tiny, c10::info(dtype_of(self)).name);
    return PyUnicode_FromString(text);
  });
}
PyObject* iinfo_repr(PyObject* self) {
  PyRef low(iinfo_min(self, nullptr)), high(iinfo_max(self, nullptr));
  if (!low || !high) return nullptr;
  char text[128];
  std::snprintf(text, sizeof text, "iinfo(min=%g, max=%g, dtype=%s)", PyLong_AsDouble(low.get()),
                PyLong_AsDouble(high.get()), c10::info(dtype_of(self)).name);
  return PyUnicode_FromString(text);
}

PyObject* info_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return new_bool((dtype_of(a) == dtype_of(b)) == (op == Py_EQ));
}
Py_hash_t info_hash(PyObject* self) { return static_cast<Py_hash_t>(dtype_of(self)) + 1000; }

PyObject* info_reduce(PyObject* self, PyObject*) {
  PyRef dtype(wrap(dtype_of(self)));
  return dtype ? Py_BuildValue("O(O)", Py_TYPE(self), dtype.get()) : nullptr;
}

PyMethodDef methods[] = {{"__reduce__", info_reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyGetSetDef finfo_properties[] = {
    {"bits", info_bits, nullptr, nullptr, nullptr},
    {"dtype", info_dtype, nullptr, nullptr, nullptr},
    {"eps", finfo_field<&Limits::eps>, nullptr, nullptr, nullptr},
    {"max", finfo_field<&Limits::max>, nullptr, nullptr, nullptr},
    {"min", finfo_field<&Limits::lowest>, nullptr, nullptr, nullptr},
    {"tiny", finfo_field<&Limits::tiny>, nullptr, nullptr, nullptr},
    {"smallest_normal", finfo_field<&Limits::tiny>, nullptr, nullptr, nullptr},
    {"resolution", finfo_field<&Limits::resolution>, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyGetSetDef iinfo_properties[] = {{"bits", info_bits, nullptr, nullptr, nullptr},
                                  {"dtype", info_dtype, nullptr, nullptr, nullptr},
                                  {"max", iinfo_max, nullptr, nullptr, nullptr},
                                  {"min", iinfo_min, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};

bool ready(PyObject* module, PyTypeObject& type) {
  type.tp_basicsize = sizeof(PyInfo);
  type.tp_flags = Py_TPFLAGS_DEFAULT;
  type.tp_methods = methods;
  type.tp_richcompare = info_compare;
  type.tp_hash = info_hash;
  return add_type(module, &type);
}

} // namespace

bool init_finfo(PyObject* module) {
  FinfoType.tp_new = finfo_new;
  FinfoType.tp_repr = finfo_repr;
  FinfoType.tp_getset = finfo_properties;
  IinfoType.tp_new = iinfo_new;
  IinfoType.tp_repr = iinfo_repr;
  IinfoType.tp_getset = iinfo_properties;
  return ready(module, FinfoType) && ready(module, IinfoType);
}

} // namespace torch::python
