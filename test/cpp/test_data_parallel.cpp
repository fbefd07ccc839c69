// Modules on several devices. The devices are the CPU twice, so that the same code runs as on
// several GPUs: parts of the batch, replicas whose gradients reach the original, results together.
#include <condition_variable>
#include <mutex>

#include <gtest/gtest.h>
#include <torch/nn/parallel/data_parallel.h>
#include <torch/torch.h>

namespace {

namespace parallel = torch::nn::parallel;
const std::vector<torch::Device> kTwice{torch::kCPU, torch::kCPU};

TEST(Scatter, PartsSendTheirGradientsBack) {
  const torch::Tensor x = torch::arange(5.0).requires_grad_();
  const auto parts = torch::autograd::Scatter(kTwice).apply({x});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_TRUE(torch::equal(torch::cat({parts[0], parts[1]}), x));
  (parts[0].sum() + 3 * parts[1].sum()).backward();
  EXPECT_TRUE(torch::equal(x.grad(), torch::tensor({1.0, 1.0, 1.0, 3.0, 3.0}).to(x.dtype())));
  const auto sized = torch::autograd::Scatter(kTwice, std::vector<int64_t>{1, 4}).apply({x});
  EXPECT_EQ(sized[0].size(0), 1);
  EXPECT_THROW(torch::autograd::Scatter({}), c10::Error);
  EXPECT_THROW(torch::autograd::Scatter(kTwice, std::vector<int64_t>{5}), c10::Error);
}

TEST(Gather, NumbersBecomeAVector) {
  const torch::Tensor a = torch::tensor(2.0).requires_grad_(), b = torch::ones({2});
  const torch::Tensor out = torch::autograd::Gather(torch::kCPU).apply({a, a})[0];
  EXPECT_EQ(out.sizes(), (std::vector<int64_t>{2}));
  out.sum().backward();
  EXPECT_EQ(a.grad().item<double>(), 2);
  EXPECT_EQ(torch::autograd::Gather(torch::kCPU).apply({b, b})[0].size(0), 4);
  EXPECT_THROW(torch::autograd::Gather(torch::kCPU).apply({}), c10::Error);
}

TEST(DataParallel, TrainsAsTheModuleAlone) {
  torch::manual_seed(0);
  torch::nn::Linear alone(3, 2);
  torch::nn::Linear shared(std::dynamic_pointer_cast<torch::nn::LinearImpl>(alone->clone()));
  const torch::Tensor x = torch::randn({7, 3});
  alone->forward(x).pow(2).sum().backward();
  const torch::Tensor out = parallel::data_parallel(shared, x, kTwice);
  EXPECT_TRUE(torch::allclose(out, alone->forward(x)));
  out.pow(2).sum().backward();
  EXPECT_TRUE(torch::allclose(shared->weight.grad(), alone->weight.grad()));
  EXPECT_TRUE(torch::allclose(shared->bias.grad(), alone->bias.grad()));
}

TEST(DataParallel, BatchSmallerThanTheDevicesLeavesSomeIdle) {
  torch::nn::Linear net(3, 2);
  const torch::Tensor x = torch::ones({1, 3});
  EXPECT_TRUE(torch::allclose(parallel::data_parallel(net, x, kTwice), net->forward(x)));
}

TEST(DataParallel, ReplicasOwnTheirMemory) {
  torch::nn::Linear net(3, 2);
  const auto replicas = parallel::replicate(net, kTwice);
  ASSERT_EQ(replicas.size(), 2u);
  EXPECT_TRUE(torch::equal(replicas[1]->weight, net->weight));
  EXPECT_NE(replicas[1]->weight.data_ptr<float>(), net->weight.data_ptr<float>());
  EXPECT_FALSE(replicas[1]->weight.is_leaf());
}

TEST(DataParallel, ExceptionOfAReplicaIsThrown) {
  struct Bad : torch::nn::Cloneable<Bad> {
    void reset() override {}
    torch::Tensor forward(const torch::Tensor&) { throw std::runtime_error("no"); }
  };
  EXPECT_THROW(parallel::data_parallel(std::make_shared<Bad>(), torch::ones({4, 1}), kTwice),
               std::runtime_error);
  std::vector<torch::nn::Linear> one{torch::nn::Linear(1, 1)};
  EXPECT_THROW(parallel::parallel_apply(one, {}), c10::Error);
}

TEST(Launch, TaskRunsElsewhereWithTheModeOfTheCaller) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false, grad = true;
  {
    const torch::NoGradGuard off;
    at::launch([&] {
      const std::lock_guard<std::mutex> lock(mutex);
      grad = c10::GradMode::is_enabled();
      done = true;
      changed.notify_all();
    });
  }
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return done; });
  EXPECT_FALSE(grad);
}

} // namespace
