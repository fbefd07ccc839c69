// The functions of torch.fft, as compositions of the three operators of FftOps.cpp: they promote,
// cut or pad the input to the asked sizes and choose the normalisation.
#include <ATen/core/HandlerKeys.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/fft/Native.h>
#include <ATen/ops/_fft_c2c.h>
#include <ATen/ops/_fft_c2r.h>
#include <ATen/ops/_fft_r2c.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/roll.h>

#include <algorithm>

namespace at::native {
namespace {

using Norm = std::optional<std::string_view>;

// PyTorch's wording for a dimension of a tensor that has none differs from that of other operators.
int64_t wrapped(int64_t dim, int64_t rank) {
  TORCH_CHECK_INDEX(rank > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  TORCH_CHECK_INDEX(dim >= -rank && dim < rank,
                    "Dimension out of range (expected to be in range of [", -rank, ", ", rank - 1,
                    "], but got ", dim, ")");
  return dim < 0 ? dim + rank : dim;
}

// Integers become the default floating type; complex when it is asked for.
Tensor promoted(const Tensor& self, bool complex) {
  ScalarType dtype = self.scalar_type();
  if (c10::isIntegralType(dtype, true)) dtype = c10::get_default_dtype();
  const bool known = dtype == kFloat || dtype == kDouble || dtype == kHalf ||
                     dtype == kComplexFloat || dtype == kComplexDouble || dtype == kComplexHalf;
  TORCH_CHECK(known, "Unsupported dtype ", dtype);
  if (complex && !c10::isComplexType(dtype))
    dtype = dtype == kHalf ? kComplexHalf : dtype == kDouble ? kComplexDouble : kComplexFloat;
  return self.to(dtype);
}

// The code of FftOps.cpp: 0 nothing, 1 by the root of n, 2 by n.
int64_t normalization(const Norm& norm, bool forward) {
  if (!norm || *norm == "backward") return forward ? 0 : 2;
  if (*norm == "forward") return forward ? 2 : 0;
  TORCH_CHECK(*norm == "ortho", "Invalid normalization mode: \"", *norm, "\"");
  return 1;
}

void check_points(int64_t n) {
  TORCH_CHECK(n >= 1, "Invalid number of data points (", n, ") specified");
}

// The input cut or padded with zeros at the end to these sizes; -1 leaves a dimension alone.
Tensor resized(Tensor x, const DimVector& dims, const DimVector& sizes) {
  c10::SmallVector<int64_t, 10> pad(static_cast<size_t>(2 * x.dim()), 0);
  bool any = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (sizes[i] == -1) continue;
    const int64_t have = x.size(dims[i]);
    if (sizes[i] > have) {
      any = true;
      // Pads stand from the last dimension backwards.
      pad[2 * (x.dim() - 1 - dims[i]) + 1] = sizes[i] - have;
    } else if (sizes[i] < have) {
      x = x.slice(dims[i], 0, sizes[i]);
    }
  }
  return any ? at::constant_pad_nd(x, pad) : x;
}

// Real input transformed forward by half the work.
Tensor whole_spectrum(const Tensor& x, IntArrayRef dims, int64_t norm) {
  // The operator keeps the last dimension innermost; the others lie as a complex transform's would.
  DimVector order(dims);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return x.stride(a) > x.stride(b); });
  return at::_fft_r2c(x, order, norm, false);
}

Tensor transform_1d(const Tensor& self, std::optional<int64_t> n, int64_t dim, const Norm& norm,
                    bool forward) {
  const int64_t d = wrapped(dim, self.dim());
  const Tensor x = promoted(self, false);
  const int64_t points = n ? *n : self.size(d);
  check_points(points);
  const Tensor input = n ? resized(x, {d}, {points}) : x;
  const int64_t code = normalization(norm, forward);
  if (input.is_complex()) return at::_fft_c2c(input, {d}, code, forward);
  const Tensor out = at::_fft_r2c(input, {d}, code, false);
  return forward ? out : at::conj(out);
}

Tensor real_to_half(const char* name, const Tensor& self, std::optional<int64_t> n, int64_t dim,
                    const Norm& norm, bool forward) {
  TORCH_CHECK(!self.is_complex(), name, " expects a real input tensor, but got ",
              self.scalar_type());
  const int64_t d = wrapped(dim, self.dim());
  const Tensor x = promoted(self, false);
  const int64_t points = n ? *n : self.size(d);
  check_points(points);
  const Tensor input = n ? resized(x, {d}, {points}) : x;
  const Tensor out = at::_fft_r2c(input, {d}, normalization(norm, forward), true);
  return forward ? out : at::conj(out);
}

Tensor half_to_real(const Tensor& self, std::optional<int64_t> n, int64_t dim, const Norm& norm,
                    bool forward) {
  const int64_t d = wrapped(dim, self.dim());
  const Tensor x = promoted(self, true);
  const int64_t points = n ? *n : 2 * (self.size(d) - 1);
  check_points(points);
  const Tensor input = resized(x, {d}, {points / 2 + 1});
  return at::_fft_c2r(forward ? at::conj(input) : input, {d}, normalization(norm, forward), points);
}

struct Region {
  DimVector dims, sizes; // a size of -1 is the input's
};
Region region(const Tensor& self, const OptionalIntArrayRef& s, const OptionalIntArrayRef& dim) {
  Region r;
  if (dim) {
    for (const int64_t d : *dim) r.dims.push_back(wrapped(d, self.dim()));
    DimVector sorted(r.dims);
    std::sort(sorted.begin(), sorted.end());
    TORCH_CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
                "FFT dims must be unique");
  }
  if (s) {
    const int64_t count = static_cast<int64_t>(s->size());
    TORCH_CHECK(!dim || dim->size() == s->size(),
                "When given, dim and shape arguments must have the same length");
    TORCH_CHECK(count <= self.dim(), "Got shape with ", count, " values but input tensor only has ",
                self.dim(), " dimensions.");
    if (!dim)
      for (int64_t i = 0; i < count; ++i) r.dims.push_back(self.dim() - count + i);
    r.sizes = DimVector(*s);
    for (size_t i = 0; i < r.sizes.size(); ++i)
      if (r.sizes[i] != -1) check_points(r.sizes[i]);
  } else {
    if (!dim)
      for (int64_t d = 0; d < self.dim(); ++d) r.dims.push_back(d);
    r.sizes = DimVector(r.dims.size(), -1);
  }
  for (size_t i = 0; i < r.dims.size(); ++i)
    if (r.sizes[i] == -1) check_points(self.size(r.dims[i]));
  return r;
}

Tensor transform_nd(const Tensor& self, const OptionalIntArrayRef& s,
                    const OptionalIntArrayRef& dim, const Norm& norm, bool forward) {
  const Region r = region(self, s, dim);
  const int64_t code = normalization(norm, forward);
  if (forward && !self.is_complex() && !r.dims.empty() && !handlers_active())
    return whole_spectrum(resized(promoted(self, false), r.dims, r.sizes), r.dims, code);
  return at::_fft_c2c(resized(promoted(self, true), r.dims, r.sizes), r.dims, code, forward);
}

Tensor half_to_real_nd(const char* name, const Tensor& self, const OptionalIntArrayRef& s,
                       const OptionalIntArrayRef& dim, const Norm& norm, bool forward) {
  Region r = region(self, s, dim);
  TORCH_CHECK(!r.dims.empty(), name, " must transform at least one axis");
  const bool given = r.sizes.back() != -1;
  const int64_t points = given ? r.sizes.back() : 2 * (self.size(r.dims.back()) - 1);
  check_points(points);
  r.sizes.back() = points / 2 + 1;
  const Tensor input = resized(promoted(self, true), r.dims, r.sizes);
  return at::_fft_c2r(forward ? at::conj(input) : input, r.dims, normalization(norm, forward),
                      points);
}

// Frequencies of the bins in units of 1 / (n d): the second half negative, unless only half is
// wanted.
Tensor frequencies(const char* name, int64_t n, double d, bool half,
                   std::optional<ScalarType> dtype, std::optional<Layout> layout,
                   std::optional<Device> device, std::optional<bool> pin_memory) {
  const ScalarType type = dtype ? *dtype : c10::get_default_dtype();
  TORCH_CHECK(c10::isFloatingType(type) || c10::isComplexType(type), name,
              " requires a floating point or complex dtype");
  TORCH_CHECK(n >= 0, "Trying to create tensor with negative dimension ", n, ": [", n, "]");
  const int64_t count = half ? n / 2 + 1 : n;
  Tensor bins = at::arange(Scalar(count), type, layout, device, pin_memory);
  if (!half && n > 1) {
    const Tensor negative =
        at::arange(Scalar(-(n / 2)), Scalar(int64_t(0)), type, layout, device, pin_memory);
    bins.slice(0, (n + 1) / 2, n).copy_(negative);
  }
  return at::mul(bins, Scalar(1.0 / (static_cast<double>(n) * d)));
}

Tensor shifted(const Tensor& self, const OptionalIntArrayRef& dim, bool back) {
  DimVector dims, shifts;
  if (dim) {
    for (const int64_t d : *dim) dims.push_back(wrapped(d, self.dim()));
  } else {
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  }
  for (const int64_t d : dims) shifts.push_back((self.size(d) + (back ? 1 : 0)) / 2);
  return at::roll(self, shifts, dims);
}

} // namespace

Tensor fft_fft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return transform_1d(self, n, dim, norm, true);
}
Tensor fft_ifft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return transform_1d(self, n, dim, norm, false);
}
Tensor fft_rfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return real_to_half("rfft", self, n, dim, norm, true);
}
Tensor fft_ihfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return real_to_half("ihfft", self, n, dim, norm, false);
}
Tensor fft_irfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return half_to_real(self, n, dim, norm, false);
}
Tensor fft_hfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return half_to_real(self, n, dim, norm, true);
}

Tensor fft_fftn(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  return transform_nd(self, s, dim, norm, true);
}
Tensor fft_ifftn(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  return transform_nd(self, s, dim, norm, false);
}
Tensor fft_rfftn(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  TORCH_CHECK(!self.is_complex(), "rfftn expects a real-valued input tensor, but got ",
              self.scalar_type());
  const Region r = region(self, s, dim);
  TORCH_CHECK(!r.dims.empty(), "rfftn must transform at least one axis");
  const Tensor input = resized(promoted(self, false), r.dims, r.sizes);
  return at::_fft_r2c(input, r.dims, normalization(norm, true), true);
}
Tensor fft_irfftn(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  return half_to_real_nd("irfftn", self, s, dim, norm, false);
}
Tensor fft_hfftn(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  return half_to_real_nd("hfftn", self, s, dim, norm, true);
}
Tensor fft_ihfftn(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, Norm norm) {
  const Region r = region(self, s, dim);
  TORCH_CHECK(!r.dims.empty(), "ihfftn must transform at least one axis");
  const Tensor input = resized(promoted(self, false), r.dims, r.sizes);
  const int64_t code = normalization(norm, false);
  const Tensor half = at::conj(at::_fft_r2c(input, {r.dims.back()}, code, true));
  if (r.dims.size() == 1) return half;
  return at::_fft_c2c(half, IntArrayRef(r.dims).slice(0, r.dims.size() - 1), code, false);
}

Tensor fft_fft2(const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, Norm norm) {
  return fft_fftn(self, s, dim, norm);
}
Tensor fft_ifft2(const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, Norm norm) {
  return fft_ifftn(self, s, dim, norm);
}
Tensor fft_rfft2(const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, Norm norm) {
  return fft_rfftn(self, s, dim, norm);
}
Tensor fft_irfft2(const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, Norm norm) {
  return fft_irfftn(self, s, dim, norm);
}
Tensor fft_hfft2(const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, Norm norm) {
  return fft_hfftn(self, s, dim, norm);
}
Tensor fft_ihfft2(const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, Norm norm) {
  return fft_ihfftn(self, s, dim, norm);
}

Tensor fft_fftfreq(int64_t n, double d, std::optional<ScalarType> dtype,
                   std::optional<Layout> layout, std::optional<Device> device,
                   std::optional<bool> pin_memory) {
  return frequencies("fftfreq", n, d, false, dtype, layout, device, pin_memory);
}
Tensor fft_rfftfreq(int64_t n, double d, std::optional<ScalarType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device,
                    std::optional<bool> pin_memory) {
  return frequencies("rfftfreq", n, d, true, dtype, layout, device, pin_memory);
}

Tensor fft_fftshift(const Tensor& self, OptionalIntArrayRef dim) {
  return shifted(self, dim, false);
}
Tensor fft_ifftshift(const Tensor& self, OptionalIntArrayRef dim) {
  return shifted(self, dim, true);
}

} // namespace at::native
