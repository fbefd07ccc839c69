// Calls the operator of custom_op.cpp by its name: trains one number through it.
#include "example.h"

namespace {

void train(const Arguments& arguments) {
  const auto smooth = c10::Dispatcher::singleton()
                          .findSchemaOrThrow("example::smooth", "")
                          .typed<torch::Tensor(const torch::Tensor&, double)>();
  const torch::Tensor x = torch::linspace(-3, 3, 31);
  const torch::Tensor shift = torch::zeros({1}, torch::requires_grad());
  torch::optim::SGD optimizer({shift}, torch::optim::SGDOptions(0.5));
  for (int i = 0; i < std::stoi(arguments[0]); ++i) {
    optimizer.zero_grad();
    const torch::Tensor loss = (smooth.call(x + shift, 2.0) - torch::relu(x + 1)).square().mean();
    loss.backward();
    optimizer.step();
    print("loss", loss);
  }
}

} // namespace

int main(int argc, char** argv) { return run(argc, argv, "custom_op STEPS", 1, &train); }
