// cuDNN's descriptors of tensors and filters as objects that free them, for extensions.
#pragma once
#include <ATen/cudnn/cudnn-wrapper.h>

#include <limits>
#include <memory>
#include <type_traits>

#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/Exceptions.h>

namespace at::native {

// Throws where cuDNN has no such type of elements.
inline cudnnDataType_t getCudnnDataTypeFromScalarType(at::ScalarType dtype) {
  switch (dtype) {
  case at::kFloat:
    return CUDNN_DATA_FLOAT;
  case at::kDouble:
    return CUDNN_DATA_DOUBLE;
  case at::kHalf:
    return CUDNN_DATA_HALF;
  case at::kBFloat16:
    return CUDNN_DATA_BFLOAT16;
  case at::kChar:
    return CUDNN_DATA_INT8;
  case at::kInt:
    return CUDNN_DATA_INT32;
  case at::kLong:
    return CUDNN_DATA_INT64;
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, "cuDNN has no elements of type ", dtype);
  }
}
inline cudnnDataType_t getCudnnDataType(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.defined(), "a descriptor of cuDNN needs a defined tensor");
  return getCudnnDataTypeFromScalarType(tensor.scalar_type());
}

namespace cudnn_detail {

// Sizes and strides as cuDNN takes them: at least `pad` dimensions, those that are added of size 1
// at the end. The stride of a dimension of size 1 says nothing, but cuDNN compares it when it looks
// for dense tensors: it is that of a dense one.
struct Geometry {
  int dims = 0;
  int sizes[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX];

  Geometry(const at::Tensor& tensor, size_t pad) {
    const auto own = static_cast<size_t>(tensor.dim());
    TORCH_CHECK_VALUE(own <= CUDNN_DIM_MAX && pad <= CUDNN_DIM_MAX, "cuDNN takes at most ",
                      CUDNN_DIM_MAX, " dimensions, got a tensor of ", own, " and a padding to ",
                      pad);
    dims = static_cast<int>(own > pad ? own : pad);
    int64_t dense = 1;
    for (int i = dims - 1; i >= 0; --i) {
      const bool is_own = i < static_cast<int>(own);
      const int64_t size = is_own ? tensor.size(i) : 1;
      sizes[i] = narrow(size);
      strides[i] = narrow(size == 1 ? dense : tensor.stride(i));
      dense = strides[i] * static_cast<int64_t>(size);
    }
  }

 private:
  static int narrow(int64_t n) {
    TORCH_CHECK_VALUE(n >= 0 && n <= std::numeric_limits<int>::max(),
                      "cuDNN takes sizes and strides below 2^31, got ", n);
    return static_cast<int>(n);
  }
};

} // namespace cudnn_detail

// Owns a descriptor, which it makes when it is first written.
template <class Pointer, cudnnStatus_t (*create)(Pointer*), cudnnStatus_t (*destroy)(Pointer)>
class Descriptor {
 public:
  // Null until it is set.
  Pointer desc() const { return held_.get(); }
  Pointer mut_desc() {
    if (!held_) {
      Pointer made = nullptr;
      AT_CUDNN_CHECK(create(&made));
      held_.reset(made);
    }
    return held_.get();
  }

 private:
  struct Free {
    void operator()(std::remove_pointer_t<Pointer>* p) const { destroy(p); }
  };
  std::unique_ptr<std::remove_pointer_t<Pointer>, Free> held_;
};

class TensorDescriptor : public Descriptor<cudnnTensorDescriptor_t, &cudnnCreateTensorDescriptor,
                                           &cudnnDestroyTensorDescriptor> {
 public:
  TensorDescriptor() = default;
  explicit TensorDescriptor(const at::Tensor& tensor, size_t pad = 0) { set(tensor, pad); }
  void set(const at::Tensor& tensor, size_t pad = 0) {
    const cudnnDataType_t type = getCudnnDataType(tensor);
    const cudnn_detail::Geometry g(tensor, pad);
    AT_CUDNN_CHECK(cudnnSetTensorNdDescriptor(mut_desc(), type, g.dims, g.sizes, g.strides));
  }
};

// Filters are dense: in the order of their dimensions, or with channels last.
class FilterDescriptor : public Descriptor<cudnnFilterDescriptor_t, &cudnnCreateFilterDescriptor,
                                           &cudnnDestroyFilterDescriptor> {
 public:
  FilterDescriptor() = default;
  explicit FilterDescriptor(const at::Tensor& tensor, int64_t pad = 0) { set(tensor, pad); }
  void set(const at::Tensor& tensor, int64_t pad = 0) {
    const cudnnDataType_t type = getCudnnDataType(tensor);
    const bool last = !tensor.is_contiguous();
    TORCH_CHECK_VALUE(!last || tensor.is_contiguous(at::MemoryFormat::ChannelsLast) ||
                          tensor.is_contiguous(at::MemoryFormat::ChannelsLast3d),
                      "cuDNN filters must be contiguous, got strides ", tensor.strides());
    const cudnn_detail::Geometry g(tensor, static_cast<size_t>(pad));
    const auto format = last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    AT_CUDNN_CHECK(cudnnSetFilterNdDescriptor(mut_desc(), type, format, g.dims, g.sizes));
  }
};

} // namespace at::native
