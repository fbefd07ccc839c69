// The backward pass seen from C++: nodes, in-place writes, views, double backward, errors. Formulas
// themselves are checked numerically in test/autograd/test_autograd_formulas.py.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>

using at::Tensor;
using torch::autograd::backward;
using torch::autograd::grad;

namespace {
Tensor leaf(at::IntArrayRef sizes) {
  Tensor t = at::randn(sizes, at::TensorOptions(at::kDouble));
  torch::autograd::set_requires_grad(t, true);
  return t;
}
Tensor grad_of(const Tensor& t) { return torch::autograd::ensure_meta(t).grad; }
void expect_close(const Tensor& a, const Tensor& b) {
  ASSERT_TRUE(a.defined() && b.defined());
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_TRUE(at::allclose(a, b, 1e-9, 1e-12));
}
} // namespace

TEST(Autograd, BroadcastProduct) {
  const Tensor a = leaf({3, 4}), b = leaf({4});
  const Tensor y = at::sum(at::mul(a, b));
  EXPECT_EQ(torch::autograd::grad_fn_of(y)->name(), "SumBackward0");
  EXPECT_EQ(torch::autograd::grad_fn_of(y)->next_edge(0).function->name(), "MulBackward0");
  backward({y});
  expect_close(grad_of(a), b.detach().expand({3, 4}));
  expect_close(grad_of(b), at::sum(a.detach(), at::IntArrayRef{0}, false));
}

// Two gradients of different width meet at one leaf.
TEST(Autograd, BroadcastMeetsPlain) {
  const Tensor a = leaf({3}), m = at::ones({2, 3}, at::TensorOptions(at::kDouble));
  backward({at::add(at::sum(at::mul(a, m)), at::sum(at::mul(a, 5)))});
  expect_close(grad_of(a), at::full({3}, 7, at::TensorOptions(at::kDouble)));
}

TEST(Autograd, Linear) {
  const Tensor x = leaf({2, 5, 3}), w = leaf({4, 3}), b = leaf({4});
  const Tensor y = at::linear(x, w, b);
  const Tensor g = at::randn({2, 5, 4}, at::TensorOptions(at::kDouble));
  const auto got = grad({y}, {x, w, b}, {g}, true);
  expect_close(got[0], at::matmul(g, w.detach()));
  expect_close(got[2], at::sum(g, at::IntArrayRef({0, 1}), false));
  const Tensor again = at::add(at::matmul(x, at::t(w)), b);
  expect_close(got[1], grad({again}, {w}, {g})[0]);
}

TEST(Autograd, SecondDerivative) {
  const Tensor x = leaf({4});
  const Tensor first = grad({at::sum(at::pow(x, 3))}, {x}, {}, std::nullopt, true)[0];
  const Tensor second = grad({at::sum(first)}, {x})[0];
  expect_close(second, at::mul(x.detach(), 6));
}

TEST(Autograd, InPlaceSavesWhatItOverwrites) {
  const Tensor x = leaf({4}), w = leaf({4});
  Tensor y = at::mul(x, 1);
  at::_ops::mul__Tensor::call(y, w);
  backward({at::sum(y)});
  expect_close(grad_of(x), w.detach());
  expect_close(grad_of(w), x.detach());
}

TEST(Autograd, InPlaceOnView) {
  const Tensor x = leaf({4}), w = leaf({2});
  const Tensor base = at::mul(x, 2);
  Tensor view = base.narrow(0, 1, 2);
  at::_ops::mul__Tensor::call(view, w);
  backward({at::sum(base)});
  const Tensor expected = at::full({4}, 2, at::TensorOptions(at::kDouble));
  expected.narrow(0, 1, 2).copy_(at::mul(w.detach(), 2));
  expect_close(grad_of(x), expected);
  expect_close(grad_of(w), at::mul(x.detach().narrow(0, 1, 2), 2));
}

TEST(Autograd, CopyIntoPlainTensor) {
  const Tensor w = leaf({2});
  const Tensor base = at::zeros({3, 2}, at::TensorOptions(at::kDouble));
  base.select(0, 1).copy_(w);
  EXPECT_TRUE(base.requires_grad());
  backward({at::sum(at::mul(base, 3))});
  expect_close(grad_of(w), at::full({2}, 3, at::TensorOptions(at::kDouble)));
}

TEST(Autograd, Errors) {
  Tensor x = leaf({4});
  EXPECT_THROW(at::_ops::add__Scalar::call(x, 1, 1), c10::Error);
  Tensor y = at::mul(x, x), out = at::empty({4}, at::TensorOptions(at::kDouble));
  EXPECT_THROW(at::add_out(out, x, x), c10::Error);
  const Tensor z = at::mul(y, y);
  at::_ops::add__Scalar::call(y, 1, 1);
  EXPECT_THROW(backward({at::sum(z)}), c10::Error);
  const Tensor twice = at::sum(at::mul(x, x));
  backward({twice});
  EXPECT_THROW(backward({twice}), c10::Error);
}

TEST(Autograd, ListsAndSeveralOutputs) {
  const Tensor a = leaf({2, 3}), b = leaf({1, 3});
  const std::vector<Tensor> parts = at::split(at::cat({a, b}, 0), 2, 0);
  backward({at::sum(at::mul(parts[1], 2))});
  expect_close(grad_of(b), at::full({1, 3}, 2, at::TensorOptions(at::kDouble)));
  expect_close(grad_of(a), at::zeros({2, 3}, at::TensorOptions(at::kDouble)));
}

TEST(Autograd, LongChainIsFreedWithoutRecursion) {
  const Tensor x = leaf({});
  Tensor y = x;
  for (int i = 0; i < 200000; ++i) y = at::add(y, 0);
  backward({y});
  EXPECT_EQ(grad_of(x).item().toDouble(), 1.0);
}
