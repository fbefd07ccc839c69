// Views of a tensor's elements as nested arrays: `a[i][j]` without a dispatcher call. An accessor
// borrows sizes and strides from the tensor, which must outlive it; a packed accessor carries its
// own and may be passed to a kernel by value.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include <c10/util/ArrayRef.h>

namespace at {

template <class T> struct DefaultPtrTraits { using PtrType = T*; };
template <class T> struct RestrictPtrTraits { using PtrType = T* __restrict__; };

namespace detail {
// What accessors of both sorts are in one dimension: element i, or the accessor one dimension down.
template <class T, size_t N, template <class> class Traits, class Index> class ElementWalk {
 public:
  using PtrType = typename Traits<T>::PtrType;
  C10_HOST_DEVICE ElementWalk(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  C10_HOST_DEVICE c10::ArrayRef<Index> sizes() const { return {sizes_, N}; }
  C10_HOST_DEVICE c10::ArrayRef<Index> strides() const { return {strides_, N}; }
  C10_HOST_DEVICE Index size(Index dim) const { return sizes_[dim]; }
  C10_HOST_DEVICE Index stride(Index dim) const { return strides_[dim]; }
  C10_HOST_DEVICE PtrType data() const { return data_; }

 protected:
  PtrType data_;
  const Index* sizes_;
  const Index* strides_;
};
} // namespace detail

template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class TensorAccessor : public detail::ElementWalk<T, N, Traits, Index> {
  using Base = detail::ElementWalk<T, N, Traits, Index>;

 public:
  using Base::Base;
  C10_HOST_DEVICE decltype(auto) operator[](Index i) const {
    if constexpr (N == 1)
      return static_cast<T&>(this->data_[i * this->strides_[0]]);
    else
      return TensorAccessor<T, N - 1, Traits, Index>(this->data_ + i * this->strides_[0],
                                                     this->sizes_ + 1, this->strides_ + 1);
  }
};

template <class T, size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class GenericPackedTensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  GenericPackedTensorAccessor(PtrType data, const int64_t* sizes, const int64_t* strides)
      : data_(data) {
    for (size_t d = 0; d < N; ++d) {
      sizes_[d] = static_cast<Index>(sizes[d]);
      strides_[d] = static_cast<Index>(strides[d]);
    }
  }
  C10_HOST_DEVICE Index size(Index dim) const { return sizes_[dim]; }
  C10_HOST_DEVICE Index stride(Index dim) const { return strides_[dim]; }
  C10_HOST_DEVICE PtrType data() const { return data_; }
  C10_HOST_DEVICE decltype(auto) operator[](Index i) const {
    return TensorAccessor<T, N, Traits, Index>(data_, sizes_, strides_)[i];
  }

 private:
  PtrType data_;
  Index sizes_[N];
  Index strides_[N];
};

template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;

} // namespace at
