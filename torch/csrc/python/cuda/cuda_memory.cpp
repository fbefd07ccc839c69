// torch._C functions behind torch.cuda.memory: statistics, the cache, limits and snapshots.
#include <torch/csrc/python/cuda/cuda.h>

#include <cmath>

#include <torch/csrc/python/args/keyword_args.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/PinnedMemory.h>
#include <c10/cuda/PluggableAllocator.h>

namespace torch::python {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

// Takes over `value`.
void set_item(PyObject* dict, const char* key, PyObject* value) {
  PyRef owned = checked(value);
  check_status(PyDict_SetItemString(dict, key, owned.get()));
}
void set_item(PyObject* dict, const char* key, int64_t value) {
  set_item(dict, key, PyLong_FromLongLong(value));
}

PyObject* stat_dict(const caching::Stat& stat) {
  PyRef out = checked(PyDict_New());
  set_item(out.get(), "current", stat.current);
  set_item(out.get(), "peak", stat.peak);
  set_item(out.get(), "allocated", stat.allocated);
  set_item(out.get(), "freed", stat.freed);
  return out.release();
}
PyObject* stat_array(const caching::StatArray& array) {
  const char* const names[] = {"all", "small_pool", "large_pool"};
  PyRef out = checked(PyDict_New());
  for (int i = 0; i < caching::kStatTypes; ++i)
    set_item(out.get(), names[i], stat_dict(array.values[i]));
  return out.release();
}

PyObject* memory_stats(PyObject*, PyObject* device) {
  return guarded([&] {
    const caching::DeviceStats stats = caching::getDeviceStats(cuda_index(device));
    PyRef out = checked(PyDict_New());
    set_item(out.get(), "num_alloc_retries", stats.num_alloc_retries);
    set_item(out.get(), "num_ooms", stats.num_ooms);
    set_item(out.get(), "num_sync_all_streams", stats.num_sync_all_streams);
    set_item(out.get(), "num_device_alloc", stats.num_device_alloc);
    set_item(out.get(), "num_device_free", stats.num_device_free);
    set_item(out.get(), "max_split_size", int64_t(-1));
    set_item(out.get(), "allocation", stat_array(stats.allocation));
    set_item(out.get(), "segment", stat_array(stats.segment));
    set_item(out.get(), "active", stat_array(stats.active));
    set_item(out.get(), "inactive_split", stat_array(stats.inactive_split));
    set_item(out.get(), "allocated_bytes", stat_array(stats.allocated_bytes));
    set_item(out.get(), "reserved_bytes", stat_array(stats.reserved_bytes));
    set_item(out.get(), "active_bytes", stat_array(stats.active_bytes));
    set_item(out.get(), "inactive_split_bytes", stat_array(stats.inactive_split_bytes));
    set_item(out.get(), "requested_bytes", stat_array(stats.requested_bytes));
    set_item(out.get(), "oversize_allocations", stat_dict({}));
    set_item(out.get(), "oversize_segments", stat_dict({}));
    return out.release();
  });
}

PyObject* reset_accumulated(PyObject*, PyObject* device) {
  return guarded([&] {
    caching::resetAccumulatedStats(cuda_index(device));
    return new_none();
  });
}
PyObject* reset_peak(PyObject*, PyObject* device) {
  return guarded([&] {
    caching::resetPeakStats(cuda_index(device));
    return new_none();
  });
}
PyObject* empty_cache(PyObject*, PyObject*) {
  return guarded([&] {
    {
      NoGil unlocked;
      caching::emptyCache();
    }
    return new_none();
  });
}
PyObject* empty_host_cache(PyObject*, PyObject*) {
  return guarded([&] {
    {
      NoGil unlocked;
      c10::cuda::empty_pinned_cache();
    }
    return new_none();
  });
}
PyObject* host_memory(PyObject*, PyObject*) {
  return guarded([&] {
    const c10::cuda::PinnedStats stats = c10::cuda::pinned_stats();
    return Py_BuildValue("(LLLL)", static_cast<long long>(stats.live_bytes),
                         static_cast<long long>(stats.cached_bytes),
                         static_cast<long long>(stats.peak_live_bytes),
                         static_cast<long long>(stats.allocated_bytes));
  });
}

PyObject* reset_host_memory(PyObject*, PyObject* peaks) {
  return guarded([&] {
    c10::cuda::reset_pinned_stats(PyObject_IsTrue(peaks) == 1);
    return new_none();
  });
}
PyObject* exchange_pool(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    KeywordArgs a("_cuda_exchangePool", {"device", "pool"}, 2, 2, args, n, names);
    const uint64_t before =
        caching::exchange_pool(cuda_index(a[0]), static_cast<uint64_t>(a.integer(1, 0)));
    return PyLong_FromUnsignedLongLong(before);
  });
}
PyObject* retain_pool(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    KeywordArgs a("_cuda_retainPool", {"device", "pool", "retain"}, 3, 3, args, n, names);
    const auto pool = static_cast<uint64_t>(a.integer(1, 0));
    if (a.boolean(2, true))
      caching::retain_graph_pool(cuda_index(a[0]), pool);
    else
      caching::release_graph_pool(cuda_index(a[0]), pool);
    return new_none();
  });
}
// The addresses of a shared library's two functions.
PyObject* plug_allocator(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    KeywordArgs a("_cuda_plugAllocator", {"alloc", "free"}, 2, 2, args, n, names);
    c10::cuda::plug_allocator(reinterpret_cast<c10::cuda::PluggedAlloc>(a.integer(0, 0)),
                              reinterpret_cast<c10::cuda::PluggedFree>(a.integer(1, 0)));
    return new_none();
  });
}

PyObject* memory_info(PyObject*, PyObject* device) {
  return guarded([&] {
    const auto [free, total] = caching::memory_info(cuda_index(device));
    return Py_BuildValue("(KK)", static_cast<unsigned long long>(free),
                         static_cast<unsigned long long>(total));
  });
}
PyObject* set_fraction(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    KeywordArgs a("set_per_process_memory_fraction", {"fraction", "device"}, 2, 1, args, n, names);
    const double fraction = PyFloat_AsDouble(a[0]);
    if (fraction == -1 && PyErr_Occurred()) throw python_error();
    caching::setMemoryFraction(fraction, cuda_index(a[1]));
    return new_none();
  });
}
PyObject* get_fraction(PyObject*, PyObject* device) {
  return guarded(
      [&] { return PyFloat_FromDouble(caching::getMemoryFraction(cuda_index(device))); });
}

PyObject* block_dict(const caching::BlockInfo& block) {
  PyRef out = checked(PyDict_New());
  set_item(out.get(), "address", PyLong_FromUnsignedLongLong(block.address));
  set_item(out.get(), "size", block.size);
  set_item(out.get(), "requested_size", block.requested);
  const char* state = block.allocated ? "active_allocated"
                      : block.active  ? "active_pending_free"
                                      : "inactive";
  set_item(out.get(), "state", PyUnicode_FromString(state));
  set_item(out.get(), "frames", PyList_New(0));
  return out.release();
}

PyObject* segment_dict(const caching::SegmentInfo& segment) {
  PyRef out = checked(PyDict_New());
  PyRef blocks = checked(PyList_New(0));
  int64_t allocated = 0, active = 0, requested = 0;
  for (const caching::BlockInfo& block : segment.blocks) {
    PyRef item = checked(block_dict(block));
    check_status(PyList_Append(blocks.get(), item.get()));
    if (block.allocated) allocated += block.size;
    if (block.active) active += block.size, requested += block.requested;
  }
  set_item(out.get(), "device", int64_t(segment.device));
  set_item(out.get(), "address", PyLong_FromUnsignedLongLong(segment.address));
  set_item(out.get(), "total_size", segment.total_size);
  set_item(out.get(), "allocated_size", allocated);
  set_item(out.get(), "active_size", active);
  set_item(out.get(), "requested_size", requested);
  set_item(out.get(), "stream", PyLong_FromUnsignedLongLong(segment.stream));
  set_item(out.get(), "segment_type", PyUnicode_FromString(segment.large ? "large" : "small"));
  set_item(out.get(), "segment_pool_id",
           Py_BuildValue("(iK)", 0, static_cast<unsigned long long>(segment.pool)));
  set_item(out.get(), "is_expandable", new_bool(segment.growable));
  set_item(out.get(), "frames", PyList_New(0));
  set_item(out.get(), "blocks", blocks.release());
  return out.release();
}

PyObject* snapshot(PyObject*, PyObject*) {
  return guarded([&] {
    PyRef out = checked(PyList_New(0));
    for (const caching::SegmentInfo& segment : caching::snapshot()) {
      PyRef item = checked(segment_dict(segment));
      check_status(PyList_Append(out.get(), item.get()));
    }
    return out.release();
  });
}

PyObject* raw_alloc(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    KeywordArgs a("caching_allocator_alloc", {"size", "device", "stream"}, 3, 1, args, n, names);
    const int64_t bytes = a.integer(0, 0);
    TORCH_CHECK_VALUE(bytes >= 0, "size must not be negative, got ", bytes);
    const c10::DeviceIndex device = cuda_index(a[1]);
    c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream(device);
    if (a.present(2)) {
      stream =
          c10::cuda::CUDAStream(device, reinterpret_cast<c10::cuda::CUstream>(a.integer(2, 0)));
    }
    return PyLong_FromVoidPtr(caching::raw_alloc_with_stream(static_cast<size_t>(bytes), stream));
  });
}
PyObject* raw_delete(PyObject*, PyObject* address) {
  return guarded([&] {
    void* memory = PyLong_AsVoidPtr(address);
    if (!memory && PyErr_Occurred()) throw python_error();
    caching::raw_delete(memory);
    return new_none();
  });
}
PyObject* alloc_failure(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    KeywordArgs a("_cuda_setAllocFailure", {"k", "persist"}, 2, 1, args, n, names);
    caching::set_alloc_failure(a.integer(0, 0), a.boolean(1, false));
    return new_none();
  });
}

// _cuda_recordStream(tensor, stream): the tensor's memory is also used on that stream.
PyObject* record_stream(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    KeywordArgs a("record_stream", {"tensor", "stream"}, 2, 2, args, n, names);
    if (!is_tensor(a[0])) a.wrong_type(0, "Tensor");
    if (!is_stream(a[1])) a.wrong_type(1, "torch.Stream");
    const at::Tensor& tensor = tensor_of(a[0]);
    TORCH_CHECK(tensor.is_cuda(), "record_stream: expected a cuda tensor, got ", tensor);
    if (tensor.has_storage())
      caching::recordStream(tensor.storage()->data_ptr(), stream_value(a[1]));
    return new_none();
  });
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

PyMethodDef functions[] = {
    {"_cuda_memoryStats", memory_stats, METH_O, nullptr},
    {"_cuda_resetAccumulatedMemoryStats", reset_accumulated, METH_O, nullptr},
    {"_cuda_resetPeakMemoryStats", reset_peak, METH_O, nullptr},
    {"_cuda_emptyCache", empty_cache, METH_NOARGS, nullptr},
    {"_cuda_emptyHostCache", empty_host_cache, METH_NOARGS, nullptr},
    {"_cuda_hostMemory", host_memory, METH_NOARGS,
     "Page-locked bytes: in use, kept, the most in use, all that ever were."},
    {"_cuda_resetHostMemory", reset_host_memory, METH_O, "The peak if true, else the sum."},
    {"_cuda_exchangePool", as_method(exchange_pool), kFast, nullptr},
    {"_cuda_retainPool", as_method(retain_pool), kFast, nullptr},
    {"_cuda_plugAllocator", as_method(plug_allocator), kFast, nullptr},
    {"_cuda_memoryInfo", memory_info, METH_O, "Free and total bytes of a device."},
    {"_cuda_setMemoryFraction", as_method(set_fraction), kFast, nullptr},
    {"_cuda_getMemoryFraction", get_fraction, METH_O, nullptr},
    {"_cuda_memorySnapshot", snapshot, METH_NOARGS, nullptr},
    {"_cuda_cudaCachingAllocator_raw_alloc", as_method(raw_alloc), kFast, nullptr},
    {"_cuda_cudaCachingAllocator_raw_delete", raw_delete, METH_O, nullptr},
    {"_cuda_setAllocFailure", as_method(alloc_failure), kFast,
     "_cuda_setAllocFailure(k, persist=False)\n\nFor tests: the k-th allocation from now fails."},
    {"_cuda_recordStream", as_method(record_stream), kFast, nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_cuda_memory(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

} // namespace torch::python
