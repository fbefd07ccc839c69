// torch::nn, torch::optim and archives, as a C++ program uses them. References are plain loops.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdio>
#include <sstream>

namespace {

namespace F = torch::nn::functional;
using torch::Tensor;

struct Net : torch::nn::Module {
  Net() {
    first = register_module("first", torch::nn::Linear(3, 4));
    second = register_module("second", torch::nn::Linear(4, 1));
  }
  Tensor forward(const Tensor& x) { return second(torch::tanh(first(x))); }
  torch::nn::Linear first{nullptr}, second{nullptr};
};

TEST(Nn, LinearEqualsPlainLoop) {
  torch::manual_seed(1);
  torch::nn::Linear layer(3, 2);
  const Tensor x = torch::randn({4, 3});
  const Tensor y = layer(x);
  const auto a = x.accessor<float, 2>(), w = layer->weight.accessor<float, 2>(),
             out = y.accessor<float, 2>();
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 2; ++j) {
      double sum = layer->bias[j].item<double>();
      for (int64_t k = 0; k < 3; ++k) sum += double(a[i][k]) * w[j][k];
      EXPECT_NEAR(out[i][j], sum, 1e-5);
    }
}

TEST(Nn, PaddingRowsOfNewTablesAreZero) {
  const torch::nn::Embedding one(torch::nn::EmbeddingOptions(4, 3).padding_idx(-1));
  const torch::nn::EmbeddingBag bag(torch::nn::EmbeddingBagOptions(4, 3).padding_idx(3));
  for (const torch::Tensor& table : {one->weight, bag->weight}) {
    EXPECT_EQ(table[3].abs().sum().item<float>(), 0.0f);
    EXPECT_GT(table[0].abs().sum().item<float>(), 0.0f);
  }
}

TEST(Nn, NamesOfParametersFollowTheTree) {
  const Net net;
  const std::vector<std::string> expected = {"first.weight", "first.bias", "second.weight",
                                             "second.bias"};
  EXPECT_EQ(net.named_parameters().keys(), expected);
  EXPECT_EQ(net.parameters(/*recurse=*/false).size(), 0u);
}

TEST(Nn, SequentialChainsModulesAndClonesDeeply) {
  torch::nn::Sequential net(torch::nn::Linear(3, 5), torch::nn::Functional(torch::relu),
                            torch::nn::Dropout(0.5), torch::nn::Linear(5, 2));
  net->eval();
  const Tensor x = torch::ones({2, 3});
  const Tensor before = net->forward(x);
  const auto copy = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(net->clone());
  EXPECT_TRUE(torch::equal(copy->forward(x), before));
  {
    const torch::NoGradGuard no_grad;
    for (const Tensor& p : copy->parameters()) p.zero_();
  }
  EXPECT_TRUE(torch::equal(net->forward(x), before));
  EXPECT_THROW(net->forward<int>(x), c10::Error);
}

TEST(Nn, BatchNormUpdatesRunningStatisticsOnlyWhileTraining) {
  torch::nn::BatchNorm1d norm(2);
  const Tensor x = torch::tensor({{1.0, 10.0}, {3.0, 30.0}});
  norm(x);
  EXPECT_NEAR(norm->running_mean[0].item<double>(), 0.1 * 2, 1e-6);
  EXPECT_NEAR(norm->running_var[1].item<double>(), 0.9 + 0.1 * 200, 1e-4);
  norm->eval();
  norm(x);
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
}

TEST(Nn, ConvolutionWithSamePaddingKeepsTheLength) {
  torch::nn::Conv1d conv(torch::nn::Conv1dOptions(1, 1, 4).padding(torch::kSame).bias(false));
  EXPECT_EQ(conv(torch::ones({1, 1, 9})).size(2), 9);
  EXPECT_THROW(torch::nn::Conv1d(torch::nn::Conv1dOptions(1, 1, 3).padding(torch::kSame).stride(2)),
               c10::Error);
}

TEST(Nn, ModulesPrintThemselves) {
  std::ostringstream text;
  text << torch::nn::Sequential(torch::nn::Linear(2, 3), torch::nn::ReLU());
  EXPECT_EQ(text.str(), "torch::nn::Sequential(\n"
                        "  (0): torch::nn::Linear(in_features=2, out_features=3, bias=true)\n"
                        "  (1): torch::nn::ReLU()\n"
                        ")");
}

struct WithRecurrence : torch::nn::Cloneable<WithRecurrence> {
  WithRecurrence() { reset(); }
  void reset() override {
    lstm = register_module("lstm", torch::nn::LSTM(3, 4));
    cell = register_module("cell", torch::nn::GRUCell(3, 4));
  }
  torch::nn::LSTM lstm{nullptr};
  torch::nn::GRUCell cell{nullptr};
};

TEST(Nn, CopyOfAModuleWithRecurrentLayersHasTheirValues) {
  const auto net = std::make_shared<WithRecurrence>();
  const auto copy = std::dynamic_pointer_cast<WithRecurrence>(net->clone());
  const auto from = net->named_parameters(), to = copy->named_parameters();
  ASSERT_EQ(from.size(), to.size());
  for (const auto& item : from) {
    EXPECT_TRUE(torch::equal(item.value(), to[item.key()])) << item.key();
    EXPECT_FALSE(item.value().is_same(to[item.key()])) << item.key();
  }
  const Tensor x = torch::randn({2, 1, 3});
  EXPECT_TRUE(
      torch::equal(std::get<0>(net->lstm->forward(x)), std::get<0>(copy->lstm->forward(x))));
}

TEST(Nn, TransformerLayerOfOnePlaceIsItsInputThroughTwoNorms) {
  torch::nn::TransformerEncoderLayer layer(
      torch::nn::TransformerEncoderLayerOptions(2, 1).dim_feedforward(3).dropout(0));
  {
    const torch::NoGradGuard no_grad;
    for (Tensor& p : layer->parameters()) p.zero_();
    layer->norm1->weight.fill_(1);
    layer->norm2->weight.fill_(1);
  }
  // Attention and the feed-forward part give zeros: what is left is norm2(norm1(x)).
  const Tensor out = layer(torch::tensor({{{1.0f, 3.0f}}}));
  EXPECT_NEAR(out[0][0][0].item<float>(), -1, 1e-3);
  EXPECT_NEAR(out[0][0][1].item<float>(), 1, 1e-3);
}

TEST(Nn, CopyOfATransformerComputesTheSameAndIsItsOwn) {
  torch::nn::Transformer net(torch::nn::TransformerOptions(4, 2, 1, 1).dim_feedforward(8));
  net->eval();
  auto copy = std::dynamic_pointer_cast<torch::nn::TransformerImpl>(net->clone());
  copy->eval();
  const Tensor src = torch::randn({3, 2, 4}), tgt = torch::randn({2, 2, 4});
  const Tensor before = net(src, tgt);
  EXPECT_TRUE(torch::allclose(before, copy->forward(src, tgt)));
  {
    const torch::NoGradGuard no_grad;
    for (Tensor& p : copy->parameters()) p.add_(1);
  }
  EXPECT_TRUE(torch::equal(before, net(src, tgt)));
}

TEST(Nn, TransformerMaskHidesWhatComesLater) {
  const Tensor mask = torch::nn::TransformerImpl::generate_square_subsequent_mask(3);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 3; ++j) EXPECT_EQ(mask[i][j].item<float>(), j > i ? -INFINITY : 0.0f);
  torch::nn::TransformerEncoder stack(
      torch::nn::TransformerEncoderOptions(torch::nn::TransformerEncoderLayerOptions(4, 2), 2));
  stack->eval();
  const Tensor x = torch::randn({3, 1, 4});
  Tensor other = x.clone();
  other[2] += 1;
  EXPECT_TRUE(torch::allclose(stack(x, mask).slice(0, 0, 2), stack(other, mask).slice(0, 0, 2)));
}

TEST(Nn, AnyModuleChecksArguments) {
  torch::nn::AnyModule any{torch::nn::Linear(3, 2)};
  EXPECT_EQ(any.forward(torch::ones({1, 3})).size(1), 2);
  EXPECT_THROW(any.forward(5), c10::Error);
  EXPECT_THROW(any.forward(), c10::Error);
  EXPECT_THROW(torch::nn::AnyModule().forward(torch::ones(1)), c10::Error);
}

// Gradient descent on f(x) = x^2 by hand, next to the optimizer.
TEST(Optim, SgdWithMomentumEqualsPlainLoop) {
  const Tensor x = torch::tensor({2.0, -3.0}, torch::requires_grad());
  torch::optim::SGD sgd({x}, torch::optim::SGDOptions(0.1).momentum(0.9));
  double plain[2] = {2, -3}, velocity[2] = {0, 0};
  for (int step = 0; step < 5; ++step) {
    sgd.zero_grad();
    (x * x).sum().backward();
    sgd.step();
    for (int i = 0; i < 2; ++i) {
      velocity[i] = 0.9 * velocity[i] + 2 * plain[i];
      plain[i] -= 0.1 * velocity[i];
    }
  }
  EXPECT_NEAR(x[0].item<double>(), plain[0], 1e-5);
  EXPECT_NEAR(x[1].item<double>(), plain[1], 1e-5);
}

TEST(Optim, AdamEqualsPlainLoop) {
  const Tensor x = torch::tensor({2.0}, torch::requires_grad());
  torch::optim::Adam adam({x}, torch::optim::AdamOptions(0.1));
  double value = 2, mean = 0, square = 0;
  for (int step = 1; step <= 5; ++step) {
    adam.zero_grad();
    (x * x).sum().backward();
    adam.step();
    const double grad = 2 * value;
    mean = 0.9 * mean + 0.1 * grad;
    square = 0.999 * square + 0.001 * grad * grad;
    value -= 0.1 * (mean / (1 - std::pow(0.9, step))) /
             (std::sqrt(square / (1 - std::pow(0.999, step))) + 1e-8);
  }
  EXPECT_NEAR(x[0].item<double>(), value, 1e-5);
}

TEST(Optim, LbfgsWithLineSearchFindsTheMinimumOfRosenbrock) {
  const Tensor x = torch::tensor({-1.0, 1.5}, torch::dtype(torch::kDouble).requires_grad(true));
  torch::optim::LBFGS lbfgs(
      {x}, torch::optim::LBFGSOptions(1).max_iter(200).line_search_fn("strong_wolfe"));
  const auto closure = [&] {
    lbfgs.zero_grad();
    const Tensor loss = (1 - x[0]).pow(2) + 100 * (x[1] - x[0] * x[0]).pow(2);
    loss.backward();
    return loss;
  };
  lbfgs.step(closure);
  EXPECT_NEAR(x[0].item<double>(), 1, 1e-3);
  EXPECT_NEAR(x[1].item<double>(), 1, 1e-3);
}

TEST(Optim, ParameterInTwoGroupsRaises) {
  const Tensor x = torch::ones({1}, torch::requires_grad());
  torch::optim::SGD sgd({x}, torch::optim::SGDOptions(0.1));
  EXPECT_THROW(sgd.add_param_group(torch::optim::OptimizerParamGroup({x})), c10::Error);
}

TEST(Archive, OptimizerReadsFilesOfBeforeGroups) {
  const torch::Tensor first = torch::zeros({2}), second = torch::zeros({3});
  torch::serialize::OutputArchive old;
  old.write("step_buffers/size", torch::tensor(int64_t(1)));
  old.write("step_buffers/0", torch::tensor(int64_t(7)), true);
  old.write("exp_average_buffers/0", torch::full({2}, 0.5), true);
  old.write("exp_average_sq_buffers/0", torch::full({2}, 0.25), true);
  std::stringstream stream;
  old.save_to(stream);
  torch::optim::Adam adam({first, second}, 0.01);
  torch::load(adam, stream);
  ASSERT_EQ(adam.state().size(), 1);
  const auto& state = static_cast<const torch::optim::AdamParamState&>(
      *adam.state().at(first.unsafeGetTensorImpl()));
  EXPECT_EQ(state.step(), 7);
  EXPECT_TRUE(torch::equal(state.exp_avg(), torch::full({2}, 0.5)));
  EXPECT_TRUE(torch::equal(state.exp_avg_sq(), torch::full({2}, 0.25)));
  EXPECT_FALSE(state.max_exp_avg_sq().defined());
}

TEST(Archive, ModuleAndOptimizerContinueWhereTheyWere) {
  const auto step = [](torch::optim::Optimizer& optimizer, Net& net) {
    optimizer.zero_grad();
    net.forward(torch::ones({2, 3})).sum().backward();
    optimizer.step();
  };
  auto net = std::make_shared<Net>();
  torch::optim::Adam adam(net->parameters(), 0.01);
  step(adam, *net);
  std::stringstream model, state;
  torch::save(net, model);
  torch::save(adam, state);
  auto again = std::make_shared<Net>();
  torch::load(again, model);
  torch::optim::Adam resumed(again->parameters(), 0.5);
  torch::load(resumed, state);
  step(adam, *net);
  step(resumed, *again);
  const auto expected = net->named_parameters(), got = again->named_parameters();
  for (const auto& item : expected) EXPECT_TRUE(torch::equal(item.value(), got[item.key()]));
}

TEST(Archive, DamagedFileRaises) {
  std::stringstream stream;
  torch::save(torch::ones({3}), stream);
  const std::string whole = stream.str();
  Tensor out;
  EXPECT_NO_THROW(torch::load(out, whole.data(), whole.size()));
  for (const size_t size : {size_t(0), size_t(10), whole.size() / 2, whole.size() - 1})
    EXPECT_THROW(torch::load(out, whole.data(), size), c10::Error) << size;
  for (size_t at = 0; at < whole.size(); at += 7) {
    std::string broken = whole;
    broken[at] = char(broken[at] ^ 0x55);
    try {
      torch::load(out, broken.data(), broken.size());
    } catch (const c10::Error&) {
    }
  }
}

TEST(Archive, MissingTensorIsNamedByItsPath) {
  auto net = std::make_shared<Net>();
  std::stringstream stream;
  torch::save(std::make_shared<torch::nn::LinearImpl>(3, 4), stream);
  try {
    torch::load(net, stream);
    FAIL() << "loading a file of another module must raise";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("first"), std::string::npos) << error.what();
  }
}

TEST(Indexing, TensorsOfOneIntegerSelectAView) {
  const torch::Tensor x = torch::arange(6).view({2, 3});
  const torch::Tensor one = torch::tensor(int64_t(1)), two = torch::tensor(2, torch::kInt);
  EXPECT_EQ(x.index({one, two}).data_ptr(), x.index({1, 2}).data_ptr());
  EXPECT_TRUE(torch::equal(x.index({torch::indexing::Slice(), one}), x.select(1, 1)));
  EXPECT_THROW(x.index({torch::tensor(int64_t(2))}), c10::IndexError);
  // A byte is a truth value.
  EXPECT_EQ(x.index({torch::tensor(1, torch::kByte)}).dim(), 3);
}
TEST(Indexing, TensorWithoutDimensionsIsTakenWholeOrRefused) {
  const torch::Tensor x = torch::tensor(3);
  EXPECT_EQ(x.index({"..."}).data_ptr(), x.data_ptr());
  EXPECT_EQ(x.index({true}).dim(), 1);
  try {
    x.index({0});
    FAIL() << "expected an error";
  } catch (const c10::IndexError& error) {
    EXPECT_NE(std::string(error.what()).find("invalid index of a 0-dim tensor"), std::string::npos);
  }
}
TEST(Indexing, SlicesNumbersMasksAndEllipsisAsInPython) {
  using namespace torch::indexing;
  const Tensor x = torch::arange(24).view({2, 3, 4});
  EXPECT_EQ(x.index({1, 2, 3}).item<int64_t>(), 23);
  EXPECT_EQ(x.index({Slice(), Slice(1), Slice(None, None, 2)}).sizes(),
            torch::IntArrayRef({2, 2, 2}));
  EXPECT_EQ(x.index({"...", 0}).sizes(), torch::IntArrayRef({2, 3}));
  EXPECT_EQ(x.index({None, 0}).sizes(), torch::IntArrayRef({1, 3, 4}));
  EXPECT_TRUE(torch::equal(x.index({x > 20}), torch::arange(21, 24)));
  Tensor y = x.clone();
  y.index_put_({0, Slice()}, -1);
  EXPECT_EQ(y.sum().item<int64_t>(), x[1].sum().item<int64_t>() - 12);
  y[1][2] = torch::zeros({4}, torch::kLong);
  EXPECT_EQ(y[1][2].sum().item<int64_t>(), 0);
  EXPECT_THROW(x.index({0, 5}), c10::IndexError);
}

TEST(Dispatch, UnlistedDtypeRaises) {
  const auto size = [](at::ScalarType type) {
    return AT_DISPATCH_FLOATING_TYPES_AND(at::kHalf, type, "size_of",
                                          [] { return sizeof(scalar_t); });
  };
  EXPECT_EQ(size(at::kDouble), 8u);
  EXPECT_EQ(size(at::kHalf), 2u);
  EXPECT_THROW(size(at::kLong), c10::NotImplementedError);
}

TEST(ParameterList, ListsAreJoinedUnderTheNumbersThatFollow) {
  torch::nn::ParameterList a(torch::ones(1), torch::ones(2)), b(torch::ones(3), torch::ones(4));
  a->extend(*b);
  *a += *b;
  a->extend(std::vector<torch::Tensor>{torch::ones(5)});
  std::vector<int64_t> sizes;
  for (const auto& item : a->named_parameters()) sizes.push_back(item.value().numel());
  EXPECT_EQ(sizes, (std::vector<int64_t>{1, 2, 3, 4, 3, 4, 5}));
}

} // namespace
