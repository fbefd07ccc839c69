// Reflection and replication padding of the last one, two or three dimensions, and their
// derivatives. Per padded dimension a formula maps each output index to the input index it shows;
// the kernels walk the output in its order of memory and copy the stretch that is not padding in
// one piece. Channels last needs no second kernel: there the unit that moves is one
// pixel's channels instead of one element.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>
#include <ATen/parallel/Stretches.h>

#include <algorithm>
#include <cstring>

namespace at {
namespace {

enum class Edge { Reflect, Replicate };

MemoryFormat pad_format(const Tensor& self, size_t padded) {
  const bool batched = static_cast<size_t>(self.dim()) == padded + 2;
  return batched && padded > 1 ? self.suggest_memory_format() : MemoryFormat::Contiguous;
}

// The size of the result; Errors as PyTorch words them.
DimVector padded_sizes(const Tensor& self, IntArrayRef padding, int64_t padded, Edge edge) {
  TORCH_CHECK(static_cast<int64_t>(padding.size()) == 2 * padded, "padding size is expected to be ",
              2 * padded, ", but got: ", padding.size());
  const int64_t ndim = self.dim();
  bool valid = ndim == padded + 1 || ndim == padded + 2;
  for (int64_t d = ndim == padded + 2 ? 1 : 0; valid && d < ndim; ++d) valid = self.size(d) != 0;
  TORCH_CHECK(valid, "Expected ", padded + 1, "D or ", padded + 2,
              "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
              "input, but got: ",
              self.sizes());
  static const char* const names[] = {"W", "H", "D"};
  DimVector sizes(self.sizes());
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t d = ndim - 1 - i, size = sizes[d], left = padding[2 * i],
                  right = padding[2 * i + 1];
    TORCH_CHECK(
        edge != Edge::Reflect || (left < size && right < size), "Argument #", 4 + 2 * i,
        ": Padding size should be less than the corresponding input dimension, but got: padding (",
        left, ", ", right, ") at dimension ", d, " of input ", self.sizes());
    const bool overflow =
        c10::add_overflows(size, left, &sizes[d]) || c10::add_overflows(sizes[d], right, &sizes[d]);
    TORCH_CHECK(!overflow && sizes[d] >= 1, "input (", names[i], ": ", size,
                ") is too small. Calculated output ", names[i], ": ", sizes[d]);
  }
  return sizes;
}

void meta_pad(OutputBuilder& out, const Tensor& self, IntArrayRef padding, int64_t padded,
              Edge edge) {
  const DimVector sizes = padded_sizes(self, padding, padded, edge);
  const MemoryFormat format = pad_format(self, static_cast<size_t>(padded));
  out.set_on(0, sizes, self.scalar_type(), self.device(),
             IntArrayRef(native::format_strides(sizes, format)));
}

} // namespace

namespace meta {

void meta_reflection_pad1d(OutputBuilder& out, const Tensor& self, IntArrayRef padding) {
  meta_pad(out, self, padding, 1, Edge::Reflect);
}
void meta_reflection_pad2d(OutputBuilder& out, const Tensor& self, IntArrayRef padding) {
  meta_pad(out, self, padding, 2, Edge::Reflect);
}
void meta_reflection_pad3d(OutputBuilder& out, const Tensor& self, IntArrayRef padding) {
  meta_pad(out, self, padding, 3, Edge::Reflect);
}
void meta_replication_pad1d(OutputBuilder& out, const Tensor& self, IntArrayRef padding) {
  meta_pad(out, self, padding, 1, Edge::Replicate);
}
void meta_replication_pad2d(OutputBuilder& out, const Tensor& self, IntArrayRef padding) {
  meta_pad(out, self, padding, 2, Edge::Replicate);
}
void meta_replication_pad3d(OutputBuilder& out, const Tensor& self, IntArrayRef padding) {
  meta_pad(out, self, padding, 3, Edge::Replicate);
}

void meta_pad_backward(OutputBuilder& out, const Tensor& grad_output, const Tensor& self,
                       IntArrayRef padding) {
  const int64_t padded = static_cast<int64_t>(padding.size() / 2);
  TORCH_CHECK(padded >= 1 && padded <= 3,
              "padding size is expected to be 2, 4 or 6, but got: ", padding.size());
  const DimVector expected = padded_sizes(self, padding, padded, Edge::Replicate);
  TORCH_CHECK(grad_output.sizes() == IntArrayRef(expected),
              "grad_output size unexpected. Expected: ", IntArrayRef(expected),
              ", Got: ", grad_output.sizes());
  TORCH_CHECK(grad_output.scalar_type() == self.scalar_type(),
              "expected grad_output to have dtype ", self.scalar_type(), " but got ",
              grad_output.scalar_type());
  const MemoryFormat format = pad_format(self, static_cast<size_t>(padded));
  out.set_on(0, self.sizes(), self.scalar_type(), self.device(),
             IntArrayRef(native::format_strides(self.sizes(), format)));
}

} // namespace meta

namespace native {
namespace {

// One padded dimension: where each output index looks, and the stretch that is the input itself.
struct Axis {
  int64_t in = 1;
  int64_t out = 1;
  int64_t left = 0;
  Edge edge = Edge::Replicate;
  int64_t copy_begin = 0; // first output index of the stretch
  int64_t copy_end = 1;

  Axis() = default;
  Axis(int64_t size, int64_t before, int64_t after, Edge kind)
      : in(size), out(size + before + after), left(before), edge(kind) {
    copy_begin = std::max<int64_t>(left, 0);
    copy_end = std::max(copy_begin, std::min(left + size, out));
  }
  int64_t source(int64_t i) const {
    int64_t p = i - left;
    if (edge == Edge::Replicate) return std::clamp<int64_t>(p, 0, in - 1);
    p = p < 0 ? -p : p;
    return p >= in ? 2 * (in - 1) - p : p;
  }
};

// The whole walk: `outer` volumes of z, y, x units, a unit being `unit` elements that move
// together.
struct Walk {
  int64_t outer = 1;
  int64_t unit = 1;
  Axis z, y, x;
  int64_t in_volume() const { return z.in * y.in * x.in * unit; }
  int64_t out_volume() const { return z.out * y.out * x.out * unit; }
  int64_t out_units() const { return outer * z.out * y.out * x.out; }
};

Walk make_walk(const Tensor& self, IntArrayRef padding, MemoryFormat format, Edge edge) {
  Walk walk;
  const int64_t padded = static_cast<int64_t>(padding.size() / 2), ndim = self.dim();
  Axis* const axes[] = {&walk.x, &walk.y, &walk.z};
  for (int64_t i = 0; i < padded; ++i) {
    // The shape function of the derivative cannot know which padding it is for.
    TORCH_CHECK(edge != Edge::Reflect ||
                    std::max(padding[2 * i], padding[2 * i + 1]) < self.size(ndim - 1 - i),
                "Padding size should be less than the corresponding input dimension");
    *axes[i] = Axis(self.size(ndim - 1 - i), padding[2 * i], padding[2 * i + 1], edge);
  }
  for (int64_t d = 0; d < ndim - padded; ++d) walk.outer *= self.size(d);
  if (format != MemoryFormat::Contiguous) {
    walk.unit = self.size(1);
    walk.outer = self.size(0);
  }
  return walk;
}

// Calls f(output offset, input offset, length) in elements for the pieces of one volume, in order.
template <class F> void for_pieces(const Walk& walk, const F& f) {
  constexpr int64_t kPiece = 4096;
  const int64_t unit = walk.unit;
  const Axis& axis = walk.x;
  Steps steps;
  int64_t to = 0;
  for (int64_t z = 0; z < walk.z.out; ++z) {
    for (int64_t y = 0; y < walk.y.out; ++y, to += axis.out * unit) {
      const int64_t from = (walk.z.source(z) * walk.y.in + walk.y.source(y)) * axis.in * unit;
      for (int64_t x = 0; x < axis.out;) {
        const bool copied = x >= axis.copy_begin && x < axis.copy_end;
        const int64_t n = copied ? std::min(axis.copy_end - x, kPiece) : 1;
        f(to + x * unit, from + axis.source(x) * unit, n * unit);
        x += n;
        steps.add(n * unit);
      }
    }
  }
}

// Units begin .. end of the output, counted through all volumes.
template <class T>
void pad_units(const Walk& walk, const T* from, T* to, int64_t begin, int64_t end) {
  const Axis& axis = walk.x;
  const int64_t unit = walk.unit;
  int64_t row = begin / axis.out, y = row % walk.y.out, z = row / walk.y.out % walk.z.out;
  int64_t volume = row / walk.y.out / walk.z.out;
  for (int64_t u = begin, first = begin - row * axis.out; u < end; first = 0, ++row) {
    const int64_t last = std::min(axis.out, first + (end - u));
    const int64_t line = (volume * walk.z.in + walk.z.source(z)) * walk.y.in + walk.y.source(y);
    const T* source = from + line * axis.in * unit;
    T* target = to + row * axis.out * unit;
    const auto one_by_one = [&](int64_t b, int64_t e) {
      for (int64_t x = b; x < e; ++x) {
        if (unit == 1)
          target[x] = source[axis.source(x)];
        else
          std::memcpy(target + x * unit, source + axis.source(x) * unit, unit * sizeof(T));
      }
    };
    one_by_one(first, std::min(last, axis.copy_begin));
    const int64_t b = std::max(first, axis.copy_begin), e = std::min(last, axis.copy_end);
    if (b < e)
      std::memcpy(target + b * unit, source + (b - axis.left) * unit, (e - b) * unit * sizeof(T));
    one_by_one(std::max(first, axis.copy_end), last);
    u += last - first;
    if (++y < walk.y.out) continue;
    y = 0;
    if (++z < walk.z.out) continue;
    z = 0;
    ++volume;
  }
}

void pad_cpu(const Tensor& self, IntArrayRef padding, Edge edge, const Tensor& out) {
  if (out.numel() == 0) return;
  const MemoryFormat format = pad_format(self, padding.size() / 2);
  const Tensor input = self.contiguous(format);
  const Walk walk = make_walk(self, padding, format, edge);
  const char* from = static_cast<const char*>(input.const_data_ptr());
  char* to = static_cast<char*>(out.data_ptr());
  std::optional<BlockingRegion> unlocked;
  if (out.numel() > 32768) unlocked.emplace();
  itemsize_switch(self.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(
        0, walk.out_units(), std::max<int64_t>(1, 32768 / walk.unit), [&](int64_t b, int64_t e) {
          pad_units(walk, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), b, e);
        });
  });
}

void pad_backward_cpu(const Tensor& grad_output, const Tensor& self, IntArrayRef padding, Edge edge,
                      const Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  const MemoryFormat format = pad_format(self, padding.size() / 2);
  const Tensor grad = grad_output.contiguous(format);
  const Walk walk = make_walk(self, padding, format, edge);
  std::optional<BlockingRegion> unlocked;
  if (grad.numel() > 32768) unlocked.emplace();
  parallel_zero(grad_input.data_ptr(), grad_input.nbytes());
  dtype_switch<FloatingAndComplexTypes>(self.scalar_type(), "pad_backward_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = grad.const_data_ptr<T>();
    T* to = grad_input.data_ptr<T>();
    const int64_t grain = std::max<int64_t>(1, 32768 / walk.out_volume());
    parallel_for(0, walk.outer, grain, [&](int64_t b, int64_t e) {
      for (int64_t o = b; o < e; ++o) {
        const T* source = from + o * walk.out_volume();
        T* target = to + o * walk.in_volume();
        for_pieces(walk, [=](int64_t position, int64_t look, int64_t n) {
          for (int64_t i = 0; i < n; ++i)
            target[look + i] = target[look + i] + source[position + i];
        });
      }
    });
  });
}

} // namespace

void reflection_pad_cpu(const Tensor& self, IntArrayRef padding, const Tensor& out) {
  pad_cpu(self, padding, Edge::Reflect, out);
}
void replication_pad_cpu(const Tensor& self, IntArrayRef padding, const Tensor& out) {
  pad_cpu(self, padding, Edge::Replicate, out);
}
void reflection_pad_backward_cpu(const Tensor& grad_output, const Tensor& self, IntArrayRef padding,
                                 const Tensor& grad_input) {
  pad_backward_cpu(grad_output, self, padding, Edge::Reflect, grad_input);
}
void replication_pad_backward_cpu(const Tensor& grad_output, const Tensor& self,
                                  IntArrayRef padding, const Tensor& grad_input) {
  pad_backward_cpu(grad_output, self, padding, Edge::Replicate, grad_input);
}

} // namespace native
} // namespace at
