// Small things the functions and modules of this folder share.
#pragma once
#include <optional>

#include <ATen/core/Tensor.h>

namespace torch::nn {

// An undefined tensor stands for one that is not given.
inline std::optional<at::Tensor> maybe(const at::Tensor& t) {
  return t.defined() ? std::optional<at::Tensor>(t) : std::nullopt;
}

} // namespace torch::nn
