// torch.Generator: a source of random numbers with a state that can be read and set.
#include <torch/csrc/python/types/types.h>

#include <torch/csrc/python/args/arg_parser.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/EmptyTensor.h>
#include <c10/core/DeviceHooks.h>
#ifndef CRESSET_NO_CUDA
#include <ATen/cuda/CUDAGenerator.h>
#endif

#include <cstring>
#include <memory>
#include <mutex>

namespace torch::python {

PyTypeObject GeneratorType = type_object("torch._C.Generator");

namespace {

c10::GeneratorImpl& impl_of(PyObject* self) {
  return *reinterpret_cast<PyGenerator*>(self)->generator;
}

PyObject* new_object(PyTypeObject* type, at::Generator generator) {
  auto* self = reinterpret_cast<PyGenerator*>(type->tp_alloc(type, 0));
  if (!self) throw python_error();
  new (&self->generator) at::Generator(std::move(generator));
  self->generator->pyobj = self;
  return reinterpret_cast<PyObject*>(self);
}

// The generator's lock. Who waits for it lets other threads run Python: the one that holds it may
// be filling memory and want the interpreter to ask for Ctrl-C.
class Locked {
 public:
  explicit Locked(c10::GeneratorImpl& generator) : mutex_(generator.mutex) {
    if (C10_LIKELY(mutex_.try_lock())) return;
    NoGil waiting;
    mutex_.lock();
  }
  ~Locked() { mutex_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  std::mutex& mutex_;
};

// Making the tensor may run Python code (the garbage collector's), so that the lock is given back
// before.
at::Tensor state_tensor(c10::GeneratorImpl& generator) {
  std::vector<uint8_t> bytes;
  {
    const Locked lock(generator);
    bytes = generator.state();
  }
  at::Tensor out = at::detail::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
  std::memcpy(out.data_ptr(), bytes.data(), bytes.size());
  return out;
}

// ---- construction -------------------------------------------------------------------------------
PyObject* make_generator(ArgValues& a) {
  const c10::Device device = a.opt_device(0).value_or(c10::Device());
  if (device.is_cpu()) return new_object(&GeneratorType, at::detail::createCPUGenerator());
  c10::DeviceHooks* hooks = c10::device_hooks(device.type());
  TORCH_CHECK(hooks != nullptr, "Device type ", device.type(),
              " is not supported for torch.Generator() api: this build has no such generators.");
  return new_object(&GeneratorType, hooks->new_generator(device.index()));
}
constexpr Param kParams[] = {{"device", P::Device, kHasDefault | kOptional, 0, "None"}};
const Signature kSignature[] = {
    {kParams, 1, 1, kNoOverride, make_generator, "Generator(Device device=None)"}};
const Function kConstructor = {"Generator", "torch", kSignature, 1};

PyObject* generator_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return call_tuple(kConstructor, nullptr, args, kwargs);
}

void generator_dealloc(PyObject* self) {
  auto* object = reinterpret_cast<PyGenerator*>(self);
  if (object->generator) object->generator->pyobj = nullptr;
  std::destroy_at(&object->generator);
  Py_TYPE(self)->tp_free(self);
}

// ---- methods ------------------------------------------------------------------------------------
uint64_t seed_value(PyObject* o) {
  if (!is_integer_like(o)) {
    raise(PyExc_RuntimeError, c10::str("manual_seed expected a long, but got ", type_name(o)));
  }
  PyRef number = checked(PyNumber_Index(o));
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (!overflow) return static_cast<uint64_t>(value);
  const unsigned long long large = PyLong_AsUnsignedLongLong(number.get());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    raise(PyExc_ValueError, "Overflow when unpacking long long");
  }
  return large;
}

PyObject* generator_manual_seed(PyObject* self, PyObject* seed) {
  return guarded([&] {
    c10::GeneratorImpl& impl = impl_of(self);
    const uint64_t value = seed_value(seed);
    const Locked lock(impl);
    impl.set_current_seed(value);
    Py_INCREF(self);
    return self;
  });
}
PyObject* generator_seed(PyObject* self, PyObject*) {
  return guarded([&] {
    c10::GeneratorImpl& impl = impl_of(self);
    const Locked lock(impl);
    return PyLong_FromUnsignedLongLong(impl.seed());
  });
}
PyObject* generator_initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(impl_of(self).current_seed());
}
PyObject* generator_get_state(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(state_tensor(impl_of(self))); });
}
PyObject* generator_set_state(PyObject* self, PyObject* state) {
  return guarded([&] {
    if (!is_tensor(state)) {
      raise_type_error(c10::str("expected a torch.ByteTensor, but got ", type_name(state)));
    }
    const at::Tensor& tensor = tensor_of(state);
    if (tensor.scalar_type() != at::kByte || !tensor.is_cpu() || tensor.dim() != 1 ||
        !tensor.is_contiguous()) {
      raise_type_error("RNG state must be a torch.ByteTensor");
    }
    c10::GeneratorImpl& impl = impl_of(self);
    const Locked lock(impl);
    impl.set_state(static_cast<const uint8_t*>(tensor.data_ptr()),
                   static_cast<size_t>(tensor.numel()));
    Py_INCREF(self);
    return self;
  });
}
PyObject* generator_clone_state(PyObject* self, PyObject*) {
  return guarded([&] {
    c10::GeneratorImpl& impl = impl_of(self);
    const Locked lock(impl);
    return new_object(&GeneratorType, impl.clone());
  });
}
// Only Philox, the generator of CUDA, can be put at any place of its stream.
#ifndef CRESSET_NO_CUDA
at::CUDAGeneratorImpl& jumping(PyObject* self) {
  auto* impl = dynamic_cast<at::CUDAGeneratorImpl*>(&impl_of(self));
  TORCH_CHECK(impl != nullptr, "CPU Generator does not use offset");
  return *impl;
}
PyObject* generator_get_offset(PyObject* self, PyObject*) {
  return guarded([&] {
    at::CUDAGeneratorImpl& impl = jumping(self);
    const Locked lock(impl);
    return PyLong_FromUnsignedLongLong(impl.offset());
  });
}
PyObject* generator_set_offset(PyObject* self, PyObject* offset) {
  return guarded([&] {
    const uint64_t value = seed_value(offset);
    at::CUDAGeneratorImpl& impl = jumping(self);
    const Locked lock(impl);
    impl.set_offset(value);
    Py_INCREF(self);
    return self;
  });
}
#else
PyObject* generator_get_offset(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError, "CPU Generator does not use offset");
  return nullptr;
}
PyObject* generator_set_offset(PyObject* self, PyObject*) {
  return generator_get_offset(self, nullptr);
}
#endif
PyObject* generator_reduce(PyObject* self, PyObject*) {
  PyRef device(wrap(impl_of(self).device()));
  PyRef state(generator_get_state(self, nullptr));
  PyRef seed(generator_initial_seed(self, nullptr));
  if (!device || !state || !seed) return nullptr;
  return Py_BuildValue("O(O)(OOO)", Py_TYPE(self), device.get(), seed.get(), Py_None, state.get());
}
PyObject* generator_setstate(PyObject* self, PyObject* parts) {
  if (!PyTuple_Check(parts) || PyTuple_GET_SIZE(parts) != 3) {
    PyErr_SetString(PyExc_ValueError, "a generator's pickled state is (seed, offset, state)");
    return nullptr;
  }
  PyRef seeded(generator_manual_seed(self, PyTuple_GET_ITEM(parts, 0)));
  PyRef set(seeded ? generator_set_state(self, PyTuple_GET_ITEM(parts, 2)) : nullptr);
  return set ? new_none() : nullptr;
}

PyObject* generator_device(PyObject* self, void*) { return wrap(impl_of(self).device()); }
PyObject* generator_cdata(PyObject* self, void*) { return PyLong_FromVoidPtr(&impl_of(self)); }

PyMethodDef methods[] = {
    {"manual_seed", generator_manual_seed, METH_O, "manual_seed(seed)\n\nRestarts the stream."},
    {"seed", generator_seed, METH_NOARGS, "Seeds from the system's entropy; returns the seed."},
    {"initial_seed", generator_initial_seed, METH_NOARGS, "The seed in use."},
    {"get_state", generator_get_state, METH_NOARGS, "The state as a uint8 tensor."},
    {"set_state", generator_set_state, METH_O, "set_state(new_state)"},
    {"clone_state", generator_clone_state, METH_NOARGS, "A generator with the same state."},
    {"get_offset", generator_get_offset, METH_NOARGS, nullptr},
    {"set_offset", generator_set_offset, METH_O, nullptr},
    {"__reduce__", generator_reduce, METH_NOARGS, nullptr},
    {"__setstate__", generator_setstate, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {{"device", generator_device, nullptr, nullptr, nullptr},
                            {"_cdata", generator_cdata, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

} // namespace

PyObject* wrap(const at::Generator& generator) {
  if (!generator) return new_none();
  if (auto* existing = static_cast<PyObject*>(generator->pyobj)) {
    Py_INCREF(existing);
    return existing;
  }
  return guarded([&] { return new_object(&GeneratorType, generator); });
}

bool init_generator(PyObject* module) {
  GeneratorType.tp_basicsize = sizeof(PyGenerator);
  GeneratorType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  GeneratorType.tp_new = generator_new;
  GeneratorType.tp_dealloc = generator_dealloc;
  GeneratorType.tp_methods = methods;
  GeneratorType.tp_getset = properties;
  return add_type(module, &GeneratorType) &&
         add_object(module, "default_generator", wrap(at::detail::getDefaultCPUGenerator()));
}

} // namespace torch::python
