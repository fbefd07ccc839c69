// Names under which C++ code asks how a view was made. Here the tensor itself keeps that
// (TensorImpl::view_origin); its autograd metadata does not know it.
#pragma once
#include <c10/core/TensorImpl.h>

namespace torch::autograd {

enum class CreationMeta : uint8_t {
  DEFAULT,
  MULTI_OUTPUT_NODE,
  NO_GRAD_MODE,
  MULTI_OUTPUT_SAFE,
  INFERENCE_MODE,
  IN_CUSTOM_FUNCTION
};

struct DifferentiableViewMeta : c10::AutogradMetaInterface {
  [[noreturn]] bool has_bw_view() const { refuse(); }
  [[noreturn]] CreationMeta get_creation_meta() const { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw c10::NotImplementedError("DifferentiableViewMeta: ask TensorImpl::is_view() and "
                                   "TensorImpl::view_origin instead");
  }
};

} // namespace torch::autograd
