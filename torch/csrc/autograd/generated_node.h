// What generated nodes and kernels are written with: saving and unpacking, edges, and the checks
// around them. See torchgen/emit_autograd.py.
#pragma once
#include <array>

#include <ATen/core/AutogradKernels.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {

struct TORCH_API GeneratedNode : Node {
  // Shape and type of the input that edge i leads to, as the forward pass saw it.
  const InputMetadata& edge_metadata(size_t i) const {
    const Edge& edge = next_edges_[i];
    return edge.function->input_metadata(edge.input_nr);
  }
  // A saved tensor for the last formula that needs it: it is released before the results of the
  // formulas that follow are allocated.
  Tensor last_use(SavedVariable& saved) {
    Tensor t = saved.unpack(this);
    if (is_last_run(this)) saved.reset();
    return t;
  }
  // In apply: gradients that this pass does not ask for are not computed.
  bool wants_output(size_t i) const { return should_compute_output(i) && is_wanted(this, i); }
  bool wants_any(size_t from, size_t count) const {
    for (size_t i = from; i < from + count; ++i)
      if (wants_output(i)) return true;
    return false;
  }
  bool should_compute_any(size_t from, size_t count) const {
    for (size_t i = from; i < from + count; ++i)
      if (should_compute_output(i)) return true;
    return false;
  }
  // Stores a gradient. A real input of a complex computation takes the real part.
  void give(TensorVec& out, size_t i, Tensor grad) const {
    if (C10_UNLIKELY(grad.defined() && grad.is_complex())) grad = for_input(i, std::move(grad));
    out[i] = std::move(grad);
  }
  void give_list(TensorVec& out, size_t from, size_t count, std::vector<Tensor> grads) const {
    for (size_t i = 0; i < count && i < grads.size(); ++i)
      if (wants_output(from + i)) give(out, from + i, std::move(grads[i]));
  }

 private:
  Tensor for_input(size_t i, Tensor grad) const;
};

// Reads a saved member; defined for the types that nodes keep.
template <class T> at::IValue read_saved(const void* member, Node* owner);
#define CRESSET_SAVED(node, name)                                                                  \
  { #name, __builtin_offsetof(node, name##_), &read_saved < decltype(node::name##_)> }

// ---- in kernels ---------------------------------------------------------------------------------
template <class... Args> bool recording(const Args&... args) {
  return c10::tls_autograd_state.grad_mode && any_requires_grad(args...);
}
inline bool is_differentiable(const Tensor& t) {
  return t.defined() && (t.is_floating_point() || t.is_complex());
}
inline bool is_differentiable(at::TensorList list) {
  for (const Tensor& t : list)
    if (!is_differentiable(t)) return false;
  return true;
}
inline void connect(Node& node, const Tensor& t) { node.add_next_edge(gradient_edge(t)); }
inline void connect(Node& node, const std::optional<Tensor>& t) {
  node.add_next_edge(t ? gradient_edge(*t) : Edge());
}
inline void connect(Node& node, at::TensorList list) {
  for (const Tensor& t : list) connect(node, t);
}
// Results of integer type have no gradient, but a place among the node's outputs: those behind them
// keep theirs.
inline void finish(const Tensor& t, const c10::intrusive_ptr<Node>& node) {
  set_history(is_differentiable(t) ? t : Tensor(), node);
}
inline void finish(const std::vector<Tensor>& list, const c10::intrusive_ptr<Node>& node) {
  for (const Tensor& t : list) finish(t, node);
}
inline void check_inplace_each(const Tensor& t) { check_inplace(t, true); }
inline void check_inplace_each(at::TensorList list) {
  for (const Tensor& t : list) check_inplace(t, true);
}
inline void rebase_each(const Tensor& t, const c10::intrusive_ptr<Node>& node) {
  rebase_history(t, node);
}
inline void rebase_each(at::TensorList list, const c10::intrusive_ptr<Node>& node) {
  for (const Tensor& t : list) rebase_history(t, node);
}
// After an operator that changed the geometry of its argument and not its data.
inline void set_history_each(const Tensor& t, const c10::intrusive_ptr<Node>& node) {
  set_history(t, node);
}

// ---- saving -------------------------------------------------------------------------------------
inline c10::DimVector keep(at::IntArrayRef list) { return c10::DimVector(list); }
inline std::optional<c10::DimVector> keep(const at::OptionalIntArrayRef& list) {
  return list ? std::optional<c10::DimVector>(c10::DimVector(*list)) : std::nullopt;
}
inline KeptSizes keep(c10::SymIntArrayRef list) { return list; }
inline std::optional<KeptSizes> keep(const c10::OptionalSymIntArrayRef& list) {
  return list ? std::optional<KeptSizes>(KeptSizes(*list)) : std::nullopt;
}
inline std::vector<double> keep(at::ArrayRef<double> list) { return list.vec(); }
inline std::optional<std::vector<double>> keep(const std::optional<at::ArrayRef<double>>& list) {
  return list ? std::optional<std::vector<double>>(list->vec()) : std::nullopt;
}
inline std::vector<at::Scalar> keep(at::ArrayRef<at::Scalar> list) { return list.vec(); }
inline std::string keep(std::string_view text) { return std::string(text); }
inline std::optional<std::string> keep(const std::optional<std::string_view>& text) {
  return text ? std::optional<std::string>(std::string(*text)) : std::nullopt;
}
inline std::vector<SavedVariable> save_list(at::TensorList list) {
  std::vector<SavedVariable> out;
  for (const Tensor& t : list) out.emplace_back(t, false);
  return out;
}
inline std::vector<SavedVariable> save_list(at::OptionalTensorList list) {
  std::vector<SavedVariable> out;
  for (const std::optional<Tensor>& t : list) out.emplace_back(t, false);
  return out;
}
inline std::vector<KeptSizes> sizes_of_each(at::TensorList list) {
  std::vector<KeptSizes> out;
  for (const Tensor& t : list) out.emplace_back(t.sym_sizes());
  return out;
}

// ---- in nodes -----------------------------------------------------------------------------------
inline bool any_defined(const TensorVec& grads) {
  for (const Tensor& g : grads)
    if (g.defined()) return true;
  return false;
}
inline at::OptionalIntArrayRef optional_ref(const std::optional<c10::DimVector>& list) {
  return list ? at::OptionalIntArrayRef(at::IntArrayRef(*list)) : std::nullopt;
}
inline std::optional<at::ArrayRef<double>>
optional_ref(const std::optional<std::vector<double>>& list) {
  return list ? std::optional<at::ArrayRef<double>>(*list) : std::nullopt;
}
inline std::vector<Tensor> unpack_list(const std::vector<SavedVariable>& list, Node* owner) {
  std::vector<Tensor> out;
  for (const SavedVariable& s : list) out.push_back(s.unpack(owner));
  return out;
}
inline std::optional<Tensor> unpack_optional(const SavedVariable& saved, Node* owner) {
  Tensor t = saved.unpack(owner);
  return t.defined() ? std::optional<Tensor>(std::move(t)) : std::nullopt;
}
inline std::vector<std::optional<Tensor>>
unpack_optional_list(const std::vector<SavedVariable>& list, Node* owner) {
  std::vector<std::optional<Tensor>> out;
  for (const SavedVariable& s : list) out.push_back(unpack_optional(s, owner));
  return out;
}
inline void release(SavedVariable& saved) { saved.reset(); }
inline void release(std::vector<SavedVariable>& list) {
  for (SavedVariable& s : list) s.reset();
}
inline c10::SymInt numel_of(const InputMetadata& m) {
  c10::SymInt n = 1;
  for (const c10::SymInt s : c10::SymIntArrayRef(m.sizes)) n *= s;
  return n;
}
inline at::TensorOptions options_of(const InputMetadata& m) {
  return at::TensorOptions(m.dtype).device(m.device).layout(m.layout);
}

} // namespace torch::autograd
