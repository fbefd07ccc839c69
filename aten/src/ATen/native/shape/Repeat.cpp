// Copies with elements repeated: whole tensors side by side (repeat, tile) or each element in place
// (repeat_interleave).
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/PrivateCopy.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>
#include <ATen/parallel/Stretches.h>

#include <ATen/ops/repeat.h>
#include <ATen/ops/repeat_interleave.h>

namespace at::native {

// The result seen with two dimensions for each of the input's, (repeat, size), is an expanded copy.
Tensor repeat(const Tensor& self, IntArrayRef repeats) {
  const size_t rank = repeats.size(), ndim = static_cast<size_t>(self.dim());
  TORCH_CHECK(
      rank >= ndim,
      "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  DimVector sizes(rank), spread_sizes, from_strides;
  for (size_t i = 0; i < rank; ++i) {
    const bool added = i < rank - ndim;
    const int64_t size = added ? 1 : self.sizes()[i - (rank - ndim)];
    TORCH_CHECK(!c10::mul_overflows(size, repeats[i], &sizes[i]),
                "repeat: the result is too large");
    spread_sizes.push_back(repeats[i]);
    spread_sizes.push_back(size);
    from_strides.push_back(0);
    from_strides.push_back(added ? 0 : self.strides()[i - (rank - ndim)]);
  }
  for (size_t i = 0; i < rank; ++i)
    TORCH_CHECK(repeats[i] >= 0, "Trying to create tensor with negative dimension ", sizes[i], ": ",
                IntArrayRef(sizes));
  const Tensor out = detail::empty(sizes, self.scalar_type(), self.device());
  if (out.numel() == 0) return out;
  const DimVector to_strides = c10::contiguous_strides(spread_sizes);
  detail::view_of(out, spread_sizes, to_strides, 0)
      .copy_(detail::view_of(self, spread_sizes, from_strides, self.storage_offset()));
  return out;
}

Tensor tile(const Tensor& self, IntArrayRef dims) {
  DimVector repeats;
  for (int64_t missing = self.dim() - static_cast<int64_t>(dims.size()); missing > 0; --missing)
    repeats.push_back(1);
  for (int64_t d : dims) repeats.push_back(d);
  return at::_ops::repeat::call(self, c10::as_symint_array(repeats));
}

// ---- repeat_interleave
namespace {

template <class T>
Tensor interleaved_positions(const Tensor& repeats, std::optional<int64_t> output_size) {
  const Tensor counts = private_copy(repeats);
  const T* count = counts.const_data_ptr<T>();
  const int64_t n = counts.numel();
  int64_t total = 0;
  Steps steps;
  for (int64_t i = 0; i < n; ++i, steps.add(1)) {
    TORCH_CHECK(count[i] >= 0, "repeats can not be negative");
    TORCH_CHECK(!c10::add_overflows(total, count[i], &total),
                "repeat_interleave: the result is too large");
  }
  TORCH_CHECK(!output_size || *output_size == total, "allocated size does not match required size");
  const Tensor out = detail::empty({total}, repeats.scalar_type());
  T* to = out.data_ptr<T>();
  for (int64_t i = 0; i < n; ++i, steps.add(1))
    for (T k = 0; k < count[i]; ++k, steps.add(1)) *to++ = static_cast<T>(i);
  return out;
}

} // namespace

Tensor repeat_interleave_cpu(const Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  if (repeats.size(0) == 0) return detail::empty({0}, repeats.scalar_type());
  Tensor out;
  dtype_switch<Types<int32_t, int64_t>>(
      repeats.scalar_type(), "repeat_interleave_cpu", [&](auto tag) {
        out = interleaved_positions<typename decltype(tag)::type>(repeats, output_size);
      });
  return out;
}

// The counts are unknown there, so the caller has to say how many elements there will be.
Tensor repeat_interleave_meta(const Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(output_size, "repeat_interleave: on the meta device output_size must be given");
  return detail::empty({*output_size}, repeats.scalar_type(), repeats.device());
}

Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  const Tensor input = dim ? self : self.flatten();
  TORCH_CHECK(repeats >= 0, "Repeats must be non-negative");
  const int64_t d = wrap_dim(dim.value_or(0), input.dim());
  const Tensor column = input.unsqueeze(d + 1);
  DimVector sizes(static_cast<size_t>(column.dim()), -1);
  sizes[static_cast<size_t>(d + 1)] = repeats;
  if (output_size || !input.sym_size(d).is_symbolic()) {
    int64_t total = 0;
    TORCH_CHECK(!c10::mul_overflows(column.size(d), repeats, &total),
                "repeat_interleave: the result is too large");
    TORCH_CHECK(!output_size || *output_size == total,
                "repeat_interleave: Invalid output_size, expected ", total, " but got ",
                output_size.value_or(0));
  }
  return column.expand(sizes).clone(MemoryFormat::Contiguous).flatten(d, d + 1);
}

} // namespace at::native
