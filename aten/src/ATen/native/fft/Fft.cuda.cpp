// Fourier transforms on CUDA by cuFFT, up to three dimensions at a time. The results' layout (see
// FftOps.cpp) has the transformed dimensions innermost, which is what cuFFT writes.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/Cufft.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/fft/Native.h>
#include <ATen/native/fft/Symmetry.args.h>
#include <ATen/ops/mul.h>

#include <algorithm>
#include <cmath>

namespace at::native {
namespace {
using cuda::FourierKind;
using cuda::FourierTransform;

double scale_of(int64_t normalization, IntArrayRef sizes, IntArrayRef dims) {
  if (normalization == 0) return 1;
  double n = 1;
  for (const int64_t d : dims) n *= static_cast<double>(sizes[d]);
  return normalization == 1 ? 1 / std::sqrt(n) : 1 / n;
}
DimVector wrapped(IntArrayRef dims, int64_t rank) {
  DimVector out;
  for (const int64_t d : dims) out.push_back(d < 0 ? d + rank : d);
  return out;
}
ScalarType computed(ScalarType dtype) {
  return dtype == kComplexHalf ? kComplexFloat : dtype == kHalf ? kFloat : dtype;
}

// All dimensions, with `dims` last, otherwise in their order.
DimVector order_of(int64_t rank, IntArrayRef dims) {
  DimVector order;
  for (int64_t d = 0; d < rank; ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
  for (const int64_t d : dims) order.push_back(d);
  return order;
}
DimVector inverse_of(IntArrayRef order) {
  DimVector inverse(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int64_t>(i);
  return inverse;
}

// Transforms `in` over at most three dimensions; the result is dense with these innermost, and seen
// in the order of `in`'s dimensions. `last` is the real side's size along the last of `dims`. Where
// `out` lies like the result, it becomes the result.
Tensor transformed(const Tensor& in, IntArrayRef dims, FourierKind kind, bool inverse, int64_t last,
                   ScalarType result, const Tensor& out) {
  const DimVector order = order_of(in.dim(), dims);
  Tensor from = in.permute(order).contiguous();
  // A transform to real data destroys what it reads.
  if (kind == FourierKind::ComplexToReal && from.data_ptr() == in.data_ptr()) from = from.clone();
  DimVector sizes(from.sizes());
  if (kind == FourierKind::RealToComplex) sizes.back() = last / 2 + 1;
  if (kind == FourierKind::ComplexToReal) sizes.back() = last;
  const bool direct = out.defined() && out.scalar_type() == result &&
                      out.permute(order).is_contiguous() &&
                      out.permute(order).sizes().equals(sizes);
  const Tensor to = direct ? out.permute(order) : detail::empty(sizes, result, in.device());
  FourierTransform t;
  t.rank = static_cast<int32_t>(dims.size());
  const bool real = kind != FourierKind::ComplexToComplex;
  for (size_t i = 0; i < dims.size(); ++i) t.size[i] = sizes[sizes.size() - dims.size() + i];
  if (real) t.size[t.rank - 1] = last;
  t.batch = 1;
  for (size_t i = 0; i + dims.size() < sizes.size(); ++i) t.batch *= sizes[i];
  t.device = in.device().index();
  t.kind = kind;
  t.wide = result == kDouble || result == kComplexDouble;
  t.inverse = inverse;
  cuda::run_fourier(t, from.data_ptr(), to.mutable_data_ptr(), cuda::current_stream());
  return to.permute(inverse_of(order));
}

// Complex to complex over any number of dimensions.
Tensor c2c(Tensor x, IntArrayRef dims, bool inverse, const Tensor& out = {}) {
  while (!dims.empty()) {
    const size_t count = std::min<size_t>(dims.size(), 3);
    x = transformed(x, dims.slice(dims.size() - count), FourierKind::ComplexToComplex, inverse, 0,
                    x.scalar_type(), dims.size() == count ? out : Tensor());
    dims = dims.slice(0, dims.size() - count);
  }
  return x;
}

void deliver(const Tensor& x, double scale, const Tensor& out) {
  Tensor to = out;
  if (x.data_ptr() != out.data_ptr()) {
    to.copy_(scale == 1 ? x : at::mul(x, scale));
  } else if (scale != 1) {
    at::_ops::mul__Scalar::call(to, scale);
  }
}

// Fills the rest of `full`, dense with the `rank` transformed dimensions last, of which `known`
// elements of every row are there.
void fill_symmetric(const Tensor& full, size_t rank, int64_t known) {
  static const cuda::Kernel kernels[] = {{"native/fft/Symmetry.cuh", "fill_symmetry_c64"},
                                         {"native/fft/Symmetry.cuh", "fill_symmetry_c128"}};
  const IntArrayRef sizes = full.sizes().slice(full.dim() - rank);
  device::SymmetryArgs a = {};
  a.row = static_cast<int32_t>(sizes.back());
  a.known = static_cast<int32_t>(known);
  if (a.row == a.known) return;
  a.missing = device::Divider(static_cast<uint32_t>(a.row - a.known));
  a.mirrored = static_cast<int32_t>(rank) - 1;
  a.batch = sizes.back();
  for (size_t d = 0; d + 1 < rank; ++d) {
    const int64_t size = sizes[rank - 2 - d];
    a.size[d] = device::Divider(static_cast<uint32_t>(size));
    a.batch *= size;
  }
  const int64_t each = a.batch / a.row * a.missing.divisor, transforms = full.numel() / a.batch;
  constexpr int64_t kMost = (int64_t(1) << 31) - 256;
  TORCH_CHECK_NOT_IMPLEMENTED(each <= kMost, "Fourier transforms of size ", sizes,
                              " of real data are not implemented on cuda");
  const cuda::Kernel& kernel = kernels[full.scalar_type() == kComplexDouble];
  const int64_t most = kMost / each;
  for (int64_t begin = 0; begin < transforms; begin += most) {
    a.data = static_cast<char*>(full.mutable_data_ptr()) + begin * a.batch * full.itemsize();
    a.count = std::min(most, transforms - begin) * each;
    cuda::launch(kernel, cuda::blocks_for(a.count, 256), 256, 0, cuda::current_stream(), a);
  }
}

// The whole transform of real `in` over all of `dims`, of which cuFFT computes one half; seen in
// the order of `in`'s dimensions. Where `out` lies like the result, it becomes the result.
Tensor r2c_whole(const Tensor& in, IntArrayRef dims, const Tensor& out) {
  const ScalarType result = in.scalar_type() == kDouble ? kComplexDouble : kComplexFloat;
  TORCH_CHECK_NOT_IMPLEMENTED(dims.size() <= device::kMirroredDims + 1,
                              "Fourier transforms of real data over ", dims.size(),
                              " dimensions are not implemented on cuda");
  const DimVector order = order_of(in.dim(), dims);
  const Tensor seen = out.permute(order);
  const bool direct = out.scalar_type() == result && seen.is_contiguous();
  const Tensor whole = direct ? seen : detail::empty(seen.sizes(), result, in.device());
  const int64_t n = in.size(dims.back()), known = n / 2 + 1;
  if (dims.size() <= 3) {
    const Tensor from = in.permute(order).contiguous();
    FourierTransform t;
    t.rank = static_cast<int32_t>(dims.size());
    t.batch = from.numel();
    for (size_t i = 0; i < dims.size(); ++i) t.batch /= t.size[i] = in.size(dims[i]);
    t.row = n;
    t.device = in.device().index();
    t.kind = FourierKind::RealToComplex;
    t.wide = result == kComplexDouble;
    cuda::run_fourier(t, from.data_ptr(), whole.mutable_data_ptr(), cuda::current_stream());
  } else {
    Tensor half = transformed(in, dims.slice(dims.size() - 3), FourierKind::RealToComplex, false, n,
                              result, {});
    half = c2c(half, dims.slice(0, dims.size() - 3), false);
    whole.narrow(-1, 0, known).copy_(half.permute(order));
  }
  fill_symmetric(whole, dims.size(), known);
  return whole.permute(inverse_of(order));
}

} // namespace

void fft_c2c_cuda(const Tensor& self, IntArrayRef dim, int64_t normalization, bool forward,
                  const Tensor& out) {
  if (out.numel() == 0) return;
  const DimVector dims = wrapped(dim, self.dim());
  const Tensor in = self.to(computed(self.scalar_type()));
  deliver(c2c(in, dims, !forward, out), scale_of(normalization, self.sizes(), dims), out);
}

void fft_r2c_cuda(const Tensor& self, IntArrayRef dim, int64_t normalization, bool onesided,
                  const Tensor& out) {
  if (out.numel() == 0) return;
  const DimVector dims = wrapped(dim, self.dim());
  const Tensor in = self.to(computed(self.scalar_type()));
  const IntArrayRef all(dims);
  const double scale = scale_of(normalization, self.sizes(), dims);
  if (!onesided) return deliver(r2c_whole(in, all, out), scale, out);
  const size_t count = std::min<size_t>(dims.size(), 3);
  const Tensor half = transformed(in, all.slice(dims.size() - count), FourierKind::RealToComplex,
                                  false, in.size(dims.back()),
                                  in.scalar_type() == kDouble ? kComplexDouble : kComplexFloat,
                                  count == dims.size() ? out : Tensor());
  deliver(c2c(half, all.slice(0, dims.size() - count), false), scale, out);
}

void fft_c2r_cuda(const Tensor& self, IntArrayRef dim, int64_t normalization, int64_t last_dim_size,
                  const Tensor& out) {
  if (out.numel() == 0) return;
  const DimVector dims = wrapped(dim, self.dim());
  const IntArrayRef all(dims);
  const Tensor in = c2c(self.to(computed(self.scalar_type())), all.slice(0, dims.size() - 1), true);
  const Tensor real = transformed(in, {dims.back()}, FourierKind::ComplexToReal, true,
                                  last_dim_size, computed(out.scalar_type()), out);
  deliver(real, scale_of(normalization, out.sizes(), dims), out);
}

} // namespace at::native
