// torch._C functions behind torch.cuda: devices, properties, current streams and seeds.
#include <torch/csrc/python/cuda/cuda.h>

#include <cstdio>

#include <torch/csrc/python/args/keyword_args.h>
#include <torch/csrc/python/tensor/wrap.h>
#include <torch/csrc/python/types/types.h>

#include <ATen/cuda/CUDAGenerator.h>
#include <ATen/cuda/Launch.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/NoDriver.h>

namespace torch::python {
namespace {

namespace cuda = c10::cuda;

PyObject* device_count(PyObject*, PyObject*) { return PyLong_FromLong(cuda::device_count()); }
PyObject* driver_found(PyObject*, PyObject*) { return PyBool_FromLong(cuda::driver_found()); }

// Loads the driver and raises why CUDA cannot be used.
PyObject* init_driver(PyObject*, PyObject*) {
  return guarded([&] {
    cuda::device_count_or_throw();
    return new_none();
  });
}
// Whether any device has been used.
PyObject* has_context(PyObject*, PyObject*) {
  bool any = false;
  for (c10::DeviceIndex i = 0; i < cuda::kMaxDevices; ++i)
    any = any || cuda::has_primary_context(i);
  return new_bool(any);
}
PyObject* is_in_bad_fork(PyObject*, PyObject*) { return new_bool(cuda::in_bad_fork()); }
PyObject* driver_version(PyObject*, PyObject*) {
  return guarded([&] {
    int version = 0;
    CRESSET_CUDA_CHECK(cuDriverGetVersion, &version);
    return PyLong_FromLong(version);
  });
}

PyObject* current_device(PyObject*, PyObject*) { return PyLong_FromLong(cuda::current_device()); }
PyObject* set_device(PyObject*, PyObject* device) {
  return guarded([&] {
    cuda::set_device(cuda_index(device));
    return new_none();
  });
}
// Negative: nothing changes, and -1 is returned.
PyObject* exchange_device(PyObject*, PyObject* device) {
  return guarded([&] {
    const long index = PyLong_AsLong(device);
    if (index == -1 && PyErr_Occurred()) throw python_error();
    if (index < 0) return PyLong_FromLong(-1);
    cuda::check_device(index);
    return PyLong_FromLong(cuda::exchange_device(static_cast<c10::DeviceIndex>(index)));
  });
}

PyObject* can_access_peer(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    KeywordArgs a("can_device_access_peer", {"device", "peer_device"}, 2, 2, args, n, names);
    return new_bool(cuda::can_access_peer(cuda_index(a[0]), cuda_index(a[1])));
  });
}

PyObject* synchronize(PyObject*, PyObject* device) {
  return guarded([&] {
    const c10::DeviceIndex index = cuda_index(device);
    {
      NoGil unlocked;
      const cuda::CUDAGuard guard(index);
      cuda::device_synchronize();
    }
    return new_none();
  });
}

std::string uuid_text(const cuda::CUuuid& uuid) {
  std::string out;
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", uuid.bytes[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += digits;
  }
  return out;
}

// _cuda_getDeviceProperties(device): a dict; torch.cuda makes the object of it.
PyObject* properties(PyObject*, PyObject* device) {
  return guarded([&] {
    const cuda::DeviceProp& p = cuda::device_properties(cuda_index(device));
    return Py_BuildValue(
        "{s:s,s:i,s:i,s:n,s:i,s:i,s:i,s:i,s:i,s:n,s:n,s:n,s:n,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:s}",
        "name", p.name.c_str(), "major", p.major, "minor", p.minor, "total_memory",
        Py_ssize_t(p.total_memory), "multi_processor_count", p.multi_processor_count,
        "max_threads_per_multi_processor", p.max_threads_per_multi_processor,
        "max_threads_per_block", p.max_threads_per_block, "regs_per_multiprocessor",
        p.regs_per_multiprocessor, "warp_size", p.warp_size, "shared_memory_per_block",
        Py_ssize_t(p.shared_memory_per_block), "shared_memory_per_block_optin",
        Py_ssize_t(p.shared_memory_per_block_optin), "shared_memory_per_multiprocessor",
        Py_ssize_t(p.shared_memory_per_multiprocessor), "L2_cache_size",
        Py_ssize_t(p.l2_cache_size), "clock_rate", p.clock_rate, "memory_clock_rate",
        p.memory_clock_rate, "memory_bus_width", p.memory_bus_width, "pci_bus_id", p.pci_bus_id,
        "pci_device_id", p.pci_device_id, "pci_domain_id", p.pci_domain_id, "is_integrated",
        int{p.integrated}, "is_multi_gpu_board", int{p.multi_gpu_board}, "uuid",
        uuid_text(p.uuid).c_str());
  });
}

// ---- streams ------------------------------------------------------------------------------------

PyObject* current_stream(PyObject*, PyObject* device) {
  return guarded([&] {
    const c10::DeviceIndex index = cuda_index(device);
    cuda::check_device(index);
    return wrap_stream(cuda::getCurrentCUDAStream(index));
  });
}
PyObject* current_raw_stream(PyObject*, PyObject* device) {
  return guarded(
      [&] { return PyLong_FromLongLong(cuda::getCurrentCUDAStream(cuda_index(device)).id()); });
}
PyObject* default_stream(PyObject*, PyObject* device) {
  return guarded([&] {
    const c10::DeviceIndex index = cuda_index(device);
    cuda::check_device(index);
    return wrap_stream(cuda::getDefaultCUDAStream(index));
  });
}
// Makes a stream current; its device becomes current too.
PyObject* set_stream(PyObject*, PyObject* stream) {
  return guarded([&] {
    if (!is_stream(stream)) {
      raise_type_error(c10::str("expected a torch.cuda.Stream, got ", type_name(stream)));
    }
    cuda::set_device(stream_value(stream).device_index());
    cuda::setCurrentCUDAStream(stream_value(stream));
    return new_none();
  });
}
PyObject* is_capturing(PyObject*, PyObject*) {
  return guarded([&] { return new_bool(cuda::is_capturing()); });
}

// ---- random numbers -----------------------------------------------------------------------------

uint64_t seed_argument(PyObject* o) {
  PyRef number = checked(PyNumber_Index(o));
  // Negative seeds are taken modulo 2^64, as for the CPU.
  const unsigned long long value = PyLong_AsUnsignedLongLongMask(number.get());
  if (PyErr_Occurred()) throw python_error();
  return value;
}
PyObject* seed_all(PyObject*, PyObject* seed) {
  return guarded([&] {
    at::cuda::seed_all(seed_argument(seed));
    return new_none();
  });
}
PyObject* default_generator(PyObject*, PyObject* device) {
  return guarded([&] { return wrap(at::cuda::default_generator(cuda_index(device))); });
}

PyObject* profiler(bool start) {
  return guarded([&] {
    const auto call = start ? cuda::driver().cuProfilerStart : cuda::driver().cuProfilerStop;
    if (call != nullptr) cuda::check(call(), start ? "cuProfilerStart" : "cuProfilerStop");
    return new_none();
  });
}
PyObject* profiler_start(PyObject*, PyObject*) { return profiler(true); }
PyObject* profiler_stop(PyObject*, PyObject*) { return profiler(false); }

PyObject* sleep(PyObject*, PyObject* cycles) {
  return guarded([&] {
    const int64_t count = PyLong_AsLongLong(cycles);
    if (count == -1 && PyErr_Occurred()) throw python_error();
    at::cuda::sleep(count);
    return new_none();
  });
}

PyMethodDef functions[] = {{"_cuda_init", init_driver, METH_NOARGS, nullptr},
                           {"_cuda_sleep", sleep, METH_O, nullptr},
                           {"_cuda_hasContext", has_context, METH_NOARGS, nullptr},
                           {"_cuda_isInBadFork", is_in_bad_fork, METH_NOARGS, nullptr},
                           {"_cuda_getDriverVersion", driver_version, METH_NOARGS, nullptr},
                           {"_cuda_getDeviceCount", device_count, METH_NOARGS, nullptr},
                           {"_cuda_driverFound", driver_found, METH_NOARGS, nullptr},
                           {"_cuda_getDevice", current_device, METH_NOARGS, nullptr},
                           {"_cuda_setDevice", set_device, METH_O, nullptr},
                           {"_cuda_exchangeDevice", exchange_device, METH_O, nullptr},
                           {"_cuda_maybeExchangeDevice", exchange_device, METH_O, nullptr},
                           {"_cuda_canDeviceAccessPeer", as_method(can_access_peer),
                            METH_FASTCALL | METH_KEYWORDS, nullptr},
                           {"_cuda_synchronize", synchronize, METH_O, nullptr},
                           {"_cuda_getDeviceProperties", properties, METH_O, nullptr},
                           {"_cuda_getCurrentStream", current_stream, METH_O, nullptr},
                           {"_cuda_getCurrentRawStream", current_raw_stream, METH_O, nullptr},
                           {"_cuda_getDefaultStream", default_stream, METH_O, nullptr},
                           {"_cuda_setStream", set_stream, METH_O, nullptr},
                           {"_cuda_isCurrentStreamCapturing", is_capturing, METH_NOARGS, nullptr},
                           {"_cuda_seedAll", seed_all, METH_O, nullptr},
                           {"_cuda_getDefaultGenerator", default_generator, METH_O, nullptr},
                           {"_cuda_profilerStart", profiler_start, METH_NOARGS, nullptr},
                           {"_cuda_profilerStop", profiler_stop, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

c10::DeviceIndex cuda_index(PyObject* object) {
  if (object == nullptr || object == Py_None) return cuda::current_device();
  if (PyLong_Check(object) && !PyBool_Check(object)) {
    const long index = PyLong_AsLong(object);
    if (index == -1 && PyErr_Occurred()) throw python_error();
    if (index < 0) return cuda::current_device();
    cuda::check_device(index);
    return static_cast<c10::DeviceIndex>(index);
  }
  c10::Device device;
  if (!device_from_object(object, &device)) {
    raise_type_error(c10::str("expected a torch.device, str or int, got ", type_name(object)));
  }
  TORCH_CHECK_VALUE(device.is_cuda(), "Expected a cuda device, but got: ", device);
  return cuda::with_index(device).index();
}

bool init_cuda(PyObject* module) {
  return init_cuda_stream(module) && init_cuda_memory(module) && init_cuda_graph(module) &&
         init_cudnn(module) && init_cuda_profiler(module) &&
         PyModule_AddFunctions(module, functions) == 0 &&
         add_object(module, "_has_cuda", new_bool(true));
}

} // namespace torch::python
