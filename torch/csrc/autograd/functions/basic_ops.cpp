// See basic_ops.h.
#include <torch/csrc/autograd/functions/basic_ops.h>

#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {
namespace {

// The inputs again as outputs of `node`, one edge for each.
TensorVec passed_through(const TensorVec& inputs, const c10::intrusive_ptr<Node>& node) {
  TensorVec out;
  for (const Tensor& t : inputs) {
    node->add_next_edge(gradient_edge(t));
    out.push_back(t.defined() ? detach(t) : t);
  }
  for (const Tensor& t : out)
    if (t.defined() && (t.is_floating_point() || t.is_complex()))
      set_history(t, node);
    else
      node->add_input_metadata(t);
  return out;
}

} // namespace

TensorVec Error::apply(TensorVec) { throw c10::Error(message_); }
TensorVec DelayedError::apply(TensorVec inputs) {
  return passed_through(inputs, c10::make_intrusive<Error>(message_));
}
TensorVec UndefinedGrad::apply(TensorVec inputs) {
  return passed_through(inputs, c10::make_intrusive<UndefinedGradBackward>());
}

} // namespace torch::autograd
