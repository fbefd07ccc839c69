// Arguments of hand-written functions whose parameters the operator parser has no type for (any
// Python object as data). Same rules and the same messages as the parser's.
#pragma once
#include <initializer_list>
#include <optional>
#include <string>

#include <torch/csrc/python/runtime/support.h>
#include <torch/csrc/python/types/types.h>

#include <c10/util/Exception.h>

namespace torch::python {

class KeywordArgs {
 public:
  static constexpr int kMax = 10;

  // The first `positional` names may be given by position, the first `required` must be given.
  KeywordArgs(const char* function, std::initializer_list<const char*> names, int positional,
              int required, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames)
      : function_(function), count_(static_cast<int>(names.size())) {
    int next = 0;
    for (const char* name : names) names_[next++] = name;
    if (nargs > positional) {
      raise_type_error(c10::str(function, "() takes ", positional, " positional argument",
                                positional == 1 ? "" : "s", " but ", int64_t(nargs),
                                nargs == 1 ? " was given" : " were given"));
    }
    for (Py_ssize_t i = 0; i < nargs; ++i) values_[i] = args[i];
    const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t k = 0; k < keywords; ++k) take(PyTuple_GET_ITEM(kwnames, k), args[nargs + k]);
    check_required(required);
  }

  // Borrowed; nullptr when not given.
  PyObject* operator[](int i) const { return values_[i]; }
  bool present(int i) const { return values_[i] && values_[i] != Py_None; }

  std::optional<c10::ScalarType> dtype(int i) const {
    if (!present(i)) return std::nullopt;
    c10::ScalarType out;
    if (!dtype_from_object(values_[i], &out)) wrong_type(i, "torch.dtype");
    return out;
  }
  std::optional<c10::Device> device(int i) const {
    if (!present(i)) return std::nullopt;
    c10::Device out;
    if (!device_from_object(values_[i], &out)) wrong_type(i, "torch.device");
    return out;
  }
  bool boolean(int i, bool otherwise) const {
    if (!present(i)) return otherwise;
    if (!PyBool_Check(values_[i])) wrong_type(i, "bool");
    return values_[i] == Py_True;
  }
  int64_t integer(int i, int64_t otherwise) const {
    if (!present(i)) return otherwise;
    if (!PyIndex_Check(values_[i]) || PyBool_Check(values_[i])) wrong_type(i, "int");
    PyRef number = checked(PyNumber_Index(values_[i]));
    const int64_t out = PyLong_AsLongLong(number.get());
    if (out == -1 && PyErr_Occurred()) throw python_error();
    return out;
  }
  [[noreturn]] void wrong_type(int i, const char* wanted) const {
    raise_type_error(c10::str(function_, "(): argument '", names_[i], "' must be ", wanted,
                              ", not ", type_name(values_[i])));
  }

 private:
  void take(PyObject* name, PyObject* value) {
    const std::string_view text = utf8(name);
    for (int i = 0; i < count_; ++i) {
      if (text != names_[i]) continue;
      if (values_[i]) {
        raise_type_error(c10::str(function_, "() got multiple values for argument '", text, "'"));
      }
      values_[i] = value;
      return;
    }
    raise_type_error(c10::str(function_, "() got an unexpected keyword argument '", text, "'"));
  }
  void check_required(int required) const {
    std::string missing;
    int count = 0;
    for (int i = 0; i < required; ++i) {
      if (values_[i]) continue;
      missing += c10::str(count++ ? ", \"" : "\"", names_[i], "\"");
    }
    if (count > 0) {
      raise_type_error(
          c10::str(function_, "() missing ", count, " required positional arguments: ", missing));
    }
  }

  const char* function_;
  int count_;
  const char* names_[kMax];
  PyObject* values_[kMax] = {};
};

} // namespace torch::python
