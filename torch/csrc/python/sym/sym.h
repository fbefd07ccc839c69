// Symbolic numbers in Python: torch.SymInt, SymFloat and SymBool over the handles of a shape
// environment, and the nodes that carry the handle.
//
// A number holds its node and nothing else; a handle has one node object as long as somebody holds
// it, so nodes can be told apart by identity. The node of a number may also be any Python object
// with methods named as the operations (sizes of ragged dimensions are made so): the number then
// asks that object.
#pragma once
#include <torch/csrc/python/runtime/support.h>
#include <torch/csrc/python/types/types.h>

#include <ATen/core/Tensor.h>
#include <c10/shapes/ShapeEnv.h>

namespace torch::python {

struct PyShapeEnv {
  PyObject_HEAD std::shared_ptr<c10::shapes::ShapeEnv> env;
  PyObject* dict;
  PyObject* weakrefs;
};
struct PySymNode {
  PyObject_HEAD int64_t raw;
  PyShapeEnv* env; // owned
  PyObject* fx_node;
  PyObject* weakrefs;
};
struct PySymNumber {
  PyObject_HEAD PyObject* node;
  PyObject* weakrefs;
};

extern PyTypeObject ShapeEnvType;
extern PyTypeObject SymNodeType;
extern PyTypeObject SymIntType;
extern PyTypeObject SymFloatType;
extern PyTypeObject SymBoolType;

// Most numbers are plain ones, which are told apart without a walk through their base classes.
inline bool is_plain_number(PyObject* o) { return PyLong_CheckExact(o) || PyFloat_CheckExact(o); }
inline bool is_sym_int(PyObject* o) {
  return !is_plain_number(o) && PyObject_TypeCheck(o, &SymIntType);
}
inline bool is_sym_float(PyObject* o) {
  return !is_plain_number(o) && PyObject_TypeCheck(o, &SymFloatType);
}
inline bool is_sym_bool(PyObject* o) {
  return !is_plain_number(o) && PyObject_TypeCheck(o, &SymBoolType);
}
inline bool is_sym_number(PyObject* o) {
  return is_sym_int(o) || is_sym_float(o) || is_sym_bool(o);
}
inline bool is_sym_node(PyObject* o) { return PyObject_TypeCheck(o, &SymNodeType); }
inline PyObject* node_object(PyObject* number) {
  return reinterpret_cast<PySymNumber*>(number)->node;
}
// The handle of a symbolic number whose node is ours; 0 otherwise.
int64_t handle_of_number(PyObject* number);
// As an operator takes it: a handle, or the guarded value where the node is a Python object.
c10::SymInt sym_int_value(PyObject* number);
c10::Scalar sym_scalar_value(PyObject* number);

// New references: the number, and the node, of a handle.
PyObject* wrap_handle(int64_t raw);
PyObject* wrap_node(int64_t raw);
// A torch.Size, a tuple of integers some of which are symbolic.
PyObject* make_sym_size(c10::SymIntArrayRef sizes);
PyObject* make_sym_tuple(c10::SymIntArrayRef values);
// x.shape
inline PyObject* size_of(const at::Tensor& tensor) {
  if (C10_UNLIKELY(tensor.unsafeGetTensorImpl()->has_symbolic_sizes()))
    return make_sym_size(tensor.sym_sizes());
  return make_size(tensor.sizes());
}
// A number that passes for a tensor. A symbolic one becomes a tensor of its value in the traced run
// (0 where it has none) that remembers the symbol; a tracer sees the symbol, nothing is guarded.
at::Tensor number_as_tensor(const c10::Scalar& number);

// ---- operations
// An operation by the names that nodes and tracing modes know it under.
struct SymOperation {
  c10::SymOp op;
  const char* node_name; // of the method of a Python node
  const char* module;    // where the function lies that a tracing mode sees
  const char* function;
};
const SymOperation& operation(c10::SymOp op);
// Of two numbers, one of them symbolic; NotImplemented where one is no number.
PyObject* sym_binary(c10::SymOp op, PyObject* a, PyObject* b) noexcept;
PyObject* sym_unary(c10::SymOp op, PyObject* a) noexcept;
// `name` of Python's math module.
PyObject* sym_function(const char* name, PyObject* a) noexcept;
PyObject* sym_where(PyObject* condition, PyObject* a, PyObject* b) noexcept;

// The Python object of an environment, made anew where the first one is gone.
PyRef env_object(c10::shapes::ShapeEnv& env);

// The result of a tracing mode's __sym_dispatch__ for `function` of these operands; null without
// an error where no mode is active.
PyObject* sym_dispatch(const char* module, const char* function, PyObject* const* args,
                       Py_ssize_t count);
// Sets GuardOnDataDependentSymNode.
void set_data_dependent_error(const c10::DataDependentError& error) noexcept;

bool init_sym(PyObject* module);
bool init_sym_node(PyObject* module);
bool init_shape_env(PyObject* module);

} // namespace torch::python
