// A device of another package, kept small: "harbor", two devices whose memory is on the host. Its
// kernels make, copy, view and add tensors; every other operator runs on the CPU. Its streams and
// events are numbers that count what was asked of them.
#include <atomic>
#include <cstring>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

namespace {

constexpr c10::DeviceType kHarbor = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex kDevices = 2;

thread_local c10::DeviceIndex current_device = 0;
thread_local c10::StreamId current_streams[kDevices] = {0, 0};
std::atomic<int64_t> next_stream{1}, recorded{0}, blocked{0}, live_events{0};
std::atomic<int64_t> live_blocks{0}, additions{0}, fallbacks{0}, pinned_blocks{0};

// ---- devices and streams
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kHarbor; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {kHarbor, current_device}; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() >= 0 && device.index() < kDevices, "harbor: no device ", device);
    current_device = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current_device = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  c10::Stream stream(c10::Device device, c10::StreamId id) const {
    return c10::Stream(c10::Stream::UNSAFE, device, id);
  }
  c10::Stream getStream(c10::Device device) const override {
    return stream(device, current_streams[device.index()]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return stream(device, 0); }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return stream(device, next_stream++);
  }
  c10::Stream exchangeStream(c10::Stream s) const override {
    const c10::Stream before = getStream(s.device());
    current_streams[s.device_index()] = s.id();
    return before;
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(c10::DeviceIndex) const override {}
  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) {
      *event = new int64_t(0);
      ++live_events;
    }
    *static_cast<int64_t*>(*event) = ++recorded;
  }
  void block(void*, const c10::Stream&) const override { ++blocked; }
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<int64_t*>(event);
    --live_events;
  }
  double elapsedTime(void* first, void* second, c10::DeviceIndex) const override {
    return static_cast<double>(*static_cast<int64_t*>(second) - *static_cast<int64_t*>(first));
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// ---- memory
struct HarborAllocator final : at::Allocator {
  at::DataPtr allocate(size_t bytes) override {
    void* data = c10::alloc_cpu(bytes);
    if (data != nullptr) ++live_blocks;
    return {data, data, &free, c10::Device(kHarbor, current_device)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  at::DeleterFnPtr raw_deleter() const override { return &free; }
  static void free(void* data) {
    if (data == nullptr) return;
    --live_blocks;
    c10::free_cpu(data);
  }
};
HarborAllocator allocator;
REGISTER_ALLOCATOR(kHarbor, &allocator);

// Host memory that counts as page-locked.
struct PinnedAllocator final : at::Allocator {
  at::DataPtr allocate(size_t bytes) override {
    void* data = c10::alloc_cpu(bytes);
    last = data;
    ++pinned_blocks;
    return {data, data, &c10::free_cpu, c10::Device(at::kCPU)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  void* last = nullptr;
};
PinnedAllocator pinned;

// ---- random numbers
struct HarborGenerator : at::CPUGeneratorImpl {
  explicit HarborGenerator(c10::DeviceIndex index)
      : CPUGeneratorImpl(c10::Device(kHarbor, index)) {}
};
at::Generator make_harbor_generator(c10::DeviceIndex index) {
  return at::make_generator<HarborGenerator>(index);
}
REGISTER_GENERATOR_PRIVATEUSE1(make_harbor_generator)

struct Hooks : at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    static const at::Generator made[kDevices] = {make_harbor_generator(0),
                                                 make_harbor_generator(1)};
    return made[index];
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned; }
  bool isPinnedPtr(const void* data) const override {
    return data != nullptr && data == pinned.last;
  }
};
const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

// ---- kernels
at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device && device->has_index() ? device : std::nullopt);
  return at::detail::empty_generic(size, &allocator,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}
at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device && device->has_index() ? device : std::nullopt);
  return at::detail::empty_strided_generic(size, stride, &allocator,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

// The same memory as a tensor of the CPU.
at::Tensor host_view(const at::Tensor& t) {
  if (t.is_cpu()) return t;
  const auto& storage = t.storage();
  at::DataPtr data = c10::InefficientStdFunctionContext::makeDataPtr(
      storage.data(), [keep = t](void*) {}, at::Device(at::kCPU));
  c10::Storage host{c10::Storage::use_byte_size_t{}, storage.nbytes(), std::move(data),
                    c10::GetCPUAllocator(), false};
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      std::move(host), c10::DispatchKeySet(c10::DispatchKey::CPU), t.scalar_type());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
  return view;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool) {
  host_view(dst).copy_(host_view(self));
  return dst;
}

at::Tensor add(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  ++additions;
  const at::Tensor sum = at::add(host_view(self), host_view(other), alpha);
  const at::Device device = self.is_cpu() ? other.device() : self.device();
  return copy_from(sum, at::empty(sum.sizes(), sum.options().device(device)), false);
}

void to_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  ++fallbacks;
  at::native::cpu_fallback(op, stack);
}

at::Tensor autocast_mm(const at::Tensor& self, const at::Tensor& mat2) {
  c10::ExcludeDispatchKeyGuard without(c10::DispatchKey::AutocastPrivateUse1);
  const at::ScalarType dtype = at::autocast::get_autocast_dtype(kHarbor);
  return at::mm(at::autocast::cached_cast(dtype, self, kHarbor),
                at::autocast::cached_cast(dtype, mat2, kHarbor));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("add.Tensor", &add);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&to_cpu>());
}
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) { m.impl("mm", &autocast_mm); }

// The live blocks while a bare block of the device exists, and after.
std::tuple<int64_t, int64_t> bare_block() {
  void* block = allocator.raw_allocate(16);
  const int64_t during = live_blocks;
  allocator.raw_deallocate(block);
  // A check is a statement without a semicolon too.
  TORCH_CHECK(c10::GetCPUAllocator()->raw_deleter() == nullptr, "blocks of the CPU have an owner")
  return {during, live_blocks};
}
void bare_block_of_the_cpu() { c10::GetCPUAllocator()->raw_allocate(16); }

// What happened so far.
TORCH_LIBRARY(harbor, m) {
  m.def("additions() -> int", [] { return additions.load(); });
  m.def("fallbacks() -> int", [] { return fallbacks.load(); });
  m.def("live_blocks() -> int", [] { return live_blocks.load(); });
  m.def("live_events() -> int", [] { return live_events.load(); });
  m.def("bare_block() -> (int, int)", &bare_block);
  m.def("bare_block_of_the_cpu() -> ()", &bare_block_of_the_cpu);
  m.def("blocked() -> int", [] { return blocked.load(); });
}

} // namespace
