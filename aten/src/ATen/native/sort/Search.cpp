// searchsorted and bucketize: binary search of each value in a sorted row.
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/sort/Native.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/parallel/Stretches.h>

#include <algorithm>

namespace at {
namespace native {
namespace {

void check_side(bool right, std::optional<std::string_view> side) {
  if (!side) return;
  TORCH_CHECK(*side == "left" || *side == "right",
              "torch.searchsorted(): side can only be 'left' or 'right' but got ", *side);
  TORCH_CHECK(!right || *side == "right", "torch.searchsorted(): side and right can't be set to "
                                          "opposites, got side of left while right was True");
}

void check_sorter(const Tensor& boundaries, const std::optional<Tensor>& sorter) {
  if (!sorter || !sorter->defined()) return;
  TORCH_CHECK(sorter->device() == boundaries.device(),
              "torch.searchsorted(): sorter and boundary tensors should have same device type");
  TORCH_CHECK(sorter->sizes() == boundaries.sizes(),
              "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
              "tensor ",
              boundaries.sizes(), " and got sorter tensor ", sorter->sizes());
  TORCH_CHECK(sorter->scalar_type() == kLong,
              "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ",
              sorter->scalar_type());
  // On CUDA the kernel checks.
  if (!sorter->is_cpu() || sorter->numel() == 0) return;
  const Tensor order = sorter->contiguous();
  const int64_t* first = order.data_ptr<int64_t>();
  const int64_t n = boundaries.size(-1);
  parallel_for(0, order.numel(), 32768, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      TORCH_CHECK(first[i] >= 0 && first[i] < n, "torch.searchsorted(): sorter index out of range");
  });
}

void check_shapes(const Tensor& boundaries, const Tensor& values) {
  TORCH_CHECK(boundaries.dim() != 0, "torch.searchsorted(): boundaries tensor should have positive "
                                     "dimension, but got 0 dimension");
  TORCH_CHECK(values.dim() > 0 || boundaries.dim() == 1,
              "torch.searchsorted(): input value can be a scalar only when boundaries tensor "
              "dimension is 1, but we got boundaries tensor dim(",
              boundaries.dim(), ") and input value's dim(", values.dim(), ") numel(",
              values.numel(), ")");
  bool fits = boundaries.dim() == 1 || boundaries.dim() == values.dim();
  for (int64_t d = 0; fits && boundaries.dim() > 1 && d + 1 < boundaries.dim(); ++d)
    fits = boundaries.size(d) == values.size(d);
  TORCH_CHECK(fits,
              "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
              "dimensions of boundaries tensor and input value tensor must match, but we got "
              "boundaries tensor ",
              boundaries.sizes(), " and input value tensor ", values.sizes());
}

// Position of the first element that is not below v (right: that is above v). Written so that NaN
// lies behind everything.
template <class T>
int64_t search(const T* row, const int64_t* order, int64_t n, const T& v, bool right) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const T& m = row[order != nullptr ? order[middle] : middle];
    const bool at_or_after = right ? m > v : m >= v;
    if (at_or_after)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

template <class T, class I> void search_all(const Tensor& boundaries, const int64_t* order,
                                            const Tensor& values, bool right, const Tensor& out) {
  const T* rows = static_cast<const T*>(boundaries.data_ptr());
  const T* from = static_cast<const T*>(values.data_ptr());
  I* to = static_cast<I*>(out.data_ptr());
  const int64_t n = boundaries.size(-1);
  const bool one_row = boundaries.dim() == 1;
  const int64_t per_row = one_row ? values.numel() : values.size(-1);
  parallel_for(0, values.numel(), 2048, [&](int64_t begin, int64_t end) {
    serial_for(begin, end, 64, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t start = one_row ? 0 : i / per_row * n;
        to[i] = static_cast<I>(
            search(rows + start, order != nullptr ? order + start : nullptr, n, from[i], right));
      }
    });
  });
}

} // namespace
} // namespace native

namespace meta {

void meta_searchsorted(OutputBuilder& out, const Tensor& sorted_sequence, const Tensor& self,
                       bool out_int32, bool right, std::optional<std::string_view> side,
                       const std::optional<Tensor>& sorter) {
  native::check_side(right, side);
  native::check_shapes(sorted_sequence, self);
  native::check_sorter(sorted_sequence, sorter);
  TORCH_CHECK(
      sorted_sequence.device() == self.device() || self.dim() == 0,
      "torch.searchsorted(): boundaries and input value tensors should have same device type, "
      "but got boundaries tensor device type ",
      sorted_sequence.device(), " and input value tensor device type ", self.device());
  const ScalarType dtype = out_int32 ? kInt : kLong;
  TORCH_CHECK(!out_int32 || sorted_sequence.size(-1) <= INT32_MAX,
              "torch.searchsorted(): the size of boundaries' last dimension should be less than ",
              INT32_MAX, ", but we got ", sorted_sequence.size(-1));
  const Tensor& given = out.given(0);
  TORCH_CHECK(!given.defined() || given.scalar_type() == dtype,
              "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or "
              "Long(int64) depending on whether out_int32 flag is True, but we got output tensor's "
              "dtype ",
              given.defined() ? given.scalar_type() : dtype, " and out_int32 flag is ",
              out_int32 ? "True" : "False");
  out.set_on(0, self.sizes(), dtype, sorted_sequence.device());
}

} // namespace meta

namespace native {

void searchsorted_cpu(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                      std::optional<std::string_view> side, const std::optional<Tensor>& sorter,
                      const Tensor& out) {
  if (self.numel() == 0) return;
  const ScalarType dtype = result_type_of(sorted_sequence, self);
  const Tensor boundaries = sorted_sequence.to(dtype).contiguous();
  const Tensor values = self.to(dtype).contiguous();
  const Tensor order = sorter && sorter->defined() ? sorter->contiguous() : Tensor();
  const int64_t* order_data =
      order.defined() && order.numel() > 0 ? order.data_ptr<int64_t>() : nullptr;
  const bool from_right = right || (side && *side == "right");
  dtype_switch<RealTypes>(dtype, "searchsorted_out_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (out_int32)
      search_all<T, int32_t>(boundaries, order_data, values, from_right, out);
    else
      search_all<T, int64_t>(boundaries, order_data, values, from_right, out);
  });
}

Tensor searchsorted_scalar(const Tensor& sorted_sequence, const Scalar& self, bool out_int32,
                           bool right, std::optional<std::string_view> side,
                           const std::optional<Tensor>& sorter) {
  return at::searchsorted(sorted_sequence, detail::wrapped_number(self), out_int32, right, side,
                          sorter);
}

namespace {
void check_boundaries(const Tensor& boundaries) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(",
              boundaries.dim(), ")");
}
} // namespace

Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  check_boundaries(boundaries);
  return at::searchsorted(boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}

Tensor& bucketize_out(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right,
                      Tensor& out) {
  check_boundaries(boundaries);
  return at::searchsorted_out(out, boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}

Tensor bucketize_scalar(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  check_boundaries(boundaries);
  return at::searchsorted(boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}

} // namespace native
} // namespace at
