// Tensors over Gloo's memory, and the operators that combine them.
#include <torch/csrc/distributed/gloo/Reduction.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/bitwise_xor.h>
#include <ATen/ops/div.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>

namespace c10d::engine::gloo_backend {

namespace {

at::Tensor over(void* memory, int64_t count, at::ScalarType dtype) {
  const auto bytes = static_cast<size_t>(count) * c10::elementSize(dtype);
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      bytes, c10::DataPtr(memory, at::Device(at::kCPU)), nullptr, false);
  return at::detail::checked_tensor(storage, dtype, {count}, {1}, 0);
}

void combine(ReduceOp::Kind kind, at::Tensor& c, const at::Tensor& a, const at::Tensor& b) {
  switch (kind) {
  case ReduceOp::Sum:
  case ReduceOp::Avg:
  case ReduceOp::PremulSum:
    at::add_out(c, a, b);
    return;
  case ReduceOp::Product:
    at::mul_out(c, a, b);
    return;
  case ReduceOp::Min:
    at::minimum_out(c, a, b);
    return;
  case ReduceOp::Max:
    at::maximum_out(c, a, b);
    return;
  case ReduceOp::Band:
    at::bitwise_and_out(c, a, b);
    return;
  case ReduceOp::Bor:
    at::bitwise_or_out(c, a, b);
    return;
  case ReduceOp::Bxor:
    at::bitwise_xor_out(c, a, b);
    return;
  }
}

} // namespace

ReduceFunction reduce_function(ReduceOp::Kind kind, at::ScalarType dtype) {
  const bool bitwise = kind == ReduceOp::Band || kind == ReduceOp::Bor || kind == ReduceOp::Bxor;
  TORCH_CHECK(!bitwise || c10::isIntegralType(dtype, /*includeBool=*/true), "Cannot use ReduceOp.",
              name_of(kind), " with non-integral dtype ", dtype);
  const bool ordered = kind == ReduceOp::Min || kind == ReduceOp::Max;
  TORCH_CHECK(!ordered || !c10::isComplexType(dtype), "Cannot use ReduceOp.", name_of(kind),
              " with complex dtype ", dtype);
  return [kind, dtype](void* c, const void* a, const void* b, size_t n) {
    const auto count = static_cast<int64_t>(n);
    at::Tensor out = over(c, count, dtype);
    const at::Tensor left = c == a ? out : over(const_cast<void*>(a), count, dtype);
    combine(kind, out, left, over(const_cast<void*>(b), count, dtype));
  };
}

void scale_before(const ReduceOp& op, const at::Tensor& tensor) {
  if (op.kind != ReduceOp::PremulSum || !op.factor.defined()) return;
  at::Tensor out = tensor;
  at::mul_out(out, tensor, op.factor);
}

void scale_after(const ReduceOp& op, const at::Tensor& tensor, int size) {
  if (op.kind != ReduceOp::Avg) return;
  at::Tensor out = tensor;
  if (c10::isIntegralType(tensor.scalar_type(), true)) {
    at::div_out(out, tensor, at::detail::wrapped_number(size), "trunc");
  } else {
    at::div_out(out, tensor, at::detail::wrapped_number(size));
  }
}

} // namespace c10d::engine::gloo_backend
