// Backends for two kinds of devices that the library only has names for. "maia" has kernels: one
// that makes tensors and one that adds into a given tensor. "mtia" has hooks and a guard that says
// other things than the hooks, so that tests see who is asked.
#include <array>
#include <cstring>

#include <ATen/EmptyTensor.h>
#include <ATen/detail/MTIAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/csrc/utils/device_lazy_init.h>
#include <torch/library.h>
#include <torch/torch.h>

namespace {

int64_t additions = 0;

template <c10::DeviceType kKind> struct Guard : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kKind; }
  c10::Device exchangeDevice(c10::Device d) const override {
    const c10::Device before(kKind, current);
    current = d.index();
    return before;
  }
  c10::Device getDevice() const override { return c10::Device(kKind, current); }
  void setDevice(c10::Device d) const override { current = d.index(); }
  void uncheckedSetDevice(c10::Device d) const noexcept override { current = d.index(); }
  c10::DeviceIndex deviceCount() const noexcept override { return 2; }
  c10::Stream getStream(c10::Device d) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, d);
  }
  c10::Stream getNewStream(c10::Device d, int) const override {
    return c10::Stream::unpack3(++streams, d.index(), d.type());
  }
  c10::Stream exchangeStream(c10::Stream s) const noexcept override {
    return getStream(s.device());
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  static inline thread_local c10::DeviceIndex current = 0;
  static inline int64_t streams = 0;
};
C10_REGISTER_GUARD_IMPL(MAIA, Guard<c10::DeviceType::MAIA>);
C10_REGISTER_GUARD_IMPL(MTIA, Guard<c10::DeviceType::MTIA>);

// ---- maia: memory of the host
struct Allocator final : at::Allocator {
  at::DataPtr allocate(size_t bytes) override {
    void* data = c10::alloc_cpu(bytes);
    const c10::Device device(c10::DeviceType::MAIA, Guard<c10::DeviceType::MAIA>::current);
    return {data, data, &c10::free_cpu, device};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
};
Allocator allocator;
REGISTER_ALLOCATOR(c10::DeviceType::MAIA, &allocator);

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::MAIA),
                                   c10::dtype_or_default(dtype), format);
}
// Sums of float tensors of one size, all contiguous.
at::Tensor& add_out(const at::Tensor& a, const at::Tensor& b, const at::Scalar& alpha,
                    at::Tensor& out) {
  ++additions;
  TORCH_CHECK(a.sizes() == b.sizes() && out.sizes() == a.sizes(), "sizes differ");
  const float* const x = static_cast<const float*>(a.const_data_ptr());
  const float* const y = static_cast<const float*>(b.const_data_ptr());
  float* const sums = static_cast<float*>(out.mutable_data_ptr());
  for (int64_t i = 0; i < a.numel(); ++i) sums[i] = x[i] + alpha.toFloat() * y[i];
  return out;
}
at::Tensor& fill(at::Tensor& self, const at::Scalar& value) {
  float* const data = static_cast<float*>(self.mutable_data_ptr());
  for (int64_t i = 0; i < self.numel(); ++i) data[i] = value.toFloat();
  return self;
}
TORCH_LIBRARY_IMPL(aten, MAIA, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("add.out", &add_out);
  m.impl("fill_.Scalar", &fill);
}

// ---- mtia: only what is current
struct Hooks : at::MTIAHooksInterface {
  explicit Hooks(at::MTIAHooksArgs) {}
  bool hasMTIA() const override { return true; }
  c10::DeviceIndex deviceCount() const override {
    torch::utils::device_lazy_init(at::kMTIA);
    return 2;
  }
  c10::DeviceIndex getCurrentDevice() const override { return device; }
  void setCurrentDevice(c10::DeviceIndex d) const override { device = d; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex d) const override {
    return std::exchange(device, d);
  }
  c10::Stream getDefaultStream(c10::DeviceIndex d) const override {
    return c10::Stream::unpack3(0, d, at::kMTIA);
  }
  c10::Stream getCurrentStream(c10::DeviceIndex d) const override {
    return c10::Stream::unpack3(streams[d], d, at::kMTIA);
  }
  void setCurrentStream(const c10::Stream& s) const override { streams[s.device_index()] = s.id(); }
  void deviceSynchronize(c10::DeviceIndex) const override { ++waits; }
  static inline c10::DeviceIndex device = 0;
  static inline std::array<int64_t, 2> streams{};
  static inline int64_t waits = 0;
};
REGISTER_MTIA_HOOKS(Hooks);

// A kernel of an operator that is defined later.
int64_t answer(int64_t x) { return x + 1; }
TORCH_LIBRARY_IMPL(foreign_later, CompositeExplicitAutograd, m) { m.impl("answer", &answer); }

TORCH_LIBRARY(foreign, m) {
  m.def("additions() -> int", []() { return additions; });
  m.def("waits() -> int", []() { return Hooks::waits; });
  m.def("value(Tensor t, int i) -> float", [](const at::Tensor& t, int64_t i) {
    return double(static_cast<const float*>(t.const_data_ptr())[i]);
  });
}

} // namespace
