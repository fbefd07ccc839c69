// See model_container_runner.h.
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

#include <torch/csrc/inductor/aoti_archive.h>
#include <torch/csrc/inductor/aoti_model.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner_cpu.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner_cuda.h>

namespace torch::inductor {

using at::Tensor;

AOTIModelContainerRunner::AOTIModelContainerRunner(const std::string& path,
                                                   const std::string& model_name, size_t num_models,
                                                   const std::string& device) {
  TORCH_CHECK(num_models > 0, "a compiled model needs at least one instance");
  AotiArchive archive(path);
  AotiFile file = archive.model(model_name);
  const bool any = device.empty() || device[0] == ':';
  const at::Device wanted(!any                    ? device
                          : file.device.is_cuda() ? "cuda" + device
                                                  : std::string("cpu"));
  TORCH_CHECK(file.device.type() == wanted.type(), "the model was compiled for ", file.device,
              " and is to run on ", wanted);
  const bool is_default = wanted.is_cuda() && !wanted.has_index();
  model_ = std::make_unique<AotiModel>(std::move(file), archive.weights(model_name),
                                       is_default ? at::Device(at::kCUDA, 0) : wanted);
}

AOTIModelContainerRunner::~AOTIModelContainerRunner() = default;

std::vector<Tensor> AOTIModelContainerRunner::run(const std::vector<Tensor>& inputs, void*) {
  return model_->run(inputs);
}
std::vector<Tensor> AOTIModelContainerRunner::boxed_run(std::vector<Tensor>&& inputs, void*) {
  return model_->run(std::move(inputs));
}

std::unordered_map<std::string, std::string>
AOTIModelContainerRunner::getConstantNamesToOriginalFQNs() const {
  std::unordered_map<std::string, std::string> found;
  for (const AotiConstant& constant : model_->file().constants)
    if (!constant.folded) found[constant.name] = constant.fqn;
  return found;
}
std::unordered_map<std::string, int32_t>
AOTIModelContainerRunner::getConstantNamesToDtypes() const {
  std::unordered_map<std::string, int32_t> found;
  for (const AotiConstant& constant : model_->file().constants)
    if (!constant.folded) found[constant.name] = static_cast<int32_t>(constant.dtype);
  return found;
}
const std::unordered_map<std::string, Tensor>
AOTIModelContainerRunner::extract_constants_map(bool use_inactive) const {
  return model_->constants(use_inactive);
}

void AOTIModelContainerRunner::update_constant_buffer(
    const std::unordered_map<std::string, Tensor>& values, bool use_inactive,
    bool validate_full_update, bool user_managed) {
  model_->update(values, use_inactive, validate_full_update, user_managed);
}
void AOTIModelContainerRunner::update_constant_buffer(const TensorConstantMap& values,
                                                      bool use_inactive, bool validate_full_update,
                                                      bool user_managed) {
  std::unordered_map<std::string, Tensor> held;
  for (const auto& [name, value] : values) {
    TORCH_CHECK(value, "the constant ", name, " has no value");
    held[name] = *value;
  }
  model_->update(held, use_inactive, validate_full_update, user_managed);
}
void AOTIModelContainerRunner::update_inactive_constant_buffer(const TensorConstantMap& values) {
  update_constant_buffer(values, true, true);
}
void AOTIModelContainerRunner::run_const_fold(bool use_inactive) { model_->fold(use_inactive); }
void AOTIModelContainerRunner::swap_constant_buffer() { model_->swap(); }
void AOTIModelContainerRunner::free_inactive_constant_buffer() { model_->free_inactive(); }

std::vector<std::string> AOTIModelContainerRunner::get_call_spec() const {
  return {model_->file().in_spec, model_->file().out_spec};
}

AOTIModelContainerRunnerCpu::AOTIModelContainerRunnerCpu(const std::string& path, size_t num_models,
                                                         bool, const std::string& model_name)
    : AOTIModelContainerRunner(path, model_name, num_models, "cpu") {}

AOTIModelContainerRunnerCuda::AOTIModelContainerRunnerCuda(const std::string& path,
                                                           size_t num_models,
                                                           const std::string& device, bool,
                                                           const std::string& model_name)
    : AOTIModelContainerRunner(path, model_name, num_models, device) {}

} // namespace torch::inductor
