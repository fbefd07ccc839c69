// See MaskLoops.h.
#include <ATen/native/index/MaskLoops.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/PrivateCopy.h>
#include <ATen/parallel/Parallel.h>

#include <cstring>

namespace at::native {
namespace {

// Written for the vectoriser: every element is stored, chosen between its old value and the new
// one.
template <class U>
__attribute__((optimize("O3"))) void fill_dense(U* to, const uint8_t* mask, int64_t n, U value) {
  for (int64_t i = 0; i < n; ++i) to[i] = mask[i] ? value : to[i];
}

template <class U>
void fill_row(char* const* data, const int64_t* strides, int64_t n, const void* value) {
  U v;
  std::memcpy(&v, value, sizeof(U));
  const uint8_t* mask = reinterpret_cast<const uint8_t*>(data[1]);
  if constexpr (sizeof(U) <= 8) {
    if (strides[0] == sizeof(U) && strides[1] == 1) {
      fill_dense(reinterpret_cast<U*>(data[0]), mask, n, v);
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i)
    if (mask[i * strides[1]]) *reinterpret_cast<U*>(data[0] + i * strides[0]) = v;
}

template <class T>
__attribute__((optimize("O3"))) void to_true(const T* from, uint8_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (c10::is_complex_v<T>)
      to[i] = static_cast<float>(from[i].real_) != 0 || static_cast<float>(from[i].imag_) != 0;
    else if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
      to[i] = from[i] != T(0);
    else
      to[i] = static_cast<float>(from[i]) != 0;
  }
}

} // namespace

Tensor& masked_fill_same_dtype_(Tensor& self, const Tensor& mask, const Tensor& value) {
  const void* data = value.data_ptr();
  TensorIterator iter(self.sizes());
  iter.add_output(self);
  iter.add_input(mask);
  iter.build();
  itemsize_switch(self.itemsize(), [&](auto tag) {
    using U = typename decltype(tag)::type;
    iter.for_each(
        [data](char* const* d, const int64_t* s, int64_t n) { fill_row<U>(d, s, n, data); });
  });
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

int64_t count_true(const uint8_t* mask, int64_t n) {
  int64_t count = 0;
  int64_t i = 0;
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7fULL;
  for (; i + 8 <= n; i += 8) {
    uint64_t word;
    std::memcpy(&word, mask + i, 8);
    // The top bit of each byte that is not 0.
    const uint64_t top = ((word & kLow) + kLow) | word;
    count += __builtin_popcountll(top & ~kLow);
  }
  for (; i < n; ++i) count += mask[i] != 0;
  return count;
}

TrueCounts::TrueCounts(const uint8_t* mask, int64_t n) : chunk(n > 0 ? chunk_size(n, kGrain) : 1) {
  const int64_t chunks = n > 0 ? (n + chunk - 1) / chunk : 0;
  before.assign(static_cast<size_t>(chunks) + 1, 0);
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    // A range that runs in one call may still hold several chunks.
    for (int64_t b = begin; b < end; b += chunk)
      before[static_cast<size_t>(b / chunk) + 1] = count_true(mask + b, std::min(chunk, end - b));
  });
  for (size_t c = 1; c < before.size(); ++c) before[c] += before[c - 1];
}

Tensor true_bytes(const Tensor& t) {
  // A copy in any case: who counts first and writes then must find the same elements again.
  if (t.scalar_type() == kBool) return private_copy(t);
  const Tensor source = t.contiguous();
  const Tensor result = detail::empty(source.sizes(), kBool);
  uint8_t* to = static_cast<uint8_t*>(result.data_ptr());
  dtype_switch<AllTypesAndFloat8>(t.scalar_type(), "nonzero_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(source.data_ptr());
    parallel_for(0, result.numel(), TrueCounts::kGrain, [=](int64_t begin, int64_t end) {
      to_true(from + begin, to + begin, end - begin);
    });
  });
  return result;
}

} // namespace at::native
