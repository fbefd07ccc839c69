// What the parts of the engine share about one backward pass: the slots of its nodes, the thread's
// place in it, and the steps that running a node consists of. engine.cpp runs a pass on the calling
// thread; engine_devices.cpp takes over where a second CUDA device comes in.
#pragma once
#include <atomic>
#include <mutex>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/streams.h>

namespace torch::autograd {

// What the pass knows of one node.
struct Slot {
  Node* node = nullptr;
  uint32_t waiting = 0;
  bool needed = true;
  bool wanted = false; // one of the pass's inputs
  TensorVec grads;
};

// An open-addressing map from node to slot: a pass over three nodes must not pay for buckets.
class SlotMap {
 public:
  SlotMap() : index_(64, -1) {}
  Slot* find(Node* node) {
    for (size_t i = hash(node);; i = (i + 1) & (index_.size() - 1)) {
      if (index_[i] < 0) return nullptr;
      if (slots_[index_[i]].node == node) return &slots_[index_[i]];
    }
  }
  // The reference is valid until the next insertion.
  Slot& insert(Node* node, bool* fresh) {
    if (slots_.size() * 2 >= index_.size()) grow();
    size_t i = hash(node);
    for (; index_[i] >= 0; i = (i + 1) & (index_.size() - 1)) {
      if (slots_[index_[i]].node == node) {
        *fresh = false;
        return slots_[index_[i]];
      }
    }
    index_[i] = static_cast<int64_t>(slots_.size());
    slots_.emplace_back();
    slots_.back().node = node;
    *fresh = true;
    return slots_.back();
  }
  std::vector<Slot>& all() { return slots_; }
  size_t index_of(const Slot& slot) const { return static_cast<size_t>(&slot - slots_.data()); }

 private:
  size_t hash(Node* node) const {
    return (reinterpret_cast<uintptr_t>(node) * 0x9E3779B97F4A7C15ull >> 20) & (index_.size() - 1);
  }
  void grow() {
    index_.assign(index_.size() * 4, -1);
    for (size_t k = 0; k < slots_.size(); ++k) {
      size_t i = hash(slots_[k].node);
      while (index_[i] >= 0) i = (i + 1) & (index_.size() - 1);
      index_[i] = static_cast<int64_t>(k);
    }
  }
  std::vector<int64_t> index_;
  std::vector<Slot> slots_;
};

struct Pass {
  int64_t id = 0;
  SlotMap slots; // complete before the first node runs: several threads then look nodes up in it
  BackwardOptions options;
  std::mutex callbacks_mutex; // nodes of several devices run side by side
  std::vector<std::function<void()>> callbacks;
  // Gradients captured at `inputs`.
  c10::ArrayRef<Edge> inputs;
  TensorVec captured;
  PassStreams* streams = nullptr; // of the thread that runs the pass
  Pass* outer = nullptr;          // the one of which a node runs this one
};

// The number the next node made on this thread gets; numbers only grow.
uint64_t next_sequence();
void raise_sequence(uint64_t number);

// The thread's place in passes, carried to the threads that help with one. Nodes made there are
// later than those made before, as they would be here.
struct ThreadPlace {
  int depth = 0;
  uint64_t sequence = 0;
  c10::AutogradState state;
  c10::LocalDispatchKeySet keys;
  static ThreadPlace current();
  void restore() const;
};

// Makes `pass` the one in progress on this thread; puts back what was there when it ends, however
// it ends.
struct PassScope {
  explicit PassScope(Pass* pass);
  ~PassScope();
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;
  Pass* before;
  Node* node;
  c10::AutogradState state;
};

// Without Python's lock for the scope, whether or not other scopes of this thread gave it away:
// code of Python that runs inside of one may start a pass that must give it away once more.
class Unlocked {
 public:
  Unlocked() : released_(thread_hooks.release ? thread_hooks.release() : nullptr) {}
  ~Unlocked() {
    if (released_ != nullptr) thread_hooks.acquire(released_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  void* released_;
};

struct LaterFirst {
  bool operator()(const Node* a, const Node* b) const {
    return a->sequence_nr() < b->sequence_nr();
  }
};

// Runs the slot's node on its gradients, with all hooks, and returns what it gives; nothing where
// the node is not needed.
TensorVec run_slot(Pass& pass, Slot& slot, TensorVec grads);
// `grad`, which output `i` of `node` gave (null: came from outside), in the form that the edge's
// end wants: shape, dtype and device.
Tensor fit(const Node* node, size_t i, const Edge& edge, Tensor grad);
// grads[at] += grad
void add_into(TensorVec& grads, size_t index, Tensor grad, size_t size, bool create_graph);

// Whether nodes of this pass may run on other threads: nothing is in force on this one that only it
// knows of (Note [Threads of a backward pass]).
bool may_use_threads();
// Runs what is left of the pass, beginning with the nodes in `ready`.
void run_on_devices(Pass& pass, std::vector<Node*> ready);

} // namespace torch::autograd
