// torch::stable::Tensor: a tensor behind the C interface. Copies share the tensor. Questions about
// an undefined tensor throw std::runtime_error, as every failure does.
#pragma once
#include <memory>

#include <torch/csrc/stable/device_struct.h>
#include <torch/csrc/stable/error.h>
#include <torch/headeronly/core/Layout.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/HeaderOnlyArrayRef.h>

namespace torch::stable {

using torch::headeronly::IntHeaderOnlyArrayRef;
using torch::headeronly::Layout;
using torch::headeronly::ScalarType;

class Tensor {
 public:
  // Undefined.
  Tensor() {
    AtenTensorHandle handle = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_new_uninitialized_tensor(&handle));
    adopt(handle);
  }
  // Takes the handle over.
  explicit Tensor(AtenTensorHandle handle) { adopt(handle); }

  // Borrowed.
  AtenTensorHandle get() const { return handle_.get(); }
  bool defined() const { return ask<bool>(aoti_torch_is_defined); }
  void* data_ptr() const { return ask<void*>(aoti_torch_get_data_ptr); }
  void* mutable_data_ptr() const { return data_ptr(); }
  const void* const_data_ptr() const { return data_ptr(); }
  template <class T> T* mutable_data_ptr() const { return static_cast<T*>(data_ptr()); }
  template <class T> const T* const_data_ptr() const { return static_cast<const T*>(data_ptr()); }
  int64_t dim() const { return ask<int64_t>(aoti_torch_get_dim); }
  int64_t numel() const { return ask<int64_t>(aoti_torch_get_numel); }
  // Owned by the tensor.
  IntHeaderOnlyArrayRef sizes() const {
    return {ask<int64_t*>(aoti_torch_get_sizes), static_cast<size_t>(dim())};
  }
  IntHeaderOnlyArrayRef strides() const {
    return {ask<int64_t*>(aoti_torch_get_strides), static_cast<size_t>(dim())};
  }
  int64_t size(int64_t d) const {
    int64_t out = 0;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_size(get(), d, &out));
    return out;
  }
  int64_t stride(int64_t d) const {
    int64_t out = 0;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_stride(get(), d, &out));
    return out;
  }
  int64_t storage_offset() const { return ask<int64_t>(aoti_torch_get_storage_offset); }
  bool is_contiguous() const { return ask<bool>(aoti_torch_is_contiguous); }
  ScalarType scalar_type() const;
  Layout layout() const;
  size_t element_size() const {
    return aoti_torch_dtype_element_size(ask<int32_t>(aoti_torch_get_dtype));
  }
  DeviceIndex get_device_index() const {
    return static_cast<DeviceIndex>(ask<int32_t>(aoti_torch_get_device_index));
  }
  DeviceIndex get_device() const { return get_device_index(); }
  Device device() const;
  bool is_cpu() const { return kind() == aoti_torch_device_type_cpu(); }
  // The tensor itself. Only tensors of floating and complex numbers can require gradients.
  const Tensor& set_requires_grad(bool requires_grad) const {
    TORCH_ERROR_CODE_CHECK(torch_set_requires_grad(get(), requires_grad));
    return *this;
  }
  bool is_cuda() const { return kind() == aoti_torch_device_type_cuda(); }

 private:
  void adopt(AtenTensorHandle handle) {
    handle_ = std::shared_ptr<AtenTensorOpaque>(
        handle, [](AtenTensorHandle owned) { aoti_torch_delete_tensor_object(owned); });
  }
  int32_t kind() const { return ask<int32_t>(aoti_torch_get_device_type); }
  template <class T> T ask(AOTITorchError (*question)(AtenTensorHandle, T*)) const {
    T out{};
    check_answer(question(get(), &out));
    return out;
  }
  static void check_answer(AOTITorchError code) { detail::check(code, "torch::stable::Tensor"); }

  std::shared_ptr<AtenTensorOpaque> handle_;
};

} // namespace torch::stable
