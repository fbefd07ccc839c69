// Runs a compiled model on a CUDA device.
#pragma once
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

namespace torch::inductor {

class TORCH_API AOTIModelContainerRunnerCuda : public AOTIModelContainerRunner {
 public:
  explicit AOTIModelContainerRunnerCuda(const std::string& path, size_t num_models = 1,
                                        const std::string& device = "cuda",
                                        bool run_single_threaded = false,
                                        const std::string& model_name = "model");
};

} // namespace torch::inductor
