// Two networks against each other: one draws pictures from noise, the other tells them from real
// ones. DATA holds the pictures as MNIST files; START the weights of both, as Python saved them.
#include "example.h"

namespace nn = torch::nn;

namespace {

constexpr int64_t kNoise = 16;

nn::Sequential generator() {
  return nn::Sequential(
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(kNoise, 16, 4).bias(false)),
      nn::BatchNorm2d(16), nn::ReLU(),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(16, 8, 3).stride(2).padding(1).bias(false)),
      nn::BatchNorm2d(8), nn::ReLU(),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 4, 4).stride(2).padding(1).bias(false)),
      nn::BatchNorm2d(4), nn::ReLU(),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(4, 1, 4).stride(2).padding(1).bias(false)),
      nn::Tanh());
}

nn::Sequential discriminator() {
  const auto leaky = [] { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)); };
  return nn::Sequential(
      nn::Conv2d(nn::Conv2dOptions(1, 4, 4).stride(2).padding(1).bias(false)), leaky(),
      nn::Conv2d(nn::Conv2dOptions(4, 8, 4).stride(2).padding(1).bias(false)), nn::BatchNorm2d(8),
      leaky(), nn::Conv2d(nn::Conv2dOptions(8, 1, 7).bias(false)), nn::Sigmoid());
}

struct GanImpl : nn::Module {
  GanImpl()
      : generate(register_module("generate", generator())),
        discriminate(register_module("discriminate", discriminator())) {}
  nn::Sequential generate, discriminate;
};
TORCH_MODULE(Gan);

torch::Tensor verdict_loss(Gan& gan, const torch::Tensor& pictures, double label) {
  const torch::Tensor verdict = gan->discriminate->forward(pictures).view(-1);
  return torch::binary_cross_entropy(verdict, torch::full_like(verdict, label));
}

void train(const Arguments& arguments) {
  Gan gan;
  torch::load(gan, arguments[1]);
  torch::manual_seed(7);
  auto dataset = torch::data::datasets::MNIST(arguments[0])
                     .map(torch::data::transforms::Normalize<>(0.5, 0.5))
                     .map(torch::data::transforms::Stack<>());
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(dataset), torch::data::DataLoaderOptions().batch_size(16));
  const auto options = torch::optim::AdamOptions(2e-3).betas({0.5, 0.999});
  torch::optim::Adam generator_step(gan->generate->parameters(), options);
  torch::optim::Adam discriminator_step(gan->discriminate->parameters(), options);
  for (int epoch = 0; epoch < std::stoi(arguments[2]); ++epoch) {
    for (auto& batch : *loader) {
      discriminator_step.zero_grad();
      const torch::Tensor real_loss = verdict_loss(gan, batch.data, 0.9);
      real_loss.backward();
      const torch::Tensor drawn =
          gan->generate->forward(torch::randn({batch.data.size(0), kNoise, 1, 1}));
      const torch::Tensor drawn_loss = verdict_loss(gan, drawn.detach(), 0);
      drawn_loss.backward();
      discriminator_step.step();
      print("discriminator", real_loss + drawn_loss);
      generator_step.zero_grad();
      const torch::Tensor fooled = verdict_loss(gan, drawn, 1);
      fooled.backward();
      generator_step.step();
      print("generator", fooled);
    }
  }
}

} // namespace

int main(int argc, char** argv) { return run(argc, argv, "dcgan DATA START EPOCHS", 3, &train); }
