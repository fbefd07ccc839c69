// Names under which C++ code asks how a view was made. The tensor itself keeps that
// (TensorImpl::view_origin); its autograd metadata is told when a program asks for it: views
// without gradients need none.
#pragma once
#include <c10/core/TensorImpl.h>

namespace torch::autograd {

// In the order of TensorImpl::ViewOrigin.
enum class CreationMeta : uint8_t {
  DEFAULT,
  MULTI_OUTPUT_NODE,
  NO_GRAD_MODE,
  MULTI_OUTPUT_SAFE,
  INFERENCE_MODE,
  IN_CUSTOM_FUNCTION
};

// Behind TensorImpl::autograd_meta() of programs: null for a tensor that is no view and has no
// metadata.
struct ViewQueries {
  static TORCH_API c10::AutogradMetaInterface* described(c10::TensorImpl& tensor);
};

} // namespace torch::autograd
