// Shape functions of pooling: sizes, dtypes and checks; also what makes the gradients safe to
// compute.
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/pool/Native.h>
#include <ATen/native/pool/PoolWindows.h>
#include <c10/core/MemoryFormat.h>

namespace at::meta {
namespace {

void set(OutputBuilder& out, int i, const DimVector& sizes, ScalarType dtype, bool channels_last) {
  if (channels_last) {
    out.set(i, sizes, dtype, IntArrayRef(c10::channels_last_strides(sizes)));
  } else {
    out.set(i, sizes, dtype);
  }
}
void set_symbolic(OutputBuilder& out, int i, SymIntArrayRef sizes, ScalarType dtype,
                  bool channels_last) {
  if (channels_last) {
    const native::SymDimVector strides = native::channels_last_strides_of<SymInt>(sizes);
    out.set_symint(i, sizes, dtype, SymIntArrayRef(strides));
  } else {
    out.set_symint(i, sizes, dtype);
  }
}
// Sizes of a pooled tensor, of which only the pooled dimensions are computed.
native::SymDimVector symbolic_sizes(const Tensor& self, const native::PoolParams& p,
                                    const char* op) {
  const size_t dims = p.kernel.size(), rank = static_cast<size_t>(self.dim());
  TORCH_CHECK(rank == dims + 1 || rank == dims + 2, op, ": non-empty ", dims + 1, "D or ", dims + 2,
              "D (batch mode) tensor expected for input");
  native::SymDimVector out(self.sym_sizes());
  for (size_t i = 0; i < dims; ++i) {
    const SymInt in = out[rank - dims + i];
    const SymInt room = in + (2 * p.padding[i] - p.dilation[i] * (p.kernel[i] - 1) - 1 +
                              (p.ceil_mode ? p.stride[i] - 1 : 0));
    SymInt size = room / p.stride[i] + 1;
    // The last window must begin inside the input or the padding before it.
    if (p.ceil_mode && (size - 1) * p.stride[i] >= in + p.padding[i]) size -= 1;
    TORCH_CHECK(c10::expect_true(c10::sym_gt(size, 0)), op, ": Output size is too small for ",
                self.sym_sizes());
    out[rank - dims + i] = size;
  }
  return out;
}
bool is_last(const Tensor& self, bool also_3d) {
  return (self.dim() == 4 || (also_3d && self.dim() == 5)) &&
         self.suggest_memory_format() != MemoryFormat::Contiguous;
}

void max_shape(OutputBuilder& out, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
               IntArrayRef padding, IntArrayRef dilation, bool ceil_mode, size_t dims,
               const char* op) {
  const auto p = native::pool_params(kernel, stride, padding, dilation, ceil_mode, dims, op);
  const bool last = dims == 3 ? self.dim() == 5 && is_last(self, true) : is_last(self, false);
  if (native::is_symbolic(self)) {
    const native::SymDimVector sizes = symbolic_sizes(self, p, op);
    set_symbolic(out, 0, sizes, self.scalar_type(), last);
    set_symbolic(out, 1, sizes, kLong, last);
    return;
  }
  const DimVector sizes = native::pool_output_size(self.sizes(), p, op, true);
  set(out, 0, sizes, self.scalar_type(), last);
  set(out, 1, sizes, kLong, last);
}

void check_grad(const Tensor& grad, IntArrayRef sizes, const char* op) {
  TORCH_CHECK(grad.sizes().equals(sizes), op, ": expected grad_output of size ", sizes,
              ", but got ", grad.sizes());
}
void check_indices(const Tensor& grad, const Tensor& indices, const char* op) {
  TORCH_CHECK(indices.scalar_type() == kLong, op,
              ": elements in indices should be type int64 but got: ", indices.scalar_type());
  TORCH_CHECK(indices.sizes().equals(grad.sizes()), op, ": expected indices of size ", grad.sizes(),
              ", but got ", indices.sizes());
}
void check_dtype(const Tensor& grad, const Tensor& self, const char* op) {
  TORCH_CHECK(grad.scalar_type() == self.scalar_type(), op, ": expected dtype ", self.scalar_type(),
              " for `grad_output` but got dtype ", grad.scalar_type());
}

void max_backward_shape(OutputBuilder& out, const Tensor& grad, const Tensor& self,
                        IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef dilation, bool ceil_mode, const Tensor& indices, size_t dims,
                        const char* op) {
  const auto p = native::pool_params(kernel, stride, padding, dilation, ceil_mode, dims, op);
  check_dtype(grad, self, op);
  if (native::is_symbolic(self)) {
    set_symbolic(out, 0, self.sym_sizes(), self.scalar_type(), dims == 2 && is_last(self, false));
    return;
  }
  check_grad(grad, native::pool_output_size(self.sizes(), p, op, true), op);
  check_indices(grad, indices, op);
  set(out, 0, DimVector(self.sizes()), self.scalar_type(), dims == 2 && is_last(self, false));
}

native::PoolParams avg_params(IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                              bool ceil_mode, std::optional<int64_t> divisor, size_t dims,
                              const char* op) {
  TORCH_CHECK(!divisor || *divisor != 0, "divisor must be not zero");
  return native::pool_params(kernel, stride, padding, {1}, ceil_mode, dims, op);
}
void avg_shape(OutputBuilder& out, const Tensor& self, const native::PoolParams& p,
               const char* op) {
  const bool last = p.kernel.size() == 2 && is_last(self, false);
  if (native::is_symbolic(self)) {
    set_symbolic(out, 0, symbolic_sizes(self, p, op), self.scalar_type(), last);
    return;
  }
  set(out, 0, native::pool_output_size(self.sizes(), p, op, false), self.scalar_type(), last);
}
void avg_backward_shape(OutputBuilder& out, const Tensor& grad, const Tensor& self,
                        const native::PoolParams& p, const char* op) {
  const bool last = p.kernel.size() == 2 && is_last(self, false);
  check_dtype(grad, self, op);
  if (native::is_symbolic(self)) {
    set_symbolic(out, 0, self.sym_sizes(), self.scalar_type(), last);
    return;
  }
  check_grad(grad, native::pool_output_size(self.sizes(), p, op, false), op);
  set(out, 0, DimVector(self.sizes()), self.scalar_type(), last);
}

DimVector adaptive_sizes(const Tensor& self, IntArrayRef output_size, int64_t dims, const char* op,
                         const char* colon) {
  TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, op, "(): Expected ", dims + 1,
              "D or ", dims + 2, "D tensor, but got", colon, self.sizes());
  return native::adaptive_output_size(self.sizes(), output_size, op);
}
native::SymDimVector symbolic_adaptive_sizes(const Tensor& self, IntArrayRef output_size,
                                             size_t dims, const char* op) {
  const size_t rank = static_cast<size_t>(self.dim());
  TORCH_CHECK(rank == dims + 1 || rank == dims + 2, op, "(): Expected ", dims + 1, "D or ",
              dims + 2, "D tensor, but got ", self.sym_sizes());
  native::SymDimVector out(self.sym_sizes());
  for (size_t i = 0; i < dims; ++i) out[rank - dims + i] = output_size[i];
  return out;
}
void adaptive_max_shape(OutputBuilder& out, const Tensor& self, IntArrayRef output_size,
                        size_t dims, const char* op) {
  TORCH_CHECK(output_size.size() == dims, op, "(): internal error: output_size.size() must be ",
              dims);
  if (native::is_symbolic(self)) {
    const native::SymDimVector sizes = symbolic_adaptive_sizes(self, output_size, dims, op);
    set_symbolic(out, 0, sizes, self.scalar_type(), dims == 2 && is_last(self, false));
    set_symbolic(out, 1, sizes, kLong, dims == 2 && is_last(self, false));
    return;
  }
  const DimVector sizes = adaptive_sizes(self, output_size, static_cast<int64_t>(dims), op, ": ");
  set(out, 0, sizes, self.scalar_type(), dims == 2 && is_last(self, false));
  set(out, 1, sizes, kLong, dims == 2 && is_last(self, false));
}
void adaptive_avg_shape(OutputBuilder& out, const Tensor& self, IntArrayRef output_size,
                        size_t dims, const char* op) {
  TORCH_CHECK(output_size.size() == dims, op, ": output_size must be ", dims);
  if (native::is_symbolic(self)) {
    set_symbolic(out, 0, symbolic_adaptive_sizes(self, output_size, dims, op), self.scalar_type(),
                 dims == 2 && is_last(self, false));
    return;
  }
  set(out, 0, adaptive_sizes(self, output_size, static_cast<int64_t>(dims), op, " "),
      self.scalar_type(), dims == 2 && is_last(self, false));
}
// The gradient has the rank and the leading sizes of the input.
void adaptive_backward_shape(OutputBuilder& out, const Tensor& grad, const Tensor& self,
                             size_t dims, const char* op) {
  check_dtype(grad, self, op);
  TORCH_CHECK(grad.dim() == self.dim(), op, ": expected grad_output of ", self.dim(),
              " dimensions, but got ", grad.sym_sizes());
  if (native::is_symbolic(self)) {
    set_symbolic(out, 0, self.sym_sizes(), self.scalar_type(), dims == 2 && is_last(self, false));
    return;
  }
  check_grad(grad,
             adaptive_sizes(self, grad.sizes().slice(grad.dim() - dims, dims),
                            static_cast<int64_t>(dims), op, " "),
             op);
  set(out, 0, DimVector(self.sizes()), self.scalar_type(), dims == 2 && is_last(self, false));
}

} // namespace

void meta_max_pool2d(OutputBuilder& out, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  max_shape(out, self, kernel, stride, padding, dilation, ceil_mode, 2, "max_pool2d");
}
void meta_max_pool3d(OutputBuilder& out, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  max_shape(out, self, kernel, stride, padding, dilation, ceil_mode, 3, "max_pool3d");
}
void meta_max_pool2d_backward(OutputBuilder& out, const Tensor& grad, const Tensor& self,
                              IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                              IntArrayRef dilation, bool ceil_mode, const Tensor& indices) {
  max_backward_shape(out, grad, self, kernel, stride, padding, dilation, ceil_mode, indices, 2,
                     "max_pool2d");
}
void meta_max_pool3d_backward(OutputBuilder& out, const Tensor& grad, const Tensor& self,
                              IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                              IntArrayRef dilation, bool ceil_mode, const Tensor& indices) {
  max_backward_shape(out, grad, self, kernel, stride, padding, dilation, ceil_mode, indices, 3,
                     "max_pool3d");
}
void meta_avg_pool2d(OutputBuilder& out, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, bool ceil_mode, bool, std::optional<int64_t> divisor) {
  avg_shape(out, self, avg_params(kernel, stride, padding, ceil_mode, divisor, 2, "avg_pool2d"),
            "avg_pool2d");
}
void meta_avg_pool3d(OutputBuilder& out, const Tensor& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, bool ceil_mode, bool, std::optional<int64_t> divisor) {
  avg_shape(out, self, avg_params(kernel, stride, padding, ceil_mode, divisor, 3, "avg_pool3d"),
            "avg_pool3d");
}
void meta_avg_pool2d_backward(OutputBuilder& out, const Tensor& grad, const Tensor& self,
                              IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                              bool ceil_mode, bool, std::optional<int64_t> divisor) {
  avg_backward_shape(out, grad, self,
                     avg_params(kernel, stride, padding, ceil_mode, divisor, 2, "avg_pool2d"),
                     "avg_pool2d");
}
void meta_avg_pool3d_backward(OutputBuilder& out, const Tensor& grad, const Tensor& self,
                              IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                              bool ceil_mode, bool, std::optional<int64_t> divisor) {
  avg_backward_shape(out, grad, self,
                     avg_params(kernel, stride, padding, ceil_mode, divisor, 3, "avg_pool3d"),
                     "avg_pool3d");
}
void meta_adaptive_max_pool2d(OutputBuilder& out, const Tensor& self, IntArrayRef output_size) {
  adaptive_max_shape(out, self, output_size, 2, "adaptive_max_pool2d");
}
void meta_adaptive_max_pool3d(OutputBuilder& out, const Tensor& self, IntArrayRef output_size) {
  adaptive_max_shape(out, self, output_size, 3, "adaptive_max_pool3d");
}
void meta_adaptive_max_pool2d_backward(OutputBuilder& out, const Tensor& grad, const Tensor& self,
                                       const Tensor& indices) {
  check_indices(grad, indices, "adaptive_max_pool2d_backward");
  adaptive_backward_shape(out, grad, self, 2, "adaptive_max_pool2d_backward");
}
void meta_adaptive_max_pool3d_backward(OutputBuilder& out, const Tensor& grad, const Tensor& self,
                                       const Tensor& indices) {
  check_indices(grad, indices, "adaptive_max_pool3d_backward");
  adaptive_backward_shape(out, grad, self, 3, "adaptive_max_pool3d_backward");
}
void meta_adaptive_avg_pool2d(OutputBuilder& out, const Tensor& self, IntArrayRef output_size) {
  adaptive_avg_shape(out, self, output_size, 2, "adaptive_avg_pool2d");
}
void meta_adaptive_avg_pool3d(OutputBuilder& out, const Tensor& self, IntArrayRef output_size) {
  adaptive_avg_shape(out, self, output_size, 3, "adaptive_avg_pool3d");
}
void meta_adaptive_avg_pool2d_backward(OutputBuilder& out, const Tensor& grad, const Tensor& self) {
  adaptive_backward_shape(out, grad, self, 2, "adaptive_avg_pool2d_backward");
}
void meta_adaptive_avg_pool3d_backward(OutputBuilder& out, const Tensor& grad, const Tensor& self) {
  adaptive_backward_shape(out, grad, self, 3, "adaptive_avg_pool3d_backward");
}

} // namespace at::meta
