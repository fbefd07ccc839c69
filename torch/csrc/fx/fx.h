// The hot part of torch.fx: nodes, the list they stand in, the names they get, and the walk over
// their arguments. torch/fx/node.py and torch/fx/graph.py derive their classes from these types.
//
// A graph is a circular doubly linked list around a sentinel (op "root"). Links are strong in both
// directions: an erased node keeps its own, so that whoever iterates over the list and stands on it
// finds the way back; the garbage collector frees the cycles. A node carries an order label that
// grows along the list, which makes `a < b` one comparison. Arguments are immutable Python values,
// so the inputs of a node are found by walking them and need no table of their own; `users` is the
// other direction. The index of nodes by (op, target) is built when first asked for.
//
// Everything here needs the GIL. Functions that return a pointer return a new reference and throw
// python_error when a Python error is set, unless they say otherwise.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <cstdint>

namespace torch::fx {

using python::PyRef;

struct GraphObject;

struct NodeObject {
  PyObject_HEAD PyObject* graph; // a GraphObject
  PyObject* name;
  PyObject* op;
  PyObject* target;
  PyObject* args;
  PyObject* kwargs;
  PyObject* type;
  PyObject* users;   // {Node: None}, or null as long as nobody asked and nobody uses the node
  PyObject* meta;    // dict, or null as long as nobody asked
  PyObject* repr_fn; // or null
  NodeObject* prev;
  NodeObject* next;
  uint64_t order;
  bool erased;
};

struct NamespaceObject {
  PyObject_HEAD PyObject* used; // {name: None}
  PyObject* counters;           // {name without number: largest number handed out}
  PyObject* object_names;       // {id-hashed object: name}, or null
};

struct GraphObject {
  PyObject_HEAD NodeObject* root;
  NodeObject* anchor; // new nodes go before it, or after it
  bool after_anchor;
  Py_ssize_t length;
  NamespaceObject* names;
  PyObject* index;        // {op: {target: {Node: None}}}, or null
  PyObject* create_hooks; // list of callables, or null
  PyObject* erase_hooks;
};

extern PyTypeObject NodeType;
extern PyTypeObject GraphType;
extern PyTypeObject NamespaceType;

inline bool is_node(PyObject* o) { return PyObject_TypeCheck(o, &NodeType); }
inline NodeObject* as_node(PyObject* o) { return reinterpret_cast<NodeObject*>(o); }
inline PyObject* as_object(NodeObject* n) { return reinterpret_cast<PyObject*>(n); }

// Python classes the C part makes instances of; filled by torch._C._fx._set_types.
struct PythonTypes {
  PyTypeObject* node;
  PyTypeObject* list; // immutable_list
  PyTypeObject* dict; // immutable_dict
};
extern PythonTypes python_types;

// Interned words.
struct Words {
  PyObject* root;
  PyObject* call_function;
  PyObject* output;
  PyObject* empty_string;
  PyObject* empty_tuple;
  PyObject* name;     // "__name__"
  PyObject* fields;   // "_fields"
  PyObject* reserved; // {name: object}: words that no value may be called
};
extern Words words;

// ---- aggregate.cpp
// What a walk does with a leaf (anything but tuple, list, dict, slice); returns a new reference.
class LeafMap {
 public:
  virtual PyObject* map(PyObject* leaf) = 0;

 protected:
  ~LeafMap() = default;
};
// The value with every leaf mapped and every list and dict immutable. A container in which nothing
// changed, and which is immutable already, is returned itself.
PyObject* map_aggregate(PyObject* value, LeafMap& fn);
// Calls `visit(NodeObject*)` for each node inside the value, in order.
template <class F> void for_each_node(PyObject* value, F&& visit);
PyObject* py_map_aggregate(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names);
PyObject* py_map_arg(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names);

// ---- names.cpp
// A name not handed out before, made of `candidate`.
PyObject* unique_name(NamespaceObject* names, PyObject* candidate, PyObject* object);
// The candidate that a target suggests: its __name__ or its text, in snake case.
PyObject* name_of_target(PyObject* target);

// ---- node.cpp
// Takes the node from the list it stands in, if it stands in one.
void unlink(NodeObject* node);
// Throws RuntimeError unless the node stands in a list.
void require_listed(NodeObject* node);
// Puts a node that stands in no list before `position`. `reverse` says that the next node inserted
// at this place will come before this one.
void link_before(NodeObject* position, NodeObject* node, bool reverse = false);
// {Node: None} of the nodes that use it (borrowed).
PyObject* users_of(NodeObject* node);
// Replaces arguments; null leaves what is there. Keeps the users of all inputs right.
void set_inputs(NodeObject* node, PyObject* args, PyObject* kwargs);
// Fills a node that was just allocated.
void fill_node(NodeObject* node, PyObject* graph, PyObject* name, PyObject* op, PyObject* target,
               PyObject* args, PyObject* kwargs, PyObject* type);

// ---- graph.cpp
// Throws ValueError unless a call of a function has something to call and any other op a text.
void check_target(PyObject* graph, PyObject* name, PyObject* op, PyObject* target);
// Keep the index of the node's graph right around a change of op or target; no-ops without index.
void index_add(NodeObject* node);
void index_remove(NodeObject* node);

bool init_node(PyObject* module);
bool init_graph(PyObject* module);
bool init_names(PyObject* module);
bool init_recorder(PyObject* module);
// torch._C._fx.
bool init_fx(PyObject* module);

template <class F> void for_each_node(PyObject* value, F&& visit) {
  if (is_node(value)) {
    visit(as_node(value));
  } else if (PyTuple_Check(value)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
      for_each_node(PyTuple_GET_ITEM(value, i), visit);
  } else if (PyList_Check(value)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i)
      for_each_node(PyList_GET_ITEM(value, i), visit);
  } else if (PyDict_Check(value)) {
    PyObject *key, *item;
    Py_ssize_t position = 0;
    while (PyDict_Next(value, &position, &key, &item)) for_each_node(item, visit);
  } else if (PySlice_Check(value)) {
    auto* slice = reinterpret_cast<PySliceObject*>(value);
    for_each_node(slice->start, visit);
    for_each_node(slice->stop, visit);
    for_each_node(slice->step, visit);
  }
}

} // namespace torch::fx
