// Fits calls to signatures and runs them. The order of the tests inside `accepts` is the order of
// likelihood; everything rare is out of line.
#include <torch/csrc/python/args/arg_match.h>

#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/sym/sym.h>
#include <torch/csrc/python/tensor/storage.h>

#include <ATen/core/HandlerKeys.h>

#include <algorithm>
#include <cstring>

namespace torch::python {

namespace {

bool starts_with_numpy(PyObject* o) { return std::strncmp(type_name(o), "numpy.", 6) == 0; }
bool is_numpy_array(PyObject* o) { return std::strcmp(type_name(o), "numpy.ndarray") == 0; }
bool is_numpy_scalar(PyObject* o) { return starts_with_numpy(o) && !is_numpy_array(o); }
bool is_numpy_bool(PyObject* o) {
  return starts_with_numpy(o) && std::strncmp(type_name(o) + 6, "bool", 4) == 0;
}

bool is_scalar_tensor(PyObject* o) {
  if (!is_tensor(o)) return false;
  const at::Tensor& tensor = tensor_of(o);
  return tensor.dim() == 0 && !tensor.requires_grad();
}

bool is_float_like(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o)) return true;
  if (is_tensor(o)) return is_scalar_tensor(o) && !tensor_of(o).is_complex();
  if (is_sym_number(o)) return true;
  return is_numpy_scalar(o) && Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_float;
}

bool is_bool_like(PyObject* o) { return PyBool_Check(o) || is_numpy_bool(o) || is_sym_bool(o); }

bool is_list(PyObject* o) { return PyTuple_Check(o) || PyList_Check(o); }

// Tuples and lists whose first item fits; the items are checked when they are converted, so that
// the message can name the bad one.
template <class F> bool is_list_of(PyObject* o, F&& fits) {
  return is_list(o) && (PySequence_Fast_GET_SIZE(o) == 0 || fits(PySequence_Fast_GET_ITEM(o, 0)));
}

template <class F> bool is_list_of_all(PyObject* o, F&& fits) {
  if (!is_list(o)) return false;
  for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(o); i < n; ++i) {
    if (!fits(PySequence_Fast_GET_ITEM(o, i))) return false;
  }
  return true;
}

// NumPy's names for arguments, accepted beside PyTorch's; and copy_'s `src`, which Python calls
// `other`.
const char* canonical_keyword(const char* name) {
  static constexpr const char* table[][2] = {{"axis", "dim"}, {"keepdims", "keepdim"},
                                             {"x", "input"},  {"x1", "input"},
                                             {"x2", "other"}, {"other", "src"}};
  for (const auto& row : table) {
    if (row[0][0] == name[0] && std::strcmp(row[0], name) == 0) return row[1];
  }
  return nullptr;
}

std::string safe_context(const ArgValues& values) noexcept {
  // What Python code has raised, a signal's handler for instance, goes on as it is; describing the
  // arguments would replace it.
  if (PyErr_Occurred()) return {};
  // An operator over lists fails with the text of the operator on one tensor, and no other:
  // programs run both and compare.
  if (std::strncmp(values.function().name, "_foreach_", 9) == 0) return {};
  try {
    return call_context(values);
  } catch (...) {
    PyErr_Clear();
    return {};
  }
}

} // namespace

bool is_integer_like(PyObject* o) {
  if (PyLong_CheckExact(o)) return true;
  if (PyBool_Check(o)) return false;
  if (PyLong_Check(o)) return true;
  if (is_tensor(o)) {
    return is_scalar_tensor(o) && c10::isIntegralType(tensor_of(o).scalar_type(), false);
  }
  return PyIndex_Check(o) && !is_numpy_array(o) && !is_numpy_bool(o);
}

bool is_number_like(PyObject* o) {
  if (PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o)) return true;
  if (is_tensor(o)) return is_scalar_tensor(o);
  return is_sym_number(o) || (is_numpy_scalar(o) && PyNumber_Check(o));
}

bool Matcher::accepts_tensor(PyObject* o) {
  if (C10_LIKELY(is_plain_tensor(o))) return true;
  const uint8_t traits = type_traits(Py_TYPE(o));
  if ((traits & kOverrides) && overrides_enabled()) {
    const bool plain_use = values_.signature_->flags & kNoOverride;
    values_.overrides_ = !plain_use;
    return !plain_use || (traits & kIsTensorType);
  }
  if (traits & kIsTensorType) return true;
  return numbers_ &&
         (PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o) || is_sym_number(o));
}

bool Matcher::accepts_tensors(PyObject* o, bool none_too) {
  return is_list_of_all(
      o, [&](PyObject* item) { return accepts_tensor(item) || (none_too && item == Py_None); });
}

bool Matcher::accepts(const Param& param, PyObject* o) {
  if (C10_UNLIKELY(o == Py_None)) return (param.flags & (kOptional | kOut | kNoneIsEmpty)) != 0;
  switch (param.type) {
  case P::Tensor:
    return accepts_tensor(o);
  case P::Scalar:
    return is_number_like(o);
  case P::Int:
  case P::SymInt:
    return is_integer_like(o);
  case P::Bool:
    return is_bool_like(o);
  case P::Float:
    return is_float_like(o);
  case P::IntList:
  case P::SymIntList:
    return is_list_of(o, is_integer_like) || (param.size > 0 && is_integer_like(o));
  case P::TensorList:
    return accepts_tensors(o, false);
  case P::OptTensorList:
    return accepts_tensors(o, true);
  case P::ScalarType: {
    c10::ScalarType ignored;
    return dtype_from_object(o, &ignored);
  }
  case P::Str:
    return PyUnicode_Check(o);
  case P::Device:
    return is_device(o) || PyUnicode_Check(o) || (PyLong_Check(o) && !PyBool_Check(o));
  case P::Layout:
    return is_layout(o);
  case P::MemoryFormat:
    return is_memory_format(o);
  case P::Generator:
    return is_generator(o);
  case P::FloatList:
    return is_list_of(o, is_float_like) || (param.size > 0 && is_float_like(o));
  case P::ScalarList:
    return is_list_of_all(o, is_number_like);
  case P::BoolList:
    return is_list_of_all(o, is_bool_like);
  case P::Storage:
    return is_storage(o);
  case P::Complex:
    return is_number_like(o);
  case P::Qscheme:
    return Py_TYPE(o) == &QschemeType;
  case P::Object:
    return true;
  case P::Stream:
  case P::Dimname:
    return false;
  }
  return false;
}

static bool is_stand_in(PyObject* o) {
  const uint8_t traits = type_traits(Py_TYPE(o));
  return (traits & kOverrides) && !(traits & kIsTensorType);
}

bool Matcher::accepts_stand_in(PyObject* o) const {
  if (C10_LIKELY(!stand_ins_)) return false;
  if (is_stand_in(o)) return true;
  if (!is_list(o)) return false;
  for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(o); i < n; ++i)
    if (accepts_stand_in(PySequence_Fast_GET_ITEM(o, i))) return true;
  return false;
}

// zeros(2, 3), t.view(2, 3): the only positional parameter is a list and its items were given.
bool Matcher::spreads(const Signature& s) const {
  const int index = first();
  if (nargs_ == 0 || s.positional <= index) return false;
  const Param& param = s.params[index];
  if (C10_LIKELY(param.type != P::IntList && param.type != P::SymIntList)) return false;
  if (!(s.flags & kVarargs) && s.positional - index != 1) return false;
  if (C10_UNLIKELY(stand_ins_) && nargs_ > 1 && accepts_stand_in(args_[0])) return true;
  return is_integer_like(args_[0]) && (nargs_ > 1 || param.size == 0);
}

int Matcher::find_param(const Signature& s, PyObject* keyword) const {
  const char* name = PyUnicode_AsUTF8(keyword);
  if (!name) {
    PyErr_Clear();
    return -1;
  }
  // Most names differ in their first letter.
  for (int i = first(); i < s.count; ++i) {
    if (s.params[i].name[0] == name[0] && std::strcmp(s.params[i].name, name) == 0) return i;
  }
  const char* canonical = canonical_keyword(name);
  if (!canonical) return -1;
  for (int i = first(); i < s.count; ++i) {
    if (std::strcmp(s.params[i].name, canonical) == 0) return values_.given(i) ? -1 : i;
  }
  return -1;
}

// out=None means that there is no out, dim=None in place of dim=[] that none is given.
static bool none_is_absent(const Param& param, PyObject* value) {
  return C10_UNLIKELY(value == Py_None) && (param.flags & (kOut | kNoneIsEmpty));
}

Mismatch Matcher::fit_keywords(const Signature& s) {
  for (Py_ssize_t k = 0, n = keyword_count(); k < n; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(kwnames_, k);
    const int i = find_param(s, keyword);
    if (i < 0) return {Mismatch::Unexpected, -1, keyword, -1};
    if (values_.given(i)) return {Mismatch::Duplicate, i, nullptr, -1};
    PyObject* value = args_[nargs_ + k];
    if (!accepts(s.params[i], value) && !accepts_stand_in(value))
      return {Mismatch::Type, i, value, -1};
    values_.values_[i] = none_is_absent(s.params[i], value) ? nullptr : value;
  }
  return {};
}

Mismatch Matcher::fit(const Signature& s, bool numbers) {
  numbers_ = numbers;
  values_.signature_ = &s;
  values_.varargs_index_ = -1;
  values_.overrides_ = false;
  int next = first();
  if (self_) values_.values_[0] = self_;
  if (C10_UNLIKELY(spreads(s))) {
    values_.varargs_ = args_;
    values_.varargs_count_ = nargs_;
    values_.varargs_index_ = next;
    values_.values_[next++] = nullptr;
  } else {
    if (nargs_ > s.positional - next) return {Mismatch::TooMany, -1, nullptr, -1};
    for (Py_ssize_t k = 0; k < nargs_; ++k, ++next) {
      if (!accepts(s.params[next], args_[k]) && !accepts_stand_in(args_[k]))
        return {Mismatch::Type, next, args_[k], k};
      values_.values_[next] = none_is_absent(s.params[next], args_[k]) ? nullptr : args_[k];
    }
  }
  for (int i = next; i < s.count; ++i) values_.values_[i] = nullptr;
  if (C10_UNLIKELY(kwnames_ != nullptr)) {
    if (Mismatch m = fit_keywords(s); m.kind != Mismatch::None) return m;
  }
  for (int i = next; i < s.count; ++i) {
    if (!values_.values_[i] && !(s.params[i].flags & kHasDefault)) {
      return {Mismatch::Missing, i, nullptr, -1};
    }
  }
  return {};
}

const Signature* Matcher::find() {
  for (int i = 0; i < function_.count; ++i) {
    const Signature& s = function_.signatures[i];
    if (C10_LIKELY(fit(s, false).kind == Mismatch::None))
      return C10_LIKELY(i == 0 || !at::handlers_exist()) || !seen_by_handlers(s)
                 ? &s
                 : find_with_numbers();
  }
  return takes_numbers_as_tensors(function_.name) ? find_with_numbers() : nullptr;
}

const Signature* Matcher::find_with_numbers() {
  for (int i = 0; i < function_.count; ++i) {
    const Signature& s = function_.signatures[i];
    if (fit(s, true).kind == Mismatch::None) return &s;
  }
  return nullptr;
}

// Overloads on numbers keep a number a number on its way to the kernel. Handlers know the overload
// on tensors, which takes numbers too.
bool Matcher::seen_by_handlers(const Signature& s) const {
  bool seen = at::handlers_active();
  for (int i = 0; !seen && i < s.count; ++i) {
    PyObject* o = values_.object(i);
    seen = o && s.params[i].type == P::Tensor && is_tensor(o) && at::seen_by_handlers(tensor_of(o));
  }
  return C10_UNLIKELY(seen) && takes_numbers_as_tensors(function_.name);
}

bool Matcher::run_override(PyObject** result) noexcept {
  Overloads overloads;
  const bool enabled = overrides_enabled();
  if (enabled && self_) overloads.add(self_);
  const Signature& s = values_.signature();
  for (int i = first(); enabled && values_.overrides_ && i < s.count; ++i) {
    PyObject* o = values_.object(i);
    if (!o) continue;
    if (s.params[i].type == P::Tensor) {
      overloads.add(o);
    } else if (is_list(o) &&
               (s.params[i].type == P::TensorList || s.params[i].type == P::OptTensorList)) {
      overloads.add_sequence(o);
    }
  }
  if (overloads.empty() && !function_mode_active()) return false;
  ask(overloads, result);
  return true;
}

static void add_stand_ins(PyObject* o, Overloads& overloads) {
  if (is_stand_in(o)) {
    overloads.add(o);
  } else if (is_list(o)) {
    for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(o); i < n; ++i)
      add_stand_ins(PySequence_Fast_GET_ITEM(o, i), overloads);
  }
}

bool Matcher::run_stand_ins(PyObject** result) noexcept {
  if (!overrides_enabled()) return false;
  const Py_ssize_t count = nargs_ + keyword_count();
  stand_ins_ = true;
  if (std::none_of(args_, args_ + count, [&](PyObject* o) { return accepts_stand_in(o); })) {
    stand_ins_ = false;
    return false;
  }
  Overloads overloads;
  if (self_) overloads.add(self_);
  for (Py_ssize_t i = 0; i < count; ++i) add_stand_ins(args_[i], overloads);
  for (int i = 0; i < function_.count; ++i) {
    const Signature& s = function_.signatures[i];
    if ((s.flags & kNoOverride) || fit(s, true).kind != Mismatch::None) continue;
    ask(overloads, result);
    return true;
  }
  stand_ins_ = false;
  return false;
}

void Matcher::ask(const Overloads& overloads, PyObject** result) noexcept {
  *result = guarded([&] {
    PyRef func = checked(public_callable(function_.module, function_.name));
    PyRef args = checked(PyTuple_New(nargs_ + first()));
    for (Py_ssize_t i = 0; i < nargs_ + first(); ++i) {
      PyObject* item = i < first() ? self_ : args_[i - first()];
      Py_INCREF(item);
      PyTuple_SET_ITEM(args.get(), i, item);
    }
    PyRef kwargs(kwnames_ ? checked(PyDict_New()).release() : nullptr);
    for (Py_ssize_t k = 0; k < keyword_count(); ++k) {
      check_status(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames_, k), args_[nargs_ + k]));
    }
    const std::string name = std::string(function_.module) + "." + function_.name;
    return run_torch_function(func.get(), overloads, args.get(), kwargs.get(), name.c_str());
  });
}

PyObject* call(const Function& function, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
               PyObject* kwnames) noexcept {
  ArgValues values;
  values.function_ = &function;
  Matcher matcher(function, self, args, PyVectorcall_NARGS(nargs), kwnames, values);
  const Signature* signature = matcher.find();
  if (C10_UNLIKELY(!signature)) {
    PyObject* result = nullptr;
    if (matcher.run_stand_ins(&result)) return result;
    matcher.fail();
    return nullptr;
  }
  if (C10_UNLIKELY(values.overrides_ || (self && !is_plain_tensor(self)) ||
                   function_mode_active()) &&
      !(signature->flags & kNoOverride)) {
    PyObject* result = nullptr;
    if (matcher.run_override(&result)) return result;
  }
  try {
    if (C10_UNLIKELY(signature->flags & kDeprecated)) matcher.warn_deprecated();
    return signature->invoke(values);
  } catch (const python_error&) {
    set_error_from_exception();
  } catch (...) {
    set_error_from_exception(safe_context(values));
  }
  // Items of a list are looked at when they are converted: one may be a stand-in.
  if (PyErr_ExceptionMatches(PyExc_TypeError) && !(signature->flags & kNoOverride)) {
    PyObject *type, *value, *trace, *result = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    if (matcher.run_stand_ins(&result)) {
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(trace);
      return result;
    }
    PyErr_Restore(type, value, trace);
  }
  return nullptr;
}

PyObject* call_tuple(const Function& function, PyObject* self, PyObject* args,
                     PyObject* kwargs) noexcept {
  const Py_ssize_t nargs = PyTuple_GET_SIZE(args);
  if (!kwargs || PyDict_GET_SIZE(kwargs) == 0) {
    return call(function, self, PySequence_Fast_ITEMS(args), nargs, nullptr);
  }
  return guarded([&]() -> PyObject* {
    std::vector<PyObject*> all(PySequence_Fast_ITEMS(args), PySequence_Fast_ITEMS(args) + nargs);
    PyRef names = checked(PyTuple_New(PyDict_GET_SIZE(kwargs)));
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0, k = 0;
    while (PyDict_Next(kwargs, &position, &key, &value)) {
      if (!PyUnicode_Check(key)) raise_type_error("keywords must be strings");
      Py_INCREF(key);
      PyTuple_SET_ITEM(names.get(), k++, key);
      all.push_back(value);
    }
    return call(function, self, all.data(), nargs, names.get());
  });
}

} // namespace torch::python
