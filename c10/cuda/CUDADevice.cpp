// Devices, their properties and primary contexts. See CUDADevice.h.
#include <c10/cuda/CUDADevice.h>

#include <memory>
#include <mutex>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/ErrorSlot.h>

namespace c10::cuda {

namespace detail {
thread_local ThreadState tls_state;
}

namespace {

struct DeviceState {
  std::mutex mutex;
  std::atomic<CUcontext> context{nullptr};
  std::atomic<const DeviceProp*> properties{nullptr};
};
DeviceState states[kMaxDevices];

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  // An attribute that an old driver does not know reads as zero.
  return driver().cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

CUdevice handle(DeviceIndex device) {
  CUdevice out = 0;
  CRESSET_CUDA_CHECK(cuDeviceGet, &out, device);
  return out;
}

std::unique_ptr<DeviceProp> read_properties(DeviceIndex index) {
  auto out = std::make_unique<DeviceProp>();
  const CUdevice device = handle(index);
  const auto read = [&](CUdevice_attribute which) { return attribute(device, which); };
  char name[256] = {};
  CRESSET_CUDA_CHECK(cuDeviceGetName, name, static_cast<int>(sizeof name) - 1, device);
  out->name = name;
  CRESSET_CUDA_CHECK(cuDeviceTotalMem, &out->total_memory, device);
  out->major = read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  out->minor = read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  out->multi_processor_count = read(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  out->max_threads_per_multi_processor = read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  out->max_threads_per_block = read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  out->regs_per_multiprocessor = read(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  out->warp_size = read(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  out->shared_memory_per_block = read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  out->shared_memory_per_block_optin = read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  out->shared_memory_per_multiprocessor =
      read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  out->l2_cache_size = read(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  out->clock_rate = read(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  out->memory_clock_rate = read(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  out->memory_bus_width = read(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  out->pci_bus_id = read(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  out->pci_device_id = read(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  out->pci_domain_id = read(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  out->integrated = read(CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
  out->multi_gpu_board = read(CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD) != 0;
  out->virtual_memory = read(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0 &&
                        driver().cuMemCreate != nullptr;
  if (driver().cuDeviceGetUuid != nullptr) CRESSET_CUDA_CHECK(cuDeviceGetUuid, &out->uuid, device);
  return out;
}

int count_devices(const DriverApi& api) {
  int count = 0;
  if (api.cuDeviceGetCount(&count) != CUDA_SUCCESS) return 0;
  return count < kMaxDevices ? count : kMaxDevices;
}

} // namespace

int device_count() noexcept {
  const DriverApi* api = try_driver();
  if (api == nullptr) return 0;
  static const int count = count_devices(*api);
  return count;
}

int device_count_or_throw() {
  driver();
  const int count = device_count();
  TORCH_CHECK(count > 0, "No CUDA GPUs are available");
  return count;
}

DeviceIndex current_device() noexcept { return detail::tls_state.current; }

void check_device(int64_t device) {
  const int count = device_count_or_throw();
  if (C10_LIKELY(device >= 0 && device < count)) return;
  throw AcceleratorError(str("CUDA error: invalid device ordinal\n  device ", device,
                             " was asked for, and there are ", count),
                         CUDA_ERROR_INVALID_DEVICE);
}

DeviceIndex exchange_device(DeviceIndex device) {
  check_device(device);
  detail::ThreadState& state = detail::tls_state;
  const DeviceIndex before = state.current;
  state.current = device;
  return before;
}

void set_device(DeviceIndex device) { exchange_device(device); }

Device with_index(Device device) {
  return device.has_index() ? device : Device(device.type(), current_device());
}

const DeviceProp& device_properties(DeviceIndex device) {
  check_device(device);
  DeviceState& state = states[device];
  const DeviceProp* known = state.properties.load(std::memory_order_acquire);
  if (C10_LIKELY(known != nullptr)) return *known;
  std::lock_guard<std::mutex> lock(state.mutex);
  known = state.properties.load(std::memory_order_acquire);
  if (known == nullptr) {
    known = read_properties(device).release(); // lives as long as the process
    state.properties.store(known, std::memory_order_release);
  }
  return *known;
}

bool can_access_peer(DeviceIndex device, DeviceIndex peer) {
  check_device(device);
  check_device(peer);
  if (device == peer) return false;
  int possible = 0;
  CRESSET_CUDA_CHECK(cuDeviceCanAccessPeer, &possible, handle(device), handle(peer));
  return possible != 0;
}

CUcontext primary_context(DeviceIndex device) {
  check_device(device);
  DeviceState& state = states[device];
  CUcontext context = state.context.load(std::memory_order_acquire);
  if (C10_LIKELY(context != nullptr)) return context;
  std::lock_guard<std::mutex> lock(state.mutex);
  context = state.context.load(std::memory_order_acquire);
  if (context == nullptr) {
    CRESSET_CUDA_CHECK(cuDevicePrimaryCtxRetain, &context, handle(device));
    state.context.store(context, std::memory_order_release);
  }
  return context;
}

bool has_primary_context(DeviceIndex device) noexcept {
  return device >= 0 && device < kMaxDevices && states[device].context.load() != nullptr;
}

void device_synchronize() {
  const CUDAGuard guard(current_device());
  CRESSET_CUDA_CHECK(cuCtxSynchronize);
  check_device_error(current_device());
}

void detail::bind_slowly(DeviceIndex device) {
  ThreadState& state = tls_state;
  if (state.bound != device) {
    CRESSET_CUDA_CHECK(cuCtxSetCurrent, primary_context(device));
    state.bound = device;
  }
  state.current = device;
}

// A device that was current without a context gets none now either.
void CUDAGuard::restore() noexcept {
  detail::ThreadState& state = detail::tls_state;
  state.current = original_;
  const DriverApi* api = detail::loaded_driver.load(std::memory_order_acquire);
  if (api == nullptr || !has_primary_context(original_)) return;
  if (api->cuCtxSetCurrent(states[original_].context.load()) == CUDA_SUCCESS)
    state.bound = original_;
}

} // namespace c10::cuda
