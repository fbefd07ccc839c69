// Views that cut a tensor into pieces along one dimension. The pieces are made directly, one tensor
// object each; composites (chunk, tensor_split, ...) only work out the sizes and go through the
// dispatcher so that gradients flow.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>
#include <ATen/parallel/Stretches.h>
#include <c10/core/MemoryLimit.h>

#include <algorithm>

#include <ATen/ops/split.h>
#include <ATen/ops/split_with_sizes.h>
#include <ATen/ops/tensor_split.h>
#include <ATen/ops/unsafe_split.h>
#include <ATen/ops/unsafe_split_with_sizes.h>

namespace at::native {
namespace {

using Tensors = std::vector<Tensor>;

// The piece [start, start + length) of dimension `dim`. `sizes` is a copy of self's, used as
// scratch.
Tensor piece(const Tensor& self, int64_t dim, int64_t start, int64_t length, DimVector& sizes) {
  sizes[dim] = length;
  return detail::view_of(self, sizes, self.strides(),
                         self.storage_offset() + start * self.strides()[dim]);
}

int64_t pieces_of(const Tensor& self, int64_t split_size, int64_t dim) {
  TORCH_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  TORCH_CHECK(split_size >= 0,
              "split expects split_size be non-negative, but got split_size=", split_size);
  const int64_t size = self.size(dim);
  TORCH_CHECK(split_size > 0 || size == 0,
              "split_size can only be 0 if dimension size is 0, but got dimension size of ", size);
  return split_size == 0 || size == 0 ? 1 : (size - 1) / split_size + 1;
}

// What making a view costs, for Steps.
constexpr int64_t kViewSteps = 128;

// An empty list with room for `count` views. More than the machine can hold is refused before the
// memory runs out while they are made.
Tensors room_for(int64_t count) {
  const int64_t most = c10::detail::memory_limit() / static_cast<int64_t>(sizeof(TensorImpl));
  if (count > most)
    throw c10::OutOfMemoryError(c10::str("out of memory: ", count, " views were asked for, and ",
                                         most, " of them fill the memory of this machine"));
  Tensors out;
  out.reserve(static_cast<size_t>(count));
  return out;
}

Tensors split_equal(const Tensor& self, int64_t split_size, int64_t dim) {
  const int64_t count = pieces_of(self, split_size, dim);
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t size = self.size(d);
  DimVector sizes(self.sizes());
  Tensors out = room_for(count);
  Steps steps;
  for (int64_t i = 0; i < count; ++i, steps.add(kViewSteps)) {
    const int64_t start = i * split_size;
    out.push_back(piece(self, d, start, std::min(split_size, size - start), sizes));
  }
  return out;
}

Tensors split_sizes_given(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  TORCH_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t size = self.size(d);
  int64_t total = 0;
  bool overflow = false;
  for (int64_t s : split_sizes) {
    TORCH_CHECK(
        s >= 0,
        "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=",
        split_sizes);
    overflow |= c10::add_overflows(total, s, &total);
  }
  TORCH_CHECK(!overflow && total == size, "split_with_sizes expects split_sizes to sum exactly to ",
              size, " (input tensor's size at dimension ", dim,
              "), but got split_sizes=", split_sizes);
  DimVector sizes(self.sizes());
  Tensors out;
  out.reserve(split_sizes.size());
  int64_t start = 0;
  Steps steps;
  for (int64_t s : split_sizes) {
    steps.add(kViewSteps);
    out.push_back(piece(self, d, start, s, sizes));
    start += s;
  }
  return out;
}

// Autograd refuses in-place writes to one of several views made by one call.
Tensors mark_multi_output(Tensors views) {
  for (Tensor& view : views) {
    TensorImpl& impl = *view.unsafeGetTensorImpl();
    if (impl.view_origin == TensorImpl::ViewOrigin::Default)
      impl.view_origin = TensorImpl::ViewOrigin::MultiOutput;
  }
  return views;
}

// Pieces that share memory with self but are no views of it: the caller promises not to write.
Tensors forget_base(Tensors views) {
  for (Tensor& view : views) view = Tensor(view.unsafeGetTensorImpl()->shallow_copy());
  return views;
}

// More empty pieces than this can only be a mistake, and would exhaust the memory.
constexpr int64_t kMaxEmptyPieces = int64_t(1) << 20;

// Sizes of `chunks` pieces; 0 where the dimension is empty.
int64_t chunk_length(const Tensor& self, int64_t chunks, int64_t dim) {
  TORCH_CHECK(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  TORCH_CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  const int64_t size = self.size(dim);
  TORCH_CHECK(size > 0 || chunks <= kMaxEmptyPieces,
              "chunk: too many chunks of an empty dimension: ", chunks);
  return size == 0 ? 0 : (size - 1) / chunks + 1;
}

} // namespace

Tensors unbind(const Tensor& self, int64_t dim) {
  TORCH_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dim,
                    " but tensor has no dimensions");
  const int64_t d = wrap_dim(dim, self.dim());
  const IntArrayRef old_sizes = self.sizes(), old_strides = self.strides();
  DimVector sizes(old_sizes), strides(old_strides);
  sizes.erase(sizes.begin() + d);
  strides.erase(strides.begin() + d);
  Tensors out = room_for(old_sizes[d]);
  Steps steps;
  for (int64_t i = 0; i < old_sizes[d]; ++i, steps.add(kViewSteps))
    out.push_back(
        detail::view_of(self, sizes, strides, self.storage_offset() + i * old_strides[d]));
  return mark_multi_output(std::move(out));
}

Tensors split(const Tensor& self, int64_t split_size, int64_t dim) {
  return mark_multi_output(split_equal(self, split_size, dim));
}
Tensors split(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  return at::split_with_sizes(self, split_sizes, dim);
}
Tensors split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  return mark_multi_output(split_sizes_given(self, split_sizes, dim));
}
Tensors unsafe_split(const Tensor& self, int64_t split_size, int64_t dim) {
  return forget_base(split_equal(self, split_size, dim));
}
Tensors unsafe_split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  return forget_base(split_sizes_given(self, split_sizes, dim));
}

Tensors chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  const int64_t length = chunk_length(self, chunks, dim);
  // An empty dimension still gives as many pieces as were asked for.
  if (length == 0)
    return at::split_with_sizes(self, DimVector(static_cast<size_t>(chunks), 0), dim);
  return at::split(self, length, dim);
}
Tensors unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  const int64_t length = chunk_length(self, chunks, dim);
  if (length == 0)
    return at::unsafe_split_with_sizes(self, DimVector(static_cast<size_t>(chunks), 0), dim);
  return at::unsafe_split(self, length, dim);
}

// ---- tensor_split and NumPy's names
namespace {
void check_tensor_split(const Tensor& self) {
  TORCH_CHECK(self.dim() > 0,
              "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ",
              self.dim(), " dims");
}
} // namespace

Tensors tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  check_tensor_split(self);
  const int64_t d = wrap_dim(dim, self.dim());
  TORCH_CHECK(sections > 0, "number of sections must be larger than 0, got ", sections);
  const int64_t size = self.size(d), small = size / sections, larger = size % sections;
  TORCH_CHECK(small > 0 || sections <= kMaxEmptyPieces,
              "tensor_split: too many sections: ", sections);
  Tensors out = room_for(sections);
  int64_t start = 0;
  Steps steps;
  for (int64_t i = 0; i < sections; ++i, steps.add(kViewSteps)) {
    const int64_t end = start + small + (i < larger);
    out.push_back(self.slice(d, start, end, 1));
    start = end;
  }
  return out;
}

Tensors tensor_split(const Tensor& self, IntArrayRef indices, int64_t dim) {
  check_tensor_split(self);
  const int64_t d = wrap_dim(dim, self.dim());
  Tensors out;
  out.reserve(indices.size() + 1);
  int64_t start = 0;
  Steps steps;
  for (int64_t end : indices) {
    steps.add(kViewSteps);
    out.push_back(self.slice(d, start, end, 1));
    start = end;
  }
  out.push_back(self.slice(d, start, self.size(d), 1));
  return out;
}

Tensors tensor_split(const Tensor& self, const Tensor& spec, int64_t dim) {
  check_tensor_split(self);
  TORCH_CHECK(spec.device().is_cpu(),
              "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on ",
              spec.device());
  TORCH_CHECK(spec.layout() == kStrided,
              "tensor_split expected tensor_indices_or_sections to be strided, but its layout is ",
              spec.layout());
  TORCH_CHECK(spec.scalar_type() == kLong,
              "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ",
              spec.scalar_type());
  TORCH_CHECK(spec.dim() <= 1,
              "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
              "one-dimensional tensor, but got a tensor with ",
              spec.dim(), " dims");
  if (spec.dim() == 0) return at::tensor_split(self, spec.item<int64_t>(), dim);
  DimVector places;
  for (int64_t i = 0; i < spec.numel(); ++i) places.push_back(spec.select(0, i).item<int64_t>());
  return at::tensor_split(self, IntArrayRef(places), dim);
}

namespace {
void check_rank(const Tensor& self, int64_t least, const char* name) {
  TORCH_CHECK(self.dim() >= least, "torch.", name, " requires a tensor with at least ", least,
              " dimension, but got a tensor with ", self.dim(), " dimensions!");
}
Tensors split_evenly(const Tensor& self, int64_t sections, int64_t dim, const char* name) {
  TORCH_CHECK(sections > 0 && self.size(dim) % sections == 0, "torch.", name,
              " attempted to split along dimension ", dim, ", but the size of the dimension ",
              self.size(dim), " is not divisible by the split_size ", sections, "!");
  return at::tensor_split(self, sections, dim);
}
} // namespace

Tensors hsplit(const Tensor& self, int64_t sections) {
  check_rank(self, 1, "hsplit");
  return split_evenly(self, sections, self.dim() == 1 ? 0 : 1, "hsplit");
}
Tensors hsplit(const Tensor& self, IntArrayRef indices) {
  check_rank(self, 1, "hsplit");
  return at::tensor_split(self, indices, self.dim() == 1 ? 0 : 1);
}
Tensors vsplit(const Tensor& self, int64_t sections) {
  check_rank(self, 2, "vsplit");
  return split_evenly(self, sections, 0, "vsplit");
}
Tensors vsplit(const Tensor& self, IntArrayRef indices) {
  check_rank(self, 2, "vsplit");
  return at::tensor_split(self, indices, 0);
}
Tensors dsplit(const Tensor& self, int64_t sections) {
  check_rank(self, 3, "dsplit");
  return split_evenly(self, sections, 2, "dsplit");
}
Tensors dsplit(const Tensor& self, IntArrayRef indices) {
  check_rank(self, 3, "dsplit");
  return at::tensor_split(self, indices, 2);
}

} // namespace at::native
