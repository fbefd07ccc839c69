// Note [Threads of a backward pass]
// A pass stays on the thread that called it while all its nodes belong to the CPU and one device:
// work is only queued there, so a second thread would have nothing to overlap. With the first node
// of a second device each device gets a thread that queues its nodes, and the calling thread keeps
// those of the CPU. The threads live as long as the pass: nothing is left over for a fork to lose,
// and a pass started by a node runs on that node's thread like any other.
//
// Gradients are not added where they are made. They are put into the slot of the node that takes
// them, and its own thread adds them, on its stream, in an order that depends on the graph alone:
// the sums have the same bits however the threads ran.
//
// Threads run without the GIL and take it for Python's nodes and hooks. Nothing that might want it
// (destroying a tensor, running an operator) happens under the mutex. A thread's grad mode and
// dispatch keys are carried over; where something else is in force on the calling thread (a
// dispatch or function mode, autocast, a function transform, hooks for saved tensors, the profiler,
// the recording of a graph) the pass stays on it.
#include <torch/csrc/autograd/engine_pass.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <system_error>
#include <thread>

#include <ATen/functorch/Level.h>
#include <ATen/parallel/Parallel.h>
#include <c10/core/DeviceHooks.h>
#include <torch/csrc/autograd/forward_mode.h>

namespace torch::autograd {
namespace {

// How long the calling thread waits between two looks at Ctrl-C.
constexpr std::chrono::milliseconds kPoll{50};

// A gradient on its way to a node.
struct Arrival {
  Tensor grad;
  Node* giver;
  size_t output; // of the giver
  size_t order;  // the giver's slot
};

// Later nodes first, as one thread would run them.
bool comes_before(const Arrival& a, const Arrival& b) {
  if (a.giver->sequence_nr() != b.giver->sequence_nr())
    return a.giver->sequence_nr() > b.giver->sequence_nr();
  return a.order != b.order ? a.order < b.order : a.output < b.output;
}

// The nodes of one device and who runs them.
struct Lane {
  explicit Lane(at::Device device) : device(device) {}
  const at::Device device; // the CPU: the calling thread's
  std::vector<Node*> ready;
  std::condition_variable wake;
  bool served = true; // false: the system gave no thread, the calling one sees to it
  std::thread thread;
  std::vector<StreamPlace> entered;
  uint64_t sequence = 0; // that the thread came to
  std::exception_ptr error;
  void* carried = nullptr;
};

class DevicePass {
 public:
  DevicePass(Pass& pass, std::vector<Node*> ready);
  void run();

 private:
  size_t lane_of(const Node& node) const;
  void make_ready(Node* node); // holds the mutex
  bool ended() const { return stopped_ || left_ == 0; }
  Node* take(Lane& lane); // holds the mutex
  Node* next_on_thread(Lane& lane);
  Node* next_on_caller();
  void run_one(Node* node, PassStreams& streams);
  TensorVec gradients_for(Slot& slot);
  void deliver(Node* node, TensorVec& out);
  void work(Lane& lane, const ThreadPlace& place);
  void start_threads();
  void run_caller();
  void stop();
  void finish(std::exception_ptr own);

  Pass& pass_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_;   // the first is the calling thread's
  std::vector<std::vector<Arrival>> arrivals_; // by slot
  size_t left_ = 0;                            // nodes that are ready or running
  bool stopped_ = false;
};

DevicePass::DevicePass(Pass& pass, std::vector<Node*> ready)
    : pass_(pass), arrivals_(pass.slots.all().size()) {
  lanes_.push_back(std::make_unique<Lane>(at::Device()));
  for (const Slot& slot : pass.slots.all()) {
    const at::Device device = place_of(*slot.node).device;
    const auto same = [&](const auto& lane) { return lane->device == device; };
    if (std::none_of(lanes_.begin(), lanes_.end(), same))
      lanes_.push_back(std::make_unique<Lane>(device));
  }
  for (Node* node : ready) make_ready(node);
}

size_t DevicePass::lane_of(const Node& node) const {
  const at::Device device = place_of(node).device;
  size_t i = 0;
  while (lanes_[i]->device != device) ++i;
  return lanes_[i]->served ? i : 0;
}

void DevicePass::make_ready(Node* node) {
  Lane& lane = *lanes_[lane_of(*node)];
  lane.ready.push_back(node);
  std::push_heap(lane.ready.begin(), lane.ready.end(), LaterFirst());
  ++left_;
  lane.wake.notify_one();
}

Node* DevicePass::take(Lane& lane) {
  if (ended() || lane.ready.empty()) return nullptr;
  std::pop_heap(lane.ready.begin(), lane.ready.end(), LaterFirst());
  Node* node = lane.ready.back();
  lane.ready.pop_back();
  return node;
}

Node* DevicePass::next_on_thread(Lane& lane) {
  std::unique_lock<std::mutex> lock(mutex_);
  lane.wake.wait(lock, [&] { return ended() || !lane.ready.empty(); });
  return take(lane);
}

Node* DevicePass::next_on_caller() {
  Lane& lane = *lanes_[0];
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      lane.wake.wait_for(lock, kPoll, [&] { return ended() || !lane.ready.empty(); });
      if (Node* node = take(lane)) return node;
      if (ended()) return nullptr;
    }
    at::check_interrupt();
  }
}

// All arrivals are there: nobody else looks at the slot any more.
TensorVec DevicePass::gradients_for(Slot& slot) {
  TensorVec grads = std::move(slot.grads);
  slot.grads.clear();
  std::vector<Arrival> arrived = std::move(arrivals_[pass_.slots.index_of(slot)]);
  std::sort(arrived.begin(), arrived.end(), comes_before);
  for (Arrival& a : arrived) {
    const Edge& edge = a.giver->next_edge(a.output);
    add_into(grads, edge.input_nr, fit(a.giver, a.output, edge, std::move(a.grad)),
             slot.node->num_inputs(), pass_.options.create_graph);
  }
  return grads;
}

void DevicePass::run_one(Node* node, PassStreams& streams) {
  const StreamPlace place = place_of(*node);
  Slot& slot = *pass_.slots.find(node);
  streams.enter(place);
  TensorVec out = run_slot(pass_, slot, gradients_for(slot));
  for (size_t i = 0; i < out.size() && i < node->num_outputs(); ++i) {
    const Edge& edge = node->next_edge(i);
    if (edge.function && out[i].defined())
      streams.hand_over(place, place_of(*edge.function), out[i]);
  }
  deliver(node, out);
}

void DevicePass::deliver(Node* node, TensorVec& out) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t order = pass_.slots.index_of(*pass_.slots.find(node));
  for (size_t i = 0; i < node->num_outputs(); ++i) {
    const Edge& edge = node->next_edge(i);
    if (!edge.function) continue;
    Slot& next = *pass_.slots.find(edge.function.get());
    if (i < out.size() && out[i].defined() && next.needed)
      arrivals_[pass_.slots.index_of(next)].push_back({std::move(out[i]), node, i, order});
    if (--next.waiting == 0) make_ready(edge.function.get());
  }
  if (--left_ > 0) return;
  for (const auto& lane : lanes_) lane->wake.notify_one();
}

void DevicePass::stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  for (const auto& lane : lanes_) lane->wake.notify_one();
}

void DevicePass::work(Lane& lane, const ThreadPlace& place) {
  void* held = thread_hooks.enter ? thread_hooks.enter() : nullptr;
  place.restore();
  try {
    const Unlocked unlocked;
    const PassScope scope(&pass_);
    PassStreams streams;
    while (Node* node = next_on_thread(lane)) run_one(node, streams);
    lane.entered = streams.entered().vec();
  } catch (...) {
    lane.error = std::current_exception();
    stop();
  }
  lane.sequence = next_sequence();
  if (thread_hooks.leave) lane.carried = thread_hooks.leave(held);
}

void DevicePass::start_threads() {
  ThreadPlace place = ThreadPlace::current();
  --place.depth; // the pass itself is counted by the thread's scope
  for (size_t i = 1; i < lanes_.size(); ++i) {
    Lane& lane = *lanes_[i];
    try {
      lane.thread = std::thread([this, &lane, place] { work(lane, place); });
    } catch (const std::system_error&) {
      const std::lock_guard<std::mutex> lock(mutex_);
      lane.served = false;
      Lane& caller = *lanes_[0];
      for (Node* node : lane.ready) {
        caller.ready.push_back(node);
        std::push_heap(caller.ready.begin(), caller.ready.end(), LaterFirst());
      }
      lane.ready.clear();
    }
  }
}

void DevicePass::run_caller() {
  while (Node* node = next_on_caller()) run_one(node, *pass_.streams);
}

// The error that is raised is the first by device; others have no one to go to.
void DevicePass::finish(std::exception_ptr own) {
  std::exception_ptr error = own;
  void* carried = nullptr;
  for (const auto& lane : lanes_) {
    const bool chosen = !error && lane->error;
    if (chosen) {
      error = lane->error;
      carried = lane->carried;
    } else if (lane->carried) {
      thread_hooks.drop(lane->carried);
    }
  }
  if (carried) thread_hooks.resume(carried);
  if (error) std::rethrow_exception(error);
  for (const auto& lane : lanes_)
    for (const StreamPlace& place : lane->entered) pass_.streams->adopt(place);
}

void DevicePass::run() {
  std::exception_ptr own;
  {
    const Unlocked unlocked;
    try {
      start_threads();
      run_caller();
    } catch (...) {
      own = std::current_exception();
      stop();
    }
    for (const auto& lane : lanes_)
      if (lane->thread.joinable()) lane->thread.join();
  }
  for (const auto& lane : lanes_) raise_sequence(lane->sequence);
  finish(own);
}

} // namespace

bool may_use_threads() {
  const uint64_t keys = c10::tls_dispatch_keys.included | c10::tls_dispatch_keys.excluded;
  if (!c10::tls_autograd_state.multithreading || keys != 0) return false;
  if (!at::functorch::level_stack().empty() || dual_level_is_open()) return false;
  if (current_saved_tensor_hooks != nullptr && current_saved_tensor_hooks()) return false;
  if (thread_hooks.plain != nullptr && !thread_hooks.plain()) return false;
  c10::DeviceHooks* cuda = c10::device_hooks(c10::kCUDA);
  return cuda == nullptr || !cuda->is_recording();
}

void run_on_devices(Pass& pass, std::vector<Node*> ready) {
  DevicePass devices(pass, std::move(ready));
  devices.run();
}

} // namespace torch::autograd
