// Which calls of scaled_dot_product_attention cuDNN computes.
#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace at::native {

// `save`: gradients will be asked for. `others`: another fused form computes this call too, so that
// only long ones go to cuDNN. Makes the plans, so that the operators find them.
bool cudnn_attention_applies(const Tensor& q, const Tensor& k, const Tensor& v,
                             const std::optional<Tensor>& mask, double dropout_p, bool causal,
                             double scale, bool save, bool others);

} // namespace at::native
