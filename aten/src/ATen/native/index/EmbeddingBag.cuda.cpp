// embedding_bag and isin on CUDA. A bag is found for every index by search; rows are then added,
// or compared, at the place of their bag in the order of the indices.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/index/IndexPlan.h>
#include <ATen/native/index/IndexUtil.h>
#include <ATen/native/index/Native.h>
#include <ATen/ops/_unique.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_copy.h>
#include <ATen/ops/index_reduce.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>

namespace at::native {
namespace {

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };
using Bags = std::tuple<Tensor, Tensor, Tensor, Tensor>;

ScalarType compute_of(ScalarType dtype) { return dtype == kDouble ? kDouble : kFloat; }
TensorOptions longs(const Tensor& t) { return TensorOptions().dtype(kLong).device(t.device()); }
bool given(const std::optional<Tensor>& t) { return t && t->defined(); }

// One value per position beside rows of `width`.
Tensor column(const Tensor& t) { return t.unsqueeze(-1); }

// The rows that indices name; a bad index is reported as one of embedding_bag's.
Tensor rows_of(const Tensor& table, const Tensor& index) {
  const Tensor out =
      detail::empty({index.numel(), table.size(1)}, table.scalar_type(), table.device());
  if (out.numel() > 0)
    cuda_index::read(cuda_index::plan_along("embedding_bag", table, out, 0, index, false), table,
                     out);
  return out;
}

// The bag of each position, and which positions count: not padding, not behind the last bag.
struct Members {
  Tensor bag, counts;
  int64_t bags;
  Members(const Tensor& index, const Tensor& offsets, bool include_last_offset, int64_t padding) {
    const Tensor starts = offsets.to(kLong).contiguous();
    TORCH_CHECK(!include_last_offset || starts.numel() > 0,
                "include_last_offset: number of offset should be at least 1");
    bags = starts.numel() - (include_last_offset ? 1 : 0);
    const Tensor place = at::arange(index.numel(), longs(index));
    const Tensor first = starts.narrow(0, 0, bags);
    bag = bags > 0 ? at::clamp_min(at::sub(at::searchsorted(first, place, false, true), 1), 0)
                   : at::zeros(index.sizes(), longs(index));
    counts = at::ne(index, padding);
    if (bags == 0) counts = at::bitwise_and(counts, Scalar(false));
    if (include_last_offset)
      counts = at::bitwise_and(counts, at::lt(place, starts.select(0, bags)));
    if (include_last_offset) bag = at::where(at::lt(place, starts.select(0, bags)), bag, Scalar(0));
  }
};

// The greatest of each bag, and the index it came from: the first of equal ones.
std::pair<Tensor, Tensor> greatest(const Tensor& rows, const Tensor& index, const Members& m) {
  const int64_t n = index.numel(), width = rows.size(1);
  const Tensor seen =
      at::where(column(m.counts), rows, Scalar(-std::numeric_limits<double>::infinity()));
  const Tensor lowest =
      at::full({m.bags, width}, -std::numeric_limits<double>::infinity(), rows.options());
  const Tensor best = at::index_reduce(lowest, 0, m.bag, seen, "amax");
  const Tensor hit =
      at::bitwise_and(at::eq(seen, at::index_select(best, 0, m.bag)), column(m.counts));
  const Tensor place = column(at::arange(n, longs(index))).expand({n, width});
  const Tensor first = at::index_reduce(at::full({m.bags, width}, n, longs(index)), 0, m.bag,
                                        at::where(hit, place, Scalar(n)), "amin");
  const Tensor found = at::lt(first, n);
  const Tensor from =
      at::index_select(index, 0, at::clamp(first, Scalar(0), Scalar(n - 1)).view({-1}));
  return {at::where(found, best, Scalar(0)),
          at::where(found, from.view({m.bags, width}), Scalar(0))};
}

void check(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
           const std::optional<Tensor>& per_sample_weights) {
  const auto is_index = [](const Tensor& t) {
    return t.scalar_type() == kLong || t.scalar_type() == kInt;
  };
  TORCH_CHECK(is_index(indices) && is_index(offsets),
              "embedding_bag: indices and offsets must be Long or Int, got ", indices.scalar_type(),
              " and ", offsets.scalar_type());
  TORCH_CHECK(c10::isFloatingType(weight.scalar_type()) && weight.dim() == 2,
              "embedding_bag: weight must be a floating point matrix, got ", weight);
  TORCH_CHECK(indices.dim() == 1 && offsets.dim() == 1,
              "embedding_bag: indices and offsets must be 1-D, but got ", indices.dim(), " and ",
              offsets.dim(), " dimension(s)");
  TORCH_CHECK(mode >= kSum && mode <= kMax, "embedding_bag: mode must be 0, 1 or 2, but got ",
              mode);
  cuda::check_same_device({&weight, &indices, &offsets, cuda::given(per_sample_weights)});
  if (!given(per_sample_weights)) return;
  TORCH_CHECK(mode == kSum, "embedding_bag: per_sample_weights only supported with mode='sum'");
  TORCH_CHECK(per_sample_weights->scalar_type() == weight.scalar_type() &&
                  per_sample_weights->sizes() == indices.sizes(),
              "embedding_bag: expected per_sample_weights of type ", weight.scalar_type(),
              " and shape ", indices.sizes(), ", but got ", *per_sample_weights);
}

} // namespace

Bags embedding_bag_cuda(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                        bool /*scale_grad_by_freq*/, int64_t mode, bool /*sparse*/,
                        const std::optional<Tensor>& per_sample_weights, bool include_last_offset,
                        int64_t padding_idx) {
  check(weight, indices, offsets, mode, per_sample_weights);
  const ScalarType dtype = weight.scalar_type(), compute = compute_of(dtype),
                   index_dtype = indices.scalar_type();
  const Tensor index = indices.to(kLong).contiguous();
  const Members m(index, offsets, include_last_offset, padding_idx);
  const int64_t width = weight.size(1), n = index.numel();
  const Tensor used =
      at::index_add(at::zeros({m.bags}, longs(index)), 0, m.bag, m.counts.to(kLong));
  const Tensor sizes = used.to(index_dtype), bag_of = m.bag.to(index_dtype);
  if (n == 0 || m.bags == 0 || width == 0) {
    const Tensor empty = at::zeros({m.bags, width}, weight.options());
    return {empty, bag_of, sizes,
            mode == kMax ? at::zeros({m.bags, width}, indices.options()) : sizes.clone()};
  }
  const Tensor rows = rows_of(weight.contiguous(), index).to(compute);
  if (mode == kMax) {
    const auto [best, from] = greatest(rows, index, m);
    return {best.to(dtype), bag_of, sizes, from.to(index_dtype)};
  }
  Tensor scale = m.counts.to(compute);
  if (given(per_sample_weights)) scale = at::mul(scale, per_sample_weights->to(compute));
  const Tensor zero = at::zeros({m.bags, width}, rows.options());
  Tensor sum = at::index_add(zero, 0, m.bag, at::mul(rows, column(scale)));
  if (mode == kMean) sum = at::div(sum, column(at::clamp_min(used, 1)));
  return {sum.to(dtype), bag_of, sizes, sizes.clone()};
}

Tensor embedding_bag_dense_backward_cuda(const Tensor& grad, const Tensor& indices,
                                         const Tensor& offset2bag, const Tensor& bag_size,
                                         const Tensor& maximum_indices, int64_t num_weights,
                                         bool scale_grad_by_freq, int64_t mode,
                                         const std::optional<Tensor>& per_sample_weights,
                                         int64_t padding_idx) {
  TORCH_CHECK(grad.dim() == 2 && num_weights >= 0,
              "embedding_bag backward: expected a 2-D gradient");
  const int64_t width = grad.size(1), n = indices.numel();
  TORCH_CHECK(offset2bag.numel() == n && bag_size.numel() >= grad.size(0) &&
                  (mode != kMax || maximum_indices.sizes() == grad.sizes()) &&
                  (!given(per_sample_weights) || per_sample_weights->numel() == n),
              "embedding_bag backward: the saved tensors do not belong to this gradient");
  const ScalarType dtype = grad.scalar_type(), compute = compute_of(dtype);
  const Tensor g = grad.to(compute), index = indices.to(kLong), bag = offset2bag.to(kLong);
  const Tensor used = bag_size.to(kLong).narrow(0, 0, grad.size(0));
  const Tensor zero = at::zeros({num_weights, width}, g.options());
  if (n == 0 || grad.numel() == 0) return zero.to(dtype);
  if (mode == kMax) {
    const Tensor part = at::mul(g, column(at::gt(used, 0)));
    return at::scatter_add(zero, 0, maximum_indices.to(kLong), part).to(dtype);
  }
  const Tensor counts = at::ne(index, padding_idx);
  Tensor scale = counts.to(compute);
  if (given(per_sample_weights)) scale = at::mul(scale, per_sample_weights->to(compute));
  if (mode == kMean) scale = at::div(scale, at::clamp_min(at::index_select(used, 0, bag), 1));
  if (scale_grad_by_freq) {
    const Tensor often =
        at::index_add(at::zeros({num_weights}, longs(index)), 0, index, counts.to(kLong));
    scale = at::div(scale, at::clamp_min(at::index_select(often, 0, index), 1));
  }
  const Tensor part = at::mul(at::index_select(g, 0, bag), column(scale));
  return at::index_add(zero, 0, index, part).to(dtype);
}

Tensor embedding_bag_per_sample_weights_backward_cuda(const Tensor& grad, const Tensor& weight,
                                                      const Tensor& indices, const Tensor&,
                                                      const Tensor& offset2bag, int64_t mode,
                                                      int64_t padding_idx) {
  TORCH_CHECK(mode == kSum && grad.dim() == 2 && weight.dim() == 2 &&
                  offset2bag.numel() == indices.numel(),
              "embedding_bag backward: gradients of per_sample_weights need mode='sum' and the "
              "saved tensors of its call");
  const ScalarType compute = compute_of(grad.scalar_type());
  if (indices.numel() == 0) return at::zeros({0}, grad.options());
  const Tensor index = indices.to(kLong).contiguous();
  const Tensor rows = rows_of(weight.contiguous(), index).to(compute);
  const Tensor g = at::index_select(grad.to(compute), 0, offset2bag.to(kLong));
  const int64_t last[1] = {1};
  const Tensor dot = at::sum(at::mul(rows, g), IntArrayRef(last));
  return at::where(at::ne(index, padding_idx), dot, Scalar(0)).to(grad.scalar_type());
}

// ---- renormalisation of the rows in use
Tensor& embedding_renorm_cuda_(Tensor& self, const Tensor& indices, double max_norm,
                               double norm_type) {
  check_embedding(self, indices);
  cuda::check_same_device({&self, &indices});
  if (indices.numel() == 0 || self.numel() == 0) return self;
  const Tensor used = std::get<0>(at::_unique(indices.to(kLong), true, false));
  const Tensor rows = rows_of(self.contiguous(), used).to(kDouble);
  const int64_t last[1] = {1};
  const Tensor norm = at::linalg_vector_norm(rows, norm_type, IntArrayRef(last), true);
  const Tensor shrunk = at::div(at::mul(rows, max_norm), at::add(norm, 1e-7));
  const Tensor kept = at::where(at::gt(norm, max_norm), shrunk, rows);
  self.copy_(at::index_copy(self, 0, used, kept.to(self.scalar_type())));
  return self;
}

// ---- isin
void isin_cuda(const Tensor& elements, const Tensor& test_elements, bool, bool invert,
               const Tensor& out) {
  if (elements.numel() == 0) return;
  const ScalarType dtype = result_type_of(elements, test_elements);
  TORCH_CHECK_NOT_IMPLEMENTED(dtype != kBool && !c10::isComplexType(dtype),
                              "\"isin_default_cuda\" not implemented for '", dtype, "'");
  if (test_elements.numel() == 0) {
    out.fill_(invert);
    return;
  }
  const auto there = [&](const Tensor& t) {
    const Tensor moved = detail::empty(t.sizes(), dtype, out.device());
    moved.copy_(t);
    return moved;
  };
  const Tensor values = there(elements), tests = there(test_elements).view({-1});
  const Tensor sorted = std::get<0>(at::sort(tests, 0, false));
  const Tensor place = at::clamp(at::searchsorted(sorted, values.view({-1})), std::nullopt,
                                 Scalar(sorted.numel() - 1));
  const Tensor found =
      at::eq(at::index_select(sorted, 0, place), values.view({-1})).view(elements.sizes());
  out.copy_(invert ? at::logical_not(found) : found);
}

} // namespace at::native
