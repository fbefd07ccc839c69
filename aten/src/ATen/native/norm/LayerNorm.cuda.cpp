// The host side of LayerNorm.cuh: layer norm and RMS norm for one pair of input and parameter types
// each, warp kernels where a row splits into packs and fits one warp, else block kernels.
#include <limits>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/norm/LayerNorm.args.h>
#include <ATen/native/norm/Native.h>
#include <ATen/native/norm/NormUtil.h>
#include <ATen/native/norm/PendingSum.h>
#include <c10/util/SafeArithmetic.h>

namespace at::native {
namespace {
using cuda::blocks_for;
using cuda::Kernel;

constexpr const char* kProgram = "native/norm/LayerNorm.cuh";

struct Forms {
  Kernel warp[4], held, block;
};
struct BackwardForms {
  Kernel warp[4], held, block, parameters;
};
#define CRESSET_WARP_FORMS(op, pair)                                                               \
  {                                                                                                \
    {kProgram, op "_p2_" pair}, {kProgram, op "_p4_" pair}, {kProgram, op "_p6_" pair}, {          \
      kProgram, op "_p8_" pair                                                                     \
    }                                                                                              \
  }
#define CRESSET_FORWARD(op, pair)                                                                  \
  {                                                                                                \
    CRESSET_WARP_FORMS(op, pair), {kProgram, op "_held_" pair}, { kProgram, op "_block_" pair }    \
  }
#define CRESSET_BACKWARD(op, pair)                                                                 \
  {                                                                                                \
    CRESSET_WARP_FORMS(op "_backward", pair), {kProgram, op "_backward_held_" pair},               \
        {kProgram, op "_backward_block_" pair}, {                                                  \
      kProgram, op "_parameters_" pair                                                             \
    }                                                                                              \
  }
#define CRESSET_ALL(macro, op)                                                                     \
  {                                                                                                \
    macro(op, "f32_f32"), macro(op, "f64_f64"), macro(op, "f16_f16"), macro(op, "bf16_bf16"),      \
        macro(op, "f16_f32"), macro(op, "bf16_f32")                                                \
  }

const Forms kForward[2][6] = {CRESSET_ALL(CRESSET_FORWARD, "layer_norm"),
                              CRESSET_ALL(CRESSET_FORWARD, "rms_norm")};
const BackwardForms kBackward[2][6] = {CRESSET_ALL(CRESSET_BACKWARD, "layer_norm"),
                                       CRESSET_ALL(CRESSET_BACKWARD, "rms_norm")};
const Kernel kReduce[4] = {{kProgram, "norm_reduce_f32_f32"},
                           {kProgram, "norm_reduce_f64_f64"},
                           {kProgram, "norm_reduce_f32_f16"},
                           {kProgram, "norm_reduce_f32_bf16"}};

template <class A> using ForwardArgs = device::NormForwardArgs<void, void, A>;
using BackwardArgs = device::NormBackwardPointers;

// Rows of a problem and the type of its parameters.
struct Problem {
  int64_t rows, n;
  ScalarType dtype, parameters;
  int pair;
  int pack() const { return dtype == kDouble ? 2 : 4; }
  bool empty() const { return rows == 0 || n == 0; }
};

Problem problem_of(const Tensor& input, IntArrayRef shape, const std::optional<Tensor>& weight,
                   const std::optional<Tensor>& bias, const char* op) {
  const IntArrayRef sizes = input.sizes();
  TORCH_CHECK(!shape.empty() && sizes.size() >= shape.size() &&
                  sizes.slice(sizes.size() - shape.size()) == shape,
              "Given normalized_shape=", shape, ", got input of size", sizes);
  for (const std::optional<Tensor>* p : {&weight, &bias})
    TORCH_CHECK(!has(*p) || (*p)->sizes() == shape, "Expected the parameters to have the shape ",
                shape);
  cuda::check_same_device({&input, cuda::given(weight), cuda::given(bias)});
  Problem p{1, 1, input.scalar_type(), input.scalar_type(), 0};
  const size_t lead = sizes.size() - shape.size();
  for (size_t i = 0; i < sizes.size(); ++i) (i < lead ? p.rows : p.n) *= sizes[i];
  TORCH_CHECK_NOT_IMPLEMENTED(p.n <= std::numeric_limits<int32_t>::max(), op,
                              ": rows of more than 2^31 elements");
  if (has(weight))
    p.parameters = weight->scalar_type();
  else if (has(bias))
    p.parameters = bias->scalar_type();
  TORCH_CHECK(!has(weight) || !has(bias) || weight->scalar_type() == bias->scalar_type(), op,
              ": weight and bias must have one dtype");
  p.pair = cuda::floating_slot(p.dtype, op);
  if (p.parameters != p.dtype) {
    TORCH_CHECK(p.pair >= 2 && p.parameters == kFloat, op, ": input of ", p.dtype,
                " with parameters of ", p.parameters);
    p.pair += 2;
  }
  return p;
}

// The warp form that holds a row of n elements, or -1.
int warp_form(const Problem& p, std::initializer_list<const void*> pointers) {
  const int64_t packs = (p.n / p.pack() + 31) / 32;
  if (p.n % p.pack() != 0 || packs > 8) return -1;
  for (const void* pointer : pointers)
    if (!cuda::is_aligned16(pointer)) return -1;
  return packs <= 2 ? 0 : packs <= 4 ? 1 : packs <= 6 ? 2 : 3;
}

// Blocks of a warp form's gradient that a multiprocessor holds at once: a lane of the widest form
// needs 160 registers, of the others at most 128.
int64_t resident_blocks(int form) { return form == 3 ? 3 : 4; }

// Threads of a block that holds a row in registers, four packs each, or 0 where it is too long or
// does not split into packs.
unsigned held_threads(const Problem& p, std::initializer_list<const void*> pointers, int64_t most) {
  const int64_t threads = (p.n / p.pack() + 127) / 128 * 32;
  if (p.n % p.pack() != 0 || threads > most) return 0;
  for (const void* pointer : pointers)
    if (!cuda::is_aligned16(pointer)) return 0;
  return static_cast<unsigned>(threads);
}

unsigned row_threads(int64_t n) { return n >= 4096 ? 512 : n >= 1024 ? 256 : n > 64 ? 128 : 32; }

Tensor contiguous_or_undefined(const std::optional<Tensor>& t) {
  return has(t) ? t->contiguous() : Tensor();
}

template <class A> void run_forward(bool rms, const Problem& p, const Tensor& x, const Tensor& w,
                                    const Tensor& b, const Tensor& y, void* mean, void* rstd,
                                    double eps) {
  const ForwardArgs<A> args{
      x.const_data_ptr(),    data_or_null(w),       data_or_null(b), y.mutable_data_ptr(),
      static_cast<A*>(mean), static_cast<A*>(rstd), p.rows,          static_cast<int32_t>(p.n),
      static_cast<A>(eps)};
  const Forms& forms = kForward[rms][p.pair];
  const int form = warp_form(p, {args.x, args.weight, args.bias, args.y});
  if (form >= 0)
    cuda::launch(forms.warp[form], blocks_for(p.rows, 4), 128, 0, cuda::current_stream(), args);
  else if (const unsigned threads = held_threads(p, {args.x, args.weight, args.bias, args.y}, 512))
    cuda::launch(forms.held, static_cast<unsigned>(p.rows), threads, 0, cuda::current_stream(),
                 args);
  else
    cuda::launch(forms.block, static_cast<unsigned>(p.rows), row_threads(p.n), 0,
                 cuda::current_stream(), args);
}

void forward(bool rms, const Problem& p, const Tensor& input, const std::optional<Tensor>& weight,
             const std::optional<Tensor>& bias, const Tensor& out, const Tensor* mean,
             const Tensor& rstd, double eps) {
  const Tensor x = input.contiguous(), w = contiguous_or_undefined(weight),
               b = contiguous_or_undefined(bias);
  void* means = mean ? mean->mutable_data_ptr() : nullptr;
  if (p.dtype == kDouble)
    run_forward<double>(rms, p, x, w, b, out, means, rstd.mutable_data_ptr(), eps);
  else
    run_forward<float>(rms, p, x, w, b, out, means, rstd.mutable_data_ptr(), eps);
}

struct Gradients {
  Tensor input, weight, bias;
};

// The partial rows of one or two parameters, each into its gradient.
void reduce_partials(const Problem& p, const Tensor& first, const Tensor& first_out,
                     const Tensor& second, const Tensor& second_out) {
  cuda::launch(kReduce[cuda::floating_slot(p.parameters, "layer_norm_backward")],
               {blocks_for(p.n, 32), second.defined() ? 2u : 1u}, 512, 0, cuda::current_stream(),
               first.const_data_ptr(), data_or_null(second), first_out.mutable_data_ptr(),
               second_out.defined() ? second_out.mutable_data_ptr() : nullptr, first.size(0),
               static_cast<int>(p.n));
}

Gradients backward(bool rms, const Problem& p, const Tensor& grad_out, const Tensor& input,
                   IntArrayRef shape, const Tensor* mean, const Tensor& rstd,
                   const std::optional<Tensor>& weight, bool want_input, bool want_weight,
                   bool want_bias) {
  TORCH_CHECK(grad_out.sizes() == input.sizes(),
              "Expected the gradient to have the shape of the input, ", input.sizes(), ", but got ",
              grad_out.sizes());
  TORCH_CHECK(rstd.numel() == p.rows && (!mean || mean->numel() == p.rows),
              "Expected mean and rstd to have one value for each of the ", p.rows, " slices");
  cuda::check_same_device({&input, &grad_out, mean, &rstd});
  const ScalarType compute = compute_type(p.dtype);
  const Device device = input.device();
  Gradients result;
  if (want_weight) result.weight = detail::empty(shape, p.parameters, device);
  if (want_bias) result.bias = detail::empty(shape, p.parameters, device);
  if (p.empty()) {
    if (want_input) result.input = detail::empty(input.sizes(), p.dtype, device);
    for (const Tensor* t : {&result.weight, &result.bias})
      if (t->defined()) t->zero_();
    return result;
  }
  const Tensor g = grad_out.to(p.dtype).contiguous(), x = input.contiguous(),
               w = contiguous_or_undefined(weight), r = rstd.to(compute).contiguous(),
               m = mean ? mean->to(compute).contiguous() : Tensor();
  const Tensor* sum = want_input ? granted_sum(input) : nullptr;
  if (sum && warp_form(p, {g.const_data_ptr(), x.const_data_ptr(), data_or_null(w),
                           sum->const_data_ptr()}) < 0)
    sum = nullptr;
  if (sum) {
    result.input = *sum;
    sum->unsafeGetTensorImpl()->bump_version();
  } else if (want_input) {
    result.input = detail::empty(input.sizes(), p.dtype, device);
  }
  BackwardArgs args{g.const_data_ptr(),
                    x.const_data_ptr(),
                    data_or_null(w),
                    data_or_null(m),
                    r.const_data_ptr(),
                    want_input ? result.input.mutable_data_ptr() : nullptr,
                    sum ? sum->const_data_ptr() : nullptr,
                    nullptr,
                    nullptr,
                    p.rows,
                    static_cast<int32_t>(p.n)};
  const BackwardForms& forms = kBackward[rms][p.pair];
  const int form = warp_form(p, {args.g, args.x, args.weight, args.dx});
  const int64_t grid = form >= 0
                           ? blocks_for(p.rows, 4, resident_blocks(form) * cuda::multiprocessors())
                           : blocks_for(p.rows, 8, 64);
  Tensor partial_w, partial_b;
  const int64_t shape_of_partial[2] = {grid, p.n};
  if (want_weight) partial_w = detail::empty(shape_of_partial, compute, device);
  if (want_bias) partial_b = detail::empty(shape_of_partial, compute, device);
  args.partial_w = want_weight ? partial_w.mutable_data_ptr() : nullptr;
  args.partial_b = want_bias ? partial_b.mutable_data_ptr() : nullptr;
  const auto stream = cuda::current_stream();
  if (form >= 0) {
    const unsigned shared = static_cast<unsigned>(4 * p.n * (compute == kDouble ? 8 : 4));
    cuda::launch(forms.warp[form], static_cast<unsigned>(grid), 128, shared, stream, args);
  } else {
    const unsigned threads = held_threads(p, {args.g, args.x, args.weight, args.dx}, 512);
    if (want_input)
      cuda::launch(threads ? forms.held : forms.block, static_cast<unsigned>(p.rows),
                   threads ? threads : row_threads(p.n), 0, stream, args);
    if (want_weight || want_bias)
      cuda::launch(forms.parameters, {blocks_for(p.n, 32), static_cast<unsigned>(grid)}, 256, 0,
                   stream, args);
  }
  if (want_weight)
    reduce_partials(p, partial_w, result.weight, partial_b, result.bias);
  else if (want_bias)
    reduce_partials(p, partial_b, result.bias, Tensor(), Tensor());
  return result;
}

double rms_eps(std::optional<double> eps, ScalarType dtype) {
  if (eps) return *eps;
  return dtype == kDouble ? std::numeric_limits<double>::epsilon()
                          : static_cast<double>(std::numeric_limits<float>::epsilon());
}

} // namespace

void layer_norm_cuda(const Tensor& input, IntArrayRef normalized_shape,
                     const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                     double eps, const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  const Problem p = problem_of(input, normalized_shape, weight, bias, "layer_norm_cuda");
  if (p.rows == 0) return;
  forward(false, p, input, weight, bias, out, &mean, rstd, eps);
}

std::tuple<Tensor, Tensor, Tensor>
layer_norm_backward_cuda(const Tensor& grad_out, const Tensor& input, IntArrayRef normalized_shape,
                         const Tensor& mean, const Tensor& rstd,
                         const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                         std::array<bool, 3> output_mask) {
  const Problem p = problem_of(input, normalized_shape, weight, bias, "layer_norm_backward_cuda");
  Gradients g = backward(false, p, grad_out, input, normalized_shape, &mean, rstd, weight,
                         output_mask[0], output_mask[1], output_mask[2]);
  return {g.input, g.weight, g.bias};
}

std::tuple<Tensor, Tensor> fused_rms_norm_cuda(const Tensor& input, IntArrayRef normalized_shape,
                                               const std::optional<Tensor>& weight,
                                               std::optional<double> eps) {
  const Problem p = problem_of(input, normalized_shape, weight, std::nullopt, "rms_norm_cuda");
  DimVector statistics(input.sizes());
  for (size_t i = statistics.size() - normalized_shape.size(); i < statistics.size(); ++i)
    statistics[i] = 1;
  const Tensor out = detail::empty(input.sizes(), p.dtype, input.device());
  const Tensor rstd = detail::empty(statistics, compute_type(p.dtype), input.device());
  if (p.rows > 0)
    forward(true, p, input, weight, std::nullopt, out, nullptr, rstd, rms_eps(eps, p.dtype));
  return {out, rstd};
}

std::tuple<Tensor, Tensor> fused_rms_norm_backward_cuda(const Tensor& grad_out, const Tensor& input,
                                                        IntArrayRef normalized_shape,
                                                        const Tensor& rstd,
                                                        const std::optional<Tensor>& weight,
                                                        std::array<bool, 2> output_mask) {
  const Problem p =
      problem_of(input, normalized_shape, weight, std::nullopt, "rms_norm_backward_cuda");
  Gradients g = backward(true, p, grad_out, input, normalized_shape, nullptr, rstd, weight,
                         output_mask[0], output_mask[1] && has(weight), false);
  return {g.input, g.weight};
}

} // namespace at::native
