// torch.autograd.Function.apply: runs the user's forward without recording, then makes its tensor
// outputs results of one node whose edges lead to the tensor inputs.
#include <torch/csrc/python/autograd/function_context.h>

#include <ATen/functorch/Level.h>
#include <ATen/ops/zeros_like.h>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/forward_mode.h>

#include <torch/csrc/python/dispatch/torch_function.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {
namespace {

using at::Tensor;

struct GradModeGuard {
  explicit GradModeGuard(bool enabled) : before(c10::tls_autograd_state) {
    c10::tls_autograd_state.grad_mode = enabled;
    c10::tls_autograd_state.fw_grad_mode = enabled;
  }
  ~GradModeGuard() { c10::tls_autograd_state = before; }
  c10::AutogradState before;
};

// One call of apply.
struct Application {
  PyObject* cls;
  PyRef context_ref;
  FunctionContext* context = nullptr;
  PyRef inputs; // tuple, as given
  c10::intrusive_ptr<FunctionNode> node;
  bool recorded = false;

  bool is_input(const Tensor& t) const {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs.get()); ++i) {
      PyObject* item = PyTuple_GET_ITEM(inputs.get(), i);
      if (is_tensor(item) && tensor_of(item).is_same(t)) return true;
    }
    return false;
  }
};

// needs_input_grad, the flags and the edges.
void read_inputs(Application& call) {
  const Py_ssize_t n = PyTuple_GET_SIZE(call.inputs.get());
  PyRef needs = checked(PyTuple_New(n));
  bool any = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(call.inputs.get(), i);
    const bool tensor = is_tensor(item);
    // A nested tensor is in the graph by its values, which this call does not see.
    TORCH_CHECK_NOT_IMPLEMENTED(!tensor || tensor_of(item).layout() != c10::Layout::Jagged,
                                "torch.autograd.Function.apply is not implemented for nested "
                                "tensors, got one of dtype ",
                                tensor_of(item).scalar_type(), " on ", tensor_of(item).device(),
                                " as input ", int64_t(i), "; give it the tensor's values()");
    const bool needed = tensor && tensor_of(item).requires_grad();
    call.context->is_tensor_input.push_back(tensor);
    PyTuple_SET_ITEM(needs.get(), i, new_bool(needed));
    any = any || needed;
  }
  call.context->needs_input_grad = needs.release();
  call.recorded = any && c10::tls_autograd_state.grad_mode;
  if (!call.recorded) return;
  call.node = c10::make_intrusive<FunctionNode>(call.context_ref.get());
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(call.inputs.get(), i);
    if (is_tensor(item)) call.node->add_next_edge(autograd::gradient_edge(tensor_of(item)));
  }
}

// Whether forward takes no context: setup_context is defined in the class.
bool has_setup_context(PyObject* cls) {
  PyRef flag(PyObject_GetAttrString(cls, "_has_setup_context"));
  if (!flag) {
    PyErr_Clear();
    return false;
  }
  return flag.get() == Py_True;
}

PyRef run_forward(Application& call) {
  GradModeGuard off(false);
  PyRef forward = checked(PyObject_GetAttrString(call.cls, "forward"));
  if (has_setup_context(call.cls)) {
    PyRef output = checked(PyObject_CallObject(forward.get(), call.inputs.get()));
    PyRef setup = checked(PyObject_GetAttrString(call.cls, "setup_context"));
    checked(PyObject_CallFunctionObjArgs(setup.get(), call.context_ref.get(), call.inputs.get(),
                                         output.get(), nullptr));
    return output;
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(call.inputs.get());
  PyRef args = checked(PyTuple_New(n + 1));
  PyTuple_SET_ITEM(args.get(), 0, PyRef(call.context_ref).release());
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyTuple_SET_ITEM(args.get(), i + 1,
                     PyRef::borrow(PyTuple_GET_ITEM(call.inputs.get(), i)).release());
  }
  return checked(PyObject_CallObject(forward.get(), args.get()));
}

// ---- what forward declared ----------------------------------------------------------------------
void check_tensor_tuple(PyObject* tuple, const char* what, const char* where) {
  if (!tuple) return;
  if (!PyTuple_Check(tuple)) {
    raise_type_error(
        c10::str(where, " attribute is expected to be a tuple but is ", type_name(tuple)));
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    if (!is_tensor(item)) {
      raise_type_error(
          c10::str(what, " only accepts variable arguments, but got ", type_name(item)));
    }
  }
}
bool listed(PyObject* tuple, const Tensor& t) {
  for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple); ++i) {
    if (tensor_of(PyTuple_GET_ITEM(tuple, i)).is_same(t)) return true;
  }
  return false;
}

// In-place results: recorded writes to inputs.
void check_dirty(const Application& call, PyObject* outputs) {
  PyObject* dirty = call.context->dirty_tensors;
  for (Py_ssize_t i = 0; dirty && i < PyTuple_GET_SIZE(dirty); ++i) {
    const Tensor& t = tensor_of(PyTuple_GET_ITEM(dirty, i));
    if (call.recorded)
      autograd::check_dirty_view(t, static_cast<size_t>(PyTuple_GET_SIZE(outputs)));
    if (call.recorded) autograd::check_inplace(t, true);
    if (!t.is_inference()) t.unsafeGetTensorImpl()->bump_version();
  }
}

// ---- outputs ------------------------------------------------------------------------------------
// An output without gradient: as it is, unless it would carry the history of an input it is.
Tensor without_history(const Application& call, const Tensor& t) {
  if (!t.requires_grad()) return t;
  return call.is_input(t) ? autograd::detach(t) : t;
}

Tensor with_history(const Application& call, const Tensor& t) {
  return autograd::record_custom_output(t, call.is_input(t), listed(call.context->dirty_tensors, t),
                                        call.node);
}

PyRef wrap_outputs(Application& call, PyObject* outputs) {
  const Py_ssize_t n = PyTuple_GET_SIZE(outputs);
  PyRef out = checked(PyTuple_New(n));
  int next = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(outputs, i);
    if (!is_tensor(item)) {
      if (call.node) {
        call.node->output_index.push_back(-1);
        call.node->add_input_metadata(Tensor()); // hooks see None in its place
        ++next;
      }
      PyTuple_SET_ITEM(out.get(), i, PyRef::borrow(item).release());
      continue;
    }
    const Tensor& t = tensor_of(item);
    const bool differentiable = call.recorded && (t.is_floating_point() || t.is_complex()) &&
                                !listed(call.context->non_differentiable, t);
    Tensor result;
    if (differentiable) {
      result = with_history(call, t);
    } else {
      result = call.recorded ? without_history(call, t) : t;
      if (call.recorded) call.node->add_input_metadata(result);
    }
    if (call.node) call.node->output_index.push_back(next++);
    PyTuple_SET_ITEM(out.get(), i,
                     result.is_same(t) ? PyRef::borrow(item).release()
                                       : checked(wrap(std::move(result))).release());
  }
  return out;
}

void check_dirty_returned(const Application& call, PyObject* outputs) {
  PyObject* dirty = call.context->dirty_tensors;
  for (Py_ssize_t i = 0; dirty && call.recorded && i < PyTuple_GET_SIZE(dirty); ++i) {
    bool found = false;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(outputs); ++k) {
      PyObject* item = PyTuple_GET_ITEM(outputs, k);
      found = found ||
              (is_tensor(item) && tensor_of(item).is_same(tensor_of(PyTuple_GET_ITEM(dirty, i))));
    }
    TORCH_CHECK(
        found,
        "Some elements marked as dirty during the forward method were not returned as output. "
        "The inputs that are modified inplace must all be outputs of the Function.");
  }
}

void save_tensors(Application& call) {
  PyObject* to_save = call.context->to_save;
  if (!to_save) return;
  if (!PyTuple_Check(to_save)) {
    raise_type_error(c10::str("saved tensors must be a tuple but is ", type_name(to_save)));
  }
  for (Py_ssize_t i = 0; call.recorded && i < PyTuple_GET_SIZE(to_save); ++i) {
    PyObject* item = PyTuple_GET_ITEM(to_save, i);
    if (item == Py_None) {
      call.context->saved.emplace_back(Tensor(), false);
      continue;
    }
    if (!is_tensor(item)) {
      raise_type_error(c10::str("save_for_backward can only save variables, but argument ",
                                int64_t(i), " is of type ", type_name(item)));
    }
    const Tensor& t = tensor_of(item);
    const bool output = autograd::grad_fn_of(t).get() == call.node.get();
    call.context->saved.emplace_back(t, output);
  }
  Py_CLEAR(call.context->to_save);
}

// ---- forward mode -------------------------------------------------------------------------------
bool has_tangents(const Application& call) {
  if (!c10::tls_autograd_state.fw_grad_mode) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(call.inputs.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(call.inputs.get(), i);
    if (is_tensor(item) && autograd::tangent_of(tensor_of(item)).defined()) return true;
  }
  return false;
}

// The context and a tangent for each input: zeros, or None, where an input has none.
PyRef jvp_arguments(const Application& call) {
  const Py_ssize_t n = PyTuple_GET_SIZE(call.inputs.get());
  PyRef args = checked(PyTuple_New(n + 1));
  PyTuple_SET_ITEM(args.get(), 0, PyRef(call.context_ref).release());
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(call.inputs.get(), i);
    Tensor tangent = is_tensor(item) ? autograd::tangent_of(tensor_of(item)) : Tensor();
    const bool zeros = !tangent.defined() && is_tensor(item) && call.context->materialize_grads &&
                       (tensor_of(item).is_floating_point() || tensor_of(item).is_complex());
    if (zeros) tangent = at::zeros_like(autograd::detach(tensor_of(item)));
    PyTuple_SET_ITEM(args.get(), i + 1, checked(wrap(std::move(tangent))).release());
  }
  return args;
}

// The tangent of an input that forward wrote to, and its version before jvp ran.
struct TangentState {
  const at::TensorImpl* input;
  Tensor tangent;
  uint32_t version;
};
std::vector<TangentState> tangents_of_dirty(const Application& call) {
  std::vector<TangentState> out;
  PyObject* dirty = call.context->dirty_tensors;
  for (Py_ssize_t i = 0; dirty && i < PyTuple_GET_SIZE(dirty); ++i) {
    const Tensor& t = tensor_of(PyTuple_GET_ITEM(dirty, i));
    Tensor tangent = autograd::tangent_of(t);
    if (!tangent.defined()) continue;
    const uint32_t version = tangent.unsafeGetTensorImpl()->version();
    out.push_back({t.unsafeGetTensorImpl(), std::move(tangent), version});
  }
  return out;
}
// Whether jvp changed the tangent of a written input in place; true for other outputs.
bool is_written_tangent(const std::vector<TangentState>& dirty, const Tensor& output,
                        const Tensor& tangent) {
  for (const TangentState& state : dirty)
    if (state.input == output.unsafeGetTensorImpl())
      return state.tangent.is_same(tangent) &&
             tangent.unsafeGetTensorImpl()->version() != state.version;
  return true;
}

void run_jvp(Application& call, PyObject* outputs) {
  // What was saved for the backward pass is not for jvp to see.
  if (!call.context->saved_for_forward)
    call.context->saved_for_forward = checked(PyTuple_New(0)).release();
  PyRef jvp = checked(PyObject_GetAttrString(call.cls, "jvp"));
  const std::vector<TangentState> dirty = tangents_of_dirty(call);
  PyRef returned = checked(PyObject_CallObject(jvp.get(), jvp_arguments(call).get()));
  PyRef tangents =
      PyTuple_Check(returned.get()) ? returned : checked(PyTuple_Pack(1, returned.get()));
  const Py_ssize_t n = PyTuple_GET_SIZE(outputs);
  TORCH_CHECK(PyTuple_GET_SIZE(tangents.get()) == n, "jvp returned ",
              int64_t(PyTuple_GET_SIZE(tangents.get())), " tangents for ", int64_t(n), " outputs");
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* tangent = PyTuple_GET_ITEM(tangents.get(), i);
    PyObject* output = PyTuple_GET_ITEM(outputs, i);
    if (tangent == Py_None) continue;
    if (!is_tensor(tangent) || !is_tensor(output)) {
      raise_type_error("jvp must return a Tensor or None for each output of forward");
    }
    TORCH_CHECK(is_written_tangent(dirty, tensor_of(output), tensor_of(tangent)),
                "An inplace custom Function is not modifying the forward mode gradients inplace. "
                "If the forward is modifying an input inplace, then the jvp function must modify "
                "the corresponding gradient inplace.");
    autograd::carry_tangent(tensor_of(output), tensor_of(tangent));
    for (const autograd::SavedVariable& saved : call.context->saved)
      autograd::share_tangents(saved, {tensor_of(output)});
  }
}

// ---- arguments ----------------------------------------------------------------------------------
// forward(*args, **kwargs) as one tuple: keywords are put in their places by the class.
PyRef positional(PyObject* cls, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyRef tuple = checked(PyTuple_New(nargs));
  for (Py_ssize_t i = 0; i < nargs; ++i)
    PyTuple_SET_ITEM(tuple.get(), i, PyRef::borrow(args[i]).release());
  const bool named = kwnames && PyTuple_GET_SIZE(kwnames) > 0;
  if (!named && !has_setup_context(cls)) return tuple;
  PyRef kwargs = checked(PyDict_New());
  for (Py_ssize_t k = 0; named && k < PyTuple_GET_SIZE(kwnames); ++k) {
    check_status(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, k), args[nargs + k]));
  }
  PyRef bind = checked(PyObject_GetAttrString(cls, "_bind_arguments"));
  return checked(PyObject_CallFunctionObjArgs(bind.get(), tuple.get(), kwargs.get(), nullptr));
}

// ---- function transforms ------------------------------------------------------------------------
bool holds_wrapper(PyObject* o) {
  if (is_tensor(o)) return at::functorch::wrapper_of(tensor_of(o)) != nullptr;
  if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n; ++i)
    if (holds_wrapper(PySequence_Fast_GET_ITEM(o, i))) return true;
  return false;
}
// Whether a transform takes the call over (torch/_functorch/autograd_function.py).
bool belongs_to_transform(PyObject* cls, PyObject* inputs) {
  if (C10_LIKELY(at::functorch::level_stack().empty()) || !holds_wrapper(inputs)) return false;
  return PyObject_HasAttrString(cls, "_bypass_transforms") == 0;
}

PyObject* apply(PyObject* cls, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  Application call;
  call.cls = cls;
  call.inputs = positional(cls, args, nargs, kwnames);
  if (C10_UNLIKELY(belongs_to_transform(cls, call.inputs.get()))) {
    static PyObject* transformed = nullptr;
    PyObject* run =
        cached_attribute(transformed, "torch._functorch.autograd_function", "custom_function_call");
    if (!run) throw python_error();
    return checked(PyObject_CallFunctionObjArgs(run, cls, call.inputs.get(), nullptr)).release();
  }
  PyRef context_class(PyObject_GetAttrString(cls, "_backward_cls"));
  if (!context_class) throw python_error();
  call.context_ref = checked(PyObject_CallNoArgs(context_class.get()));
  if (!is_function_context(call.context_ref.get()))
    raise_type_error("_backward_cls makes no context");
  call.context = as_context(call.context_ref.get());
  read_inputs(call);
  PyRef returned = run_forward(call);
  const bool single = !PyTuple_Check(returned.get());
  PyRef outputs = single ? checked(PyTuple_Pack(1, returned.get())) : std::move(returned);
  check_tensor_tuple(call.context->dirty_tensors, "mark_dirty", "dirty_tensors");
  check_tensor_tuple(call.context->non_differentiable, "mark_non_differentiable",
                     "non_differentiable");
  check_dirty_returned(call, outputs.get());
  check_dirty(call, outputs.get());
  PyRef wrapped = wrap_outputs(call, outputs.get());
  outputs = PyRef();
  save_tensors(call);
  if (has_tangents(call)) run_jvp(call, wrapped.get());
  Py_CLEAR(call.context->saved_for_forward);
  Py_CLEAR(call.context->dirty_tensors);
  Py_CLEAR(call.context->non_differentiable);
  if (!single) return wrapped.release();
  return PyRef::borrow(PyTuple_GET_ITEM(wrapped.get(), 0)).release();
}

} // namespace

PyObject* function_apply(PyObject* cls, PyObject* const* args, Py_ssize_t nargs,
                         PyObject* kwnames) {
  return guarded([&] { return apply(cls, args, nargs, kwnames); });
}

} // namespace torch::python
