// The context object: its attributes, and the node that runs backward with it.
#include <torch/csrc/python/autograd/function_context.h>

#include <ATen/ops/zeros.h>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/python/autograd/node.h>
#include <torch/csrc/python/autograd/saved_tensor.h>
#include <torch/csrc/python/tensor/wrap.h>
#include <torch/csrc/python/types/types.h>

namespace torch::python {

PyTypeObject FunctionContextType = type_object("torch._C._FunctionBase");

namespace {

using at::Tensor;
using autograd::TensorVec;

// ---- life ---------------------------------------------------------------------------------------
PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* py = type->tp_alloc(type, 0);
  if (!py) return nullptr;
  FunctionContext* self = as_context(py);
  new (&self->is_tensor_input) std::vector<bool>();
  new (&self->saved) std::vector<autograd::SavedVariable>();
  self->materialize_grads = true;
  return py;
}

int context_traverse(PyObject* py, visitproc visit, void* arg) {
  FunctionContext* self = as_context(py);
  Py_VISIT(self->dict);
  Py_VISIT(self->needs_input_grad);
  Py_VISIT(self->to_save);
  Py_VISIT(self->saved_for_forward);
  Py_VISIT(self->non_differentiable);
  Py_VISIT(self->dirty_tensors);
  return 0;
}
int context_clear(PyObject* py) {
  FunctionContext* self = as_context(py);
  Py_CLEAR(self->dict);
  Py_CLEAR(self->needs_input_grad);
  Py_CLEAR(self->to_save);
  Py_CLEAR(self->saved_for_forward);
  Py_CLEAR(self->non_differentiable);
  Py_CLEAR(self->dirty_tensors);
  return 0;
}
void context_dealloc(PyObject* py) {
  FunctionContext* self = as_context(py);
  PyObject_GC_UnTrack(py);
  if (self->weakrefs) PyObject_ClearWeakRefs(py);
  context_clear(py);
  using Saved = std::vector<autograd::SavedVariable>;
  using Flags = std::vector<bool>;
  self->saved.~Saved();
  self->is_tensor_input.~Flags();
  // For instances of Python subclasses CPython releases the class itself.
  Py_TYPE(py)->tp_free(py);
}

// ---- attributes ---------------------------------------------------------------------------------
FunctionNode& need_node(PyObject* py, const char* what) {
  FunctionNode* node = as_context(py)->node;
  TORCH_CHECK(
      node != nullptr, "Attribute '", what,
      "' is invalid for this instance of _C._FunctionBase. Accessing this attribute directly "
      "on an instance of autograd.Function is a legacy access pattern that is no longer "
      "supported.");
  return *node;
}

template <PyObject* FunctionContext::*kSlot> PyObject* get_slot(PyObject* py, void*) {
  PyObject* value = as_context(py)->*kSlot;
  return value ? PyRef::borrow(value).release() : new_none();
}
template <PyObject* FunctionContext::*kSlot> int set_slot(PyObject* py, PyObject* value, void*) {
  PyObject* old = as_context(py)->*kSlot;
  Py_XINCREF(value);
  as_context(py)->*kSlot = value == Py_None ? nullptr : value;
  if (value == Py_None) Py_DECREF(value);
  Py_XDECREF(old);
  return 0;
}
template <bool FunctionContext::*kFlag> PyObject* get_flag(PyObject* py, void*) {
  return new_bool(as_context(py)->*kFlag);
}
template <bool FunctionContext::*kFlag> int set_flag(PyObject* py, PyObject* value, void*) {
  if (!value || !PyBool_Check(value)) {
    PyErr_SetString(PyExc_RuntimeError, "expected a bool");
    return -1;
  }
  as_context(py)->*kFlag = value == Py_True;
  return 0;
}

PyObject* get_raw_saved_tensors(PyObject* py, void*) {
  return guarded([&] { return raw_saved_of_context(py); });
}
PyObject* get_saved_tensors(PyObject* py, void*) {
  return guarded([&]() -> PyObject* {
    FunctionContext* self = as_context(py);
    // Kept for the time of jvp only.
    if (self->saved_for_forward) return PyRef::borrow(self->saved_for_forward).release();
    PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(self->saved.size())));
    for (Py_ssize_t i = 0, n = PyTuple_GET_SIZE(out.get()); i < n || self->released; ++i) {
      // Asked each time: an unpack hook may run the backward pass that frees what is saved.
      TORCH_CHECK(
          !self->released,
          "Trying to backward through the graph a second time (or directly access saved tensors "
          "after they have already been freed). Saved intermediate values of the graph are freed "
          "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
          "backward through the graph a second time or if you need to access saved tensors after "
          "calling backward.");
      Tensor value = self->saved[static_cast<size_t>(i)].unpack(self->node);
      PyTuple_SET_ITEM(out.get(), i, checked(wrap(std::move(value))).release());
    }
    return out.release();
  });
}
PyObject* get_saved_variables(PyObject* py, void* closure) {
  return guarded([&]() -> PyObject* {
    TORCH_WARN_DEPRECATION("'saved_variables' is deprecated; use 'saved_tensors'");
    return get_saved_tensors(py, closure);
  });
}
PyObject* get_next_functions(PyObject* py, void*) {
  return guarded([&] { return node_next_functions(need_node(py, "next_functions")); });
}
PyObject* get_metadata(PyObject* py, void*) {
  return guarded([&] { return node_metadata(need_node(py, "metadata")); });
}
PyObject* get_input_metadata(PyObject* py, void*) {
  return guarded([&] { return node_input_metadata(need_node(py, "_input_metadata")); });
}
PyObject* py_name(PyObject* py, PyObject*) {
  return guarded([&] { return wrap(std::string(Py_TYPE(py)->tp_name)); });
}
PyObject* py_sequence_nr(PyObject* py, PyObject*) {
  return guarded(
      [&] { return PyLong_FromUnsignedLongLong(need_node(py, "_sequence_nr").sequence_nr()); });
}
PyObject* py_register_hook(PyObject* py, PyObject* hook) {
  return guarded([&] { return node_register_hook(need_node(py, "register_hook"), hook); });
}
PyObject* py_register_prehook(PyObject* py, PyObject* hook) {
  return guarded([&] { return node_register_prehook(need_node(py, "register_prehook"), hook); });
}

// Frees what is saved where the backward pass that runs this node is the last that may ask for it.
// A backward that has read its tensors calls it, so that each can go when it was used.
PyObject* py_maybe_clear_saved_tensors(PyObject* py, PyObject*) {
  return guarded([&]() -> PyObject* {
    FunctionNode* node = as_context(py)->node;
    if (node && autograd::is_last_run(node)) node->release_variables();
    return new_none();
  });
}

// Calling grad_fn by hand.
PyObject* context_call(PyObject* py, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    TensorVec grads;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* item = PyTuple_GET_ITEM(args, i);
      if (item != Py_None && !is_tensor(item)) raise_type_error("expected tensors or None");
      grads.push_back(item == Py_None ? Tensor() : tensor_of(item));
    }
    FunctionNode& node = need_node(py, "__call__");
    TORCH_CHECK(grads.size() >= node.num_inputs(), node.name(), " expected ", node.num_inputs(),
                " gradients, got ", grads.size());
    const TensorVec out = node.apply(std::move(grads));
    if (out.size() == 1) return wrap(out[0]);
    return wrap(out.vec());
  });
}

PyGetSetDef context_properties[] = {
    {"saved_tensors", get_saved_tensors, nullptr, nullptr, nullptr},
    {"_raw_saved_tensors", get_raw_saved_tensors, nullptr, nullptr, nullptr},
    {"saved_variables", get_saved_variables, nullptr, nullptr, nullptr},
    {"next_functions", get_next_functions, nullptr, nullptr, nullptr},
    {"metadata", get_metadata, nullptr, nullptr, nullptr},
    {"_input_metadata", get_input_metadata, nullptr, nullptr, nullptr},
    {"needs_input_grad", get_slot<&FunctionContext::needs_input_grad>,
     set_slot<&FunctionContext::needs_input_grad>, nullptr, nullptr},
    {"to_save", get_slot<&FunctionContext::to_save>, set_slot<&FunctionContext::to_save>, nullptr,
     nullptr},
    {"saved_for_forward", get_slot<&FunctionContext::saved_for_forward>,
     set_slot<&FunctionContext::saved_for_forward>, nullptr, nullptr},
    {"non_differentiable", get_slot<&FunctionContext::non_differentiable>,
     set_slot<&FunctionContext::non_differentiable>, nullptr, nullptr},
    {"dirty_tensors", get_slot<&FunctionContext::dirty_tensors>,
     set_slot<&FunctionContext::dirty_tensors>, nullptr, nullptr},
    {"materialize_grads", get_flag<&FunctionContext::materialize_grads>,
     set_flag<&FunctionContext::materialize_grads>, nullptr, nullptr},
    {"_is_pure_view", get_flag<&FunctionContext::pure_view>, set_flag<&FunctionContext::pure_view>,
     nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef context_methods[] = {
    {"name", py_name, METH_NOARGS, nullptr},
    {"register_hook", py_register_hook, METH_O, nullptr},
    {"register_prehook", py_register_prehook, METH_O, nullptr},
    {"_sequence_nr", py_sequence_nr, METH_NOARGS, nullptr},
    {"maybe_clear_saved_tensors", py_maybe_clear_saved_tensors, METH_NOARGS, nullptr},
    {"apply", as_method(function_apply), METH_CLASS | METH_FASTCALL | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// The backward (or vjp) of the class whose context this is.
PyRef backward_function(PyObject* context) {
  PyRef cls = checked(PyObject_GetAttrString(context, "_forward_cls"));
  PyRef backward(PyObject_GetAttrString(cls.get(), "_resolved_backward"));
  if (!backward) PyErr_Clear();
  return backward ? std::move(backward) : checked(PyObject_GetAttrString(cls.get(), "backward"));
}

Tensor zeros_for(const autograd::InputMetadata& meta) {
  if (meta.dtype == at::ScalarType::Undefined) return {};
  return at::zeros_symint(meta.sizes, meta.dtype, meta.layout, meta.device, std::nullopt);
}

} // namespace

// ---- the node -----------------------------------------------------------------------------------
FunctionNode::FunctionNode(PyObject* context) : context_(PyRef::borrow(context).release()) {
  as_context(context)->node = this;
}
FunctionNode::~FunctionNode() { drop_context(); }

void FunctionNode::drop_context() {
  PyObject* context = std::exchange(context_, nullptr);
  if (!context || !python_exists()) return;
  WithGil gil;
  as_context(context)->node = nullptr;
  Py_DECREF(context);
}
void FunctionNode::release_resources() {
  drop_context();
  Node::release_resources();
}

std::string FunctionNode::name() const {
  return context_ ? Py_TYPE(context_)->tp_name : "Function";
}

void FunctionNode::release_variables() {
  WithGil gil;
  FunctionContext* context = as_context(context_);
  context->saved.clear();
  context->released = true;
}

PyRef FunctionNode::arguments(const TensorVec& grads) {
  PyRef args = checked(PyTuple_New(static_cast<Py_ssize_t>(output_index.size()) + 1));
  Py_INCREF(context_);
  PyTuple_SET_ITEM(args.get(), 0, context_);
  for (size_t i = 0; i < output_index.size(); ++i) {
    const int index = output_index[i];
    Tensor grad = index >= 0 && static_cast<size_t>(index) < grads.size() ? grads[index] : Tensor();
    if (!grad.defined() && index >= 0 && as_context(context_)->materialize_grads) {
      grad = zeros_for(input_metadata(index));
    }
    PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i) + 1,
                     checked(wrap(std::move(grad))).release());
  }
  return args;
}

TensorVec FunctionNode::results(PyObject* returned) {
  PyRef tuple =
      PyTuple_Check(returned) ? PyRef::borrow(returned) : checked(PyTuple_Pack(1, returned));
  const std::vector<bool>& is_tensor_input = as_context(context_)->is_tensor_input;
  const auto expected = static_cast<Py_ssize_t>(is_tensor_input.size());
  Py_ssize_t count = PyTuple_GET_SIZE(tuple.get());
  while (count > expected && PyTuple_GET_ITEM(tuple.get(), count - 1) == Py_None) --count;
  TORCH_CHECK(count == expected, "function ", name(),
              " returned an incorrect number of gradients (expected ", int64_t(expected), ", got ",
              int64_t(count), ")");
  TensorVec out;
  for (Py_ssize_t i = 0; i < expected; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), i);
    if (!is_tensor_input[static_cast<size_t>(i)]) {
      TORCH_CHECK(item == Py_None, "function ", name(),
                  " returned a gradient different from None at position ", int64_t(i + 1),
                  ", but the corresponding forward input was not a Variable");
      continue;
    }
    if (item != Py_None && !is_tensor(item)) {
      raise_type_error(c10::str("expected Variable or None (got ", type_name(item), ")"));
    }
    out.push_back(item == Py_None ? Tensor() : tensor_of(item));
  }
  return out;
}

TensorVec FunctionNode::apply(TensorVec grads) {
  WithGil gil;
  // A hook or the backward itself may drop the graph that owns this node.
  const auto self = c10::intrusive_ptr<Node>::unsafe_retain(this);
  PyRef backward = backward_function(context_);
  PyRef args = arguments(grads);
  grads.clear();
  PyRef returned = checked(PyObject_CallObject(backward.get(), args.get()));
  return results(returned.get());
}

// ---- for other files ----------------------------------------------------------------------------
PyObject* context_of_node(const autograd::Node& node) {
  const auto* mine = dynamic_cast<const FunctionNode*>(&node);
  return mine ? mine->context() : nullptr;
}
bool is_function_context(PyObject* object) {
  return PyObject_TypeCheck(object, &FunctionContextType);
}
bool is_function_context_type(PyObject* type) {
  return PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), &FunctionContextType);
}
autograd::Node* node_of_context(PyObject* context) { return as_context(context)->node; }

bool init_autograd_function(PyObject* module) {
  PyTypeObject& type = FunctionContextType;
  type.tp_basicsize = sizeof(FunctionContext);
  type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  type.tp_new = context_new;
  type.tp_dealloc = context_dealloc;
  type.tp_traverse = context_traverse;
  type.tp_clear = context_clear;
  type.tp_dictoffset = offsetof(FunctionContext, dict);
  type.tp_weaklistoffset = offsetof(FunctionContext, weakrefs);
  type.tp_getset = context_properties;
  type.tp_methods = context_methods;
  type.tp_call = context_call;
  return add_type(module, &type);
}

} // namespace torch::python
