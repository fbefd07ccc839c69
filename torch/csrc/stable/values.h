// The library's side of StableIValue (torch/csrc/inductor/aoti_torch/c/shim.h): from and to values
// of operators, as their schema says. Nothing here is seen by extensions.
#pragma once
#include <exception>
#include <string>
#include <vector>

#include <ATen/core/FunctionSchema.h>
#include <torch/csrc/stable/c/shim.h>

namespace torch::stable {

// What the handles of the C interface point at.
inline at::Tensor& tensor_of(AtenTensorHandle handle) {
  TORCH_CHECK(handle != nullptr, "the handle of a tensor is null");
  return *reinterpret_cast<at::Tensor*>(handle);
}
inline AtenTensorHandle new_handle(at::Tensor tensor) {
  return reinterpret_cast<AtenTensorHandle>(new at::Tensor(std::move(tensor)));
}

// The result owns what the value owned. NotImplementedError for kinds of values that the interface
// does not know.
StableIValue to_stable(const at::IValue& value, const at::SchemaType& type);
// Takes over what `bits` own.
at::IValue from_stable(StableIValue bits, const at::SchemaType& type);

void set_last_error(const char* text) noexcept;

// Runs `f`; an exception becomes the failure of the call.
template <class F> AOTITorchError shim(F f) noexcept {
  try {
    f();
    return AOTI_TORCH_SUCCESS;
  } catch (const std::exception& error) {
    set_last_error(error.what());
  } catch (...) { // NOLINT: nothing may leave a C function
    set_last_error("an exception that is no std::exception");
  }
  return AOTI_TORCH_FAILURE;
}

} // namespace torch::stable
