// What tensor.grad_fn() returns to C++ users.
#pragma once
#include <torch/csrc/autograd/node.h>

namespace at {

// The node that made a tensor. Nodes are counted intrusively; code written for shared pointers
// gets one that shares the count.
class NodePtr : public c10::intrusive_ptr<torch::autograd::Node> {
 public:
  using c10::intrusive_ptr<torch::autograd::Node>::intrusive_ptr;
  NodePtr(c10::intrusive_ptr<torch::autograd::Node> node) noexcept
      : c10::intrusive_ptr<torch::autograd::Node>(std::move(node)) {}
  operator std::shared_ptr<torch::autograd::Node>() const {
    c10::intrusive_ptr<torch::autograd::Node> owner = *this;
    torch::autograd::Node* node = get();
    if (!node) return nullptr;
    return std::shared_ptr<torch::autograd::Node>(std::move(node), Keep{std::move(owner)});
  }

 private:
  struct Keep {
    c10::intrusive_ptr<torch::autograd::Node> owner;
    void operator()(torch::autograd::Node*) noexcept { owner.reset(); }
  };
};

} // namespace at
