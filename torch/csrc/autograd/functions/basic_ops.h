// Nodes that stand for what a graph cannot differentiate, and one that swallows gradients. Programs
// put them into graphs by hand; the operators' own nodes are generated.
#pragma once
#include <string>
#include <utility>

#include <torch/csrc/autograd/node.h>

namespace torch::autograd {

// A backward pass that comes here raises the message.
class TORCH_API Error : public Node {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}
  TensorVec apply(TensorVec grads) override;
  std::string name() const override { return "Error"; }

 private:
  std::string message_;
};

// The node of an operator whose derivative nobody wrote.
class TORCH_API NotImplemented : public Error {
 public:
  explicit NotImplemented(const std::string& forward)
      : Error("derivative for " + forward + " is not implemented"), forward_(forward) {}
  std::string name() const override { return "NotImplemented"; }
  const std::string& forward_name() const { return forward_; }

 private:
  std::string forward_;
};

// Its outputs are its inputs; a backward pass through one of them raises the message.
class TORCH_API DelayedError : public Node {
 public:
  explicit DelayedError(std::string message) : message_(std::move(message)) {}
  TensorVec apply(TensorVec inputs) override;
  std::string name() const override { return "DelayedError"; }

 private:
  std::string message_;
};

// Its outputs are its inputs, whose gradients are undefined whatever arrives.
class TORCH_API UndefinedGrad : public Node {
 public:
  TensorVec apply(TensorVec inputs) override;
  std::string name() const override { return "UndefinedGrad"; }
};
class TORCH_API UndefinedGradBackward : public Node {
 public:
  TensorVec apply(TensorVec grads) override { return TensorVec(grads.size()); }
  std::string name() const override { return "UndefinedGradBackward"; }
};

} // namespace torch::autograd
