// softmax and log_softmax: shapes, threads and the choice of loops.
#include <ATen/native/reduce/Native.h>

#include <algorithm>
#include <limits>
#include <memory>

#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/IsaTable.h>
#include <ATen/native/RowKernels.h>
#include <ATen/native/reduce/SoftmaxKernel.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {

namespace softmax_loops {
CRESSET_DEFINE_ISA_TABLE(SoftmaxTable);
} // namespace softmax_loops
namespace {

using softmax_loops::kBundle;
using softmax_loops::SoftmaxKernel;
using softmax_loops::SoftmaxTable;

constexpr int64_t kSoftmaxGrain = 16384;

const SoftmaxKernel& kernel_for(bool log, const Tensor& self, int64_t dim) {
  const SoftmaxKernel& kernel =
      softmax_loops::table().kernel[log][static_cast<int>(self.scalar_type())];
  const bool last = self.dim() == 0 || wrap_dim(dim, self.dim()) == self.dim() - 1;
  TORCH_CHECK_NOT_IMPLEMENTED(kernel.line, "\"", log ? "log_" : "",
                              last ? "softmax_lastdim" : "softmax",
                              "_kernel_impl\" not implemented for '", self.scalar_type(), "'");
  return kernel;
}

struct Shape {
  int64_t outer = 1, n = 1, inner = 1;
};
Shape shape_of(const Tensor& t, int64_t dim) {
  Shape s;
  if (t.dim() == 0) return s;
  const int64_t d = wrap_dim(dim, t.dim());
  s.n = t.sizes()[d];
  for (int64_t i = 0; i < d; ++i) s.outer *= t.sizes()[i];
  for (int64_t i = d + 1; i < t.dim(); ++i) s.inner *= t.sizes()[i];
  return s;
}

// line(offset) for every line, or bundle(offset, width) for lines side by side; offsets in
// elements.
template <class Range> void for_lines(const Shape& s, const Range& range) {
  const int64_t bundles = s.inner == 1 ? 1 : (s.inner + kBundle - 1) / kBundle;
  const int64_t work = std::max<int64_t>(1, s.n * std::min(s.inner, kBundle));
  const int64_t items = s.outer * bundles;
  const auto run = [&](int64_t b, int64_t e) { range(b, e, bundles); };
  if (s.outer * s.n * s.inner <= kSoftmaxGrain) {
    run(0, items);
    return;
  }
  at::BlockingRegion region;
  at::parallel_for(0, items, std::max<int64_t>(1, kSoftmaxGrain / work), run);
}

// Lines from here on are shared between threads, whatever their number: how a sum is cut depends
// on the length alone. Side by side they are brought into order first.
constexpr int64_t kLongLine = int64_t(1) << 20;

// The sum of part(b, e) over pieces of a long line.
template <class Part> double long_sum(int64_t n, const Part& part) {
  return at::parallel_reduce(
      0, n, 4 * kSoftmaxGrain, 0.0,
      [&](int64_t begin, int64_t end, double sum) {
        for (int64_t b = begin; b < end; b += kSoftmaxGrain)
          sum += part(b, std::min(end, b + kSoftmaxGrain));
        return sum;
      },
      [](double a, double b) { return a + b; });
}

void long_line(const softmax_loops::LongLine& parts, const char* in, char* out, int64_t n,
               int64_t size) {
  const double top = at::parallel_reduce(
      0, n, kSoftmaxGrain, -std::numeric_limits<double>::infinity(),
      [&](int64_t b, int64_t e, double) { return parts.top(in + b * size, e - b); },
      [](double a, double b) { return a != a || a > b ? a : b; });
  const double sum =
      long_sum(n, [&](int64_t b, int64_t e) { return parts.exp_sum(in + b * size, e - b, top); });
  at::parallel_for(0, n, kSoftmaxGrain, [&](int64_t b, int64_t e) {
    parts.result(in + b * size, out + b * size, e - b, top, sum);
  });
}

void long_line_backward(const softmax_loops::LongLine& parts, const char* grad, const char* output,
                        char* out, int64_t n, int64_t size) {
  const double sum = long_sum(n, [&](int64_t b, int64_t e) {
    return parts.grad_sum(grad + b * size, output + b * size, e - b);
  });
  at::parallel_for(0, n, kSoftmaxGrain, [&](int64_t b, int64_t e) {
    parts.gradient(grad + b * size, output + b * size, out + b * size, e - b, sum);
  });
}

// Lines behind each other.
void each_line(const SoftmaxKernel& kernel, const char* in, char* to, int64_t lines, int64_t n,
               int64_t size) {
  std::unique_ptr<char[]> heap;
  alignas(64) char small[8192];
  char* scratch = small;
  if (n * kernel.scratch_size > static_cast<int64_t>(sizeof(small))) {
    heap.reset(new char[n * kernel.scratch_size]);
    scratch = heap.get();
  }
  for (int64_t i = 0; i < lines; ++i) kernel.line(in + i * n * size, to + i * n * size, n, scratch);
}
void each_line_backward(const SoftmaxKernel& kernel, const char* grad, const char* output, char* to,
                        int64_t lines, int64_t n, int64_t size) {
  for (int64_t i = 0; i < lines; ++i) {
    const int64_t offset = i * n * size;
    kernel.line_backward(grad + offset, output + offset, to + offset, n);
  }
}

void forward(bool log, const Tensor& self, int64_t dim, const Tensor& out) {
  const SoftmaxKernel& kernel = kernel_for(log, self, dim);
  if (self.numel() == 0) return;
  const Shape whole = shape_of(self, dim);
  if (whole.n >= kLongLine && whole.inner > 1) {
    const Tensor lines = self.transpose(dim, -1).contiguous();
    forward(log, lines, -1, lines);
    out.copy_(lines.transpose(dim, -1));
    return;
  }
  const Tensor input = self.contiguous();
  const Shape s = shape_of(input, dim);
  const char* in = static_cast<const char*>(input.const_data_ptr());
  char* to = static_cast<char*>(out.mutable_data_ptr());
  const int64_t size = input.itemsize();
  if (s.n >= kLongLine) {
    at::BlockingRegion region;
    for (int64_t i = 0; i < s.outer; ++i)
      long_line(kernel.parts, in + i * s.n * size, to + i * s.n * size, s.n, size);
    return;
  }
  for_lines(s, [&](int64_t b, int64_t e, int64_t bundles) {
    if (s.inner == 1) {
      const int64_t offset = b * s.n * size;
      each_line(kernel, in + offset, to + offset, e - b, s.n, size);
      return;
    }
    for (int64_t i = b; i < e; ++i) {
      const int64_t first = i % bundles * kBundle;
      const int64_t offset = (i / bundles * s.n * s.inner + first) * size;
      kernel.bundle(in + offset, to + offset, s.n, s.inner, std::min(kBundle, s.inner - first));
    }
  });
}

void backward(bool log, const Tensor& grad_output, const Tensor& output, int64_t dim,
              const Tensor& out) {
  const SoftmaxKernel& kernel = kernel_for(log, grad_output, dim);
  if (output.numel() == 0) return;
  const Shape whole = shape_of(output, dim);
  if (whole.n >= kLongLine && whole.inner > 1) {
    const Tensor lines = output.transpose(dim, -1).contiguous();
    backward(log, grad_output.transpose(dim, -1), lines, -1, lines);
    out.copy_(lines.transpose(dim, -1));
    return;
  }
  const Tensor grad = grad_output.contiguous(), y = output.contiguous();
  const Shape s = shape_of(y, dim);
  const char* g = static_cast<const char*>(grad.const_data_ptr());
  const char* in = static_cast<const char*>(y.const_data_ptr());
  char* to = static_cast<char*>(out.mutable_data_ptr());
  const int64_t size = y.itemsize();
  if (s.n >= kLongLine) {
    at::BlockingRegion region;
    for (int64_t i = 0; i < s.outer; ++i) {
      const int64_t offset = i * s.n * size;
      long_line_backward(kernel.parts, g + offset, in + offset, to + offset, s.n, size);
    }
    return;
  }
  for_lines(s, [&](int64_t b, int64_t e, int64_t bundles) {
    if (s.inner == 1) {
      const int64_t offset = b * s.n * size;
      each_line_backward(kernel, g + offset, in + offset, to + offset, e - b, s.n, size);
      return;
    }
    for (int64_t i = b; i < e; ++i) {
      const int64_t first = i % bundles * kBundle;
      const int64_t offset = (i / bundles * s.n * s.inner + first) * size;
      kernel.bundle_backward(g + offset, in + offset, to + offset, s.n, s.inner,
                             std::min(kBundle, s.inner - first));
    }
  });
}

const SoftmaxKernel& kernel_of(const RowKernel& rows) {
  return softmax_loops::table().kernel[rows.log][static_cast<int>(rows.dtype)];
}
RowKernel softmax_like(RowKernel::Fn run, bool log, ScalarType dtype, int64_t length) {
  RowKernel rows;
  rows.dtype = dtype;
  rows.length = length;
  rows.log = log;
  if (kernel_of(rows).line && length < kLongLine) rows.run = run;
  return rows;
}

} // namespace

RowKernel softmax_rows(bool log, ScalarType dtype, int64_t length) {
  return softmax_like(
      [](const RowKernel& rows, const char* const* in, char* const* out, int64_t count) {
        each_line(kernel_of(rows), in[0], out[0], count, rows.length, c10::elementSize(rows.dtype));
      },
      log, dtype, length);
}
RowKernel softmax_backward_rows(bool log, ScalarType dtype, int64_t length) {
  return softmax_like(
      [](const RowKernel& rows, const char* const* in, char* const* out, int64_t count) {
        each_line_backward(kernel_of(rows), in[0], in[1], out[0], count, rows.length,
                           c10::elementSize(rows.dtype));
      },
      log, dtype, length);
}

void softmax_cpu(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  forward(false, self, dim, out);
}
void log_softmax_cpu(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  forward(true, self, dim, out);
}
void softmax_backward_cpu(const Tensor& grad_output, const Tensor& output, int64_t dim, ScalarType,
                          const Tensor& out) {
  backward(false, grad_output, output, dim, out);
}
void log_softmax_backward_cpu(const Tensor& grad_output, const Tensor& output, int64_t dim,
                              ScalarType, const Tensor& out) {
  backward(true, grad_output, output, dim, out);
}

namespace {
// On a GPU the kernel converts half types to float itself.
bool widens(const Tensor& self, std::optional<ScalarType> dtype) {
  return dtype == kFloat && self.is_cuda() &&
         (self.scalar_type() == kHalf || self.scalar_type() == kBFloat16);
}
} // namespace

Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  if (widens(self, dtype)) return at::_softmax(self, dim, true);
  return at::_softmax(dtype ? self.to(*dtype) : self, dim, false);
}
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  if (widens(self, dtype)) return at::_log_softmax(self, dim, true);
  return at::_log_softmax(dtype ? self.to(*dtype) : self, dim, false);
}
Tensor special_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return at::softmax(self, dim, dtype);
}
Tensor special_log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return at::log_softmax(self, dim, dtype);
}

} // namespace at::native

namespace at::meta {
namespace {
void set_softmax(OutputBuilder& out, const Tensor& self, int64_t dim, bool half_to_float) {
  native::wrap_dim(dim, self.dim());
  TORCH_CHECK(!half_to_float || !self.is_cpu(),
              "softmax with half to float conversion is not supported on CPU");
  out.set_symint(0, self.sym_sizes(), half_to_float ? kFloat : self.scalar_type());
}
void set_backward(OutputBuilder& out, const Tensor& grad, const Tensor& output, int64_t dim,
                  ScalarType input_dtype) {
  native::wrap_dim(dim, grad.dim());
  TORCH_CHECK(grad.sym_sizes() == output.sym_sizes(), "softmax backward: grad_output has size ",
              grad.sym_sizes(), " but output has size ", output.sym_sizes());
  TORCH_CHECK(grad.scalar_type() == output.scalar_type(), "expected scalar type ",
              output.scalar_type(), " but found ", grad.scalar_type());
  TORCH_CHECK(!grad.is_cpu() || input_dtype == grad.scalar_type(), "expected scalar type ",
              grad.scalar_type(), " but found ", input_dtype);
  out.set_symint(0, grad.sym_sizes(), input_dtype);
}
} // namespace

void meta__softmax(OutputBuilder& out, const Tensor& self, int64_t dim, bool half_to_float) {
  set_softmax(out, self, dim, half_to_float);
}
void meta__log_softmax(OutputBuilder& out, const Tensor& self, int64_t dim, bool half_to_float) {
  set_softmax(out, self, dim, half_to_float);
}
void meta_softmax_backward(OutputBuilder& out, const Tensor& grad, const Tensor& output,
                           int64_t dim, ScalarType input_dtype) {
  set_backward(out, grad, output, dim, input_dtype);
}
void meta_log_softmax_backward(OutputBuilder& out, const Tensor& grad, const Tensor& output,
                               int64_t dim, ScalarType input_dtype) {
  set_backward(out, grad, output, dim, input_dtype);
}

} // namespace at::meta
