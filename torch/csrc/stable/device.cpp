// Devices, streams and threads of the C interface. The accelerator is the device kind of another
// package where one registered itself, else CUDA.
#include <c10/core/DeviceHooks.h>

#include <optional>

#include <ATen/parallel/Parallel.h>
#include <torch/csrc/stable/values.h>

namespace torch::stable {
namespace {

c10::DeviceType accelerator() {
  return c10::device_hooks(c10::kPrivateUse1) != nullptr ? c10::kPrivateUse1 : c10::kCUDA;
}
c10::DeviceHooks& accelerator_hooks() {
  c10::DeviceHooks& hooks = c10::require_device_hooks(accelerator());
  TORCH_CHECK(hooks.device_count() > 0, "Cannot access accelerator device when none is available.");
  return hooks;
}
c10::Device accelerator_device(int32_t index) {
  TORCH_CHECK(index >= -1 && index <= 127, "invalid device index ", index);
  return accelerator_hooks().resolve(
      c10::Device(accelerator(), static_cast<c10::DeviceIndex>(index)));
}

struct Guard {
  std::optional<c10::DeviceGuard> guard;
};
struct StreamValue {
  int64_t id;
};

} // namespace
} // namespace torch::stable

using namespace torch::stable; // NOLINT: the C functions lie outside of every namespace

AOTITorchError aoti_torch_get_current_device_index(int32_t* ret) {
  return shim([&] { *ret = accelerator_hooks().current_device(); });
}
AOTITorchError aoti_torch_create_device_guard(int32_t device_index, DeviceGuardHandle* ret) {
  return shim([&] {
    auto made = std::make_unique<Guard>();
    made->guard.emplace(accelerator_device(device_index));
    *ret = reinterpret_cast<DeviceGuardHandle>(made.release());
  });
}
AOTITorchError aoti_torch_delete_device_guard(DeviceGuardHandle guard) {
  return shim([&] { delete reinterpret_cast<Guard*>(guard); });
}
AOTITorchError aoti_torch_device_guard_set_index(DeviceGuardHandle guard, int32_t device_index) {
  return shim([&] {
    TORCH_CHECK(guard != nullptr, "the handle of a device guard is null");
    std::optional<c10::DeviceGuard>& held = reinterpret_cast<Guard*>(guard)->guard;
    const c10::Device device = accelerator_device(device_index);
    held.reset();
    held.emplace(device);
  });
}
AOTITorchError aoti_torch_get_current_stream(int32_t device_index, StreamHandle* ret) {
  return shim([&] {
    const c10::Device device = accelerator_device(device_index);
    void* stream = accelerator_hooks().current_stream(device.index());
    *ret = reinterpret_cast<StreamHandle>(new StreamValue{reinterpret_cast<int64_t>(stream)});
  });
}
AOTITorchError aoti_torch_delete_stream(StreamHandle stream) {
  return shim([&] { delete reinterpret_cast<StreamValue*>(stream); });
}
AOTITorchError aoti_torch_stream_id(StreamHandle stream, int64_t* ret) {
  return shim([&] {
    TORCH_CHECK(stream != nullptr, "the handle of a stream is null");
    *ret = reinterpret_cast<StreamValue*>(stream)->id;
  });
}

AOTITorchError torch_parallel_for(int64_t begin, int64_t end, int64_t grain,
                                  void (*body)(int64_t, int64_t, void*), void* context) {
  return shim([&] {
    at::parallel_for(begin, end, grain,
                     [&](int64_t first, int64_t last) { body(first, last, context); });
  });
}
AOTITorchError torch_get_num_threads(uint32_t* ret) {
  return shim([&] { *ret = static_cast<uint32_t>(at::get_num_threads()); });
}
AOTITorchError torch_get_thread_idx(uint32_t* ret) {
  return shim([&] { *ret = static_cast<uint32_t>(at::get_thread_num()); });
}
AOTITorchError torch_parse_device_string(const char* text, uint32_t* ret_type, int32_t* ret_index) {
  return shim([&] {
    TORCH_CHECK(text != nullptr, "torch_parse_device_string: the text is null");
    const c10::Device device{std::string_view(text)};
    *ret_type = static_cast<uint32_t>(device.type());
    *ret_index = device.index();
  });
}
