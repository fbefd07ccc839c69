// The three operators every Fourier transform is made of: complex to complex, real to half of a
// symmetric spectrum, and back. Results keep the order in which the input's dimensions lie in
// memory, with the transformed ones innermost.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/fft/FftDriver.h>
#include <ATen/native/fft/Native.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <cmath>

namespace at::native {
namespace {
using fft::Kind;

enum Normalization : int64_t { kNone = 0, kByRootN = 1, kByN = 2 };

double scale_of(int64_t normalization, IntArrayRef sizes, IntArrayRef dims) {
  if (normalization == kNone) return 1;
  double n = 1;
  for (const int64_t d : dims) n *= static_cast<double>(sizes[d]);
  return normalization == kByRootN ? 1 / std::sqrt(n) : 1 / n;
}

DimVector wrapped(IntArrayRef dims, int64_t rank) {
  DimVector out;
  for (const int64_t d : dims) out.push_back(d < 0 ? d + rank : d);
  return out;
}

// The first of the dimensions reads `in`, the others work inside `out`.
void c2c_all(const Tensor& in, const Tensor& out, IntArrayRef dims, bool forward, double scale) {
  for (size_t i = 0; i < dims.size(); ++i)
    fft::transform_dim(Kind::C2C, i == 0 ? in : out, out, dims[i], out.size(dims[i]), !forward,
                       i + 1 == dims.size() ? scale : 1);
}

// Many small transforms over several dimensions are finished one after the other, while they are in
// the cache. False when that does not pay.
bool c2c_one_by_one(const Tensor& in, const Tensor& out, IntArrayRef dims, bool forward,
                    double scale) {
  constexpr int64_t kCache = 256 * 1024, kLines = 32;
  DimVector sizes, in_steps, out_steps, inner, outer;
  int64_t volume = 1;
  for (const int64_t d : dims) {
    inner.push_back(static_cast<int64_t>(sizes.size()));
    sizes.push_back(out.size(d));
    in_steps.push_back(in.stride(d));
    out_steps.push_back(out.stride(d));
    volume *= out.size(d);
  }
  const int64_t items = out.numel() / volume;
  bool pays = dims.size() > 1 && items > 1 && volume * out.itemsize() <= kCache;
  for (const int64_t size : sizes) pays = pays && volume / size >= kLines;
  if (!pays) return false;
  for (int64_t d = 0; d < out.dim(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) outer.push_back(d);
  const BlockingRegion unlocked;
  parallel_for(0, items, std::max<int64_t>(1, 16384 / volume), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      int64_t rest = item, from = in.storage_offset(), to = out.storage_offset();
      for (size_t i = outer.size(); i-- > 0;) {
        const int64_t index = rest % out.size(outer[i]);
        rest /= out.size(outer[i]);
        from += index * in.stride(outer[i]);
        to += index * out.stride(outer[i]);
      }
      c2c_all(detail::view_of(in, sizes, in_steps, from),
              detail::view_of(out, sizes, out_steps, to), inner, forward, scale);
    }
  });
  return true;
}

ScalarType computed(ScalarType dtype) {
  return dtype == kComplexHalf ? kComplexFloat : dtype == kHalf ? kFloat : dtype;
}
// `t` itself, or room of the type that is computed in.
Tensor target_of(const Tensor& t) {
  const ScalarType dtype = computed(t.scalar_type());
  return dtype == t.scalar_type() ? t : detail::empty_strided(t.sizes(), t.strides(), dtype);
}
void deliver(const Tensor& from, const Tensor& to) {
  if (!from.is_same(to)) to.copy_(from);
}

} // namespace

void fft_c2c_cpu(const Tensor& self, IntArrayRef dim, int64_t normalization, bool forward,
                 const Tensor& out) {
  if (out.numel() == 0) return;
  const DimVector dims = wrapped(dim, self.dim());
  if (dims.empty()) {
    out.copy_(self);
    return;
  }
  const Tensor target = target_of(out);
  const Tensor in = self.to(target.scalar_type());
  const double scale = scale_of(normalization, self.sizes(), dims);
  if (!c2c_one_by_one(in, target, dims, forward, scale)) c2c_all(in, target, dims, forward, scale);
  deliver(target, out);
}

void fft_r2c_cpu(const Tensor& self, IntArrayRef dim, int64_t normalization, bool onesided,
                 const Tensor& out) {
  if (out.numel() == 0) return;
  const DimVector dims = wrapped(dim, self.dim());
  const Tensor in = self.to(computed(self.scalar_type()));
  const Tensor target = target_of(out);
  const int64_t last = dims.back(), n = self.size(last);
  DimVector sizes(target.sizes());
  sizes[last] = n / 2 + 1;
  const Tensor half = detail::view_of(target, sizes, target.strides(), target.storage_offset());
  const IntArrayRef others = IntArrayRef(dims).slice(0, dims.size() - 1);
  const double scale = scale_of(normalization, self.sizes(), dims);
  fft::transform_dim(Kind::R2C, in, half, last, n, false, others.empty() ? scale : 1);
  c2c_all(half, half, others, true, scale);
  if (!onesided) fft::fill_symmetric(target, dims);
  deliver(target, out);
}

void fft_c2r_cpu(const Tensor& self, IntArrayRef dim, int64_t normalization, int64_t last_dim_size,
                 const Tensor& out) {
  if (out.numel() == 0) return;
  const DimVector dims = wrapped(dim, self.dim());
  Tensor in = self.to(computed(self.scalar_type()));
  const Tensor target = target_of(out);
  const IntArrayRef others = IntArrayRef(dims).slice(0, dims.size() - 1);
  if (!others.empty()) {
    const Tensor room = detail::empty(in.sizes(), in.scalar_type());
    c2c_all(in, room, others, false, 1);
    in = room;
  }
  fft::transform_dim(Kind::C2R, in, target, dims.back(), last_dim_size, true,
                     scale_of(normalization, target.sizes(), dims));
  deliver(target, out);
}

} // namespace at::native

namespace at::meta {
namespace {

// Wrapped dimensions, each once; the message for a wrong one is IndexError.
DimVector checked_dims(const Tensor& self, IntArrayRef dim) {
  DimVector dims;
  for (const int64_t d : dim) {
    TORCH_CHECK_INDEX(d >= -self.dim() && d < self.dim(),
                      "Dimension out of range (expected to be in range of [", -self.dim(), ", ",
                      self.dim() - 1, "], but got ", d, ")");
    const int64_t w = d < 0 ? d + self.dim() : d;
    TORCH_CHECK(std::find(dims.begin(), dims.end(), w) == dims.end(), "FFT dims must be unique");
    dims.push_back(w);
  }
  return dims;
}
void check_normalization(int64_t normalization) {
  TORCH_CHECK(normalization >= 0 && normalization <= 2,
              "Unsupported normalization type: ", normalization);
}
void check_complex(const Tensor& self) {
  TORCH_CHECK(self.is_complex(), "Only supports complex dtypes, but found: ", self.scalar_type());
}
void check_points(SymIntArrayRef sizes, const DimVector& dims) {
  for (const int64_t d : dims)
    TORCH_CHECK(c10::expect_true(c10::sym_ge(sizes[d], 1)), "Invalid number of data points (",
                sizes[d], ") specified");
}

// Dense strides for `sizes`: batch dimensions outside in the order of `steps`, the input's strides,
// then the transformed ones in theirs, with the last of `dims` innermost when it is `fixed`. Equal
// strides (of dimensions of size 1) stay in the order in which PyTorch's partition leaves them:
// each transformed dimension changes places with the last that is not.
template <class Int> native::Ints<Int> strides_like(ArrayRef<Int> steps, ArrayRef<Int> sizes,
                                                    IntArrayRef dims, bool fixed) {
  const auto transformed = [&](int64_t d) {
    return std::find(dims.begin(), dims.end(), d) != dims.end();
  };
  DimVector order;
  for (size_t d = 0; d < sizes.size(); ++d) order.push_back(static_cast<int64_t>(d));
  size_t first = 0, last = order.size();
  while (first < last) {
    if (!transformed(order[first])) {
      ++first;
    } else if (transformed(order[last - 1])) {
      --last;
    } else {
      std::swap(order[first], order[last - 1]);
    }
  }
  std::copy(dims.begin(), dims.end(), order.begin() + first);
  const auto farther = [&](int64_t a, int64_t b) { return steps[a] > steps[b]; };
  std::stable_sort(order.begin(), order.begin() + first, farther);
  std::stable_sort(order.begin() + first, order.end() - (fixed ? 1 : 0), farther);
  native::Ints<Int> strides(sizes.size(), Int(1));
  Int step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    step = step * c10::sym_max(sizes[order[i]], Int(1));
  }
  return strides;
}
// An output of a transform along `dims`: dense, in the order of `steps`.
template <class Int> void set_transformed(OutputBuilder& out, ArrayRef<Int> sizes, ScalarType dtype,
                                          ArrayRef<Int> steps, IntArrayRef dims, bool fixed) {
  native::set_output(out, 0, sizes, dtype, strides_like<Int>(steps, sizes, dims, fixed));
}
template <class Int> void set_c2r(OutputBuilder& out, const Tensor& self, ScalarType dtype,
                                  const DimVector& dims, int64_t last_dim_size) {
  native::Ints<Int> sizes(native::sizes_of<Int>(self));
  const Int half = sizes[dims.back()];
  TORCH_CHECK(c10::expect_true(c10::sym_eq(half, Int(last_dim_size / 2 + 1))),
              "_fft_c2r: a signal of ", last_dim_size, " points has ", last_dim_size / 2 + 1,
              " spectral ones, but dimension ", dims.back(), " of the input has ", half);
  sizes[dims.back()] = last_dim_size;
  // The other dimensions come first, on their own.
  const IntArrayRef others = IntArrayRef(dims).slice(0, dims.size() - 1);
  native::Ints<Int> steps(native::strides_of<Int>(self));
  if (!others.empty()) steps = strides_like<Int>(steps, native::sizes_of<Int>(self), others, false);
  set_transformed<Int>(out, sizes, dtype, steps, {dims.back()}, true);
}

} // namespace

void meta_fft_c2c(OutputBuilder& out, const Tensor& self, IntArrayRef dim, int64_t normalization,
                  bool) {
  check_complex(self);
  check_normalization(normalization);
  const DimVector dims = checked_dims(self, dim);
  check_points(self.sym_sizes(), dims);
  if (dims.empty()) {
    native::set_like(out, 0, self, self.scalar_type());
  } else if (native::is_symbolic(self)) {
    set_transformed<SymInt>(out, self.sym_sizes(), self.scalar_type(), self.sym_strides(), dims,
                            false);
  } else {
    set_transformed<int64_t>(out, self.sizes(), self.scalar_type(), self.strides(), dims, false);
  }
}

void meta_fft_r2c(OutputBuilder& out, const Tensor& self, IntArrayRef dim, int64_t normalization,
                  bool onesided) {
  TORCH_CHECK(self.scalar_type() == kFloat || self.scalar_type() == kDouble ||
                  self.scalar_type() == kHalf,
              "Only supports floating-point dtypes, but found: ", self.scalar_type());
  check_normalization(normalization);
  const DimVector dims = checked_dims(self, dim);
  TORCH_CHECK(!dims.empty(), "_fft_r2c must transform at least one axis");
  check_points(self.sym_sizes(), dims);
  const ScalarType dtype = self.scalar_type() == kHalf     ? kComplexHalf
                           : self.scalar_type() == kDouble ? kComplexDouble
                                                           : kComplexFloat;
  const auto set = [&](auto number) {
    using Int = decltype(number);
    native::Ints<Int> sizes(native::sizes_of<Int>(self));
    if (onesided) sizes[dims.back()] = sizes[dims.back()] / 2 + 1;
    set_transformed<Int>(out, sizes, dtype, native::strides_of<Int>(self), dims, true);
  };
  if (native::is_symbolic(self))
    set(SymInt());
  else
    set(int64_t());
}

void meta_fft_c2r(OutputBuilder& out, const Tensor& self, IntArrayRef dim, int64_t normalization,
                  int64_t last_dim_size) {
  check_complex(self);
  check_normalization(normalization);
  const DimVector dims = checked_dims(self, dim);
  TORCH_CHECK(!dims.empty(), "_fft_c2r must transform at least one axis");
  TORCH_CHECK(last_dim_size >= 1, "Invalid number of data points (", last_dim_size, ") specified");
  check_points(self.sym_sizes(), dims);
  const ScalarType dtype = self.scalar_type() == kComplexHalf     ? kHalf
                           : self.scalar_type() == kComplexDouble ? kDouble
                                                                  : kFloat;
  if (native::is_symbolic(self))
    set_c2r<SymInt>(out, self, dtype, dims, last_dim_size);
  else
    set_c2r<int64_t>(out, self, dtype, dims, last_dim_size);
}

} // namespace at::meta
