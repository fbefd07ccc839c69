// Unpooling: values put back to the places their maxima came from, the rest zero.
#include <ATen/core/Context.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/pool/Native.h>
#include <ATen/parallel/Stretches.h>
#include <c10/core/MemoryFormat.h>

#include <algorithm>
#include <string>

namespace at::native {
namespace {

// "4x4"
std::string crossed(IntArrayRef sizes) {
  std::string out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i) out += "x";
    out += std::to_string(sizes[i]);
  }
  return out;
}

[[noreturn]] C10_NOINLINE void invalid_place(int64_t place, IntArrayRef output_size) {
  TORCH_CHECK(false, "Found an invalid max index: ", place, " (output volumes are of size ",
              crossed(output_size), ")");
}

// Indices may repeat (overlapping windows): the last one in a plane stays, so planes are the unit
// of work.
void unpool(const Tensor& self, const Tensor& indices, IntArrayRef output_size, const Tensor& out) {
  if (out.numel() == 0 && self.numel() == 0) return;
  const Tensor x = self.contiguous(), places = indices.contiguous();
  const Tensor target = out.is_contiguous() ? out : detail::empty(out.sizes(), out.scalar_type());
  const int64_t large = c10::checked_numel(output_size);
  const int64_t small =
      c10::checked_numel(self.sizes().slice(self.dim() - output_size.size(), output_size.size()));
  const int64_t planes = small == 0 ? 0 : self.numel() / small;
  const int64_t* index = places.data_ptr<int64_t>();
  itemsize_switch(self.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(x.data_ptr());
    T* to = static_cast<T*>(target.data_ptr());
    const BlockingRegion unlocked;
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(large, 1));
    parallel_for(0, planes, grain, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        T* whole = to + plane * large;
        parallel_zero(whole, large * static_cast<int64_t>(sizeof(T)));
        serial_for(plane * small, (plane + 1) * small, 4, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) {
            const int64_t place = index[i];
            // Negative places are large ones, too.
            if (C10_UNLIKELY(static_cast<uint64_t>(place) >= static_cast<uint64_t>(large)))
              invalid_place(place, output_size);
            whole[place] = from[i];
          }
        });
      }
    });
  });
  if (!target.is_same(out)) out.copy_(target);
}

} // namespace

void max_unpool2d_cpu(const Tensor& self, const Tensor& indices, IntArrayRef output_size,
                      const Tensor& out) {
  globalContext().alert_not_deterministic("max_unpooling2d_forward_out");
  unpool(self, indices, output_size, out);
}
void max_unpool3d_cpu(const Tensor& self, const Tensor& indices, IntArrayRef output_size,
                      IntArrayRef, IntArrayRef, const Tensor& out) {
  globalContext().alert_not_deterministic("max_unpooling3d_forward_out");
  unpool(self, indices, output_size, out);
}

} // namespace at::native

namespace at::meta {
namespace {

void unpool_shape(OutputBuilder& out, const Tensor& self, const Tensor& indices,
                  IntArrayRef output_size, const char* name) {
  TORCH_CHECK(indices.scalar_type() == kLong,
              "elements in indices should be type int64 but got: ", indices.scalar_type());
  TORCH_CHECK(self.sizes().equals(indices.sizes()),
              "Expected shape of indices to be same as that of the input tensor (", self.sizes(),
              ") but got indices tensor with shape: ", indices.sizes());
  const int64_t dims = static_cast<int64_t>(output_size.size());
  for (int64_t d = self.dim() == dims + 2 ? 1 : 0; d < self.dim(); ++d)
    TORCH_CHECK(self.size(d) > 0, name,
                "(): Expected input to have non-zero size for non-batch dimensions, but got ",
                self.sizes(), " with dimension ", d, " being empty.");
  DimVector sizes(self.sizes());
  for (int64_t i = 0; i < dims; ++i) {
    TORCH_CHECK(output_size[i] >= 0, "Trying to create tensor with negative dimension ",
                output_size[i], ": ", output_size);
    sizes[self.dim() - dims + i] = output_size[i];
  }
  if (self.dim() == 4 && dims == 2 && self.suggest_memory_format() == MemoryFormat::ChannelsLast) {
    out.set(0, sizes, self.scalar_type(), IntArrayRef(c10::channels_last_strides(sizes)));
  } else {
    out.set(0, sizes, self.scalar_type());
  }
}

} // namespace

void meta_max_unpool2d(OutputBuilder& out, const Tensor& self, const Tensor& indices,
                       IntArrayRef output_size) {
  TORCH_CHECK(output_size.size() == 2,
              "There should be exactly two elements (height, width) in output_size, but got ",
              output_size.size(), " elements.");
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4,
              "Input to max_unpooling2d should be a 3d or 4d Tensor, but got a tensor with ",
              self.dim(), " dimensions.");
  unpool_shape(out, self, indices, output_size, "max_unpooling2d_forward_out_cpu");
}

void meta_max_unpool3d(OutputBuilder& out, const Tensor& self, const Tensor& indices,
                       IntArrayRef output_size, IntArrayRef stride, IntArrayRef padding) {
  const auto check_three = [](IntArrayRef list, const char* where) {
    TORCH_CHECK(list.size() == 3,
                "There should be exactly three elements (depth, height, width) in ", where,
                list.size(), " elements.");
  };
  check_three(output_size, "output_size, but got ");
  const int64_t rank = self.dim();
  TORCH_CHECK(rank == 4 || rank == 5,
              "Input to max_unpooling3d should be a 4d or 5d Tensor, but got a tensor with ", rank,
              " dimensions.");
  check_three(stride, "stride, but got: ");
  check_three(padding, "padding, but got: ");
  TORCH_CHECK(std::min({stride[0], stride[1], stride[2]}) > 0,
              "strides should be greater than zero, but got stride: ", stride);
  unpool_shape(out, self, indices, output_size, "max_unpooling3d_forward_out_cpu");
}

} // namespace at::meta
