// See generated_node.h and shared_kernels.h.
#include <torch/csrc/autograd/generated_node.h>

#include <ATen/ops/real.h>

namespace torch::autograd {

Tensor GeneratedNode::for_input(size_t i, Tensor grad) const {
  if (!next_edges_[i].is_valid() || c10::isComplexType(edge_metadata(i).dtype)) return grad;
  return at::real(grad);
}

namespace {
class MissingBackward final : public Node {
 public:
  explicit MissingBackward(std::string op) : op_(std::move(op)) {}
  std::string name() const override { return "NotImplemented"; }
  TensorVec apply(TensorVec) override {
    throw c10::NotImplementedError(c10::str("the derivative for '", op_, "' is not implemented."));
  }

 private:
  std::string op_;
};
}  // namespace

namespace detail {
void throw_out_requires_grad(const at::OperatorEntry& op) {
  const char* plain = op.name;
  for (const char* p = op.name; *p != 0; ++p)
    if (p[0] == ':' && p[1] == ':') plain = p + 2;
  throw c10::Error(c10::str(plain, "(): functions with out=... arguments don't support automatic differentiation, "
                            "but one of the arguments requires grad."));
}

void mark_missing(const at::OperatorEntry& op, at::TensorList outputs) {
  auto node = c10::make_intrusive<MissingBackward>(op.full_name());
  for (const Tensor& t : outputs) finish(t, node);
}
}  // namespace detail

}  // namespace torch::autograd
