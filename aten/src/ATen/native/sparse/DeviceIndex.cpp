// See DeviceIndex.h.
#include <ATen/native/sparse/DeviceIndex.h>

#include <cstdlib>
#include <cstring>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/sparse/SparseTensor.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/add.h>
#include <ATen/ops/any.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros.h>

namespace at::sparse::on_device {
namespace {
TensorOptions longs(Device device) { return TensorOptions(kLong).device(device); }

Tensor sorted_place(const Tensor& sorted, const Tensor& wanted, bool right) {
  return at::searchsorted(sorted, wanted, false, right, std::nullopt, std::nullopt);
}
} // namespace

bool applies_to(const Tensor& list) {
  static const bool always = [] {
    const char* text = std::getenv("CRESSET_SPARSE_BY_OPERATORS");
    return text != nullptr && std::strcmp(text, "1") == 0;
  }();
  return always || !list.is_cpu();
}

Tensor list_of(IntArrayRef numbers, Device device) {
  Tensor list = detail::empty({static_cast<int64_t>(numbers.size())}, kLong);
  if (!numbers.empty())
    std::memcpy(list.data_ptr<int64_t>(), numbers.data(), numbers.size() * sizeof(int64_t));
  return moved_to(list, device, kLong);
}

bool any_true(const Tensor& mask) { return at::any(mask).item().toBool(); }

Tensor flat_indices(const Tensor& indices, IntArrayRef size) {
  Tensor flat = at::zeros({indices.size(1)}, longs(indices.device()));
  for (int64_t d = 0; d < indices.size(0); ++d)
    flat = at::add(at::mul(flat, Scalar(size[static_cast<size_t>(d)])), indices.select(0, d));
  return flat;
}

Tensor unflatten_indices(const Tensor& flat, IntArrayRef size) {
  const int64_t rows = static_cast<int64_t>(size.size());
  Tensor indices = detail::empty({rows, flat.numel()}, kLong, flat.device());
  if (flat.numel() == 0) return indices;
  Tensor left = flat;
  for (int64_t d = rows - 1; d >= 0; --d) {
    const int64_t extent = size[static_cast<size_t>(d)];
    TORCH_CHECK_INDEX(extent > 0, "element in a dimension of size 0");
    indices.select(0, d).copy_(at::remainder(left, Scalar(extent)));
    left = at::floor_divide(left, Scalar(extent));
  }
  return indices;
}

Distinct distinct_keys(const Tensor& keys) {
  const auto [distinct, number, counts] = at::_unique2(keys, true, true, false);
  return {distinct, number};
}

Found find_keys(const Tensor& sorted, const Tensor& wanted) {
  const int64_t known = sorted.numel();
  if (known == 0)
    return {at::zeros({wanted.numel()}, longs(wanted.device())),
            at::zeros({wanted.numel()}, TensorOptions(kBool).device(wanted.device()))};
  const Tensor place = at::clamp_max(sorted_place(sorted, wanted, false), Scalar(known - 1));
  return {place, at::eq(at::index_select(sorted, 0, place), wanted)};
}

Tensor starts_of_rows(const Tensor& rows, int64_t count) {
  const Tensor none = at::zeros({count + 1}, longs(rows.device()));
  const Tensor ones = at::ones({rows.numel()}, longs(rows.device()));
  const Tensor counts = at::index_add(none, 0, at::add(rows, Scalar(1)), ones);
  return at::cumsum(counts, 0);
}

Tensor rows_of_starts(const Tensor& starts, int64_t nnz) {
  const Tensor number = at::arange(nnz, longs(starts.device()));
  return at::sub(sorted_place(starts.to(kLong).contiguous(), number, true), Scalar(1));
}

bool has_bad_coordinates(const Tensor& indices, IntArrayRef size) {
  if (indices.numel() == 0) return false;
  const Tensor extents =
      list_of(size.slice(0, static_cast<size_t>(indices.size(0))), indices.device()).unsqueeze(1);
  return any_true(at::logical_or(at::lt(indices, Scalar(0)), at::ge(indices, extents)));
}

bool has_bad_starts(const Tensor& starts, const Tensor& plain, int64_t plain_size) {
  if (starts.numel() == 0) return false;
  const int64_t n = starts.size(-1) - 1;
  const Tensor ends = at::logical_or(at::ne(starts.select(-1, 0), Scalar(0)),
                                     at::ne(starts.select(-1, n), Scalar(plain.size(-1))));
  if (any_true(ends)) return true;
  if (any_true(at::lt(starts.narrow(-1, 1, n), starts.narrow(-1, 0, n)))) return true;
  return any_true(at::logical_or(at::lt(plain, Scalar(0)), at::ge(plain, Scalar(plain_size))));
}

Stretches stretches(const Tensor& start, const Tensor& count) {
  const Tensor owner = at::repeat_interleave(count, std::optional<int64_t>());
  const Tensor before = at::sub(at::cumsum(count, 0), count);
  const Tensor number = at::arange(owner.numel(), longs(start.device()));
  const Tensor shift = at::sub(start, before);
  return {owner, at::add(number, at::index_select(shift, 0, owner))};
}

Pairs equal_pairs(const Tensor& list, const Tensor& wanted) {
  const auto [sorted, order] = at::sort(list, std::optional<bool>(true), 0, false);
  const Tensor first = sorted_place(sorted, wanted, false);
  const Tensor count = at::sub(sorted_place(sorted, wanted, true), first);
  const Stretches all = stretches(first, count);
  return {all.owner, at::index_select(order, 0, all.position)};
}

} // namespace at::sparse::on_device
