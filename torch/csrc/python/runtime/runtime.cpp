// Grad and inference mode, default dtype, threads, determinism, and the hooks: large work releases
// the GIL, and Ctrl-C is noticed inside parallel regions.
#include <torch/csrc/python/runtime/runtime.h>

#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/runtime/lapack_finder.h>

#include <ATen/core/Context.h>
#include <ATen/parallel/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/Retired.h>
#include <c10/core/TensorImpl.h>

#include <cstring>

namespace torch::python {
namespace {

// ---- hooks --------------------------------------------------------------------------------------
// Work without the GIL: other threads may change the tensors it reads.
struct Unlocked {
  Unlocked() : ticket(c10::begin_unlocked_work()), state(PyEval_SaveThread()) {}
  ~Unlocked() {
    restore_thread(state);
    c10::end_unlocked_work(ticket);
  }
  uint64_t ticket;
  PyThreadState* state;
};

void* enter_blocking() {
  // Work may start on threads that never held the GIL.
  return Py_IsInitialized() && PyGILState_Check() ? new Unlocked : nullptr;
}
void leave_blocking(void* unlocked) { delete static_cast<Unlocked*>(unlocked); }

// Signal handlers run in the main thread only; others see "no signal".
bool interrupted() {
  if (!Py_IsInitialized()) return false;
  // A long backward pass keeps the GIL between large operators: others get their turn here.
  if (PyGILState_Check()) Unlocked others;
  WithGil gil;
  return PyErr_CheckSignals() < 0;
}

// ---- helpers ------------------------------------------------------------------------------------
bool as_bool(PyObject* value, const char* function) {
  if (!PyBool_Check(value)) {
    raise_type_error(c10::str(function, "(): argument 'enabled' (position 1) must be bool, not ",
                              type_name(value)));
  }
  return value == Py_True;
}
int as_count(PyObject* value, const char* function) {
  if (!is_integer_like(value)) {
    raise_type_error(c10::str(function, " expects an int, but got ", type_name(value)));
  }
  const int64_t n = to_int64(value);
  TORCH_CHECK(n > 0 && n < 1 << 20, function, " expects a positive integer\n  got ", n);
  return static_cast<int>(n);
}

// ---- autograd state -----------------------------------------------------------------------------
template <bool c10::AutogradState::*kFlag> PyObject* get_flag(PyObject*, PyObject*) {
  return new_bool(c10::tls_autograd_state.*kFlag);
}
template <bool c10::AutogradState::*kFlag> PyObject* set_flag(PyObject*, PyObject* value) {
  return guarded([&] {
    c10::tls_autograd_state.*kFlag = as_bool(value, "set_grad_enabled");
    return new_none();
  });
}

// _InferenceMode(enabled): active from construction to __exit__, as the Python class expects.
struct PyInferenceMode {
  PyObject_HEAD c10::InferenceModeState saved;
  bool active;
};
PyTypeObject InferenceModeType = type_object("torch._C._InferenceMode");

void leave_inference_mode(PyInferenceMode* self) {
  if (!self->active) return;
  self->active = false;
  c10::leave_inference_mode(self->saved);
}
PyObject* inference_new(PyTypeObject* type, PyObject* args, PyObject*) {
  int enabled = 1;
  if (!PyArg_ParseTuple(args, "|p", &enabled)) return nullptr;
  return guarded([&] {
    PyRef made = checked(type->tp_alloc(type, 0));
    auto* self = reinterpret_cast<PyInferenceMode*>(made.get());
    self->saved = c10::enter_inference_mode(enabled != 0);
    self->active = true;
    return made.release();
  });
}
void inference_dealloc(PyObject* self) {
  leave_inference_mode(reinterpret_cast<PyInferenceMode*>(self));
  Py_TYPE(self)->tp_free(self);
}
PyObject* inference_enter(PyObject* self, PyObject*) {
  Py_INCREF(self);
  return self;
}
PyObject* inference_exit(PyObject* self, PyObject*) {
  leave_inference_mode(reinterpret_cast<PyInferenceMode*>(self));
  return new_none();
}
PyMethodDef inference_methods[] = {{"__enter__", inference_enter, METH_NOARGS, nullptr},
                                   {"__exit__", inference_exit, METH_VARARGS, nullptr},
                                   {nullptr, nullptr, 0, nullptr}};

// ---- defaults -----------------------------------------------------------------------------------
PyObject* py_get_default_dtype(PyObject*, PyObject*) { return wrap(c10::get_default_dtype()); }
PyObject* py_set_default_dtype(PyObject*, PyObject* dtype) {
  return guarded([&] {
    c10::ScalarType type = c10::kFloat;
    if (!dtype_from_object(dtype, &type)) {
      raise_type_error(
          c10::str("invalid dtype object: only floating-point types are supported as the "
                   "default type\n  got ",
                   type_name(dtype)));
    }
    if (!c10::isFloatingType(type)) {
      raise_type_error("only floating-point types are supported as the default type");
    }
    c10::set_default_dtype(type);
    return new_none();
  });
}
PyObject* py_get_default_device(PyObject*, PyObject*) { return PyUnicode_FromString("cpu"); }

// ---- threads ------------------------------------------------------------------------------------
PyObject* py_get_num_threads(PyObject*, PyObject*) {
  return PyLong_FromLong(at::get_num_threads());
}
PyObject* py_set_num_threads(PyObject*, PyObject* n) {
  return guarded([&] {
    at::set_num_threads(as_count(n, "set_num_threads"));
    return new_none();
  });
}
PyObject* py_get_interop(PyObject*, PyObject*) {
  return PyLong_FromLong(at::get_num_interop_threads());
}
PyObject* py_set_interop(PyObject*, PyObject* n) {
  return guarded([&] {
    at::set_num_interop_threads(as_count(n, "set_num_interop_threads"));
    return new_none();
  });
}

// ---- settings -----------------------------------------------------------------------------------
template <std::atomic<bool> at::Context::*kSetting> PyObject* get_setting(PyObject*, PyObject*) {
  return new_bool((at::globalContext().*kSetting).load());
}
template <std::atomic<bool> at::Context::*kSetting>
PyObject* set_setting(PyObject*, PyObject* value) {
  return guarded([&] {
    (at::globalContext().*kSetting) = as_bool(value, "set");
    return new_none();
  });
}

PyObject* py_set_deterministic(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"mode", "warn_only", nullptr};
  int mode = 0, warn_only = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "p|$p", const_cast<char**>(names), &mode,
                                   &warn_only)) {
    return nullptr;
  }
  at::globalContext().deterministic_algorithms = mode != 0;
  at::globalContext().deterministic_warn_only = warn_only != 0;
  return new_none();
}

constexpr const char* kPrecisions[] = {"highest", "high", "medium"};
PyObject* py_get_precision(PyObject*, PyObject*) {
  const auto level = static_cast<int>(at::globalContext().float32_matmul_precision.load());
  return PyUnicode_FromString(kPrecisions[level]);
}
PyObject* py_set_precision(PyObject*, PyObject* name) {
  return guarded([&] {
    for (int i = 0; PyUnicode_Check(name) && i < 3; ++i) {
      if (utf8(name) == kPrecisions[i]) {
        at::globalContext().float32_matmul_precision = static_cast<at::Float32MatmulPrecision>(i);
        return new_none();
      }
    }
    raise(PyExc_RuntimeError,
          c10::str(repr_of(name), " is not one of 'highest', 'high', or 'medium'"));
  });
}

// _increment_version(tensors): for kernels that wrote to memory behind autograd's back.
PyObject* py_increment_version(PyObject*, PyObject* what) {
  return guarded([&] {
    auto bump = [](PyObject* o) {
      if (!is_tensor(o)) raise_type_error(c10::str("expected a tensor, got ", type_name(o)));
      if (!tensor_of(o).is_inference()) tensor_of(o).unsafeGetTensorImpl()->bump_version();
    };
    if (is_tensor(what)) {
      bump(what);
      return new_none();
    }
    PyRef items = checked(PySequence_Fast(what, "expected a tensor or a sequence of tensors"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      bump(PySequence_Fast_GET_ITEM(items.get(), i));
    }
    return new_none();
  });
}

// Denormals are kept: results must not depend on which thread computed them.
PyObject* py_set_flush_denormal(PyObject*, PyObject* mode) {
  return guarded([&] { return new_bool(!as_bool(mode, "set_flush_denormal")); });
}
// Usage is not recorded, and nothing is ever being traced by torch.jit.
PyObject* py_nothing(PyObject*, PyObject*) { return new_none(); }

PyObject* py_show_config(PyObject*, PyObject*) {
  return guarded([] {
    return wrap(c10::str("Cresset built with:\n  - GCC ", __VERSION__,
                         "\n  - C++ Version: ", static_cast<long>(__cplusplus),
                         "\n  - threads: ", at::get_num_threads(), "\n"));
  });
}

using State = c10::AutogradState;
using Settings = at::Context;

// For tests: _set_alloc_failure(k, persist=False), see c10/core/CPUAllocator.h.
PyObject* py_set_alloc_failure(PyObject*, PyObject* args) {
  return guarded([&] {
    long long k = 0;
    int persist = 0;
    if (!PyArg_ParseTuple(args, "L|p:_set_alloc_failure", &k, &persist)) throw python_error();
    c10::set_alloc_failure(k, persist != 0);
    return new_none();
  });
}
// For tests of memory: (live bytes, their peak since the last reset). With reset the peak starts
// again at what is live now.
PyObject* py_cpu_memory(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int reset = 0;
    if (!PyArg_ParseTuple(args, "|p:_cpu_memory", &reset)) throw python_error();
    if (reset != 0) c10::reset_cpu_peak_bytes();
    const c10::CPUAllocatorStats stats = c10::cpu_allocator_stats();
    return Py_BuildValue("LL", static_cast<long long>(stats.live_bytes),
                         static_cast<long long>(stats.peak_bytes));
  });
}
PyObject* py_live_allocations(PyObject*, PyObject*) {
  const c10::CPUAllocatorStats stats = c10::cpu_allocator_stats();
  return PyLong_FromLongLong(stats.data_blocks + stats.pooled_objects);
}

PyMethodDef functions[] = {
    {"is_grad_enabled", get_flag<&State::grad_mode>, METH_NOARGS, nullptr},
    {"_set_grad_enabled", set_flag<&State::grad_mode>, METH_O, nullptr},
    {"is_inference_mode_enabled", get_flag<&State::inference_mode>, METH_NOARGS, nullptr},
    {"_is_fwd_grad_enabled", get_flag<&State::fw_grad_mode>, METH_NOARGS, nullptr},
    {"_set_fwd_grad_enabled", set_flag<&State::fw_grad_mode>, METH_O, nullptr},
    {"_is_multithreading_enabled", get_flag<&State::multithreading>, METH_NOARGS, nullptr},
    {"_set_multithreading_enabled", set_flag<&State::multithreading>, METH_O, nullptr},
    {"_is_view_replay_enabled", get_flag<&State::view_replay>, METH_NOARGS, nullptr},
    {"_set_view_replay_enabled", set_flag<&State::view_replay>, METH_O, nullptr},
    {"get_default_dtype", py_get_default_dtype, METH_NOARGS, nullptr},
    {"_set_default_dtype", py_set_default_dtype, METH_O, nullptr},
    {"_get_default_device", py_get_default_device, METH_NOARGS, nullptr},
    {"get_num_threads", py_get_num_threads, METH_NOARGS, nullptr},
    {"set_num_threads", py_set_num_threads, METH_O, nullptr},
    {"get_num_interop_threads", py_get_interop, METH_NOARGS, nullptr},
    {"set_num_interop_threads", py_set_interop, METH_O, nullptr},
    {"_set_deterministic_algorithms", as_method(py_set_deterministic), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"_get_deterministic_algorithms", get_setting<&Settings::deterministic_algorithms>, METH_NOARGS,
     nullptr},
    {"_get_deterministic_algorithms_warn_only", get_setting<&Settings::deterministic_warn_only>,
     METH_NOARGS, nullptr},
    {"_get_deterministic_fill_uninitialized_memory",
     get_setting<&Settings::deterministic_fill_uninitialized>, METH_NOARGS, nullptr},
    {"_set_deterministic_fill_uninitialized_memory",
     set_setting<&Settings::deterministic_fill_uninitialized>, METH_O, nullptr},
    {"_get_warnAlways", get_setting<&Settings::warn_always>, METH_NOARGS, nullptr},
    {"_set_warnAlways", set_setting<&Settings::warn_always>, METH_O, nullptr},
    {"_get_float32_matmul_precision", py_get_precision, METH_NOARGS, nullptr},
    {"_set_float32_matmul_precision", py_set_precision, METH_O, nullptr},
    {"_increment_version", py_increment_version, METH_O, nullptr},
    {"set_flush_denormal", py_set_flush_denormal, METH_O,
     "set_flush_denormal(mode, /)\n\nAnswers whether the mode could be set: denormals are always "
     "kept."},
    {"_set_alloc_failure", py_set_alloc_failure, METH_VARARGS, nullptr},
    {"_live_allocations", py_live_allocations, METH_NOARGS, nullptr},
    {"_cpu_memory", py_cpu_memory, METH_VARARGS, nullptr},
    {"_log_api_usage_once", py_nothing, METH_VARARGS, nullptr},
    {"_get_tracing_state", py_nothing, METH_NOARGS, nullptr},
    {"_show_config", py_show_config, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_runtime(PyObject* module) {
  InferenceModeType.tp_basicsize = sizeof(PyInferenceMode);
  InferenceModeType.tp_flags = Py_TPFLAGS_DEFAULT;
  InferenceModeType.tp_new = inference_new;
  InferenceModeType.tp_dealloc = inference_dealloc;
  InferenceModeType.tp_methods = inference_methods;
  if (!add_type(module, &InferenceModeType)) return false;
  at::set_blocking_hooks({enter_blocking, leave_blocking});
  at::set_interrupt_check(interrupted);
  install_lapack_finder();
  return PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
