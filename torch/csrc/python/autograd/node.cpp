// See autograd_node.h. The type of a grad_fn object carries the node's name ("MulBackward0"); types
// are made when first met and live as long as the process.
#include <torch/csrc/python/autograd/node.h>

#include <cstring>
#include <map>
#include <vector>

#include <torch/csrc/autograd/raw_saved.h>
#include <torch/csrc/python/autograd/anomaly.h>
#include <torch/csrc/python/autograd/function.h>
#include <torch/csrc/python/autograd/hooks.h>
#include <torch/csrc/python/autograd/saved_tensor.h>
#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/sym/sym.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {
namespace {

using autograd::Edge;
using autograd::Node;
using autograd::TensorVec;
using NodePtr = c10::intrusive_ptr<Node>;

struct PyNode {
  PyObject_HEAD NodePtr node;
  PyObject* weakrefs;
};
PyTypeObject NodeBaseType = type_object("torch._C._NodeBase");
PyObject* gradient_edge_class = nullptr;

Node& self_node(PyObject* self) { return *reinterpret_cast<PyNode*>(self)->node; }

void node_dealloc(PyObject* py) {
  auto* self = reinterpret_cast<PyNode*>(py);
  if (self->weakrefs) PyObject_ClearWeakRefs(py);
  if (self->node) self->node->pyobj = nullptr;
  autograd::release_node(std::move(self->node));
  self->node.~NodePtr();
  Py_TYPE(py)->tp_free(py);
}

// ---- members ------------------------------------------------------------------------------------
PyObject* get_next_functions(PyObject* self, void*) {
  return guarded([&] { return node_next_functions(self_node(self)); });
}
PyObject* get_metadata(PyObject* self, void*) {
  return guarded([&] { return node_metadata(self_node(self)); });
}
PyObject* get_input_metadata(PyObject* self, void*) {
  return guarded([&] { return node_input_metadata(self_node(self)); });
}
PyObject* get_variable(PyObject* self, void*) {
  return guarded([&] {
    auto* leaf = dynamic_cast<autograd::AccumulateGrad*>(&self_node(self));
    if (!leaf) {
      raise(PyExc_AttributeError,
            c10::str("'", self_node(self).name(), "' object has no attribute 'variable'"));
    }
    return wrap(leaf->variable());
  });
}
// Nodes of no operator's formula, which name() gives with the namespace of PyTorch's classes.
bool is_written_by_hand(const std::string& name) {
  return name == "AccumulateGrad" || name == "CopySlices" || name == "CopyBackwards" ||
         name == "NotImplemented" || name == "WarnNotImplemented";
}
PyObject* py_name(PyObject* self, PyObject*) {
  return guarded([&] {
    const std::string name = self_node(self).name();
    return wrap(is_written_by_hand(name) ? "torch::autograd::" + name : name);
  });
}
PyObject* py_sequence_nr(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(self_node(self).sequence_nr());
}
PyObject* py_set_sequence_nr(PyObject* self, PyObject* value) {
  return guarded([&] {
    const unsigned long long nr = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) throw python_error();
    self_node(self).set_sequence_nr(nr);
    return new_none();
  });
}
PyObject* py_register_hook(PyObject* self, PyObject* hook) {
  return guarded([&] { return node_register_hook(self_node(self), hook); });
}
PyObject* py_register_prehook(PyObject* self, PyObject* hook) {
  return guarded([&] { return node_register_prehook(self_node(self), hook); });
}

// Runs the node by hand on gradients.
PyObject* node_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
      raise_type_error("keyword arguments are not supported");
    }
    TensorVec grads;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* item = PyTuple_GET_ITEM(args, i);
      if (item != Py_None && !is_tensor(item)) {
        raise_type_error(c10::str("expected Variable argument, but got ", type_name(item)));
      }
      grads.push_back(item == Py_None ? at::Tensor() : tensor_of(item));
    }
    Node& node = self_node(self);
    TORCH_CHECK(grads.size() >= node.num_inputs(), node.name(), " expected ", node.num_inputs(),
                " gradients, got ", grads.size());
    const TensorVec out = node.apply(std::move(grads));
    if (out.size() == 1) return wrap(out[0]);
    return gradients_tuple(out).release();
  });
}

PyGetSetDef node_properties[] = {{"next_functions", get_next_functions, nullptr, nullptr, nullptr},
                                 {"metadata", get_metadata, nullptr, nullptr, nullptr},
                                 {"_input_metadata", get_input_metadata, nullptr, nullptr, nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyGetSetDef leaf_properties[] = {{"variable", get_variable, nullptr, nullptr, nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef node_methods[] = {{"name", py_name, METH_NOARGS, nullptr},
                              {"register_hook", py_register_hook, METH_O, nullptr},
                              {"register_prehook", py_register_prehook, METH_O, nullptr},
                              {"_sequence_nr", py_sequence_nr, METH_NOARGS, nullptr},
                              {"_set_sequence_nr", py_set_sequence_nr, METH_O, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

// What the node keeps for its backward, by the name it has in the formula: `_saved_self`.
PyObject* get_saved(PyObject* self, void* closure) {
  return guarded([&]() -> PyObject* {
    Node& node = self_node(self);
    for (const autograd::SavedField& field : node.saved_fields()) {
      if (std::strcmp(field.name, static_cast<const char*>(closure)) != 0) continue;
      const char* member = reinterpret_cast<const char*>(&node) + field.offset;
      return from_ivalue(field.read(member, &node), nullptr).release();
    }
    raise(PyExc_AttributeError,
          c10::str(node.name(), " keeps no ", static_cast<const char*>(closure)));
  });
}

PyObject* get_raw_saved(PyObject* self, void* closure) {
  return guarded([&]() -> PyObject* {
    Node& node = self_node(self);
    for (const autograd::SavedField& field : node.saved_fields())
      if (std::strcmp(field.name, static_cast<const char*>(closure)) == 0)
        return raw_saved_field(node, field);
    raise(PyExc_AttributeError,
          c10::str(node.name(), " keeps no ", static_cast<const char*>(closure)));
  });
}

// The type for nodes like this one; kept for ever, as its objects may be. Nodes of one name may
// keep different things.
PyTypeObject* type_for(const Node& node) {
  struct Made {
    std::string name;
    std::vector<std::string> saved;
    std::vector<PyGetSetDef> properties;
    PyTypeObject type;
  };
  static std::map<std::pair<std::string, const void*>, Made*> types;
  const std::string name = node.name();
  const c10::ArrayRef<autograd::SavedField> fields = node.saved_fields();
  const auto key = std::make_pair(name, static_cast<const void*>(fields.data()));
  auto found = types.find(key);
  if (found != types.end()) return &found->second->type;
  auto* made = new Made{name, {}, {}, {}};
  made->saved.reserve(2 * fields.size()); // properties point to the texts
  for (const autograd::SavedField& field : fields) {
    auto* key_name = const_cast<char*>(field.name);
    made->saved.push_back(c10::str("_saved_", field.name));
    made->properties.push_back({made->saved.back().c_str(), get_saved, nullptr, nullptr, key_name});
    if (autograd::saved_kind(field) == autograd::SavedKind::Other) continue;
    made->saved.push_back(c10::str("_raw_saved_", field.name));
    made->properties.push_back(
        {made->saved.back().c_str(), get_raw_saved, nullptr, nullptr, key_name});
  }
  made->properties.push_back({nullptr, nullptr, nullptr, nullptr, nullptr});
  made->type = type_object(made->name.c_str());
  made->type.tp_base = &NodeBaseType;
  made->type.tp_basicsize = sizeof(PyNode);
  made->type.tp_flags = Py_TPFLAGS_DEFAULT;
  made->type.tp_getset = name == "AccumulateGrad" ? leaf_properties : made->properties.data();
  if (PyType_Ready(&made->type) < 0) throw python_error();
  types.emplace(key, made);
  return &made->type;
}

// ---- module functions ---------------------------------------------------------------------------
// _gradient_edge(tensor) -> (node, output number, token that keeps the node alive).
void free_token(PyObject* capsule) {
  auto* node = static_cast<Node*>(PyCapsule_GetPointer(capsule, "torch.node"));
  autograd::release_node(NodePtr::reclaim(node));
}
PyObject* py_gradient_edge(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(object)) raise_type_error("get_gradient_edge expects a tensor");
    TORCH_CHECK(tensor_of(object).requires_grad(),
                "It is not possible to get the gradient edge for a Tensor that does not require "
                "gradients");
    const Edge edge = autograd::gradient_edge(tensor_of(object));
    PyRef node = checked(wrap_node(edge.function));
    PyRef number = checked(PyLong_FromUnsignedLong(edge.input_nr));
    edge.function->incref();
    PyRef token(PyCapsule_New(edge.function.get(), "torch.node", free_token));
    if (!token) {
      edge.function->decref();
      throw python_error();
    }
    return checked(PyTuple_Pack(3, node.get(), number.get(), token.get())).release();
  });
}
PyObject* py_is_node(PyObject*, PyObject* object) {
  return new_bool(PyObject_TypeCheck(object, &NodeBaseType) || is_function_context(object));
}
PyObject* py_is_node_type(PyObject*, PyObject* type) {
  const bool known = PyType_Check(type) &&
                     (PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), &NodeBaseType) ||
                      is_function_context_type(type));
  return new_bool(known);
}
PyMethodDef module_functions[] = {{"_gradient_edge", py_gradient_edge, METH_O, nullptr},
                                  {"_is_node", py_is_node, METH_O, nullptr},
                                  {"_is_node_type", py_is_node_type, METH_O, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

} // namespace

PyObject* node_next_functions(Node& node) {
  // The number of x + 1 is a tensor to PyTorch's graphs, whose nodes have an edge for it.
  const std::string name = node.num_outputs() == 1 ? node.name() : std::string();
  const bool with_number = name == "AddBackward0" || name == "SubBackward0" ||
                           name == "MulBackward0" || name == "DivBackward0";
  PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(node.num_outputs() + with_number)));
  if (with_number) {
    PyTuple_SET_ITEM(out.get(), 1, checked(Py_BuildValue("(Oi)", Py_None, 0)).release());
  }
  for (size_t i = 0; i < node.num_outputs(); ++i) {
    const Edge& edge = node.next_edge(i);
    PyRef next = checked(wrap_node(edge.function));
    PyRef number = checked(PyLong_FromUnsignedLong(edge.input_nr));
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                     checked(PyTuple_Pack(2, next.get(), number.get())).release());
  }
  return out.release();
}

PyObject* node_metadata(Node& node) { return anomaly_metadata(node); }

PyObject* node_register_hook(Node& node, PyObject* hook) {
  return add_node_hook(node, hook, false);
}
PyObject* node_register_prehook(Node& node, PyObject* hook) {
  return add_node_hook(node, hook, true);
}

PyObject* node_input_metadata(Node& node) {
  PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(node.num_inputs())));
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const autograd::InputMetadata& meta = node.input_metadata(i);
    const c10::SymIntArrayRef sizes = meta.sizes;
    PyRef shape = checked(c10::has_symbolic(sizes) ? make_sym_size(sizes) : make_size(meta.sizes));
    PyRef dtype =
        meta.dtype == at::ScalarType::Undefined ? PyRef(new_none()) : checked(wrap(meta.dtype));
    PyRef device = checked(wrap(meta.device));
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                     checked(PyTuple_Pack(3, shape.get(), dtype.get(), device.get())).release());
  }
  return out.release();
}

PyObject* wrap_node(const NodePtr& node) {
  if (!node) return new_none();
  if (PyObject* context = context_of_node(*node)) {
    Py_INCREF(context);
    return context;
  }
  if (node->pyobj) {
    auto* known = static_cast<PyObject*>(node->pyobj);
    Py_INCREF(known);
    return known;
  }
  PyTypeObject* type = type_for(*node);
  PyObject* made = checked(type->tp_alloc(type, 0)).release();
  auto* self = reinterpret_cast<PyNode*>(made);
  new (&self->node) NodePtr(node);
  node->pyobj = made;
  return made;
}

NodePtr node_of(PyObject* object) {
  if (PyObject_TypeCheck(object, &NodeBaseType)) return reinterpret_cast<PyNode*>(object)->node;
  if (is_function_context(object)) {
    Node* node = node_of_context(object);
    TORCH_CHECK(node != nullptr, "this autograd.Function context belongs to no graph (any more)");
    return NodePtr::unsafe_retain(node);
  }
  raise_type_error(c10::str("expected a node of the backward graph, got ", type_name(object)));
}

Edge edge_of(PyObject* object) {
  if (is_tensor(object)) return autograd::gradient_edge(tensor_of(object));
  PyObject* cls = cached_attribute(gradient_edge_class, "torch.autograd.graph", "GradientEdge");
  if (!cls) throw python_error();
  const int matches = PyObject_IsInstance(object, cls);
  check_status(matches);
  if (!matches) {
    raise_type_error(c10::str("expected a Tensor or a GradientEdge, got ", type_name(object)));
  }
  PyRef node = checked(PyObject_GetAttrString(object, "node"));
  PyRef number = checked(PyObject_GetAttrString(object, "output_nr"));
  const long nr = PyLong_AsLong(number.get());
  if (nr == -1 && PyErr_Occurred()) throw python_error();
  Edge edge{node_of(node.get()), static_cast<uint32_t>(nr)};
  TORCH_CHECK_INDEX(nr >= 0 && static_cast<size_t>(nr) < edge.function->num_inputs(),
                    "GradientEdge: output_nr ", static_cast<int64_t>(nr), " is out of range for ",
                    edge.function->name());
  return edge;
}

int traverse_history(const at::Tensor& tensor, visitproc visit, void* arg) {
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor);
  if (!meta || !meta->grad_fn) return 0;
  // A node that someone else owns too is alive whatever happens to this tensor. The limit keeps a
  // collection from walking a long graph for each of its tensors; a context beyond it is simply
  // not seen.
  constexpr int kMaxNodes = 32;
  const Node* pending[kMaxNodes];
  int known = 0;
  const auto add = [&](const NodePtr& node) {
    if (node && node.use_count() == 1 && known < kMaxNodes) pending[known++] = node.get();
  };
  add(meta->grad_fn);
  for (int i = 0; i < known; ++i) {
    Py_VISIT(context_of_node(*pending[i]));
    for (const Edge& edge : pending[i]->next_edges()) add(edge.function);
  }
  return 0;
}

bool init_autograd_node(PyObject* module) {
  NodeBaseType.tp_basicsize = sizeof(PyNode);
  NodeBaseType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  NodeBaseType.tp_dealloc = node_dealloc;
  NodeBaseType.tp_weaklistoffset = offsetof(PyNode, weakrefs);
  NodeBaseType.tp_getset = node_properties;
  NodeBaseType.tp_methods = node_methods;
  NodeBaseType.tp_call = node_call;
  return add_type(module, &NodeBaseType) && PyModule_AddFunctions(module, module_functions) == 0;
}

} // namespace torch::python
