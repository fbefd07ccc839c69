// What to say when a call fits no signature, and how to describe a call whose operator failed. The
// phrases are PyTorch's; where several signatures exist each is followed by why it did not match.
#include <torch/csrc/python/args/arg_match.h>

#include <ATen/core/WarnOnce.h>

#include <cstring>

namespace torch::python {

const char* param_type_name(P type) {
  switch (type) {
  case P::Tensor:
    return "Tensor";
  case P::Scalar:
    return "Number";
  case P::Int:
  case P::SymInt:
    return "int";
  case P::Float:
    return "float";
  case P::Bool:
    return "bool";
  case P::Str:
    return "str";
  case P::IntList:
  case P::SymIntList:
    return "tuple of ints";
  case P::FloatList:
    return "tuple of floats";
  case P::ScalarList:
    return "tuple of Scalars";
  case P::TensorList:
  case P::OptTensorList:
    return "tuple of Tensors";
  case P::BoolList:
    return "tuple of bools";
  case P::ScalarType:
    return "torch.dtype";
  case P::Layout:
    return "torch.layout";
  case P::MemoryFormat:
    return "torch.memory_format";
  case P::Device:
    return "torch.device";
  case P::Generator:
    return "torch.Generator";
  case P::Storage:
    return "torch.Storage";
  case P::Stream:
    return "torch.Stream";
  case P::Dimname:
    return "name";
  case P::Complex:
    return "complex";
  case P::Qscheme:
    return "torch.qscheme";
  case P::Object:
    return "object";
  }
  return "?";
}

bool takes_numbers_as_tensors(const char* name) {
  static constexpr const char* names[] = {"add",      "sub", "subtract",    "mul",
                                          "multiply", "div", "true_divide", "floor_divide",
                                          "divide",   "copy"};
  size_t length = std::strlen(name);
  if (length > 1 && name[length - 1] == '_') --length;
  for (const char* known : names) {
    if (std::strlen(known) == length && std::strncmp(known, name, length) == 0) return true;
  }
  return false;
}

// Overloads on numbers of functions that take numbers for tensors anyway would only repeat the
// signature on tensors.
bool Matcher::visible(const Signature& s) const {
  if (s.flags & (kHidden | kDeprecated)) return false;
  if (function_.count == 1 || !takes_numbers_as_tensors(function_.name)) return true;
  for (int i = 0; i < s.positional; ++i) {
    if (s.params[i].type == P::Scalar) return false;
  }
  return true;
}

void Matcher::warn_deprecated() const {
  std::string text = std::string("This overload of ") + function_.name + " is deprecated:\n\t" +
                     function_.name + signature_text(values_.signature()) +
                     "\nConsider using one of the following signatures instead:";
  for (int i = 0; i < function_.count; ++i) {
    const Signature& s = function_.signatures[i];
    if (visible(s)) text += std::string("\n\t") + function_.name + signature_text(s);
  }
  AT_WARN_ONCE(text);
}

bool Matcher::plausible(const Signature& s) const {
  const Py_ssize_t given = nargs_ + keyword_count();
  Py_ssize_t least = 0;
  for (int i = first(); i < s.count; ++i) least += !(s.params[i].flags & kHasDefault);
  return given >= least && given <= s.count - first();
}

std::string Matcher::signature_text(const Signature& s) const {
  std::string out = "(";
  bool star = false;
  for (int i = first(); i < s.count; ++i) {
    const Param& param = s.params[i];
    if (i > first()) out += ", ";
    if (i >= s.positional && !star) {
      out += "*, ";
      star = true;
    }
    out += param_type_name(param.type);
    out += ' ';
    out += param.name;
    if (param.flags & kHasDefault) {
      out += " = ";
      out += param.default_text ? param.default_text : "None";
    }
  }
  return out + ")";
}

std::string Matcher::given_types() const {
  std::string out = "(";
  for (Py_ssize_t i = 0; i < nargs_ + keyword_count(); ++i) {
    if (i) out += ", ";
    if (i >= nargs_) {
      out += text_of(PyTuple_GET_ITEM(kwnames_, i - nargs_));
      out += "=";
    }
    out += type_name(args_[i]);
  }
  // PyTorch's text of keywords alone ends so.
  if (nargs_ == 0 && keyword_count() > 0) out += ", ";
  return out + ")";
}

// The message for a call that could only have meant this signature.
std::string Matcher::explain(const Signature& s, const Mismatch& m) const {
  const std::string name = function_.name;
  switch (m.kind) {
  case Mismatch::TooMany: {
    const int takes = s.positional - first();
    if (self_ && s.count == 1) {
      return c10::str("TensorBase.", name, "() takes no arguments (", static_cast<long>(nargs_),
                      " given)");
    }
    int least = 0;
    for (int i = first(); i < s.positional; ++i) least += !(s.params[i].flags & kHasDefault);
    const std::string range =
        least == takes ? c10::str(takes) : c10::str("from ", least, " to ", takes);
    return c10::str(name, "() takes ", range,
                    takes == 1 && least == takes ? " positional argument" : " positional arguments",
                    " but ", static_cast<long>(nargs_), nargs_ == 1 ? " was given" : " were given");
  }
  case Mismatch::Unexpected:
    if (self_ && s.count == 1) return "TensorBase." + name + "() takes no keyword arguments";
    return name + "() got an unexpected keyword argument '" + text_of(m.value) + "'";
  case Mismatch::Duplicate:
    return name + "() got multiple values for argument '" + s.params[m.param].name + "'";
  case Mismatch::Missing: {
    std::string missing;
    int count = 0;
    for (int i = first(); i < s.count; ++i) {
      if (values_.given(i) || (s.params[i].flags & kHasDefault)) continue;
      if (count++) missing += ", ";
      missing += c10::str("\"", s.params[i].name, "\"");
    }
    // One is PyTorch's plural.
    return c10::str(name, "() missing ", count,
                    count == 1 ? " required positional arguments: "
                               : " required positional argument: ",
                    missing);
  }
  case Mismatch::Type:
    break;
  case Mismatch::None:
    return name + "(): the arguments fit";
  }
  const Param& param = s.params[m.param];
  if ((param.type == P::TensorList || param.type == P::OptTensorList) &&
      (PyTuple_Check(m.value) || PyList_Check(m.value))) {
    for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(m.value); i < n; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(m.value, i);
      if (is_tensor(item)) continue;
      return c10::str("expected Tensor as element ", static_cast<long>(i), " in argument ",
                      m.param - first(), ", but got ", type_name(item));
    }
  }
  std::string out = c10::str(name, "(): argument '", param.name, "'");
  if (m.position >= 0) out += c10::str(" (position ", static_cast<long>(m.position + 1), ")");
  const bool numbers = param.type == P::IntList || param.type == P::SymIntList;
  if (numbers && (PyTuple_Check(m.value) || PyList_Check(m.value)) &&
      PySequence_Fast_GET_SIZE(m.value) > 0 &&
      !PyIndex_Check(PySequence_Fast_GET_ITEM(m.value, 0))) {
    return out + c10::str(" must be ", param_type_name(param.type), ", but found element of type ",
                          type_name(PySequence_Fast_GET_ITEM(m.value, 0)), " at pos 0");
  }
  return out + c10::str(" must be ", param_type_name(param.type), ", not ", type_name(m.value));
}

// Why a signature of several did not match, in the words PyTorch uses where it says so.
std::string Matcher::reason(const Signature& s, const Mismatch& m) const {
  if (m.kind == Mismatch::Type) {
    std::string out = "some of the arguments have invalid types: (";
    for (Py_ssize_t i = 0; i < nargs_ + keyword_count(); ++i) {
      if (i) out += ", ";
      if (i >= nargs_) out += text_of(PyTuple_GET_ITEM(kwnames_, i - nargs_)) + "=";
      const bool bad = args_[i] == m.value;
      out += c10::str(bad ? "!" : "", type_name(args_[i]), bad ? "!" : "");
    }
    return out + ")";
  }
  if (m.kind == Mismatch::Unexpected) {
    return "some of the keywords were incorrect: " + text_of(m.value);
  }
  std::string text = explain(s, m);
  return text.substr(text.find("() ") == std::string::npos ? 0 : text.find("() ") + 3);
}

std::string Matcher::combination_message() {
  std::vector<const Signature*> shown;
  for (int i = 0; i < function_.count; ++i) {
    if (visible(function_.signatures[i])) shown.push_back(&function_.signatures[i]);
  }
  if (shown.empty()) shown.push_back(&function_.signatures[0]);
  std::string out =
      c10::str(function_.name, "() received an invalid combination of arguments - got ",
               given_types(), ", but expected ");
  if (shown.size() == 1) return out + signature_text(*shown[0]);
  out += "one of:\n";
  for (const Signature* s : shown) {
    out += " * " + signature_text(*s) + "\n";
    out += "      didn't match because " + reason(*s, fit(*s, false)) + "\n";
  }
  return out;
}

void Matcher::fail() noexcept {
  try {
    const Signature* only = nullptr;
    int count = 0, current = 0;
    for (int i = 0; i < function_.count; ++i)
      current += !(function_.signatures[i].flags & kDeprecated);
    for (int i = 0; i < function_.count; ++i) {
      const Signature& s = function_.signatures[i];
      const bool candidate = visible(s) && (current == 1 || plausible(s));
      if (candidate && ++count == 1) only = &s;
    }
    std::string message;
    if (count == 1) {
      message = explain(*only, fit(*only, takes_numbers_as_tensors(function_.name)));
    } else {
      message = combination_message();
    }
    PyErr_SetString(PyExc_TypeError, message.c_str());
  } catch (...) {
    set_error_from_exception();
  }
}

// ---- the context line of operator errors --------------------------------------------------------

std::string describe_tensor(const at::Tensor& tensor) {
  std::string out;
  if (!tensor.defined()) return "undefined tensor";
  append(out, tensor);
  return out;
}

namespace {

constexpr size_t kLongestValue = 60;

void describe_value(std::string& out, PyObject* o, P type) {
  if (is_tensor(o)) {
    out += describe_tensor(tensor_of(o));
    return;
  }
  if (type == P::TensorList && (PyTuple_Check(o) || PyList_Check(o))) {
    out += '[';
    for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(o); i < n && i < 4; ++i) {
      if (i) out += ", ";
      describe_value(out, PySequence_Fast_GET_ITEM(o, i), P::Tensor);
    }
    out += PySequence_Fast_GET_SIZE(o) > 4 ? ", ...]" : "]";
    return;
  }
  std::string text = repr_of(o);
  if (text.size() > kLongestValue) text = text.substr(0, kLongestValue) + "...";
  out += text;
}

} // namespace

std::string call_context(const ArgValues& values) {
  const Function& function = values.function();
  const Signature& s = values.signature();
  // linalg_inv stands in torch.linalg as inv.
  std::string_view name = function.name;
  const std::string_view module = function.module;
  const std::string prefix = c10::str(module.substr(module.rfind('.') + 1), "_");
  if (name.substr(0, prefix.size()) == prefix) name.remove_prefix(prefix.size());
  std::string out = c10::str("\n  in ", module, ".", name, "(");
  bool comma = false;
  for (int i = 0; i < s.count; ++i) {
    if (!values.given(i)) continue;
    if (comma) out += ", ";
    comma = true;
    out += s.params[i].name;
    out += ": ";
    if (i == values.varargs_index_) {
      out += '[';
      for (Py_ssize_t k = 0; k < values.varargs_count_; ++k) {
        if (k) out += ", ";
        describe_value(out, values.varargs_[k], P::Int);
      }
      out += ']';
    } else {
      describe_value(out, values.object(i), s.params[i].type);
    }
  }
  return out + ")";
}

} // namespace torch::python
