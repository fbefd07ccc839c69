// How gradients of a replica's parameters reach the original's.
#include <torch/nn/parallel/data_parallel.h>

namespace torch::nn::parallel::detail {
namespace {

// Takes gradients of a replica's parameters to the devices of the original's.
class ReplicaBackward final : public autograd::Node {
 public:
  explicit ReplicaBackward(std::vector<Device> origins) : origins_(std::move(origins)) {}
  autograd::TensorVec apply(autograd::TensorVec grads) override {
    for (size_t i = 0; i < grads.size(); ++i)
      if (grads[i].defined()) grads[i] = grads[i].to(origins_[i]);
    return grads;
  }
  std::string name() const override { return "ReplicaBackward"; }

 private:
  std::vector<Device> origins_;
};

} // namespace

void connect_parameters(const Module& original, Module& replica) {
  if (!c10::GradMode::is_enabled()) return;
  const std::vector<Tensor> from = original.parameters(), to = replica.parameters();
  TORCH_CHECK(from.size() == to.size(), "replicate: a clone has ", to.size(),
              " parameters, its original ", from.size());
  std::vector<Device> origins;
  for (const Tensor& parameter : from)
    if (parameter.requires_grad()) origins.push_back(parameter.device());
  const auto node = c10::make_intrusive<ReplicaBackward>(std::move(origins));
  for (size_t i = 0; i < from.size(); ++i) {
    if (!from[i].requires_grad()) continue;
    node->add_next_edge(autograd::gradient_edge(from[i]));
    autograd::set_requires_grad(to[i], false); // of a leaf, which it no longer is
    autograd::set_history(to[i], node);
  }
}

std::vector<Device> all_devices() {
  std::vector<Device> out;
  for (size_t i = 0; i < torch::cuda::device_count(); ++i)
    out.emplace_back(kCUDA, static_cast<c10::DeviceIndex>(i));
  TORCH_CHECK(!out.empty(), "data_parallel: expected at least one CUDA device, got none");
  return out;
}

} // namespace torch::nn::parallel::detail
