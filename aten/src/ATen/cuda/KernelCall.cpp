// See KernelCall.h.
#include <ATen/cuda/KernelCall.h>

namespace at::cuda {

void check_same_device(std::initializer_list<const Tensor*> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor* t : tensors) {
    if (t == nullptr || !t->defined()) continue;
    if (first == nullptr) first = t;
    TORCH_CHECK(t->device() == first->device(),
                "Expected all tensors to be on the same device, but found at least two devices, ",
                first->device(), " and ", t->device(), "!");
  }
}

int floating_slot(ScalarType dtype, const char* op) {
  switch (dtype) {
  case kFloat:
    return 0;
  case kDouble:
    return 1;
  case kHalf:
    return 2;
  case kBFloat16:
    return 3;
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, "\"", op, "\" not implemented for '", dtype, "'");
  }
  return -1;
}

} // namespace at::cuda
