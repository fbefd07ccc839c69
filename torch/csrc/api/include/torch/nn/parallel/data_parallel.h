// A module on several devices: each takes a part of the batch, gradients arrive at the original's
// parameters. `M` is a module holder or a shared pointer to a module.
#pragma once
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/functions/comm.h>
#include <torch/cuda.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

namespace torch::nn::parallel {
namespace detail {

// Makes the parameters of `replica`, a clone of `original`, functions of the original's.
void connect_parameters(const Module& original, Module& replica);
// All CUDA devices; an Error when there is none.
std::vector<Device> all_devices();
// What a pointer or holder holds.
template <class M> std::shared_ptr<M> pointer_of(const std::shared_ptr<M>& module) {
  return module;
}
template <class M> std::shared_ptr<M> pointer_of(const ModuleHolder<M>& module) {
  return module.ptr();
}

} // namespace detail

// A copy of the module on each device. Gradients of the copies' parameters are added to the
// original's; their buffers are copies of their own.
template <class M> std::vector<std::shared_ptr<M>> replicate(const std::shared_ptr<M>& module,
                                                             const std::vector<Device>& devices) {
  std::vector<std::shared_ptr<M>> replicas;
  for (const Device& device : devices) {
    auto replica = std::dynamic_pointer_cast<M>(module->clone(device));
    TORCH_CHECK(replica, "replicate: clone() of a module gave a module of another type");
    detail::connect_parameters(*module, *replica);
    replicas.push_back(std::move(replica));
  }
  return replicas;
}
template <class M> std::vector<ModuleHolder<M>> replicate(const ModuleHolder<M>& module,
                                                          const std::vector<Device>& devices) {
  std::vector<ModuleHolder<M>> replicas;
  for (std::shared_ptr<M>& each : replicate(module.ptr(), devices))
    replicas.emplace_back(std::move(each));
  return replicas;
}

// modules[i]->forward(inputs[i]), on a thread for each, the result on devices[i] where given. The
// first exception is thrown again once all are done.
template <class M>
std::vector<Tensor> parallel_apply(std::vector<M>& modules, const std::vector<Tensor>& inputs,
                                   const std::optional<std::vector<Device>>& devices = {}) {
  TORCH_CHECK(modules.size() == inputs.size(), "Must have as many inputs as modules: got ",
              inputs.size(), " inputs and ", modules.size(), " modules");
  TORCH_CHECK(!devices || devices->size() == modules.size(),
              "Must have as many devices as modules: got ", devices ? devices->size() : 0,
              " devices and ", modules.size(), " modules");
  std::vector<Tensor> outputs(modules.size());
  std::mutex mutex;
  std::exception_ptr error;
  const c10::AutogradState state = c10::tls_autograd_state;
  at::parallel_for(0, static_cast<int64_t>(modules.size()), 1, [&](int64_t begin, int64_t end) {
    const c10::AutogradState before = std::exchange(c10::tls_autograd_state, state);
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      try {
        const Tensor out = modules[i]->forward(inputs[i]);
        outputs[i] = devices ? out.to((*devices)[i]) : out;
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!error) error = std::current_exception();
      }
    }
    c10::tls_autograd_state = before;
  });
  if (error) std::rethrow_exception(error);
  return outputs;
}

// forward() of the module with the batch `input` split along `dim` between the devices (all CUDA
// devices unless given). The result is on `output_device`, or on the first device.
template <class M>
Tensor data_parallel(M module, const Tensor& input, std::optional<std::vector<Device>> devices = {},
                     std::optional<Device> output_device = std::nullopt, int64_t dim = 0) {
  if (!devices) devices = detail::all_devices();
  TORCH_CHECK(!devices->empty(), "data_parallel: expected at least one device, got none");
  const Device destination = output_device.value_or(devices->front());
  if (devices->size() == 1) {
    module->to(devices->front());
    return module->forward(input.to(devices->front())).to(destination);
  }
  const autograd::TensorVec scattered =
      autograd::Scatter(*devices, std::nullopt, dim).apply({input});
  const std::vector<Tensor> parts(scattered.begin(), scattered.end());
  devices->resize(parts.size(), destination); // a small batch leaves devices without a part
  auto replicas = replicate(detail::pointer_of(module), *devices);
  const std::vector<Tensor> outputs = parallel_apply(replicas, parts, devices);
  autograd::TensorVec gathered;
  for (const Tensor& each : outputs) gathered.push_back(each);
  return autograd::Gather(destination, dim).apply(gathered)[0];
}

} // namespace torch::nn::parallel
