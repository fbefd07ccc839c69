// nonzero, masked_select and masked_scatter on CUDA: the positions of the true elements, found in
// order by counting tiles first. Their number decides the result's size, so the call waits for the
// device.
#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/GeneratedSupport.h>
#include <ATen/native/index/IndexPlan.h>
#include <ATen/native/index/Native.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/ne.h>

namespace at::native {
namespace {
using namespace cuda_index;
using cuda::blocks_for;
using cuda::Kernel;

constexpr const char* kProgram = "native/index/Indexing.cuh";
const Kernel kCounts(kProgram, "true_counts"), kPlaces(kProgram, "true_places"),
    kCoordinates(kProgram, "true_coordinates");
const Kernel kScan("native/sort/RadixSort.cuh", "radix_scan");
constexpr int64_t kTile = 2048;

Tensor truth_of(const Tensor& self) {
  return (self.scalar_type() == kBool ? self : at::ne(self, 0)).contiguous();
}

// The row-major positions of the true elements of a contiguous boolean tensor.
Tensor true_places(const Tensor& truth) {
  const int64_t n = truth.numel();
  if (n == 0) return detail::empty({0}, kLong, truth.device());
  const unsigned tiles = blocks_for(n, kTile);
  // One more than there are tiles: the scan puts the total there.
  const Tensor counts = detail::empty({static_cast<int64_t>(tiles) + 1}, kInt, truth.device());
  counts.zero_();
  const auto stream = cuda::current_stream();
  cuda::launch(kCounts, tiles, 256, 0, stream, truth.const_data_ptr(), counts.mutable_data_ptr(),
               n);
  cuda::launch(kScan, 1, 1024, 0, stream, counts.mutable_data_ptr(), counts.numel());
  const int64_t total = counts.select(0, tiles).item<int32_t>();
  Tensor places = detail::empty({total}, kLong, truth.device());
  if (total > 0)
    cuda::launch(kPlaces, tiles, 256, 0, stream, truth.const_data_ptr(), counts.const_data_ptr(),
                 places.mutable_data_ptr(), n);
  return places;
}

void check_mask(const Tensor& self, const Tensor& mask, const char* op) {
  TORCH_CHECK(mask.scalar_type() == kBool, op, ": expected BoolTensor for mask");
  cuda::check_same_device({&self, &mask});
}

} // namespace

Tensor nonzero_cuda(const Tensor& self) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.dim() <= kDims, "nonzero on CUDA of tensors with more than ",
                              kDims, " dimensions");
  const Tensor truth = truth_of(self);
  const Tensor places = true_places(truth);
  const int64_t total = places.numel();
  if (self.dim() == 1) return detail::view_of(places, {total, 1}, {1, total}, 0);
  Tensor result = detail::empty_strided({total, self.dim()}, {1, total}, kLong, self.device());
  if (total == 0 || self.dim() == 0) return result;
  DualWalk shape;
  shape.ndim = static_cast<int32_t>(self.dim());
  for (int64_t d = 0; d < self.dim(); ++d) shape.sizes[d] = self.size(d);
  cuda::launch(kCoordinates, blocks_for(total, 256), 256, 0, cuda::current_stream(),
               places.const_data_ptr(), result.mutable_data_ptr(), total, shape);
  return result;
}
Tensor& nonzero_out_cuda(const Tensor& self, Tensor& out) {
  TORCH_CHECK(out.scalar_type() == kLong,
              "nonzero: Expected out tensor to have scalar type Long but got scalar type",
              out.scalar_type());
  generated::store_out(out, nonzero_cuda(self));
  return out;
}

Tensor nonzero_static_cuda(const Tensor& self, int64_t size, int64_t fill_value) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  Tensor result = detail::empty({size, self.dim()}, kLong, self.device());
  result.fill_(fill_value);
  const Tensor found = nonzero_cuda(self);
  const int64_t kept = std::min(size, found.size(0));
  if (kept > 0 && self.dim() > 0) result.narrow(0, 0, kept).copy_(found.narrow(0, 0, kept));
  return result;
}

Tensor masked_select_cuda(const Tensor& self, const Tensor& mask) {
  check_mask(self, mask, "masked_select");
  const DimVector shape = broadcast_shapes(self.sizes(), mask.sizes());
  const Tensor places = true_places(mask.expand(shape).contiguous());
  const Tensor from = self.expand(shape).contiguous().view({c10::checked_numel(shape)});
  Tensor result = detail::empty({places.numel()}, self.scalar_type(), self.device());
  if (places.numel() > 0)
    read(plan_along("masked_select", from, result, 0, places, false), from, result);
  return result;
}
Tensor& masked_select_out_cuda(const Tensor& self, const Tensor& mask, Tensor& out) {
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  generated::store_out(out, masked_select_cuda(self, mask));
  return out;
}

Tensor& masked_scatter_cuda_(Tensor& self, const Tensor& mask, const Tensor& source) {
  masked_scatter_meta_(self, mask, source); // checks, and bumps the version
  const Tensor places = true_places(mask.expand(self.sizes()).contiguous());
  TORCH_CHECK(places.numel() <= source.numel(),
              "Number of elements of source < number of ones in mask");
  if (places.numel() == 0) return self;
  Tensor from = source.contiguous().view({source.numel()}).narrow(0, 0, places.numel());
  if (from.is_alias_of(self)) from = from.clone();
  const Tensor dense = self.contiguous();
  const Tensor target = dense.view({self.numel()});
  write(plan_along("masked_scatter_", target, from, 0, places, false), target, from);
  if (!dense.is_same(self)) self.copy_(dense);
  return self;
}

} // namespace at::native
