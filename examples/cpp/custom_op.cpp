// An operator of one's own, in a library that C++ programs link and Python loads with
// torch.ops.load_library: a schema, a kernel for the CPU, one that says the shape, and a
// derivative.
#include <torch/library.h>
#include <torch/torch.h>

namespace {

// softplus(x * beta) / beta
torch::Tensor smooth_cpu(const torch::Tensor& x, double beta) {
  const torch::Tensor in = x.contiguous();
  torch::Tensor out = torch::empty_like(in);
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "smooth", [&] {
    const scalar_t* from = in.const_data_ptr<scalar_t>();
    scalar_t* to = out.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, in.numel(), /*grain_size=*/2048, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const scalar_t z = from[i] * scalar_t(beta);
        const scalar_t large = z > 0 ? z : scalar_t(0); // exp() of what is left cannot overflow
        to[i] = (large + std::log1p(std::exp(-std::abs(z)))) / scalar_t(beta);
      }
    });
  });
  return out;
}

torch::Tensor smooth_meta(const torch::Tensor& x, double) { return torch::empty_like(x); }

torch::Tensor smooth(const torch::Tensor& x, double beta) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("example::smooth", "")
                             .typed<torch::Tensor(const torch::Tensor&, double)>();
  return op.call(x, beta);
}

struct Smooth : torch::autograd::Function<Smooth> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& x,
                               double beta) {
    TORCH_CHECK_VALUE(beta > 0, "smooth: beta must be positive, not ", beta);
    const at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({x});
    ctx->saved_data["beta"] = beta;
    return smooth(x, beta);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const torch::Tensor x = ctx->get_saved_variables()[0];
    const double beta = ctx->saved_data["beta"].toDouble();
    return {grads[0] * torch::sigmoid(x * beta), torch::Tensor()};
  }
};

torch::Tensor smooth_autograd(const torch::Tensor& x, double beta) {
  return Smooth::apply(x, beta);
}

} // namespace

TORCH_LIBRARY(example, m) { m.def("smooth(Tensor x, float beta=1.0) -> Tensor"); }
TORCH_LIBRARY_IMPL(example, CPU, m) { m.impl("smooth", &smooth_cpu); }
TORCH_LIBRARY_IMPL(example, Meta, m) { m.impl("smooth", &smooth_meta); }
TORCH_LIBRARY_IMPL(example, Autograd, m) { m.impl("smooth", &smooth_autograd); }
