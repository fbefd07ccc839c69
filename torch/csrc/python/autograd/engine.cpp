// See autograd_engine.h. Tensor.backward is all C++ because it is called once for every step of
// every training program; torch.autograd.backward and grad check their many forms in Python and end
// in run_backward.
#include <torch/csrc/python/autograd/engine.h>

#include <ATen/core/WarnOnce.h>
#include <ATen/functorch/Level.h>

#include <ATen/ops/ones_like.h>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/args/keyword_args.h>
#include <torch/csrc/python/autograd/compiled_backward.h>
#include <torch/csrc/python/autograd/node.h>
#include <torch/csrc/python/autograd/saved.h>
#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/runtime/profiler.h>

namespace torch::python {
namespace {

using at::Tensor;
using autograd::Edge;
using autograd::TensorVec;

using EdgeList = c10::SmallVector<Edge, 2>;

// ---- where gradients are wanted -----------------------------------------------------------------
Edge input_edge(PyObject* item, bool accumulate) {
  Edge edge = edge_of(item);
  TORCH_CHECK(edge.is_valid(), "One of the differentiated Tensors does not require grad");
  if (accumulate && is_tensor(item) && !autograd::is_leaf(tensor_of(item))) {
    autograd::retain_grad(tensor_of(item));
  }
  return edge;
}

EdgeList input_edges(PyObject* inputs, bool accumulate) {
  EdgeList out;
  if (!inputs || inputs == Py_None) return out;
  if (is_tensor(inputs)) {
    out.push_back(input_edge(inputs, accumulate));
    return out;
  }
  PyRef items = checked(PySequence_Fast(inputs, "inputs must be tensors or GradientEdges"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    // Asking a GradientEdge for its node runs Python code, which may change the list.
    const PyRef item = PyRef::borrow(PySequence_Fast_GET_ITEM(items.get(), i));
    out.push_back(input_edge(item.get(), accumulate));
  }
  return out;
}

// ---- Tensor.backward ----------------------------------------------------------------------------
Tensor root_gradient(const Tensor& self, PyObject* gradient) {
  if (gradient && gradient != Py_None) {
    if (!is_tensor(gradient)) {
      raise_type_error(
          c10::str("gradients can be either Tensors or None, but got ", type_name(gradient)));
    }
    const Tensor& grad = tensor_of(gradient);
    TORCH_CHECK(grad.sizes() == self.sizes(),
                "Mismatch in shape: grad_output[0] has a shape of torch.Size(", grad.sizes(),
                ") and output[0] has a shape of torch.Size(", self.sizes(), ").");
    TORCH_CHECK(grad.is_complex() == self.is_complex(),
                "For complex Tensors, both grad_output and output are required to have the same "
                "dtype. Mismatch "
                "in dtype: grad_output[0] has a dtype of ",
                grad.scalar_type(), " and output[0] has a dtype of ", self.scalar_type(), ".");
    return grad;
  }
  TORCH_CHECK(self.numel() == 1, "grad can be implicitly created only for scalar outputs");
  TORCH_CHECK(self.is_floating_point(),
              "grad can be computed only for real scalar outputs but got ", self.scalar_type());
  return at::ones_like(self);
}

void run_from(const Tensor& self, PyObject* gradient, std::optional<bool> retain, bool create_graph,
              PyObject* inputs) {
  TORCH_CHECK(at::functorch::level_stack().empty(),
              "backward() called inside a functorch transform. This is not supported, please use "
              "functorch.grad or functorch.vjp instead or call backward() outside of functorch "
              "transforms.");
  TORCH_CHECK(self.requires_grad(),
              "element 0 of tensors does not require grad and does not have a grad_fn");
  autograd::warn_create_graph(create_graph);
  const Edge root = autograd::gradient_edge(self);
  const EdgeList wanted = input_edges(inputs, true);
  TORCH_CHECK(!wanted.empty() || !inputs || inputs == Py_None,
              "`inputs` argument to `backward()` cannot be empty.");
  TensorVec grads;
  grads.push_back(root_gradient(self, gradient));
  autograd::BackwardOptions options;
  options.keep_graph = retain.value_or(create_graph);
  options.create_graph = create_graph;
  const SavedHooksScope hooks_of_this_pass;
  run_pass(root, std::move(grads), wanted, options);
}

constexpr Param kBackwardParams[] = {{"self", P::Tensor, 0, 0, nullptr},
                                     {"gradient", P::Object, kHasDefault | kOptional, 0, "None"},
                                     {"retain_graph", P::Bool, kHasDefault | kOptional, 0, "None"},
                                     {"create_graph", P::Bool, kHasDefault, 0, "False"},
                                     {"inputs", P::Object, kHasDefault | kOptional, 0, "None"}};
PyObject* invoke_backward(ArgValues& a) {
  run_from(a.tensor(0), a.object(1), a.opt_boolean(2), a.given(3) && a.boolean(3), a.object(4));
  return new_none();
}
const Signature kBackwardSignature[] = {{kBackwardParams, 5, 5, 0, invoke_backward,
                                         "backward(Tensor? gradient=None, bool? retain_graph=None, "
                                         "bool create_graph=False, inputs=None)"}};
const Function kBackward = {"backward", "torch.Tensor", kBackwardSignature, 1};

PyObject* py_backward(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kBackward, self, args, n, names);
}

// ---- run_backward -------------------------------------------------------------------------------
bool truth(PyObject* value, bool otherwise) {
  if (!value) return otherwise;
  const int answer = PyObject_IsTrue(value);
  check_status(answer);
  return answer != 0;
}

void read_roots(PyObject* tensors, PyObject* gradients, EdgeList& roots, TensorVec& grads) {
  if (!PyTuple_Check(tensors)) raise_type_error("tensors argument is expected to be a tuple");
  if (!PyTuple_Check(gradients))
    raise_type_error("grad_tensors argument is expected to be a tuple");
  const Py_ssize_t n = PyTuple_GET_SIZE(tensors);
  TORCH_CHECK(n == PyTuple_GET_SIZE(gradients), "got ", int64_t(n), " tensors and ",
              int64_t(PyTuple_GET_SIZE(gradients)), " gradients");
  for (Py_ssize_t i = 0; i < n; ++i) {
    Edge edge = edge_of(PyTuple_GET_ITEM(tensors, i));
    TORCH_CHECK(edge.is_valid(), "element ", int64_t(i),
                " of tensors does not require grad and does not have a grad_fn");
    PyObject* grad = PyTuple_GET_ITEM(gradients, i);
    TORCH_CHECK(grad != Py_None, "element ", int64_t(i),
                " of gradients tuple is None, but the corresponding Tensor requires grad");
    TORCH_CHECK(is_tensor(grad), "element ", int64_t(i),
                " of gradients tuple is not a Tensor or None");
    roots.push_back(std::move(edge));
    grads.push_back(tensor_of(grad));
  }
}

PyObject* gradients_found(const TensorVec& found, bool allow_unreachable) {
  PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(found.size())));
  for (size_t i = 0; i < found.size(); ++i) {
    TORCH_CHECK(allow_unreachable || found[i].defined(), "The differentiated Tensor at index ", i,
                " appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior.");
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), checked(wrap(found[i])).release());
  }
  return out.release();
}

PyObject* engine_run_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs,
                              PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    const KeywordArgs values("run_backward",
                             {"tensors", "grad_tensors", "keep_graph", "create_graph", "inputs",
                              "allow_unreachable", "accumulate_grad"},
                             7, 4, args, nargs, kwnames);
    EdgeList roots;
    TensorVec grads;
    read_roots(values[0], values[1], roots, grads);
    autograd::BackwardOptions options;
    options.keep_graph = truth(values[2], false);
    options.create_graph = truth(values[3], false);
    options.accumulate = truth(values[6], false);
    if (options.accumulate) autograd::warn_create_graph(options.create_graph);
    const EdgeList wanted = input_edges(values[4], options.accumulate);
    if (roots.empty()) return PyTuple_New(0);
    const SavedHooksScope hooks_of_this_pass;
    const TensorVec found = run_pass(roots, std::move(grads), wanted, options);
    if (options.accumulate || wanted.empty()) return new_none();
    return gradients_found(found, truth(values[5], false));
  });
}

// A Python function for the end of the pass. Its count must not be touched without the GIL, hence
// shared.
PyObject* engine_queue_callback(PyObject*, PyObject* callback) {
  return guarded([&] {
    std::shared_ptr<PyObject> kept(PyRef::borrow(callback).release(), [](PyObject* o) {
      WithGil gil;
      Py_DECREF(o);
    });
    autograd::queue_callback([kept] {
      WithGil gil;
      checked(PyObject_CallNoArgs(kept.get()));
    });
    return new_none();
  });
}
PyObject* engine_is_checkpoint_valid(PyObject*, PyObject*) { return new_bool(true); }

PyObject* py_current_node(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    autograd::Node* node = autograd::current_node();
    return node ? wrap_node(c10::intrusive_ptr<autograd::Node>::unsafe_retain(node)) : new_none();
  });
}

PyObject* py_pass_id(PyObject*, PyObject*) {
  return PyLong_FromLongLong(autograd::current_pass_id());
}
// Of a tensor, a gradient edge or a node.
PyObject* py_will_compute(PyObject*, PyObject* what) {
  return guarded([&] {
    Edge edge;
    if (PyObject_HasAttrString(what, "next_functions")) {
      edge.function = node_of(what);
    } else {
      edge = edge_of(what);
    }
    return new_bool(edge.is_valid() && autograd::will_compute(edge));
  });
}

PyMethodDef engine_methods[] = {
    {"run_backward", as_method(engine_run_backward), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"queue_callback", engine_queue_callback, METH_O, nullptr},
    {"is_checkpoint_valid", engine_is_checkpoint_valid, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef module_functions[] = {{"_current_autograd_node", py_current_node, METH_NOARGS, nullptr},
                                  {"_current_graph_task_id", py_pass_id, METH_NOARGS, nullptr},
                                  {"_will_engine_execute_node", py_will_compute, METH_O, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
PyTypeObject EngineType = type_object("torch._C._ImperativeEngine");

// ---- threads of the engine ----------------------------------------------------------------------
struct CarriedError {
  PyObject *type, *value, *trace;
};
void* enter_thread() { return reinterpret_cast<void*>(static_cast<intptr_t>(take_gil()) + 1); }
void* leave_thread(void* held) {
  void* carried = nullptr;
  if (PyErr_Occurred()) {
    auto* error = new CarriedError{};
    PyErr_Fetch(&error->type, &error->value, &error->trace);
    carried = error;
  }
  PyGILState_Release(static_cast<PyGILState_STATE>(reinterpret_cast<intptr_t>(held) - 1));
  return carried;
}
void resume_error(void* carried) {
  auto* error = static_cast<CarriedError*>(carried);
  PyErr_Restore(error->type, error->value, error->trace);
  delete error;
}
void drop_error(void* carried) {
  auto* error = static_cast<CarriedError*>(carried);
  WithGil gil;
  Py_XDECREF(error->type);
  Py_XDECREF(error->value);
  Py_XDECREF(error->trace);
  delete error;
}
void* release_lock() {
  return Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr;
}
void acquire_lock(void* released) { restore_thread(static_cast<PyThreadState*>(released)); }
bool thread_is_plain() { return active_function_modes == 0 && !is_profiling(); }

} // namespace

PyMethodDef tensor_autograd_methods[] = {
    {"backward", as_method(py_backward), METH_FASTCALL | METH_KEYWORDS,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)\n\nComputes the "
     "gradients of the "
     "graph's leaves with respect to this tensor and adds them to their .grad."},
    {nullptr, nullptr, 0, nullptr}};

bool init_autograd_engine(PyObject* module) {
  EngineType.tp_basicsize = sizeof(PyObject);
  EngineType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  EngineType.tp_new = PyType_GenericNew;
  EngineType.tp_methods = engine_methods;
  if (!add_type(module, &EngineType)) return false;
  auto* base = reinterpret_cast<PyObject*>(&EngineType);
  Py_INCREF(base);
  autograd::thread_hooks = {enter_thread, leave_thread, resume_error,   drop_error,
                            release_lock, acquire_lock, thread_is_plain};
  return add_object(module, "_EngineBase", base) &&
         PyModule_AddFunctions(module, module_functions) == 0;
}

} // namespace torch::python
