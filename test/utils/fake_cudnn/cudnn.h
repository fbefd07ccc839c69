// Stands for cuDNN's header in tests without it: what ATen/cudnn/*.h call, which remembers what it
// was told. The library is the extension itself.
#pragma once
#include <vector>

struct cudnnContext;
struct cudnnDescriptor {
  int type = -1, format = -1;
  std::vector<int> sizes, strides;
};
using cudnnHandle_t = cudnnContext*;
using cudnnTensorDescriptor_t = cudnnDescriptor*;
struct cudnnFilter : cudnnDescriptor {};
using cudnnFilterDescriptor_t = cudnnFilter*;
enum cudnnStatus_t { CUDNN_STATUS_SUCCESS = 0, CUDNN_STATUS_BAD_PARAM = 2000 };
enum cudnnDataType_t {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_DOUBLE = 1,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_INT8 = 3,
  CUDNN_DATA_INT32 = 4,
  CUDNN_DATA_BFLOAT16 = 9,
  CUDNN_DATA_INT64 = 10,
};
enum cudnnTensorFormat_t { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1 };
#define CUDNN_DIM_MAX 8

inline int live_descriptors = 0;

template <class T> cudnnStatus_t make_descriptor(T** made) {
  ++live_descriptors;
  *made = new T;
  return CUDNN_STATUS_SUCCESS;
}
template <class T> cudnnStatus_t free_descriptor(T* made) {
  --live_descriptors;
  delete made;
  return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnCreate(cudnnHandle_t*) { return CUDNN_STATUS_SUCCESS; }
inline cudnnStatus_t cudnnSetStream(cudnnHandle_t, void*) { return CUDNN_STATUS_SUCCESS; }
inline cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) {
  return make_descriptor(made);
}
inline cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t made) {
  return free_descriptor(made);
}
inline cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) {
  return make_descriptor(made);
}
inline cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t made) {
  return free_descriptor(made);
}
// Like cuDNN it refuses fewer than three dimensions.
inline cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t to, cudnnDataType_t type,
                                                int dims, const int* sizes, const int* strides) {
  if (dims < 3) return CUDNN_STATUS_BAD_PARAM;
  to->type = type;
  to->sizes.assign(sizes, sizes + dims);
  to->strides.assign(strides, strides + dims);
  return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t to, cudnnDataType_t type,
                                                cudnnTensorFormat_t format, int dims,
                                                const int* sizes) {
  to->type = type;
  to->format = format;
  to->sizes.assign(sizes, sizes + dims);
  return CUDNN_STATUS_SUCCESS;
}
