// The node: its fields, its place in the list, its inputs and users. What prints, formats or judges
// a node is Python (torch/fx/node.py).
#include <torch/csrc/fx/fx.h>

#include <algorithm>

namespace torch::fx {

PyTypeObject NodeType = python::type_object("torch._C._fx._NodeBase");
PythonTypes python_types{&NodeType, &PyList_Type, &PyDict_Type};

namespace {

using python::check_status;
using python::checked;
using python::python_error;

GraphObject* graph_of(NodeObject* node) { return reinterpret_cast<GraphObject*>(node->graph); }

// ---- order labels
// The last node's label is its neighbour's plus a stride. Between two nodes a new label lies a
// small step from the neighbour that the next insertion will not move away from: insertions before
// an anchor come in order, those after an anchor in reverse. So about 2^24 of them fit at one place
// before all labels are dealt anew.
constexpr uint64_t order_stride = uint64_t{1} << 36;
constexpr uint64_t order_step = uint64_t{1} << 12;

void deal_labels(NodeObject* root) {
  uint64_t label = 0;
  for (NodeObject* n = root->next; n != root; n = n->next) n->order = label += order_stride;
}

void label_new(NodeObject* root, NodeObject* node, bool reverse) {
  const uint64_t low = node->prev == root ? 0 : node->prev->order;
  if (node->next == root) {
    node->order = low + order_stride;
    return;
  }
  const uint64_t high = node->next->order;
  if (high < low + 2) {
    deal_labels(root);
    return;
  }
  const uint64_t step = std::min((high - low) / 2, order_step);
  node->order = reverse ? high - step : low + step;
}

// ---- inputs
class Freeze final : public LeafMap {
 public:
  PyObject* map(PyObject* leaf) override { return Py_NewRef(leaf); }
};

// The value with one node replaced by another value.
class Substitute final : public LeafMap {
 public:
  Substitute(PyObject* old, PyObject* replacement) : old_(old), new_(replacement) {}
  PyObject* map(PyObject* leaf) override { return Py_NewRef(leaf == old_ ? new_ : leaf); }

 private:
  PyObject* old_;
  PyObject* new_;
};

template <class F> void for_each_input(NodeObject* node, F&& visit) {
  if (node->args) for_each_node(node->args, visit);
  if (node->kwargs) for_each_node(node->kwargs, visit);
}

void leave_inputs(NodeObject* node) {
  for_each_input(node, [node](NodeObject* input) {
    if (!input->users) return;
    const int known = PyDict_Contains(input->users, as_object(node));
    check_status(known);
    if (known) check_status(PyDict_DelItem(input->users, as_object(node)));
  });
}

void join_inputs(NodeObject* node) {
  for_each_input(node, [node](NodeObject* input) {
    check_status(PyDict_SetItem(users_of(input), as_object(node), Py_None));
  });
}

// {Node: None} of the inputs in order, each once.
PyRef inputs_of(NodeObject* node) {
  PyRef out = checked(PyDict_New());
  for_each_input(node, [&out](NodeObject* input) {
    check_status(PyDict_SetItem(out.get(), as_object(input), Py_None));
  });
  return out;
}

void replace_input(NodeObject* node, PyObject* old, PyObject* replacement) {
  Substitute leaf(old, replacement);
  PyRef args(map_aggregate(node->args, leaf));
  PyRef kwargs(map_aggregate(node->kwargs, leaf));
  set_inputs(node, args.get(), kwargs.get());
}

// ---- methods
int require_node(PyObject* o, const char* method) {
  if (is_node(o)) return 1;
  PyErr_Format(PyExc_TypeError, "Node.%s(): expected a torch.fx.Node, got %s", method,
               python::type_name(o));
  return 0;
}

PyObject* place_before(NodeObject* position, NodeObject* x, const char* method, bool reverse) {
  return python::guarded([&]() -> PyObject* {
    if (position->graph != x->graph)
      python::raise(PyExc_AssertionError, "Attempting to move a Node into a different Graph");
    require_listed(position);
    if (position == x) {
      check_status(PyErr_WarnFormat(PyExc_UserWarning, 1,
                                    "Trying to %s a node to itself. This behavior has no effect "
                                    "on the graph.",
                                    method));
      return python::new_none();
    }
    PyRef keep = PyRef::borrow(as_object(x));
    unlink(x);
    link_before(position, x, reverse);
    return python::new_none();
  });
}

// The one argument `x`, by position or name; null with the error set.
NodeObject* node_argument(PyObject* const* args, Py_ssize_t n, PyObject* names,
                          const char* method) {
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  if (n + named != 1 ||
      (named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "x") != 0)) {
    PyErr_Format(PyExc_TypeError, "Node.%s() takes one argument, x", method);
    return nullptr;
  }
  return require_node(args[0], method) ? as_node(args[0]) : nullptr;
}

PyObject* py_prepend(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  NodeObject* x = node_argument(args, n, names, "prepend");
  return x ? place_before(as_node(self), x, "prepend", false) : nullptr;
}
PyObject* py_append(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  NodeObject* x = node_argument(args, n, names, "append");
  if (!x) return nullptr;
  NodeObject* position = as_object(x) == self ? x : as_node(self)->next;
  if (position == x && as_object(x) != self) Py_RETURN_NONE;
  if (!position) position = as_node(self); // refused there: it stands in no list
  return place_before(position, x, "append", true);
}

PyObject* py_remove_from_list(PyObject* self, PyObject*) {
  return python::guarded([&]() -> PyObject* {
    unlink(as_node(self));
    return python::new_none();
  });
}

PyObject* py_update(PyObject* self, PyObject* args) {
  PyObject *new_args = nullptr, *new_kwargs = nullptr;
  if (!PyArg_ParseTuple(args, "OO:_update_args_kwargs", &new_args, &new_kwargs)) return nullptr;
  return python::guarded([&]() -> PyObject* {
    set_inputs(as_node(self), new_args, new_kwargs);
    return python::new_none();
  });
}

PyObject* py_replace_input(PyObject* self, PyObject* args) {
  PyObject *old = nullptr, *replacement = nullptr;
  if (!PyArg_ParseTuple(args, "OO:_replace_input_with", &old, &replacement)) return nullptr;
  return python::guarded([&]() -> PyObject* {
    replace_input(as_node(self), old, replacement);
    return python::new_none();
  });
}

// _replace_uses(replacement, users): makes each of `users` use the replacement.
PyObject* py_replace_uses(PyObject* self, PyObject* args) {
  PyObject *replacement = nullptr, *users = nullptr;
  if (!PyArg_ParseTuple(args, "OO!:_replace_uses", &replacement, &PyList_Type, &users))
    return nullptr;
  return python::guarded([&]() -> PyObject* {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(users); ++i) {
      PyObject* user = PyList_GET_ITEM(users, i);
      if (!require_node(user, "replace_all_uses_with")) throw python_error();
      replace_input(as_node(user), self, replacement);
    }
    return python::new_none();
  });
}

PyObject* repr(PyObject* self) {
  NodeObject* node = as_node(self);
  if (node->repr_fn && node->repr_fn != Py_None) return PyObject_CallOneArg(node->repr_fn, self);
  return PyObject_Str(node->name ? node->name : words.empty_string);
}

PyObject* compare(PyObject* self, PyObject* other, int how) {
  if (!is_node(other)) Py_RETURN_NOTIMPLEMENTED;
  if (how == Py_EQ) return python::new_bool(self == other);
  if (how == Py_NE) return python::new_bool(self != other);
  const uint64_t a = as_node(self)->order, b = as_node(other)->order;
  Py_RETURN_RICHCOMPARE(a, b, how);
}

// ---- attributes
template <PyObject* NodeObject::*Field> PyObject* get_field(PyObject* self, void*) {
  PyObject* value = as_node(self)->*Field;
  return Py_NewRef(value ? value : Py_None);
}
template <PyObject* NodeObject::*Field> int set_field(PyObject* self, PyObject* value, void*) {
  if (!value) {
    PyErr_SetString(PyExc_AttributeError, "an attribute of a Node cannot be deleted");
    return -1;
  }
  PyObject* old = as_node(self)->*Field;
  as_node(self)->*Field = Py_NewRef(value);
  Py_XDECREF(old);
  return 0;
}
// A field the index is sorted by.
template <PyObject* NodeObject::*Field>
int set_key(PyObject* self, PyObject* value, void* closure) {
  return python::guarded([&]() -> int {
    if (Field == &NodeObject::op && value && !PyUnicode_Check(value))
      python::raise_type_error("Node.op must be a str");
    index_remove(as_node(self));
    const int status = set_field<Field>(self, value, closure);
    index_add(as_node(self));
    return status;
  });
}
template <PyObject* NodeObject::*Field>
int set_dict(PyObject* self, PyObject* value, void* closure) {
  if (value && !PyDict_Check(value)) {
    PyErr_Format(PyExc_TypeError, "expected a dict, got %s", python::type_name(value));
    return -1;
  }
  return set_field<Field>(self, value, closure);
}
int set_graph(PyObject* self, PyObject* value, void* closure) {
  if (!value || !PyObject_TypeCheck(value, &GraphType)) {
    PyErr_SetString(PyExc_TypeError, "Node.graph must be a torch.fx.Graph");
    return -1;
  }
  return set_field<&NodeObject::graph>(self, value, closure);
}

PyObject* get_users(PyObject* self, void*) {
  return python::guarded([&] { return Py_NewRef(users_of(as_node(self))); });
}
PyObject* get_meta(PyObject* self, void*) {
  NodeObject* node = as_node(self);
  if (!node->meta && !(node->meta = PyDict_New())) return nullptr;
  return Py_NewRef(node->meta);
}
int set_args(PyObject* self, PyObject* value, void*) {
  return python::guarded([&]() -> int {
    if (!value) python::raise(PyExc_AttributeError, "args of a Node cannot be deleted");
    set_inputs(as_node(self), value, nullptr);
    return 0;
  });
}
int set_kwargs(PyObject* self, PyObject* value, void*) {
  return python::guarded([&]() -> int {
    if (!value) python::raise(PyExc_AttributeError, "kwargs of a Node cannot be deleted");
    if (!PyDict_Check(value))
      python::raise_type_error(std::string("kwargs of a Node must be a dict, got ") +
                               python::type_name(value));
    set_inputs(as_node(self), nullptr, value);
    return 0;
  });
}

// The neighbour, over nodes that were erased meanwhile.
PyObject* get_next(PyObject* self, void*) {
  NodeObject* n = as_node(self)->next;
  while (n && n->erased) n = n->next;
  return Py_NewRef(n ? as_object(n) : self);
}
PyObject* get_prev(PyObject* self, void*) {
  NodeObject* n = as_node(self)->prev;
  while (n && n->erased) n = n->prev;
  return Py_NewRef(n ? as_object(n) : self);
}
PyObject* get_erased(PyObject* self, void*) { return python::new_bool(as_node(self)->erased); }
PyObject* get_order(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(as_node(self)->order);
}
PyObject* get_inputs(PyObject* self, void*) {
  return python::guarded([&] { return inputs_of(as_node(self)).release(); });
}
PyObject* get_all_inputs(PyObject* self, void*) {
  return python::guarded([&] { return PyDict_Keys(inputs_of(as_node(self)).get()); });
}

// ---- life
// A node is whole before __init__ ran: without inputs, in no graph.
PyObject* node_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyRef self(type->tp_alloc(type, 0));
  PyRef kwargs(PyDict_New());
  if (!self || !kwargs) return nullptr;
  NodeObject* node = as_node(self.get());
  node->name = Py_NewRef(words.empty_string);
  node->op = Py_NewRef(words.empty_string);
  node->target = Py_NewRef(words.empty_string);
  node->args = Py_NewRef(words.empty_tuple);
  node->kwargs = kwargs.release();
  return self.release();
}

int init(PyObject* self, PyObject* args, PyObject* kwargs) {
  const char* names[] = {"graph", "name", "op", "target", "args", "kwargs", "return_type", nullptr};
  PyObject *graph, *name, *op, *target, *a, *k, *type = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!UUOOO|O:Node", const_cast<char**>(names),
                                   &GraphType, &graph, &name, &op, &target, &a, &k, &type))
    return -1;
  return python::guarded([&]() -> int {
    check_target(graph, name, op, target);
    fill_node(as_node(self), graph, name, op, target, a, k, type);
    return 0;
  });
}
int traverse(PyObject* self, visitproc visit, void* arg) {
  NodeObject* n = as_node(self);
  for (PyObject* field : {n->graph, n->target, n->args, n->kwargs, n->type, n->users, n->meta,
                          n->repr_fn, as_object(n->prev), as_object(n->next)})
    Py_VISIT(field);
  return 0;
}
int clear(PyObject* self) {
  NodeObject* n = as_node(self);
  PyObject** const fields[] = {&n->graph,  &n->name, &n->op,    &n->target, &n->args,
                               &n->kwargs, &n->type, &n->users, &n->meta,   &n->repr_fn};
  for (PyObject** field : fields) Py_CLEAR(*field);
  Py_CLEAR(n->prev);
  Py_CLEAR(n->next);
  return 0;
}
void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  Py_TYPE(self)->tp_free(self);
}

PyMethodDef methods[] = {{"prepend", python::as_method(py_prepend), METH_FASTCALL | METH_KEYWORDS,
                          "prepend($self, x)\n--\n\nMoves node x to directly before this one."},
                         {"append", python::as_method(py_append), METH_FASTCALL | METH_KEYWORDS,
                          "append($self, x)\n--\n\nMoves node x to directly after this one."},
                         {"_remove_from_list", py_remove_from_list, METH_NOARGS, nullptr},
                         {"_update_args_kwargs", py_update, METH_VARARGS, nullptr},
                         {"_replace_input_with", py_replace_input, METH_VARARGS, nullptr},
                         {"_replace_uses", py_replace_uses, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyGetSetDef attributes[] = {
    {"graph", get_field<&NodeObject::graph>, set_graph, "The graph the node belongs to.", nullptr},
    {"name", get_field<&NodeObject::name>, set_field<&NodeObject::name>,
     "The name of the value, unique in its graph.", nullptr},
    {"op", get_field<&NodeObject::op>, set_key<&NodeObject::op>,
     "placeholder, get_attr, call_function, call_method, call_module or output.", nullptr},
    {"target", get_field<&NodeObject::target>, set_key<&NodeObject::target>,
     "What is called: a function, or the name of a method, module or attribute.", nullptr},
    {"type", get_field<&NodeObject::type>, set_field<&NodeObject::type>,
     "The annotated type of the value, or None.", nullptr},
    {"_repr_fn", get_field<&NodeObject::repr_fn>, set_field<&NodeObject::repr_fn>, nullptr,
     nullptr},
    {"args", get_field<&NodeObject::args>, set_args, "Positional arguments.", nullptr},
    {"kwargs", get_field<&NodeObject::kwargs>, set_kwargs, "Keyword arguments.", nullptr},
    {"_args", get_field<&NodeObject::args>, nullptr, nullptr, nullptr},
    {"_kwargs", get_field<&NodeObject::kwargs>, nullptr, nullptr, nullptr},
    {"users", get_users, set_dict<&NodeObject::users>, "{node: None} of the users.", nullptr},
    {"meta", get_meta, set_dict<&NodeObject::meta>, "What passes note about the node.", nullptr},
    {"next", get_next, nullptr, "The node after this one.", nullptr},
    {"prev", get_prev, nullptr, "The node before this one.", nullptr},
    {"_next", get_next, nullptr, nullptr, nullptr},
    {"_prev", get_prev, nullptr, nullptr, nullptr},
    {"_erased", get_erased, nullptr, nullptr, nullptr},
    {"_sort_key", get_order, nullptr, nullptr, nullptr},
    {"_input_nodes", get_inputs, nullptr, nullptr, nullptr},
    {"all_input_nodes", get_all_inputs, nullptr, "The nodes this one uses, each once.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
} // namespace

PyObject* users_of(NodeObject* node) {
  if (!node->users) node->users = checked(PyDict_New()).release();
  return node->users;
}

void set_inputs(NodeObject* node, PyObject* args, PyObject* kwargs) {
  Freeze freeze;
  PyRef frozen_args(args ? map_aggregate(args, freeze) : nullptr);
  PyRef frozen_kwargs(kwargs ? map_aggregate(kwargs, freeze) : nullptr);
  leave_inputs(node);
  PyRef old_args, old_kwargs; // freed when the node is whole again
  if (frozen_args) old_args = PyRef(std::exchange(node->args, frozen_args.release()));
  if (frozen_kwargs) old_kwargs = PyRef(std::exchange(node->kwargs, frozen_kwargs.release()));
  join_inputs(node);
}

void fill_node(NodeObject* node, PyObject* graph, PyObject* name, PyObject* op, PyObject* target,
               PyObject* args, PyObject* kwargs, PyObject* type) {
  const auto set = [](PyObject*& field, PyObject* value) { Py_XSETREF(field, Py_NewRef(value)); };
  set(node->graph, graph);
  set(node->name, name);
  set(node->op, op);
  set(node->target, target);
  set(node->type, type);
  set_inputs(node, args, kwargs);
}

void unlink(NodeObject* node) {
  if (!node->prev || node->prev->next != node) return;
  GraphObject* graph = graph_of(node);
  NodeObject *prev = node->prev, *next = node->next;
  // The node keeps its own links: an iterator that stands on it goes on from there.
  prev->next = next;
  next->prev = prev;
  Py_INCREF(prev);
  Py_INCREF(next);
  if (graph) --graph->length;
  index_remove(node);
  Py_DECREF(node);
  Py_DECREF(node);
}

void require_listed(NodeObject* node) {
  if (node->prev && node->prev->next == node) return;
  python::raise(PyExc_RuntimeError, "cannot insert next to Node " +
                                        python::repr_of(as_object(node)) +
                                        ": it stands in no graph");
}

void link_before(NodeObject* position, NodeObject* node, bool reverse) {
  NodeObject* prev = position->prev;
  PyRef old_prev(as_object(node->prev)), old_next(as_object(node->next));
  Py_INCREF(prev);
  Py_INCREF(position);
  node->prev = prev;
  node->next = position;
  Py_INCREF(node);
  Py_INCREF(node);
  prev->next = node;
  position->prev = node;
  Py_DECREF(position); // prev's link to it
  Py_DECREF(prev);     // position's link to it
  node->erased = false;
  GraphObject* graph = graph_of(node);
  ++graph->length;
  label_new(graph->root, node, reverse);
  index_add(node);
}

bool init_node(PyObject* module) {
  NodeType.tp_basicsize = sizeof(NodeObject);
  NodeType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  NodeType.tp_new = node_new;
  NodeType.tp_init = init;
  NodeType.tp_dealloc = dealloc;
  NodeType.tp_traverse = traverse;
  NodeType.tp_clear = clear;
  NodeType.tp_repr = repr;
  NodeType.tp_richcompare = compare;
  NodeType.tp_hash = reinterpret_cast<hashfunc>(_Py_HashPointer);
  NodeType.tp_methods = methods;
  NodeType.tp_getset = attributes;
  return python::add_type(module, &NodeType);
}

} // namespace torch::fx
