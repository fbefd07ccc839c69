// im2col and col2im (F.unfold and F.fold): sliding windows as columns, and the sum of columns back
// into images. Both use the window loops of the convolution.
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/conv/Columns.h>
#include <ATen/native/conv/FoldGeometry.h>
#include <ATen/native/conv/Native.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {
namespace {

using FoldTypes = Concat<FloatingAndComplexTypes, Types<bool>>::type;

void check_pair(IntArrayRef v, const char* name) {
  TORCH_CHECK(v.size() == 2, "It is expected ", name, " equals to 2, but got size ", v.size());
}

void check_params(IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
                  IntArrayRef stride) {
  check_pair(kernel, "kernel_size");
  check_pair(dilation, "dilation");
  check_pair(padding, "padding");
  check_pair(stride, "stride");
  TORCH_CHECK(kernel[0] > 0 && kernel[1] > 0,
              "kernel size should be greater than zero, but got kernel_height: ", kernel[0],
              " kernel_width: ", kernel[1]);
  TORCH_CHECK(dilation[0] > 0 && dilation[1] > 0,
              "dilation should be greater than zero, but got dilation_height: ", dilation[0],
              " dilation_width: ", dilation[1]);
  TORCH_CHECK(padding[0] >= 0 && padding[1] >= 0,
              "padding should be non-negative, but got pad_height: ", padding[0],
              " pad_width: ", padding[1]);
  TORCH_CHECK(stride[0] > 0 && stride[1] > 0,
              "stride should be greater than zero, but got stride_height: ", stride[0],
              " stride_width: ", stride[1]);
}

// The windows as the element at one place of the kernel sees them: a kernel of one element.
ConvGeometry one_place(const ConvGeometry& g, int64_t place) {
  ConvGeometry one = g;
  for (int d = 2; d >= 0; --d) {
    one.padding[d] -= place % g.kernel[d] * g.dilation[d];
    one.kernel[d] = 1;
    place /= g.kernel[d];
  }
  return one;
}

// The type columns are moved as.
template <class T> using column_t = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

} // namespace

void im2col_cpu(const Tensor& self, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
                IntArrayRef stride, const Tensor& out) {
  const ConvGeometry g = unfold_geometry(self, kernel, dilation, padding, stride);
  const Tensor x = self.contiguous();
  const Tensor target = out.is_contiguous() ? out : out.contiguous();
  dtype_switch<FoldTypes>(self.scalar_type(), "im2col_out_cpu", [&](auto tag) {
    using T = column_t<typename decltype(tag)::type>;
    if (out.numel() == 0) return;
    const T* from = static_cast<const T*>(x.data_ptr());
    T* to = static_cast<T*>(target.data_ptr());
    const int64_t positions = g.out_plane(), rows = g.kernel_volume();
    const BlockingRegion unlocked;
    if (positions <= kStretch) {
      parallel_for(0, g.n * g.c, 1, [&](int64_t begin, int64_t end) {
        image_to_columns(g, from + begin * g.in_plane(), end - begin, 0, positions,
                         to + begin * rows * positions);
      });
      return;
    }
    // Large planes are cut: a part of the windows at one place of the kernel at a time.
    const int64_t parts = (positions + kStretch - 1) / kStretch;
    parallel_for(0, g.n * g.c * rows * parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % parts * kStretch, row = i / parts;
        image_to_columns(one_place(g, row % rows), from + row / rows * g.in_plane(), 1, first,
                         std::min(positions, first + kStretch), to + row * positions + first);
      }
    });
  });
  if (!target.is_same(out)) out.copy_(target);
}

void col2im_cpu(const Tensor& self, IntArrayRef size, IntArrayRef kernel, IntArrayRef dilation,
                IntArrayRef padding, IntArrayRef stride, const Tensor& out) {
  const ConvGeometry g = fold_geometry(self, size, kernel, dilation, padding, stride);
  const Tensor x = self.contiguous();
  const Tensor target = out.is_contiguous() ? out : out.contiguous();
  dtype_switch<FoldTypes>(self.scalar_type(), "col2im_out_cpu", [&](auto tag) {
    using D = typename decltype(tag)::type;
    using T = column_t<D>;
    if (out.numel() == 0) return;
    const T* from = static_cast<const T*>(x.data_ptr());
    T* to = static_cast<T*>(target.data_ptr());
    const int64_t positions = g.out_plane(), rows = g.kernel_volume(), plane = g.in_plane();
    const BlockingRegion unlocked;
    parallel_for(0, g.n * g.c, 1, [&](int64_t begin, int64_t end) {
      T* image = to + begin * plane;
      T* image_end = to + end * plane;
      std::fill(image, image_end, T(0));
      if constexpr (std::is_same_v<D, bool>) {
        // A count in one byte could wrap to zero, hence "or" instead of a sum.
        for (int64_t c = begin; c < end; ++c)
          for_kernel(g, [&](int64_t, int64_t kh, int64_t kw, int64_t k) {
            for (int64_t p = 0; p < positions; ++p) {
              const int64_t y = p / g.out[2] * g.stride[1] + kh * g.dilation[1] - g.padding[1];
              const int64_t z = p % g.out[2] * g.stride[2] + kw * g.dilation[2] - g.padding[2];
              if (y < 0 || y >= g.in[1] || z < 0 || z >= g.in[2]) continue;
              to[c * plane + y * g.in[2] + z] |= from[(c * rows + k) * positions + p];
            }
          });
      } else {
        columns_to_image(g, from + begin * rows * positions, end - begin, 0, positions, image);
      }
    });
  });
  if (!target.is_same(out)) out.copy_(target);
}

} // namespace at::native

namespace at::meta {

void meta_im2col(OutputBuilder& out, const Tensor& self, IntArrayRef kernel, IntArrayRef dilation,
                 IntArrayRef padding, IntArrayRef stride) {
  native::check_params(kernel, dilation, padding, stride);
  const int64_t d = self.dim();
  const bool valid = (d == 3 && self.size(0) && self.size(1) && self.size(2)) ||
                     (d == 4 && self.size(1) && self.size(2) && self.size(3));
  TORCH_CHECK(valid,
              "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
              "dimensions for input, "
              "but got: ",
              self.sizes());
  const native::ConvGeometry g = native::unfold_geometry(self, kernel, dilation, padding, stride);
  TORCH_CHECK(g.out[1] > 0 && g.out[2] > 0, "Given input with spatial size (", g.in[1], ", ",
              g.in[2], "), kernel_size=(", kernel[0], ", ", kernel[1], "), dilation=(", dilation[0],
              ", ", dilation[1], "), padding=(", padding[0], ", ", padding[1],
              "), calculated shape of the array of sliding blocks as (", g.out[1], ", ", g.out[2],
              "), but its components must be at least one.");
  const int64_t rows = c10::checked_numel({g.c, kernel[0], kernel[1]}),
                positions = c10::checked_numel({g.out[1], g.out[2]});
  if (d == 4) {
    out.set(0, {g.n, rows, positions}, self.scalar_type());
  } else {
    out.set(0, {rows, positions}, self.scalar_type());
  }
}

void meta_col2im(OutputBuilder& out, const Tensor& self, IntArrayRef size, IntArrayRef kernel,
                 IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  native::check_pair(size, "output_size");
  native::check_params(kernel, dilation, padding, stride);
  const int64_t d = self.dim();
  const bool valid =
      (d == 2 && self.size(0) && self.size(1)) || (d == 3 && self.size(1) && self.size(2));
  TORCH_CHECK(valid,
              "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
              "non-zero dimensions for input, "
              "but got: ",
              self.sizes());
  const int64_t volume = c10::checked_numel({kernel[0], kernel[1]}), rows = self.size(d - 2);
  TORCH_CHECK(
      rows % volume == 0,
      "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
      "input.size(1)=",
      rows, " and kernel_size=(", kernel[0], ", ", kernel[1], ").");
  const native::ConvGeometry g =
      native::fold_geometry(self, size, kernel, dilation, padding, stride);
  const __int128 positions = __int128(g.out[1]) * g.out[2];
  TORCH_CHECK(
      positions == self.size(d - 1), "Given output_size=(", size[0], ", ", size[1],
      "), kernel_size=(", kernel[0], ", ", kernel[1], "), dilation=(", dilation[0], ", ",
      dilation[1], "), padding=(", padding[0], ", ", padding[1], "), stride=(", stride[0], ", ",
      stride[1],
      "), expected size of input's dimension 2 to match the calculated number of sliding blocks ",
      g.out[1], " * ", g.out[2], " = ", static_cast<int64_t>(positions),
      ", but got input.size(2)=", self.size(d - 1), ".");
  TORCH_CHECK(size[0] > 0 && size[1] > 0 && g.out[1] > 0,
              "output size should be greater than zero, but got ", size);
  if (d == 3) {
    out.set(0, {g.n, g.c, size[0], size[1]}, self.scalar_type());
  } else {
    out.set(0, {g.c, size[0], size[1]}, self.scalar_type());
  }
}

} // namespace at::meta
