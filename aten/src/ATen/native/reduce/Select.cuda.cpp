// Order statistics on CUDA: median, nanmedian, kthvalue and mode, each read off a stable sort of
// its line, and renorm.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/reduce/Native.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>

#include <limits>

namespace at::native {
namespace {

struct Sorted {
  Tensor values, order; // along the last dimension
};
// The lines of `self` along `dim`, sorted; a tensor of no dimensions is one line.
Sorted sorted_lines(const Tensor& self, int64_t dim, const char* op) {
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "\"", op, "_cuda\" not implemented for '",
                              self.scalar_type(), "'");
  const Tensor lines = self.dim() == 0
                           ? self.reshape({1})
                           : self.transpose(wrap_dim(dim, self.dim()), self.dim() - 1).contiguous();
  const auto [values, order] = at::sort(lines, std::optional<bool>(true), -1, false);
  return {values, order};
}

// Stores what was picked of each line, one element along the last dimension, at the places of
// `dim`.
void store(const Tensor& self, int64_t dim, const Tensor& value, const Tensor& index,
           const Tensor& values, const Tensor& indices) {
  const auto placed = [&](const Tensor& t, const Tensor& out) {
    const Tensor there =
        self.dim() == 0 ? t : t.transpose(wrap_dim(dim, self.dim()), self.dim() - 1);
    out.copy_(there.reshape(out.sizes()));
  };
  placed(value, values);
  placed(index, indices);
}

// The place of the median in each sorted line, with a last dimension of one.
Tensor median_place(const Tensor& sorted, bool ignore_nan) {
  const int64_t n = sorted.size(-1), last[1] = {-1};
  if (!sorted.is_floating_point()) {
    DimVector sizes(sorted.sizes());
    sizes.back() = 1;
    const Tensor place = detail::empty(sizes, kLong, sorted.device());
    place.fill_((n - 1) / 2);
    return place;
  }
  const Tensor nans = at::sum(at::isnan(sorted), IntArrayRef(last), true);
  const Tensor valid = at::rsub(nans, n);
  const Tensor middle =
      at::div(at::clamp_min(at::sub(valid, 1), 0), 2, std::optional<std::string_view>("floor"));
  // The first NaN follows the valid elements.
  const Tensor answers_nan = ignore_nan ? at::eq(valid, 0) : at::gt(nans, 0);
  return at::where(answers_nan, valid, middle);
}

void median_along(const Tensor& self, int64_t dim, bool ignore_nan, const Tensor& values,
                  const Tensor& indices) {
  if (values.numel() == 0) return;
  const Sorted s = sorted_lines(self, dim, "median");
  const Tensor place = median_place(s.values, ignore_nan);
  store(self, dim, at::gather(s.values, -1, place), at::gather(s.order, -1, place), values,
        indices);
}

void median_of_all(const Tensor& self, bool ignore_nan, const Tensor& out) {
  if (self.numel() == 0) {
    // What a NaN turns into: the lowest value of signed integers, 0 of unsigned ones.
    const ScalarType dtype = self.scalar_type();
    if (c10::isFloatingType(dtype))
      out.fill_(std::numeric_limits<double>::quiet_NaN());
    else if (dtype == kByte || dtype == kUInt16 || dtype == kUInt32 || dtype == kUInt64)
      out.fill_(0);
    else
      out.fill_(-(int64_t(1) << (8 * self.itemsize() - 2)) * 2);
    return;
  }
  const Sorted s = sorted_lines(self.reshape({self.numel()}), 0, "median");
  out.copy_(at::gather(s.values, -1, median_place(s.values, ignore_nan)).reshape({}));
}

} // namespace

void median_cuda(const Tensor& self, const Tensor& out) { median_of_all(self, false, out); }
void nanmedian_cuda(const Tensor& self, const Tensor& out) { median_of_all(self, true, out); }
void median_dim_cuda(const Tensor& self, int64_t dim, bool, const Tensor& values,
                     const Tensor& indices) {
  median_along(self, dim, false, values, indices);
}
void nanmedian_dim_cuda(const Tensor& self, int64_t dim, bool, const Tensor& values,
                        const Tensor& indices) {
  median_along(self, dim, true, values, indices);
}

void kthvalue_cuda(const Tensor& self, int64_t k, int64_t dim, bool, const Tensor& values,
                   const Tensor& indices) {
  if (values.numel() == 0) return;
  const Sorted s = sorted_lines(self, dim, "kthvalue");
  store(self, dim, s.values.narrow(-1, k - 1, 1), s.order.narrow(-1, k - 1, 1), values, indices);
}

void mode_cuda(const Tensor& self, int64_t dim, bool, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  const Sorted s = sorted_lines(self, dim, "mode");
  const int64_t n = s.values.size(-1);
  const Tensor fresh =
      at::ones(s.values.sizes(), TensorOptions().dtype(kBool).device(self.device()));
  if (n > 1)
    fresh.narrow(-1, 1, n - 1)
        .copy_(at::ne(s.values.narrow(-1, 1, n - 1), s.values.narrow(-1, 0, n - 1)));
  // Every place knows where its run began; the longest run ends at the first greatest distance.
  const Tensor place = at::arange(n, TensorOptions().dtype(kLong).device(self.device()));
  const Tensor began = std::get<0>(at::cummax(at::where(fresh, place, Scalar(0)), -1));
  const Tensor longest = at::argmax(at::sub(place, began), std::optional<int64_t>(-1), true);
  store(self, dim, at::gather(s.values, -1, longest), at::gather(s.order, -1, longest), values,
        indices);
}

void renorm_cuda(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm,
                 const Tensor& out) {
  const int64_t d = wrap_dim(dim, self.dim());
  DimVector others;
  for (int64_t i = 0; i < self.dim(); ++i)
    if (i != d) others.push_back(i);
  // Norms and factors in double, so that a slice on the limit is not scaled by rounding.
  const Tensor norm = at::linalg_vector_norm(self, p, IntArrayRef(others), true).to(kDouble);
  const Tensor shrunk = at::mul(at::reciprocal(at::add(norm, 1e-7)), maxnorm.toDouble());
  const Tensor factor = at::where(at::gt(norm, maxnorm.toDouble()), shrunk, Scalar(1.0));
  out.copy_(at::mul(self, factor.to(c10::toRealValueType(self.scalar_type()))));
}

} // namespace at::native
