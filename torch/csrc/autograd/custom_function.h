// torch::autograd::Function: operators whose forward and backward are written in C++ by users.
//
//   struct Double : torch::autograd::Function<Double> {
//     static Tensor forward(AutogradContext* ctx, const Tensor& x) { return x * 2; }
//     static variable_list backward(AutogradContext* ctx, variable_list grads) { return {grads[0] *
//     2}; }
//   };
//   Tensor y = Double::apply(x);
//
// forward gives a Tensor or a variable_list. backward gives one gradient for each argument of
// forward, undefined for those that are no tensors; an argument that is a list of tensors counts as
// that many.
#pragma once
#include <map>
#include <typeinfo>

#include <ATen/core/IValue.h>
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {

using Variable = Tensor;
using variable_list = std::vector<Tensor>;
using tensor_list = std::vector<Tensor>;
// Positions from the first up to the second, which is not among them.
using IndexRange = std::pair<size_t, size_t>;

// What forward leaves for backward.
class TORCH_API AutogradContext {
 public:
  std::map<std::string, at::IValue> saved_data;

  void save_for_backward(variable_list tensors) { to_save_ = std::move(tensors); }
  // Raises when one was written since, or after the graph was freed.
  variable_list get_saved_variables() const;
  void mark_dirty(const variable_list& inputs) { dirty_ = inputs; }
  void mark_non_differentiable(const variable_list& outputs) { non_differentiable_ = outputs; }
  void set_materialize_grads(bool value) { materialize_grads_ = value; }
  // Whether the gradient of a tensor is wanted, by its position among the tensors of forward's
  // arguments. Inside of a backward pass this means: by that pass.
  bool needs_input_grad(size_t i) const;
  // Whether one of the tensors at these positions needs a gradient.
  bool needs_input_grad(std::initializer_list<IndexRange> ranges) const;

 private:
  friend class CustomNode;
  friend class CustomCall;
  variable_list to_save_, dirty_, non_differentiable_;
  std::vector<SavedVariable> saved_;
  Node* node_ = nullptr;
  bool materialize_grads_ = true;
  bool released_ = false;
};

// Refuses a function with several results that writes to a view: the write could not be undone for
// the view's base.
TORCH_API void check_dirty_view(const Tensor& t, size_t outputs);
// Makes a result of a custom function an output of its node, and returns it. A dirty input was
// written in place; any other input that is returned becomes a view, since it keeps its own
// history.
TORCH_API Tensor record_custom_output(const Tensor& t, bool is_input, bool is_dirty,
                                      const c10::intrusive_ptr<Node>& node);

using CustomBackward = variable_list (*)(AutogradContext*, variable_list);

class TORCH_API CustomNode final : public Node {
 public:
  CustomNode(CustomBackward backward, std::string name)
      : backward_(backward), name_(std::move(name)) {}
  TensorVec apply(TensorVec grads) override;
  std::string name() const override { return name_; }
  void release_variables() override;

  AutogradContext context;
  std::vector<bool> is_tensor; // for each argument of forward

 private:
  CustomBackward backward_;
  std::string name_;
};

// One call of apply.
class TORCH_API CustomCall {
 public:
  CustomCall(CustomBackward backward, std::string name);
  void add(const Tensor& t);
  void add(const std::optional<Tensor>& t) { add(t ? *t : Tensor()); }
  void add(at::TensorList list) {
    for (const Tensor& t : list) add(t);
  }
  void add(const variable_list& list) { add(at::TensorList(list)); }
  template <class T> void add(const T&) { node_->is_tensor.push_back(false); }
  AutogradContext* context() { return &node_->context; }
  variable_list finish(variable_list outputs);

 private:
  c10::intrusive_ptr<CustomNode> node_;
  variable_list inputs_;
  bool recorded_ = false;
};

namespace detail {
struct ForwardGuard {
  ForwardGuard() : before(c10::tls_autograd_state) { c10::tls_autograd_state.grad_mode = false; }
  ~ForwardGuard() { c10::tls_autograd_state = before; }
  c10::AutogradState before;
};
inline variable_list as_list(Tensor t) { return {std::move(t)}; }
inline variable_list as_list(variable_list list) { return list; }
inline Tensor as_result(variable_list list, const Tensor*) { return std::move(list[0]); }
inline variable_list as_result(variable_list list, const variable_list*) { return list; }
} // namespace detail

template <class T> struct Function {
  template <class X = T, class... Args> static auto apply(Args&&... args)
      -> decltype(X::forward(static_cast<AutogradContext*>(nullptr), args...)) {
    using Result = decltype(X::forward(static_cast<AutogradContext*>(nullptr), args...));
    CustomCall call(&X::backward, typeid(X).name());
    (call.add(args), ...);
    variable_list outputs;
    {
      detail::ForwardGuard guard;
      outputs = detail::as_list(X::forward(call.context(), std::forward<Args>(args)...));
    }
    return detail::as_result(call.finish(std::move(outputs)), static_cast<const Result*>(nullptr));
  }
};

} // namespace torch::autograd
