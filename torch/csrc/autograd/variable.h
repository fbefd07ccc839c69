// What autograd keeps for a tensor, and the functions that read and write it.
//
// A leaf has `requires_grad` and accumulates into `grad`. Any other tensor that requires grad has a
// `grad_fn`. A view's history follows its base: when the base (or another view of it) is written in
// place, the view's grad_fn is made anew on its next use (Note [In-place writes and views]).
#pragma once
#include <utility>

#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/view_meta.h>

namespace torch::autograd {

// A hook on a tensor: gets its gradient, may answer another (undefined: keep).
struct TORCH_API TensorHook {
  virtual ~TensorHook();
  virtual Tensor call(const Tensor& grad) = 0;
  uint64_t id = 0;
};

struct TORCH_API AutogradMeta final : c10::AutogradMetaInterface {
  ~AutogradMeta() override;
  Tensor grad;
  c10::intrusive_ptr<Node> grad_fn;
  c10::weak_intrusive_ptr<Node> grad_accumulator;
  bool requires_grad = false; // of a leaf
  bool retains_grad = false;
  // As of the last call of ViewQueries::described.
  bool is_view = false;
  CreationMeta creation = CreationMeta::DEFAULT;
  uint32_t output_nr = 0;
  // Version of the base when grad_fn of a view was made.
  uint32_t attr_version = 0;
  std::string name;
  std::vector<std::shared_ptr<TensorHook>> hooks;
  std::vector<std::shared_ptr<TensorHook>> post_accumulate;
  uint64_t next_hook_id = 1;
  Tensor forward_grad; // the tangent of a dual tensor
  uint64_t forward_level = 0;

  bool has_bw_view() const { return is_view; }
  CreationMeta get_creation_meta() const { return creation; }
};
using DifferentiableViewMeta = AutogradMeta;

// Null when the tensor has none.
inline AutogradMeta* meta_of(const Tensor& t) {
  if (!t.defined()) return nullptr;
  return static_cast<AutogradMeta*>(std::as_const(*t.unsafeGetTensorImpl()).autograd_meta());
}
TORCH_API AutogradMeta& ensure_meta(const Tensor& t);

// ---- reading
// The function that made the tensor; views get a fresh one after their base was written.
TORCH_API c10::intrusive_ptr<Node> grad_fn_of(const Tensor& t);
TORCH_API bool is_leaf(const Tensor& t);
// Where a gradient for this tensor goes: its grad_fn, its accumulator when it is a leaf that
// requires grad, or nowhere.
TORCH_API Edge gradient_edge(const Tensor& t);
TORCH_API c10::intrusive_ptr<Node> grad_accumulator(const Tensor& t);
inline bool compute_requires_grad() { return c10::tls_autograd_state.grad_mode; }

// ---- writing
// requires_grad of a leaf. Errors as PyTorch: non-leaf, or a dtype without gradients.
TORCH_API void set_requires_grad(const Tensor& t, bool value);
// Makes `t` output of `node` (and so non-leaf).
TORCH_API void set_history(const Tensor& t, const c10::intrusive_ptr<Node>& node);
// After an in-place write recorded as `node`: t's history becomes node; when t is a view, the
// base's history becomes a CopySlices of it.
TORCH_API void rebase_history(const Tensor& t, const c10::intrusive_ptr<Node>& node);
// Before an in-place write that will be recorded: leaves that require grad and views that must not
// be written raise. `recorded`: any operand requires grad and grad mode is on.
TORCH_API void check_inplace(const Tensor& t, bool recorded);
// A tensor that shares data and version counter but has no history.
TORCH_API Tensor detach(const Tensor& t);
// `.data`: shares data only.
TORCH_API Tensor variable_data(const Tensor& t);

// ---- hooks
TORCH_API uint64_t register_hook(const Tensor& t, std::shared_ptr<TensorHook> hook);
TORCH_API void remove_hook(const Tensor& t, uint64_t id);
// All hooks on the gradient of the tensor in its present state.
TORCH_API void clear_hooks(const Tensor& t);
TORCH_API void retain_grad(const Tensor& t);

// Adds a gradient into leaf.grad by PyTorch's layout rules.
TORCH_API void accumulate_grad(const Tensor& leaf, Tensor grad, bool create_graph);

class TORCH_API AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor variable);
  TensorVec apply(TensorVec grads) override;
  std::string name() const override { return "AccumulateGrad"; }
  void run_tensor_hooks(TensorVec& grads) override;
  const Tensor& variable() const { return variable_; }

 protected:
  void release_resources() override {
    variable_.reset();
    Node::release_resources();
  }

 private:
  Tensor variable_;
};

// ---- tensors saved for the backward pass --------------------------------------------------------
// Packs and unpacks saved tensors when hooks are installed
// (torch.autograd.graph.saved_tensors_hooks).
struct TORCH_API SavedTensorHooks {
  virtual ~SavedTensorHooks();
  virtual std::shared_ptr<void> pack(const Tensor& t) = 0;
  virtual Tensor unpack(const std::shared_ptr<void>& packed) = 0;
};
// The hooks in force on this thread, or null; set by the Python layer.
TORCH_API extern std::shared_ptr<SavedTensorHooks> (*current_saved_tensor_hooks)();

class TORCH_API SavedVariable {
 public:
  SavedVariable() = default;
  // `is_output`: the tensor is made by the node that saves it, which must not own itself.
  SavedVariable(const Tensor& t, bool is_output);
  SavedVariable(const std::optional<Tensor>& t, bool is_output)
      : SavedVariable(t ? *t : Tensor(), is_output) {}
  ~SavedVariable();
  SavedVariable(SavedVariable&&) noexcept = default;
  SavedVariable& operator=(SavedVariable&&) noexcept = default;

  // The tensor as it was. Raises when it was written since, or was released. `owner` is the node
  // that saved it: the grad_fn of a saved output.
  Tensor unpack(Node* owner = nullptr) const;
  // Packs the tensor at once and unpacks it on its use. Raises when there is no tensor (any more),
  // when it was written since, and when it has hooks already.
  void register_hooks(std::shared_ptr<SavedTensorHooks> hooks, Node* owner);
  // The copy that is kept of output `number` of the node that saved it; undefined for another.
  Tensor kept_output(uint32_t number) const {
    return is_output_ && output_nr_ == number && !packed_ ? data_ : Tensor();
  }
  void reset();

 private:
  [[noreturn]] void throw_modified(uint32_t now, Node* owner) const;
  Tensor with_history(const Tensor& plain, const Edge& edge) const;
  // What hooks gave for the tensor, and the edge that it had: hooks see and give data only.
  struct Packed {
    std::shared_ptr<SavedTensorHooks> hooks;
    std::shared_ptr<void> value;
    Edge edge;
  };
  Tensor data_;
  std::unique_ptr<Packed> packed_;
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  bool is_output_ = false;
  bool was_undefined_ = true;
  bool released_ = false;
  bool requires_grad_ = false;
};

} // namespace torch::autograd
