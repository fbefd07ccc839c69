// Parameters as one vector, and back.
#pragma once
#include <torch/types.h>

namespace torch::nn::utils {

TORCH_API Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
TORCH_API void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters);

} // namespace torch::nn::utils
