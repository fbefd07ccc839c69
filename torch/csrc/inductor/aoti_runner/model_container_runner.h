// Runs a compiled model from C++ (docs/aotinductor.md).
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::inductor {

class AotiModel;

using TensorConstantMap = std::unordered_map<std::string, at::Tensor*>;

class TORCH_API AOTIModelContainerRunner {
 public:
  virtual ~AOTIModelContainerRunner();
  AOTIModelContainerRunner(const AOTIModelContainerRunner&) = delete;
  AOTIModelContainerRunner& operator=(const AOTIModelContainerRunner&) = delete;

  // Any number of threads may call; none waits for another. Work for CUDA goes to the current
  // stream, so that `stream_handle` is not needed.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, void* stream_handle = nullptr);
  // The same, and tensors are freed after their last use.
  std::vector<at::Tensor> boxed_run(std::vector<at::Tensor>&& inputs,
                                    void* stream_handle = nullptr);

  std::unordered_map<std::string, std::string> getConstantNamesToOriginalFQNs() const;
  std::unordered_map<std::string, int32_t> getConstantNamesToDtypes() const;
  const std::unordered_map<std::string, at::Tensor> extract_constants_map(bool use_inactive) const;

  // Names may be those of the module or of the runner. A value is copied unless it is to stay the
  // caller's memory.
  void update_constant_buffer(const std::unordered_map<std::string, at::Tensor>& values,
                              bool use_inactive, bool validate_full_update,
                              bool user_managed = false);
  void update_constant_buffer(const TensorConstantMap& values, bool use_inactive,
                              bool validate_full_update, bool user_managed = false);
  void update_inactive_constant_buffer(const TensorConstantMap& values);
  void run_const_fold(bool use_inactive);
  void swap_constant_buffer();
  void free_inactive_constant_buffer();

  // {tree of arguments, tree of results}, as torch.utils._pytree.treespec_loads reads them.
  std::vector<std::string> get_call_spec() const;
  const AotiModel& model() const { return *model_; }

 protected:
  // A package, or the file that torch._inductor.aot_compile returned. A device without a type, ""
  // or ":1", is of the type that the model was compiled for.
  AOTIModelContainerRunner(const std::string& path, const std::string& model_name,
                           size_t num_models, const std::string& device);

 private:
  std::unique_ptr<AotiModel> model_;
};

} // namespace torch::inductor
