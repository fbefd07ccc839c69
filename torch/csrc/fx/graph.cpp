// The graph as a container: the list of nodes, the place where new ones go, their names, and the
// index by (op, target). Code generation, lint and everything that judges a graph are Python
// (torch/fx/graph.py).
#include <torch/csrc/fx/fx.h>

#include <algorithm>
#include <vector>

namespace torch::fx {

PyTypeObject GraphType = python::type_object("torch._C._fx._GraphBase");

namespace {

PyTypeObject NodeListType = python::type_object("torch._C._fx._node_list");
PyTypeObject NodeIterType = python::type_object("torch._C._fx._NodeIter");

using python::check_status;
using python::checked;
using python::python_error;

GraphObject* as_graph(PyObject* o) { return reinterpret_cast<GraphObject*>(o); }

// ---- nodes: a view of the list, and its iterator
struct NodeListObject {
  PyObject_HEAD PyObject* graph;
  bool backward;
};
struct NodeIterObject {
  PyObject_HEAD NodeObject* root;
  NodeObject* current;
  bool backward;
};

PyObject* new_list(PyObject* graph, bool backward) {
  auto* self = PyObject_GC_New(NodeListObject, &NodeListType);
  if (!self) return nullptr;
  self->graph = Py_NewRef(graph);
  self->backward = backward;
  PyObject_GC_Track(self);
  return reinterpret_cast<PyObject*>(self);
}
NodeListObject* as_list(PyObject* o) { return reinterpret_cast<NodeListObject*>(o); }
NodeIterObject* as_iter(PyObject* o) { return reinterpret_cast<NodeIterObject*>(o); }

PyObject* list_new(PyTypeObject*, PyObject* args, PyObject*) {
  PyObject* graph = nullptr;
  const char* direction = "_next";
  if (!PyArg_ParseTuple(args, "O!|s:_node_list", &GraphType, &graph, &direction)) return nullptr;
  return new_list(graph, std::string_view(direction) == "_prev");
}
Py_ssize_t list_length(PyObject* self) { return as_graph(as_list(self)->graph)->length; }
PyObject* list_iter(PyObject* self) {
  auto* it = PyObject_GC_New(NodeIterObject, &NodeIterType);
  if (!it) return nullptr;
  NodeObject* root = as_graph(as_list(self)->graph)->root;
  Py_INCREF(root);
  Py_INCREF(root);
  it->root = it->current = root;
  it->backward = as_list(self)->backward;
  PyObject_GC_Track(it);
  return reinterpret_cast<PyObject*>(it);
}
PyObject* list_reversed(PyObject* self, PyObject*) {
  return new_list(as_list(self)->graph, !as_list(self)->backward);
}
int list_contains(PyObject* self, PyObject* value) {
  if (!is_node(value)) return 0;
  return as_node(value)->graph == as_list(self)->graph && !as_node(value)->erased &&
         as_node(value)->prev && as_node(value)->prev->next == as_node(value) &&
         as_node(value) != as_graph(as_list(self)->graph)->root;
}
int list_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_list(self)->graph);
  return 0;
}
void list_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_CLEAR(as_list(self)->graph);
  PyObject_GC_Del(self);
}

// The step is taken when the next node is asked for: nodes inserted behind the current one are
// seen, and so is the list beyond a node that was erased meanwhile.
PyObject* iter_next(PyObject* self) {
  NodeIterObject* it = as_iter(self);
  NodeObject* n = it->current;
  do {
    n = it->backward ? n->prev : n->next;
  } while (n && n->erased);
  if (!n || n == it->root) return nullptr;
  Py_INCREF(n);
  Py_SETREF(it->current, n);
  return Py_NewRef(as_object(n));
}
int iter_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_object(as_iter(self)->root));
  Py_VISIT(as_object(as_iter(self)->current));
  return 0;
}
void iter_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_CLEAR(as_iter(self)->root);
  Py_CLEAR(as_iter(self)->current);
  PyObject_GC_Del(self);
}

// ---- index
// The dict under a key, made when it is missing (borrowed).
PyObject* dict_under(PyObject* dict, PyObject* key) {
  PyObject* inner = PyDict_GetItemWithError(dict, key);
  if (inner) return inner;
  if (PyErr_Occurred()) throw python_error();
  PyRef made = checked(PyDict_New());
  check_status(PyDict_SetItem(dict, key, made.get()));
  return PyDict_GetItemWithError(dict, key);
}

PyObject* existing_under(PyObject* dict, PyObject* key) {
  PyObject* inner = PyDict_GetItemWithError(dict, key);
  if (!inner && PyErr_Occurred()) throw python_error();
  return inner;
}

bool is_listed(NodeObject* node) { return node->prev && node->prev->next == node; }

void build_index(GraphObject* graph) {
  graph->index = checked(PyDict_New()).release();
  for (NodeObject* n = graph->root->next; n != graph->root; n = n->next) index_add(n);
}

void collect(PyObject* nodes, std::vector<NodeObject*>& out) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(nodes, &position, &key, &value)) out.push_back(as_node(key));
}

PyObject* py_find_nodes(PyObject* self, PyObject* args, PyObject* kwargs) {
  const char* names[] = {"op", "target", "sort", nullptr};
  PyObject *op = nullptr, *target = Py_None;
  int sort = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$UOp:find_nodes", const_cast<char**>(names), &op,
                                   &target, &sort))
    return nullptr;
  return python::guarded([&]() -> PyObject* {
    if (!op) python::raise_type_error("find_nodes() missing 1 required argument: 'op'");
    GraphObject* graph = as_graph(self);
    if (target == Py_None && PyUnicode_Compare(op, words.call_function) == 0)
      python::raise(PyExc_AssertionError,
                    "find_nodes(op='call_function') needs a target; without one iterate over "
                    "graph.nodes");
    if (!graph->index) build_index(graph);
    std::vector<NodeObject*> found;
    if (PyObject* of_op = existing_under(graph->index, op)) {
      if (target != Py_None) {
        if (PyObject* nodes = existing_under(of_op, target)) collect(nodes, found);
      } else {
        PyObject *key, *nodes;
        Py_ssize_t position = 0;
        while (PyDict_Next(of_op, &position, &key, &nodes)) collect(nodes, found);
      }
    }
    if (sort)
      std::sort(found.begin(), found.end(),
                [](NodeObject* a, NodeObject* b) { return a->order < b->order; });
    PyRef out = checked(PyList_New(static_cast<Py_ssize_t>(found.size())));
    for (size_t i = 0; i < found.size(); ++i)
      PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), Py_NewRef(as_object(found[i])));
    return out.release();
  });
}

// ---- making and erasing nodes
void run_hooks(PyObject* hooks, NodeObject* node) {
  if (!hooks || hooks == Py_None || PyList_GET_SIZE(hooks) == 0) return;
  PyRef all = checked(PyList_AsTuple(hooks));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all.get()); ++i)
    checked(PyObject_CallOneArg(PyTuple_GET_ITEM(all.get(), i), as_object(node)));
}

const char* const legal_ops[] = {"placeholder", "call_method", "call_module", "call_function",
                                 "get_attr",    "output",      "root"};
bool is_legal(PyObject* op) {
  if (op == words.call_function) return true;
  const auto text = python::utf8(op);
  return std::any_of(std::begin(legal_ops), std::end(legal_ops),
                     [text](const char* legal) { return text == legal; });
}

struct Request {
  PyObject* op;
  PyObject* target;
  PyObject* args;
  PyObject* kwargs;
  PyObject* name;
  PyObject* type;
};

PyObject* make_node(GraphObject* graph, const Request& r) {
  if (!is_legal(r.op))
    python::raise(PyExc_AssertionError, "op '" + python::text_of(r.op) + "' is not in _legal_ops");
  PyObject* args = r.args == Py_None ? words.empty_tuple : r.args;
  if (!PyTuple_Check(args))
    python::raise(PyExc_AssertionError,
                  std::string("args must be a tuple, got ") +
                      python::repr_of(reinterpret_cast<PyObject*>(Py_TYPE(args))));
  if (r.kwargs != Py_None && !PyDict_Check(r.kwargs))
    python::raise(PyExc_AssertionError,
                  std::string("kwargs must be a dict, got ") +
                      python::repr_of(reinterpret_cast<PyObject*>(Py_TYPE(r.kwargs))));
  auto* self = reinterpret_cast<PyObject*>(graph);
  PyRef candidate(r.name != Py_None ? Py_NewRef(r.name) : name_of_target(r.target));
  PyRef name(unique_name(graph->names, candidate.get(), nullptr));
  check_target(self, name.get(), r.op, r.target);
  PyRef kwargs(r.kwargs == Py_None
                   ? PyObject_CallNoArgs(reinterpret_cast<PyObject*>(python_types.dict))
                   : Py_NewRef(r.kwargs));
  if (!kwargs) throw python_error();
  PyRef node = checked(python_types.node->tp_alloc(python_types.node, 0));
  NodeObject* n = as_node(node.get());
  fill_node(n, self, name.get(), r.op, r.target, args, kwargs.get(), r.type);
  require_listed(graph->anchor);
  link_before(graph->after_anchor ? graph->anchor->next : graph->anchor, n, graph->after_anchor);
  run_hooks(graph->create_hooks, n);
  return node.release();
}

// Puts the arguments of a vectorcall into slots by position and name.
void take_arguments(const char* function, PyObject* const* args, Py_ssize_t n, PyObject* names,
                    const char* const* parameters, Py_ssize_t count, Py_ssize_t required,
                    PyObject** slots) {
  const auto call = [function] { return std::string("Graph.") + function + "()"; };
  if (n > count)
    python::raise_type_error(call() + " takes " + std::to_string(count) + " arguments, got " +
                             std::to_string(n));
  for (Py_ssize_t i = 0; i < n; ++i) slots[i] = args[i];
  unsigned given = (1u << n) - 1;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
    const auto word = python::utf8(PyTuple_GET_ITEM(names, i));
    Py_ssize_t slot = 0;
    while (slot < count && word != parameters[slot]) ++slot;
    if (slot == count || (given >> slot & 1u))
      python::raise_type_error(call() + ": unexpected argument '" + std::string(word) + "'");
    given |= 1u << slot;
    slots[slot] = args[n + i];
  }
  for (Py_ssize_t i = 0; i < required; ++i)
    if (!(given >> i & 1u))
      python::raise_type_error(call() + " missing argument '" + parameters[i] + "'");
}

PyObject* py_create_node(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return python::guarded([&]() -> PyObject* {
    static const char* const parameters[] = {"op", "target", "args", "kwargs", "name", "type_expr"};
    PyObject* s[] = {nullptr, nullptr, Py_None, Py_None, Py_None, Py_None};
    take_arguments("create_node", args, n, names, parameters, 6, 2, s);
    if (!PyUnicode_Check(s[0])) python::raise_type_error("create_node(): op must be a str");
    return make_node(as_graph(self), {s[0], s[1], s[2], s[3], s[4], s[5]});
  });
}

PyObject* py_call_function(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return python::guarded([&]() -> PyObject* {
    static const char* const parameters[] = {"the_function", "args", "kwargs", "type_expr", "name"};
    PyObject* s[] = {nullptr, Py_None, Py_None, Py_None, Py_None};
    take_arguments("call_function", args, n, names, parameters, 5, 1, s);
    return make_node(as_graph(self), {words.call_function, s[0], s[1], s[2], s[4], s[3]});
  });
}

class NodeToNone final : public LeafMap {
 public:
  PyObject* map(PyObject* leaf) override { return Py_NewRef(is_node(leaf) ? Py_None : leaf); }
};

// _erase(node): takes it from the list and from the users of its inputs; checks are the caller's.
PyObject* py_erase(PyObject* self, PyObject* node) {
  return python::guarded([&]() -> PyObject* {
    if (!is_node(node) || as_node(node)->graph != self)
      python::raise(PyExc_RuntimeError,
                    "Attempting to remove " + python::text_of(node) + " from wrong graph!");
    run_hooks(as_graph(self)->erase_hooks, as_node(node));
    GraphObject* graph = as_graph(self);
    if (as_node(node) == graph->anchor && as_node(node) != graph->root) {
      NodeObject* next = graph->after_anchor ? as_node(node)->prev : as_node(node)->next;
      Py_INCREF(next);
      Py_SETREF(graph->anchor, next);
    }
    unlink(as_node(node));
    as_node(node)->erased = true;
    NodeToNone leaf;
    PyRef args(map_aggregate(as_node(node)->args, leaf));
    PyRef kwargs(map_aggregate(as_node(node)->kwargs, leaf));
    set_inputs(as_node(node), args.get(), kwargs.get());
    return python::new_none();
  });
}

class Lookup final : public LeafMap {
 public:
  explicit Lookup(PyObject* values) : values_(values) {}
  PyObject* map(PyObject* leaf) override {
    if (!is_node(leaf)) return Py_NewRef(leaf);
    PyObject* value = PyObject_GetItem(values_, leaf);
    if (!value) throw python_error();
    return value;
  }

 private:
  PyObject* values_;
};

// _copy_nodes(graph, values): copies the nodes of another graph that `values` does not map yet, in
// order, up to its output; notes each copy in `values`. Returns the output node met, or None.
PyObject* py_copy_nodes(PyObject* self, PyObject* args) {
  PyObject *from = nullptr, *values = nullptr;
  if (!PyArg_ParseTuple(args, "O!O!:_copy_nodes", &GraphType, &from, &PyDict_Type, &values))
    return nullptr;
  return python::guarded([&]() -> PyObject* {
    NodeObject* root = as_graph(from)->root;
    for (NodeObject* n = root->next; n != root; n = n->next) {
      const int known = PyDict_Contains(values, as_object(n));
      check_status(known);
      if (known) continue;
      if (PyUnicode_Compare(n->op, words.output) == 0) return Py_NewRef(as_object(n));
      Lookup leaf(values);
      PyRef new_args(map_aggregate(n->args, leaf));
      PyRef new_kwargs(map_aggregate(n->kwargs, leaf));
      PyRef copy(make_node(as_graph(self),
                           {n->op, n->target, new_args.get(), new_kwargs.get(), n->name, n->type}));
      if (n->meta && PyDict_GET_SIZE(n->meta) > 0)
        as_node(copy.get())->meta = checked(PyDict_Copy(n->meta)).release();
      check_status(PyDict_SetItem(values, as_object(n), copy.get()));
    }
    return python::new_none();
  });
}

// _set_insert_point(anchor, after): where new nodes go; returns what it was, as a pair.
PyObject* py_set_insert_point(PyObject* self, PyObject* args) {
  PyObject* anchor = nullptr;
  int after = 0;
  if (!PyArg_ParseTuple(args, "O!p:_set_insert_point", &NodeType, &anchor, &after)) return nullptr;
  GraphObject* graph = as_graph(self);
  if (as_node(anchor)->graph != self) {
    PyErr_SetString(PyExc_AssertionError, "Node to insert at is not in graph.");
    return nullptr;
  }
  PyRef old(PyTuple_Pack(2, as_object(graph->anchor), graph->after_anchor ? Py_True : Py_False));
  if (!old) return nullptr;
  Py_INCREF(anchor);
  Py_SETREF(graph->anchor, as_node(anchor));
  graph->after_anchor = after != 0;
  return old.release();
}

// ---- attributes and life
PyObject* get_nodes(PyObject* self, void*) { return new_list(self, false); }
PyObject* get_root(PyObject* self, void*) { return Py_NewRef(as_object(as_graph(self)->root)); }
PyObject* get_length(PyObject* self, void*) { return PyLong_FromSsize_t(as_graph(self)->length); }
PyObject* get_names(PyObject* self, void*) {
  return Py_NewRef(reinterpret_cast<PyObject*>(as_graph(self)->names));
}
int set_names(PyObject* self, PyObject* value, void*) {
  if (!value || !PyObject_TypeCheck(value, &NamespaceType)) {
    PyErr_SetString(PyExc_TypeError, "_graph_namespace must be a _Namespace");
    return -1;
  }
  Py_INCREF(value);
  Py_SETREF(as_graph(self)->names, reinterpret_cast<NamespaceObject*>(value));
  return 0;
}
PyObject* get_insert(PyObject* self, void*) {
  return PyObject_GetAttrString(as_object(as_graph(self)->anchor),
                                as_graph(self)->after_anchor ? "append" : "prepend");
}
template <PyObject* GraphObject::*Field> PyObject* get_hooks(PyObject* self, void*) {
  PyObject*& hooks = as_graph(self)->*Field;
  if (!hooks && !(hooks = PyList_New(0))) return nullptr;
  return Py_NewRef(hooks);
}
template <PyObject* GraphObject::*Field> int set_hooks(PyObject* self, PyObject* value, void*) {
  if (!value || !PyList_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "hooks of a graph are a list of callables");
    return -1;
  }
  Py_INCREF(value);
  Py_XSETREF(as_graph(self)->*Field, value);
  return 0;
}

PyObject* graph_new(PyTypeObject* type, PyObject*, PyObject*) {
  return python::guarded([&]() -> PyObject* {
    PyRef self = checked(type->tp_alloc(type, 0));
    GraphObject* graph = as_graph(self.get());
    graph->names = reinterpret_cast<NamespaceObject*>(
        checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&NamespaceType))).release());
    PyRef root = checked(python_types.node->tp_alloc(python_types.node, 0));
    PyRef kwargs = checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(python_types.dict)));
    NodeObject* n = as_node(root.get());
    fill_node(n, self.get(), words.empty_string, words.root, words.empty_string, words.empty_tuple,
              kwargs.get(), Py_None);
    Py_INCREF(n);
    Py_INCREF(n);
    n->prev = n->next = n;
    Py_INCREF(n);
    graph->anchor = n;
    graph->root = as_node(root.release());
    return self.release();
  });
}
int graph_traverse(PyObject* self, visitproc visit, void* arg) {
  GraphObject* graph = as_graph(self);
  Py_VISIT(as_object(graph->root));
  Py_VISIT(as_object(graph->anchor));
  Py_VISIT(reinterpret_cast<PyObject*>(graph->names));
  Py_VISIT(graph->index);
  Py_VISIT(graph->create_hooks);
  Py_VISIT(graph->erase_hooks);
  return 0;
}
int graph_clear(PyObject* self) {
  GraphObject* graph = as_graph(self);
  Py_CLEAR(graph->root);
  Py_CLEAR(graph->anchor);
  Py_CLEAR(graph->names);
  Py_CLEAR(graph->index);
  Py_CLEAR(graph->create_hooks);
  Py_CLEAR(graph->erase_hooks);
  return 0;
}
void graph_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  graph_clear(self);
  Py_TYPE(self)->tp_free(self);
}

PyMethodDef list_methods[] = {{"__reversed__", list_reversed, METH_NOARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};
PySequenceMethods list_sequence = {};

PyMethodDef methods[] = {
    {"create_node", python::as_method(py_create_node), METH_FASTCALL | METH_KEYWORDS,
     "create_node($self, op, target, args=None, kwargs=None, name=None, type_expr=None)\n--\n\n"
     "Makes a node and inserts it at the current place."},
    {"call_function", python::as_method(py_call_function), METH_FASTCALL | METH_KEYWORDS,
     "call_function($self, the_function, args=None, kwargs=None, type_expr=None, name=None)\n--\n\n"
     "Inserts a node that calls a Python function."},
    {"find_nodes", python::as_method(py_find_nodes), METH_VARARGS | METH_KEYWORDS,
     "find_nodes($self, *, op, target=None, sort=True)\n--\n\n"
     "The nodes with this op and target, in order if sort; no scan of the graph."},
    {"_erase", py_erase, METH_O, nullptr},
    {"_copy_nodes", py_copy_nodes, METH_VARARGS, nullptr},
    {"_set_insert_point", py_set_insert_point, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {{"nodes", get_nodes, nullptr, "The nodes in order.", nullptr},
                            {"_root", get_root, nullptr, nullptr, nullptr},
                            {"_len", get_length, nullptr, nullptr, nullptr},
                            {"_insert", get_insert, nullptr, nullptr, nullptr},
                            {"_graph_namespace", get_names, set_names, nullptr, nullptr},
                            {"_create_node_hooks", get_hooks<&GraphObject::create_hooks>,
                             set_hooks<&GraphObject::create_hooks>, nullptr, nullptr},
                            {"_erase_node_hooks", get_hooks<&GraphObject::erase_hooks>,
                             set_hooks<&GraphObject::erase_hooks>, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

// _set_types(Node, immutable_list, immutable_dict, reserved): what the C part makes.
PyObject* set_types(PyObject*, PyObject* args) {
  PyObject *node, *list, *dict, *reserved;
  if (!PyArg_ParseTuple(args, "O!O!O!O!:_set_types", &PyType_Type, &node, &PyType_Type, &list,
                        &PyType_Type, &dict, &PyDict_Type, &reserved))
    return nullptr;
  const auto derives = [](PyObject* type, PyTypeObject* base) {
    return PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), base);
  };
  if (!derives(node, &NodeType) || !derives(list, &PyList_Type) || !derives(dict, &PyDict_Type)) {
    PyErr_SetString(PyExc_TypeError, "_set_types(): classes must derive from Node, list, dict");
    return nullptr;
  }
  python_types = {reinterpret_cast<PyTypeObject*>(Py_NewRef(node)),
                  reinterpret_cast<PyTypeObject*>(Py_NewRef(list)),
                  reinterpret_cast<PyTypeObject*>(Py_NewRef(dict))};
  Py_XSETREF(words.reserved, Py_NewRef(reserved));
  Py_RETURN_NONE;
}

PyObject* py_name_of_target(PyObject*, PyObject* target) {
  return python::guarded([&] { return name_of_target(target); });
}

PyMethodDef functions[] = {
    {"map_aggregate", python::as_method(py_map_aggregate), METH_FASTCALL | METH_KEYWORDS,
     "map_aggregate(a, fn)\n--\n\nThe value with fn applied to every leaf of its tuples, lists, "
     "dicts and slices."},
    {"map_arg", python::as_method(py_map_arg), METH_FASTCALL | METH_KEYWORDS,
     "map_arg(a, fn)\n--\n\nThe value with fn applied to every Node in it."},
    {"_set_types", set_types, METH_VARARGS, nullptr},
    {"_name_of_target", py_name_of_target, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

bool init_list_types(PyObject* module) {
  list_sequence.sq_length = list_length;
  list_sequence.sq_contains = list_contains;
  NodeListType.tp_basicsize = sizeof(NodeListObject);
  NodeListType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  NodeListType.tp_new = list_new;
  NodeListType.tp_dealloc = list_dealloc;
  NodeListType.tp_traverse = list_traverse;
  NodeListType.tp_iter = list_iter;
  NodeListType.tp_methods = list_methods;
  NodeListType.tp_as_sequence = &list_sequence;
  NodeIterType.tp_basicsize = sizeof(NodeIterObject);
  NodeIterType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  NodeIterType.tp_dealloc = iter_dealloc;
  NodeIterType.tp_traverse = iter_traverse;
  NodeIterType.tp_iter = PyObject_SelfIter;
  NodeIterType.tp_iternext = iter_next;
  return python::add_type(module, &NodeListType) && python::add_type(module, &NodeIterType);
}
} // namespace

void check_target(PyObject* graph, PyObject* name, PyObject* op, PyObject* target) {
  const bool callable = PyUnicode_Compare(op, words.call_function) == 0;
  if (callable ? PyCallable_Check(target) : PyUnicode_Check(target)) return;
  python::raise(PyExc_ValueError, "Node [graph = " + python::text_of(graph) + ", name = '" +
                                      python::text_of(name) + "'] target " +
                                      python::repr_of(target) + " has type " +
                                      python::type_name(target) + " but a " +
                                      (callable ? "Callable" : "str") + " is expected");
}

void index_add(NodeObject* node) {
  GraphObject* graph = reinterpret_cast<GraphObject*>(node->graph);
  if (!graph || !graph->index || !is_listed(node) || node == graph->root) return;
  PyObject* of_target = dict_under(dict_under(graph->index, node->op), node->target);
  check_status(PyDict_SetItem(of_target, as_object(node), Py_None));
}

void index_remove(NodeObject* node) {
  GraphObject* graph = reinterpret_cast<GraphObject*>(node->graph);
  if (!graph || !graph->index) return;
  PyObject* of_op = existing_under(graph->index, node->op);
  PyObject* of_target = of_op ? existing_under(of_op, node->target) : nullptr;
  if (!of_target || PyDict_Contains(of_target, as_object(node)) != 1) return;
  check_status(PyDict_DelItem(of_target, as_object(node)));
}

bool init_graph(PyObject* module) {
  GraphType.tp_basicsize = sizeof(GraphObject);
  GraphType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  GraphType.tp_new = graph_new;
  GraphType.tp_dealloc = graph_dealloc;
  GraphType.tp_traverse = graph_traverse;
  GraphType.tp_clear = graph_clear;
  GraphType.tp_methods = methods;
  GraphType.tp_getset = attributes;
  return python::add_type(module, &GraphType) && init_list_types(module) &&
         PyModule_AddFunctions(module, functions) == 0;
}

bool init_fx(PyObject* module) {
  const auto intern = [](PyObject*& slot, const char* text) {
    return (slot = PyUnicode_InternFromString(text)) != nullptr;
  };
  words.empty_tuple = PyTuple_New(0);
  words.reserved = PyDict_New();
  if (!words.empty_tuple || !words.reserved || !intern(words.root, "root") ||
      !intern(words.call_function, "call_function") || !intern(words.output, "output") ||
      !intern(words.empty_string, "") || !intern(words.name, "__name__") ||
      !intern(words.fields, "_fields"))
    return false;
  PyRef space(PyModule_New("torch._C._fx"));
  if (!space || !init_node(space.get()) || !init_names(space.get()) || !init_graph(space.get()) ||
      !init_recorder(space.get()))
    return false;
  return python::add_object(module, "_fx", space.release());
}

} // namespace torch::fx
