// What pointwise operators check beyond shapes and dtypes of the loop tables: the `check:`
// functions of native_functions.yaml. Each runs before the iterator and raises PyTorch's text; the
// common call leaves after one test.
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/pointwise/Native.h>

namespace at::native {
namespace {

void check_alpha_kind(ScalarType result, const Scalar& alpha) {
  TORCH_CHECK(!alpha.isBoolean() || result == kBool,
              "Boolean alpha only supported for Boolean results.");
  TORCH_CHECK(!alpha.isFloatingPoint() || c10::isFloatingType(result) || c10::isComplexType(result),
              "For integral input tensors, argument alpha must not be a floating point number.");
  TORCH_CHECK(!alpha.isComplex() || c10::isComplexType(result),
              "For non-complex input tensors, argument alpha must not be a complex number.");
}

// The factor is an element of the narrow types, unlike a number that is added itself.
void check_alpha_range(ScalarType result, const Scalar& alpha) {
  if (result == kHalf) (void)alpha.to<c10::Half>();
  if (result == kBFloat16) (void)alpha.to<c10::BFloat16>();
  if (result == kComplexHalf) (void)alpha.to<c10::complex<c10::Half>>();
}

template <class Other>
void check_alpha(const Tensor& self, const Other& other, const Scalar& alpha) {
  if (C10_LIKELY(alpha.isIntegral(/*include_bool=*/false) && alpha.equal(1.0))) return;
  const ScalarType result = result_type_of(self, other);
  check_alpha_kind(result, alpha);
  if (!self.is_meta()) check_alpha_range(result, alpha);
}

bool is_bool(const Tensor& t) { return t.scalar_type() == kBool; }
bool is_bool(const Scalar& s) { return s.isBoolean(); }

template <class Other> void check_subtraction(const Tensor& self, const Other& other) {
  TORCH_CHECK(
      !is_bool(self) || !is_bool(other),
      "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
      "`logical_xor()` operator instead.");
  TORCH_CHECK(
      !is_bool(self) && !is_bool(other),
      "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
      "invert a mask, use the `~` or `logical_not()` operator instead.");
}

void check_not_complex(const char* name, const Tensor& a, const Tensor& b) {
  TORCH_CHECK(!a.is_complex() && !b.is_complex(), name, " not implemented for complex tensors.");
}

void check_rounding(const char* name, const Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), name, " is not supported for complex inputs");
}

} // namespace

void add_check(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_alpha(self, other, alpha);
}
void add_check(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  check_alpha(self, other, alpha);
}
void sub_check(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_subtraction(self, other);
  check_alpha(self, other, alpha);
}
void sub_check(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  check_subtraction(self, other);
  check_alpha(self, other, alpha);
}
void rsub_check(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  sub_check(self, other, alpha);
}
void rsub_check(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  sub_check(self, other, alpha);
}

void neg_check(const Tensor& self) {
  TORCH_CHECK(
      !is_bool(self),
      "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert "
      "a mask, use the `~` or `logical_not()` operator instead.");
}
void sign_check(const Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !self.is_complex(), "Unlike NumPy, torch.sign is not intended to support complex numbers. "
                          "Please use torch.sgn instead.");
}
void isposinf_check(const Tensor& self) {
  TORCH_CHECK(!self.is_complex(), "isposinf does not support complex inputs.");
}
void isneginf_check(const Tensor& self) {
  TORCH_CHECK(!self.is_complex(), "isneginf does not support complex inputs.");
}
void signbit_check(const Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(),
                              "signbit is not implemented for complex tensors.");
}
void floor_check(const Tensor& self) { check_rounding("floor", self); }
void ceil_check(const Tensor& self) { check_rounding("ceil", self); }
void trunc_check(const Tensor& self) { check_rounding("trunc", self); }
void deg2rad_check(const Tensor& self) {
  TORCH_CHECK(!self.is_complex(), "deg2rad is not supported for complex tensors.");
}
void rad2deg_check(const Tensor& self) {
  TORCH_CHECK(!self.is_complex(), "rad2deg is not supported for complex tensors.");
}

void maximum_check(const Tensor& self, const Tensor& other) {
  check_not_complex("maximum", self, other);
}
void minimum_check(const Tensor& self, const Tensor& other) {
  check_not_complex("minimum", self, other);
}
void fmax_check(const Tensor& self, const Tensor& other) { check_not_complex("fmax", self, other); }
void fmin_check(const Tensor& self, const Tensor& other) { check_not_complex("fmin", self, other); }
void heaviside_check(const Tensor& self, const Tensor& values) {
  TORCH_CHECK(!self.is_complex() && !values.is_complex(),
              "heaviside is not yet implemented for complex tensors.");
  TORCH_CHECK(self.scalar_type() == values.scalar_type(),
              "heaviside is not yet implemented for tensors with different dtypes.");
}
void clamp_bound_check(const Tensor& self, const Scalar& bound) {
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex() && !bound.isComplex(),
                              "clamp is not supported for complex types");
}
void clamp_bound_check(const Tensor& self, const Tensor& bound) {
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex() && !bound.is_complex(),
                              "clamp is not supported for complex types");
}

void addcdiv_check(const Tensor&, const Tensor& tensor1, const Tensor& tensor2, const Scalar&) {
  auto integral = [](const Tensor& t) { return !t.is_floating_point() && !t.is_complex(); };
  TORCH_CHECK(
      !integral(tensor1) || !integral(tensor2),
      "Integer division with addcdiv is no longer supported: give tensor1 or tensor2 a floating "
      "dtype for input + value * tensor1 / tensor2, or use input + value * "
      "torch.trunc(tensor1 / tensor2) for a truncated quotient.");
}

} // namespace at::native
