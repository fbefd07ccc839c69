// Trains a small network in C++ and saves it. START is a state_dict that Python saved, so that both
// languages can start from the same weights; FILE can be read by torch.load.
#include "example.h"

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

void train(const Arguments& arguments) {
  Net net;
  torch::load(net, arguments[1]);
  const torch::Tensor x = torch::linspace(-1, 1, 32).view({16, 2});
  const torch::Tensor y = (x.select(1, 0) * x.select(1, 1)).unsqueeze(1);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.05));
  for (int i = 0; i < std::stoi(arguments[2]); ++i) {
    optimizer.zero_grad();
    const torch::Tensor loss = torch::nn::functional::mse_loss(net(x), y);
    loss.backward();
    optimizer.step();
    print("loss", loss);
  }
  torch::save(net, arguments[0]);
}

} // namespace

int main(int argc, char** argv) {
  return run(argc, argv, "regression FILE START STEPS", 3, &train);
}
