// The context object of torch.autograd.Function and its node. See Note [Contexts and nodes].
#pragma once
#include <vector>

#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/python/autograd/function.h>
#include <torch/csrc/python/tensor/tensor.h>

namespace torch::python {

class FunctionNode;

struct FunctionContext {
  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  FunctionNode* node; // not owned; cleared by the node
  PyObject* needs_input_grad;
  // Set by the user's forward, read when it has ended.
  PyObject* to_save;
  PyObject* saved_for_forward;
  PyObject* non_differentiable;
  PyObject* dirty_tensors;
  bool materialize_grads;
  bool pure_view;
  bool released; // the node's saved variables were freed
  // What `apply` found out: which inputs are tensors, and what the outputs were like.
  std::vector<bool> is_tensor_input;
  std::vector<autograd::SavedVariable> saved;
};

extern PyTypeObject FunctionContextType;

inline FunctionContext* as_context(PyObject* o) { return reinterpret_cast<FunctionContext*>(o); }

// Calls the class's backward (or vjp) on the gradients.
class FunctionNode final : public autograd::Node {
 public:
  explicit FunctionNode(PyObject* context);
  ~FunctionNode() override;
  autograd::TensorVec apply(autograd::TensorVec grads) override;
  std::string name() const override;
  void release_variables() override;
  PyObject* context() const { return context_; }

  // For each output of forward its input number, or -1 for one that is no tensor.
  std::vector<int> output_index;

 protected:
  void release_resources() override;

 private:
  PyRef arguments(const autograd::TensorVec& grads);
  autograd::TensorVec results(PyObject* returned);
  void drop_context();
  PyObject* context_; // owned
};

// torch._C._FunctionBase.apply.
PyObject* function_apply(PyObject* cls, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

} // namespace torch::python
