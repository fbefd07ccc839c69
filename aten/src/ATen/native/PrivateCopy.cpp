// See PrivateCopy.h.
#include <ATen/native/PrivateCopy.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {
namespace {

__attribute__((optimize("O3"))) void copy_truths(const uint8_t* from, uint8_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] != 0;
}

Tensor truths(const Tensor& t) {
  const Tensor source = t.contiguous();
  Tensor own = detail::empty(source.sizes(), kBool);
  const auto* from = static_cast<const uint8_t*>(source.data_ptr());
  auto* to = static_cast<uint8_t*>(own.data_ptr());
  parallel_for(0, own.numel(), 1 << 18, [=](int64_t begin, int64_t end) {
    copy_truths(from + begin, to + begin, end - begin);
  });
  return own;
}

} // namespace

Tensor private_copy(const Tensor& t) {
  // The bytes of another device are not to be read here; its kernels read bools as truths.
  if (t.scalar_type() == kBool && t.device().is_cpu()) return truths(t);
  const Tensor own = t.contiguous();
  return own.storage() == t.storage() ? own.clone(MemoryFormat::Contiguous) : own;
}

Tensor long_copy(const Tensor& index) {
  return index.scalar_type() == kLong ? private_copy(index) : index.to(kLong).contiguous();
}

} // namespace at::native
