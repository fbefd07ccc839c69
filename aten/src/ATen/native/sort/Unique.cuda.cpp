// unique and unique_consecutive on CUDA: a stable sort, the places where a new value begins, and
// running counts of those. Slices are sorted by their elements from the last to the first.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/sort/Native.h>
#include <ATen/ops/any.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/movedim.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/unique_dim_consecutive.h>

namespace at::native {
namespace {

using Triple = std::tuple<Tensor, Tensor, Tensor>;

Tensor none(const Tensor& self) { return detail::empty({0}, kLong, self.device()); }

// Where things that stand in a row begin to differ from their predecessors: (n, ...) gives n.
Tensor beginnings(const Tensor& things) {
  const int64_t n = things.size(0);
  const Tensor fresh = at::ones({n}, TensorOptions().dtype(kBool).device(things.device()));
  if (n > 1) {
    const Tensor differs = at::ne(things.narrow(0, 1, n - 1), things.narrow(0, 0, n - 1));
    fresh.narrow(0, 1, n - 1)
        .copy_(differs.dim() == 1 ? differs : at::any(differs.reshape({n - 1, -1}), 1));
  }
  return fresh;
}

// What the beginnings of groups say; `order` undefined: positions stand as they were.
Triple finish(const Tensor& values, const Tensor& fresh, const Tensor& starts, const Tensor& order,
              IntArrayRef inverse_sizes, bool return_inverse, bool return_counts) {
  Tensor inverse = none(values), counts = none(values);
  if (return_inverse) {
    inverse = at::sub(at::cumsum(fresh, 0), 1);
    if (order.defined())
      inverse =
          at::scatter(detail::empty(inverse.sizes(), kLong, values.device()), 0, order, inverse);
    inverse = inverse.view(inverse_sizes);
  }
  if (return_counts) {
    const Tensor end = detail::empty({1}, kLong, values.device());
    end.fill_(fresh.numel());
    counts = at::sub(at::cat({starts.narrow(0, 1, starts.numel() - 1), end}, 0), starts);
  }
  return {values, inverse, counts};
}

Triple unique_flat(const Tensor& self, bool sorts, bool return_inverse, bool return_counts) {
  const Tensor flat = self.reshape({self.numel()});
  if (flat.numel() == 0)
    return {detail::empty({0}, self.scalar_type(), self.device()),
            return_inverse ? detail::empty(self.sizes(), kLong, self.device()) : none(self),
            none(self)};
  Tensor values = flat, order;
  if (sorts) std::tie(values, order) = at::sort(flat, std::optional<bool>(true), 0, false);
  const Tensor fresh = beginnings(values), starts = at::nonzero(fresh).view({-1});
  return finish(at::index_select(values, 0, starts), fresh, starts, order, self.sizes(),
                return_inverse, return_counts);
}

Triple unique_slices(const Tensor& self, int64_t dim, bool sorts, bool return_inverse,
                     bool return_counts) {
  TORCH_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dim,
                    " but tensor has no dimensions");
  const int64_t d = wrap_dim(dim, self.dim()), n = self.size(d);
  if (self.numel() == 0) {
    for (int64_t i = 0; i < self.dim(); ++i)
      TORCH_CHECK(i == d || self.size(i) != 0, "There are 0 sized dimensions, and they aren't "
                                               "selected, so unique cannot be applied");
    return {self.clone(MemoryFormat::Contiguous), none(self), none(self)};
  }
  const Tensor slices = at::movedim(self, d, 0).contiguous();
  Tensor rows = slices.view({n, -1}), order;
  if (sorts) {
    order = at::arange(n, TensorOptions().dtype(kLong).device(self.device()));
    for (int64_t j = rows.size(1) - 1; j >= 0; --j) {
      const Tensor column = at::index_select(rows.select(1, j), 0, order);
      const Tensor step = std::get<1>(at::sort(column, std::optional<bool>(true), 0, false));
      order = at::index_select(order, 0, step);
    }
    rows = at::index_select(rows, 0, order);
  }
  const Tensor fresh = beginnings(rows), starts = at::nonzero(fresh).view({-1});
  DimVector sizes(slices.sizes());
  sizes[0] = starts.numel();
  const Tensor values = at::movedim(at::index_select(rows, 0, starts).view(sizes), 0, d);
  return finish(values, fresh, starts, order, {n}, return_inverse, return_counts);
}

} // namespace

std::tuple<Tensor, Tensor> unique_cuda(const Tensor& self, bool /*sorted*/, bool return_inverse) {
  const Triple all = unique_flat(self, true, return_inverse, false);
  return {std::get<0>(all), std::get<1>(all)};
}
Triple unique2_cuda(const Tensor& self, bool /*sorted*/, bool return_inverse, bool return_counts) {
  return unique_flat(self, true, return_inverse, return_counts);
}
Triple unique_dim_cuda(const Tensor& self, int64_t dim, bool /*sorted*/, bool return_inverse,
                       bool return_counts) {
  return unique_slices(self, dim, true, return_inverse, return_counts);
}
Triple unique_dim_consecutive_cuda(const Tensor& self, int64_t dim, bool return_inverse,
                                   bool return_counts) {
  return unique_slices(self, dim, false, return_inverse, return_counts);
}
Triple unique_consecutive_cuda(const Tensor& self, bool return_inverse, bool return_counts,
                               std::optional<int64_t> dim) {
  if (dim) return at::unique_dim_consecutive(self, *dim, return_inverse, return_counts);
  return unique_flat(self, false, return_inverse, return_counts);
}

} // namespace at::native
