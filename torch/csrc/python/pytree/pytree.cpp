// The hot part of torch.utils._pytree. Every traced call, every functorch transform and every
// exported program takes its arguments apart and puts them together again, so the walk, the specs
// and the rebuilding are C. Tuples, lists and dicts are taken apart here; other containers go
// through the functions they were registered with, which are Python's and may do anything: whatever
// is read from a container is owned before such a function is called.
#include <torch/csrc/python/pytree/pytree.h>

#include <structmember.h>

namespace torch::python {
namespace {

// The structure of a tree. Python derives TreeSpec and LeafSpec from it, with everything that is
// not on the hot path.
struct Spec {
  PyObject_HEAD PyObject* type; // None for a leaf
  PyObject* context;
  PyObject* children; // a list of specs
  Py_ssize_t num_nodes;
  Py_ssize_t num_leaves;
  Py_ssize_t num_children;
};

PyTypeObject spec_type = type_object("torch._C._pytree.SpecBase");

// What torch.utils._pytree hands over once; kept for the life of the process.
struct Registry {
  PyObject* nodes = nullptr;      // dict: type -> NodeDef
  PyObject* node_type = nullptr;  // function: the type a container is registered under
  PyTypeObject* cls = nullptr;    // TreeSpec
  PyObject* leaf = nullptr;       // the one LeafSpec
  PyObject* flatten_fn = nullptr; // names of attributes
  PyObject* unflatten_fn = nullptr;
} registry;

class RecursionGuard {
 public:
  // A failure is any number but 0.
  explicit RecursionGuard(const char* where) {
    if (Py_EnterRecursiveCall(where) != 0) throw python_error();
  }
  ~RecursionGuard() { Py_LeaveRecursiveCall(); }
};

Spec* as_spec(PyObject* o) {
  if (!PyObject_TypeCheck(o, &spec_type))
    raise_type_error(std::string("Expected `treespec` to be an instance of TreeSpec but got item "
                                 "of type ") +
                     repr_of(reinterpret_cast<PyObject*>(Py_TYPE(o))) + ".");
  return reinterpret_cast<Spec*>(o);
}

// Sets the counts from the children. Their list holds specs only.
void count(Spec* spec) {
  spec->num_children = PyList_GET_SIZE(spec->children);
  spec->num_nodes = 1;
  spec->num_leaves = spec->type == Py_None ? 1 : 0;
  for (Py_ssize_t i = 0; i < spec->num_children; ++i) {
    const Spec* child = as_spec(PyList_GET_ITEM(spec->children, i));
    spec->num_nodes += child->num_nodes;
    spec->num_leaves += child->num_leaves;
  }
}

// Takes over the references.
PyRef new_spec(PyRef type, PyRef context, PyRef children) {
  PyRef out = checked(registry.cls->tp_alloc(registry.cls, 0));
  auto* spec = reinterpret_cast<Spec*>(out.get());
  spec->type = type.release();
  spec->context = context.release();
  spec->children = children.release();
  count(spec);
  return out;
}

// ---- taking apart -------------------------------------------------------------------------------

struct Walk {
  PyObject* is_leaf; // or nullptr
  PyObject* leaves;  // a list
  bool wants_spec;
};

PyRef walk(PyObject* tree, const Walk& w);

PyRef leaf(PyObject* value, const Walk& w) {
  check_status(PyList_Append(w.leaves, value));
  return w.wants_spec ? PyRef::borrow(registry.leaf) : PyRef();
}

// A container whose children are `children`, a tuple or list that nobody else may change.
PyRef container(PyRef type, PyRef context, PyObject* children, const Walk& w) {
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(children);
  PyRef specs = w.wants_spec ? checked(PyList_New(n)) : PyRef();
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyRef spec = walk(PySequence_Fast_GET_ITEM(children, i), w);
    if (w.wants_spec) PyList_SET_ITEM(specs.get(), i, spec.release());
  }
  if (!w.wants_spec) return PyRef();
  return new_spec(std::move(type), std::move(context), std::move(specs));
}

PyRef registered(PyObject* tree, PyObject* type, PyObject* node, const Walk& w) {
  PyRef flatten = checked(PyObject_GetAttr(node, registry.flatten_fn));
  PyRef parts = checked(PyObject_CallOneArg(flatten.get(), tree));
  PyRef pair = checked(PySequence_Tuple(parts.get()));
  if (PyTuple_GET_SIZE(pair.get()) != 2)
    raise(PyExc_ValueError, std::string("tree_flatten: the flatten function of ") + repr_of(type) +
                                " must return (children, context), got " +
                                std::to_string(PyTuple_GET_SIZE(pair.get())) + " values");
  PyRef children = checked(PySequence_Tuple(PyTuple_GET_ITEM(pair.get(), 0)));
  return container(PyRef::borrow(type), PyRef::borrow(PyTuple_GET_ITEM(pair.get(), 1)),
                   children.get(), w);
}

// The NodeDef of a type, or nullptr; borrowed from the table.
PyObject* node_of(PyObject* type) {
  PyObject* node = PyDict_GetItemWithError(registry.nodes, type);
  if (node == nullptr && PyErr_Occurred()) throw python_error();
  return node;
}

PyRef walk(PyObject* tree, const Walk& w) {
  const RecursionGuard guard(" while flattening a tree");
  const PyRef held = PyRef::borrow(tree);
  if (w.is_leaf != nullptr) {
    PyRef answer = checked(PyObject_CallOneArg(w.is_leaf, tree));
    const int truth = PyObject_IsTrue(answer.get());
    check_status(truth);
    if (truth != 0) return leaf(tree, w);
  }
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(tree));
  if (PyTuple_CheckExact(tree)) return container(PyRef::borrow(type), PyRef(new_none()), tree, w);
  if (PyList_CheckExact(tree)) {
    // Functions of the caller's could change the list while it is walked.
    PyRef children = checked(PyList_AsTuple(tree));
    return container(PyRef::borrow(type), PyRef(new_none()), children.get(), w);
  }
  if (PyDict_CheckExact(tree)) {
    PyRef keys = checked(PyDict_Keys(tree)), values = checked(PyDict_Values(tree));
    return container(PyRef::borrow(type), std::move(keys), values.get(), w);
  }
  PyRef node = PyRef::borrow(node_of(type));
  if (node) return registered(tree, type, node.get(), w);
  // Named tuples and struct sequences are registered under a type of their own.
  if (!PyTuple_Check(tree)) return leaf(tree, w);
  PyRef other = checked(PyObject_CallOneArg(registry.node_type, tree));
  node = PyRef::borrow(node_of(other.get()));
  return node ? registered(tree, other.get(), node.get(), w) : leaf(tree, w);
}

// ---- putting together ---------------------------------------------------------------------------

PyRef build(Spec* spec, PyObject* leaves, Py_ssize_t& next);

PyRef children_of(Spec* spec, PyObject* leaves, Py_ssize_t& next, bool as_tuple) {
  // The spec's list is the user's to see; it is read as it is now.
  PyRef specs = checked(PyList_AsTuple(spec->children));
  const Py_ssize_t n = PyTuple_GET_SIZE(specs.get());
  PyRef out = checked(as_tuple ? PyTuple_New(n) : PyList_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyRef child = build(as_spec(PyTuple_GET_ITEM(specs.get(), i)), leaves, next);
    if (as_tuple)
      PyTuple_SET_ITEM(out.get(), i, child.release());
    else
      PyList_SET_ITEM(out.get(), i, child.release());
  }
  return out;
}

PyRef build_dict(PyObject* keys, PyObject* values) {
  PyRef out = checked(PyDict_New());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); ++i)
    check_status(PyDict_SetItem(out.get(), PyTuple_GET_ITEM(keys, i), PyList_GET_ITEM(values, i)));
  return out;
}

PyRef build(Spec* spec, PyObject* leaves, Py_ssize_t& next) {
  const RecursionGuard guard(" while rebuilding a tree");
  if (spec->type == Py_None) {
    if (next >= PyTuple_GET_SIZE(leaves))
      raise(PyExc_ValueError, "treespec.unflatten(leaves): the spec was changed while in use");
    return PyRef::borrow(PyTuple_GET_ITEM(leaves, next++));
  }
  const PyRef held = PyRef::borrow(reinterpret_cast<PyObject*>(spec));
  const auto is = [&](PyTypeObject& t) { return spec->type == reinterpret_cast<PyObject*>(&t); };
  if (is(PyTuple_Type)) return children_of(spec, leaves, next, true);
  PyRef children = children_of(spec, leaves, next, false);
  if (is(PyList_Type)) return children;
  if (is(PyDict_Type) && PyList_CheckExact(spec->context) &&
      PyList_GET_SIZE(spec->context) == PyList_GET_SIZE(children.get()))
    return build_dict(checked(PyList_AsTuple(spec->context)).get(), children.get());
  PyRef node = PyRef::borrow(node_of(spec->type));
  if (!node) {
    PyErr_SetObject(PyExc_KeyError, spec->type);
    throw python_error();
  }
  PyRef unflatten = checked(PyObject_GetAttr(node.get(), registry.unflatten_fn));
  PyObject* args[] = {children.get(), spec->context};
  return checked(PyObject_Vectorcall(unflatten.get(), args, 2, nullptr));
}

PyRef unflatten(PyObject* leaves, Spec* spec) {
  PyRef all = checked(PySequence_Tuple(leaves));
  if (PyTuple_GET_SIZE(all.get()) != spec->num_leaves) {
    const std::string shown = text_of(reinterpret_cast<PyObject*>(spec));
    raise(PyExc_ValueError, "treespec.unflatten(leaves): `leaves` has length " +
                                std::to_string(PyTuple_GET_SIZE(all.get())) +
                                " but the spec refers to a pytree that holds " +
                                std::to_string(spec->num_leaves) + " items (" + shown + ").");
  }
  Py_ssize_t next = 0;
  return build(spec, all.get(), next);
}

// ---- functions ----------------------------------------------------------------------------------

PyObject* argument(PyObject* const* args, Py_ssize_t n, Py_ssize_t at_least, Py_ssize_t place) {
  if (n < at_least || n > place + 1)
    raise_type_error("torch._C._pytree: expected " + std::to_string(at_least) + " to " +
                     std::to_string(place + 1) + " arguments, got " + std::to_string(n));
  if (registry.nodes == nullptr)
    raise(PyExc_RuntimeError, "torch._C._pytree: import torch.utils._pytree first");
  return n > place && args[place] != Py_None ? args[place] : nullptr;
}

PyObject* pytree_flatten(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    PyObject* is_leaf = argument(args, n, 1, 1);
    PyRef leaves = checked(PyList_New(0));
    PyRef spec = walk(args[0], {is_leaf, leaves.get(), true});
    return PyTuple_Pack(2, leaves.get(), spec.get());
  });
}

PyObject* pytree_leaves(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    PyObject* is_leaf = argument(args, n, 1, 1);
    PyRef leaves = checked(PyList_New(0));
    walk(args[0], {is_leaf, leaves.get(), false});
    return leaves.release();
  });
}

PyObject* pytree_unflatten(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    argument(args, n, 2, 1);
    return unflatten(args[0], as_spec(args[1])).release();
  });
}

PyObject* pytree_map(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    PyObject* is_leaf = argument(args, n, 2, 2);
    PyRef leaves = checked(PyList_New(0));
    PyRef spec = walk(args[1], {is_leaf, leaves.get(), true});
    const Py_ssize_t count = PyList_GET_SIZE(leaves.get());
    PyRef results = checked(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyRef result = checked(PyObject_CallOneArg(args[0], PyList_GET_ITEM(leaves.get(), i)));
      PyTuple_SET_ITEM(results.get(), i, result.release());
    }
    Py_ssize_t next = 0;
    return build(as_spec(spec.get()), results.get(), next).release();
  });
}

PyObject* pytree_setup(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&]() -> PyObject* {
    if (n != 4 || !PyDict_Check(args[0]) || !PyCallable_Check(args[1]) || !PyType_Check(args[2]) ||
        !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(args[2]), &spec_type))
      raise_type_error("torch._C._pytree.setup(nodes, node_type, spec_class, leaf)");
    as_spec(args[3]);
    Registry next;
    next.flatten_fn = checked(PyUnicode_InternFromString("flatten_fn")).release();
    next.unflatten_fn = checked(PyUnicode_InternFromString("unflatten_fn")).release();
    next.nodes = PyRef::borrow(args[0]).release();
    next.node_type = PyRef::borrow(args[1]).release();
    next.cls = reinterpret_cast<PyTypeObject*>(PyRef::borrow(args[2]).release());
    next.leaf = PyRef::borrow(args[3]).release();
    registry = next;
    return new_none();
  });
}

PyMethodDef functions[] = {
    {"flatten", as_method(pytree_flatten), METH_FASTCALL, nullptr},
    {"leaves", as_method(pytree_leaves), METH_FASTCALL, nullptr},
    {"unflatten", as_method(pytree_unflatten), METH_FASTCALL, nullptr},
    {"map", as_method(pytree_map), METH_FASTCALL, nullptr},
    {"setup", as_method(pytree_setup), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// ---- the type -----------------------------------------------------------------------------------

int spec_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> int {
    static const char* names[] = {"type", "context", "children_specs", nullptr};
    PyObject *type, *context, *children;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO:TreeSpec", const_cast<char**>(names), &type,
                                     &context, &children))
      throw python_error();
    PyRef list = checked(PySequence_List(children));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i)
      as_spec(PyList_GET_ITEM(list.get(), i));
    auto* spec = reinterpret_cast<Spec*>(self);
    const PyRef old[] = {PyRef(spec->type), PyRef(spec->context), PyRef(spec->children)};
    spec->type = PyRef::borrow(type).release();
    spec->context = PyRef::borrow(context).release();
    spec->children = list.release();
    count(spec);
    return 0;
  });
}

// Fields are never null once the object can be seen.
PyObject* spec_new(PyTypeObject* cls, PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyRef out = checked(cls->tp_alloc(cls, 0));
    auto* spec = reinterpret_cast<Spec*>(out.get());
    spec->type = new_none();
    spec->context = new_none();
    spec->children = checked(PyList_New(0)).release();
    count(spec);
    return out.release();
  });
}

int spec_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* spec = reinterpret_cast<Spec*>(self);
  Py_VISIT(spec->type);
  Py_VISIT(spec->context);
  Py_VISIT(spec->children);
  return 0;
}

int spec_clear(PyObject* self) {
  // The type and the children stay usable: a cycle through them is broken at the context or at the
  // list's contents, which the list clears itself.
  auto* spec = reinterpret_cast<Spec*>(self);
  PyObject* old = spec->context;
  spec->context = new_none();
  Py_XDECREF(old);
  return 0;
}

void spec_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_TRASHCAN_BEGIN(self, spec_dealloc);
  auto* spec = reinterpret_cast<Spec*>(self);
  Py_CLEAR(spec->type);
  Py_CLEAR(spec->context);
  Py_CLEAR(spec->children);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_TRASHCAN_END;
}

PyMemberDef members[] = {
    {"type", T_OBJECT, offsetof(Spec, type), READONLY, nullptr},
    {"context", T_OBJECT, offsetof(Spec, context), READONLY, nullptr},
    {"children_specs", T_OBJECT, offsetof(Spec, children), READONLY, nullptr},
    {"num_nodes", T_PYSSIZET, offsetof(Spec, num_nodes), READONLY, nullptr},
    {"num_leaves", T_PYSSIZET, offsetof(Spec, num_leaves), READONLY, nullptr},
    {"num_children", T_PYSSIZET, offsetof(Spec, num_children), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

} // namespace

bool init_pytree(PyObject* module) {
  spec_type.tp_basicsize = sizeof(Spec);
  spec_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  spec_type.tp_new = spec_new;
  spec_type.tp_init = spec_init;
  spec_type.tp_traverse = spec_traverse;
  spec_type.tp_clear = spec_clear;
  spec_type.tp_dealloc = spec_dealloc;
  spec_type.tp_members = members;
  static PyModuleDef def = {PyModuleDef_HEAD_INIT,
                            "torch._C._pytree",
                            nullptr,
                            -1,
                            functions,
                            nullptr,
                            nullptr,
                            nullptr,
                            nullptr};
  PyRef space(PyModule_Create(&def));
  if (!space || !add_type(space.get(), &spec_type)) return false;
  return add_object(module, "_pytree", space.release());
}

} // namespace torch::python
