// Copies in which a CUDA tensor takes part, fills of CUDA tensors and reading one element back.
// Bytes travel between host and device as one block: what differs in dtype or order of elements is
// first brought into shape on the side where it is.
#include <cstring>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/Pointwise.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/copy/Native.h>
#include <ATen/parallel/Parallel.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/Memcpy.h>
#include <c10/cuda/PinnedMemory.h>

namespace at::native {
namespace {

using c10::cuda::CopyEnd;
using c10::cuda::CUDAGuard;

bool same_dense_order(const Tensor& a, const Tensor& b) {
  return (a.is_contiguous() && b.is_contiguous()) ||
         (a.is_non_overlapping_and_dense() && a.strides() == b.strides());
}

CopyEnd end_of(const Tensor& t) { return {t.data_ptr(), t.device(), &t.storage()->data_ptr()}; }

void copy_block(const Tensor& self, const Tensor& src, bool non_blocking) {
  if (self.is_cuda() && src.is_cuda())
    return c10::cuda::copy_bytes(end_of(self), end_of(src), self.nbytes(), true);
  BlockingRegion unlocked; // the host may wait
  c10::cuda::copy_bytes(end_of(self), end_of(src), self.nbytes(), non_blocking);
}

// Both on one CUDA device, `src` of self's shape.
void copy_within(const Tensor& self, const Tensor& src) {
  const CUDAGuard guard(self.device().index());
  const bool aliased = self.is_alias_of(src);
  if (self.scalar_type() == src.scalar_type() && same_dense_order(self, src)) {
    if (self.data_ptr() == src.data_ptr()) return;
    if (!aliased) return copy_block(self, src, true);
  }
  if (!aliased) return cuda::copy_on_device(self, src);
  assert_no_partial_overlap(self, src);
  const Tensor staged = detail::empty(src.sizes(), src.scalar_type(), src.device());
  cuda::copy_on_device(staged, src);
  cuda::copy_on_device(self, staged);
}

// Between devices, or a device and the host. `src` has self's shape or is still to be broadcast,
// which happens after the journey.
void copy_across(const Tensor& self, const Tensor& src, bool non_blocking) {
  const bool same_kind = src.scalar_type() == self.scalar_type();
  if (same_kind && self.sizes() == src.sizes() && same_dense_order(self, src))
    return copy_block(self, src, non_blocking);
  // Temporaries may go before the copy has run: a device's memory is reused in stream order, the
  // host's ordinary memory has been read when the call returns.
  const Tensor packed = src.to(self.scalar_type()).contiguous();
  if (self.is_contiguous() && self.sizes() == packed.sizes())
    return copy_block(self, packed, non_blocking);
  const Tensor landed = detail::empty(packed.sizes(), self.scalar_type(), self.device());
  copy_block(landed, packed, non_blocking && !landed.is_cpu());
  self.copy_(landed);
}

} // namespace

Tensor& copy_cuda_(Tensor& self, const Tensor& src, bool non_blocking) {
  TORCH_CHECK(self.defined(), "self is undefined");
  TORCH_CHECK(src.defined(), "src is undefined");
  if (self.is_same(src)) return self;
  if (self.sizes() != src.sizes()) {
    const DimVector shape = broadcast_shapes(self.sizes(), src.sizes());
    TORCH_CHECK(IntArrayRef(shape) == self.sizes(), "output with shape ", self.sizes(),
                " doesn't match the broadcast shape ", IntArrayRef(shape));
  }
  TORCH_CHECK_NOT_IMPLEMENTED(!src.is_meta(), "Cannot copy out of meta tensor; no data!");
  if (!self.is_meta() && self.numel() > 0) {
    assert_no_internal_overlap(self);
    if (self.device() == src.device())
      copy_within(self, self.sizes() == src.sizes() ? src : src.expand(self.sizes()));
    else
      copy_across(self, src, non_blocking);
  }
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Scalar local_scalar_dense_cuda(const Tensor& self) {
  TORCH_CHECK(self.numel() == 1, "a Tensor with ", self.numel(),
              " elements cannot be converted to Scalar");
  // Page-locked memory saves the driver a stop at its own buffer.
  static thread_local const c10::DataPtr staging = c10::cuda::pinned_allocator()->allocate(16);
  const auto bytes = static_cast<size_t>(self.itemsize());
  {
    BlockingRegion unlocked;
    c10::cuda::copy_bytes({staging.get(), Device(kCPU)}, end_of(self), bytes, false);
  }
  const Tensor host = detail::empty({}, self.scalar_type());
  std::memcpy(host.data_ptr(), staging.get(), bytes);
  return host.item();
}

// ---- fills --------------------------------------------------------------------------------------

Tensor& fill_cuda_(Tensor& self, const Scalar& value) {
  assert_no_internal_overlap(self);
  if (self.numel() > 0) {
    const CUDAGuard guard(self.device().index());
    cuda::fill_on_device(self, value);
  }
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Tensor& zero_cuda_(Tensor& self) {
  assert_no_internal_overlap(self);
  if (self.numel() > 0) {
    const CUDAGuard guard(self.device().index());
    if (self.is_non_overlapping_and_dense()) {
      CRESSET_CUDA_CHECK(cuMemsetD8Async, reinterpret_cast<c10::cuda::CUdeviceptr>(self.data_ptr()),
                         static_cast<unsigned char>(0), self.nbytes(),
                         c10::cuda::getCurrentCUDAStream());
    } else {
      cuda::fill_on_device(self, 0);
    }
  }
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

} // namespace at::native
