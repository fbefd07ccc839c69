// Events. Those without timing, which the library itself uses in numbers, are kept for reuse per
// device, because making one costs the driver as much as several launches.
#include <c10/cuda/CUDAEvent.h>

#include <mutex>
#include <utility>
#include <vector>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/ErrorSlot.h>

namespace c10::cuda {
namespace {

struct SpareEvents {
  std::mutex mutex;
  std::vector<CUevent> events;
};

SpareEvents& spare(DeviceIndex device) {
  static SpareEvents* all = new SpareEvents[kMaxDevices]; // outlives events in static variables
  return all[device];
}

CUevent take_spare(DeviceIndex device) {
  SpareEvents& pool = spare(device);
  std::lock_guard<std::mutex> lock(pool.mutex);
  if (pool.events.empty()) return nullptr;
  CUevent event = pool.events.back();
  pool.events.pop_back();
  return event;
}

} // namespace

CUDAEvent::~CUDAEvent() { destroy(); }

CUDAEvent::CUDAEvent(CUDAEvent&& other) noexcept
    : event_(std::exchange(other.event_, nullptr)), flags_(other.flags_), device_(other.device_),
      recorded_(std::exchange(other.recorded_, false)) {}

CUDAEvent& CUDAEvent::operator=(CUDAEvent&& other) noexcept {
  if (this == &other) return *this;
  destroy();
  event_ = std::exchange(other.event_, nullptr);
  flags_ = other.flags_;
  device_ = other.device_;
  recorded_ = std::exchange(other.recorded_, false);
  return *this;
}

void CUDAEvent::destroy() noexcept {
  CUevent event = std::exchange(event_, nullptr);
  // After the driver is gone (exit, fork) there is nothing to give back.
  const DriverApi* api = detail::loaded_driver.load(std::memory_order_acquire);
  if (event == nullptr || api == nullptr) return;
  try {
    if (flags_ == kEventDisableTiming) {
      SpareEvents& pool = spare(device_);
      std::lock_guard<std::mutex> lock(pool.mutex);
      pool.events.push_back(event);
      return;
    }
    const CUDAGuard guard(device_);
    api->cuEventDestroy(event);
  } catch (...) {
    api->cuEventDestroy(event);
  }
}

void CUDAEvent::create(DeviceIndex device) {
  if (event_ != nullptr) return;
  const CUDAGuard guard(device);
  if (flags_ == kEventDisableTiming) event_ = take_spare(device);
  if (event_ == nullptr) CRESSET_CUDA_CHECK(cuEventCreate, &event_, flags_);
  device_ = device;
}

void CUDAEvent::record(CUDAStream stream) {
  create(stream.device_index());
  TORCH_CHECK(device_ == stream.device_index(), "Event device ", Device(DeviceType::CUDA, device_),
              " does not match recording stream's device ", stream.device(), ".");
  const CUDAGuard guard(device_);
  CRESSET_CUDA_CHECK(cuEventRecord, event_, stream.stream());
  recorded_ = true;
}

void CUDAEvent::block(CUDAStream stream) const {
  if (!recorded_) return;
  const CUDAGuard guard(stream.device_index());
  CRESSET_CUDA_CHECK(cuStreamWaitEvent, stream.stream(), event_, 0u);
}

bool CUDAEvent::query() const {
  if (!recorded_) return true;
  const CUresult result = driver().cuEventQuery(event_);
  if (result == CUDA_ERROR_NOT_READY) return false;
  check(result, "cuEventQuery");
  return true;
}

void CUDAEvent::synchronize() const {
  if (!recorded_) return;
  CRESSET_CUDA_CHECK(cuEventSynchronize, event_);
  check_device_error(device_);
}

float CUDAEvent::elapsed_time(const CUDAEvent& later) const {
  TORCH_CHECK_VALUE(timed() && later.timed(),
                    "Both events must be created with argument 'enable_timing=True'.");
  TORCH_CHECK_VALUE(recorded_ && later.recorded_,
                    "Both events must be recorded before calculating elapsed time.");
  TORCH_CHECK(query() && later.query(),
              "Both events must be completed before calculating elapsed time.");
  float milliseconds = 0;
  const CUDAGuard guard(device_);
  CRESSET_CUDA_CHECK(cuEventElapsedTime, &milliseconds, event_, later.event_);
  return milliseconds;
}

} // namespace c10::cuda
