// Short-time Fourier transforms: overlapping frames of a signal, windowed and transformed, and the
// least-squares inverse, which adds the frames up again and divides by the sum of squared windows.
#include <ATen/core/HandlerKeys.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/WarnOnce.h>
#include <ATen/native/fft/Native.h>
#include <ATen/ops/_fft_c2c.h>
#include <ATen/ops/_fft_c2r.h>
#include <ATen/ops/_fft_r2c.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/div.h>
#include <ATen/ops/min.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/real.h>
#include <ATen/ops/squeeze.h>
#include <ATen/ops/stft.h>
#include <ATen/ops/transpose.h>
#include <ATen/ops/unfold.h>
#include <ATen/ops/unfold_backward.h>
#include <ATen/ops/unsqueeze.h>
#include <ATen/ops/view_as_real.h>
#include <c10/util/Exception.h>

#include <string>

namespace at::native {
namespace {

std::string shown(IntArrayRef sizes) {
  std::string out = "[";
  for (size_t i = 0; i < sizes.size(); ++i) out += (i ? ", " : "") + std::to_string(sizes[i]);
  return out + "]";
}
std::string flag(std::optional<bool> flag) { return flag ? (*flag ? "1" : "0") : "None"; }

// What every message begins with.
struct Call {
  const char* name;
  IntArrayRef sizes;
  int64_t n_fft, hop, win;
  const std::optional<Tensor>& window;
  bool normalized;
  std::optional<bool> onesided;

  std::string text() const {
    const bool given = window && window->defined();
    return std::string(name) + "(input" + shown(sizes) + ", n_fft=" + std::to_string(n_fft) +
           ", hop_length=" + std::to_string(hop) + ", win_length=" + std::to_string(win) +
           ", window=" + (given ? "tensor" + shown(window->sizes()) : std::string("None")) +
           ", normalized=" + flag(normalized) + ", onesided=" + flag(onesided) + ")";
  }
};

bool has(const std::optional<Tensor>& t) { return t && t->defined(); }

// A window of n_fft points: the given one, or ones, of win points in the middle of zeros. Undefined
// when it would be all ones.
Tensor whole_window(const std::optional<Tensor>& window, int64_t win, int64_t n_fft,
                    ScalarType dtype, Device device) {
  if (!has(window) && win == n_fft) return Tensor();
  const Tensor w =
      has(window) ? *window : at::ones({win}, dtype, std::nullopt, device, std::nullopt);
  if (win == n_fft) return w;
  const int64_t left = (n_fft - win) / 2;
  const int64_t pad[2] = {left, n_fft - win - left};
  return at::constant_pad_nd(w, IntArrayRef(pad, 2));
}

Tensor frames_spectrum(const Tensor& frames, bool onesided, bool normalized) {
  const int64_t last = frames.dim() - 1, code = normalized ? 1 : 0;
  if (frames.is_complex()) return at::_fft_c2c(frames, {last}, code, true);
  return at::_fft_r2c(frames, {last}, code, onesided);
}

} // namespace

Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
            std::optional<int64_t> win_length, const std::optional<Tensor>& window, bool normalized,
            std::optional<bool> onesided, std::optional<bool> return_complex,
            std::optional<bool> align_to_window) {
  const Call call{"stft",
                  self.sizes(),
                  n_fft,
                  hop_length ? *hop_length : n_fft / 4,
                  win_length ? *win_length : n_fft,
                  window,
                  normalized,
                  onesided};
  const bool complex_fft = self.is_complex() || (has(window) && window->is_complex());
  TORCH_CHECK(self.is_complex() || return_complex || (has(window) && window->is_complex()),
              "stft requires the return_complex parameter be given for real inputs, and will "
              "further require that return_complex=True in a future PyTorch release.");
  const bool as_complex = return_complex ? *return_complex : true;
  TORCH_CHECK(c10::isFloatingType(self.scalar_type()) || self.is_complex(), call.text(),
              " : expected a tensor of floating point or complex values");
  TORCH_CHECK(self.dim() == 1 || self.dim() == 2, call.text(), " : expected a 1D or 2D tensor");
  Tensor input = self.dim() == 1 ? at::unsqueeze(self, 0) : self;
  const int64_t length = input.size(1);
  TORCH_CHECK(n_fft > 0 && n_fft <= length, call.text(), " : expected 0 < n_fft < ", length,
              ", but got n_fft=", n_fft);
  TORCH_CHECK(call.hop > 0, call.text(),
              " : expected hop_length > 0, but got hop_length=", call.hop);
  TORCH_CHECK(call.win > 0 && call.win <= n_fft, call.text(),
              " : expected 0 < win_length <= n_fft, but got win_length=", call.win);
  TORCH_CHECK(!has(window) || (window->dim() == 1 && window->size(0) == call.win), call.text(),
              " : expected a 1D window tensor of size equal to win_length=", call.win,
              ", but got window with size ", has(window) ? window->sizes() : IntArrayRef());
  if (!has(window))
    AT_WARN_ONCE("A window was not provided. A rectangular window will be applied, which is known "
                 "to cause spectral leakage. To keep it and not be warned, pass "
                 "window=torch.ones(n_fft).");
  if (!as_complex)
    AT_WARN_ONCE("stft with return_complex=False is deprecated; torch.view_as_real of the complex "
                 "result is the same.");
  const bool half = onesided ? *onesided : !complex_fft;
  TORCH_CHECK(!complex_fft || !half, "Cannot have onesided output if window or input is complex");
  if (align_to_window && *align_to_window) {
    const int64_t left = (n_fft - call.win) / 2;
    const int64_t pad[2] = {left, n_fft - call.win - left};
    input = at::constant_pad_nd(input, IntArrayRef(pad, 2));
  }
  Tensor frames = at::_ops::unfold::call(input, 1, n_fft, call.hop);
  const Tensor w = whole_window(window, call.win, n_fft, self.scalar_type(), self.device());
  if (w.defined()) frames = at::mul(frames, w);
  Tensor out = at::transpose(frames_spectrum(frames, half, normalized), 1, 2);
  if (self.dim() == 1) out = at::squeeze(out, 0);
  return as_complex ? out : at::view_as_real(out);
}

Tensor stft_center(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
                   std::optional<int64_t> win_length, const std::optional<Tensor>& window,
                   bool center, std::string_view pad_mode, bool normalized,
                   std::optional<bool> onesided, std::optional<bool> return_complex,
                   std::optional<bool> align_to_window) {
  TORCH_CHECK(!center || !align_to_window,
              "stft align_to_window should only be set when center = false");
  Tensor input = self;
  if (center) {
    // Padding modes other than zeros want a batch and a channel.
    DimVector grown;
    for (int64_t i = self.dim(); i < 3; ++i) grown.push_back(1);
    for (const int64_t size : self.sizes()) grown.push_back(size);
    const int64_t pad[2] = {n_fft / 2, n_fft / 2};
    TORCH_CHECK(self.dim() <= 3, "stft: expected a 1D or 2D tensor, but got ", self.sizes());
    const Tensor padded = at::pad(self.view(grown), IntArrayRef(pad, 2), pad_mode);
    input = padded.view(padded.sizes().slice(3 - self.dim(), self.dim()));
  }
  return at::stft(input, n_fft, hop_length, win_length, window, normalized, onesided,
                  return_complex, align_to_window);
}

namespace {

// The frames added up where they overlap: [.., frames, n_fft] to [.., length].
Tensor overlap_add(const Tensor& frames, int64_t length, int64_t hop) {
  TORCH_CHECK(frames.dim() >= 2, "istft: expected frames of at least 2 dimensions, got ",
              frames.sizes());
  DimVector sizes(frames.sizes().slice(0, frames.dim() - 2));
  sizes.push_back(length);
  return at::unfold_backward(frames, sizes, static_cast<int64_t>(sizes.size()) - 1, frames.size(-1),
                             hop);
}

void check_istft(const Call& call, const Tensor& self, int64_t frequencies, bool half) {
  TORCH_CHECK(self.numel() != 0, call.text(), " : input tensor cannot be empty.");
  TORCH_CHECK(self.dim() == 2 || self.dim() == 3, call.text(),
              " : expected a tensor with 3 or 4 dimensions, but got ", self.dim() + 1);
  TORCH_CHECK(frequencies == (half ? call.n_fft / 2 + 1 : call.n_fft), call.text(),
              " : expected the frequency dimension (3rd to the last) of the input tensor to match ",
              half ? "n_fft / 2 + 1 when onesided=True" : "n_fft when onesided=False", ", but got ",
              frequencies);
  TORCH_CHECK(call.hop > 0 && call.hop <= call.win, call.text(),
              " : expected 0 < hop_length <= win_length");
  TORCH_CHECK(call.win > 0 && call.win <= call.n_fft, call.text(),
              " : expected 0 < win_length <= n_fft");
  TORCH_CHECK(!has(call.window) || (call.window->dim() == 1 && call.window->size(0) == call.win),
              call.text(),
              " : Invalid window shape. window has to be 1D and length of `win_length`");
}

} // namespace

Tensor istft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
             std::optional<int64_t> win_length, const std::optional<Tensor>& window, bool center,
             bool normalized, std::optional<bool> onesided, std::optional<int64_t> length,
             bool return_complex) {
  const Call call{"istft",
                  self.sizes(),
                  n_fft,
                  hop_length ? *hop_length : n_fft / 4,
                  win_length ? *win_length : n_fft,
                  window,
                  normalized,
                  onesided};
  TORCH_CHECK(self.is_complex(), "istft requires a complex-valued input tensor matching the output "
                                 "from stft with return_complex=True.");
  TORCH_CHECK_INDEX(self.dim() >= 2, "Dimension out of range (expected to be in range of [-2, 1], "
                                     "but got -3)");
  const int64_t frequencies = self.size(-2), count = self.size(-1);
  const bool half = onesided ? *onesided : frequencies != n_fft;
  check_istft(call, self, frequencies, half);
  TORCH_CHECK(!return_complex || !half,
              "Cannot have onesided output if window or input is complex");
  TORCH_CHECK(return_complex || !has(window) || !window->is_complex(),
              "Complex windows are incompatible with return_complex=False");
  if (!has(window))
    AT_WARN_ONCE("A window was not provided. A rectangular window will be applied. The result is "
                 "the signal only when stft had the same window.");
  const ScalarType real = self.scalar_type() == kComplexDouble ? kDouble
                          : self.scalar_type() == kComplexHalf ? kHalf
                                                               : kFloat;
  Tensor w = whole_window(window, call.win, n_fft, real, self.device());
  if (!w.defined()) w = at::ones({n_fft}, real, std::nullopt, self.device(), std::nullopt);

  Tensor input = at::transpose(self.dim() == 2 ? at::unsqueeze(self, 0) : self, 1, 2);
  const int64_t code = normalized ? 1 : 2;
  Tensor frames;
  if (return_complex) {
    frames = at::_fft_c2c(input, {2}, code, false);
  } else {
    if (!half) input = input.slice(2, 0, n_fft / 2 + 1);
    frames = at::_fft_c2r(input, {2}, code, n_fft);
  }
  const int64_t whole = n_fft + call.hop * (count - 1);
  Tensor sum = overlap_add(at::mul(frames, w), whole, call.hop);
  Tensor weight =
      overlap_add(at::unsqueeze(at::mul(w, w), 0).expand({count, n_fft}), whole, call.hop);

  const int64_t start = center ? n_fft / 2 : 0;
  const int64_t end = length ? start + *length : whole - (center ? n_fft / 2 : 0);
  TORCH_CHECK(end > start, call.text(), " : the result would have ", end - start, " points");
  sum = sum.slice(1, start, end);
  weight = weight.slice(0, start, end);
  // A trace has no values to look at.
  const bool unknown = weight.key_set().has(DispatchKey::Meta) || seen_by_handlers(weight);
  TORCH_CHECK(unknown || at::min(at::abs(weight)).item().toDouble() > 1e-11, call.text(),
              " window overlap add min: 1");
  Tensor out = at::div(sum, weight);
  if (length && *length > out.size(1)) {
    const int64_t pad[2] = {0, *length - out.size(1)};
    out = at::constant_pad_nd(out, IntArrayRef(pad, 2));
  }
  return self.dim() == 2 ? at::squeeze(out, 0) : out;
}

} // namespace at::native
