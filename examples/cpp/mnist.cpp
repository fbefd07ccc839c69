// A convolutional network that reads digits: the MNIST reader, transforms, a data loader, SGD with
// momentum, and accuracy on the test set. DATA is a folder with the four files of the database.
#include "example.h"

namespace {

struct NetImpl : torch::nn::Module {
  NetImpl()
      : conv1(register_module("conv1", torch::nn::Conv2d(1, 4, 5))),
        conv2(register_module("conv2", torch::nn::Conv2d(4, 8, 5))),
        fc1(register_module("fc1", torch::nn::Linear(128, 16))),
        fc2(register_module("fc2", torch::nn::Linear(16, 10))) {}
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1(x), 2));
    x = torch::relu(torch::max_pool2d(conv2(x), 2));
    x = torch::relu(fc1(x.flatten(1)));
    return torch::log_softmax(fc2(x), /*dim=*/1);
  }
  torch::nn::Conv2d conv1, conv2;
  torch::nn::Linear fc1, fc2;
};
TORCH_MODULE(Net);

auto loader_of(const std::string& root, torch::data::datasets::MNIST::Mode mode) {
  auto dataset = torch::data::datasets::MNIST(root, mode)
                     .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                     .map(torch::data::transforms::Stack<>());
  return torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(dataset), torch::data::DataLoaderOptions().batch_size(16));
}

void train_epoch(Net& net, const std::string& root, torch::optim::Optimizer& optimizer) {
  net->train();
  const auto loader = loader_of(root, torch::data::datasets::MNIST::Mode::kTrain);
  for (auto& batch : *loader) {
    optimizer.zero_grad();
    const torch::Tensor loss = torch::nll_loss(net(batch.data), batch.target);
    loss.backward();
    optimizer.step();
    print("loss", loss);
  }
}

void test(Net& net, const std::string& root) {
  const torch::NoGradGuard no_grad;
  net->eval();
  int64_t right = 0, seen = 0;
  const auto loader = loader_of(root, torch::data::datasets::MNIST::Mode::kTest);
  for (auto& batch : *loader) {
    right += net(batch.data).argmax(1).eq(batch.target).sum().item<int64_t>();
    seen += batch.target.size(0);
  }
  std::printf("right %lld\nof %lld\n", static_cast<long long>(right), static_cast<long long>(seen));
}

void train(const Arguments& arguments) {
  Net net;
  torch::load(net, arguments[1]);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.5));
  for (int epoch = 0; epoch < std::stoi(arguments[2]); ++epoch) {
    train_epoch(net, arguments[0], optimizer);
    test(net, arguments[0]);
  }
}

} // namespace

int main(int argc, char** argv) { return run(argc, argv, "mnist DATA START EPOCHS", 3, &train); }
