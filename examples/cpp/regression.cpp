// Trains a small network in C++ and saves it: regression FILE START STEPS. START is a state_dict
// that Python saved, so that both languages can start from the same weights; the losses are
// printed, and FILE can be read by torch.load.
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>

namespace {

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    hidden = register_module("hidden", torch::nn::Linear(2, 8));
    output = register_module("output", torch::nn::Linear(8, 1));
  }
  torch::Tensor forward(const torch::Tensor& x) { return output(torch::tanh(hidden(x))); }
  torch::nn::Linear hidden{nullptr}, output{nullptr};
};
TORCH_MODULE(Net);

int train(const char* file, const char* start, int steps) {
  Net net;
  torch::load(net, start);
  const torch::Tensor x = torch::linspace(-1, 1, 32).view({16, 2});
  const torch::Tensor y = (x.select(1, 0) * x.select(1, 1)).unsqueeze(1);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.05));
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    const torch::Tensor loss = torch::nn::functional::mse_loss(net(x), y);
    loss.backward();
    optimizer.step();
    std::printf("%.9g\n", loss.item<double>());
  }
  torch::save(net, file);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: regression FILE START STEPS\n");
    return 2;
  }
  try {
    return train(argv[1], argv[2], std::atoi(argv[3]));
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
