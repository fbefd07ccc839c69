// Between Python objects and IValues, guided by the types of an operator's schema.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <ATen/core/Dispatcher.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>

namespace torch::python {

// Throws TypeError naming function and argument when `o` does not fit.
at::IValue to_ivalue(PyObject* o, const at::SchemaType& type, const char* function,
                     const char* argument);
// A new reference. `type` may be null when the schema does not tell.
PyRef from_ivalue(const at::IValue& value, const at::SchemaType* type);

// Whether an argument of this type takes `o`, as far as can be seen without converting it: the
// items of a list are looked at one by one only where the types of lists differ by them.
bool fits_type(PyObject* o, const at::SchemaType& type);
// Whether the schema takes the call, by the number, names and types of its arguments.
bool call_fits(const at::FunctionSchema& schema, PyObject* const* args, Py_ssize_t nargs,
               PyObject* kwnames);
// Pushes the arguments of a call, in schema order, with defaults filled in; throws.
void stack_from_call(const at::FunctionSchema& schema, PyObject* const* args, Py_ssize_t nargs,
                     PyObject* kwnames, at::Stack& stack);
// What is on the stack as one Python result: None, a value, or a tuple.
PyRef result_from_stack(const at::FunctionSchema& schema, const at::Stack& stack);
// Arguments on the stack as a Python call: trailing ones that equal their default are left out.
struct PythonCall {
  PyRef args;   // a tuple
  PyRef kwargs; // a dict
};
PythonCall call_from_stack(const at::FunctionSchema& schema, const at::Stack& stack);
// Replaces the arguments on the stack by a Python result, checked against the schema's returns.
void push_result(const at::OperatorEntry& op, at::Stack& stack, PyObject* result);

} // namespace torch::python
