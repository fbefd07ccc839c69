// Guards: whether what a compiled function assumed of the running program still holds.
//
// A tree. A manager stands for a value; its leaves are conditions on the value, its accessors lead
// to parts of the value, each with a manager of its own. The root's value is the frame: accessors
// of the kind FrameLocal read it by position from the vector of locals that the entry has bound, so
// that a check builds nothing. Leaves of one tree may share state (two values are one object, no
// two tensors are one, sizes satisfy a program); the root clears that state when a check begins.
//
// Guards refer to users' objects weakly. Everything needs the GIL. A check never raises: an error
// in code that it had to run counts as a failure.
#pragma once
#include <torch/csrc/python/tensor/tensor.h>

#include <memory>
#include <vector>

namespace torch::dynamo {

using python::PyRef;

// What one compiled function is checked against: locals by position, or a mapping of names.
struct FrameView {
  PyObject* const* values = nullptr;
  size_t count = 0;
  PyObject* mapping = nullptr;
  bool reorder = true; // accessors may change places
};

// ---- tensors

// What a compiled function assumed of a tensor.
struct TensorPattern {
  PyTypeObject* type; // borrowed: types of tensors are kept by the leaf
  uint64_t keys;
  c10::ScalarType dtype;
  c10::Device device;
  bool requires_grad;
  std::vector<int64_t> sizes, strides; // kAny where any number will do
  static constexpr int64_t kAny = -1;

  bool matches(PyObject* value) const;
  // The first difference as PyTorch words it, or empty.
  std::string difference(PyObject* value, const std::string& name) const;
};

// ---- settings of the thread and the process
struct GlobalState {
  uint64_t word = 0;
  int threads = 0;
  static GlobalState now();
  bool operator==(const GlobalState& o) const { return word == o.word && threads == o.threads; }
  // Names of the settings that differ from now, each followed by a space.
  std::string changes() const;
};
bool init_global_state(PyObject* module);

// ---- leaves

enum class LeafKind : uint8_t {
  Lambda,
  Type,
  Id,
  Object,
  Equals,
  None,
  NotNone,
  True,
  False,
  Length,
  DictLength,
  TupleIteratorLength,
  NoHasAttr,
  HasAttr,
  DefaultDevice,
  DataPtr,
  DictVersion,
  DictContains,
  DictKeys,
  DynamicIndices,
  Tensor,
  Global,
  NoTensorAliasing,
  NoOverlap,
  ObjectAliasing,
  RangeIterator,
  FloatIsNan,
  ShapeInt,
  ShapeTensor,
  Shape,
  Classes,
};

class ClassReads;
class MemorySet;
class PointerSet;
struct ShapeProgram;

struct LeafObject {
  PyObject_HEAD LeafKind kind;
  bool flag; // Object: weakly held; DictContains: wanted; NoTensorAliasing: not only of tensors
  intptr_t number;
  PyObject* value; // what is compared with; a weak reference for Object
  PyObject* extra;
  PyObject* parts; // texts of the condition
  TensorPattern* tensor;
  GlobalState* global;
  PointerSet* seen;
  MemorySet* memory;     // NoOverlap
  ShapeProgram* program; // shared by the leaves that fill it and the one that runs it
  ClassReads* classes;
  const void* first; // ObjectAliasing: which object the first place held, during a check
};

bool is_leaf(PyObject* o);
inline LeafObject* as_leaf(PyObject* o) { return reinterpret_cast<LeafObject*>(o); }
// A leaf of a kind from its Python arguments, texts last.
PyRef new_leaf(LeafKind kind, PyObject* args);
bool check_leaf(LeafObject* leaf, PyObject* value);
// Clears what a check left behind.
void reset_leaf(LeafObject* leaf);
bool has_state(const LeafObject* leaf);
// What went wrong, in words.
PyRef leaf_failure(LeafObject* leaf, PyObject* value);
bool init_leaf_guards(PyObject* module);

// ---- accessors

enum class AccessorKind : uint8_t {
  FrameLocal,
  Globals,
  GetAttr,
  GenericDict,
  GetItem,
  DictItem,
  ListItem,
  TupleItem,
  Type,
  Lambda,
  TupleIteratorItem,
  WeakrefCall,
  GlobalWeakref,
  FuncDefaults,
  FuncKwDefaults,
  FuncCode,
  FuncClosure,
  CellContents,
  Grad,
  TensorSize,
  TensorStride,
  TensorOffset,
  DictKey,
  ClassDict,
  Mro,
  Identity,
};

struct ManagerObject;

struct AccessorObject {
  PyObject_HEAD AccessorKind kind;
  PyObject* key;
  Py_ssize_t index;
  ManagerObject* child;
  // GetAttr: a type in whose instances' dictionaries the name is looked up first, since no class on
  // its way has it, and the version of the type for which that is so.
  mutable PyTypeObject* plain_type;
  mutable unsigned plain_version;
};

// The version of a dictionary, which every write changes and no two share.
uint64_t dict_version(PyObject* dict);

inline AccessorObject* as_accessor(PyObject* o) { return reinterpret_cast<AccessorObject*>(o); }
// Whether an attribute that no class has is read from the instance's dictionary before anything
// else.
bool reads_instance_first(PyTypeObject* type);
PyRef new_accessor(AccessorKind kind, PyObject* key, ManagerObject* child);
bool same_access(const AccessorObject* accessor, AccessorKind kind, PyObject* key);
// The part, borrowed from `owned` or from the value; null with or without a Python error set.
PyObject* fetch(const AccessorObject* accessor, PyObject* value, const FrameView& view,
                PyRef& owned);
bool init_accessors(PyObject* module);

// ---- managers

struct KeyValue {
  Py_ssize_t place;
  PyRef key, value; // managers or null
};

class RecordTable;

struct ManagerState {
  std::vector<PyRef> leaves;
  std::vector<PyRef> accessors;
  std::string source;
  long failures = 0;
  // A manager of a dictionary: pairs by place.
  PyTypeObject* dict_type = nullptr;
  Py_ssize_t dict_length = -1;
  std::vector<KeyValue> pairs;
  // Note [Records of unchanged values]
  bool recording = false;
  std::shared_ptr<RecordTable> records;
  // A root: leaves with state, and conditions on the frame as a whole.
  std::vector<PyRef> stateful;
  std::vector<PyRef> epilogue;
  int depth = 0; // checks of this tree that are under way
};

struct ManagerObject {
  PyObject_HEAD ManagerState* state;
  ManagerObject* root; // borrowed; itself for a root
  PyObject* dict;      // attributes that Python code keeps here
  PyObject* weakrefs;
};

extern PyTypeObject GuardManagerType;
extern PyTypeObject RootGuardManagerType;
inline ManagerObject* as_manager(PyObject* o) { return reinterpret_cast<ManagerObject*>(o); }
inline bool is_root(PyObject* o) { return PyObject_TypeCheck(o, &RootGuardManagerType); }

// Whether the guards of a manager hold.
bool check_manager(ManagerObject* manager, PyObject* value, const FrameView& view);
// Whether all guards hold.
bool check_root(ManagerObject* root, PyObject* value, const FrameView& view);
bool init_guards(PyObject* module);

} // namespace torch::dynamo
