// What the generated bindings do around out= arguments and the options of factories. They stand
// here and not in the generator, so that they are read, formatted and compiled like any other code.
#pragma once
#include <torch/csrc/python/args/arg_parser.h>

namespace torch::python {

// A factory called with out= and also with dtype, layout or device: they must describe the same
// tensor.
inline void check_out_options(const at::Tensor& out, std::optional<c10::ScalarType> dtype,
                              std::optional<c10::Layout> layout,
                              std::optional<c10::Device> device) {
  TORCH_CHECK(!dtype || *dtype == out.scalar_type(), "dtype ", *dtype,
              " does not match dtype of out parameter (", out.scalar_type(), ")");
  TORCH_CHECK(!layout || *layout == out.layout(), "layout ", *layout,
              " does not match layout of out parameter (", out.layout(), ")");
  TORCH_CHECK(!device || device->type() == out.device().type(), "device type ", device->type(),
              " does not match device type of out parameter (", out.device().type(), ")");
}

// out= of an operator with several results is a sequence with one tensor for each.
inline void check_out_count(const char* name, at::TensorList outs, size_t count) {
  TORCH_CHECK_TYPE(outs.size() == count, name, "(): argument 'out' must be tuple of ", count,
                   " Tensors, not ", outs.size());
}

inline at::Tensor& out_tensor(at::TensorList outs, size_t i) {
  return const_cast<at::Tensor&>(outs[i]);
}

// Options of a factory that were not given. Whoever watches operators sees what the call means, as
// the options of a call from Python are part of it: the CPU, and memory that is not pinned.
inline bool is_watched() {
  constexpr c10::DispatchKeySet kModes{c10::DispatchKey::Python, c10::DispatchKey::PreDispatch};
  return C10_UNLIKELY((c10::tls_dispatch_keys.included & kModes.raw()) != 0);
}
inline std::optional<c10::Device> factory_device(const ArgValues& a, int i) {
  if (!a.present(i) && is_watched()) return c10::Device(c10::DeviceType::CPU);
  return a.opt_device(i);
}
inline std::optional<bool> factory_pin_memory(const ArgValues& a, int i) {
  if (!a.present(i) && is_watched()) return false;
  return a.opt_boolean(i);
}

} // namespace torch::python
