// The geometry of a tensor that a kernel takes by value, and from the number of an element to its
// offset.
#pragma once
#include <algorithm>
#include <cstdint>

#include <c10/macros/Macros.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>

#define MAX_TENSORINFO_DIMS 25

namespace at::cuda::detail {

template <class T, class IndexType> struct TensorInfo {
  T* data = nullptr;
  IndexType sizes[MAX_TENSORINFO_DIMS] = {};
  IndexType strides[MAX_TENSORINFO_DIMS] = {};
  int dims = 0;

  TensorInfo() = default;
  TensorInfo(T* memory, c10::IntArrayRef shape, c10::IntArrayRef steps) : data(memory) {
    TORCH_CHECK(shape.size() <= MAX_TENSORINFO_DIMS && shape.size() == steps.size(),
                "a kernel takes the geometry of tensors of up to ", MAX_TENSORINFO_DIMS,
                " dimensions, got ", shape.size(), " sizes and ", steps.size(), " strides");
    dims = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), sizes);
    std::copy(steps.begin(), steps.end(), strides);
  }
  // Keeps one element of a dimension: a reduction over it iterates by hand.
  void reduceDim(int dim) {
    TORCH_CHECK(dim >= 0 && dim < dims, "TensorInfo::reduceDim: no dimension ", dim);
    sizes[dim] = 1;
  }
};

// Dims: the number of dimensions where it is known, -1 where it is not, -2 for contiguous ones.
template <class T, class IndexType, int Dims> struct IndexToOffset {
  C10_HOST_DEVICE static IndexType get(IndexType linear, const TensorInfo<T, IndexType>& info) {
    if constexpr (Dims == -2) return linear;
    IndexType offset = 0;
    for (int d = (Dims > 0 ? Dims : info.dims) - 1; d > 0; --d) {
      offset += linear % info.sizes[d] * info.strides[d];
      linear /= info.sizes[d];
    }
    return info.dims > 0 ? offset + linear * info.strides[0] : 0;
  }
};

} // namespace at::cuda::detail
