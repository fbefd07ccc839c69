// Runs a compiled model on the CPU.
#pragma once
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

namespace torch::inductor {

class TORCH_API AOTIModelContainerRunnerCpu : public AOTIModelContainerRunner {
 public:
  explicit AOTIModelContainerRunnerCpu(const std::string& path, size_t num_models = 1,
                                       bool run_single_threaded = false,
                                       const std::string& model_name = "model");
};

} // namespace torch::inductor
