// The pool of streams and the current ones. See CUDAStream.h.
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/ErrorSlot.h>

namespace c10::cuda {
namespace {

constexpr int kStreamsPerPool = 32;
constexpr int kPriorities = 4;

struct Pool {
  std::mutex mutex;
  unsigned next = 0;
  CUstream streams[kStreamsPerPool] = {};
};
Pool pools[kMaxDevices][kPriorities];

// Owns the thread's table; detail::tls_state only points at it, so that reading it stays one load.
struct ThreadTable {
  CUstream streams[kMaxDevices] = {};
  ThreadTable() { detail::tls_state.streams = streams; }
  ~ThreadTable() { detail::tls_state.streams = nullptr; }
};

DeviceIndex index_of(DeviceIndex device) { return device < 0 ? current_device() : device; }

} // namespace

bool CUDAStream::query() const {
  const CUDAGuard guard(device_);
  const CUresult result = driver().cuStreamQuery(stream_);
  if (result == CUDA_ERROR_NOT_READY) return false;
  check(result, "cuStreamQuery");
  return true;
}

void CUDAStream::synchronize() const {
  const CUDAGuard guard(device_);
  CRESSET_CUDA_CHECK(cuStreamSynchronize, stream_);
  check_device_error(device_);
}

int CUDAStream::priority() const {
  const CUDAGuard guard(device_);
  int value = 0;
  CRESSET_CUDA_CHECK(cuStreamGetPriority, stream_, &value);
  return value;
}

void setCurrentCUDAStream(CUDAStream stream) {
  check_device(stream.device_index());
  if (stream.stream() == nullptr && detail::tls_state.streams == nullptr) return;
  static thread_local ThreadTable table;
  table.streams[stream.device_index()] = stream.stream();
}

CUDAStream getStreamFromPool(int priority, DeviceIndex device) {
  TORCH_CHECK(priority <= 0, "Expected cuda stream priority to be less than or equal to 0, got ",
              priority);
  const DeviceIndex index = index_of(device);
  const CUDAGuard guard(index);
  int least = 0, greatest = 0;
  CRESSET_CUDA_CHECK(cuCtxGetStreamPriorityRange, &least, &greatest);
  const int level = std::max({priority, greatest, 1 - kPriorities});
  Pool& pool = pools[index][-level];
  std::lock_guard<std::mutex> lock(pool.mutex);
  CUstream& stream = pool.streams[pool.next++ % kStreamsPerPool];
  if (stream == nullptr)
    CRESSET_CUDA_CHECK(cuStreamCreateWithPriority, &stream, kStreamNonBlocking, level);
  return {index, stream};
}

std::pair<int, int> stream_priority_range() {
  const CUDAGuard guard(current_device());
  int least = 0, greatest = 0;
  CRESSET_CUDA_CHECK(cuCtxGetStreamPriorityRange, &least, &greatest);
  return {least, std::max(greatest, 1 - kPriorities)};
}

void wait_stream(CUDAStream waiting, CUDAStream producing) {
  if (waiting == producing) return;
  CUDAEvent event;
  event.record(producing);
  event.block(waiting);
}

bool is_capturing() {
  if (detail::loaded_driver.load(std::memory_order_relaxed) == nullptr) return false;
  const CUDAGuard guard(current_device());
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CRESSET_CUDA_CHECK(cuStreamIsCapturing, getCurrentCUDAStream(), &status);
  return status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUDAStreamGuard::CUDAStreamGuard(CUDAStream stream)
    : guard_(stream.device_index()), before_(getCurrentCUDAStream(stream.device_index())) {
  setCurrentCUDAStream(stream);
}
CUDAStreamGuard::~CUDAStreamGuard() { setCurrentCUDAStream(before_); }

} // namespace c10::cuda
