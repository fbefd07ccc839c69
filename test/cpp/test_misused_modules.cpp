// Modules, optimizers, archives and holders get what they cannot use: tensors without a value,
// shapes, dtypes and devices that do not fit, and nothing at all. They may accept it or throw; the
// process goes on.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <sstream>

namespace {

namespace nn = torch::nn;
using at::Tensor;

// What a call got: a moved-from tensor, one of each odd shape and kind.
std::vector<Tensor> odd_tensors() {
  Tensor moved = at::ones({2});
  const Tensor taken = std::move(moved);
  return {Tensor(),
          moved, // NOLINT: that is the point
          at::ones({}),
          at::ones({0}),
          at::ones({0, 3, 0, 5}),
          at::ones({2, 3}),
          at::ones({2, 3, 4}),
          at::ones({1, 3, 4, 4}, at::kLong),
          at::ones({1, 4, 1, 1, 1}),
          at::ones({1, 1, 1, 1, 1, 1, 2}, at::kComplexFloat),
          at::ones({1, 4, 4, 4}, at::kBool),
          at::ones({3, 4}, at::TensorOptions().device(at::kMeta)),
          at::ones({2, 2}).to_sparse(),
          at::full({2, 4}, -1, at::kLong)};
}

struct Tried {
  int thrown = 0, accepted = 0;
  void call(const std::function<void()>& f) {
    try {
      f();
      ++accepted;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()), "");
      ++thrown;
    }
  }
};

template <class Module> void one_argument(Tried& tried, Module module) {
  for (const Tensor& x : odd_tensors()) tried.call([&] { module->forward(x); });
}
template <class Module> void two_arguments(Tried& tried, Module module) {
  for (const Tensor& x : odd_tensors())
    for (const Tensor& y : odd_tensors()) tried.call([&] { module->forward(x, y); });
}

TEST(MisusedModules, LayersOfWeightsThrow) {
  Tried tried;
  one_argument(tried, nn::Linear(4, 2));
  one_argument(tried, nn::Conv1d(3, 2, 2));
  one_argument(tried, nn::Conv2d(nn::Conv2dOptions(3, 2, 2).padding_mode(torch::kCircular)));
  one_argument(tried, nn::Conv3d(4, 2, 1));
  one_argument(tried, nn::ConvTranspose2d(3, 2, 2));
  one_argument(tried, nn::BatchNorm1d(3));
  one_argument(tried, nn::BatchNorm2d(3));
  one_argument(tried, nn::InstanceNorm1d(3));
  one_argument(tried, nn::LayerNorm(nn::LayerNormOptions({4})));
  one_argument(tried, nn::GroupNorm(2, 4));
  one_argument(tried, nn::Embedding(5, 3));
  one_argument(tried, nn::PReLU());
  one_argument(tried, nn::LSTM(4, 3));
  one_argument(tried, nn::GRU(4, 3));
  one_argument(tried, nn::LSTMCell(4, 3));
  one_argument(tried, nn::EmbeddingBag(5, 3));
  two_arguments(tried, nn::Bilinear(4, 4, 2));
  two_arguments(tried, nn::AdaptiveLogSoftmaxWithLoss(4, 6, std::vector<int64_t>{2}));
  EXPECT_GT(tried.thrown, tried.accepted);
}

TEST(MisusedModules, LayersWithoutWeightsThrow) {
  Tried tried;
  one_argument(tried, nn::MaxPool2d(2));
  one_argument(tried, nn::AvgPool3d(2));
  one_argument(tried, nn::AdaptiveMaxPool1d(2));
  one_argument(tried, nn::FractionalMaxPool2d(nn::FractionalMaxPool2dOptions(2).output_size(
                          std::vector<int64_t>{1, 1})));
  one_argument(tried, nn::LPPool2d(2, 2));
  one_argument(tried, nn::ReflectionPad2d(1));
  one_argument(tried, nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>{2.0})));
  one_argument(tried, nn::PixelShuffle(2));
  one_argument(tried, nn::Fold(nn::FoldOptions({3, 2}, {2, 2})));
  one_argument(tried, nn::Unfold(2));
  one_argument(tried, nn::Softmax(3));
  one_argument(tried, nn::GLU());
  one_argument(tried, nn::Flatten());
  one_argument(tried, nn::Dropout2d());
  one_argument(tried, nn::CrossMapLRN2d(2));
  two_arguments(tried, nn::MaxUnpool2d(2));
  two_arguments(tried, nn::CosineSimilarity());
  two_arguments(tried, nn::PairwiseDistance());
  EXPECT_GT(tried.thrown, 0);
}

TEST(MisusedModules, LossesThrow) {
  Tried tried;
  two_arguments(tried, nn::CrossEntropyLoss());
  two_arguments(tried, nn::NLLLoss());
  two_arguments(tried, nn::MSELoss());
  two_arguments(tried, nn::BCELoss());
  two_arguments(tried, nn::KLDivLoss());
  two_arguments(tried, nn::MultiMarginLoss());
  two_arguments(tried, nn::MultiLabelMarginLoss());
  for (const Tensor& x : odd_tensors())
    for (const Tensor& y : odd_tensors()) {
      tried.call([&] { nn::CTCLoss()->forward(x, y, y, x); });
      tried.call([&] { nn::TripletMarginLoss()->forward(x, y, x); });
      tried.call([&] { nn::MultiheadAttention(4, 2)->forward(x, y, y); });
    }
  EXPECT_GT(tried.thrown, tried.accepted);
}

TEST(MisusedModules, EmptyHoldersAndContainersThrow) {
  nn::Linear empty = nullptr;
  EXPECT_THROW(empty->forward(at::ones({1})), c10::Error);
  EXPECT_THROW(*empty, c10::Error);
  nn::Linear full(2, 2);
  const nn::Linear taken = std::move(full);
  EXPECT_THROW(full->weight.sum(), c10::Error); // NOLINT: that is the point
  EXPECT_THROW(nn::Sequential()->forward(at::ones({1})), c10::Error);
  EXPECT_THROW(nn::ModuleList()[0], std::exception);
  EXPECT_THROW(nn::ModuleDict()["missing"], c10::Error);
  EXPECT_THROW(nn::AnyModule().forward(at::ones({1})), c10::Error);
  EXPECT_THROW(nn::AnyModule(nn::Linear(2, 2)).forward(1), c10::Error);
  struct Plain : nn::Module {};
  Plain plain;
  EXPECT_THROW(plain.clone(), c10::Error);
  EXPECT_THROW(plain.register_module("child", std::shared_ptr<Plain>()), c10::Error);
  plain.register_module("child", std::make_shared<Plain>());
  EXPECT_THROW(plain.replace_module("child", std::shared_ptr<Plain>()), c10::Error);
  plain.register_parameter("undefined", Tensor());
  EXPECT_NO_THROW({
    plain.zero_grad();
    plain.to(at::kDouble);
    plain.eval();
  });
}

TEST(MisusedModules, OptimizersThrow) {
  using namespace torch::optim;
  EXPECT_THROW(SGD({Tensor()}, 0.1).step(), c10::Error);
  EXPECT_THROW(Adam({at::ones({2})}, -1.0), c10::Error);
  Tensor x = at::ones({2}).requires_grad_();
  LBFGS lbfgs({x}, 1.0);
  EXPECT_THROW(lbfgs.step(nullptr), c10::Error);
  EXPECT_THROW(LBFGS(std::vector<OptimizerParamGroup>{OptimizerParamGroup({at::ones({1})}),
                                                      OptimizerParamGroup({at::ones({1})})}),
               c10::Error);
  SGD twice({x}, 0.1);
  EXPECT_THROW(twice.add_param_group(OptimizerParamGroup({x})), c10::Error);
  std::istringstream nothing("not an archive");
  EXPECT_THROW(torch::load(twice, nothing), std::exception);
}

TEST(MisusedModules, ExceptionsCrossHooksTheEngineAndTheLoader) {
  Tensor x = at::ones({2}).requires_grad_();
  x.register_hook([](Tensor) -> Tensor { throw std::runtime_error("thrown in a hook"); });
  EXPECT_THROW((x * 2).sum().backward(), std::exception);
  EXPECT_TRUE((at::ones({1}) + 1).item<float>() == 2.0f);
  struct Bad : torch::data::Dataset<Bad> {
    torch::data::Example<> get(size_t) override { throw std::runtime_error("thrown in a worker"); }
    std::optional<size_t> size() const override { return 4; }
  };
  auto loader = torch::data::make_data_loader(Bad(), torch::data::DataLoaderOptions(2).workers(2));
  EXPECT_THROW(for (const auto& batch : *loader) static_cast<void>(batch);, std::exception);
}

} // namespace
