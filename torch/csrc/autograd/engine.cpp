// The engine. A pass counts how often each reachable node is waited for, then runs nodes whose
// gradients are complete, latest first, until none is left. See engine.h.
#include <torch/csrc/autograd/engine_pass.h>

#include <algorithm>
#include <thread>

#include <ATen/core/HandlerKeys.h>
#include <ATen/core/WarnOnce.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/norm/PendingSum.h>
#include <ATen/ops/add.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/view.h>
#include <ATen/parallel/Parallel.h>
#include <c10/core/SymNumbers.h>

namespace torch::autograd {
namespace {

std::atomic<int64_t> next_pass_id{0};
thread_local Pass* current_pass = nullptr;
thread_local Node* running_node = nullptr;
thread_local int depth = 0;

} // namespace

ThreadPlace ThreadPlace::current() {
  return {torch::autograd::depth, next_sequence(), c10::tls_autograd_state, c10::tls_dispatch_keys};
}
void ThreadPlace::restore() const {
  torch::autograd::depth = depth;
  raise_sequence(sequence);
  c10::tls_autograd_state = state;
  c10::tls_dispatch_keys = keys;
}

PassScope::PassScope(Pass* pass)
    : before(current_pass), node(running_node), state(c10::tls_autograd_state) {
  current_pass = pass;
  ++depth;
  c10::tls_autograd_state.grad_mode = pass->options.create_graph;
}
PassScope::~PassScope() {
  current_pass = before;
  running_node = node;
  --depth;
  c10::tls_autograd_state = state;
}

namespace {
// ---- counting -----------------------------------------------------------------------------------
void count_dependencies(Pass& pass, c10::ArrayRef<Edge> roots) {
  std::vector<Node*> stack;
  bool fresh = false;
  for (const Edge& root : roots) {
    pass.slots.insert(root.function.get(), &fresh);
    if (fresh) stack.push_back(root.function.get());
  }
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const Edge& edge : node->next_edges()) {
      if (!edge.function) continue;
      Slot& slot = pass.slots.insert(edge.function.get(), &fresh);
      ++slot.waiting;
      if (fresh) stack.push_back(edge.function.get());
    }
  }
}

// With `inputs`, only nodes on a way to one of them run. Nodes are visited in order of creation
// (a node's successors have smaller topological numbers), so that one sweep settles all.
void mark_needed(Pass& pass) {
  std::vector<Slot*> order;
  for (Slot& slot : pass.slots.all()) {
    slot.needed = false;
    order.push_back(&slot);
  }
  std::sort(order.begin(), order.end(), [](const Slot* a, const Slot* b) {
    return a->node->topological_nr() < b->node->topological_nr();
  });
  for (const Edge& input : pass.inputs)
    if (Slot* slot = pass.slots.find(input.function.get())) slot->needed = slot->wanted = true;
  for (Slot* slot : order) {
    if (slot->needed) continue;
    for (const Edge& edge : slot->node->next_edges()) {
      if (!edge.function) continue;
      const Slot* next = pass.slots.find(edge.function.get());
      if (next && next->needed) {
        slot->needed = true;
        break;
      }
    }
  }
}

} // namespace

// ---- gradients ----------------------------------------------------------------------------------
namespace {
// A batch of gradients (vmap) cannot be added into a single one.
bool holds_batch_of(const Tensor& sum, const Tensor& grad) {
  constexpr c10::DispatchKey kBatched = c10::DispatchKey::FuncTorchBatched;
  return C10_LIKELY(!grad.key_set().has(kBatched)) || sum.key_set().has(kBatched);
}
} // namespace

namespace {
// Whether nobody else could tell that a sum is written to. Tensors of Python's own kinds may take
// another form in a sum, as distributed ones do: these are not written to.
bool is_own(const Tensor& sum) {
  return !at::handlers_active() && !sum.key_set().has(c10::DispatchKey::Python) &&
         sum.use_count() == 1 && sum.is_contiguous() && !sum.is_view() && !sum.requires_grad() &&
         sum.storage().use_count() == 1;
}
} // namespace

void add_into(TensorVec& grads, size_t at, Tensor grad, size_t size, bool create_graph) {
  while (grads.size() < size) grads.push_back(Tensor());
  if (!grad.defined()) return;
  Tensor& sum = grads[at];
  if (!sum.defined()) {
    sum = std::move(grad);
  } else if (!create_graph && is_own(sum) && sum.sym_sizes() == grad.sym_sizes() &&
             holds_batch_of(sum, grad) && sum.scalar_type() == grad.scalar_type()) {
    at::_ops::add__Tensor::call(sum, grad, 1);
  } else {
    // A strided and a sparse gradient make a strided one.
    const bool swapped = sum.layout() != at::kStrided && grad.layout() == at::kStrided;
    sum = swapped ? at::add(grad, sum) : at::add(sum, grad);
  }
}

namespace {
// A gradient must have the shape, dtype and device of what it is the gradient of; a broadcast one
// is summed. This happens to each gradient before it is added to others, for which it must already
// have its shape. `giver` gave it as its output `i`.
Tensor fit_slowly(const std::string& giver, size_t i, const InputMetadata& want, Tensor grad) {
  const c10::SymIntArrayRef sizes = want.sizes;
  if (!want.sizes.is_same(grad.sym_sizes())) {
    const c10::SymIntArrayRef got = grad.sym_sizes();
    bool expandable = got.size() >= sizes.size();
    const size_t lead = expandable ? got.size() - sizes.size() : 0;
    // Symbols are 1 where a guard says so, as the forward pass did that broadcast.
    const auto is_one = [](c10::SymInt size) {
      return c10::statically_known_true(c10::sym_eq(size, 1));
    };
    for (size_t d = 0; expandable && d < sizes.size(); ++d)
      // Where the size depends on data, that it fits is checked when the graph runs.
      expandable = is_one(sizes[d]) || c10::expect_true(c10::sym_eq(sizes[d], got[lead + d]));
    TORCH_CHECK(expandable, "Function ", giver, " returned an invalid gradient at index ", i,
                " - got ", got, " but expected shape compatible with ", sizes);
    c10::DimVector dims;
    for (size_t d = 0; d < lead; ++d) dims.push_back(static_cast<int64_t>(d));
    for (size_t d = 0; d < sizes.size(); ++d)
      if (is_one(sizes[d]) && !is_one(got[lead + d]))
        dims.push_back(static_cast<int64_t>(lead + d));
    if (!dims.empty())
      grad = at::sum(grad, at::OptionalIntArrayRef(at::IntArrayRef(dims)), true, std::nullopt);
    if (lead > 0) grad = at::_ops::view::call(grad, sizes);
  }
  if (grad.scalar_type() != want.dtype) {
    TORCH_CHECK(!c10::isComplexType(grad.scalar_type()) || c10::isComplexType(want.dtype),
                "Function ", giver, " returned an invalid gradient at index ", i,
                " - expected dtype ", want.dtype, " but got ", grad.scalar_type());
    grad = grad.to(want.dtype);
  }
  TORCH_CHECK(grad.device().type() == want.device.type(), "Function ", giver,
              " returned an invalid gradient at index ", i, " - expected device ", want.device,
              " but got ", grad.device());
  return grad;
}
} // namespace

namespace {
bool fits(const InputMetadata& want, const Tensor& grad) {
  return grad.scalar_type() == want.dtype && grad.device().type() == want.device.type() &&
         want.sizes.is_same(grad.sym_sizes());
}
} // namespace

Tensor fit(const Node* node, size_t i, const Edge& edge, Tensor grad) {
  if (C10_UNLIKELY(edge.input_nr >= edge.function->num_inputs())) return grad;
  const InputMetadata& want = edge.function->input_metadata(edge.input_nr);
  if (C10_LIKELY(fits(want, grad)) || want.dtype == at::ScalarType::Undefined) return grad;
  return fit_slowly(node ? node->name() : std::string("backward"), i, want, std::move(grad));
}

void validate_outputs(const std::vector<std::optional<InputMetadata>>& wanted,
                      std::vector<Tensor>& grads,
                      const std::function<std::string(const std::string&)>& format_error) {
  TORCH_CHECK(grads.size() == wanted.size(),
              format_error(c10::str("returned an incorrect number of gradients (expected ",
                                    wanted.size(), ", got ", grads.size(), ")")));
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!wanted[i] || !grads[i].defined() || fits(*wanted[i], grads[i])) continue;
    try {
      grads[i] = fit_slowly("validate_outputs", i, *wanted[i], std::move(grads[i]));
    } catch (const c10::Error& error) {
      throw c10::Error(format_error(error.what()));
    }
  }
}

namespace {
void check_finite(const Node& node, const TensorVec& grads) {
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() || !(grads[i].is_floating_point() || grads[i].is_complex())) continue;
    const at::Scalar total = at::_ops::sum::call(grads[i], std::nullopt).item();
    const c10::complex<double> z = total.toComplexDouble();
    if (z.real_ == z.real_ && z.imag_ == z.imag_) continue;
    if (node.anomaly()) node.anomaly()->print(node.name());
    throw c10::Error(
        c10::str("Function '", node.name(), "' returned nan values in its ", i, "th output."));
  }
}

TensorVec run_node(Pass& pass, Node& node, TensorVec grads) {
  NodeHooks* hooks = node.hooks();
  if (C10_UNLIKELY(hooks != nullptr)) {
    TensorVec none;
    run_hooks(hooks->pre, grads, none);
  }
  TensorVec entering;
  const bool post = hooks != nullptr && !hooks->post.empty();
  if (post) entering = grads;
  TensorVec out;
  try {
    out = node.apply(std::move(grads));
  } catch (...) {
    if (node.anomaly()) node.anomaly()->print(node.name());
    throw;
  }
  if (!pass.options.keep_graph) node.release_variables();
  // A hook for saved tensors may have registered the first post-hook while the node ran.
  hooks = node.hooks();
  if (C10_UNLIKELY(hooks != nullptr && !hooks->post.empty())) {
    if (!post) entering.resize(node.num_inputs());
    run_hooks(hooks->post, entering, out);
  }
  if (C10_UNLIKELY(anomaly_mode().enabled && anomaly_mode().check_nan)) check_finite(node, out);
  TORCH_CHECK(out.size() >= node.num_outputs() || out.empty(), "Function ", node.name(),
              " returned an incorrect number of gradients (expected ", node.num_outputs(), ", got ",
              out.size(), ")");
  return out;
}

// Captures what arrives at a wanted input. Returns whether the node must run besides: a leaf's
// accumulator when gradients are accumulated, another node when it leads to other inputs.
bool capture(Pass& pass, Node* node, const TensorVec& grads) {
  for (size_t i = 0; i < pass.inputs.size(); ++i) {
    const uint32_t at = pass.inputs[i].input_nr;
    if (pass.inputs[i].function.get() == node && at < grads.size()) pass.captured[i] = grads[at];
  }
  if (dynamic_cast<AccumulateGrad*>(node)) return pass.options.accumulate;
  for (const Edge& edge : node->next_edges()) {
    const Slot* next = edge.function ? pass.slots.find(edge.function.get()) : nullptr;
    if (next && next->needed) return true;
  }
  return false;
}

} // namespace

TensorVec run_slot(Pass& pass, Slot& slot, TensorVec grads) {
  Node& node = *slot.node;
  running_node = &node;
  if (!slot.needed) return {};
  while (grads.size() < node.num_inputs()) grads.push_back(Tensor());
  node.run_tensor_hooks(grads);
  if (slot.wanted && !capture(pass, &node, grads)) return {};
  return run_node(pass, node, std::move(grads));
}

namespace {
// Whether `place` is on another device than those before it, the CPU aside.
bool is_second_device(at::Device& first, const StreamPlace& place) {
  if (first.is_cpu()) first = place.device;
  return first != place.device;
}

// The sum that waits for the node's first gradient and that it may be added to at once, or null.
// Kernels of the GPU make use of it.
const Tensor* sum_to_offer(Pass& pass, Node& node, const StreamPlace& place) {
  if (place.on_cpu() || pass.options.create_graph || node.num_outputs() == 0) return nullptr;
  const Edge& edge = node.next_edge(0);
  if (!edge.function || anomaly_mode().enabled) return nullptr;
  const auto* hooks = node.hooks();
  if (hooks != nullptr && !hooks->post.empty()) return nullptr;
  Slot* next = pass.slots.find(edge.function.get());
  if (!next->needed || edge.input_nr >= next->grads.size()) return nullptr;
  const Tensor& sum = next->grads[edge.input_nr];
  const bool fits = sum.defined() && is_own(sum) && place_of(*edge.function) == place;
  return fits ? &sum : nullptr;
}

void execute(Pass& pass) {
  std::vector<Node*> ready;
  for (Slot& slot : pass.slots.all())
    if (slot.waiting == 0) ready.push_back(slot.node);
  std::make_heap(ready.begin(), ready.end(), LaterFirst());
  int64_t steps = 0;
  at::Device first;
  bool alone = false; // threads are not to be used
  while (!ready.empty()) {
    Node* node = ready.front();
    const StreamPlace place = place_of(*node);
    if (C10_UNLIKELY(!place.on_cpu() && !alone && is_second_device(first, place))) {
      if (may_use_threads()) return run_on_devices(pass, std::move(ready));
      alone = true;
    }
    std::pop_heap(ready.begin(), ready.end(), LaterFirst());
    ready.pop_back();
    if ((++steps & 255) == 0) at::check_interrupt();
    Slot* slot = pass.slots.find(node);
    TensorVec grads = std::move(slot->grads);
    slot->grads.clear();
    pass.streams->enter(place);
    const Tensor* const offered = sum_to_offer(pass, *node, place);
    const at::native::OfferSum offer(offered);
    TensorVec out = run_slot(pass, *slot, std::move(grads));
    // Nobody else has the sum: a node that returns it took it (ATen/native/norm/PendingSum.h).
    const bool taken = offered != nullptr && !out.empty() && out[0].is_same(*offered);
    for (size_t i = 0; i < node->num_outputs(); ++i) {
      const Edge& edge = node->next_edge(i);
      if (!edge.function) continue;
      Slot* next = pass.slots.find(edge.function.get());
      const bool is_added = taken && i == 0;
      if (i < out.size() && out[i].defined() && next->needed && !is_added) {
        const StreamPlace target = place_of(*edge.function);
        pass.streams->hand_over(place, target, out[i]);
        pass.streams->enter(target);
        add_into(next->grads, edge.input_nr, fit(node, i, edge, std::move(out[i])),
                 edge.function->num_inputs(), pass.options.create_graph);
      }
      if (--next->waiting == 0) {
        ready.push_back(edge.function.get());
        std::push_heap(ready.begin(), ready.end(), LaterFirst());
      }
    }
  }
}

void run_on_this_thread(Pass& pass, c10::ArrayRef<Edge> roots, TensorVec grads) {
  PassScope scope(&pass);
  PassStreams streams;
  pass.streams = &streams;
  count_dependencies(pass, roots);
  if (!pass.inputs.empty()) mark_needed(pass);
  for (size_t i = 0; i < roots.size(); ++i) {
    Slot* slot = pass.slots.find(roots[i].function.get());
    const StreamPlace place = place_of(*roots[i].function);
    pass.streams->receive(place, grads[i]);
    pass.streams->enter(place);
    Tensor grad = grads[i].defined() ? fit(nullptr, i, roots[i], std::move(grads[i])) : Tensor();
    add_into(slot->grads, roots[i].input_nr, std::move(grad), roots[i].function->num_inputs(),
             pass.options.create_graph);
  }
  execute(pass);
  pass.streams->finish();
  for (size_t i = 0; i < pass.callbacks.size(); ++i) pass.callbacks[i]();
}
} // namespace

// Note [Nested passes]
// A pass inside a pass runs on the same stack. Past a depth that a stack surely bears it continues
// on a new thread, whose fresh stack carries the next levels while this one waits.
constexpr int kDepthPerThread = 48;
ThreadHooks thread_hooks;

TensorVec run_backward(c10::ArrayRef<Edge> roots, TensorVec grads, c10::ArrayRef<Edge> inputs,
                       const BackwardOptions& options) {
  Pass pass;
  pass.id = next_pass_id.fetch_add(1, std::memory_order_relaxed);
  pass.outer = current_pass;
  pass.options = options;
  pass.inputs = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) pass.captured.push_back(Tensor());
  if (depth == 0 || depth % kDepthPerThread != 0) {
    run_on_this_thread(pass, roots, std::move(grads));
    return std::move(pass.captured);
  }
  std::exception_ptr error;
  void* carried = nullptr;
  const ThreadPlace here = ThreadPlace::current();
  {
    const Unlocked unlocked;
    std::thread deeper([&] {
      void* held = thread_hooks.enter ? thread_hooks.enter() : nullptr;
      here.restore();
      try {
        run_on_this_thread(pass, roots, std::move(grads));
      } catch (...) {
        error = std::current_exception();
      }
      if (thread_hooks.leave) carried = thread_hooks.leave(held);
    });
    deeper.join();
  }
  if (carried) thread_hooks.resume(carried);
  if (error) std::rethrow_exception(error);
  return std::move(pass.captured);
}

namespace {
void queue_in(Pass* pass, std::function<void()> callback) {
  TORCH_CHECK(pass != nullptr, "Final callbacks can only be installed during backward pass.");
  const std::lock_guard<std::mutex> lock(pass->callbacks_mutex);
  pass->callbacks.push_back(std::move(callback));
}
} // namespace

void queue_callback(std::function<void()> callback) { queue_in(current_pass, std::move(callback)); }
void queue_outermost_callback(std::function<void()> callback) {
  Pass* pass = current_pass;
  while (pass != nullptr && pass->outer != nullptr) pass = pass->outer;
  queue_in(pass, std::move(callback));
}
Node* current_node() { return running_node; }
int64_t current_pass_id() { return current_pass ? current_pass->id : -1; }
bool will_compute(const Edge& edge) {
  TORCH_CHECK(current_pass != nullptr, "will_compute can only be asked during a backward pass");
  const Slot* slot = current_pass->slots.find(edge.function.get());
  return slot != nullptr && slot->needed;
}
bool is_wanted(const Node* node, size_t i) {
  if (running_node != node || current_pass == nullptr || current_pass->inputs.empty()) return true;
  return will_compute(node->next_edge(i));
}
bool is_last_run(const Node* node) {
  return running_node == node && current_pass != nullptr && !current_pass->options.keep_graph;
}

// ---- the C++ front end --------------------------------------------------------------------------
namespace {
std::vector<Edge> edges_of(at::TensorList tensors, const char* what) {
  std::vector<Edge> out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    TORCH_CHECK(tensors[i].requires_grad(), "element ", i, " of ", what,
                " does not require grad and does not have a grad_fn");
    out.push_back(gradient_edge(tensors[i]));
  }
  return out;
}
TensorVec root_gradients(at::TensorList outputs, at::TensorList given) {
  TORCH_CHECK(given.empty() || given.size() == outputs.size(), "got ", outputs.size(),
              " tensors and ", given.size(), " gradients");
  TensorVec out;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!given.empty() && given[i].defined()) {
      out.push_back(given[i]);
      continue;
    }
    TORCH_CHECK(outputs[i].numel() == 1, "grad can be implicitly created only for scalar outputs");
    TORCH_CHECK(!outputs[i].is_complex(),
                "grad can be computed only for real scalar outputs but got ",
                outputs[i].scalar_type());
    out.push_back(at::ones_like(outputs[i]));
  }
  return out;
}
} // namespace

void warn_create_graph(bool create_graph) {
  if (!create_graph) return;
  AT_WARN_ONCE("Using backward() with create_graph=True will create a reference cycle between "
               "the parameter and its "
               "gradient which can cause a memory leak. We recommend using autograd.grad when "
               "creating the graph to avoid "
               "this. If you have to use this function, make sure to reset the .grad fields of "
               "your parameters to None "
               "after use to break the cycle and avoid the leak.");
}

void backward(at::TensorList tensors, at::TensorList grads, std::optional<bool> retain_graph,
              bool create_graph, at::TensorList inputs) {
  warn_create_graph(create_graph);
  const std::vector<Edge> roots = edges_of(tensors, "tensors");
  const std::vector<Edge> wanted = edges_of(inputs, "the input tensors");
  for (const Tensor& t : inputs)
    if (!is_leaf(t)) retain_grad(t);
  run_backward(roots, root_gradients(tensors, grads), wanted,
               {retain_graph.value_or(create_graph), create_graph, true});
}

std::vector<Tensor> grad(at::TensorList outputs, at::TensorList inputs, at::TensorList grad_outputs,
                         std::optional<bool> retain_graph, bool create_graph, bool allow_unused) {
  TORCH_CHECK(!inputs.empty(), "grad requires non-empty inputs.");
  const std::vector<Edge> roots = edges_of(outputs, "tensors");
  const std::vector<Edge> wanted = edges_of(inputs, "the input tensors");
  TensorVec found = run_backward(roots, root_gradients(outputs, grad_outputs), wanted,
                                 {retain_graph.value_or(create_graph), create_graph, false});
  for (size_t i = 0; i < found.size(); ++i)
    TORCH_CHECK(allow_unused || found[i].defined(), "The differentiated Tensor at index ", i,
                " appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior.");
  return found.vec();
}

} // namespace torch::autograd
