// Streams: queues of work on a device. Each thread has a current stream per device, the default
// stream at first; kernels, copies and allocations use it. Others come from a pool of 32 per device
// and priority and live as long as the process, so that handles may be kept anywhere.
#pragma once
#include <c10/core/Stream.h>
#include <c10/cuda/CUDADevice.h>

// Programs find the runtime's names (cudaStream_t) with ours; the library knows the driver alone.
#if !defined(CRESSET_KERNEL_TU) && __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#endif

namespace c10::cuda {

// A handle, as cheap as a pointer; owns nothing.
class CUDAStream {
 public:
  CUDAStream(DeviceIndex device, CUstream stream) : stream_(stream), device_(device) {}
  CUstream stream() const { return stream_; }
  operator CUstream() const { return stream_; }
  DeviceIndex device_index() const { return device_; }
  Device device() const { return Device(DeviceType::CUDA, device_); }
  // Zero for the default stream, else a number of its own.
  int64_t id() const { return reinterpret_cast<int64_t>(stream_); }

  // From and to the stream that code without CUDA's headers names.
  explicit CUDAStream(Stream stream)
      : stream_(reinterpret_cast<CUstream>(stream.id())), device_(stream.device_index()) {
    TORCH_CHECK(stream.device_type() == DeviceType::CUDA,
                "CUDAStream: expected a stream of a CUDA device, got one of ",
                stream.device().str());
  }
  Stream unwrap() const { return Stream(Stream::UNSAFE, device(), id()); }
  operator Stream() const { return unwrap(); }
  DeviceType device_type() const { return DeviceType::CUDA; }
  StreamData3 pack3() const { return unwrap().pack3(); }
  static CUDAStream unpack3(StreamId id, DeviceIndex index, DeviceType type) {
    return CUDAStream(Stream::unpack3(id, index, type));
  }
  static std::pair<int, int> priority_range();

  // Whether all work queued so far is done.
  C10_API bool query() const;
  // Waits for it and raises what it recorded (ErrorSlot.h).
  C10_API void synchronize() const;
  C10_API int priority() const;
  bool operator==(const CUDAStream& o) const {
    return stream_ == o.stream_ && device_ == o.device_;
  }
  bool operator!=(const CUDAStream& o) const { return !(*this == o); }

 private:
  CUstream stream_;
  DeviceIndex device_;
};

// Of `device`, or of the current one where it is negative.
inline CUDAStream getCurrentCUDAStream(DeviceIndex device = -1) {
  const detail::ThreadState& state = detail::tls_state;
  const DeviceIndex index = device < 0 ? state.current : device;
  return {index, C10_LIKELY(state.streams == nullptr) ? nullptr : state.streams[index]};
}
inline CUDAStream getDefaultCUDAStream(DeviceIndex device = -1) {
  return {device < 0 ? detail::tls_state.current : device, nullptr};
}
C10_API void setCurrentCUDAStream(CUDAStream stream);
// The next stream of the pool. `priority` 0 or below; lower runs first.
C10_API CUDAStream getStreamFromPool(int priority = 0, DeviceIndex device = -1);
inline CUDAStream getStreamFromPool(bool high_priority, DeviceIndex device = -1) {
  return getStreamFromPool(high_priority ? -1 : 0, device);
}
// A stream that another library made, and that lives as long as it is used here.
inline CUDAStream getStreamFromExternal(CUstream stream, DeviceIndex device) {
  check_device(device);
  return {device, stream};
}
// The device's {lowest, greatest} priority.
C10_API std::pair<int, int> stream_priority_range();
inline std::pair<int, int> CUDAStream::priority_range() { return stream_priority_range(); }
// Work queued on `waiting` from now on starts after what is queued on `producing` so far.
C10_API void wait_stream(CUDAStream waiting, CUDAStream producing);
// Whether work on the current stream is recorded into a graph instead of run.
C10_API bool is_capturing();

} // namespace c10::cuda
