// The operators of torchvision's compiled part, supplied by this library. See vision.cpp.
#pragma once
#include <c10/macros/Macros.h>

namespace torch::vision {

// Defines "torchvision::nms", "roi_align" and the rest with their kernels for the CPU and the meta
// device, their gradients and their autocast rule. The first call does it, later ones do nothing.
TORCH_API void register_operators();

} // namespace torch::vision
