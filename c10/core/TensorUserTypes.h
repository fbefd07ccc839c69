// Types that the methods of Tensor for C++ users mention (ATen/core/TensorUser.inc), declared only.
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <type_traits>

namespace at {
class Tensor;
using TensorBase = Tensor;
class DeprecatedTypeProperties;
class Dimname;

namespace indexing {
class TensorIndex;
} // namespace indexing

class NodePtr; // torch/csrc/autograd/node.h

} // namespace at
