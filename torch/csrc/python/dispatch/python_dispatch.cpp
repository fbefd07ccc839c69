// The kernel of the key Python. Operators reach it when an argument is of a class with
// __torch_dispatch__, or while a mode is pushed (the thread then includes the key in every call).
// Composite operators are taken apart first, so that handlers see what they are made of; see also
// Note [Definitions shown to handlers].
#include <torch/csrc/python/dispatch/python_dispatch.h>

#include <torch/csrc/python/dispatch/ivalue_convert.h>
#include <torch/csrc/python/dispatch/operators.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>
#include <torch/csrc/python/types/enum_type.h>

#include <ATen/core/HandlerKeys.h>
#include <ATen/core/NativeMode.h>

#include <algorithm>
#include <vector>

namespace torch::python {
namespace {

PyObject* torch_dispatch_name = nullptr; // interned

// ---- modes
// -----------------------------------------------------------------------------------------------------
// Infrastructure modes have fixed places at the bottom of the stack, below the user's.
enum InfraMode { kFake = 0, kProxy = 1, kFunctional = 2, kInfraModes = 3 };
constexpr EnumMember kInfraMembers[] = {
    {"FAKE", kFake}, {"PROXY", kProxy}, {"FUNCTIONAL", kFunctional}};

// An infrastructure slot. A slot whose handler is native has the Python object only for those who
// ask which mode is active.
struct Slot {
  PyObject* mode = nullptr; // owned
  c10::intrusive_ptr<at::NativeModeHandler> native;
  bool hidden = false; // its native handler is running

  bool visible() const { return mode != nullptr && !hidden; }
  // Whether calls come to it through the key Python.
  bool by_python_key() const { return visible() && !(native && native->has_own_key()); }
  void set_active(bool on) const {
    if (native) native->set_active(on);
  }
};

struct ThreadModes {
  Slot infra[kInfraModes];
  std::vector<PyObject*> user; // owned
};
ThreadModes& thread_modes() {
  static thread_local ThreadModes modes;
  return modes;
}

size_t mode_count() {
  const ThreadModes& modes = thread_modes();
  size_t n = modes.user.size();
  for (const Slot& slot : modes.infra) n += slot.visible();
  return n;
}

// The innermost slot that calls reach through the key Python, or null.
Slot* innermost_slot() {
  ThreadModes& modes = thread_modes();
  for (int i = kInfraModes - 1; i >= 0; --i)
    if (modes.infra[i].by_python_key()) return &modes.infra[i];
  return nullptr;
}

// The thread includes the keys exactly while some mode is to be reached by them.
void update_thread_keys() {
  constexpr uint64_t bits = at::kHandlerKeys.raw();
  const bool wanted = !thread_modes().user.empty() || innermost_slot() != nullptr;
  uint64_t& included = c10::tls_dispatch_keys.included;
  included = wanted ? included | bits : included & ~bits;
  if (wanted) at::show_definitions();
}

// Fills or empties (null) a slot; returns the mode that was there, a new reference or null.
PyRef exchange_slot(int index, PyObject* mode, c10::intrusive_ptr<at::NativeModeHandler> native) {
  Slot& slot = thread_modes().infra[index];
  PyRef before(std::exchange(slot.mode, nullptr));
  if (before) slot.set_active(false);
  Py_XINCREF(mode);
  slot.mode = mode;
  slot.native = std::move(native);
  if (mode) slot.set_active(true);
  update_thread_keys();
  return before;
}

PyObject* mode_at(size_t index) {
  const ThreadModes& modes = thread_modes();
  for (const Slot& slot : modes.infra) {
    if (!slot.visible()) continue;
    if (index-- == 0) return slot.mode;
  }
  return index < modes.user.size() ? modes.user[index] : nullptr;
}

void push_mode(PyObject* mode) {
  Py_INCREF(mode);
  thread_modes().user.push_back(mode);
  update_thread_keys();
}

// The innermost mode and the place it came from: a user mode, or an infrastructure slot.
struct Popped {
  PyRef mode;
  int slot = -1;
  c10::intrusive_ptr<at::NativeModeHandler> native = {};
};
Popped pop_mode() {
  ThreadModes& modes = thread_modes();
  Popped out;
  if (!modes.user.empty()) {
    out.mode = PyRef(modes.user.back());
    modes.user.pop_back();
    update_thread_keys();
    return out;
  }
  for (int slot = kInfraModes - 1; slot >= 0; --slot) {
    if (!modes.infra[slot].visible()) continue;
    out.slot = slot;
    out.native = modes.infra[slot].native;
    out.mode = exchange_slot(slot, nullptr, {});
    return out;
  }
  raise(PyExc_RuntimeError, "the torch dispatch mode stack is empty");
}

// Takes the innermost mode off while its handler runs.
class ModeOff {
 public:
  ModeOff() : popped_(pop_mode()) {}
  ~ModeOff() {
    if (popped_.slot < 0) {
      push_mode(popped_.mode.get());
    } else {
      exchange_slot(popped_.slot, popped_.mode.get(), std::move(popped_.native));
    }
  }
  ModeOff(const ModeOff&) = delete;
  ModeOff& operator=(const ModeOff&) = delete;
  PyObject* mode() const { return popped_.mode.get(); }

 private:
  Popped popped_;
};

// Hides a slot while its native handler runs. Touches no Python object.
class SlotOff {
 public:
  explicit SlotOff(Slot& slot) : slot_(slot) { set(true); }
  ~SlotOff() { set(false); }
  SlotOff(const SlotOff&) = delete;
  SlotOff& operator=(const SlotOff&) = delete;

 private:
  void set(bool hidden) {
    slot_.hidden = hidden;
    slot_.set_active(!hidden);
    update_thread_keys();
  }
  Slot& slot_;
};

// ---- the kernel
// ------------------------------------------------------------------------------------------------
bool is_composite(const at::OperatorEntry& op) {
  if (op.flags & at::kOpComposite) return true;
  using K = c10::DispatchKey;
  if (!op.has_kernel(K::CompositeImplicitAutograd)) return false;
  for (K key : {K::CompositeExplicitAutograd, K::CPU, K::CUDA, K::Meta}) {
    if (op.has_kernel(key)) return false;
  }
  return true;
}

// Objects of classes with __torch_dispatch__ among the arguments: one per class, subclasses first.
class Handlers {
 public:
  void add(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.key_set().has(c10::DispatchKey::Python)) return;
    PyRef object = checked(wrap(tensor));
    for (const PyRef& known : objects_) {
      if (Py_TYPE(known.get()) == Py_TYPE(object.get())) return;
    }
    auto where = std::find_if(objects_.begin(), objects_.end(), [&](const PyRef& known) {
      return PyType_IsSubtype(Py_TYPE(object.get()), Py_TYPE(known.get()));
    });
    objects_.insert(where, std::move(object));
  }
  void add(const at::IValue& value) {
    if (value.isTensor()) {
      add(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorList()) add(tensor);
    } else if (value.isOptionalTensorList()) {
      for (const auto& tensor : value.toOptionalTensorList()) {
        if (tensor) add(*tensor);
      }
    }
  }
  PyRef types() const {
    PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(objects_.size())));
    for (size_t i = 0; i < objects_.size(); ++i) {
      auto* type = reinterpret_cast<PyObject*>(Py_TYPE(objects_[i].get()));
      Py_INCREF(type);
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), type);
    }
    return out;
  }
  const std::vector<PyRef>& objects() const { return objects_; }

 private:
  std::vector<PyRef> objects_;
};

PyRef ask(PyObject* owner, PyObject* func, PyObject* types, const PythonCall& call) {
  PyRef handler = checked(PyObject_GetAttr(owner, torch_dispatch_name));
  PyObject* parts[] = {func, types, call.args.get(), call.kwargs.get()};
  return checked(PyObject_Vectorcall(handler.get(), parts, 4, nullptr));
}

[[noreturn]] void fail_unhandled(const at::OperatorEntry& op, PyObject* mode,
                                 const Handlers& handlers) {
  std::string message = "Multiple dispatch failed for 'torch._ops." + op.full_name();
  const size_t colons = message.find("::");
  if (colons != message.npos) message.replace(colons, 2, ".");
  if (!*op.overload) message += ".default";
  message += "'; all __torch_dispatch__ handlers returned NotImplemented:\n\n";
  if (mode) message += "  - mode object " + repr_of(mode) + "\n";
  for (const PyRef& object : handlers.objects()) {
    message += "  - tensor subclass ";
    message += repr_of(reinterpret_cast<PyObject*>(Py_TYPE(object.get()))) + "\n";
  }
  raise_type_error(message);
}

PyRef handle(const at::OperatorEntry& op, const at::Stack& stack) {
  const at::FunctionSchema& schema = op.schema();
  Handlers handlers;
  for (size_t i = stack.size() - schema.arguments.size(); i < stack.size(); ++i) {
    handlers.add(stack[i]);
  }
  PyRef func = overload_object(op);
  PyRef types = handlers.types();
  const PythonCall call = call_from_stack(schema, stack);
  PyRef mode;
  if (!thread_modes().user.empty() || innermost_slot() != nullptr) {
    ModeOff off;
    mode = PyRef::borrow(off.mode());
    PyRef result = ask(off.mode(), func.get(), types.get(), call);
    if (result.get() != Py_NotImplemented) return result;
  }
  for (const PyRef& object : handlers.objects()) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object.get()));
    PyRef result = ask(type, func.get(), types.get(), call);
    if (result.get() != Py_NotImplemented) return result;
  }
  fail_unhandled(op, mode.get(), handlers);
}

bool has_subclass_argument(const at::OperatorEntry& op, const at::Stack& stack) {
  Handlers handlers;
  for (size_t i = stack.size() - op.schema().arguments.size(); i < stack.size(); ++i) {
    handlers.add(stack[i]);
  }
  return !handlers.objects().empty();
}

// A view that a handler made as an object of its own is a view to autograd too: writes to it
// concern its base.
void mark_views(const at::OperatorEntry& op, const at::Tensor& base, const at::Stack& stack,
                size_t from) {
  using Origin = at::TensorImpl::ViewOrigin;
  const at::TensorImpl& source = *base.unsafeGetTensorImpl();
  if (source.is_inference() || std::strcmp(op.name, "aten::detach") == 0) return;
  const auto mark = [&](const at::Tensor& t, bool many) {
    at::TensorImpl* impl = t.unsafeGetTensorImpl();
    if (!t.key_set().has(c10::DispatchKey::Python) || impl->is_view() || t.is_same(base)) return;
    impl->set_view_of(source.is_view() ? source.base() : base.getIntrusivePtr());
    if (!c10::tls_autograd_state.grad_mode) impl->view_origin = Origin::NoGrad;
    if (many) impl->view_origin = Origin::MultiOutput;
    if (source.is_view() && source.view_origin != Origin::Default)
      impl->view_origin = source.view_origin;
  };
  for (size_t i = from; i < stack.size(); ++i) {
    if (stack[i].isTensor()) mark(stack[i].toTensor(), false);
    if (stack[i].isTensorList())
      for (const at::Tensor& t : stack[i].toTensorList()) mark(t, true);
  }
}

void call_in_python(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack& stack) {
  WithGil gil;
  const bool mode = !thread_modes().user.empty() || innermost_slot() != nullptr;
  if (!mode && !has_subclass_argument(op, stack)) { // native handlers have let the call pass
    op.redispatch_boxed(keys.remove(c10::DispatchKey::Python), stack);
    return;
  }
  const size_t from = stack.size() - op.schema().arguments.size();
  const bool views = (op.flags & at::kOpView) != 0 && stack[from].isTensor();
  const at::Tensor base = views ? stack[from].toTensor() : at::Tensor();
  PyRef result = handle(op, stack);
  push_result(op, stack, result.get());
  if (base.defined() && base.key_set().has(c10::DispatchKey::Python))
    mark_views(op, base, stack, from);
}

// Hands the call to the innermost mode: a native one at once, until one takes it.
void call_handlers(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack& stack) {
  Slot* slot = thread_modes().user.empty() ? innermost_slot() : nullptr;
  if (!slot || !slot->native) return call_in_python(op, keys, stack);
  const c10::intrusive_ptr<at::NativeModeHandler> handler = slot->native;
  SlotOff off(*slot);
  if (!handler->handle(op, keys, stack)) call_handlers(op, keys, stack);
}

struct PythonKeyKernel final : at::BoxedKernel {
  void call(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack& stack) override {
    if (is_composite(op)) {
      op.redispatch_boxed(keys.remove(c10::DispatchKey::Python), stack);
      return;
    }
    call_handlers(op, keys, stack);
  }
};

// ---- native handlers as Python values
// -------------------------------------------------------------------------------
constexpr const char* kHandlerCapsule = "torch.NativeModeHandler";

void drop_handler(PyObject* capsule) {
  auto* handler =
      static_cast<at::NativeModeHandler*>(PyCapsule_GetPointer(capsule, kHandlerCapsule));
  if (handler) handler->decref();
}

// The handler that a mode's attribute `_native_handler` holds; null where calls go through Python.
c10::intrusive_ptr<at::NativeModeHandler> native_handler_of(PyObject* mode) {
  PyRef capsule(PyObject_GetAttrString(mode, "_native_handler"));
  if (!capsule) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw python_error();
    PyErr_Clear();
    return {};
  }
  if (capsule.get() == Py_None) return {};
  void* handler = PyCapsule_GetPointer(capsule.get(), kHandlerCapsule);
  if (!handler) throw python_error();
  return c10::intrusive_ptr<at::NativeModeHandler>::reclaim_copy(
      static_cast<at::NativeModeHandler*>(handler));
}

// ---- functions of the module
// -----------------------------------------------------------------------------------
PyObject* infra_type = nullptr;

int infra_slot(PyObject* key) {
  const long slot = PyLong_AsLong(key);
  if (slot == -1 && PyErr_Occurred()) throw python_error();
  if (slot < 0 || slot >= kInfraModes) raise(PyExc_ValueError, "unknown mode key");
  return static_cast<int>(slot);
}

PyObject* py_push(PyObject*, PyObject* mode) {
  return guarded([&] {
    push_mode(mode);
    return new_none();
  });
}
PyObject* py_pop(PyObject*, PyObject* args) {
  PyObject* key = Py_None;
  if (!PyArg_ParseTuple(args, "|O", &key)) return nullptr;
  return guarded([&] {
    if (key == Py_None) return pop_mode().mode.release();
    const int slot = infra_slot(key);
    if (!thread_modes().infra[slot].visible())
      raise(PyExc_RuntimeError, "this infrastructure mode is not active");
    return exchange_slot(slot, nullptr, {}).release();
  });
}
PyObject* py_len(PyObject*, PyObject*) { return PyLong_FromSize_t(mode_count()); }
PyObject* py_at(PyObject*, PyObject* index) {
  const Py_ssize_t i = PyNumber_AsSsize_t(index, PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) return nullptr;
  PyObject* mode = i < 0 ? nullptr : mode_at(static_cast<size_t>(i));
  if (!mode) {
    PyErr_Format(PyExc_IndexError, "torch dispatch mode stack has %zu entries, asked for entry %zd",
                 mode_count(), i);
    return nullptr;
  }
  Py_INCREF(mode);
  return mode;
}
PyObject* py_get_infra(PyObject*, PyObject* key) {
  return guarded([&] {
    const Slot& slot = thread_modes().infra[infra_slot(key)];
    if (!slot.visible()) return new_none();
    Py_INCREF(slot.mode);
    return slot.mode;
  });
}
PyObject* py_set_infra(PyObject*, PyObject* mode) {
  return guarded([&] {
    PyRef key = checked(PyObject_GetAttrString(mode, "_mode_key"));
    exchange_slot(infra_slot(key.get()), mode, native_handler_of(mode));
    return new_none();
  });
}
PyObject* py_unset_infra(PyObject*, PyObject* key) {
  return guarded([&] {
    const int slot = infra_slot(key);
    if (!thread_modes().infra[slot].visible()) return new_none();
    return exchange_slot(slot, nullptr, {}).release();
  });
}

// _RestorePythonTLSSnapshot(): inside, __torch_dispatch__ is reached again from within a handler or
// a kernel that had switched it off.
struct PySnapshot {
  PyObject_HEAD c10::LocalDispatchKeySet saved;
  bool active;
};
PyTypeObject SnapshotType = type_object("torch._C._RestorePythonTLSSnapshot");
PyObject* snapshot_enter(PyObject* o, PyObject*) {
  auto* self = reinterpret_cast<PySnapshot*>(o);
  self->saved = c10::tls_dispatch_keys;
  self->active = true;
  c10::tls_dispatch_keys.excluded &= ~c10::DispatchKeySet(c10::DispatchKey::Python).raw();
  update_thread_keys();
  return new_none();
}
PyObject* snapshot_exit(PyObject* o, PyObject*) {
  auto* self = reinterpret_cast<PySnapshot*>(o);
  if (self->active) c10::tls_dispatch_keys = self->saved;
  self->active = false;
  return new_none();
}
PyMethodDef snapshot_methods[] = {{"__enter__", snapshot_enter, METH_NOARGS, nullptr},
                                  {"__exit__", snapshot_exit, METH_VARARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

bool init_snapshot(PyObject* module) {
  SnapshotType.tp_basicsize = sizeof(PySnapshot);
  SnapshotType.tp_flags = Py_TPFLAGS_DEFAULT;
  SnapshotType.tp_new = PyType_GenericNew;
  SnapshotType.tp_methods = snapshot_methods;
  return add_type(module, &SnapshotType);
}

PyMethodDef functions[] = {{"_push_on_torch_dispatch_stack", py_push, METH_O, nullptr},
                           {"_pop_torch_dispatch_stack", py_pop, METH_VARARGS, nullptr},
                           {"_len_torch_dispatch_stack", py_len, METH_NOARGS, nullptr},
                           {"_get_dispatch_stack_at", py_at, METH_O, nullptr},
                           {"_get_dispatch_mode", py_get_infra, METH_O, nullptr},
                           {"_set_dispatch_mode", py_set_infra, METH_O, nullptr},
                           {"_unset_dispatch_mode", py_unset_infra, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

PyRef native_handler_object(c10::intrusive_ptr<at::NativeModeHandler> handler) {
  PyRef capsule = checked(PyCapsule_New(handler.get(), kHandlerCapsule, drop_handler));
  handler.release();
  return capsule;
}

ProxyModeScope::ProxyModeScope() {
  Slot& slot = thread_modes().infra[kProxy];
  if (C10_LIKELY(!slot.visible())) return;
  mode_ = slot.mode;
  slot.hidden = true;
  slot.set_active(false);
  update_thread_keys();
}
ProxyModeScope::~ProxyModeScope() {
  if (C10_LIKELY(mode_ == nullptr)) return;
  Slot& slot = thread_modes().infra[kProxy];
  slot.hidden = false;
  slot.set_active(true);
  update_thread_keys();
}

DispatchModes DispatchModes::now() {
  DispatchModes out;
  for (const Slot& slot : thread_modes().infra)
    out.infra_.push_back({PyRef::borrow(slot.mode), slot.native});
  for (PyObject* mode : thread_modes().user) out.user_.push_back(PyRef::borrow(mode));
  return out;
}
void DispatchModes::put_back() const {
  ThreadModes& open = thread_modes();
  for (int i = 0; i < kInfraModes; ++i) {
    const Infra& noted = infra_[static_cast<size_t>(i)];
    if (open.infra[i].mode != noted.mode.get()) exchange_slot(i, noted.mode.get(), noted.native);
  }
  const bool same = std::equal(open.user.begin(), open.user.end(), user_.begin(), user_.end(),
                               [](PyObject* a, const PyRef& b) { return a == b.get(); });
  if (same) return;
  std::vector<PyRef> dropped; // freed once the stack is whole: a finalizer may use it
  for (PyObject* mode : open.user) dropped.emplace_back(mode);
  open.user.clear();
  for (const PyRef& mode : user_) open.user.push_back(PyRef::borrow(mode.get()).release());
  update_thread_keys();
}

bool init_python_dispatch(PyObject* module) {
  torch_dispatch_name = PyUnicode_InternFromString("__torch_dispatch__");
  infra_type = add_enum(module, "torch._C._TorchDispatchModeKey", kInfraMembers, kInfraModes);
  if (!torch_dispatch_name || !infra_type || !init_snapshot(module) ||
      PyModule_AddFunctions(module, functions) < 0) {
    return false;
  }
  return guarded([&]() -> int {
           at::Dispatcher::singleton().register_fallback(c10::DispatchKey::Python,
                                                         c10::make_intrusive<PythonKeyKernel>());
           return 0;
         }) == 0;
}

} // namespace torch::python
