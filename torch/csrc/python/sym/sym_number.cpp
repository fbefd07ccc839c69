// torch.SymInt, torch.SymFloat and torch.SymBool. See sym.h.
#include <torch/csrc/python/sym/sym.h>

#include <structmember.h>

#include <cmath>

#include <torch/csrc/python/types/types.h>

#include <ATen/core/EmptyTensor.h>
#include <c10/core/SymbolicGeometry.h>

namespace torch::python {

using c10::SymOp;
using c10::shapes::ShapeNode;

PyTypeObject SymIntType = type_object("torch.SymInt");
PyTypeObject SymFloatType = type_object("torch.SymFloat");
PyTypeObject SymBoolType = type_object("torch.SymBool");

int64_t handle_of_number(PyObject* number) {
  PyObject* node = node_object(number);
  return is_sym_node(node) ? reinterpret_cast<PySymNode*>(node)->raw : 0;
}

c10::SymInt sym_int_value(PyObject* number) {
  if (const int64_t raw = handle_of_number(number)) {
    auto* node = c10::shapes::shape_node(raw);
    // A truth value or a float where an integer is wanted is guarded.
    if (node->sort() == c10::SymSort::Int)
      return c10::SymInt::from_raw(node->env()->raw_of(node->env()->shown(node->expr())));
  }
  const PyRef value = checked(PyNumber_Long(number));
  const long long plain = PyLong_AsLongLong(value.get());
  if (plain == -1 && PyErr_Occurred()) throw python_error();
  return c10::SymInt(plain);
}

c10::Scalar sym_scalar_value(PyObject* number) {
  if (const int64_t raw = handle_of_number(number)) return c10::Scalar::of_handle(raw);
  if (is_sym_bool(number)) {
    const int truth = PyObject_IsTrue(number);
    if (truth < 0) throw python_error();
    return c10::Scalar(truth != 0);
  }
  return c10::Scalar(sym_int_value(number));
}

namespace {
c10::Scalar hint_scalar(const c10::Scalar& symbolic) {
  const auto* node = c10::shapes::shape_node(symbolic.symbolic_raw());
  const auto hint = node->env()->hint_of(node->expr()).value_or(c10::shapes::Value{0});
  switch (node->sort()) {
  case c10::SymSort::Float:
    return c10::Scalar(hint.real);
  case c10::SymSort::Bool:
    return c10::Scalar(hint.integer != 0);
  default:
    return c10::Scalar(hint.integer);
  }
}
} // namespace

at::Tensor number_as_tensor(const c10::Scalar& number) {
  if (C10_LIKELY(!number.is_symbolic())) return at::detail::wrapped_number(number);
  at::Tensor out = at::detail::wrapped_number(hint_scalar(number));
  c10::set_symbolic_number(*out.unsafeGetTensorImpl(), number.symbolic_raw());
  return out;
}

namespace {

PyObject* new_number(PyTypeObject* type, PyRef node) {
  auto* self = reinterpret_cast<PySymNumber*>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->node = node.release();
  return reinterpret_cast<PyObject*>(self);
}

PyTypeObject* type_of_sort(c10::SymSort sort) {
  switch (sort) {
  case c10::SymSort::Float:
    return &SymFloatType;
  case c10::SymSort::Bool:
    return &SymBoolType;
  default:
    return &SymIntType;
  }
}

PyObject* number_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"node", nullptr};
  PyObject* node = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(names), &node))
    return nullptr;
  return new_number(type, PyRef::borrow(node));
}

int number_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<PySymNumber*>(self)->node);
  return 0;
}
int number_clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<PySymNumber*>(self)->node);
  return 0;
}
void number_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (reinterpret_cast<PySymNumber*>(self)->weakrefs) PyObject_ClearWeakRefs(self);
  number_clear(self);
  Py_TYPE(self)->tp_free(self);
}

PyObject* number_repr(PyObject* self) { return PyObject_Str(node_object(self)); }

// ---- values
ShapeNode* shape_node_of(PyObject* self) {
  const int64_t raw = handle_of_number(self);
  return raw == 0 ? nullptr : c10::shapes::shape_node(raw);
}

PyObject* guarded_value(PyObject* self) {
  return guarded([&]() -> PyObject* {
    if (ShapeNode* node = shape_node_of(self)) {
      switch (node->sort()) {
      case c10::SymSort::Float:
        return PyFloat_FromDouble(node->guard_float("", 0));
      case c10::SymSort::Bool:
        return new_bool(node->guard_bool("", 0));
      default:
        return PyLong_FromLongLong(node->guard_int("", 0));
      }
    }
    const char* name = is_sym_bool(self)    ? "guard_bool"
                       : is_sym_float(self) ? "guard_float"
                                            : "guard_int";
    return PyObject_CallMethod(node_object(self), name, "si", "", 0);
  });
}

PyObject* number_int(PyObject* self) {
  const PyRef value(guarded_value(self));
  return value ? PyNumber_Long(value.get()) : nullptr;
}
PyObject* number_float(PyObject* self) {
  const PyRef value(guarded_value(self));
  return value ? PyNumber_Float(value.get()) : nullptr;
}
int number_bool(PyObject* self) {
  return guarded([&]() -> int {
    if (is_sym_bool(self)) {
      const PyRef value = checked(guarded_value(self));
      return PyObject_IsTrue(value.get());
    }
    const PyRef zero = checked(PyLong_FromLong(0));
    const PyRef differs = checked(sym_binary(SymOp::Ne, self, zero.get()));
    return PyObject_IsTrue(differs.get());
  });
}

Py_hash_t number_hash(PyObject* self) {
  if (!is_sym_node(node_object(self))) return PyObject_Hash(node_object(self));
  if (is_sym_int(self)) {
    PyErr_SetString(PyExc_TypeError, "unhashable type: non-nested SymInt");
    return -1;
  }
  const PyRef value(guarded_value(self));
  return value ? PyObject_Hash(value.get()) : -1;
}

// ---- arithmetic
template <SymOp op> PyObject* binary(PyObject* a, PyObject* b) { return sym_binary(op, a, b); }
template <SymOp op> PyObject* unary(PyObject* a) { return sym_unary(op, a); }
template <SymOp op> PyObject* unary_method(PyObject* a, PyObject*) { return sym_unary(op, a); }
template <SymOp op> PyObject* binary_method(PyObject* a, PyObject* b) {
  return sym_binary(op, a, b);
}

PyObject* number_self(PyObject* self) {
  Py_INCREF(self);
  return self;
}

PyObject* number_pow(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow() of symbolic numbers takes no modulus");
    return nullptr;
  }
  return sym_binary(SymOp::Pow, a, b);
}

PyObject* number_divmod(PyObject* a, PyObject* b) {
  const PyRef quotient(sym_binary(SymOp::FloorDiv, a, b));
  if (!quotient || quotient.get() == Py_NotImplemented) return PyRef(quotient).release();
  const PyRef rest(sym_binary(SymOp::Mod, a, b));
  return rest ? PyTuple_Pack(2, quotient.get(), rest.get()) : nullptr;
}

PyObject* number_compare(PyObject* a, PyObject* b, int op) {
  static constexpr SymOp kRelations[] = {SymOp::Lt, SymOp::Le, SymOp::Eq,
                                         SymOp::Ne, SymOp::Gt, SymOp::Ge};
  return sym_binary(kRelations[op], a, b);
}

// An integer is its own floor, ceiling and rounding.
template <SymOp op> PyObject* rounding(PyObject* self, PyObject*) {
  return is_sym_int(self) ? number_self(self) : sym_unary(op, self);
}

PyObject* number_round(PyObject* self, PyObject* args) {
  PyObject* digits = Py_None;
  if (!PyArg_ParseTuple(args, "|O", &digits)) return nullptr;
  if (is_sym_int(self)) return number_self(self);
  if (digits != Py_None) {
    PyErr_SetString(PyExc_NotImplementedError,
                    "round() of a symbolic float to a number of digits is not implemented");
    return nullptr;
  }
  return sym_unary(SymOp::Round, self);
}

PyObject* number_to_float(PyObject* self, PyObject*) {
  return is_sym_float(self) ? number_self(self) : sym_unary(SymOp::ToFloat, self);
}
PyObject* number_to_int(PyObject* self, PyObject*) {
  return is_sym_int(self) ? number_self(self) : sym_unary(SymOp::Trunc, self);
}
PyObject* number_is_integer(PyObject* self, PyObject*) {
  return is_sym_int(self) ? new_bool(true) : sym_unary(SymOp::IsInteger, self);
}
PyObject* number_conjugate(PyObject* self, PyObject*) { return number_self(self); }

PyObject* number_ite(PyObject* self, PyObject* args) {
  PyObject *a = nullptr, *b = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &a, &b)) return nullptr;
  return sym_where(self, a, b);
}

PyObject* number_math(PyObject* self, PyObject* name) {
  return guarded(
      [&]() -> PyObject* { return sym_function(std::string(utf8(name)).c_str(), self); });
}

PyObject* number_reduce(PyObject* self, PyObject*) {
  PyErr_Format(PyExc_TypeError, "cannot pickle '%s' object: it belongs to a shape environment",
               Py_TYPE(self)->tp_name);
  return nullptr;
}
// A copy in another environment has no meaning; the copy is the number.
PyObject* number_copy(PyObject* self, PyObject*) { return number_self(self); }

// A method of Python's own number: the value becomes a guard, since the answer has no symbols.
template <const char* name> PyObject* of_plain_number(PyObject* self, PyObject*) {
  PyRef plain(PyObject_TypeCheck(self, &SymFloatType) ? PyNumber_Float(self) : PyNumber_Long(self));
  return plain ? PyObject_CallMethod(plain.get(), name, nullptr) : nullptr;
}
constexpr char kRatio[] = "as_integer_ratio", kBitLength[] = "bit_length", kHex[] = "hex";
PyMethodDef int_method = {kBitLength, of_plain_number<kBitLength>, METH_NOARGS, nullptr};
PyMethodDef float_method = {kHex, of_plain_number<kHex>, METH_NOARGS, nullptr};

PyNumberMethods as_number;
PyMemberDef members[] = {
    {"node", T_OBJECT_EX, offsetof(PySymNumber, node), 0, "What carries the value."},
    {nullptr, 0, 0, 0, nullptr}};

PyMethodDef methods[] = {
    {"__sym_max__", binary_method<SymOp::Max>, METH_O, nullptr},
    {"__sym_min__", binary_method<SymOp::Min>, METH_O, nullptr},
    {"__sym_float__", number_to_float, METH_NOARGS, nullptr},
    {"__sym_int__", number_to_int, METH_NOARGS, nullptr},
    {"__trunc__", rounding<SymOp::Trunc>, METH_NOARGS, nullptr},
    {"__floor__", rounding<SymOp::Floor>, METH_NOARGS, nullptr},
    {"__ceil__", rounding<SymOp::Ceil>, METH_NOARGS, nullptr},
    {"__round__", number_round, METH_VARARGS, nullptr},
    {"is_integer", number_is_integer, METH_NOARGS, "Whether the value is a whole number."},
    {"conjugate", number_conjugate, METH_NOARGS, nullptr},
    {kRatio, of_plain_number<kRatio>, METH_NOARGS, nullptr},
    {"_sym_function", number_math, METH_O, "A function of Python's math module of this number."},
    {"__reduce_ex__", number_reduce, METH_O, nullptr},
    {"__copy__", number_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", number_copy, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef bool_methods[] = {{"__sym_not__", unary_method<SymOp::Not>, METH_NOARGS, nullptr},
                              {"__sym_ite__", number_ite, METH_VARARGS, nullptr},
                              {"__sym_float__", number_to_float, METH_NOARGS, nullptr},
                              {"__reduce_ex__", number_reduce, METH_O, nullptr},
                              {"__copy__", number_copy, METH_NOARGS, nullptr},
                              {"__deepcopy__", number_copy, METH_O, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

void fill_number_slots() {
  as_number.nb_add = binary<SymOp::Add>;
  as_number.nb_subtract = binary<SymOp::Sub>;
  as_number.nb_multiply = binary<SymOp::Mul>;
  as_number.nb_true_divide = binary<SymOp::TrueDiv>;
  as_number.nb_floor_divide = binary<SymOp::FloorDiv>;
  as_number.nb_remainder = binary<SymOp::Mod>;
  as_number.nb_divmod = number_divmod;
  as_number.nb_power = number_pow;
  as_number.nb_lshift = binary<SymOp::LeftShift>;
  as_number.nb_rshift = binary<SymOp::RightShift>;
  as_number.nb_and = binary<SymOp::BitAnd>;
  as_number.nb_or = binary<SymOp::BitOr>;
  as_number.nb_xor = binary<SymOp::BitXor>;
  as_number.nb_negative = unary<SymOp::Neg>;
  as_number.nb_positive = number_self;
  as_number.nb_absolute = unary<SymOp::Abs>;
  as_number.nb_bool = number_bool;
  as_number.nb_int = number_int;
  as_number.nb_float = number_float;
}

void fill_type(PyTypeObject& type, PyMethodDef* table, const char* doc) {
  type.tp_basicsize = sizeof(PySymNumber);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  type.tp_doc = doc;
  type.tp_new = number_new;
  type.tp_dealloc = number_dealloc;
  type.tp_traverse = number_traverse;
  type.tp_clear = number_clear;
  type.tp_weaklistoffset = offsetof(PySymNumber, weakrefs);
  type.tp_repr = number_repr;
  type.tp_str = number_repr;
  type.tp_hash = number_hash;
  type.tp_richcompare = number_compare;
  type.tp_as_number = &as_number;
  type.tp_methods = table;
  type.tp_members = members;
}

PyNumberMethods int_number, bool_number;

template <class Fill> PyObject* fill_tuple(PyObject* tuple, size_t n, Fill&& item) {
  if (!tuple) return nullptr;
  PyRef out(tuple);
  for (size_t i = 0; i < n; ++i) {
    PyObject* value = item(i);
    if (!value) return nullptr;
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), value);
  }
  return out.release();
}
PyObject* wrap_sym_int(c10::SymInt value) {
  return value.is_symbolic() ? wrap_handle(value.raw()) : PyLong_FromLongLong(value.raw());
}

} // namespace

PyObject* wrap_handle(int64_t raw) {
  const c10::SymSort sort = c10::symbolic_node(raw)->sort();
  PyRef node(wrap_node(raw));
  return node ? new_number(type_of_sort(sort), std::move(node)) : nullptr;
}

PyObject* make_sym_size(c10::SymIntArrayRef sizes) {
  return fill_tuple(SizeType.tp_alloc(&SizeType, static_cast<Py_ssize_t>(sizes.size())),
                    sizes.size(), [&](size_t i) { return wrap_sym_int(sizes[i]); });
}
PyObject* make_sym_tuple(c10::SymIntArrayRef values) {
  return fill_tuple(PyTuple_New(static_cast<Py_ssize_t>(values.size())), values.size(),
                    [&](size_t i) { return wrap_sym_int(values[i]); });
}

bool init_sym(PyObject* module) {
  fill_number_slots();
  fill_type(SymIntType, methods, "An integer that may be symbolic: torch.SymInt(node).");
  fill_type(SymFloatType, methods, "A float that may be symbolic: torch.SymFloat(node).");
  fill_type(SymBoolType, bool_methods,
            "A truth value that may be symbolic: torch.SymBool(node). bool() of it is a guard.");
  // Only integers stand for an index; truth values have no arithmetic of their own.
  int_number = as_number;
  int_number.nb_index = number_int;
  SymIntType.tp_as_number = &int_number;
  bool_number.nb_and = as_number.nb_and;
  bool_number.nb_or = as_number.nb_or;
  bool_number.nb_xor = as_number.nb_xor;
  bool_number.nb_bool = as_number.nb_bool;
  bool_number.nb_int = as_number.nb_int;
  bool_number.nb_add = as_number.nb_add;
  bool_number.nb_subtract = as_number.nb_subtract;
  bool_number.nb_multiply = as_number.nb_multiply;
  SymBoolType.tp_as_number = &bool_number;
  const auto add_method = [](PyTypeObject* type, PyMethodDef* def) {
    PyRef made(new_method(type, def));
    return made && PyDict_SetItemString(type->tp_dict, def->ml_name, made.get()) == 0;
  };
  return add_type(module, &SymIntType) && add_type(module, &SymFloatType) &&
         add_type(module, &SymBoolType) && add_method(&SymIntType, &int_method) &&
         add_method(&SymFloatType, &float_method);
}

} // namespace torch::python
