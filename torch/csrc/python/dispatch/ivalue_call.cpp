// Whole calls between Python and the stack of a boxed kernel.
#include <torch/csrc/python/dispatch/ivalue_convert.h>

#include <ATen/ops/_local_scalar_dense.h>
#include <c10/core/SymbolicGeometry.h>
#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <c10/util/SmallVector.h>

#include <cstring>

namespace torch::python {
namespace {

const char* name_of(const at::FunctionSchema& schema) { return schema.name.c_str(); }

size_t positional_count(const at::FunctionSchema& schema) {
  size_t n = 0;
  while (n < schema.arguments.size() && !schema.arguments[n].kwarg_only) ++n;
  return n;
}

int find_argument(const at::FunctionSchema& schema, PyObject* keyword) {
  const std::string_view name = utf8(keyword);
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (schema.arguments[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

[[noreturn]] void fail_call(const at::FunctionSchema& schema, const std::string& why) {
  raise(PyExc_RuntimeError, c10::str(name_of(schema), "() ", why, " Declaration: ", schema.str()));
}

// Equality of an argument with its schema default, for values that can be defaults.
bool equals_default(const at::IValue& value, const at::SchemaArgument& argument) {
  if (!argument.has_default) return false;
  const at::IValue& other = argument.default_value;
  using Tag = at::IValue::Tag;
  if (value.tag != other.tag) {
    const bool numbers = (value.isInt() || value.isDouble()) && (other.isInt() || other.isDouble());
    return numbers && value.toScalar().toDouble() == other.toScalar().toDouble();
  }
  switch (value.tag) {
  case Tag::None:
    return true;
  case Tag::Int:
  case Tag::Bool:
  case Tag::Device:
  case Tag::ScalarType:
  case Tag::Layout:
  case Tag::MemoryFormat:
    return value.bits.i == other.bits.i;
  case Tag::Double:
    return value.bits.d[0] == other.bits.d[0];
  case Tag::String:
    return value.toStringRef() == other.toStringRef();
  case Tag::IntList:
    return value.toIntList() == other.toIntList();
  default:
    return false;
  }
}

// Whether None may stand for a tensor of the result: a gradient that nobody asked for, the argument
// that was written, or a part that an operator of Python leaves out. C++ that calls another
// built-in operator uses what it returns.
bool may_return_none(const at::OperatorEntry& op) {
  const at::OperatorState* state = op.state.load(std::memory_order_acquire);
  if (state && state->defined_at_runtime) return true;
  const at::FunctionSchema& schema = op.schema();
  return schema.is_mutable() || schema.name.find("backward") != std::string::npos;
}

// One value of the schema's returns.
at::IValue return_value(PyObject* o, size_t i, const at::OperatorEntry& op) {
  const at::FunctionSchema& schema = op.schema();
  const at::SchemaType& type = schema.returns[i].type;
  if (o == Py_None && type.kind == at::SchemaType::Kind::Tensor) {
    if (may_return_none(op)) return at::IValue();
    raise_type_error(c10::str(name_of(schema), " must return a Tensor, but its implementation in ",
                              "Python returned None"));
  }
  return to_ivalue(o, type, name_of(schema), "result");
}

} // namespace

bool call_fits(const at::FunctionSchema& schema, PyObject* const* args, Py_ssize_t nargs,
               PyObject* kwnames) {
  if (static_cast<size_t>(nargs) > positional_count(schema)) return false;
  const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  size_t needed = 0, met = 0;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const bool required = !schema.arguments[i].has_default;
    needed += required;
    if (i >= static_cast<size_t>(nargs)) continue;
    if (!fits_type(args[i], schema.arguments[i].type)) return false;
    met += required;
  }
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    const int i = find_argument(schema, PyTuple_GET_ITEM(kwnames, k));
    if (i < nargs) return false;
    const at::SchemaArgument& argument = schema.arguments[static_cast<size_t>(i)];
    if (!fits_type(args[nargs + k], argument.type)) return false;
    met += !argument.has_default;
  }
  return met == needed;
}

void stack_from_call(const at::FunctionSchema& schema, PyObject* const* args, Py_ssize_t nargs,
                     PyObject* kwnames, at::Stack& stack) {
  const size_t count = schema.arguments.size();
  const auto last = static_cast<size_t>(nargs);
  if (last > count || (last > 0 && schema.arguments[last - 1].kwarg_only)) {
    fail_call(schema, c10::str("takes ", positional_count(schema), " positional argument(s) but ",
                               static_cast<long>(nargs), " was/were given."));
  }
  c10::SmallVector<PyObject*, 16> given(count, nullptr);
  for (Py_ssize_t i = 0; i < nargs; ++i) given[static_cast<size_t>(i)] = args[i];
  const Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(kwnames, k);
    const int i = find_argument(schema, keyword);
    if (i < 0) fail_call(schema, "Unknown keyword argument '" + text_of(keyword) + "'.");
    if (given[static_cast<size_t>(i)]) {
      fail_call(schema, "got multiple values for argument '" + text_of(keyword) + "'.");
    }
    given[static_cast<size_t>(i)] = args[nargs + k];
  }
  stack.reserve(count + 2);
  for (size_t i = 0; i < count; ++i) {
    const at::SchemaArgument& argument = schema.arguments[i];
    if (given[i]) {
      stack.push_back(to_ivalue(given[i], argument.type, name_of(schema), argument.name.c_str()));
    } else if (argument.has_default) {
      stack.push_back(argument.default_value);
    } else {
      fail_call(schema, "is missing value for argument '" + argument.name + "'.");
    }
  }
}

PyRef result_from_stack(const at::FunctionSchema& schema, const at::Stack& stack) {
  if (stack.empty()) return PyRef::borrow(Py_None);
  auto item = [&](size_t i) {
    const bool known = i < schema.returns.size();
    return from_ivalue(stack[i], known ? &schema.returns[i].type : nullptr);
  };
  if (stack.size() == 1) return item(0);
  PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(stack.size())));
  for (size_t i = 0; i < stack.size(); ++i) {
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item(i).release());
  }
  return out;
}

namespace {
// A number that an operator took as a tensor is a number to Python.
PyRef argument_from_stack(const at::IValue& value, const at::SchemaType& type) {
  if (value.isTensor()) {
    const at::Tensor tensor = value.toTensor();
    const at::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    if (impl->is_wrapped_number() && c10::symbolic_number(*impl) == 0 && impl->data() != nullptr &&
        tensor.device().is_cpu()) {
      using Key = c10::DispatchKey;
      c10::ExcludeDispatchKeyGuard unwatched(
          c10::DispatchKeySet{Key::Python, Key::Fake, Key::PreDispatch, Key::PythonDispatcher});
      return checked(wrap(at::_local_scalar_dense(tensor)));
    }
  }
  return from_ivalue(value, &type);
}
} // namespace

PythonCall call_from_stack(const at::FunctionSchema& schema, const at::Stack& stack) {
  const size_t count = schema.arguments.size();
  const size_t base = stack.size() - count;
  size_t positional = positional_count(schema);
  while (positional > 0 &&
         equals_default(stack[base + positional - 1], schema.arguments[positional - 1])) {
    --positional;
  }
  PythonCall out;
  out.args = checked(PyTuple_New(static_cast<Py_ssize_t>(positional)));
  out.kwargs = checked(PyDict_New());
  for (size_t i = 0; i < positional; ++i) {
    PyTuple_SET_ITEM(out.args.get(), static_cast<Py_ssize_t>(i),
                     argument_from_stack(stack[base + i], schema.arguments[i].type).release());
  }
  for (size_t i = positional_count(schema); i < count; ++i) {
    const at::SchemaArgument& argument = schema.arguments[i];
    if (equals_default(stack[base + i], argument)) continue;
    PyRef value = argument_from_stack(stack[base + i], argument.type);
    check_status(PyDict_SetItemString(out.kwargs.get(), argument.name.c_str(), value.get()));
  }
  return out;
}

void push_result(const at::OperatorEntry& op, at::Stack& stack, PyObject* result) {
  const at::FunctionSchema& schema = op.schema();
  at::Stack results;
  const size_t count = schema.returns.size();
  if (count == 1) {
    results.push_back(return_value(result, 0, op));
  } else if (count > 1) {
    PyRef items = checked(PySequence_Fast(result, "the operator must return a tuple"));
    if (static_cast<size_t>(PySequence_Fast_GET_SIZE(items.get())) != count) {
      raise(PyExc_RuntimeError, c10::str(name_of(schema), " must return ", count, " values, got ",
                                         static_cast<long>(PySequence_Fast_GET_SIZE(items.get()))));
    }
    for (size_t i = 0; i < count; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
      results.push_back(return_value(item, i, op));
    }
  } else if (result != Py_None) {
    raise(PyExc_RuntimeError, c10::str(name_of(schema), " returns nothing, but its implementation ",
                                       "returned ", type_name(result)));
  }
  stack.resize(stack.size() - schema.arguments.size());
  for (at::IValue& value : results) stack.push_back(std::move(value));
}

} // namespace torch::python
