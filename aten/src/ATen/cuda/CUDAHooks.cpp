// Registers CUDA with the parts of the library that know no device library (DeviceHooks.h). Loading
// the library only stores two pointers; the driver is loaded by the first call that needs it.
#include <ATen/cuda/CUDAGenerator.h>
#include <c10/core/DeviceHooks.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/Memcpy.h>
#include <c10/cuda/PinnedMemory.h>

namespace at::cuda {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::cuda::CUDAStream;
using c10::cuda::CUstream;

CUDAStream stream_of(DeviceIndex device, void* stream) {
  return {device, static_cast<CUstream>(stream)};
}

class CUDAHooks final : public c10::DeviceHooks {
 public:
  int device_count() noexcept override { return c10::cuda::device_count(); }
  Device resolve(Device device) override {
    const Device indexed = c10::cuda::with_index(device);
    c10::cuda::check_device(indexed.index());
    return indexed;
  }
  DeviceIndex current_device() noexcept override { return c10::cuda::current_device(); }
  DeviceIndex exchange_device(DeviceIndex device) override {
    const DeviceIndex before = c10::cuda::exchange_device(device);
    // Whoever works on a device makes its context; choosing it does not.
    if (c10::cuda::has_primary_context(device)) c10::cuda::bind_device(device);
    return before;
  }

  c10::DataPtr allocate(size_t bytes, Device device) override {
    return c10::cuda::CUDACachingAllocator::allocate(bytes, c10::cuda::with_index(device).index());
  }
  void copy_bytes(void* dst, Device dst_device, const void* src, Device src_device,
                  size_t bytes) override {
    c10::cuda::copy_bytes({dst, dst_device}, {const_cast<void*>(src), src_device}, bytes, false);
  }
  c10::Allocator* pinned_allocator() override { return c10::cuda::pinned_allocator(); }
  bool is_pinned(const void* address) override { return c10::cuda::is_pinned(address); }
  void record_stream(const c10::DataPtr& data, DeviceIndex device, void* stream) override {
    c10::cuda::CUDACachingAllocator::recordStream(data, stream_of(device, stream));
  }

  void* current_stream(DeviceIndex device) override {
    return c10::cuda::getCurrentCUDAStream(device).stream();
  }
  void set_current_stream(DeviceIndex device, void* stream) override {
    c10::cuda::setCurrentCUDAStream(stream_of(device, stream));
  }
  void wait_stream(DeviceIndex waiting_device, void* waiting, DeviceIndex device,
                   void* producing) override {
    c10::cuda::wait_stream(stream_of(waiting_device, waiting), stream_of(device, producing));
  }

  bool is_recording() noexcept override { return c10::cuda::detail::tls_state.graph_pool != 0; }

  c10::Generator default_generator(DeviceIndex device) override {
    return cuda::default_generator(device);
  }
  c10::Generator new_generator(DeviceIndex device) override {
    const DeviceIndex index = device < 0 ? c10::cuda::current_device() : device;
    return c10::make_intrusive<CUDAGeneratorImpl>(index);
  }
  void seed_all(uint64_t seed) override { cuda::seed_all(seed); }
};

struct Registration {
  Registration() {
    static CUDAHooks hooks;
    c10::register_device_hooks(c10::kCUDA, &hooks);
    c10::SetAllocator(c10::kCUDA, c10::cuda::CUDACachingAllocator::get());
  }
} registration;

} // namespace
} // namespace at::cuda
