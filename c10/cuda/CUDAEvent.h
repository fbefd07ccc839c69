// Events: marks in a stream that others wait for. An event is made by its first recording, on the
// device of that stream.
#pragma once
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {

class C10_API CUDAEvent {
 public:
  explicit CUDAEvent(unsigned flags = kEventDisableTiming) : flags_(flags) {}
  ~CUDAEvent();
  CUDAEvent(CUDAEvent&& other) noexcept;
  CUDAEvent& operator=(CUDAEvent&& other) noexcept;
  CUDAEvent(const CUDAEvent&) = delete;
  CUDAEvent& operator=(const CUDAEvent&) = delete;

  bool is_created() const { return event_ != nullptr; }
  CUevent event() const { return event_; }
  DeviceIndex device_index() const { return device_; } // -1 before the first recording
  bool timed() const { return (flags_ & kEventDisableTiming) == 0; }

  // Marks what is queued on the stream so far.
  void record(CUDAStream stream);
  void record() { record(getCurrentCUDAStream()); }
  // Work queued on `stream` from now on starts after the mark. Nothing for an unrecorded event.
  void block(CUDAStream stream) const;
  // Whether the mark is reached; true for an unrecorded event.
  bool query() const;
  // Waits for it and raises what the device recorded (ErrorSlot.h).
  void synchronize() const;
  // Milliseconds between two recorded marks.
  float elapsed_time(const CUDAEvent& later) const;
  // Makes the event without recording it, as handles for other libraries need.
  void create(DeviceIndex device);

 private:
  void destroy() noexcept;
  CUevent event_ = nullptr;
  unsigned flags_;
  DeviceIndex device_ = -1;
  bool recorded_ = false;
};

} // namespace c10::cuda
