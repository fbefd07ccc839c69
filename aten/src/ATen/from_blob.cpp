// at::from_blob. Its sizes and strides come from outside, but so does the memory: how long that is
// only the caller knows, so the storage is made as long as the geometry reaches.
#undef CRESSET_KERNEL_TU // methods of Tensor for users
#include <ATen/core/EmptyTensor.h>
#include <ATen/from_blob.h>
#include <c10/util/SafeArithmetic.h>

namespace at::detail {
namespace {

// Bytes from the first element to the end of the last.
size_t reach(IntArrayRef sizes, IntArrayRef strides, int64_t offset, int64_t itemsize) {
  int64_t last = offset;
  for (size_t d = 0; d < sizes.size(); ++d) {
    TORCH_CHECK(sizes[d] >= 0, "from_blob: sizes must not be negative, got ", sizes);
    TORCH_CHECK(strides[d] >= 0, "from_blob: strides must not be negative, got ", strides);
    if (sizes[d] == 0) return 0;
    int64_t step = 0;
    const bool fits = !__builtin_mul_overflow(sizes[d] - 1, strides[d], &step) &&
                      !__builtin_add_overflow(last, step, &last);
    TORCH_CHECK(fits && last < INT64_MAX / 16, "from_blob: sizes ", sizes, " with strides ",
                strides, " reach beyond any memory");
  }
  return static_cast<size_t>((last + 1) * itemsize);
}

} // namespace

Tensor blob(void* data, IntArrayRef sizes, std::optional<IntArrayRef> strides,
            int64_t storage_offset, std::function<void(void*)> deleter,
            const TensorOptions& options) {
  const ScalarType dtype = options.dtype();
  const c10::DimVector dense = strides ? c10::DimVector(*strides) : c10::contiguous_strides(sizes);
  TORCH_CHECK(dense.size() == sizes.size(), "from_blob: ", sizes.size(), " sizes but ",
              dense.size(), " strides");
  const size_t bytes = reach(sizes, dense, storage_offset, c10::elementSize(dtype));
  c10::DataPtr memory(data, options.device());
  if (deleter) {
    struct Owner {
      std::function<void(void*)> deleter;
      void* data;
    };
    memory = c10::DataPtr(
        data, new Owner{std::move(deleter), data},
        [](void* context) {
          auto* owner = static_cast<Owner*>(context);
          owner->deleter(owner->data);
          delete owner;
        },
        options.device());
  }
  const Storage storage =
      c10::make_intrusive<c10::StorageImpl>(bytes, std::move(memory), nullptr, false);
  return checked_tensor(storage, dtype, sizes, dense, storage_offset);
}

} // namespace at::detail
