// torch::autograd::Function in C++: values, gradients, saved tensors, in-place inputs, errors.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::backward;
using torch::autograd::Function;
using torch::autograd::grad;
using torch::autograd::variable_list;

namespace {

struct Scale : Function<Scale> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double k) {
    ctx->saved_data["k"] = k;
    return at::mul(x, k);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {at::mul(grads[0], ctx->saved_data["k"].toDouble()), Tensor()};
  }
};

struct Product : Function<Product> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& y) {
    ctx->save_for_backward({x, y});
    const Tensor sign = at::sign(x);
    ctx->mark_non_differentiable({sign});
    return {at::mul(x, y), sign};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    return {at::mul(grads[0], saved[1]), at::mul(grads[0], saved[0])};
  }
};

struct TwiceInPlace : Function<TwiceInPlace> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list grads) {
    return {at::mul(grads[0], 2)};
  }
};

struct TooFew : Function<TooFew> {
  static Tensor forward(AutogradContext*, const Tensor& x, const Tensor& y) {
    return at::add(x, y);
  }
  static variable_list backward(AutogradContext*, variable_list grads) { return {grads[0]}; }
};

Tensor leaf(double value) {
  Tensor t = at::full({3}, value, at::TensorOptions(at::kDouble));
  torch::autograd::set_requires_grad(t, true);
  return t;
}
double grad_of(const Tensor& t) {
  return torch::autograd::ensure_meta(t).grad.select(0, 0).item().toDouble();
}

} // namespace

TEST(CustomFunction, GivesGradient) {
  const Tensor x = leaf(1);
  const Tensor y = Scale::apply(x, 5.0);
  EXPECT_TRUE(y.requires_grad());
  backward({at::sum(y)});
  EXPECT_EQ(grad_of(x), 5);
}

TEST(CustomFunction, SavesTensorsAndMarksOutputs) {
  const Tensor x = leaf(2), y = leaf(3);
  const variable_list out = Product::apply(x, y);
  EXPECT_TRUE(out[0].requires_grad());
  EXPECT_FALSE(out[1].requires_grad());
  const Tensor total = at::sum(out[0]);
  backward({total});
  EXPECT_EQ(grad_of(x), 3);
  EXPECT_EQ(grad_of(y), 2);
  EXPECT_THROW(backward({total}), c10::Error);
}

TEST(CustomFunction, RecordsInPlaceWrites) {
  const Tensor x = leaf(1);
  Tensor y = at::mul(x, 1);
  TwiceInPlace::apply(y);
  backward({at::sum(y)});
  EXPECT_EQ(grad_of(x), 2);
  EXPECT_THROW(TwiceInPlace::apply(Tensor(x)), c10::Error);
}

TEST(CustomFunction, WrongNumberOfGradientsRaises) {
  const Tensor y = TooFew::apply(leaf(1), leaf(2));
  EXPECT_THROW(backward({at::sum(y)}), c10::Error);
}

namespace {
struct AsksWhatIsNeeded : Function<AsksWhatIsNeeded> {
  static Tensor forward(AutogradContext*, at::TensorList list) { return at::add(list[0], list[1]); }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    needed = {ctx->needs_input_grad(0), ctx->needs_input_grad(1),
              ctx->needs_input_grad({{0, 1}, {1, 2}})};
    return {grads[0], grads[0]};
  }
  static inline std::vector<bool> needed;
};
} // namespace

TEST(CustomFunction, KnowsWhichGradientsThePassWants) {
  const Tensor x = leaf(1), y = leaf(2);
  const std::vector<Tensor> both = {x, y};
  const Tensor out = at::sum(AsksWhatIsNeeded::apply(at::TensorList(both)));
  grad({out}, {y}, {}, true);
  EXPECT_EQ(AsksWhatIsNeeded::needed, (std::vector<bool>{false, true, true}));
  grad({out}, {x, y});
  EXPECT_EQ(AsksWhatIsNeeded::needed, (std::vector<bool>{true, true, true}));
}
