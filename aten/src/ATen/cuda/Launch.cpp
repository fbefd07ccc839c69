// See Launch.h.
#include <ATen/cuda/Launch.h>

#include <ATen/cuda/Program.h>

#include <atomic>
#include <cstdlib>

#include <c10/cuda/CUDAStream.h>

namespace at::cuda {

CUfunction Kernel::load(int device) const {
  const CUfunction function = load_function(device, program_, options_, name_);
  loaded_[device].store(function, std::memory_order_release);
  return function;
}

namespace {
// Without asking, a block gets 48 KiB, of which the kernel's own static part is not known here.
constexpr unsigned kPlainShared = 32 * 1024;
} // namespace

void launch_function(CUfunction function, Dim3 grid, Dim3 block, unsigned shared_bytes,
                     CUstream stream, void** args) {
  if (C10_UNLIKELY(grid.x == 0 || grid.y == 0 || grid.z == 0)) return;
  const DriverApi& api = driver();
  if (C10_UNLIKELY(shared_bytes > kPlainShared))
    check(api.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                 static_cast<int>(shared_bytes)),
          "cuFuncSetAttribute");
  check(api.cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                           shared_bytes, stream, args, nullptr),
        "cuLaunchKernel");
}

namespace {
bool overlaps() {
  static const bool chosen = [] {
    const char* value = std::getenv("CRESSET_CUDA_OVERLAP");
    return (value == nullptr || *value != '0') && driver().cuLaunchKernelEx != nullptr &&
           current_properties().major >= 9;
  }();
  return chosen;
}
} // namespace

void launch_overlapping(CUfunction function, Dim3 grid, Dim3 block, CUstream stream, void** args) {
  if (!overlaps() || (stream != nullptr && c10::cuda::is_capturing()))
    return launch_function(function, grid, block, 0, stream, args);
  if (C10_UNLIKELY(grid.x == 0 || grid.y == 0 || grid.z == 0)) return;
  CUlaunchAttribute attribute = {};
  attribute.id = kLaunchAttributeProgrammaticStreamSerialization;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {};
  config.gridDimX = grid.x, config.gridDimY = grid.y, config.gridDimZ = grid.z;
  config.blockDimX = block.x, config.blockDimY = block.y, config.blockDimZ = block.z;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  check(driver().cuLaunchKernelEx(&config, function, args, nullptr), "cuLaunchKernelEx");
}

void launch_raw(const Kernel& kernel, Dim3 grid, Dim3 block, unsigned shared_bytes, CUstream stream,
                void** args) {
  const c10::DeviceIndex device = current_device();
  bind_device(device);
  launch_function(kernel.function(device), grid, block, shared_bytes, stream, args);
}

void sleep(int64_t cycles) {
  static constexpr const char* kText = R"(#include <ATen/cuda/device/Prelude.cuh>
CRESSET_KERNEL(32)
cresset_sleep(long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {}
}
)";
  const c10::DeviceIndex device = current_device();
  bind_device(device);
  static std::atomic<CUfunction> loaded[c10::cuda::kMaxDevices] = {};
  std::atomic<CUfunction>& slot = loaded[device];
  if (slot.load() == nullptr)
    slot.store(load_generated(device, nullptr, kText, {}, "cresset_sleep"));
  void* arguments[] = {&cycles};
  launch_function(slot.load(), 1, 1, 0, c10::cuda::getCurrentCUDAStream(device), arguments);
}

int multiprocessors() { return current_properties().multi_processor_count; }

} // namespace at::cuda
