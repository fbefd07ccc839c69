// Indexing by the position in row-major order: take, put, and take_along_dim, which is a gather
// with broadcasting.
#include <ATen/core/Context.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/Checks.h>
#include <ATen/native/index/IndexUtil.h>
#include <ATen/native/index/Native.h>
#include <ATen/native/index/RowLoops.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/put.h>
#include <ATen/ops/remainder.h>
#include <ATen/parallel/Parallel.h>

namespace at {
namespace native {
namespace {

[[noreturn]] void throw_flat_range(int64_t index, int64_t, int64_t size) {
  TORCH_CHECK_INDEX(false, "out of range: tried to access index ", index, " on a tensor of ", size,
                    " elements.");
}

// Byte offsets of the elements of self at the given row-major positions.
void flat_offsets(const Tensor& self, const Tensor& positions, Offsets& offsets) {
  const bool dense = self.is_contiguous();
  const int64_t n = positions.numel(), itemsize = self.itemsize();
  index_offsets(positions.data_ptr<int64_t>(), n, self.numel(), 0, dense ? itemsize : 1, true,
                throw_flat_range, offsets);
  if (dense) return;
  const IntArrayRef sizes = self.sizes(), strides = self.strides();
  int64_t* data = offsets.data();
  parallel_for(0, n, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = data[i], offset = 0;
      for (size_t d = sizes.size(); d-- > 0;) {
        offset += rest % sizes[d] * strides[d];
        rest /= sizes[d];
      }
      data[i] = offset * itemsize;
    }
  });
}

RowWalk flat_walk(const Tensor& self, const Offsets& offsets) {
  RowWalk walk;
  walk.count = static_cast<int64_t>(offsets.size());
  walk.offsets = offsets.data();
  walk.linear_stride = self.itemsize();
  walk.itemsize = self.itemsize();
  walk.disjoint = surely_disjoint(self);
  return walk;
}

void check_put(const Tensor& self, const Tensor& index, const Tensor& source) {
  Checker("put_()")
      .index_is_long(index)
      .same_dtype({{"self", self}, {"source", source}})
      .same_device({{"self", self}, {"index", index}, {"source", source}});
  const int64_t places = index.numel(), values = source.numel();
  TORCH_CHECK_INDEX(places == values,
                    "put_(): Expected source and index to have the same number of elements, but "
                    "got source.numel() = ",
                    values, ", index.numel() = ", places);
  TORCH_CHECK_INDEX(places == 0 || self.numel() > 0,
                    "put_(): Tried to put elements into an empty tensor");
  check_writes_apart(self, index, source);
}

} // namespace
} // namespace native

namespace meta {

void meta_take(OutputBuilder& out, const Tensor& self, const Tensor& index) {
  const native::Checker check("take()");
  check.index_is_long(index);
  TORCH_CHECK_INDEX(index.numel() == 0 || self.numel() > 0,
                    "take(): tried to take from an empty tensor");
  check.same_device({{"self", self}, {"index", index}});
  const Tensor& target = out.given(0);
  if (target.defined()) {
    check.same_dtype({{"self", self}, {"out", target}});
    native::check_writes_apart(target, index, self);
  }
  out.set_on(0, index.sizes(), self.scalar_type(), self.device());
}

} // namespace meta

namespace native {

void take_cpu(const Tensor& self, const Tensor& index, const Tensor& out) {
  const Tensor positions = long_contiguous(index);
  Offsets offsets;
  flat_offsets(self, positions, offsets);
  run_independent(flat_walk(self, offsets), bytes_of(self), bytes_of(out),
                  move_loops<false>(self.itemsize()));
}

Tensor& put_cpu_(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  if (!accumulate) globalContext().alert_not_deterministic("put_");
  check_put(self, index, source);
  const Tensor positions = long_contiguous(index);
  const Tensor from = source.contiguous();
  Offsets offsets;
  flat_offsets(self, positions, offsets);
  const RowLoops loops = accumulate ? add_loops(self.scalar_type(), "take_put_cpu")
                                    : move_loops<true>(self.itemsize());
  run_ordered(flat_walk(self, offsets), bytes_of(self), bytes_of(from), loops);
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Tensor& put_meta_(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  if (!accumulate) globalContext().alert_not_deterministic("put_");
  static_cast<void>(accumulate);
  check_put(self, index, source);
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  Tensor result = self.clone();
  return at::_ops::put_::call(result, index, source, accumulate);
}

namespace {

void check_along(const Tensor& indices) {
  TORCH_CHECK(indices.scalar_type() == kLong,
              "torch.take_along_dim(): dtype of indices should be Long but got ",
              indices.scalar_type());
}

// self, indices and dim of the gather that take_along_dim is.
struct AlongDim {
  Tensor self;
  Tensor indices;
  int64_t dim;
};

AlongDim along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  check_along(indices);
  if (!dim) return {self.reshape({-1}), indices.reshape({-1}), 0};
  TORCH_CHECK(
      self.dim() == indices.dim(),
      "torch.take_along_dim(): input and indices should have the same number of dimensions, "
      "but got ",
      self.dim(), " dimensions for input, and ", indices.dim(), " dimensions for indices");
  const int64_t d = wrap_dim(*dim, self.dim());
  if (self.dim() == 0) return {self, indices, d};
  DimVector self_sizes(self.sizes()), index_sizes(indices.sizes());
  self_sizes[d] = 1;
  index_sizes[d] = 1;
  DimVector shape = broadcast_shapes(self_sizes, index_sizes);
  shape[d] = indices.size(d);
  // Indices count modulo the size, so that negative ones count from the end.
  const Tensor broadcast_indices = indices.expand(shape);
  shape[d] = self.size(d);
  const Tensor broadcast_self = self.expand(shape);
  if (self.size(d) == 0) return {broadcast_self, broadcast_indices, d};
  return {broadcast_self, at::remainder(broadcast_indices, Scalar(self.size(d))), d};
}

} // namespace

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  const AlongDim a = along_dim(self, indices, dim);
  return at::gather(a.self, a.dim, a.indices);
}

Tensor& take_along_dim_out(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim,
                           Tensor& out) {
  const AlongDim a = along_dim(self, indices, dim);
  return at::gather_out(out, a.self, a.dim, a.indices);
}

} // namespace native
} // namespace at
