// The out-of-line parts of SafeArithmetic.h and ArrayRef.h.
#include <c10/util/SafeArithmetic.h>

namespace c10 {

namespace detail {
void throw_no_element(const char* asked) {
  throw Error(str("ArrayRef: attempted to access ", asked, " of an empty list"));
}
void throw_bad_slice(size_t start, size_t count, size_t size) {
  throw Error(
      str("ArrayRef: invalid slice, start = ", start, "; count = ", count, "; size = ", size));
}
} // namespace detail

void throw_size_overflow(IntArrayRef sizes) {
  throw Error(str("Storage size calculation overflowed with sizes=", sizes));
}

int64_t checked_storage_bytes(IntArrayRef sizes, IntArrayRef strides, int64_t itemsize,
                              int64_t storage_offset) {
  TORCH_CHECK(storage_offset >= 0, "Tensor: invalid storage offset ", storage_offset);
  int64_t last = storage_offset;
  bool overflow = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    int64_t step = 0;
    overflow |= mul_overflows(sizes[i] - 1, strides[i], &step);
    overflow |= add_overflows(last, step, &last);
  }
  int64_t bytes = 0;
  overflow |= add_overflows(last, 1, &last);
  overflow |= mul_overflows(last, itemsize, &bytes);
  TORCH_CHECK(!overflow, "Storage size calculation overflowed with sizes=", sizes,
              " and strides=", strides);
  return bytes;
}

} // namespace c10
