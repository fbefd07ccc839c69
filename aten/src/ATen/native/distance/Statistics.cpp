// Similarities and covariances that are formulas over other operators and differentiable through
// them, and the cross product.
#include <ATen/core/TransformQueries.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/distance/Native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/any.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/div.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/linalg_cross.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/real.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/squeeze.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {
namespace {
constexpr int64_t kCrossGrain = 16384;

// Weights of the observations, checked; undefined when not given.
Tensor checked_weights(const std::optional<Tensor>& given, const char* name, bool integral,
                       int64_t observations) {
  if (!given || !given->defined()) return Tensor();
  const Tensor& w = *given;
  TORCH_CHECK(w.dim() <= 1, "cov(): expected ", name, " to have one or fewer dimensions but got ",
              name, " with ", w.dim(), " dimensions");
  const bool fits = integral ? c10::isIntegralType(w.scalar_type(), false) : w.is_floating_point();
  TORCH_CHECK(fits, "cov(): expected ", name, " to have ", integral ? "integral" : "floating point",
              " dtype but got ", name, " with ", w.scalar_type(), " dtype");
  TORCH_CHECK(w.numel() == observations, "cov(): expected ", name,
              " to have the same numel as there are observations in the input but got ", w.numel(),
              " != ", observations);
  TORCH_CHECK(w.is_meta() || functorch::varies_by_sample(w) || observations == 0 ||
                  !at::_ops::any::call(at::lt(w, 0)).item<bool>(),
              "cov(): ", name, " cannot be negative");
  return w;
}

Tensor sum_all(const Tensor& t) { return at::_ops::sum::call(t, std::nullopt); }

// What the sums of products are divided by: the weight of the observations less the correction.
Tensor degrees_of_freedom(const Tensor& total, const Tensor& weights, const Tensor& aweights,
                          int64_t correction) {
  if (weights.defined() && aweights.defined() && correction != 0) {
    const Tensor share = at::div(sum_all(at::mul(weights, aweights)), total);
    return at::sub(total, at::mul(share, correction));
  }
  return at::sub(total, correction);
}
} // namespace

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const ScalarType dtype = at::result_type(x1, x2);
  TORCH_CHECK(c10::isFloatingType(dtype),
              "expected common dtype to be floating point, yet common dtype is ", dtype);
  const DimVector shape = broadcast_shapes(x1.sizes(), x2.sizes());
  const Tensor a = x1.to(dtype).expand(shape), b = x2.to(dtype).expand(shape);
  const int64_t dims[1] = {dim};
  // Each vector is divided by its own length, so that the product of two lengths cannot overflow.
  // What lifts a length to eps counts as a constant: gradients are those of the length.
  const auto unit = [&](const Tensor& x) {
    const Tensor length = at::linalg_vector_norm(x, 2, IntArrayRef(dims), true);
    const Tensor value = length.detach();
    return at::div(x, at::add(length, at::sub(at::clamp_min(value, eps), value)));
  };
  return at::sum(at::mul(unit(a), unit(b)), IntArrayRef(dims));
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  const int64_t dims[1] = {-1};
  return at::norm(at::add(at::sub(x1, x2), eps), p, IntArrayRef(dims), keepdim);
}

Tensor cov(const Tensor& self, int64_t correction, const std::optional<Tensor>& fweights,
           const std::optional<Tensor>& aweights) {
  TORCH_CHECK(self.dim() <= 2,
              "cov(): expected input to have two or fewer dimensions but got an input with ",
              self.dim(), " dimensions");
  TORCH_CHECK(self.scalar_type() != kBool, "cov(): bool dtype is not supported for input");
  const Tensor in = self.dim() < 2 ? self.reshape({1, self.numel()}) : self;
  const int64_t observations = in.size(1);
  const Tensor fw = checked_weights(fweights, "fweights", true, observations);
  const Tensor aw = checked_weights(aweights, "aweights", false, observations);
  const Tensor w = fw.defined() ? (aw.defined() ? at::mul(fw, aw) : fw) : aw;
  const Tensor total =
      w.defined() ? sum_all(w) : at::scalar_tensor(observations, in.options().dtype(kLong));
  const bool unseen = in.is_meta() || functorch::varies_by_sample(total);
  TORCH_CHECK(!w.defined() || unseen || total.item<double>() != 0,
              "cov(): weights sum to zero, can't be normalized");
  const int64_t dims[1] = {1};
  const Tensor mean =
      at::div(at::sum(w.defined() ? at::mul(in, w) : in, IntArrayRef(dims), true), total);
  Tensor divisor = degrees_of_freedom(total, w, aw, correction);
  if (!unseen && divisor.item<double>() <= 0) {
    TORCH_WARN("cov(): degrees of freedom is <= 0. Correction should be strictly less than the "
               "number of observations.");
    divisor = at::zeros_like(divisor);
  }
  const Tensor centred = at::sub(in, mean);
  const Tensor weighted = w.defined() ? at::mul(centred, w) : centred;
  const Tensor product =
      at::mm(centred, at::conj(weighted.to(centred.scalar_type())).transpose(0, 1));
  return at::squeeze(at::div(product, divisor));
}

Tensor corrcoef(const Tensor& self) {
  TORCH_CHECK(self.dim() <= 2,
              "corrcoef(): expected input to have two or fewer dimensions but got an input with ",
              self.dim(), " dimensions");
  const Tensor c = cov(self, 1, std::nullopt, std::nullopt);
  if (c.dim() == 0) return at::div(c, c);
  const Tensor variances = at::diagonal(c);
  const Tensor deviations = at::sqrt(c.is_complex() ? at::real(variances) : variances);
  const Tensor r = at::div(at::div(c, deviations.unsqueeze(1)), deviations.unsqueeze(0));
  if (!r.is_complex()) return at::clamp(r, Scalar(-1), Scalar(1));
  return at::complex(at::clamp(at::real(r), Scalar(-1), Scalar(1)),
                     at::clamp(at::imag(r), Scalar(-1), Scalar(1)));
}

namespace {
int64_t cross_dim(const Tensor& self, std::optional<int64_t> dim) {
  if (dim) return *dim;
  TORCH_WARN("Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass "
             "the dim explicitly or simply use torch.linalg.cross.\nThe default value of dim will "
             "change to agree with that of linalg.cross in a future release.");
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.size(d) == 3) return d;
  TORCH_CHECK(false, "no dimension of size 3 in input");
}
} // namespace

Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  return at::linalg_cross(self, other, cross_dim(self, dim));
}
Tensor& cross_out(const Tensor& self, const Tensor& other, std::optional<int64_t> dim,
                  Tensor& out) {
  return at::linalg_cross_out(out, self, other, cross_dim(self, dim));
}

void linalg_cross_cpu(const Tensor& self, const Tensor& other, int64_t dim, const Tensor& out) {
  const int64_t d = dim < 0 ? dim + out.dim() : dim;
  const Tensor a = self.expand(out.sizes()).contiguous(),
               b = other.expand(out.sizes()).contiguous();
  const Tensor to = out.is_contiguous() ? out : out.contiguous();
  int64_t inner = 1;
  for (int64_t k = d + 1; k < out.dim(); ++k) inner *= out.size(k);
  if (out.numel() == 0) return;
  dtype_switch<AllTypes>(out.scalar_type(), "cross", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = a.const_data_ptr<T>();
    const T* y = b.const_data_ptr<T>();
    T* z = to.data_ptr<T>();
    BlockingRegion unlocked;
    parallel_for(0, out.numel() / 3, kCrossGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at0 = i / inner * 3 * inner + i % inner, at1 = at0 + inner, at2 = at1 + inner;
        const T x0 = x[at0], x1 = x[at1], x2 = x[at2], y0 = y[at0], y1 = y[at1], y2 = y[at2];
        z[at0] = static_cast<T>(x1 * y2 - x2 * y1);
        z[at1] = static_cast<T>(x2 * y0 - x0 * y2);
        z[at2] = static_cast<T>(x0 * y1 - x1 * y0);
      }
    });
  });
  if (!to.is_same(out)) out.copy_(to);
}

} // namespace at::native

namespace at::meta {

void meta_linalg_cross(OutputBuilder& out, const Tensor& self, const Tensor& other, int64_t dim) {
  TORCH_CHECK(self.dim() == other.dim(),
              "linalg.cross: inputs must have the same number of dimensions.");
  const int64_t length1 = self.size(dim), length2 = other.size(dim);
  TORCH_CHECK(length1 == 3 && length2 == 3, "linalg.cross: inputs dimension ", dim,
              " must have length 3. Got ", length1, " and ", length2);
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "expected scalar type ",
              self.scalar_type(), " but found ", other.scalar_type());
  out.set(0, broadcast_shapes(self.sizes(), other.sizes()), self.scalar_type());
}

} // namespace at::meta
