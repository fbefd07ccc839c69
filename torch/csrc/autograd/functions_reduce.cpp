// Gradients of reductions and scans. See functions.h.
#include <algorithm>

#include <ATen/core/HandlerKeys.h>
#include <ATen/functorch/Level.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/all.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/log.h>
#include <ATen/ops/logcumsumexp.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/real.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/sgn.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/functions.h>

namespace torch::autograd::generated {

namespace {
c10::DimVector reduced_dims(size_t rank, const OptionalIntArrayRef& dims) {
  c10::DimVector out;
  if (!dims || dims->empty()) {
    for (size_t d = 0; d < rank; ++d) out.push_back(static_cast<int64_t>(d));
    return out;
  }
  const int64_t n = std::max<int64_t>(static_cast<int64_t>(rank), 1);
  for (const int64_t d : *dims) out.push_back(d < 0 ? d + n : d);
  std::sort(out.begin(), out.end());
  return out;
}
// How many elements are reduced to one: a product of symbols, and the rest as a float, which does
// not overflow.
struct Count {
  c10::SymInt symbolic = 1;
  double number = 1;
  bool is_symbolic() const { return symbolic.is_symbolic(); }
  c10::SymInt all() const { return symbolic * static_cast<int64_t>(number); }
  Scalar scalar() const { return is_symbolic() ? Scalar(all()) : Scalar(number); }
  void times(c10::SymInt size) {
    if (C10_LIKELY(!size.is_symbolic())) {
      number *= static_cast<double>(size.raw());
      return;
    }
    symbolic *= size;
    // A symbol that a guard has fixed gives a plain product.
    if (symbolic.is_symbolic()) return;
    number *= static_cast<double>(symbolic.raw());
    symbolic = 1;
  }
};
Count count_of(SizesRef sizes, const OptionalIntArrayRef& dims) {
  Count out;
  for (const int64_t d : reduced_dims(sizes.size(), dims))
    if (!sizes.empty()) out.times(sizes[d]);
  return out;
}
Tensor sum_over(const Tensor& t, const OptionalIntArrayRef& dims, bool keepdim) {
  const c10::DimVector list = reduced_dims(t.dim(), dims);
  return t.dim() == 0 ? t : at::sum(t, OptionalIntArrayRef(IntArrayRef(list)), keepdim);
}
bool nonzero_everywhere(const Tensor& t) {
  if (at::functorch::varies_by_sample(t) || t.is_meta() || at::seen_by_handlers(t)) return false;
  return at::_ops::all::call(at::ne(t, 0)).item().toBool();
}
} // namespace

Tensor unreduce(const Tensor& grad, SizesRef sizes, const OptionalIntArrayRef& dims, bool keepdim) {
  if (keepdim || sizes.empty()) return grad;
  if (!dims || dims->empty()) return grad; // a scalar: broadcasts as it is
  Tensor out = grad;
  for (const int64_t d : reduced_dims(sizes.size(), dims)) out = out.unsqueeze(d);
  return out;
}
Tensor sum_grad(const Tensor& grad, SizesRef sizes, const OptionalIntArrayRef& dims, bool keepdim) {
  return expanded(unreduce(grad, sizes, dims, keepdim), sizes);
}
Tensor mean_grad(const Tensor& grad, SizesRef sizes, const OptionalIntArrayRef& dims,
                 bool keepdim) {
  return expanded(unreduce(grad, sizes, dims, keepdim), sizes) / count_of(sizes, dims).scalar();
}

// ---- products
// The product of all other elements along `dim`, also where some are zero: what stands before times
// what stands behind.
namespace {
Tensor product_of_others(const Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim);
  c10::DimVector shape(x.sizes());
  shape[dim < 0 ? dim + x.dim() : dim] = 1;
  const Tensor one = at::ones(shape, x.options());
  const Tensor before = at::cumprod(at::cat({one, x.narrow(dim, 0, n - 1)}, dim), dim);
  const Tensor reversed = at::flip(x.narrow(dim, 1, n - 1), {dim});
  const Tensor behind = at::flip(at::cumprod(at::cat({one, reversed}, dim), dim), {dim});
  return before * behind;
}
} // namespace

// With a dtype argument the factors are those of that dtype.
Tensor prod_grad(const Tensor& grad, const Tensor& input, const Tensor& result) {
  if (input.dim() == 0) return grad.clone();
  if (input.numel() == 0) return at::zeros_like(input);
  const Tensor self = input.to(result.scalar_type());
  if (nonzero_everywhere(self)) return grad * cj(result / self);
  return (grad * cj(product_of_others(self.reshape({-1}), 0))).reshape(self.sizes());
}
Tensor prod_dim_grad(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim,
                     bool keepdim) {
  if (input.dim() == 0) return grad.clone();
  if (input.numel() == 0) return at::zeros_like(input);
  const Tensor self = input.to(result.scalar_type());
  const Tensor g = keepdim ? grad : grad.unsqueeze(dim);
  const Tensor whole = keepdim ? result : result.unsqueeze(dim);
  if (nonzero_everywhere(self)) return g * cj(whole / self);
  return g * cj(product_of_others(self, dim));
}

// ---- extrema
namespace {
// A reduced tensor with its dimensions of size 1 back, as one view.
Tensor restored(const Tensor& t, SizesRef sizes, const OptionalIntArrayRef& dims, bool keepdim) {
  if (keepdim || sizes.empty()) return t;
  SymSizes shape(sizes.begin(), sizes.end());
  for (const int64_t d : reduced_dims(sizes.size(), dims)) shape[d] = 1;
  return reshaped(t, c10::SymIntArrayRef(shape));
}
Tensor shared_among(const Tensor& grad, const Tensor& mask, const OptionalIntArrayRef& dims) {
  const Tensor count = sum_over(mask, dims, true);
  return mask * (grad / count);
}
} // namespace

Tensor extremum_grad(const Tensor& grad, const Tensor& self, const Tensor& result,
                     const OptionalIntArrayRef& dims, bool keepdim) {
  const Tensor mask = at::eq(self, restored(result, self.sym_sizes(), dims, keepdim));
  return shared_among(restored(grad, self.sym_sizes(), dims, keepdim), mask, dims);
}
Tensor whole_extremum_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  const Tensor of_self = at::isnan(self), of_result = at::isnan(result);
  const Tensor unordered = at::logical_and(of_self, of_result);
  Tensor mask = at::eq(self, result);
  at::_ops::logical_or_::call(mask, unordered);
  return mask * (grad / at::sum(mask));
}

Tensor aminmax_grad(const Tensor& gmin, const Tensor& gmax, const Tensor& self, const Tensor& min,
                    const Tensor& max, std::optional<int64_t> dim, bool keepdim) {
  const int64_t one = dim.value_or(0);
  const OptionalIntArrayRef dims =
      dim ? OptionalIntArrayRef(IntArrayRef(&one, 1)) : OptionalIntArrayRef();
  auto share = [&](const Tensor& grad, const Tensor& extremum) {
    const Tensor g = restored(grad, self.sym_sizes(), dims, keepdim);
    const Tensor r = restored(extremum, self.sym_sizes(), dims, keepdim);
    return shared_among(g, at::eq(r, self), dims);
  };
  Tensor out;
  if (gmin.defined()) out = share(gmin, min);
  if (!gmax.defined()) return out;
  const Tensor part = share(gmax, max);
  return out.defined() ? out + part : part;
}

Tensor cumextremum_grad(const Tensor& grad, const Tensor& indices, IntArrayRef sizes, int64_t dim) {
  if (sizes.empty()) return grad;
  return at::scatter_add(at::zeros(sizes, grad.options()), dim, indices, grad);
}

// ---- variance
Tensor var_grad(const Tensor& grad, const Tensor& self, const OptionalIntArrayRef& dims,
                const std::optional<Scalar>& correction, bool keepdim) {
  const double less = correction ? correction->toDouble() : 1.0;
  // A fraction is taken off plain numbers alone.
  const bool whole = less == static_cast<double>(static_cast<int64_t>(less));
  const Count count = whole ? count_of(self.sym_sizes(), dims) : count_of(self.sizes(), dims);
  const Tensor g = unreduce(grad, self.sym_sizes(), dims, keepdim);
  const auto times_distance = [&](const Tensor& distance) {
    if (C10_UNLIKELY(count.is_symbolic()))
      return g * Scalar(2.0) / Scalar(count.all() - static_cast<int64_t>(less)) * distance;
    return g * Scalar(2.0 / std::max(0.0, count.number - less)) * distance;
  };
  if (self.dim() == 0) return times_distance(self - self);
  if (!dims || dims->empty()) return times_distance(self - at::mean(self));
  const c10::DimVector list = reduced_dims(self.dim(), dims);
  return times_distance(self - at::mean(self, OptionalIntArrayRef(IntArrayRef(list)), true));
}
Tensor std_grad(const Tensor& grad, const Tensor& self, const Tensor& result,
                const OptionalIntArrayRef& dims, const std::optional<Scalar>& correction,
                bool keepdim) {
  const Tensor ratio = grad / (result * 2);
  return var_grad(zeroed(ratio, at::eq(result, 0)), self, dims, correction, keepdim);
}
Tensor var_mean_grad(const Tensor& gvar, const Tensor& gmean, const Tensor& self,
                     const OptionalIntArrayRef& dims, const std::optional<Scalar>& correction,
                     bool keepdim) {
  Tensor out;
  if (gvar.defined()) out = var_grad(gvar, self, dims, correction, keepdim);
  if (!gmean.defined()) return out;
  const Tensor part = mean_grad(gmean, self.sym_sizes(), dims, keepdim);
  return out.defined() ? out + part : part;
}
Tensor std_mean_grad(const Tensor& gstd, const Tensor& gmean, const Tensor& self, const Tensor& std,
                     const OptionalIntArrayRef& dims, const std::optional<Scalar>& correction,
                     bool keepdim) {
  Tensor out;
  if (gstd.defined()) out = std_grad(gstd, self, std, dims, correction, keepdim);
  if (!gmean.defined()) return out;
  const Tensor part = mean_grad(gmean, self.sym_sizes(), dims, keepdim);
  return out.defined() ? out + part : part;
}

// ---- sums of exponentials
Tensor logsumexp_grad(const Tensor& grad, const Tensor& self, const Tensor& result,
                      IntArrayRef dims, bool keepdim) {
  const OptionalIntArrayRef over(dims);
  const Tensor g = unreduce(grad, self.sym_sizes(), over, keepdim);
  const Tensor total = unreduce(result, self.sym_sizes(), over, keepdim);
  return g * cj(at::exp(self - total));
}

Tensor logcumsumexp_grad(const Tensor& grad, const Tensor& self, const Tensor& result,
                         int64_t dim) {
  if (self.dim() == 0) return grad;
  // Sums are taken as logarithms: nothing overflows. A zero has a very small logarithm, not -inf,
  // whose differences would be NaN.
  const at::ScalarType type = grad.scalar_type();
  const double small = type == at::kDouble || type == at::kComplexDouble ? -1e300
                       : type == at::kHalf                               ? -6e4
                                                                         : -1e37;
  if (grad.is_complex()) {
    const Tensor mask = at::ne(grad, 0);
    const Tensor terms = at::where(mask, at::log(at::where(mask, grad, 1)) - cj(result), small);
    return at::exp(at::flip(at::logcumsumexp(at::flip(terms, {dim}), dim), {dim}) + cj(self));
  }
  // Positive and negative gradients apart: their logarithms are real.
  auto scan = [&](const Tensor& mask, const Tensor& size) {
    const Tensor terms = at::where(mask, at::log(at::where(mask, size, 1)) - result, small);
    return at::exp(at::flip(at::logcumsumexp(at::flip(terms, {dim}), dim), {dim}) + self);
  };
  return scan(at::gt(grad, 0), grad) - scan(at::lt(grad, 0), -grad);
}

Tensor softmax_output_grad(const Tensor& gg, const Tensor& grad, const Tensor& output,
                           int64_t dim) {
  const Tensor first = at::sum(grad * output, {dim}, true);
  const Tensor second = at::sum(gg * output, {dim}, true);
  return gg * grad - gg * first - grad * second;
}
Tensor log_softmax_grad_grad(const Tensor& gg, const Tensor& output, int64_t dim) {
  return gg - at::sum(gg * at::exp(output), {dim}, true);
}

// ---- norms
Tensor norm_grad(const Tensor& grad, const Tensor& self, const Tensor& result, const Scalar& ord,
                 const OptionalIntArrayRef& dims, bool keepdim) {
  const double p = ord.toDouble();
  if (p == 0) return {}; // a count does not depend on the values
  const Tensor g = unreduce(grad, self.sym_sizes(), dims, keepdim);
  const Tensor norm = unreduce(result, self.sym_sizes(), dims, keepdim);
  if (p == 1) return at::sgn(self) * g;
  if (p == 2) {
    const Tensor ratio = g / norm;
    return self * zeroed(ratio, at::eq(norm, 0));
  }
  const Tensor length = at::abs(self);
  if (p == __builtin_inf() || p == -__builtin_inf()) {
    const Tensor mask = at::eq(length, norm).to(norm.scalar_type());
    return at::sgn(self) * (mask * (g / sum_over(mask, dims, true)));
  }
  if (p < 1) {
    const Tensor slope = zero_where(at::sgn(self) * at::pow(length, p - 1), at::eq(self, 0));
    return slope * g * at::pow(norm, 1 - p);
  }
  if (p < 2) {
    const Tensor slope = zero_where(at::sgn(self) * at::pow(length, p - 1) * g, at::eq(self, 0));
    return slope * zero_where(at::pow(norm, 1 - p), at::eq(norm, 0));
  }
  Tensor power = length;
  const Tensor values = self * at::_ops::pow__Scalar::call(power, p - 2);
  const Tensor ratio = g / at::pow(norm, p - 1);
  return values * zeroed(ratio, at::eq(norm, 0));
}

// ---- scans
Tensor reversed_cumsum(const Tensor& grad, int64_t dim) {
  if (grad.dim() == 0) return grad;
  return at::flip(at::cumsum(at::flip(grad, {dim}), dim), {dim});
}

// d y_j / d x_i is the product of x_0..x_j without x_i. Without zeros that is y_j / x_i; with zeros
// each position i is worked out apart: x_i is replaced by one and the products taken again.
Tensor cumprod_grad(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim) {
  if (input.dim() == 0) return grad.clone();
  if (input.numel() == 0) return grad;
  const Tensor self = input.to(result.scalar_type());
  if (nonzero_everywhere(self)) return reversed_cumsum(grad * cj(result), dim) / cj(self);
  const int64_t n = self.size(dim);
  Tensors parts;
  for (int64_t i = 0; i < n; ++i) {
    const Tensor one = at::ones_like(self.narrow(dim, 0, 1));
    Tensor head = i == 0 ? one : at::prod(self.narrow(dim, 0, i), dim, true);
    Tensor tail = at::cat({one, self.narrow(dim, i + 1, n - i - 1)}, dim);
    const Tensor products = at::cumprod(tail, dim) * head;
    parts.push_back(at::sum(grad.narrow(dim, i, n - i) * cj(products), {dim}, true));
  }
  return at::cat(parts, dim);
}

Tensor trace_grad(const Tensor& grad, IntArrayRef sizes) {
  return at::eye(sizes[0], sizes[1], grad.options()) * grad;
}

} // namespace torch::autograd::generated
