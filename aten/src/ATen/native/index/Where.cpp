// where: a choice between two operands, by element size after promotion. Numbers are converted
// once, so that where(mask, x, 0.0) runs without casts.
#include <ATen/core/EmptyTensor.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/core/WarnOnce.h>
#include <ATen/iter/SymbolicShapes.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/index/Native.h>
#include <ATen/native/index/WhereLoop.h>
#include <ATen/ops/nonzero_numpy.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

namespace at {
namespace native {
namespace {

// The dense loops exist for each operand running along or standing still; the vectoriser takes
// them.
template <class U, bool kMoveA, bool kMoveB> __attribute__((optimize("O3"))) void
choose_dense(U* to, const uint8_t* condition, const U* a, const U* b, int64_t n) {
  const U a0 = *a, b0 = *b;
  for (int64_t i = 0; i < n; ++i) {
    const U x = kMoveA ? a[i] : a0;
    const U y = kMoveB ? b[i] : b0;
    to[i] = condition[i] ? x : y;
  }
}

template <class U>
void choose_row(char* const* data, const int64_t* strides, int64_t n, const void*) {
  constexpr int64_t size = sizeof(U);
  const uint8_t* condition = reinterpret_cast<const uint8_t*>(data[1]);
  const bool dense = strides[0] == size && strides[1] == 1 && n > 0 &&
                     (strides[2] == size || strides[2] == 0) &&
                     (strides[3] == size || strides[3] == 0);
  if (dense) {
    U* to = reinterpret_cast<U*>(data[0]);
    const U* a = reinterpret_cast<const U*>(data[2]);
    const U* b = reinterpret_cast<const U*>(data[3]);
    if (strides[2] != 0 && strides[3] != 0)
      choose_dense<U, true, true>(to, condition, a, b, n);
    else if (strides[2] != 0)
      choose_dense<U, true, false>(to, condition, a, b, n);
    else if (strides[3] != 0)
      choose_dense<U, false, true>(to, condition, a, b, n);
    else
      choose_dense<U, false, false>(to, condition, a, b, n);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const char* from =
        condition[i * strides[1]] ? data[2] + i * strides[2] : data[3] + i * strides[3];
    *reinterpret_cast<U*>(data[0] + i * strides[0]) = *reinterpret_cast<const U*>(from);
  }
}

const Device where_device(const Tensor& condition, const Tensor& self, const Tensor& other) {
  for (const Tensor* t : {&condition, &self, &other})
    if (t->dim() > 0 || !t->is_cpu()) return t->device();
  return condition.device();
}

Tensor converted_number(const Tensor& t, ScalarType dtype) {
  return t.dim() == 0 && t.scalar_type() != dtype ? t.to(dtype) : t;
}

} // namespace
} // namespace native

namespace meta {

void meta_where(OutputBuilder& out, const Tensor& condition, const Tensor& self,
                const Tensor& other) {
  const ScalarType kind = condition.scalar_type();
  TORCH_CHECK(kind == kBool || kind == kByte,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ",
              kind);
  if (kind == kByte)
    AT_WARN_ONCE("where received a uint8 condition tensor. This behavior is deprecated and will "
                 "be removed in a future version of PyTorch. Use a boolean condition instead.");
  const Device device = native::where_device(condition, self, other);
  for (const Tensor* t : {&condition, &self, &other})
    TORCH_CHECK(t->device() == device || (t->dim() == 0 && t->is_cpu()),
                "Expected condition, x and y to be on the same device, but condition is on ",
                condition.device(), " and x and y are on ", self.device(), " and ", other.device(),
                " respectively");
  const ScalarType dtype = result_type_of(self, other);
  const Tensor* operands[] = {&condition, &self, &other};
  const ArrayRef<const Tensor*> all(operands, 3);
  if (native::any_symbolic(condition, self, other) && device.is_meta()) {
    const std::vector<SymInt> sizes = symbolic_broadcast(all);
    out.set_symint(0, sizes, dtype, SymIntArrayRef(symbolic_output_strides(sizes, all)));
    return;
  }
  const DimVector shape =
      broadcast_shapes(broadcast_shapes(condition.sizes(), self.sizes()), other.sizes());
  const Tensor& target = out.given(0);
  if (target.defined()) {
    TORCH_CHECK(target.scalar_type() == dtype, "Expected out type to be ", dtype, " but got ",
                target.scalar_type());
    for (const Tensor* t : {&condition, &self, &other}) assert_no_partial_overlap(target, *t);
  }
  out.set_on(0, shape, dtype, device, IntArrayRef(pointwise_output_strides(shape, all)));
}

} // namespace meta

namespace native {

Loop1d where_loop(int64_t itemsize) {
  Loop1d found = nullptr;
  itemsize_switch(itemsize, [&](auto tag) { found = &choose_row<typename decltype(tag)::type>; });
  return found;
}

void where_cpu(const Tensor& condition, const Tensor& self, const Tensor& other,
               const Tensor& out) {
  const ScalarType dtype = out.scalar_type();
  const Tensor mask = condition.scalar_type() == kBool ? condition : condition.to(kBool);
  const Tensor a = converted_number(self, dtype), b = converted_number(other, dtype);
  TensorIterator iter(out.sizes());
  iter.add_output(out);
  iter.add_input(mask);
  iter.add_input(a, dtype);
  iter.add_input(b, dtype);
  iter.build();
  iter.run(where_loop(out.itemsize()), nullptr);
}

namespace {
// A number beside a tensor, as a tensor. Handlers see it made, in the dtype the two promote to.
Tensor operand(const Scalar& number, const Tensor& beside) {
  if (C10_LIKELY(!handlers_active())) return detail::wrapped_number(number);
  const ScalarType dtype = at::_ops::result_type_Scalar::call(beside, number);
  return at::scalar_tensor(number, beside.options().dtype(dtype));
}
} // namespace

Tensor where_scalar_self(const Tensor& condition, const Scalar& self, const Tensor& other) {
  return at::where(condition, operand(self, other), other);
}

Tensor where_scalar_other(const Tensor& condition, const Tensor& self, const Scalar& other) {
  return at::where(condition, self, operand(other, self));
}

Tensor where_scalars(const Tensor& condition, const Scalar& self, const Scalar& other) {
  return at::where(condition, detail::wrapped_number(self), detail::wrapped_number(other));
}

std::vector<Tensor> where_positions(const Tensor& condition) {
  return at::nonzero_numpy(condition);
}

} // namespace native
} // namespace at
