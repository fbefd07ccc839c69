// See node.h.
#include <torch/csrc/autograd/node.h>

#include <torch/csrc/autograd/engine_pass.h>
#include <torch/csrc/autograd/native_anomaly.h>

#include <algorithm>

#include <c10/core/SmallPool.h>

namespace torch::autograd {

NodeHook::~NodeHook() = default;
AnomalyRecord::~AnomalyRecord() = default;
void (*Node::release_pyobj)(void*) = nullptr;
std::unique_ptr<AnomalyRecord> (*make_anomaly_record)() = &make_native_anomaly_record;

AnomalyMode& anomaly_mode() {
  static AnomalyMode mode;
  return mode;
}

namespace {
// Numbers grow in the order of creation on each thread: the engine runs later nodes first.
thread_local uint64_t next_sequence_nr = 0;

// Note [Freeing graphs]
// Destroying a node drops its edges, which may destroy the next nodes, and so on for a million
// nodes: more than a stack holds. Instead the last reference to a node is put on a list, and the
// outermost release works the list off. Saved tensors own nodes too (through their grad_fn); their
// metadata releases it the same way.
struct Trash {
  std::vector<c10::intrusive_ptr<Node>> nodes;
  bool draining = false;
};
thread_local Trash trash;
} // namespace

uint64_t next_sequence() { return next_sequence_nr; }
void raise_sequence(uint64_t number) { next_sequence_nr = std::max(next_sequence_nr, number); }

void release_node(c10::intrusive_ptr<Node> node) {
  if (!node || node.use_count() > 1) return;
  trash.nodes.push_back(std::move(node));
  if (trash.draining) return;
  trash.draining = true;
  while (!trash.nodes.empty()) {
    c10::intrusive_ptr<Node> last = std::move(trash.nodes.back());
    trash.nodes.pop_back();
    last.reset();
  }
  trash.draining = false;
}

// Sizes in steps of 64 bytes up to 512 have a pool each.
void* Node::operator new(size_t size) {
  switch ((size + 63) / 64) {
  case 1:
  case 2:
  case 3:
  case 4:
    return c10::SmallPool<256>::take();
  case 5:
  case 6:
    return c10::SmallPool<384>::take();
  case 7:
  case 8:
    return c10::SmallPool<512>::take();
  default:
    return ::operator new(size);
  }
}
void Node::operator delete(void* p, size_t size) noexcept {
  switch ((size + 63) / 64) {
  case 1:
  case 2:
  case 3:
  case 4:
    c10::SmallPool<256>::give(p);
    break;
  case 5:
  case 6:
    c10::SmallPool<384>::give(p);
    break;
  case 7:
  case 8:
    c10::SmallPool<512>::give(p);
    break;
  default:
    ::operator delete(p);
  }
}

Node::Node() : sequence_nr_(next_sequence_nr++) {
  if (C10_UNLIKELY(anomaly_mode().enabled && make_anomaly_record != nullptr))
    anomaly_ = make_anomaly_record();
}

Node::~Node() { Node::release_resources(); }

void Node::release_resources() {
  if (void* object = std::exchange(pyobj, nullptr); object != nullptr && release_pyobj != nullptr)
    release_pyobj(object);
  for (Edge& edge : next_edges_) release_node(std::move(edge.function));
}

void run_hooks(const std::vector<std::shared_ptr<NodeHook>>& hooks, TensorVec& inputs,
               TensorVec& outputs) {
  if (hooks.empty()) return;
  const std::vector<std::shared_ptr<NodeHook>> list = hooks;
  for (const auto& hook : list) hook->call(inputs, outputs);
}

void Node::run_tensor_hooks(TensorVec& grads) {
  if (C10_LIKELY(!hooks_)) return;
  TensorVec none;
  run_hooks(hooks_->tensor_pre, grads, none);
  run_hooks(hooks_->retain_grad, grads, none);
}

void Node::add_next_edge(Edge edge) {
  if (edge.function)
    topological_nr_ = std::max(topological_nr_, edge.function->topological_nr() + 1);
  next_edges_.push_back(std::move(edge));
}
void Node::set_next_edge(size_t i, Edge edge) {
  if (edge.function)
    topological_nr_ = std::max(topological_nr_, edge.function->topological_nr() + 1);
  next_edges_[i] = std::move(edge);
}

InputMetadata::InputMetadata(const Tensor& t) {
  if (!t.defined()) return;
  sizes = KeptSizes(t.sym_sizes());
  dtype = t.scalar_type();
  device = t.device();
  layout = t.layout();
  if (C10_UNLIKELY(!device.is_cpu())) stream = current_stream(device);
}

uint32_t Node::add_input_metadata(const Tensor& t) {
  inputs_.push_back(InputMetadata(t));
  return static_cast<uint32_t>(inputs_.size() - 1);
}

std::string forward_name(const Node& node) {
  std::string name = node.name();
  const size_t end = name.find_last_not_of("0123456789");
  if (end == std::string::npos || end + 1 == name.size() || end < 8 ||
      name.compare(end - 7, 8, "Backward") != 0)
    return name;
  name.resize(end - 7);
  return name;
}

NodeHooks& Node::ensure_hooks() {
  if (!hooks_) hooks_ = std::make_unique<NodeHooks>();
  return *hooks_;
}

} // namespace torch::autograd

at::NodePtr::operator std::shared_ptr<torch::autograd::Node>() const {
  c10::intrusive_ptr<torch::autograd::Node> owner = *this;
  torch::autograd::Node* node = get();
  if (node == nullptr) return nullptr;
  return {node, [owner](torch::autograd::Node*) mutable noexcept { owner.reset(); }};
}
