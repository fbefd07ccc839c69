// See Resize.h.
#include <ATen/native/Resize.h>

namespace at::native {

void resize_strided(const Tensor& self, IntArrayRef sizes, IntArrayRef strides) {
  for (int64_t s : sizes)
    TORCH_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", sizes);
  TensorImpl& impl = *self.unsafeGetTensorImpl();
  TORCH_CHECK(impl.has_storage(), "Cannot resize a tensor of layout ", impl.layout());
  const int64_t bytes =
      c10::checked_storage_bytes(sizes, strides, impl.itemsize(), impl.storage_offset());
  if (static_cast<size_t>(bytes) > impl.storage()->nbytes()) {
    if (impl.device().is_meta())
      impl.storage()->set_data(c10::DataPtr(nullptr, impl.device()), bytes);
    else
      impl.storage()->resize(bytes);
  }
  impl.set_geometry(sizes, strides, impl.storage_offset());
}

void resize_contiguous(const Tensor& self, IntArrayRef sizes) {
  for (int64_t s : sizes)
    TORCH_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", sizes);
  c10::checked_numel(sizes);
  resize_strided(self, sizes, c10::contiguous_strides(sizes));
}

} // namespace at::native
