// A network that was trained in Python gets another task: its checkpoint is loaded, its body
// frozen, and a new head of its own is trained. FILE is what Python can load again.
#include "example.h"

namespace {

torch::nn::Sequential body() {
  return torch::nn::Sequential(torch::nn::Linear(4, 16), torch::nn::BatchNorm1d(16),
                               torch::nn::ReLU(), torch::nn::Linear(16, 8), torch::nn::Tanh());
}

struct ClassifierImpl : torch::nn::Module {
  explicit ClassifierImpl(int64_t classes)
      : features(register_module("features", body())),
        head(register_module("head", torch::nn::Linear(8, classes))) {}
  torch::Tensor forward(const torch::Tensor& x) { return head(features->forward(x)); }
  torch::nn::Sequential features;
  torch::nn::Linear head;
};
TORCH_MODULE(Classifier);

void train(const Arguments& arguments) {
  Classifier pretrained(3);
  torch::load(pretrained, arguments[1]);
  Classifier net(2);
  net->features = net->replace_module("features", pretrained->features);
  for (torch::Tensor& parameter : net->features->parameters()) parameter.set_requires_grad(false);
  net->features->eval(); // running statistics stay what they are
  {
    const torch::NoGradGuard no_grad;
    net->head->weight.copy_(pretrained->head->weight.slice(0, 0, 2));
    net->head->bias.zero_();
  }
  const torch::Tensor x = torch::linspace(-2, 2, 64).sin().view({16, 4});
  const torch::Tensor y = x.sum(1).gt(0).to(torch::kLong);
  torch::optim::AdamW optimizer(net->head->parameters(), torch::optim::AdamWOptions(0.05));
  for (int i = 0; i < std::stoi(arguments[2]); ++i) {
    optimizer.zero_grad();
    const torch::Tensor loss = torch::cross_entropy_loss(net(x), y);
    loss.backward();
    optimizer.step();
    print("loss", loss);
  }
  torch::save(net, arguments[0]);
}

} // namespace

int main(int argc, char** argv) { return run(argc, argv, "transfer FILE START STEPS", 3, &train); }
