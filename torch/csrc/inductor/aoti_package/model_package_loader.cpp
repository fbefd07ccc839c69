// See model_package_loader.h.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <torch/csrc/inductor/aoti_archive.h>
#include <torch/csrc/inductor/aoti_model.h>

namespace torch::inductor {
namespace {

using at::Tensor;

// A runner for the device that the model was compiled for.
class PackageRunner : public AOTIModelContainerRunner {
 public:
  PackageRunner(const std::string& path, const std::string& name, size_t num_models,
                const std::string& device)
      : AOTIModelContainerRunner(path, name, num_models, device) {}
};

std::unordered_map<std::string, std::string> metadata_of(const AotiFile& file) {
  return {file.metadata.begin(), file.metadata.end()};
}

} // namespace

AOTIModelPackageLoader::AOTIModelPackageLoader(const std::string& model_package_path,
                                               const std::string& model_name, bool,
                                               size_t num_runners, c10::DeviceIndex device_index) {
  runner_ =
      std::make_unique<PackageRunner>(model_package_path, model_name, num_runners,
                                      device_index < 0 ? "" : ":" + std::to_string(device_index));
}

AOTIModelPackageLoader::~AOTIModelPackageLoader() = default;

std::unordered_map<std::string, std::string> AOTIModelPackageLoader::get_metadata() const {
  return metadata_of(runner_->model().file());
}
std::vector<Tensor> AOTIModelPackageLoader::run(const std::vector<Tensor>& inputs, void* stream) {
  return runner_->run(inputs, stream);
}
std::vector<Tensor> AOTIModelPackageLoader::boxed_run(std::vector<Tensor>&& inputs, void* stream) {
  return runner_->boxed_run(std::move(inputs), stream);
}
std::vector<std::string> AOTIModelPackageLoader::get_call_spec() const {
  return runner_->get_call_spec();
}

void AOTIModelPackageLoader::load_constants(
    const std::unordered_map<std::string, Tensor>& constants, bool use_inactive,
    bool check_full_update, bool user_managed) {
  runner_->update_constant_buffer(constants, use_inactive, check_full_update, user_managed);
}
std::vector<std::string> AOTIModelPackageLoader::get_constant_fqns() const {
  std::vector<std::string> found;
  for (const AotiConstant& constant : runner_->model().file().constants)
    if (!constant.folded) found.push_back(constant.fqn);
  return found;
}
void AOTIModelPackageLoader::update_constant_buffer(
    const std::unordered_map<std::string, Tensor>& constants, bool use_inactive,
    bool validate_full_update, bool user_managed) {
  runner_->update_constant_buffer(constants, use_inactive, validate_full_update, user_managed);
}

std::unordered_map<std::string, std::string>
AOTIModelPackageLoader::load_metadata_from_package(const std::string& model_package_path,
                                                   const std::string& model_name) {
  return metadata_of(AotiArchive(model_package_path).model(model_name));
}
std::vector<std::string> AOTIModelPackageLoader::model_names(const std::string& path) {
  return AotiArchive(path).models();
}

} // namespace torch::inductor
