// The negative log-likelihood of target classes, for a batch (nll_loss) and for images
// (nll_loss2d): one walk over (sample, row, column) with the input's own strides. Sums are taken
// per chunk in double precision and the chunks in order.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/loss/LossUtil.h>
#include <ATen/native/loss/Native.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {
namespace {
constexpr int64_t kGrain = 4096;

bool has(const std::optional<Tensor>& t) { return t.has_value() && t->defined(); }

void check_weight(const std::optional<Tensor>& weight, int64_t classes, ScalarType dtype) {
  TORCH_CHECK(!has(weight) || (weight->dim() == 1 && weight->numel() == classes),
              "weight tensor should be defined either for all ", classes,
              " classes or no classes but got weight tensor of shape: ",
              has(weight) ? weight->sizes() : IntArrayRef());
  TORCH_CHECK(!has(weight) || weight->scalar_type() == dtype, "expected scalar type ", dtype,
              " but found ", has(weight) ? weight->scalar_type() : dtype);
}
void check_target_type(const Tensor& target) {
  TORCH_CHECK(target.scalar_type() == kLong || target.scalar_type() == kByte,
              "expected target dtype to be Long or Byte, but got ", target.scalar_type());
}
void check_nll(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
               int64_t reduction) {
  TORCH_CHECK(self.dim() > 0 && self.dim() <= 2, "input tensor should be 1D or 2D");
  TORCH_CHECK(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
  const bool single = self.dim() == 1 && target.dim() == 0;
  TORCH_CHECK_VALUE(
      self.dim() == 2 || single || target.sym_size(0) == 1,
      "For 1D input, 1D target must have size 1, but got target size: ", target.sym_size(0));
  TORCH_CHECK(
      single || (self.dim() == 1 ? target.sym_size(0) == 1
                                 : target.dim() == 1 && c10::expect_true(c10::sym_eq(
                                                            self.sym_size(0), target.sym_size(0)))),
      "size mismatch (got input: ", self.sym_sizes(), ", target: ", target.sym_sizes(), ")");
  check_target_type(target);
  if (weight && weight->defined()) check_weight(weight, self.size(-1), self.scalar_type());
  check_reduction(reduction);
}
void check_nll2d(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                 int64_t reduction) {
  const IntArrayRef of_input = self.sizes(), of_target = target.sizes();
  TORCH_CHECK(
      of_target.size() == 3,
      "only batches of spatial targets supported (3D tensors) but got targets of dimension: ",
      of_target.size());
  TORCH_CHECK(of_input.size() == 4,
              "only batches of spatial inputs supported (4D tensors), but got input of dimension: ",
              of_input.size());
  const bool same_image = of_input.slice(2, 2) == of_target.slice(1, 2);
  TORCH_CHECK(same_image && of_input[0] == of_target[0], "size mismatch (got input: ", of_input,
              " , target: ", of_target);
  check_target_type(target);
  check_weight(weight, self.size(1), self.scalar_type());
  check_reduction(reduction);
}

// Positions in (sample, row, column) order; `offset(i)` is where position i of the input begins.
struct Walk {
  int64_t samples, classes, rows, columns;
  int64_t sample_stride, class_stride, row_stride, column_stride;
  int64_t count() const { return samples * rows * columns; }
  int64_t offset(int64_t i) const {
    const int64_t column = i % columns, rest = i / columns;
    return rest / rows * sample_stride + rest % rows * row_stride + column * column_stride;
  }
};
Walk walk_of(const Tensor& t) {
  if (t.dim() == 4)
    return {t.size(0),   t.size(1),   t.size(2),   t.size(3),
            t.stride(0), t.stride(1), t.stride(2), t.stride(3)};
  if (t.dim() == 2) return {t.size(0), t.size(1), 1, 1, t.stride(0), t.stride(1), 0, 0};
  return {1, t.size(0), 1, 1, 0, t.stride(0), 0, 0};
}

struct Target {
  explicit Target(const Tensor& t)
      : values(t.to(kLong).contiguous()),
        data(static_cast<const int64_t*>(values.const_data_ptr())) {}
  // The class of position i, or -1 where it is ignored; IndexError outside the classes.
  int64_t operator()(int64_t i, int64_t ignore, int64_t classes) const {
    const int64_t c = data[i];
    if (c == ignore) return -1;
    TORCH_CHECK_INDEX(c >= 0 && c < classes, "Target ", c, " is out of bounds.");
    return c;
  }
  Tensor values;
  const int64_t* data;
};

struct Sums {
  double loss, weight;
};

void forward(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
             int64_t reduction, int64_t ignore, const Tensor& output, const Tensor& total_weight) {
  const Walk walk = walk_of(self);
  const Target classes(target);
  const Tensor w = has(weight) ? weight->to(self.scalar_type()).contiguous() : Tensor();
  dtype_switch<FloatingTypes>(self.scalar_type(), "nll_loss_out_frame", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = static_cast<const T*>(self.const_data_ptr());
    const T* wp = w.defined() ? static_cast<const T*>(w.const_data_ptr()) : nullptr;
    T* total = static_cast<T*>(total_weight.mutable_data_ptr());
    T* out = static_cast<T*>(output.mutable_data_ptr());
    if (reduction == kNoReduction) {
      at::parallel_for(0, walk.count(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t c = classes(i, ignore, walk.classes);
          if (c < 0)
            out[i] = static_cast<T>(0.0f);
          else
            out[i] = static_cast<T>(-x[walk.offset(i) + c * walk.class_stride] *
                                    (wp ? wp[c] : static_cast<T>(1.0f)));
        }
      });
      *total = static_cast<T>(0.0f);
      return;
    }
    const Sums sums = at::parallel_reduce(
        0, walk.count(), kGrain, Sums{0, 0},
        [&](int64_t begin, int64_t end, Sums s) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t c = classes(i, ignore, walk.classes);
            if (c < 0) continue;
            const double scale = wp ? static_cast<double>(wp[c]) : 1.0;
            s.loss -= static_cast<double>(x[walk.offset(i) + c * walk.class_stride]) * scale;
            s.weight += scale;
          }
          return s;
        },
        [](Sums a, Sums b) {
          return Sums{a.loss + b.loss, a.weight + b.weight};
        });
    *out = static_cast<T>(reduction == kMeanReduction ? sums.loss / sums.weight : sums.loss);
    *total = static_cast<T>(sums.weight);
  });
}

void backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
              const std::optional<Tensor>& weight, int64_t reduction, int64_t ignore,
              const Tensor& total_weight, const Tensor& grad_input) {
  const Walk walk = walk_of(grad_input);
  const Target classes(target);
  const ScalarType dtype = self.scalar_type();
  const Tensor w = has(weight) ? weight->to(dtype).contiguous() : Tensor();
  const Tensor grad = grad_output.to(dtype).contiguous();
  const int64_t expected = reduction == kNoReduction ? walk.count() : 1;
  TORCH_CHECK(grad.numel() == expected,
              "Expected a single element grad_output tensor or one for each target, but got: ",
              grad_output.sizes());
  TORCH_CHECK(total_weight.numel() == 1,
              "expected total_weight to be a  single element tensor, got: ", total_weight.sizes());
  const double total = total_weight.reshape({}).to(kDouble).item<double>();
  grad_input.zero_();
  dtype_switch<FloatingTypes>(dtype, "nll_loss_backward_out_frame", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* g = static_cast<const T*>(grad.const_data_ptr());
    const T* wp = w.defined() ? static_cast<const T*>(w.const_data_ptr()) : nullptr;
    T* out = static_cast<T*>(grad_input.mutable_data_ptr());
    const double factor = reduction == kMeanReduction ? 1.0 / total : 1.0;
    at::parallel_for(0, walk.count(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t c = classes(i, ignore, walk.classes);
        if (c < 0) continue;
        const double value = static_cast<double>(g[reduction == kNoReduction ? i : 0]) * factor;
        out[walk.offset(i) + c * walk.class_stride] =
            static_cast<T>(-value * (wp ? static_cast<double>(wp[c]) : 1.0));
      }
    });
  });
}
} // namespace

void nll_loss_forward_cpu(const Tensor& self, const Tensor& target,
                          const std::optional<Tensor>& weight, int64_t reduction,
                          int64_t ignore_index, const Tensor& output, const Tensor& total_weight) {
  forward(self, target, weight, reduction, ignore_index, output, total_weight);
}
void nll_loss2d_forward_cpu(const Tensor& self, const Tensor& target,
                            const std::optional<Tensor>& weight, int64_t reduction,
                            int64_t ignore_index, const Tensor& output,
                            const Tensor& total_weight) {
  forward(self, target, weight, reduction, ignore_index, output, total_weight);
}
void nll_loss_backward_cpu(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                           const std::optional<Tensor>& weight, int64_t reduction,
                           int64_t ignore_index, const Tensor& total_weight,
                           const Tensor& grad_input) {
  backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, grad_input);
}
void nll_loss2d_backward_cpu(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                             const std::optional<Tensor>& weight, int64_t reduction,
                             int64_t ignore_index, const Tensor& total_weight,
                             const Tensor& grad_input) {
  backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, grad_input);
}
} // namespace at::native

namespace at::meta {
void meta_nll_loss_forward(OutputBuilder& out, const Tensor& self, const Tensor& target,
                           const std::optional<Tensor>& weight, int64_t reduction,
                           int64_t /*ignore_index*/) {
  native::check_nll(self, target, weight, reduction);
  const bool each = reduction == native::kNoReduction && self.dim() == 2;
  out.set_symint(0, each ? self.sym_sizes().slice(0, 1) : SymIntArrayRef(), self.scalar_type());
  out.set(1, IntArrayRef(), self.scalar_type());
}
void meta_nll_loss2d_forward(OutputBuilder& out, const Tensor& self, const Tensor& target,
                             const std::optional<Tensor>& weight, int64_t reduction,
                             int64_t /*ignore_index*/) {
  native::check_nll2d(self, target, weight, reduction);
  out.set(0, reduction == native::kNoReduction ? target.sizes() : IntArrayRef(),
          self.scalar_type());
  out.set(1, IntArrayRef(), self.scalar_type());
}
void meta_nll_loss_backward(OutputBuilder& out, const Tensor& /*grad_output*/, const Tensor& self,
                            const Tensor& target, const std::optional<Tensor>& weight,
                            int64_t reduction, int64_t /*ignore_index*/,
                            const Tensor& /*total_weight*/) {
  native::check_nll(self, target, weight, reduction);
  native::set_like(out, 0, self, self.scalar_type());
}
void meta_nll_loss2d_backward(OutputBuilder& out, const Tensor& /*grad_output*/, const Tensor& self,
                              const Tensor& target, const std::optional<Tensor>& weight,
                              int64_t reduction, int64_t /*ignore_index*/,
                              const Tensor& /*total_weight*/) {
  native::check_nll2d(self, target, weight, reduction);
  out.set(0, self.sizes(), self.scalar_type());
}
} // namespace at::meta
