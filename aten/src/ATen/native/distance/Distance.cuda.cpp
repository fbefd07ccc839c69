// cdist, pdist and cross on CUDA, made of differences and norms. Differences of all pairs are made
// for a block of rows at a time, so that they take a bounded part of the memory.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/distance/Native.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/triu_indices.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

namespace at::native {
namespace {

constexpr int64_t kDifferences = int64_t(1) << 26; // elements made at a time

ScalarType wide(ScalarType dtype) { return dtype == kDouble ? kDouble : kFloat; }
Tensor norms_of(const Tensor& difference, double p) {
  const int64_t last[1] = {-1};
  return at::linalg_vector_norm(difference, p, IntArrayRef(last));
}

// The slope of |difference|_p, times `grad`. Where the norm has none (equal rows, equal elements
// for p below 2) it is zero. `grad` and `norm` have a last dimension of one.
Tensor slope(const Tensor& difference, double p, const Tensor& grad, const Tensor& norm) {
  if (p == 0) return at::mul(difference, 0);
  if (p == 1) return at::mul(at::sign(difference), grad);
  const Tensor flat = at::eq(norm, 0);
  if (std::isinf(p)) {
    const Tensor top = at::eq(at::abs(difference), norm);
    return at::where(top, at::mul(at::sign(difference), grad), Scalar(0));
  }
  if (p == 2) return at::where(flat, Scalar(0), at::mul(difference, at::div(grad, norm)));
  const Tensor ratio = at::div(grad, at::pow(norm, p - 1));
  const Tensor value =
      at::mul(at::mul(at::sign(difference), at::pow(at::abs(difference), p - 1)), ratio);
  const Tensor zero = p < 2 ? at::eq(difference, 0) : flat;
  return at::where(flat, Scalar(0), at::where(zero, Scalar(0), value));
}

// f(begin, length) over the rows of x1, in blocks.
template <class F> void by_blocks(const Tensor& x1, const Tensor& x2, const F& f) {
  const int64_t rows = x1.size(-2),
                per_row =
                    std::max<int64_t>(1, x1.numel() / std::max<int64_t>(rows, 1) * x2.size(-2));
  const int64_t block = std::max<int64_t>(1, kDifferences / per_row);
  for (int64_t begin = 0; begin < rows; begin += block) f(begin, std::min(block, rows - begin));
}

} // namespace

void cdist_forward_cuda(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t>,
                        const Tensor& out) {
  if (out.numel() == 0) return;
  if (x1.size(-1) == 0) {
    out.zero_();
    return;
  }
  const Tensor a = x1.to(wide(x1.scalar_type())), b = x2.to(a.scalar_type()).unsqueeze(-3);
  by_blocks(a, x2, [&](int64_t begin, int64_t length) {
    const Tensor rows = a.narrow(-2, begin, length).unsqueeze(-2);
    out.narrow(-2, begin, length).copy_(norms_of(at::sub(rows, b), p));
  });
}

void cdist_backward_cuda(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                         const Tensor& cdist, const Tensor& out) {
  if (out.numel() == 0) return;
  const ScalarType compute = wide(x1.scalar_type());
  const Tensor a = x1.to(compute), b = x2.to(compute).unsqueeze(-3);
  const Tensor g = grad.to(compute).unsqueeze(-1), norm = cdist.to(compute).unsqueeze(-1);
  const int64_t others[1] = {-2};
  by_blocks(a, x2, [&](int64_t begin, int64_t length) {
    const Tensor difference = at::sub(a.narrow(-2, begin, length).unsqueeze(-2), b);
    const Tensor part =
        slope(difference, p, g.narrow(-3, begin, length), norm.narrow(-3, begin, length));
    out.narrow(-2, begin, length).copy_(at::sum(part, IntArrayRef(others)));
  });
}

namespace {
struct Pairs {
  Tensor first, second, difference;
  Pairs(const Tensor& rows) {
    const Tensor both = at::triu_indices(rows.size(0), rows.size(0), 1,
                                         TensorOptions().dtype(kLong).device(rows.device()));
    first = both.select(0, 0).contiguous();
    second = both.select(0, 1).contiguous();
    difference = at::sub(at::index_select(rows, 0, first), at::index_select(rows, 0, second));
  }
};
} // namespace

void pdist_forward_cuda(const Tensor& self, double p, const Tensor& out) {
  if (out.numel() == 0) return;
  if (self.size(1) == 0)
    out.zero_();
  else
    out.copy_(norms_of(Pairs(self.to(wide(self.scalar_type()))).difference, p));
}

void pdist_backward_cuda(const Tensor& grad, const Tensor& self, double p, const Tensor& pdist,
                         const Tensor& out) {
  if (out.numel() == 0) return;
  if (self.size(0) < 2) {
    out.zero_();
    return;
  }
  const Tensor rows = self.to(wide(self.scalar_type()));
  const Pairs pairs(rows);
  const Tensor part = slope(pairs.difference, p, grad.to(rows.scalar_type()).unsqueeze(-1),
                            pdist.to(rows.scalar_type()).unsqueeze(-1));
  const Tensor gained =
      at::index_add(at::zeros(rows.sizes(), rows.options()), 0, pairs.first, part);
  out.copy_(at::index_add(gained, 0, pairs.second, at::neg(part)));
}

void linalg_cross_cuda(const Tensor& self, const Tensor& other, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t d = dim < 0 ? dim + out.dim() : dim;
  const Tensor a = self.expand(out.sizes()), b = other.expand(out.sizes());
  Tensor parts[3];
  for (int64_t k = 0; k < 3; ++k) {
    const int64_t i = (k + 1) % 3, j = (k + 2) % 3;
    parts[k] =
        at::sub(at::mul(a.select(d, i), b.select(d, j)), at::mul(a.select(d, j), b.select(d, i)));
  }
  for (int64_t k = 0; k < 3; ++k) out.select(d, k).copy_(parts[k]);
}

} // namespace at::native
