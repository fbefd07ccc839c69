// Arithmetic and comparison operators of Python on tensors. Each slot is a name in the table of
// generated methods: the call goes through the same parser as the method, which is fast and already
// knows overrides, numbers and error messages. What an operand must be for Python to try the other
// side is decided here.
#include <torch/csrc/python/tensor/tensor.h>

#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/tensor/scalar_access.h>

namespace torch::python {
namespace {

// A generated function, looked up when first used.
struct Target {
  const char* module;
  const char* name;
  const Function* function = nullptr;

  const Function& get() {
    if (C10_UNLIKELY(!function)) {
      function = find_function(module, name);
      TORCH_CHECK_NOT_IMPLEMENTED(function != nullptr, "the operator ", module, ".", name,
                                  " is not implemented");
    }
    return *function;
  }
};

constexpr const char* kMethod = "torch.Tensor";
constexpr const char* kTorch = "torch";

bool is_operand(PyObject* o) {
  return is_tensor(o) || is_number_like(o) || (type_traits(Py_TYPE(o)) & kOverrides);
}
bool is_tensor_operand(PyObject* o) {
  return is_tensor(o) || (type_traits(Py_TYPE(o)) & kOverrides);
}

PyObject* not_implemented() {
  Py_INCREF(Py_NotImplemented);
  return Py_NotImplemented;
}

// When handlers of other classes are involved a TypeError means that none of them knows the
// operation: Python then tries the other operand.
PyObject* or_not_implemented(PyObject* result, PyObject* a, PyObject* b) {
  if (C10_LIKELY(result != nullptr) || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
  if (is_plain_tensor(a) && (is_plain_tensor(b) || PyNumber_Check(b))) return result;
  PyErr_Clear();
  return not_implemented();
}

PyObject* run_method(Target& target, PyObject* self, PyObject* other) {
  PyObject* result = guarded([&] { return call(target.get(), self, &other, 1, nullptr); });
  return or_not_implemented(result, self, other);
}
PyObject* run_function(Target& target, PyObject* a, PyObject* b) {
  PyObject* args[] = {a, b};
  PyObject* result = guarded([&] { return call(target.get(), nullptr, args, 2, nullptr); });
  return or_not_implemented(result, b, a);
}

// ---- binary operators ---------------------------------------------------------------------------
// Left operand a tensor: the method. Otherwise the right one is, and the reflected form decides.
enum class Reflect { Commutes, Function, Reverse };

struct Binary {
  Target method;
  Reflect reflect;
  Target reflected; // Function: f(tensor, other); Reverse: f(other, tensor)
};

Binary binary_add = {{kMethod, "add"}, Reflect::Commutes, {}};
Binary binary_sub = {{kMethod, "sub"}, Reflect::Function, {kTorch, "rsub"}};
Binary binary_mul = {{kMethod, "mul"}, Reflect::Commutes, {}};
Binary binary_mod = {{kMethod, "remainder"}, Reflect::Reverse, {kTorch, "remainder"}};
Binary binary_floordiv = {{kMethod, "floor_divide"}, Reflect::Reverse, {kTorch, "floor_divide"}};
Binary binary_lshift = {
    {kMethod, "bitwise_left_shift"}, Reflect::Reverse, {kTorch, "bitwise_left_shift"}};
Binary binary_rshift = {
    {kMethod, "bitwise_right_shift"}, Reflect::Reverse, {kTorch, "bitwise_right_shift"}};
Binary binary_and = {{kMethod, "bitwise_and"}, Reflect::Commutes, {}};
Binary binary_or = {{kMethod, "bitwise_or"}, Reflect::Commutes, {}};
Binary binary_xor = {{kMethod, "bitwise_xor"}, Reflect::Commutes, {}};
Binary binary_pow = {{kMethod, "pow"}, Reflect::Reverse, {kTorch, "pow"}};
Target div_method = {kMethod, "div"};
Target reciprocal_method = {kMethod, "reciprocal"};
Target matmul_method = {kMethod, "matmul"};
Target matmul_function = {kTorch, "matmul"};

template <Binary& kOp> PyObject* binary(PyObject* a, PyObject* b) {
  if (C10_LIKELY(is_tensor(a))) {
    return C10_LIKELY(is_operand(b)) ? run_method(kOp.method, a, b) : not_implemented();
  }
  if (!is_operand(a)) return not_implemented();
  switch (kOp.reflect) {
  case Reflect::Commutes:
    return run_method(kOp.method, b, a);
  case Reflect::Function:
    return run_function(kOp.reflected, b, a);
  case Reflect::Reverse:
    return run_function(kOp.reflected, a, b);
  }
  return not_implemented();
}

PyObject* divide(PyObject* a, PyObject* b) {
  if (is_tensor(a)) return is_operand(b) ? run_method(div_method, a, b) : not_implemented();
  if (!is_operand(a)) return not_implemented();
  // number / tensor: PyTorch multiplies by the reciprocal, which rounds twice; so do we.
  PyRef inverse(guarded([&] { return call(reciprocal_method.get(), b, nullptr, 0, nullptr); }));
  return inverse ? run_method(binary_mul.method, inverse.get(), a) : nullptr;
}

PyObject* matmul(PyObject* a, PyObject* b) {
  if (!is_tensor_operand(a) || !is_tensor_operand(b)) return not_implemented();
  return is_tensor(a) ? run_method(matmul_method, a, b) : run_function(matmul_function, a, b);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) return not_implemented();
  return binary<binary_pow>(a, b);
}

// ---- in-place operators -------------------------------------------------------------------------
Target inplace_add = {kMethod, "add_"};
Target inplace_sub = {kMethod, "sub_"};
Target inplace_mul = {kMethod, "mul_"};
Target inplace_div = {kMethod, "div_"};
Target inplace_mod = {kMethod, "remainder_"};
Target inplace_floordiv = {kMethod, "floor_divide_"};
Target inplace_lshift = {kMethod, "bitwise_left_shift_"};
Target inplace_rshift = {kMethod, "bitwise_right_shift_"};
Target inplace_and = {kMethod, "bitwise_and_"};
Target inplace_or = {kMethod, "bitwise_or_"};
Target inplace_xor = {kMethod, "bitwise_xor_"};
Target inplace_pow = {kMethod, "pow_"};

template <Target& kTarget> PyObject* inplace(PyObject* self, PyObject* other) {
  return is_operand(other) ? run_method(kTarget, self, other) : not_implemented();
}
PyObject* power_inplace(PyObject* self, PyObject* other, PyObject* modulus) {
  if (modulus != Py_None) return not_implemented();
  return inplace<inplace_pow>(self, other);
}

// ---- unary operators ----------------------------------------------------------------------------
Target unary_neg = {kMethod, "neg"};
Target unary_abs = {kMethod, "abs"};
Target unary_not = {kMethod, "bitwise_not"};

template <Target& kTarget> PyObject* unary(PyObject* self) {
  return guarded([&] { return call(kTarget.get(), self, nullptr, 0, nullptr); });
}

PyObject* invert(PyObject* self) {
  return guarded([&] {
    const at::Tensor& tensor = tensor_of(self);
    if (!c10::isIntegralType(tensor.scalar_type(), true) && !has_override(self)) {
      raise_type_error(
          "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    }
    return call(unary_not.get(), self, nullptr, 0, nullptr);
  });
}

// +x is x itself as a new view-less handle in PyTorch: the operator `positive` returns its
// argument.
PyObject* positive(PyObject* self) {
  PyObject* result = nullptr;
  if (!is_plain_tensor(self) || function_mode_active()) {
    if (slot_override("__pos__", &self, 1, &result)) return result;
  }
  return guarded([&] {
    TORCH_CHECK(tensor_of(self).scalar_type() != c10::kBool,
                "The `+` operator, on a bool tensor is not supported.");
    Py_INCREF(self);
    return self;
  });
}

// ---- conversion to Python numbers ---------------------------------------------------------------
template <class F> PyObject* convert(const char* name, PyObject* self, F&& f) {
  PyObject* result = nullptr;
  if (C10_UNLIKELY(!is_plain_tensor(self) || function_mode_active())) {
    if (slot_override(name, &self, 1, &result)) return result;
  }
  return guarded([&] { return f(tensor_of(self)); });
}

int tensor_bool(PyObject* self) {
  if (C10_UNLIKELY(!is_plain_tensor(self) || function_mode_active())) {
    PyObject* result = nullptr;
    if (slot_override("__bool__", &self, 1, &result)) {
      const int truth = result ? PyObject_IsTrue(result) : -1;
      Py_XDECREF(result);
      return truth;
    }
  }
  return guarded([&]() -> int { return truth_of(tensor_of(self)); });
}

c10::Scalar one_element(const at::Tensor& tensor) {
  if (tensor.numel() != 1) {
    raise(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
  }
  return item_of(tensor);
}

PyObject* tensor_int(PyObject* self) {
  return convert("__int__", self, [](const at::Tensor& tensor) {
    const c10::Scalar value = one_element(tensor);
    // Large and non-finite floats follow Python: exact, or OverflowError and ValueError.
    return value.isFloatingPoint() ? PyLong_FromDouble(value.toDouble())
           : value.isComplex()     ? PyLong_FromLongLong(value.toLong())
           : value.isBoolean()     ? PyLong_FromLong(value.toBool())
                                   : wrap(value);
  });
}
PyObject* tensor_float(PyObject* self) {
  return convert("__float__", self, [](const at::Tensor& tensor) {
    return PyFloat_FromDouble(one_element(tensor).toDouble());
  });
}
PyObject* tensor_index(PyObject* self) {
  return convert("__index__", self, [](const at::Tensor& tensor) {
    if (tensor.numel() != 1 || !c10::isIntegralType(tensor.scalar_type(), true)) {
      raise_type_error("only integer tensors of a single element can be converted to an index");
    }
    const c10::Scalar value = item_of(tensor);
    return value.isBoolean() ? PyLong_FromLong(value.toBool()) : wrap(value);
  });
}

// ---- comparison ---------------------------------------------------------------------------------
Target compare_targets[] = {{kMethod, "lt"}, {kMethod, "le"}, {kMethod, "eq"},
                            {kMethod, "ne"}, {kMethod, "gt"}, {kMethod, "ge"}};
static_assert(Py_LT == 0 && Py_LE == 1 && Py_EQ == 2 && Py_NE == 3 && Py_GT == 4 && Py_GE == 5);

} // namespace

PyObject* tensor_richcompare(PyObject* self, PyObject* other, int op) {
  return is_operand(other) ? run_method(compare_targets[op], self, other) : not_implemented();
}

void fill_number_slots(PyNumberMethods* slots) {
  slots->nb_add = binary<binary_add>;
  slots->nb_subtract = binary<binary_sub>;
  slots->nb_multiply = binary<binary_mul>;
  slots->nb_remainder = binary<binary_mod>;
  slots->nb_floor_divide = binary<binary_floordiv>;
  slots->nb_true_divide = divide;
  slots->nb_matrix_multiply = matmul;
  slots->nb_power = power;
  slots->nb_lshift = binary<binary_lshift>;
  slots->nb_rshift = binary<binary_rshift>;
  slots->nb_and = binary<binary_and>;
  slots->nb_or = binary<binary_or>;
  slots->nb_xor = binary<binary_xor>;
  slots->nb_inplace_add = inplace<inplace_add>;
  slots->nb_inplace_subtract = inplace<inplace_sub>;
  slots->nb_inplace_multiply = inplace<inplace_mul>;
  slots->nb_inplace_remainder = inplace<inplace_mod>;
  slots->nb_inplace_floor_divide = inplace<inplace_floordiv>;
  slots->nb_inplace_true_divide = inplace<inplace_div>;
  slots->nb_inplace_power = power_inplace;
  slots->nb_inplace_lshift = inplace<inplace_lshift>;
  slots->nb_inplace_rshift = inplace<inplace_rshift>;
  slots->nb_inplace_and = inplace<inplace_and>;
  slots->nb_inplace_or = inplace<inplace_or>;
  slots->nb_inplace_xor = inplace<inplace_xor>;
  slots->nb_negative = unary<unary_neg>;
  slots->nb_absolute = unary<unary_abs>;
  slots->nb_invert = invert;
  slots->nb_positive = positive;
  slots->nb_bool = tensor_bool;
  slots->nb_int = tensor_int;
  slots->nb_float = tensor_float;
  slots->nb_index = tensor_index;
}

} // namespace torch::python
