// Settings that change what operators do without being arguments: one word for the thread's and the
// process's switches, so that a guard on all of them is one comparison.
#include <torch/csrc/dynamo/guards.h>

#include <ATen/core/Context.h>
#include <ATen/parallel/Parallel.h>
#include <c10/core/TensorOptions.h>
#include <torch/csrc/autocast/Autocast.h>
#include <torch/csrc/python/dispatch/function_modes.h>
#include <torch/csrc/python/dispatch/torch_function.h>

namespace torch::dynamo {
namespace {

// Where each setting stands in the word. The name is the one that messages give.
struct Field {
  const char* name;
  int bits;
};
constexpr Field kFields[] = {
    {"grad_mode", 1},
    {"inference_mode", 1},
    {"torch_function", 2},
    {"torch_function_mode_stack", 4},
    {"deterministic_algorithms", 1},
    {"deterministic_algorithms_warn_only", 1},
    {"matmul_precision", 2},
    {"default_dtype", 8},
    {"autocast", 4},
    {"autocast_dtype", 16},
};

uint64_t pack(const uint64_t (&values)[sizeof(kFields) / sizeof(kFields[0])]) {
  uint64_t word = 0;
  int shift = 0;
  for (size_t i = 0; i < sizeof(kFields) / sizeof(kFields[0]); ++i) {
    word |= (values[i] & ((uint64_t{1} << kFields[i].bits) - 1)) << shift;
    shift += kFields[i].bits;
  }
  return word;
}

} // namespace

GlobalState GlobalState::now() {
  using at::autocast::is_enabled;
  const auto& thread = c10::tls_autograd_state;
  const auto& process = at::globalContext();
  const uint64_t cpu = is_enabled(c10::DeviceType::CPU), cuda = is_enabled(c10::DeviceType::CUDA);
  const uint64_t cpu_type = cpu ? uint64_t(at::autocast::dtype(c10::DeviceType::CPU)) : 0;
  const uint64_t cuda_type = cuda ? uint64_t(at::autocast::dtype(c10::DeviceType::CUDA)) : 0;
  const uint64_t cached = (cpu || cuda) && at::autocast::is_cache_enabled();
  const uint64_t values[] = {
      thread.grad_mode,
      thread.inference_mode,
      static_cast<uint64_t>(python::function_state()),
      std::min<uint64_t>(python::function_mode_count(), 15),
      process.deterministic_algorithms.load(std::memory_order_relaxed),
      process.deterministic_warn_only.load(std::memory_order_relaxed),
      static_cast<uint64_t>(process.float32_matmul_precision.load(std::memory_order_relaxed)),
      static_cast<uint64_t>(c10::get_default_dtype()),
      cpu | (cuda << 1) | (cached << 2),
      cpu_type | (cuda_type << 8),
  };
  GlobalState out;
  out.word = pack(values);
  out.threads = at::get_num_threads();
  return out;
}

std::string GlobalState::changes() const {
  const GlobalState current = now();
  std::string out;
  int shift = 0;
  for (const Field& field : kFields) {
    const uint64_t mask = (uint64_t{1} << field.bits) - 1;
    if (((word >> shift) & mask) != ((current.word >> shift) & mask))
      out += std::string(field.name) + " ";
    shift += field.bits;
  }
  if (threads != current.threads) out += "num_threads ";
  return out;
}

namespace {

struct GlobalStateObject {
  PyObject_HEAD GlobalState state;
};
PyTypeObject GlobalStateType = python::type_object("torch._C._dynamo.guards.GlobalStateGuard");

GlobalState& state_of(PyObject* self) { return reinterpret_cast<GlobalStateObject*>(self)->state; }

PyObject* state_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) state_of(self) = GlobalState::now();
  return self;
}
PyObject* state_check(PyObject* self, PyObject*) {
  return python::new_bool(state_of(self) == GlobalState::now());
}
PyObject* state_reason(PyObject* self, PyObject*) {
  return PyUnicode_FromString(state_of(self).changes().c_str());
}
PyMethodDef state_methods[] = {
    {"check", state_check, METH_NOARGS, "Whether all settings are as they were."},
    {"reason", state_reason, METH_NOARGS, "Names of the settings that changed."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_global_state(PyObject* module) {
  GlobalStateType.tp_basicsize = sizeof(GlobalStateObject);
  GlobalStateType.tp_flags = Py_TPFLAGS_DEFAULT;
  GlobalStateType.tp_new = state_new;
  GlobalStateType.tp_methods = state_methods;
  GlobalStateType.tp_doc = "The settings of the thread and the process when the object was made.";
  return python::add_type(module, &GlobalStateType);
}

} // namespace torch::dynamo
