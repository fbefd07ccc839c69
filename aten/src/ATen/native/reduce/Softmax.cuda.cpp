// The host side of Softmax.cuh: which form of kernel a shape and dtype get.
#include <algorithm>

#include <ATen/cuda/KernelCall.h>
#include <ATen/native/reduce/Native.h>
#include <ATen/native/shape/Geometry.h>

namespace at::native {
namespace {
using cuda::blocks_for;
using cuda::Kernel;

constexpr const char* kProgram = "native/reduce/Softmax.cuh";

struct Forms {
  Kernel s4, s32, v2, v8, block, columns;
};
#define CRESSET_FORMS(prefix, pair)                                                                \
  {                                                                                                \
    {kProgram, prefix "_s4_" pair}, {kProgram, prefix "_s32_" pair},                               \
        {kProgram, prefix "_v2_" pair}, {kProgram, prefix "_v8_" pair},                            \
        {kProgram, prefix "_block_" pair}, {                                                       \
      kProgram, prefix "_columns_" pair                                                            \
    }                                                                                              \
  }
#define CRESSET_PAIRS(prefix)                                                                      \
  {                                                                                                \
    CRESSET_FORMS(prefix, "f32_f32"), CRESSET_FORMS(prefix, "f64_f64"),                            \
        CRESSET_FORMS(prefix, "f16_f16"), CRESSET_FORMS(prefix, "bf16_bf16"),                      \
        CRESSET_FORMS(prefix, "f16_f32"), CRESSET_FORMS(prefix, "bf16_f32")                        \
  }

const Forms kForward[2][6] = {CRESSET_PAIRS("softmax"), CRESSET_PAIRS("log_softmax")};
const Forms kBackward[2][6] = {CRESSET_PAIRS("softmax_backward"),
                               CRESSET_PAIRS("log_softmax_backward")};

// `narrow` is the input's dtype, `wide` that of the output.
int pair_of(ScalarType narrow, ScalarType wide, const char* op) {
  const int slot = cuda::floating_slot(narrow, op);
  if (narrow == wide) return slot;
  TORCH_CHECK(slot >= 2 && wide == kFloat, op, ": input of ", narrow, " with a result of ", wide);
  return slot + 2;
}

struct Lines {
  int64_t outer = 1, n = 1, inner = 1;
};
Lines lines_of(const Tensor& t, int64_t dim) {
  Lines s;
  if (t.dim() == 0) return s;
  const int64_t d = wrap_dim(dim, t.dim());
  s.n = t.sizes()[d];
  for (int64_t i = 0; i < d; ++i) s.outer *= t.sizes()[i];
  for (int64_t i = d + 1; i < t.dim(); ++i) s.inner *= t.sizes()[i];
  return s;
}

// A block's threads for a long row: enough to have several packs each.
unsigned row_threads(int64_t n) { return n >= 8192 ? 512 : n >= 4096 ? 256 : 128; }

// The warp kernel for rows of n elements, or null: packs need whole, aligned rows.
const Kernel* warp_form(const Forms& forms, int64_t n, int64_t pack, bool aligned) {
  if (aligned && n % pack == 0) {
    if (n <= 64 * pack) return &forms.v2;
    if (n <= 256 * pack) return &forms.v8;
    return nullptr;
  }
  return n <= 128 ? &forms.s4 : n <= 1024 ? &forms.s32 : nullptr;
}

constexpr unsigned kRowsPerBlock = 4;

// Of shared memory for one row, with room for the kernel's own.
constexpr int64_t kMostSharedBytes = 224 * 1024;

void launch_rows(const Kernel& kernel, int64_t rows, int64_t n, int64_t itemsize, const void* x,
                 void* y) {
  const int64_t bytes = n * itemsize + 16;
  const int64_t limit =
      static_cast<int64_t>(c10::cuda::current_properties().shared_memory_per_block_optin);
  const bool keep = bytes <= std::min(limit - 1024, kMostSharedBytes);
  cuda::launch(kernel, static_cast<unsigned>(rows), bytes > 64 * 1024 ? 1024u : row_threads(n),
               keep ? static_cast<unsigned>(bytes) : 0, cuda::current_stream(), x, y, n,
               static_cast<int>(keep));
}

void forward(bool log, const Tensor& self, int64_t dim, const Tensor& out) {
  const char* name = log ? "log_softmax_cuda" : "softmax_cuda";
  const Forms& forms = kForward[log][pair_of(self.scalar_type(), out.scalar_type(), name)];
  if (self.numel() == 0) return;
  const Tensor input = self.contiguous();
  const Lines s = lines_of(input, dim);
  const void* x = input.const_data_ptr();
  void* y = out.mutable_data_ptr();
  const auto stream = cuda::current_stream();
  if (s.inner != 1) {
    const int64_t lines = s.outer * s.inner;
    cuda::launch(forms.columns, blocks_for(lines, 256), 256, 0, stream, x, y, lines, s.n, s.inner);
    return;
  }
  const int64_t pack = 16 / out.itemsize();
  const bool aligned = cuda::is_aligned16(x) && cuda::is_aligned16(y);
  if (const Kernel* kernel = warp_form(forms, s.n, pack, aligned))
    cuda::launch(*kernel, blocks_for(s.outer, kRowsPerBlock), 32 * kRowsPerBlock, 0, stream, x, y,
                 s.outer, static_cast<int>(s.n));
  else
    launch_rows(forms.block, s.outer, s.n, input.itemsize(), x, y);
}

void backward(bool log, const Tensor& grad_output, const Tensor& output, int64_t dim,
              const Tensor& out) {
  const char* name = log ? "log_softmax_backward_cuda" : "softmax_backward_cuda";
  const Forms& forms = kBackward[log][pair_of(out.scalar_type(), output.scalar_type(), name)];
  if (output.numel() == 0) return;
  cuda::check_same_device({&output, &grad_output});
  const Tensor grad = grad_output.contiguous(), saved = output.contiguous();
  const Lines s = lines_of(saved, dim);
  const void *g = grad.const_data_ptr(), *y = saved.const_data_ptr();
  void* to = out.mutable_data_ptr();
  const auto stream = cuda::current_stream();
  if (s.inner != 1) {
    const int64_t lines = s.outer * s.inner;
    cuda::launch(forms.columns, blocks_for(lines, 256), 256, 0, stream, g, y, to, lines, s.n,
                 s.inner);
    return;
  }
  const int64_t pack = 16 / saved.itemsize();
  const bool aligned = cuda::is_aligned16(g) && cuda::is_aligned16(y) && cuda::is_aligned16(to);
  if (const Kernel* kernel = warp_form(forms, s.n, pack, aligned))
    cuda::launch(*kernel, blocks_for(s.outer, kRowsPerBlock), 32 * kRowsPerBlock, 0, stream, g, y,
                 to, s.outer, static_cast<int>(s.n));
  else
    cuda::launch(forms.block, static_cast<unsigned>(s.outer), row_threads(s.n), 0, stream, g, y, to,
                 s.n, static_cast<int>(aligned && s.n % pack == 0));
}

} // namespace

void softmax_cuda(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  forward(false, self, dim, out);
}
void log_softmax_cuda(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  forward(true, self, dim, out);
}
void softmax_backward_cuda(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType,
                           const Tensor& out) {
  backward(false, grad_output, output, dim, out);
}
void log_softmax_backward_cuda(const Tensor& grad_output, const Tensor& output, int64_t dim,
                               ScalarType, const Tensor& out) {
  backward(true, grad_output, output, dim, out);
}

} // namespace at::native
