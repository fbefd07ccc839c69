// The base of requests that are no list of indices.
#pragma once
#include <cstddef>

#include <c10/macros/Macros.h>

namespace torch::data::samplers {

struct TORCH_API CustomBatchRequest {
  CustomBatchRequest() = default;
  CustomBatchRequest(const CustomBatchRequest&) = default;
  CustomBatchRequest(CustomBatchRequest&&) noexcept = default;
  CustomBatchRequest& operator=(const CustomBatchRequest&) = default;
  CustomBatchRequest& operator=(CustomBatchRequest&&) noexcept = default;
  virtual ~CustomBatchRequest() = default;
  // How many examples are asked for.
  virtual size_t size() const = 0;
};

} // namespace torch::data::samplers
