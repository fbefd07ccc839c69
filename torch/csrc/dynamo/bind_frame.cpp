// Arguments of a call as the locals that the function's frame would begin with.
#include <torch/csrc/dynamo/eval_frame.h>

namespace torch::dynamo {
namespace {

PyObject* name_at(PyObject* varnames, int place) { return PyTuple_GET_ITEM(varnames, place); }

// The place of a parameter that may be given by name, or -1.
int place_of(PyObject* varnames, const Parameters& parameters, PyObject* name) {
  const int end = parameters.positional + parameters.keyword_only;
  for (int i = parameters.positional_only; i < end; ++i)
    if (name_at(varnames, i) == name) return i;
  for (int i = parameters.positional_only; i < end; ++i) {
    const int equal = PyObject_RichCompareBool(name_at(varnames, i), name, Py_EQ);
    if (equal > 0) return i;
    if (equal < 0) PyErr_Clear();
  }
  return -1;
}

bool take_keywords(PyObject* varnames, const Parameters& parameters, PyObject* const* args,
                   PyObject* kwnames, PyObject* extra, BoundFrame& out) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, i);
    const int place = place_of(varnames, parameters, name);
    if (place >= 0) {
      if (out.values[place]) return false;
      out.values[place] = args[i];
    } else if (!extra || PyDict_SetItem(extra, name, args[i]) < 0) {
      PyErr_Clear();
      return false;
    }
  }
  return true;
}

bool take_defaults(PyObject* function, PyObject* varnames, const Parameters& parameters,
                   BoundFrame& out) {
  PyObject* defaults = PyFunction_GET_DEFAULTS(function);
  const int count = defaults ? static_cast<int>(PyTuple_GET_SIZE(defaults)) : 0;
  if (count > 0) out.held.push_back(PyRef::borrow(defaults));
  for (int i = 0; i < parameters.positional; ++i) {
    if (out.values[i]) continue;
    const int from_end = i - (parameters.positional - count);
    if (from_end < 0) return false;
    out.values[i] = PyTuple_GET_ITEM(defaults, from_end);
  }
  PyObject* keyword = PyFunction_GET_KW_DEFAULTS(function);
  for (int i = parameters.positional; i < parameters.positional + parameters.keyword_only; ++i) {
    if (out.values[i]) continue;
    PyObject* found = keyword ? PyDict_GetItemWithError(keyword, name_at(varnames, i)) : nullptr;
    if (!found) {
      PyErr_Clear();
      return false;
    }
    out.held.push_back(PyRef::borrow(found));
    out.values[i] = found;
  }
  return true;
}

} // namespace

Parameters Parameters::of(PyCodeObject* code) {
  return {code->co_argcount, code->co_posonlyargcount, code->co_kwonlyargcount,
          (code->co_flags & CO_VARARGS) != 0, (code->co_flags & CO_VARKEYWORDS) != 0};
}

bool bind(PyObject* function, const Parameters& parameters, PyObject* const* args, size_t nargs,
          PyObject* kwnames, BoundFrame& out) {
  const bool keywords = kwnames && PyTuple_GET_SIZE(kwnames) > 0;
  const auto positional = static_cast<size_t>(parameters.positional);
  const bool plain = !keywords && nargs == positional && parameters.all() == parameters.positional;
  if (plain) {
    out.values.append(args, args + nargs);
  } else {
    if (nargs > positional && !parameters.varargs) return false;
    PyRef varnames(PyObject_GetAttrString(PyFunction_GET_CODE(function), "co_varnames"));
    if (!varnames) {
      PyErr_Clear();
      return false;
    }
    out.held.push_back(varnames);
    out.values.resize(static_cast<size_t>(parameters.all()), nullptr);
    const size_t direct = nargs < positional ? nargs : positional;
    for (size_t i = 0; i < direct; ++i) out.values[i] = args[i];
    size_t place = positional + static_cast<size_t>(parameters.keyword_only);
    if (parameters.varargs) {
      PyRef rest(PyTuple_New(static_cast<Py_ssize_t>(nargs - direct)));
      if (!rest) {
        PyErr_Clear();
        return false;
      }
      for (size_t i = direct; i < nargs; ++i)
        PyTuple_SET_ITEM(rest.get(), static_cast<Py_ssize_t>(i - direct),
                         PyRef::borrow(args[i]).release());
      out.values[place++] = rest.get();
      out.held.push_back(std::move(rest));
    }
    PyRef extra;
    if (parameters.varkeywords) {
      extra = PyRef(PyDict_New());
      if (!extra) {
        PyErr_Clear();
        return false;
      }
      out.values[place] = extra.get();
      out.held.push_back(extra);
    }
    if (keywords &&
        !take_keywords(varnames.get(), parameters, args + nargs, kwnames, extra.get(), out)) {
      return false;
    }
    if (!take_defaults(function, varnames.get(), parameters, out)) return false;
  }
  if (PyObject* closure = PyFunction_GET_CLOSURE(function))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(closure); ++i)
      out.values.push_back(PyTuple_GET_ITEM(closure, i));
  return true;
}

} // namespace torch::dynamo
