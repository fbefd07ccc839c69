// Nodes and edges of the backward graph.
//
// A node is one step of a backward pass: it takes the gradients of a forward operator's outputs and
// gives those of its inputs. Edges lead to the nodes that take these on. Nodes are counted
// intrusively and come from thread-local pools; a graph is built, run and freed on any number of
// nodes without recursion (Note [Freeing graphs]).
#pragma once
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/kept_sizes.h>

namespace torch::autograd {
class Node;
}

namespace at {
struct IValue;

// A node. Nodes are counted intrusively; code written for shared pointers gets one that shares the
// count.
class NodePtr : public c10::intrusive_ptr<torch::autograd::Node> {
 public:
  using c10::intrusive_ptr<torch::autograd::Node>::intrusive_ptr;
  NodePtr(c10::intrusive_ptr<torch::autograd::Node> node) noexcept
      : c10::intrusive_ptr<torch::autograd::Node>(std::move(node)) {}
  TORCH_API operator std::shared_ptr<torch::autograd::Node>() const;
};
} // namespace at

namespace torch::autograd {

using at::Tensor;

// Gradients or tensors by position; a missing gradient is an undefined tensor.
using TensorVec = c10::SmallVector<Tensor, 2>;

struct Edge {
  at::NodePtr function;
  uint32_t input_nr = 0;
  bool is_valid() const { return function.defined(); }
};

// What a gradient arriving at an input of a node must look like: the forward output's properties.
struct TORCH_API InputMetadata {
  InputMetadata() = default;
  explicit InputMetadata(const Tensor& t);
  KeptSizes sizes;
  at::ScalarType dtype = at::ScalarType::Undefined; // of an undefined tensor
  at::Device device = at::kCPU;
  at::Layout layout = at::kStrided;
  void* stream = nullptr; // on which the forward operator ran; null on the CPU and by default
};

// Hooks of a node, allocated when the first is registered. The Python layer subclasses them.
struct TORCH_API NodeHook {
  virtual ~NodeHook();
  // A pre-hook gets and may replace the gradients entering the node (`outputs` empty); a post-hook
  // those leaving it.
  virtual void call(TensorVec& inputs, TensorVec& outputs) = 0;
  // Runs on one entering gradient only when >= 0 (tensor hooks).
  int input_index = -1;
  uint64_t id = 0;
};
struct NodeHooks {
  std::vector<std::shared_ptr<NodeHook>> tensor_pre, pre, retain_grad, post;
  uint64_t next_id = 1;
};

// Something a generated node keeps for its backward pass, for inspection (grad_fn._saved_self).
struct SavedField {
  const char* name; // "self"
  size_t offset;    // in the node
  at::IValue (*read)(const void* member, Node* owner);
};

// Where a node was made, kept under anomaly mode; the Python layer fills and prints it.
struct TORCH_API AnomalyRecord {
  virtual ~AnomalyRecord();
  virtual void print(const std::string& node_name) = 0;
  // The lines of the forward call, empty when unknown.
  virtual std::string where() = 0;
};

class TORCH_API Node : public c10::intrusive_ptr_target {
 public:
  Node();
  ~Node() override;
  static void* operator new(size_t size);
  static void operator delete(void* p, size_t size) noexcept;

  // The gradients of the inputs from those of the outputs. Entries of inputs that need none may be
  // undefined.
  virtual TensorVec apply(TensorVec grads) = 0;
  virtual std::string name() const = 0; // "MulBackward0"
  // Frees what was saved for the backward pass. A second run then raises.
  virtual void release_variables() {}
  // What the node keeps; read with `field.read(reinterpret_cast<const char*>(node) + field.offset,
  // node)`.
  virtual c10::ArrayRef<SavedField> saved_fields() const { return {}; }
  // Runs the hooks of the tensors whose gradients enter the node, before these are captured or
  // used.
  virtual void run_tensor_hooks(TensorVec& grads);

  // ---- edges
  size_t num_outputs() const { return next_edges_.size(); }
  size_t num_inputs() const { return inputs_.size(); }
  const Edge& next_edge(size_t i) const { return next_edges_[i]; }
  c10::ArrayRef<Edge> next_edges() const { return next_edges_; }
  void add_next_edge(Edge edge);
  void set_next_edge(size_t i, Edge edge);
  bool should_compute_output(size_t i) const { return next_edges_[i].is_valid(); }

  // ---- inputs: one per output of the forward operator
  uint32_t add_input_metadata(const Tensor& t);
  const InputMetadata& input_metadata(size_t i) const { return inputs_[i]; }

  uint64_t sequence_nr() const { return sequence_nr_; }
  uint64_t topological_nr() const { return topological_nr_; }
  void set_sequence_nr(uint64_t nr) { sequence_nr_ = nr; }

  NodeHooks& ensure_hooks();
  NodeHooks* hooks() const { return hooks_.get(); }
  AnomalyRecord* anomaly() const { return anomaly_.get(); }
  void set_anomaly(std::unique_ptr<AnomalyRecord> record) { anomaly_ = std::move(record); }

  // The Python object of this node, owned by the Python layer.
  void* pyobj = nullptr;
  static void (*release_pyobj)(void* pyobj);

 protected:
  // The last owner went while weak references remain: a leaf's accumulator must let go of the leaf.
  void release_resources() override;
  c10::SmallVector<Edge, 2> next_edges_;

 private:
  c10::SmallVector<InputMetadata, 1> inputs_;
  uint64_t sequence_nr_;
  uint64_t topological_nr_ = 0;
  std::unique_ptr<NodeHooks> hooks_;
  std::unique_ptr<AnomalyRecord> anomaly_;
};

// The operator a node belongs to, as messages name it: "Mul" of MulBackward0.
TORCH_API std::string forward_name(const Node& node);

// Drops a reference to a node without recursing into what it alone keeps alive. See
// Note [Freeing graphs] in node.cpp.
TORCH_API void release_node(c10::intrusive_ptr<Node> node);

// Calls the hooks of a list, of which each may remove itself meanwhile.
TORCH_API void run_hooks(const std::vector<std::shared_ptr<NodeHook>>& hooks, TensorVec& inputs,
                         TensorVec& outputs);

// ---- anomaly mode
struct AnomalyMode {
  bool enabled = false;
  bool check_nan = true;
};
TORCH_API AnomalyMode& anomaly_mode();
// Makes the record for a new node under anomaly mode. The Python layer sets its own.
TORCH_API extern std::unique_ptr<AnomalyRecord> (*make_anomaly_record)();

} // namespace torch::autograd
