// Loads a model that torch._inductor.aoti_compile_and_package wrote, without Python:
//
//   torch::inductor::AOTIModelPackageLoader model("model.pt2");
//   std::vector<at::Tensor> outputs = model.run({x});
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

namespace torch::inductor {

class TORCH_API AOTIModelPackageLoader {
 public:
  // device_index: of the device that the model was compiled for; -1 is the first.
  explicit AOTIModelPackageLoader(const std::string& model_package_path,
                                  const std::string& model_name = "model",
                                  bool run_single_threaded = false, size_t num_runners = 1,
                                  c10::DeviceIndex device_index = -1);
  ~AOTIModelPackageLoader();

  AOTIModelContainerRunner* get_runner() { return runner_.get(); }
  std::unordered_map<std::string, std::string> get_metadata() const;
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, void* stream_handle = nullptr);
  std::vector<at::Tensor> boxed_run(std::vector<at::Tensor>&& inputs,
                                    void* stream_handle = nullptr);
  std::vector<std::string> get_call_spec() const;

  // By the names that the module has for them.
  void load_constants(const std::unordered_map<std::string, at::Tensor>& constants,
                      bool use_inactive, bool check_full_update, bool user_managed = false);
  std::vector<std::string> get_constant_fqns() const;
  void update_constant_buffer(const std::unordered_map<std::string, at::Tensor>& constants,
                              bool use_inactive, bool validate_full_update,
                              bool user_managed = false);

  static std::unordered_map<std::string, std::string>
  load_metadata_from_package(const std::string& model_package_path,
                             const std::string& model_name = "model");
  // The names of the models in a package.
  static std::vector<std::string> model_names(const std::string& model_package_path);

 private:
  std::unique_ptr<AOTIModelContainerRunner> runner_;
};

} // namespace torch::inductor
