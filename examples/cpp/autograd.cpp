// Gradients in C++: backward, grad, a gradient of a gradient as a penalty, hooks, and a function
// with a derivative of its own.
#include "example.h"

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// x * scale forward; the gradient is clipped to [-1, 1] on its way back.
struct ClippedScale : torch::autograd::Function<ClippedScale> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x, double scale) {
    ctx->saved_data["scale"] = scale;
    return x * scale;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const double scale = ctx->saved_data["scale"].toDouble();
    return {(grads[0] * scale).clamp(-1, 1), torch::Tensor()};
  }
};

void differentiate(const Arguments& arguments) {
  const torch::Tensor x = torch::linspace(-1, 1, std::stoi(arguments[0])).requires_grad_(true);
  const torch::Tensor y = (x.exp() * x).sum();
  y.backward();
  print("backward", x.grad().sum());

  // The norm of a gradient, differentiated again.
  const torch::Tensor value = x.pow(3).sum();
  const torch::Tensor slope =
      torch::autograd::grad({value}, {x}, /*grad_outputs=*/{}, /*retain_graph=*/true,
                            /*create_graph=*/true)[0];
  const torch::Tensor penalty = (slope.norm() - 1).square();
  x.mutable_grad() = torch::Tensor();
  (value + penalty).backward();
  print("penalty", penalty);
  print("penalized", x.grad().abs().sum());

  // A hook doubles what flows through `hidden`.
  x.mutable_grad() = torch::Tensor();
  const torch::Tensor hidden = x.sin();
  hidden.register_hook([](const torch::Tensor& grad) { return grad * 2; });
  (hidden * hidden).sum().backward();
  print("hooked", x.grad().square().sum());

  x.mutable_grad() = torch::Tensor();
  ClippedScale::apply(x.square(), 3.0).sum().backward();
  print("clipped", x.grad().abs().sum());
}

} // namespace

int main(int argc, char** argv) { return run(argc, argv, "autograd SIZE", 1, &differentiate); }
