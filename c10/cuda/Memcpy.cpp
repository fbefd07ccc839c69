// Copies of bytes. See Memcpy.h.
#include <c10/cuda/Memcpy.h>

#include <cstring>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/ErrorSlot.h>
#include <c10/cuda/PinnedMemory.h>

namespace c10::cuda {
namespace {

CUdeviceptr address(const CopyEnd& end) { return reinterpret_cast<CUdeviceptr>(end.data); }

void copy_to_device(const CopyEnd& dst, const CopyEnd& src, size_t bytes, bool non_blocking) {
  const CUDAGuard guard(dst.device.index());
  const CUDAStream stream = getCurrentCUDAStream();
  CRESSET_CUDA_CHECK(cuMemcpyHtoDAsync, address(dst), src.data, bytes, stream);
  // Ordinary memory has been read into the driver's staging buffer by now, page-locked memory may
  // be read at any time until the copy has run.
  if (!is_pinned(src.data)) return;
  if (!non_blocking)
    stream.synchronize();
  else if (src.owner != nullptr)
    record_pinned_use(*src.owner, stream);
}

void copy_to_host(const CopyEnd& dst, const CopyEnd& src, size_t bytes, bool non_blocking) {
  const CUDAGuard guard(src.device.index());
  const CUDAStream stream = getCurrentCUDAStream();
  CRESSET_CUDA_CHECK(cuMemcpyDtoHAsync, dst.data, address(src), bytes, stream);
  if (non_blocking && is_pinned(dst.data)) {
    if (dst.owner != nullptr) record_pinned_use(*dst.owner, stream);
    return;
  }
  stream.synchronize();
}

void copy_between(const CopyEnd& dst, const CopyEnd& src, size_t bytes) {
  const CUDAStream from = getCurrentCUDAStream(src.device.index());
  const CUDAStream to = getCurrentCUDAStream(dst.device.index());
  // The destination's memory may still be in use by work queued there.
  wait_stream(from, to);
  {
    const CUDAGuard guard(src.device.index());
    CRESSET_CUDA_CHECK(cuMemcpyPeerAsync, address(dst), primary_context(dst.device.index()),
                       address(src), primary_context(src.device.index()), bytes, from);
  }
  wait_stream(to, from);
}

} // namespace

void copy_bytes(const CopyEnd& dst, const CopyEnd& src, size_t bytes, bool non_blocking) {
  if (bytes == 0) return;
  if (dst.device.is_cpu() && src.device.is_cpu()) {
    std::memcpy(dst.data, src.data, bytes);
  } else if (src.device.is_cpu()) {
    copy_to_device(dst, src, bytes, non_blocking);
  } else if (dst.device.is_cpu()) {
    copy_to_host(dst, src, bytes, non_blocking);
  } else if (dst.device == src.device) {
    const CUDAGuard guard(dst.device.index());
    CRESSET_CUDA_CHECK(cuMemcpyDtoDAsync, address(dst), address(src), bytes,
                       getCurrentCUDAStream());
  } else {
    copy_between(dst, src, bytes);
  }
}

} // namespace c10::cuda
