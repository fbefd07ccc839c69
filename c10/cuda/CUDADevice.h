// CUDA devices: how many there are, which one a thread works on, and what they can do. A device's
// primary context is made when something is first done on the device, never before: asking for
// counts and properties costs no memory on any GPU.
//
// Note [Current device and bound context]
// A thread has a current device (0 at first) and a context bound in the driver (none at first).
// Choosing a device only notes the number. The guards of CUDAGuard.h, through which all work goes,
// bind the context where it is not bound already: one comparison in the usual case.
#pragma once
#include <string>

#include <c10/core/Device.h>
#include <c10/cuda/Driver.h>

namespace c10::cuda {

inline constexpr int kMaxDevices = 16;

struct DeviceProp {
  std::string name;
  int major = 0;
  int minor = 0;
  size_t total_memory = 0;
  int multi_processor_count = 0;
  int max_threads_per_multi_processor = 0;
  int max_threads_per_block = 0;
  int regs_per_multiprocessor = 0;
  int warp_size = 0;
  size_t shared_memory_per_block = 0;
  size_t shared_memory_per_block_optin = 0;
  size_t shared_memory_per_multiprocessor = 0;
  size_t l2_cache_size = 0;
  int clock_rate = 0;        // kHz
  int memory_clock_rate = 0; // kHz
  int memory_bus_width = 0;  // bits
  int pci_bus_id = 0;
  int pci_device_id = 0;
  int pci_domain_id = 0;
  bool integrated = false;
  bool multi_gpu_board = false;
  bool virtual_memory = false; // growable segments can be used
  CUuuid uuid = {};
};

// Zero where CUDA cannot be used for whatever reason.
C10_API int device_count() noexcept;
// The same, but throws the reason instead of answering zero.
C10_API int device_count_or_throw();

// The current device of this thread. Loads nothing.
C10_API DeviceIndex current_device() noexcept;
// Throws for an index that does not exist.
C10_API void set_device(DeviceIndex device);
// The same, answering the device that was current before.
C10_API DeviceIndex exchange_device(DeviceIndex device);

// Throws "invalid device ordinal" unless the index names a device.
C10_API void check_device(int64_t device);
// `device` with an index: the current device's where it has none.
C10_API Device with_index(Device device);

C10_API const DeviceProp& device_properties(DeviceIndex device);
inline const DeviceProp& current_properties() { return device_properties(current_device()); }
C10_API bool can_access_peer(DeviceIndex device, DeviceIndex peer);
// The primary context, made on first use.
C10_API CUcontext primary_context(DeviceIndex device);
// Whether this process has made the context.
C10_API bool has_primary_context(DeviceIndex device) noexcept;

// Waits for all work on the device and raises what it recorded (ErrorSlot.h). Calls may block.
C10_API void device_synchronize();

namespace detail {
struct ThreadState {
  DeviceIndex current = 0;
  DeviceIndex bound = -1;      // of the driver's context on this thread
  CUstream* streams = nullptr; // current stream by device; null: the default one everywhere
  // Of the graph this thread records, whose memory nobody else may use; zero outside of a
  // recording.
  uint64_t graph_pool = 0;
};
extern C10_API thread_local ThreadState tls_state __attribute__((tls_model("initial-exec")));
C10_API void bind_slowly(DeviceIndex device);
} // namespace detail

// Makes `device` current and its context bound.
inline void bind_device(DeviceIndex device) {
  detail::ThreadState& state = detail::tls_state;
  if (C10_UNLIKELY(state.bound != device || state.current != device)) detail::bind_slowly(device);
}

} // namespace c10::cuda
