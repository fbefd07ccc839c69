// A compiled forward graph and its backward graph as one differentiable function.
//
// torch/_functorch/_aot_autograd/runtime.py has the same as a torch.autograd.Function, which costs
// small models more than their fusion saves. Here the node is made, filled and run in C++, and the
// graphs are called without Python between. What is rare (transforms, tangents of forward mode,
// anomaly mode, wrappers, graphs that are no plans) is left to that function, `slow`.
#include <torch/csrc/python/aot/aot.h>

#include <algorithm>
#include <memory>

#include <ATen/functorch/Level.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/forward_mode.h>
#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/inductor/inductor.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {
namespace {

using at::IValue;
using at::Tensor;
using autograd::SavedVariable;
using autograd::TensorVec;

PyTypeObject TrainedType = type_object("torch._C._aot.TrainedFunction");

struct NoGrad {
  NoGrad() : before(c10::tls_autograd_state) {
    c10::tls_autograd_state.grad_mode = false;
    c10::tls_autograd_state.fw_grad_mode = false;
  }
  ~NoGrad() { c10::tls_autograd_state = before; }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
  c10::AutogradState before;
};

// What a tangent must look like: its strides, or only whether it is contiguous.
struct Form {
  bool has_strides = false, contiguous = false;
  at::DimVector strides;

  bool fits(const Tensor& t) const {
    if (t.layout() != at::kStrided || t.key_set().has(c10::DispatchKey::Python)) return false;
    return has_strides ? t.strides() == at::IntArrayRef(strides) : !contiguous || t.is_contiguous();
  }
};

// What all calls of a function have in common. The objects are dropped with the GIL held.
struct Parts {
  PyRef forward, backward, slow, laid_out, not_twice;
  PyRef forward_graph, backward_graph; // the plans behind them, once they are known
  size_t returns = 0, numbers = 0;
  std::vector<size_t> differentiable;
  std::vector<Form> forms;

  static PyObject* plan_of(PyRef& known, PyObject* callable, const char* attribute) {
    if (C10_UNLIKELY(!known)) known = plan_behind(callable, attribute);
    return known.get();
  }
  PyObject* forward_plan() { return plan_of(forward_graph, forward.get(), "run"); }
  PyObject* backward_plan() { return plan_of(backward_graph, backward.get(), "_compiled"); }

  template <class F> int each(F visit) const {
    for (const PyRef* ref :
         {&forward, &backward, &slow, &laid_out, &not_twice, &forward_graph, &backward_graph})
      if (const int stop = ref->get() ? visit(ref->get()) : 0) return stop;
    return 0;
  }
};
using SharedParts = std::shared_ptr<Parts>;

void drop_parts(Parts* parts) {
  if (!python_exists()) return;
  WithGil gil;
  delete parts;
}

// ---- the backward pass --------------------------------------------------------------------------
class TrainedNode final : public autograd::Node {
 public:
  explicit TrainedNode(SharedParts parts) : parts_(std::move(parts)) {}
  TensorVec apply(TensorVec grads) override;
  std::string name() const override { return "CompiledFunctionBackward"; }
  void release_variables() override {
    saved_.clear();
    is_released_ = true;
  }
  void save(const Tensor& t) {
    const bool is_output = autograd::grad_fn_of(t).get() == this;
    saved_.emplace_back(t.is_view() ? autograd::detach(t) : t, is_output);
  }

  std::vector<IValue> numbers;
  std::vector<bool> is_tensor_input; // by argument of the function

 private:
  void add_saved(std::vector<IValue>& args);
  void add_tangents(TensorVec& grads, std::vector<IValue>& args);
  std::vector<IValue> run(std::vector<IValue>& args);
  TensorVec gradients(const std::vector<IValue>& found) const;

  SharedParts parts_;
  std::vector<SavedVariable> saved_;
  bool is_released_ = false;
};

void TrainedNode::add_saved(std::vector<IValue>& args) {
  for (size_t i = 0; i < saved_.size() || is_released_; ++i) {
    // Asked each time: a hook may run the backward pass that frees what is saved.
    TORCH_CHECK(!is_released_,
                "Trying to backward through the graph a second time (or directly access saved "
                "tensors after they have already been freed). Saved intermediate values of the "
                "graph are freed when you call .backward() or autograd.grad(). Specify "
                "retain_graph=True if you need to backward through the graph a second time or if "
                "you need to access saved tensors after calling backward.");
    args.emplace_back(saved_[i].unpack(this));
  }
}

void TrainedNode::add_tangents(TensorVec& grads, std::vector<IValue>& args) {
  while (grads.size() < num_inputs()) grads.push_back(Tensor());
  bool fit = true;
  for (size_t i = 0; i < num_inputs(); ++i) {
    const autograd::InputMetadata& meta = input_metadata(i);
    if (!grads[i].defined())
      grads[i] = at::zeros_symint(meta.sizes, meta.dtype, meta.layout, meta.device, std::nullopt);
    fit = fit && i < parts_->forms.size() && parts_->forms[i].fits(grads[i]);
  }
  if (C10_LIKELY(fit)) {
    for (Tensor& grad : grads) args.emplace_back(std::move(grad));
    return;
  }
  PyRef list = checked(PyList_New(0));
  for (const Tensor& grad : grads)
    check_status(PyList_Append(list.get(), checked(wrap(grad)).get()));
  PyRef found = checked(PyObject_CallOneArg(parts_->laid_out.get(), list.get()));
  found = checked(PySequence_List(found.get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found.get()); ++i)
    args.push_back(graph_value(PyList_GET_ITEM(found.get(), i)));
}

std::vector<IValue> TrainedNode::run(std::vector<IValue>& args) {
  if (PyObject* plan = parts_->backward_plan()) return run_compiled_graph(plan, args);
  PyRef list = checked(PyList_New(0));
  for (const IValue& arg : args)
    check_status(PyList_Append(list.get(), from_ivalue(arg, nullptr).get()));
  args.clear();
  PyRef found = checked(PyObject_CallOneArg(parts_->backward.get(), list.get()));
  found = checked(PySequence_List(found.get()));
  std::vector<IValue> values;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found.get()); ++i)
    values.push_back(graph_value(PyList_GET_ITEM(found.get(), i)));
  return values;
}

TensorVec TrainedNode::gradients(const std::vector<IValue>& found) const {
  TORCH_CHECK(found.size() >= is_tensor_input.size(), "function ", name(),
              " returned an incorrect number of gradients (expected ", is_tensor_input.size(),
              ", got ", found.size(), ")");
  TensorVec out;
  for (size_t i = 0; i < is_tensor_input.size(); ++i)
    if (is_tensor_input[i]) out.push_back(found[i].isTensor() ? found[i].toTensor() : Tensor());
  return out;
}

TensorVec TrainedNode::apply(TensorVec grads) {
  WithGil gil;
  // A hook may drop the graph that owns this node.
  const auto self = c10::intrusive_ptr<Node>::unsafe_retain(this);
  TORCH_CHECK(at::functorch::level_stack().empty(),
              "It looks like you're trying to call a compiled backward function within "
              "vmap/grad/vjp, which isn't supported. Try wrapping vmap inside torch.compile, or "
              "skip compiling the backward function.");
  const bool records = c10::tls_autograd_state.grad_mode;
  TensorVec out;
  {
    const NoGrad off;
    std::vector<IValue> args(numbers.begin(), numbers.end());
    args.reserve(numbers.size() + saved_.size() + grads.size());
    add_saved(args);
    // Each tensor goes when the graph has used it.
    if (autograd::is_last_run(this)) release_variables();
    add_tangents(grads, args);
    grads.clear();
    out = gradients(run(args));
  }
  if (C10_LIKELY(!records)) return out;
  // Gradients with a history that says why there is none.
  PyRef list = checked(wrap(out.vec()));
  list = checked(PyObject_CallOneArg(parts_->not_twice.get(), list.get()));
  for (size_t i = 0; i < out.size(); ++i) {
    PyObject* item = PyList_GET_ITEM(list.get(), static_cast<Py_ssize_t>(i));
    out[i] = is_tensor(item) ? tensor_of(item) : Tensor();
  }
  return out;
}

// ---- the forward pass ---------------------------------------------------------------------------
struct TrainedObject {
  PyObject_HEAD vectorcallfunc call;
  SharedParts parts;
};
TrainedObject* as_trained(PyObject* o) { return reinterpret_cast<TrainedObject*>(o); }

// Whether nothing around the call and in its arguments asks for more than plain tensors get.
bool is_simple(PyObject* list) {
  if (!at::functorch::level_stack().empty() || autograd::anomaly_mode().enabled) return false;
  constexpr c10::DispatchKeySet wrappers{c10::DispatchKey::Python, c10::DispatchKey::Fake,
                                         c10::DispatchKey::Functionalize};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* item = PyList_GET_ITEM(list, i);
    if (!is_tensor(item)) continue;
    const Tensor& t = tensor_of(item);
    if (t.layout() != at::kStrided || t.key_set().has_any(wrappers)) return false;
    if (c10::tls_autograd_state.fw_grad_mode && autograd::tangent_of(t).defined()) return false;
  }
  return true;
}

// An output that takes part in the backward pass: memory of its own, and a result of the node.
Tensor recorded(Tensor t, const std::vector<IValue>& given,
                const c10::intrusive_ptr<TrainedNode>& node) {
  if (t.is_view()) {
    const NoGrad off;
    t = at::_unsafe_view(t, t.sizes());
  }
  if (!node) return t;
  if (!t.is_floating_point() && !t.is_complex()) {
    node->add_input_metadata(t);
    return t;
  }
  const bool is_input = std::any_of(given.begin(), given.end(), [&](const IValue& value) {
    return value.isTensor() && value.toTensor().is_same(t);
  });
  return autograd::record_custom_output(t, is_input, false, node);
}

PyObject* run_trained(const SharedParts& parts, PyObject* plan, PyObject* list) {
  std::vector<IValue> inputs = graph_values(list);
  const bool any = std::any_of(inputs.begin(), inputs.end(), [](const IValue& value) {
    return value.isTensor() && value.toTensor().requires_grad();
  });
  c10::intrusive_ptr<TrainedNode> node;
  if (any) {
    node = c10::make_intrusive<TrainedNode>(parts);
    for (const IValue& value : inputs) {
      node->is_tensor_input.push_back(value.isTensor());
      if (value.isTensor()) node->add_next_edge(autograd::gradient_edge(value.toTensor()));
    }
  }
  const std::vector<IValue> given = inputs;
  std::vector<IValue> values;
  {
    const NoGrad off;
    values = run_compiled_graph(plan, inputs);
  }
  TORCH_CHECK(values.size() >= parts->returns + parts->numbers,
              "a compiled forward graph returned ", values.size(), " values, expected at least ",
              parts->returns + parts->numbers);
  const size_t saved_end = values.size() - parts->numbers;
  std::vector<IValue> results(values.begin(),
                              values.begin() + static_cast<std::ptrdiff_t>(parts->returns));
  for (const size_t place : parts->differentiable)
    results[place] = recorded(values[place].toTensor(), given, node);
  if (node) {
    for (size_t i = parts->returns; i < saved_end; ++i) node->save(values[i].toTensor());
    node->numbers.assign(values.begin() + static_cast<std::ptrdiff_t>(saved_end), values.end());
  }
  PyRef out = checked(PyList_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; i < results.size(); ++i)
    PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                    from_ivalue(results[i], nullptr).release());
  return out.release();
}

PyObject* call_trained(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    if (PyVectorcall_NARGS(nargsf) != 1 || kwnames || !PyList_Check(args[0]))
      raise_type_error("a compiled function takes one list of arguments");
    const SharedParts parts = as_trained(self)->parts;
    if (!parts) raise(PyExc_ReferenceError, "TrainedFunction: the graphs were collected");
    PyObject* plan = parts->forward_plan();
    if (plan && is_simple(args[0])) return run_trained(parts, plan, args[0]);
    return checked(PyObject_CallOneArg(parts->slow.get(), args[0])).release();
  });
}

// ---- building -----------------------------------------------------------------------------------
size_t count_of(PyObject* number) {
  const size_t count = PyLong_AsSize_t(number);
  if (count == static_cast<size_t>(-1) && PyErr_Occurred()) throw python_error();
  return count;
}

Form form_of(PyObject* pair) {
  PyObject* strides = nullptr;
  int contiguous = 0;
  if (!PyArg_ParseTuple(pair, "Op:TrainedFunction", &strides, &contiguous)) throw python_error();
  Form form;
  form.contiguous = contiguous != 0;
  form.has_strides = strides != Py_None;
  if (!form.has_strides) return form;
  const PyRef list = checked(PySequence_List(strides));
  for (Py_ssize_t d = 0; d < PyList_GET_SIZE(list.get()); ++d)
    form.strides.push_back(static_cast<int64_t>(count_of(PyList_GET_ITEM(list.get(), d))));
  return form;
}

// TrainedFunction(forward, backward, slow, laid_out, not_twice, returns, numbers, differentiable,
// forms)
PyObject* trained_new(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* objects[5];
    PyObject *differentiable = nullptr, *forms = nullptr;
    Py_ssize_t returns = 0, numbers = 0;
    if (!PyArg_ParseTuple(args, "OOOOOnnOO:TrainedFunction", &objects[0], &objects[1], &objects[2],
                          &objects[3], &objects[4], &returns, &numbers, &differentiable, &forms))
      throw python_error();
    SharedParts parts(new Parts, drop_parts);
    PyRef* const places[5] = {&parts->forward, &parts->backward, &parts->slow, &parts->laid_out,
                              &parts->not_twice};
    for (int i = 0; i < 5; ++i) *places[i] = PyRef::borrow(objects[i]);
    parts->returns = static_cast<size_t>(std::max<Py_ssize_t>(returns, 0));
    parts->numbers = static_cast<size_t>(std::max<Py_ssize_t>(numbers, 0));
    const PyRef indices = checked(PySequence_List(differentiable));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(indices.get()); ++i) {
      parts->differentiable.push_back(count_of(PyList_GET_ITEM(indices.get(), i)));
      if (parts->differentiable.back() >= parts->returns)
        raise(PyExc_ValueError, "TrainedFunction: a differentiable value that is not returned");
    }
    const PyRef pairs = checked(PySequence_List(forms));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs.get()); ++i)
      parts->forms.push_back(form_of(PyList_GET_ITEM(pairs.get(), i)));
    PyRef self = checked(type->tp_alloc(type, 0));
    as_trained(self.get())->call = call_trained;
    new (&as_trained(self.get())->parts) SharedParts(std::move(parts));
    return self.release();
  });
}

// Nodes that hold the parts keep them alive, whoever else does.
int traverse(PyObject* self, visitproc visit, void* arg) {
  const SharedParts& parts = as_trained(self)->parts;
  if (!parts || parts.use_count() > 1) return 0;
  return parts->each([&](PyObject* o) { return visit(o, arg); });
}
int clear(PyObject* self) {
  as_trained(self)->parts.reset();
  return 0;
}
void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  as_trained(self)->parts.~SharedParts();
  Py_TYPE(self)->tp_free(self);
}
PyObject* get_boxed(PyObject*, void*) { return new_bool(true); }
PyGetSetDef members[] = {{"_boxed_call", get_boxed, nullptr, nullptr, nullptr},
                         {nullptr, nullptr, nullptr, nullptr, nullptr}};

} // namespace

bool init_trained(PyObject* module) {
  TrainedType.tp_basicsize = sizeof(TrainedObject);
  TrainedType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
  TrainedType.tp_vectorcall_offset = offsetof(TrainedObject, call);
  TrainedType.tp_call = PyVectorcall_Call;
  TrainedType.tp_new = trained_new;
  TrainedType.tp_traverse = traverse;
  TrainedType.tp_clear = clear;
  TrainedType.tp_dealloc = dealloc;
  TrainedType.tp_getset = members;
  TrainedType.tp_doc =
      "TrainedFunction(forward, backward, slow, laid_out, not_twice, returns, numbers,\n"
      "differentiable, forms): a boxed function that runs compiled graphs as one differentiable\n"
      "operator. `slow` does the same for arguments that are no plain tensors.";
  return add_type(module, &TrainedType);
}

} // namespace torch::python
