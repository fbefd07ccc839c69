// Checks, sizes and windows of poolings.
#include <ATen/native/pool/PoolWindows.h>

#include <c10/util/SafeArithmetic.h>

#include <algorithm>
#include <string>

namespace at::native {
namespace {

const char* number_word(size_t dims) { return dims == 2 ? "two" : "three"; }

DimVector expand(IntArrayRef v, size_t dims) {
  return v.size() == 1 ? DimVector(dims, v[0]) : DimVector(v);
}
bool one_or(IntArrayRef v, size_t dims) { return v.size() == 1 || v.size() == dims; }

// "3x4x4": channels and spatial sizes.
std::string crossed(int64_t channels, IntArrayRef spatial) {
  std::string out = std::to_string(channels);
  for (int64_t s : spatial) out += "x" + std::to_string(s);
  return out;
}

void check_input(IntArrayRef input, size_t dims, const char* op, bool is_max) {
  const size_t rank = input.size();
  const bool ranked = rank == dims + 1 || rank == dims + 2;
  if (dims == 2) {
    TORCH_CHECK(ranked, "non-empty 3D or 4D (batch mode) tensor expected for input");
    for (size_t d = rank == dims + 2 ? 1 : 0; d < rank; ++d)
      TORCH_CHECK(input[d] > 0,
                  "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, "
                  "but got:",
                  input);
    return;
  }
  TORCH_CHECK(ranked, "non-empty 4D or 5D (batch mode) tensor expected for input");
  for (size_t d = rank == dims + 2 ? 1 : 0; d < rank; ++d)
    TORCH_CHECK(input[d] > 0, is_max ? "max_pool3d_with_indices_out_cpu_template()" : op,
                ": Expected input's non-batch dimensions to have positive length, but input has a "
                "shape of ",
                input, " and non-batch dimension ", input[d], " has length zero!");
}

void check_values(const PoolParams& p) {
  for (int64_t s : p.stride) TORCH_CHECK(s != 0, "stride should not be zero");
  bool positive = true, spread = true;
  for (size_t i = 0; i < p.kernel.size(); ++i) {
    positive &= p.kernel[i] > 0 && p.stride[i] > 0;
    spread &= p.dilation[i] > 0;
  }
  TORCH_CHECK(positive, "kernel size and stride should be greater than zero, but got kernel_size: ",
              IntArrayRef(p.kernel), " stride: ", IntArrayRef(p.stride));
  if (!spread) {
    std::string each;
    for (size_t i = 0; i < p.dilation.size(); ++i)
      each += c10::str(" dilation", "THW"[3 - p.dilation.size() + i], ": ", p.dilation[i]);
    TORCH_CHECK(false, "dilation should be greater than zero, but got", each);
  }
  for (size_t i = 0; i < p.kernel.size(); ++i) {
    const __int128 extent = __int128(p.kernel[i] - 1) * p.dilation[i] + 1;
    TORCH_CHECK(p.padding[i] >= 0, "pad must be non-negative, but got pad: ", p.padding[i]);
    TORCH_CHECK(p.padding[i] <= extent / 2,
                "pad should be at most half of effective kernel size, but got pad=", p.padding[i],
                ", kernel_size=", p.kernel[i], " and dilation=", p.dilation[i]);
  }
}

int64_t output_length(int64_t in, const PoolParams& p, size_t i) {
  const __int128 room = __int128(in) + 2 * __int128(p.padding[i]) -
                        __int128(p.dilation[i]) * (p.kernel[i] - 1) - 1 +
                        (p.ceil_mode ? p.stride[i] - 1 : 0);
  __int128 out = (room >= 0 ? room / p.stride[i] : -((-room + p.stride[i] - 1) / p.stride[i])) + 1;
  // The last window must begin inside the input or the padding before it.
  if (p.ceil_mode && (out - 1) * p.stride[i] >= __int128(in) + p.padding[i]) --out;
  TORCH_CHECK(out <= INT64_MAX && out >= INT64_MIN, "pooling: a size does not fit in 64 bits");
  return static_cast<int64_t>(out);
}

int64_t plane_count(IntArrayRef sizes, size_t dims) {
  return c10::checked_numel(sizes.slice(0, sizes.size() - dims));
}

} // namespace

PoolParams pool_params(IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                       IntArrayRef dilation, bool ceil_mode, size_t dims, const char* op) {
  TORCH_CHECK(one_or(kernel, dims), op, ": kernel_size must either be a single int, or a tuple of ",
              number_word(dims), " ints");
  TORCH_CHECK(stride.empty() || one_or(stride, dims), op,
              ": stride must either be omitted, a single int, or a tuple of ", number_word(dims),
              " ints");
  TORCH_CHECK(one_or(padding, dims), op, ": padding must either be a single int, or a tuple of ",
              number_word(dims), " ints");
  TORCH_CHECK(one_or(dilation, dims), op, ": dilation must be either a single int, or a tuple of ",
              number_word(dims), " ints");
  PoolParams p{expand(kernel, dims), stride.empty() ? expand(kernel, dims) : expand(stride, dims),
               expand(padding, dims), expand(dilation, dims), ceil_mode};
  check_values(p);
  return p;
}

DimVector pool_output_size(IntArrayRef input, const PoolParams& p, const char* op, bool is_max) {
  const size_t dims = p.kernel.size();
  check_input(input, dims, op, is_max);
  DimVector out(input);
  DimVector spatial;
  bool fits = true;
  for (size_t i = 0; i < dims; ++i) {
    spatial.push_back(output_length(input[input.size() - dims + i], p, i));
    out[input.size() - dims + i] = spatial[i];
    fits &= spatial[i] > 0;
  }
  const int64_t channels = input[input.size() - dims - 1];
  TORCH_CHECK(
      fits, "Given input size: (", crossed(channels, input.slice(input.size() - dims, dims)),
      "). Calculated output size: (", crossed(channels, spatial), "). Output size is too small");
  return out;
}

DimVector adaptive_output_size(IntArrayRef input, IntArrayRef output_size, const char* op) {
  const size_t dims = output_size.size();
  for (size_t d = input.size() - dims; d < input.size(); ++d)
    TORCH_CHECK(
        input[d] > 0, op,
        "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ",
        input, " with dimension ", d, " being empty");
  DimVector out(input);
  for (size_t i = 0; i < dims; ++i) out[input.size() - dims + i] = output_size[i];
  for (int64_t s : output_size)
    TORCH_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ",
                IntArrayRef(out));
  return out;
}

PoolAxis::PoolAxis(int64_t in_size, int64_t out_size) : in(in_size), out(out_size) { list(); }

PoolAxis::PoolAxis(int64_t in_size, int64_t out_size, int64_t kernel, int64_t stride,
                   int64_t padding, int64_t dilation)
    : in(in_size), out(out_size), step(dilation), kernel_(kernel), stride_(stride),
      padding_(padding) {
  list();
}

void PoolAxis::list() {
  constexpr int64_t kListed = 1 << 16;
  if (out > kListed) return;
  listed_.reserve(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o) listed_.push_back(computed(o));
}

PoolWindow PoolAxis::computed(int64_t o) const {
  if (kernel_ == 0) {
    const auto share = [this](int64_t i, int64_t more) {
      int64_t product = 0;
      if (!c10::mul_overflows(i, in, &product) && !c10::add_overflows(product, more, &product))
        return product / out;
      return static_cast<int64_t>((__int128(i) * in + more) / out);
    };
    const int64_t lo = share(o, 0), hi = share(o + 1, out - 1);
    return {lo, hi, hi - lo};
  }
  const int64_t start = o * stride_ - padding_, end = start + (kernel_ - 1) * step + 1;
  const int64_t inside = start < 0 ? start + (-start + step - 1) / step * step : start;
  const int64_t room = std::min(end, in + padding_) - start;
  if (inside >= in) return {in - 1, in - 1, room}; // a spread window may lie in the padding alone
  return {inside, std::min(end, in), room};
}

int64_t PoolAxis::most() const {
  return kernel_ == 0 ? std::min(in, in / std::max<int64_t>(out, 1) + 2) : std::min(kernel_, in);
}

PoolAxis::Equal PoolAxis::equal() const {
  Equal e;
  if (kernel_ == 0) {
    if (out == 0 || in % out != 0) return e;
    e.stride = e.span = in / out;
    e.last = out;
    return e;
  }
  e.stride = stride_;
  e.span = (kernel_ - 1) * step + 1;
  if (e.span > in + padding_) return e;
  e.first = std::min(out, padding_ / stride_ + (padding_ % stride_ != 0));
  e.last = std::max(e.first, std::min(out, (in + padding_ - e.span) / stride_ + 1));
  return e;
}

PoolWindows fixed_windows(IntArrayRef input, IntArrayRef output, const PoolParams& p) {
  const size_t dims = p.kernel.size();
  PoolWindows w;
  w.planes = plane_count(input, dims);
  for (size_t i = 0; i < dims; ++i) {
    const size_t dim = input.size() - dims + i;
    w.axis[3 - dims + i] =
        PoolAxis(input[dim], output[dim], p.kernel[i], p.stride[i], p.padding[i], p.dilation[i]);
  }
  return w;
}

PoolWindows adaptive_windows(IntArrayRef input, IntArrayRef output, size_t dims) {
  PoolWindows w;
  // Beside an extent of nothing another may be of any size: no position of it is ever visited.
  const IntArrayRef extents = output.slice(output.size() - dims);
  const bool empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
  w.planes = plane_count(input, dims);
  for (size_t i = 0; i < dims; ++i) {
    const size_t dim = input.size() - dims + i;
    w.axis[3 - dims + i] = PoolAxis(input[dim], empty ? 0 : output[dim]);
  }
  return w;
}

} // namespace at::native
