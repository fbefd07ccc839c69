// Setting every element to one value. Dense tensors are filled as one block, by element size.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/copy/Native.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/fill.h>
#include <ATen/parallel/Parallel.h>
#include <c10/util/NumericLimits.h>

namespace at::native {
namespace {

// A short beginning element by element, then copies of it: memcpy has the machine's widest stores.
constexpr int64_t kPatternBytes = 1024;

template <class T> void fill_dense(T* data, int64_t n, T value) {
  constexpr int64_t pattern = kPatternBytes / static_cast<int64_t>(sizeof(T));
  parallel_for(0, n, TensorIterator::kGrain, [&](int64_t begin, int64_t end) {
    const int64_t seed = std::min(end, begin + pattern);
    for (int64_t i = begin; i < seed; ++i) data[i] = value;
    for (int64_t i = seed; i < end; i += pattern)
      std::memcpy(data + i, data + begin, std::min(pattern, end - i) * sizeof(T));
  });
}

// The bits of the value in the tensor's dtype.
void encode(const Tensor& self, const Scalar& value, void* bits) {
  if (self.scalar_type() == ScalarType::Float8_e8m0fnu) {
    // A tensor of zeros has zero bits, which this type, without a zero, reads as its least number.
    const c10::Float8_e8m0fnu converted(value.to<float>());
    std::memcpy(bits, &converted, sizeof converted);
    return;
  }
  dtype_switch<AllTypesAndFloat8>(self.scalar_type(), "fill_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr bool float8 = sizeof(T) == 1 && !std::is_integral_v<T>;
    constexpr bool reduced =
        float8 || std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>;
    T converted;
    if constexpr (reduced) {
      // One number may leave the range (programs write torch.full((), -1e9, dtype=half) for minus
      // infinity); more of them have to be in it, as for float32.
      const double number = value.to<double>();
      converted = T(static_cast<float>(number));
      const double limit = static_cast<float>(c10::numeric_limits<T>::max());
      TORCH_CHECK(self.numel() <= 1 || std::abs(number) <= limit || number - number != 0,
                  "value cannot be converted to type c10::", self.scalar_type(),
                  " without overflow");
    } else {
      converted = value.to<T>();
    }
    std::memcpy(bits, &converted, sizeof(T));
  });
}

void fill_bits(const Tensor& self, const void* bits) {
  itemsize_switch(self.itemsize(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T value;
    std::memcpy(&value, bits, sizeof(T));
    if (self.is_non_overlapping_and_dense()) {
      fill_dense(static_cast<T*>(self.data_ptr()), self.numel(), value);
      return;
    }
    TensorIterator iter(self.sizes());
    iter.add_output(self);
    iter.build();
    iter.for_each([&](char* const* data, const int64_t* strides, int64_t n) {
      char* p = data[0];
      for (int64_t i = 0; i < n; ++i, p += strides[0]) std::memcpy(p, &value, sizeof(T));
    });
  });
}

// The tensor without the repetitions of a stride of 0: every element is written once.
Tensor written_once(const Tensor& self) {
  DimVector sizes(self.sizes().begin(), self.sizes().end());
  bool repeats = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] <= 1 || self.strides()[d] != 0) continue;
    sizes[d] = 1;
    repeats = true;
  }
  return repeats ? detail::view_of(self, sizes, self.strides(), self.storage_offset()) : self;
}
} // namespace

Tensor& fill_cpu_(Tensor& self, const Scalar& value) {
  alignas(16) char bits[16] = {};
  encode(self, value, bits);
  const Tensor once = written_once(self);
  if (self.numel() > 0) fill_bits(once, bits);
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}
Tensor& fill_meta_(Tensor& self, const Scalar& value) {
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}
Tensor& fill_tensor_(Tensor& self, const Tensor& value) {
  const int64_t rank = value.dim();
  TORCH_CHECK(rank == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", rank,
              " dimensions.");
  const bool here = value.device() == self.device();
  if (!here) return self.fill_(value.item());
  // An element of the tensor itself is read before it is written.
  return self.copy_(value.is_alias_of(self) ? value.clone() : value);
}
Tensor fill_scalar(const Tensor& self, const Scalar& value) {
  return at::clone(self, MemoryFormat::Preserve).fill_(value);
}
Tensor fill_tensor(const Tensor& self, const Tensor& value) {
  Tensor out = at::clone(self, MemoryFormat::Preserve);
  return fill_tensor_(out, value);
}

Tensor& zero_cpu_(Tensor& self) {
  constexpr int64_t kAtOnce = 1 << 18; // bytes of a task
  TORCH_CHECK(self.defined(), "zero_: the tensor has no value");
  if (self.numel() > 0) {
    if (self.is_non_overlapping_and_dense()) {
      char* data = static_cast<char*>(self.data_ptr());
      const auto bytes = static_cast<int64_t>(self.nbytes());
      if (bytes <= kAtOnce)
        std::memset(data, 0, self.nbytes());
      else
        parallel_for(0, bytes, kAtOnce, [&](int64_t begin, int64_t end) {
          std::memset(data + begin, 0, end - begin);
        });
    } else {
      const char bits[16] = {};
      fill_bits(written_once(self), bits);
    }
  }
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}
Tensor& zero_meta_(Tensor& self) {
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}
Tensor zero(const Tensor& self) {
  return at::empty_like(self, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt)
      .zero_();
}

} // namespace at::native
