// See saved_tensor.h. An object owns the node (or the context of a Function) and finds the tensor
// in it on each use, so that it stays valid, and says so, after the node has freed what it saved.
#include <torch/csrc/python/autograd/saved_tensor.h>

#include <torch/csrc/autograd/raw_saved.h>
#include <torch/csrc/python/autograd/function_context.h>
#include <torch/csrc/python/autograd/saved.h>

namespace torch::python {
namespace {

using autograd::Node;
using NodePtr = c10::intrusive_ptr<Node>;

struct SavedTensor {
  PyObject_HEAD NodePtr node;
  const autograd::SavedField* field; // null: of a Function's context
  PyObject* context;
  size_t index;
};
PyTypeObject SavedTensorType = type_object("torch._C._autograd.SavedTensor");

void saved_dealloc(PyObject* py) {
  auto* self = reinterpret_cast<SavedTensor*>(py);
  autograd::release_node(std::move(self->node));
  self->node.~NodePtr();
  Py_XDECREF(self->context);
  Py_TYPE(py)->tp_free(py);
}

PyObject* new_saved(NodePtr node, const autograd::SavedField* field, PyObject* context,
                    size_t index) {
  PyObject* made = checked(SavedTensorType.tp_alloc(&SavedTensorType, 0)).release();
  auto* self = reinterpret_cast<SavedTensor*>(made);
  new (&self->node) NodePtr(std::move(node));
  self->field = field;
  self->context = context;
  Py_XINCREF(context);
  self->index = index;
  return made;
}

autograd::SavedVariable& variable_of(SavedTensor& self) {
  if (self.field) return autograd::saved_variable(*self.field, *self.node, self.index);
  FunctionContext& context = *as_context(self.context);
  TORCH_CHECK(!context.released && self.index < context.saved.size(),
              "Calling register_hooks on a saved tensor after it has been freed. "
              "retain_graph=True keeps what backward() or autograd.grad() would free.");
  return context.saved[self.index];
}

PyObject* py_register_hooks(PyObject* py, PyObject* args) {
  PyObject *pack = nullptr, *unpack = nullptr;
  if (!PyArg_ParseTuple(args, "OO:register_hooks", &pack, &unpack)) return nullptr;
  return guarded([&] {
    if (!PyCallable_Check(pack) || !PyCallable_Check(unpack)) {
      raise_type_error(
          c10::str("register_hooks(): incompatible function arguments. Two callables are "
                   "expected, pack_hook and unpack_hook, got ",
                   type_name(pack), " and ", type_name(unpack)));
    }
    auto& self = *reinterpret_cast<SavedTensor*>(py);
    Node* owner = self.field ? self.node.get() : as_context(self.context)->node;
    variable_of(self).register_hooks(make_saved_tensor_hooks(pack, unpack), owner);
    return new_none();
  });
}

PyObject* saved_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError,
                  "Trying to create a SavedTensor object from Python is forbidden.");
  return nullptr;
}

PyMethodDef saved_methods[] = {{"register_hooks", py_register_hooks, METH_VARARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};

} // namespace

PyObject* raw_saved_field(Node& node, const autograd::SavedField& field) {
  const NodePtr owner = NodePtr::unsafe_retain(&node);
  if (autograd::saved_kind(field) == autograd::SavedKind::Tensor)
    return new_saved(owner, &field, nullptr, 0);
  const size_t count = autograd::saved_count(field, node);
  PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), new_saved(owner, &field, nullptr, i));
  return out.release();
}

PyObject* raw_saved_of_context(PyObject* context) {
  const FunctionContext& self = *as_context(context);
  TORCH_CHECK(!self.released,
              "Trying to directly access saved tensors after they have already been freed. "
              "retain_graph=True keeps what backward() or autograd.grad() would free.");
  PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(self.saved.size())));
  for (size_t i = 0; i < self.saved.size(); ++i)
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                     new_saved(NodePtr(), nullptr, context, i));
  return out.release();
}

bool init_saved_tensor(PyObject* module) {
  SavedTensorType.tp_basicsize = sizeof(SavedTensor);
  SavedTensorType.tp_flags = Py_TPFLAGS_DEFAULT;
  SavedTensorType.tp_new = saved_new;
  SavedTensorType.tp_dealloc = saved_dealloc;
  SavedTensorType.tp_methods = saved_methods;
  return add_type(module, &SavedTensorType);
}

} // namespace torch::python
