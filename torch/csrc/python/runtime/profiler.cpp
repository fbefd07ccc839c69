// Records the operators a thread dispatches, and named ranges, for torch.profiler.
//
// The recorder is a fallback kernel of a dispatch key of its own, the highest but one. A thread
// that records adds the key to its included keys, so every operator passes here first and goes on
// below; with no recording the key is nowhere and the dispatcher does exactly what it did before.
// Nested operators pass here too, which gives the tree that self times are computed from (in
// Python, torch/autograd/profiler_util.py).
//
// With a device recorder every event is a mark on its thread while it is open, so that the device's
// work is known by the innermost event that started it. The same kernel serves emit_nvtx, where
// events are only handed on as ranges and nothing is kept.
#include <torch/csrc/python/runtime/profiler.h>

#include <frameobject.h> // up to 3.10 the only place of PyFrame_GetBack

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Dispatcher.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>
#include <ATen/native/attention/SdpChoice.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/MemoryRecord.h>
#include <torch/csrc/python/types/types.h>

namespace torch::python {
namespace {

constexpr c10::DispatchKey kProfilerKey = c10::DispatchKey::Profiler;
constexpr int kMaxFrames = 64;

struct Event {
  std::string name;
  const char* overload = "";
  int64_t start = 0, end = -1; // nanoseconds of the steady clock
  int64_t parent = -1;
  int64_t cpu_bytes = 0, device_bytes = 0; // of new storages among the results
  bool is_operator = false;
  // One entry per argument; a list of tensors has several.
  std::vector<std::vector<std::vector<int64_t>>> shapes;
  std::vector<std::string> dtypes;
  std::vector<std::string> stack;
};

const DeviceRecorder* device_recorder = nullptr;

struct Recording {
  bool shapes = false, stacks = false, memory = false;
  bool ranges = true;        // are events; false where the device alone is recorded
  bool on_device = false;    // the device's work is recorded, for this thread
  bool emits = false;        // events become ranges of the vendor's tools and are not kept
  bool keeps_record = false; // of allocations: the first thread that asks keeps it for all
  int64_t number = 0;        // of the recording, in the process
  std::vector<Event> events;
  std::vector<int64_t> open; // indices of events that have not ended, outermost first

  Recording() {
    static std::atomic<int64_t> recordings{0};
    number = ++recordings;
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  // A thread that ends while it records, maybe with the process, leaves nobody to read it.
  ~Recording() {
    if (on_device) device_recorder->abandon();
  }
};

thread_local std::unique_ptr<Recording> t_recording;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t begin(Recording& r, std::string name, const char* overload, bool is_operator) {
  Event event;
  event.name = std::move(name);
  event.overload = overload;
  event.is_operator = is_operator;
  event.parent = r.open.empty() ? -1 : r.open.back();
  event.start = now();
  r.events.push_back(std::move(event));
  r.open.push_back(static_cast<int64_t>(r.events.size()) - 1);
  if (r.on_device) device_recorder->push_mark(static_cast<uint64_t>(r.events.size()));
  return r.open.back();
}

// Ends the event and whatever was opened inside it and left open.
void finish(Recording& r, int64_t index) {
  const int64_t end = now();
  while (!r.open.empty() && r.open.back() >= index) {
    r.events[r.open.back()].end = end;
    r.open.pop_back();
    if (r.on_device) device_recorder->pop_mark();
  }
}

void note_tensor(Event& event, const at::Tensor& t,
                 std::vector<std::vector<std::vector<int64_t>>>& shapes) {
  shapes.back().push_back(t.defined() ? t.sizes().vec() : std::vector<int64_t>());
  if (event.dtypes.back().empty() && t.defined())
    event.dtypes.back() = c10::toString(t.scalar_type());
}

void note_arguments(Event& event, const at::Stack& stack, size_t from) {
  for (size_t i = from; i < stack.size(); ++i) {
    event.shapes.emplace_back();
    event.dtypes.emplace_back();
    if (stack[i].isTensor()) note_tensor(event, stack[i].toTensor(), event.shapes);
    if (!stack[i].isTensorList()) continue;
    for (const at::Tensor& t : stack[i].toTensorList()) note_tensor(event, t, event.shapes);
  }
}

void note_stack(Event& event) {
  WithGil gil;
  PyRef frame(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  for (int depth = 0; frame && depth < kMaxFrames; ++depth) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.get());
    PyRef code(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
    PyRef file(PyObject_GetAttrString(code.get(), "co_filename"));
    PyRef name(PyObject_GetAttrString(code.get(), "co_name"));
    if (!file || !name) {
      PyErr_Clear();
      return;
    }
    event.stack.push_back(text_of(file.get()) + "(" + std::to_string(PyFrame_GetLineNumber(f)) +
                          "): " + text_of(name.get()));
    frame = PyRef(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
}

void collect_storages(const at::Stack& stack, size_t from, std::vector<const void*>& out) {
  const auto add = [&](const at::Tensor& t) {
    if (t.defined() && t.has_storage()) out.push_back(t.storage().get());
  };
  for (size_t i = from; i < stack.size(); ++i) {
    if (stack[i].isTensor()) add(stack[i].toTensor());
    if (!stack[i].isTensorList()) continue;
    for (const at::Tensor& t : stack[i].toTensorList()) add(t);
  }
}

void note_results(Event& event, const at::Stack& stack, size_t from,
                  std::vector<const void*>& known) {
  const auto add = [&](const at::Tensor& t) {
    if (!t.defined() || !t.has_storage()) return;
    const void* storage = t.storage().get();
    for (const void* k : known)
      if (k == storage) return;
    known.push_back(storage);
    const auto bytes = static_cast<int64_t>(t.storage()->nbytes());
    (t.is_cpu() ? event.cpu_bytes : event.device_bytes) += bytes;
  };
  for (size_t i = from; i < stack.size(); ++i) {
    if (stack[i].isTensor()) add(stack[i].toTensor());
    if (!stack[i].isTensorList()) continue;
    for (const at::Tensor& t : stack[i].toTensorList()) add(t);
  }
}

// The name of a range: the operator and, where asked for, its arguments' sizes.
std::string range_name(const Recording& r, const at::OperatorEntry& op, const at::Stack& stack) {
  if (!r.shapes) return op.name;
  Event event;
  note_arguments(event, stack, stack.size() - op.schema().arguments.size());
  std::string text = op.name + std::string(", sizes = [");
  const auto add_shape = [&](const std::vector<int64_t>& shape) {
    text += "[";
    for (size_t i = 0; i < shape.size(); ++i)
      text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    text += "]";
  };
  for (size_t i = 0; i < event.shapes.size(); ++i) {
    if (i != 0) text += ", ";
    if (event.shapes[i].size() == 1) {
      add_shape(event.shapes[i][0]);
      continue;
    }
    text += "[";
    for (size_t j = 0; j < event.shapes[i].size(); ++j) {
      if (j != 0) text += ", ";
      add_shape(event.shapes[i][j]);
    }
    text += "]";
  }
  return text + "]";
}

struct EmittedRange {
  explicit EmittedRange(const std::string& name) { device_recorder->push_range(name.c_str()); }
  ~EmittedRange() { device_recorder->pop_range(); }
  EmittedRange(const EmittedRange&) = delete;
};

class RecordCall final : public at::BoxedKernel {
 public:
  void call(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack& stack) override {
    const c10::DispatchKeySet below = keys.remove(kProfilerKey);
    Recording* r = t_recording.get();
    if (r == nullptr) {
      op.redispatch_boxed(below, stack);
      return;
    }
    if (r->emits) {
      const EmittedRange range(range_name(*r, op, stack));
      op.redispatch_boxed(below, stack);
      return;
    }
    const size_t from = stack.size() - op.schema().arguments.size();
    const int64_t index = begin(*r, op.name, op.overload, true);
    if (r->shapes) note_arguments(r->events[index], stack, from);
    if (r->stacks) note_stack(r->events[index]);
    std::vector<const void*> storages;
    if (r->memory) collect_storages(stack, from, storages);
    // The operator may end the recording (a Python kernel can do anything): r is looked up anew.
    struct Finish {
      Recording* r;
      int64_t index;
      ~Finish() {
        if (t_recording.get() == r) finish(*r, index);
      }
    } finish_guard{r, index};
    op.redispatch_boxed(below, stack);
    if (t_recording.get() == r && r->memory) note_results(r->events[index], stack, from, storages);
  }
};

void include_key(bool on) {
  const uint64_t bit = c10::DispatchKeySet(kProfilerKey).raw();
  uint64_t& included = c10::tls_dispatch_keys.included;
  included = on ? included | bit : included & ~bit;
}

// Makes operators of this thread pass RecordCall.
void pass_here() {
  static const bool registered = [] {
    at::Dispatcher::singleton().register_fallback(kProfilerKey, c10::make_intrusive<RecordCall>());
    return true;
  }();
  (void)registered;
  include_key(true);
}

// _profiler_start(record_shapes, with_stack, profile_memory, operators, device): None, or why the
// device's work is not recorded though it was asked for.
PyObject* start(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int shapes = 0, stacks = 0, memory = 0, operators = 1, device = 0;
    if (!PyArg_ParseTuple(args, "ppp|pp", &shapes, &stacks, &memory, &operators, &device))
      throw python_error();
    TORCH_CHECK(!t_recording, "Profiler is already enabled on this thread");
    std::string problem;
    if (device)
      problem =
          device_recorder == nullptr ? "this build has no CUDA part" : device_recorder->start();
    t_recording = std::make_unique<Recording>();
    t_recording->shapes = shapes;
    t_recording->stacks = stacks;
    t_recording->memory = memory;
    t_recording->ranges = operators;
    t_recording->on_device = device && problem.empty();
    t_recording->keeps_record = memory && c10::start_memory_record();
    if (operators) pass_here();
    if (problem.empty()) return new_none();
    return PyUnicode_FromStringAndSize(problem.data(), static_cast<Py_ssize_t>(problem.size()));
  });
}

// _profiler_emit(record_shapes): hands operators and ranges of this thread on as ranges of the
// vendor's tools, until _profiler_stop.
PyObject* emit(PyObject*, PyObject* shapes) {
  return guarded([&]() -> PyObject* {
    TORCH_CHECK(!t_recording, "Profiler is already enabled on this thread");
    TORCH_CHECK_NOT_IMPLEMENTED(device_recorder != nullptr,
                                "emit_nvtx: this build has no CUDA part");
    t_recording = std::make_unique<Recording>();
    t_recording->shapes = shapes == Py_True;
    t_recording->emits = true;
    pass_here();
    return new_none();
  });
}

PyRef list_of(const std::vector<std::string>& texts) {
  PyRef out = checked(PyList_New(static_cast<Py_ssize_t>(texts.size())));
  for (size_t i = 0; i < texts.size(); ++i)
    PyList_SET_ITEM(
        out.get(), i,
        checked(PyUnicode_DecodeUTF8(texts[i].data(), texts[i].size(), "replace")).release());
  return out;
}
PyRef list_of(const std::vector<int64_t>& numbers) {
  PyRef out = checked(PyList_New(static_cast<Py_ssize_t>(numbers.size())));
  for (size_t i = 0; i < numbers.size(); ++i)
    PyList_SET_ITEM(out.get(), i, checked(PyLong_FromLongLong(numbers[i])).release());
  return out;
}
// One shape, or a list of them for a list of tensors; [] for what is no tensor.
PyRef shapes_of(const Event& event) {
  PyRef out = checked(PyList_New(0));
  for (const auto& argument : event.shapes) {
    PyRef item;
    if (argument.size() == 1) {
      item = list_of(argument[0]);
    } else {
      item = checked(PyList_New(0));
      for (const auto& shape : argument)
        check_status(PyList_Append(item.get(), list_of(shape).get()));
    }
    check_status(PyList_Append(out.get(), item.get()));
  }
  return out;
}

PyRef describe(const Event& e, int64_t fallback_end) {
  PyRef shapes = shapes_of(e), dtypes = list_of(e.dtypes), stack = list_of(e.stack);
  return checked(Py_BuildValue(
      "(s#sLLLLLOOOO)", e.name.data(), static_cast<Py_ssize_t>(e.name.size()), e.overload,
      static_cast<long long>(e.start), static_cast<long long>(e.end < 0 ? fallback_end : e.end),
      static_cast<long long>(e.parent), static_cast<long long>(e.cpu_bytes),
      static_cast<long long>(e.device_bytes), e.is_operator ? Py_True : Py_False, shapes.get(),
      dtypes.get(), stack.get()));
}

PyRef describe(const c10::MemoryChange& c) {
  return checked(
      Py_BuildValue("(LKLL)", static_cast<long long>(c.when),
                    static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(c.address)),
                    static_cast<long long>(c.bytes), static_cast<long long>(c.total)));
}

PyRef stop_device(const Recording& r) {
  for (size_t i = 0; i < r.open.size(); ++i) device_recorder->pop_mark();
  return device_recorder->stop();
}

// _profiler_stop(): the events as tuples (name, overload, start_ns, end_ns, parent, cpu_bytes,
// device_bytes, is_operator, shapes, dtypes, stack), in the order they began, and the allocations
// as tuples (time_ns, address, bytes, total_bytes), and the device's work and the calls that
// started it as tuples (kind, name, start_ns, end_ns, correlation, event, device, context, stream,
// thread, bytes, grid, block, shared_memory, registers); event counts from 1, 0 is none.
PyObject* stop(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    TORCH_CHECK(t_recording, "Profiler is not enabled on this thread");
    include_key(false);
    const std::unique_ptr<Recording> r = std::move(t_recording);
    const int64_t end = now();
    PyRef out = checked(PyList_New(0)), changes = checked(PyList_New(0));
    PyRef work = std::exchange(r->on_device, false) ? stop_device(*r) : checked(PyList_New(0));
    size_t listed = 0;
    const auto list = [&](const PyRef& to, const PyRef& item) {
      check_status(PyList_Append(to.get(), item.get()));
      if (++listed % 4096 == 0) check_status(PyErr_CheckSignals()); // there may be millions
    };
    for (const Event& e : r->events) list(out, describe(e, end));
    if (r->keeps_record)
      for (const c10::MemoryChange& c : c10::stop_memory_record()) list(changes, describe(c));
    return checked(PyTuple_Pack(3, out.get(), changes.get(), work.get())).release();
  });
}
PyObject* enabled(PyObject*, PyObject*) { return new_bool(t_recording != nullptr); }

// A handle names the recording too: a range may outlive the one it was opened in, and must not end
// an event of the next.
constexpr int kHandleBits = 40;
constexpr long kEmitted = -2; // the handle of a range that was handed on
// _profiler_begin(name): opens a named range and returns a handle for _profiler_end; -1 when
// nothing records.
PyObject* begin_range(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    if (!PyUnicode_Check(name)) raise_type_error("expected the name of a range");
    Recording* r = t_recording.get();
    if (r == nullptr || !r->ranges) return PyLong_FromLong(-1);
    if (r->emits) {
      device_recorder->push_range(std::string(utf8(name)).c_str());
      return PyLong_FromLong(kEmitted);
    }
    const int64_t index = begin(*r, std::string(utf8(name)), "", false);
    if (r->stacks) note_stack(r->events[index]);
    return PyLong_FromLongLong(r->number << kHandleBits | index);
  });
}
PyObject* end_range(PyObject*, PyObject* handle) {
  return guarded([&]() -> PyObject* {
    const long long number = PyLong_AsLongLong(handle);
    if (number == -1 && PyErr_Occurred()) throw python_error();
    if (number == kEmitted) device_recorder->pop_range();
    Recording* r = t_recording.get();
    const long long index = number & ((1LL << kHandleBits) - 1);
    if (r != nullptr && number >= 0 && number >> kHandleBits == r->number &&
        index < static_cast<long long>(r->events.size()) && r->events[index].end < 0)
      finish(*r, index);
    return new_none();
  });
}
PyObject* clock_now(PyObject*, PyObject*) { return PyLong_FromLongLong(now()); }

PyObject* get_sdp(PyObject*, PyObject*) { return PyLong_FromLong(at::allowed_sdp_backends()); }
PyObject* set_sdp(PyObject*, PyObject* bits) {
  return guarded([&]() -> PyObject* {
    const unsigned long value = PyLong_AsUnsignedLong(bits);
    if (PyErr_Occurred()) throw python_error();
    at::allow_sdp_backends(static_cast<uint32_t>(value));
    return new_none();
  });
}

PyMethodDef functions[] = {{"_profiler_start", start, METH_VARARGS, nullptr},
                           {"_profiler_emit", emit, METH_O, nullptr},
                           {"_profiler_stop", stop, METH_NOARGS, nullptr},
                           {"_profiler_enabled", enabled, METH_NOARGS, nullptr},
                           {"_profiler_begin", begin_range, METH_O, nullptr},
                           {"_profiler_end", end_range, METH_O, nullptr},
                           {"_profiler_clock", clock_now, METH_NOARGS, nullptr},
                           {"_get_sdp_backends", get_sdp, METH_NOARGS, nullptr},
                           {"_set_sdp_backends", set_sdp, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

void set_device_recorder(const DeviceRecorder* recorder) noexcept { device_recorder = recorder; }

bool is_profiling() noexcept { return t_recording != nullptr; }

bool init_profiler(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

} // namespace torch::python
