// See compiled_backward.h. A pass is described by text, of which equal passes have the same:
// classes of nodes, edges, numbers that nodes saved, and what tensors are like.
#include <torch/csrc/python/autograd/compiled_backward.h>

#include <algorithm>
#include <unordered_map>

#include <torch/csrc/autograd/generated_node.h>
#include <torch/csrc/autograd/raw_saved.h>
#include <torch/csrc/python/autograd/node.h>
#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {
namespace {

using at::Tensor;
using autograd::AccumulateGrad;
using autograd::Edge;
using autograd::Node;
using autograd::SavedField;
using autograd::SavedKind;
using autograd::SavedVariable;
using autograd::TensorVec;

thread_local PyObject* runner = nullptr; // owned

// How a capture treats a node.
enum Kind : long { kInlined = 0, kLeaf = 1, kCalled = 2 };
enum Hooks : long { kTensorHooks = 1, kPreHooks = 2, kPostHooks = 4, kAccumulated = 8 };

bool is_inlined(const Node& node) {
  return dynamic_cast<const autograd::GeneratedNode*>(&node) != nullptr;
}
long kind_of(const Node& node) {
  if (dynamic_cast<const AccumulateGrad*>(&node) != nullptr) return kLeaf;
  return is_inlined(node) ? kInlined : kCalled;
}

long hooks_of(const Node& node) {
  long found = 0;
  if (const autograd::NodeHooks* hooks = node.hooks()) {
    if (!hooks->tensor_pre.empty() || !hooks->retain_grad.empty()) found |= kTensorHooks;
    if (!hooks->pre.empty()) found |= kPreHooks;
    if (!hooks->post.empty()) found |= kPostHooks;
  }
  if (const auto* leaf = dynamic_cast<const AccumulateGrad*>(&node)) {
    const autograd::AutogradMeta* meta = autograd::meta_of(leaf->variable());
    if (meta != nullptr && !meta->hooks.empty()) found |= kTensorHooks;
    if (meta != nullptr && !meta->post_accumulate.empty()) found |= kAccumulated;
  }
  return found;
}

template <class F> void each_saved(Node& node, F visit) {
  for (const SavedField& field : node.saved_fields()) {
    if (autograd::saved_kind(field) == SavedKind::Other) continue;
    const size_t count = autograd::saved_count(field, node);
    for (size_t i = 0; i < count; ++i) visit(autograd::saved_variable(field, node, i));
  }
}

// ---- order --------------------------------------------------------------------------------------
struct Place {
  size_t waiting = 0;
  bool needed = true;
};
using Places = std::unordered_map<Node*, Place>;

Places reachable(c10::ArrayRef<Edge> roots) {
  Places places;
  std::vector<Node*> stack;
  for (const Edge& root : roots)
    if (places.try_emplace(root.function.get()).second) stack.push_back(root.function.get());
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const Edge& edge : node->next_edges()) {
      if (!edge.function) continue;
      const auto [found, fresh] = places.try_emplace(edge.function.get());
      ++found->second.waiting;
      if (fresh) stack.push_back(edge.function.get());
    }
  }
  return places;
}

void mark_needed(Places& places, c10::ArrayRef<Edge> inputs) {
  std::vector<Node*> order;
  for (auto& [node, place] : places) {
    place.needed = false;
    order.push_back(node);
  }
  std::sort(order.begin(), order.end(),
            [](const Node* a, const Node* b) { return a->topological_nr() < b->topological_nr(); });
  for (const Edge& input : inputs) {
    const auto found = places.find(input.function.get());
    if (found != places.end()) found->second.needed = true;
  }
  for (Node* node : order) {
    bool& needed = places[node].needed;
    for (const Edge& edge : node->next_edges())
      needed = needed || (edge.function && places[edge.function.get()].needed);
  }
}

// As the engine runs them: nodes that nobody waits for any more, those made last first.
std::vector<Node*> in_order(c10::ArrayRef<Edge> roots, c10::ArrayRef<Edge> inputs) {
  Places places = reachable(roots);
  if (!inputs.empty()) mark_needed(places, inputs);
  const auto earlier = [](const Node* a, const Node* b) {
    return a->sequence_nr() < b->sequence_nr();
  };
  std::vector<Node*> ready, order;
  for (const auto& [node, place] : places)
    if (place.waiting == 0) ready.push_back(node);
  std::make_heap(ready.begin(), ready.end(), earlier);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), earlier);
    Node* node = ready.back();
    ready.pop_back();
    if (places[node].needed) order.push_back(node);
    for (const Edge& edge : node->next_edges()) {
      if (!edge.function || --places[edge.function.get()].waiting != 0) continue;
      ready.push_back(edge.function.get());
      std::push_heap(ready.begin(), ready.end(), earlier);
    }
  }
  return order;
}

// ---- description --------------------------------------------------------------------------------
void describe(std::string& text, const Tensor& t) {
  if (!t.defined()) {
    text += "-;";
    return;
  }
  text += c10::str(t.scalar_type(), t.device(), t.sizes());
  if (t.layout() == at::kStrided) text += c10::str(t.strides());
  text += t.requires_grad() ? "g;" : ";";
}

void describe_fields(std::string& text, Node& node) {
  for (const SavedField& field : node.saved_fields()) {
    if (autograd::saved_kind(field) != SavedKind::Other) continue;
    const char* member = reinterpret_cast<const char*>(&node) + field.offset;
    const PyRef value = from_ivalue(field.read(member, &node), nullptr);
    const PyRef shown = checked(PyObject_Repr(value.get()));
    text += c10::str(PyUnicode_AsUTF8(shown.get()), ',');
  }
}

struct Collected {
  std::string text;
  std::vector<Tensor> tensors;
};

void collect(Collected& out, Node& node, const std::unordered_map<Node*, size_t>& numbers) {
  const auto type = reinterpret_cast<uintptr_t>(node.saved_fields().data());
  out.text += c10::str(node.name(), type, '/', kind_of(node), hooks_of(node), '(');
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const autograd::InputMetadata& m = node.input_metadata(i);
    out.text += c10::str(m.dtype, m.device, at::IntArrayRef(m.sizes), ',');
  }
  out.text += ")(";
  for (const Edge& edge : node.next_edges()) {
    const auto found = numbers.find(edge.function.get());
    if (found == numbers.end()) {
      out.text += "-,";
    } else {
      out.text += c10::str(found->second, '.', edge.input_nr, ',');
    }
  }
  out.text += ')';
  if (const auto* leaf = dynamic_cast<const AccumulateGrad*>(&node)) {
    out.tensors.push_back(leaf->variable());
    describe(out.text, leaf->variable());
    return;
  }
  if (!is_inlined(node)) return;
  describe_fields(out.text, node);
  each_saved(node, [&](SavedVariable& saved) {
    out.tensors.push_back(saved.unpack(&node));
    describe(out.text, out.tensors.back());
  });
}

// ---- arguments ----------------------------------------------------------------------------------
std::vector<Edge> edges_from(PyObject* pairs) {
  std::vector<Edge> out;
  PyRef items = checked(PySequence_Fast(pairs, "expected a sequence of (node, number)"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject *node = nullptr, *pair = PySequence_Fast_GET_ITEM(items.get(), i);
    unsigned int number = 0;
    if (!PyTuple_Check(pair)) raise_type_error("expected (node, number)");
    if (!PyArg_ParseTuple(pair, "OI", &node, &number)) throw python_error();
    out.push_back({node_of(node), number});
  }
  return out;
}

TensorVec tensors_from(PyObject* sequence) {
  TensorVec out;
  PyRef items = checked(PySequence_Fast(sequence, "expected a sequence of tensors"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (item != Py_None && !is_tensor(item)) raise_type_error("expected a tensor or None");
    out.push_back(item == Py_None ? Tensor() : tensor_of(item));
  }
  return out;
}

PyRef tuple_of(c10::ArrayRef<Tensor> tensors) {
  PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    PyObject* item = tensors[i].defined() ? checked(wrap(tensors[i])).release() : new_none();
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
  }
  return out;
}

PyRef pairs_of(c10::ArrayRef<Edge> edges) {
  PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
  for (size_t i = 0; i < edges.size(); ++i) {
    PyRef node = checked(wrap_node(edges[i].function));
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                     checked(Py_BuildValue("(OI)", node.get(), edges[i].input_nr)).release());
  }
  return out;
}

// ---- functions ----------------------------------------------------------------------------------
// _backward_collect(roots, inputs) -> (key, tensors, nodes)
PyObject* py_collect(PyObject*, PyObject* args) {
  PyObject *roots = nullptr, *inputs = nullptr;
  if (!PyArg_ParseTuple(args, "OO", &roots, &inputs)) return nullptr;
  return guarded([&]() -> PyObject* {
    const std::vector<Edge> from = edges_from(roots), to = edges_from(inputs);
    const std::vector<Node*> order = in_order(from, to);
    std::unordered_map<Node*, size_t> numbers;
    for (size_t i = 0; i < order.size(); ++i) numbers[order[i]] = i;
    Collected out;
    for (c10::ArrayRef<Edge> edges : {c10::ArrayRef<Edge>(from), c10::ArrayRef<Edge>(to)}) {
      for (const Edge& e : edges) {
        const auto found = numbers.find(e.function.get());
        const int64_t number = found == numbers.end() ? -1 : static_cast<int64_t>(found->second);
        out.text += c10::str(number, '.', e.input_nr, ',');
      }
      out.text += '|';
    }
    PyRef nodes = checked(PyList_New(static_cast<Py_ssize_t>(order.size())));
    for (size_t i = 0; i < order.size(); ++i) {
      collect(out, *order[i], numbers);
      PyList_SET_ITEM(nodes.get(), static_cast<Py_ssize_t>(i),
                      wrap_node(c10::intrusive_ptr<Node>::unsafe_retain(order[i])));
    }
    PyRef tensors = tuple_of(out.tensors);
    const std::string& text = out.text;
    return Py_BuildValue("(s#OO)", text.data(), static_cast<Py_ssize_t>(text.size()), tensors.get(),
                         nodes.get());
  });
}

// _backward_describe(node) -> (kind, hooks, edges, number of tensors that the node saved)
PyObject* py_describe(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    const c10::intrusive_ptr<Node> node = node_of(object);
    Py_ssize_t saved = 0;
    if (is_inlined(*node)) each_saved(*node, [&](SavedVariable&) { ++saved; });
    PyRef edges = pairs_of(node->next_edges());
    return Py_BuildValue("(llOn)", kind_of(*node), hooks_of(*node), edges.get(), saved);
  });
}

// Stand-ins for what a node saved, while it lasts.
class Exchanged {
 public:
  Exchanged(Node& node, const TensorVec& tensors) : node_(node) {
    size_t i = 0;
    each_saved(node_, [&](SavedVariable& saved) {
      TORCH_CHECK(i < tensors.size(), node_.name(), " saved more than ", tensors.size(),
                  " tensors");
      kept_.push_back(std::move(saved));
      saved = SavedVariable(tensors[i++], false);
    });
  }
  ~Exchanged() {
    size_t i = 0;
    each_saved(node_, [&](SavedVariable& saved) { saved = std::move(kept_[i++]); });
  }
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;

 private:
  Node& node_;
  std::vector<SavedVariable> kept_;
};

// _backward_apply(node, grads, saved) -> gradients of the node's inputs
PyObject* py_apply(PyObject*, PyObject* args) {
  PyObject *object = nullptr, *grads = nullptr, *saved = nullptr;
  if (!PyArg_ParseTuple(args, "OOO", &object, &grads, &saved)) return nullptr;
  return guarded([&] {
    const c10::intrusive_ptr<Node> node = node_of(object);
    const Exchanged exchanged(*node, tensors_from(saved));
    return tuple_of(node->apply(tensors_from(grads))).release();
  });
}

// _backward_call_hooks(node, which, grads, outputs) -> grads, or outputs of post-hooks
PyObject* py_call_hooks(PyObject*, PyObject* args) {
  PyObject *object = nullptr, *grads = nullptr, *outputs = nullptr;
  long which = 0;
  if (!PyArg_ParseTuple(args, "OlOO", &object, &which, &grads, &outputs)) return nullptr;
  return guarded([&] {
    const c10::intrusive_ptr<Node> node = node_of(object);
    TensorVec in = tensors_from(grads), out = tensors_from(outputs);
    const autograd::NodeHooks* hooks = node->hooks();
    if (which == kTensorHooks) node->run_tensor_hooks(in);
    if (which == kPreHooks && hooks != nullptr) autograd::run_hooks(hooks->pre, in, out);
    if (which == kPostHooks && hooks != nullptr) autograd::run_hooks(hooks->post, in, out);
    return tuple_of(which == kPostHooks ? out : in).release();
  });
}

PyObject* py_release(PyObject*, PyObject* nodes) {
  return guarded([&] {
    PyRef items = checked(PySequence_Fast(nodes, "expected a sequence of nodes"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      node_of(PySequence_Fast_GET_ITEM(items.get(), i))->release_variables();
    return new_none();
  });
}

// _set_backward_runner(callable or None) -> the one before
PyObject* py_set_runner(PyObject*, PyObject* value) {
  PyObject* before = runner ? runner : new_none();
  runner = value == Py_None ? nullptr : value;
  Py_XINCREF(runner);
  return before;
}

PyMethodDef functions[] = {{"_backward_collect", py_collect, METH_VARARGS, nullptr},
                           {"_backward_describe", py_describe, METH_O, nullptr},
                           {"_backward_apply", py_apply, METH_VARARGS, nullptr},
                           {"_backward_call_hooks", py_call_hooks, METH_VARARGS, nullptr},
                           {"_backward_release", py_release, METH_O, nullptr},
                           {"_set_backward_runner", py_set_runner, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
} // namespace

TensorVec run_pass(c10::ArrayRef<Edge> roots, TensorVec grads, c10::ArrayRef<Edge> inputs,
                   const autograd::BackwardOptions& options) {
  if (C10_LIKELY(runner == nullptr))
    return autograd::run_backward(roots, std::move(grads), inputs, options);
  const PyRef call = PyRef::borrow(runner);
  PyRef from = pairs_of(roots), to = pairs_of(inputs), given = tuple_of(grads);
  const PyRef found = checked(PyObject_CallFunction(
      call.get(), "OOOOOO", from.get(), given.get(), to.get(),
      options.accumulate ? Py_True : Py_False, options.keep_graph ? Py_True : Py_False,
      options.create_graph ? Py_True : Py_False));
  TensorVec out = tensors_from(found.get());
  out.resize(inputs.size());
  return out;
}

bool init_compiled_backward(PyObject* module) {
  return PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
