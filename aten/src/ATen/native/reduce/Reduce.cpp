// CPU kernels of the plain reductions: each picks the reduction of the table and says what happens
// to its value.
#include <ATen/native/PrivateCopy.h>
#include <ATen/native/reduce/Native.h>
#include <ATen/native/reduce/ReduceDims.h>

#include <cmath>

#include <ATen/core/EmptyTensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/add.h>
#include <ATen/ops/all.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/any.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/real.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>

namespace at::native {
namespace {

using namespace reduce;

const ReduceKernel* kernel_for(ReduceOp op, ScalarType dtype, const char* name) {
  const ReduceKernel* kernel = find_kernel(op, dtype);
  TORCH_CHECK_NOT_IMPLEMENTED(kernel, "\"", name, "\" not implemented for '", dtype, "'");
  return kernel;
}

// Whether the accumulator of `input` already gives what converting every element to `result` first
// would: integers wrap the same way at any time, and Half and BFloat16 accumulate in float.
bool accumulates_as(ScalarType input, ScalarType result) {
  if (input == result) return true;
  if (c10::isIntegralType(input, true)) return c10::isIntegralType(result, false);
  return (c10::isReducedFloatingType(input) && result == kFloat) ||
         (input == kComplexHalf && result == kComplexFloat);
}

Tensor accumulable(const Tensor& self, ScalarType result) {
  return accumulates_as(self.scalar_type(), result) ? self : self.to(result);
}

void run_sum_like(ReduceOp op, const Tensor& self, DimMask mask, const Tensor& out,
                  const char* name) {
  if (C10_LIKELY(accumulates_as(self.scalar_type(), out.scalar_type()))) {
    run_reduce({kernel_for(op, self.scalar_type(), name)}, self, mask, out);
  } else {
    const Tensor input = self.to(out.scalar_type());
    run_reduce({kernel_for(op, input.scalar_type(), name)}, input, mask, out);
  }
}

void run_mean(const Tensor& self, DimMask mask, const Tensor& out) {
  const Tensor input = accumulable(self, out.scalar_type());
  ReduceCall call{kernel_for(ReduceOp::Sum, input.scalar_type(), "mean_cpu")};
  call.post = Post::Mean;
  run_reduce(call, input, mask, out);
}

// Position of the extreme element; the value too when `values` is defined.
void run_arg(ReduceOp op, const Tensor& self, std::optional<int64_t> dim, const Tensor& values,
             const Tensor& indices, const char* name) {
  const ReduceKernel* kernel = kernel_for(op, self.scalar_type(), name);
  const Tensor outs[2] = {values, indices};
  // Bools are compared as bytes.
  const Tensor in = self.scalar_type() == kBool ? private_copy(self) : self;
  if (dim)
    run_reduce({kernel}, in, dim_mask(*dim, in.dim()), outs);
  else
    run_reduce({kernel}, in.contiguous(), all_dims(in.dim()), outs);
}

// ---- norms
ReduceCall norm_call(double p, ScalarType input) {
  const ReduceOp op = p == 0          ? ReduceOp::CountNonzero
                      : p == 1        ? ReduceOp::AbsSum
                      : p == 2        ? ReduceOp::SquareSum
                      : std::isinf(p) ? (p > 0 ? ReduceOp::AbsMax : ReduceOp::AbsMin)
                                      : ReduceOp::AbsPowSum;
  ReduceCall call{kernel_for(op, input, "norm_cpu"), p};
  if (op == ReduceOp::SquareSum) call.post = Post::Sqrt;
  if (op == ReduceOp::AbsPowSum) call.post = Post::Root;
  return call;
}

// ---- variance
void run_var(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
             bool root, const Tensor& var, const Tensor& mean) {
  ReduceCall call{kernel_for(ReduceOp::Var, self.scalar_type(), "std_cpu")};
  call.param = correction ? correction->toDouble() : 1.0;
  if (root) call.post = Post::Sqrt;
  const int64_t each = var.numel() == 0 ? 0 : self.numel() / var.numel();
  if (var.numel() > 0 && call.param >= static_cast<double>(each)) {
    TORCH_WARN(root ? "std" : "var", mean.defined() ? "_mean" : "",
               "(): degrees of freedom is <= 0. Correction should be strictly less than the "
               "reduction factor (input numel divided by output numel).");
  }
  const Tensor outs[2] = {var, mean};
  run_reduce(call, self, dims_mask(dim, self.dim()), outs);
}

} // namespace

// ---- sums
void sum_cpu(const Tensor& self, std::optional<ScalarType>, const Tensor& out) {
  run_sum_like(ReduceOp::Sum, self, all_dims(self.dim()), out, "sum_cpu");
}
void sum_dim_cpu(const Tensor& self, OptionalIntArrayRef dim, bool, std::optional<ScalarType>,
                 const Tensor& out) {
  run_sum_like(ReduceOp::Sum, self, dims_mask(dim, self.dim()), out, "sum_cpu");
}
void nansum_cpu(const Tensor& self, OptionalIntArrayRef dim, bool, std::optional<ScalarType>,
                const Tensor& out) {
  const DimMask mask = dims_mask(dim, self.dim());
  if (!self.is_floating_point()) {
    run_sum_like(ReduceOp::Sum, self, mask, out, "nansum_cpu");
    return;
  }
  // NaN is dropped before a conversion could turn it into some integer.
  const bool direct = c10::isFloatingType(out.scalar_type());
  const Tensor input = direct ? accumulable(self, out.scalar_type()) : self;
  run_reduce({kernel_for(ReduceOp::NanSum, input.scalar_type(), "nansum_cpu")}, input, mask, out);
}
void mean_cpu(const Tensor& self, std::optional<ScalarType>, const Tensor& out) {
  run_mean(self, all_dims(self.dim()), out);
}
void mean_dim_cpu(const Tensor& self, OptionalIntArrayRef dim, bool, std::optional<ScalarType>,
                  const Tensor& out) {
  run_mean(self, dims_mask(dim, self.dim()), out);
}
void prod_cpu(const Tensor& self, std::optional<ScalarType>, const Tensor& out) {
  run_sum_like(ReduceOp::Prod, self, all_dims(self.dim()), out, "prod_cpu");
}
void prod_dim_cpu(const Tensor& self, int64_t dim, bool, std::optional<ScalarType>,
                  const Tensor& out) {
  run_sum_like(ReduceOp::Prod, self, dim_mask(dim, self.dim()), out, "prod_cpu");
}
void trace_cpu(const Tensor& self, const Tensor& out) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.scalar_type() != kBool, "\"trace\" not implemented for 'Bool'");
  const int64_t n = std::min(self.sizes()[0], self.sizes()[1]);
  const Tensor diagonal =
      detail::view_of(self, {n}, {self.strides()[0] + self.strides()[1]}, self.storage_offset());
  run_sum_like(ReduceOp::Sum, diagonal, 1, out, "trace");
}

// ---- extremes
void amax_cpu(const Tensor& self, IntArrayRef dim, bool, const Tensor& out) {
  run_reduce({kernel_for(ReduceOp::Max, self.scalar_type(), "max_values_cpu")}, self,
             dims_mask(dim, self.dim()), out);
}
void amin_cpu(const Tensor& self, IntArrayRef dim, bool, const Tensor& out) {
  run_reduce({kernel_for(ReduceOp::Min, self.scalar_type(), "min_values_cpu")}, self,
             dims_mask(dim, self.dim()), out);
}
void max_cpu(const Tensor& self, const Tensor& out) {
  run_reduce({kernel_for(ReduceOp::Max, self.scalar_type(), "max_all")}, self, all_dims(self.dim()),
             out);
}
void min_cpu(const Tensor& self, const Tensor& out) {
  run_reduce({kernel_for(ReduceOp::Min, self.scalar_type(), "min_all")}, self, all_dims(self.dim()),
             out);
}
void aminmax_cpu(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& min,
                 const Tensor& max) {
  const Tensor outs[2] = {min, max};
  run_reduce({kernel_for(ReduceOp::MinMax, self.scalar_type(), "aminmax_cpu")}, self,
             dim_mask(dim, self.dim()), outs);
}
std::tuple<Tensor, Tensor> _aminmax(const Tensor& self) { return at::aminmax(self); }
std::tuple<Tensor, Tensor> _aminmax(const Tensor& self, int64_t dim, bool keepdim) {
  return at::aminmax(self, dim, keepdim);
}
void max_dim_cpu(const Tensor& self, int64_t dim, bool, const Tensor& values,
                 const Tensor& indices) {
  run_arg(ReduceOp::ArgMax, self, dim, values, indices, "max_cpu");
}
void min_dim_cpu(const Tensor& self, int64_t dim, bool, const Tensor& values,
                 const Tensor& indices) {
  run_arg(ReduceOp::ArgMin, self, dim, values, indices, "min_cpu");
}
void argmax_cpu(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& out) {
  run_arg(ReduceOp::ArgMax, self, dim, Tensor(), out, "argmax_cpu");
}
void argmin_cpu(const Tensor& self, std::optional<int64_t> dim, bool, const Tensor& out) {
  run_arg(ReduceOp::ArgMin, self, dim, Tensor(), out, "argmin_cpu");
}

// ---- truth
void all_cpu(const Tensor& self, const Tensor& out) {
  run_reduce({kernel_for(ReduceOp::All, self.scalar_type(), "and_kernel")}, self,
             all_dims(self.dim()), out);
}
void all_dim_cpu(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  run_reduce({kernel_for(ReduceOp::All, self.scalar_type(), "and_kernel")}, self,
             dim_mask(dim, self.dim()), out);
}
void all_dims_cpu(const Tensor& self, OptionalIntArrayRef dim, bool, const Tensor& out) {
  run_reduce({kernel_for(ReduceOp::All, self.scalar_type(), "and_kernel")}, self,
             dims_mask(dim, self.dim(), false), out);
}
void any_cpu(const Tensor& self, const Tensor& out) {
  run_reduce({kernel_for(ReduceOp::Any, self.scalar_type(), "or_kernel")}, self,
             all_dims(self.dim()), out);
}
void any_dim_cpu(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  run_reduce({kernel_for(ReduceOp::Any, self.scalar_type(), "or_kernel")}, self,
             dim_mask(dim, self.dim()), out);
}
void any_dims_cpu(const Tensor& self, OptionalIntArrayRef dim, bool, const Tensor& out) {
  run_reduce({kernel_for(ReduceOp::Any, self.scalar_type(), "or_kernel")}, self,
             dims_mask(dim, self.dim(), false), out);
}
Tensor _is_all_true(const Tensor& self) {
  TORCH_CHECK(self.scalar_type() == kBool, "_is_all_true: expected a bool tensor, but got ",
              self.scalar_type());
  return at::_ops::all::call(self);
}
Tensor _is_any_true(const Tensor& self) {
  TORCH_CHECK(self.scalar_type() == kBool, "_is_any_true: expected a bool tensor, but got ",
              self.scalar_type());
  return at::_ops::any::call(self);
}
Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim) {
  return dim ? at::count_nonzero(self, IntArrayRef(&*dim, 1))
             : at::count_nonzero(self, IntArrayRef());
}
void count_nonzero_cpu(const Tensor& self, IntArrayRef dim, const Tensor& out) {
  run_reduce({kernel_for(ReduceOp::CountNonzero, self.scalar_type(), "count_nonzero_cpu")}, self,
             dims_mask(dim, self.dim()), out);
}
void hash_tensor_cpu(const Tensor& self, IntArrayRef dim, bool, int64_t, const Tensor& out) {
  run_reduce({kernel_for(ReduceOp::XorSum, self.scalar_type(), "xor_sum_cpu")}, self,
             dims_mask(dim, self.dim()), out);
}

// ---- variance, norms, logsumexp
void var_correction_cpu(const Tensor& self, OptionalIntArrayRef dim,
                        const std::optional<Scalar>& correction, bool, const Tensor& out) {
  run_var(self, dim, correction, false, out, Tensor());
}
void std_correction_cpu(const Tensor& self, OptionalIntArrayRef dim,
                        const std::optional<Scalar>& correction, bool, const Tensor& out) {
  run_var(self, dim, correction, true, out, Tensor());
}
void var_mean_correction_cpu(const Tensor& self, OptionalIntArrayRef dim,
                             const std::optional<Scalar>& correction, bool, const Tensor& var,
                             const Tensor& mean) {
  run_var(self, dim, correction, false, var, mean);
}
void std_mean_correction_cpu(const Tensor& self, OptionalIntArrayRef dim,
                             const std::optional<Scalar>& correction, bool, const Tensor& std,
                             const Tensor& mean) {
  run_var(self, dim, correction, true, std, mean);
}

void linalg_vector_norm_cpu(const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool,
                            std::optional<ScalarType> dtype, const Tensor& out) {
  const Tensor input = accumulable(self, dtype.value_or(self.scalar_type()));
  run_reduce(norm_call(ord.toDouble(), input.scalar_type()), input, dims_mask(dim, self.dim()),
             out);
}

void logsumexp_cpu(const Tensor& self, IntArrayRef dim, bool keepdim, const Tensor& out) {
  const Tensor input =
      c10::isIntegralType(self.scalar_type(), true) ? self.to(out.scalar_type()) : self;
  if (!input.is_complex()) {
    run_reduce({kernel_for(ReduceOp::LogSumExp, input.scalar_type(), "logsumexp_cpu")}, input,
               dims_mask(dim, self.dim()), out);
    return;
  }
  // exp is 2 pi i periodic: only the real part needs to be kept small.
  if (self.numel() == 0) {
    out.copy_(at::log(at::sum(at::exp(input), dim, keepdim)));
    return;
  }
  const Tensor top = at::amax(at::real(input), dim, true);
  const Tensor shifted = at::log(at::sum(at::exp(at::sub(input, top)), dim, true));
  out.copy_(at::add(shifted, top).reshape(out.sizes()));
}

} // namespace at::native
