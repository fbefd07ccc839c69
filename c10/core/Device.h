// A device: its kind and, where several exist, its index. Kinds without a backend here keep their
// names, so that programs which mention them parse and get a clear error when they use them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <c10/util/Exception.h>

namespace c10 {

enum class DeviceType : int8_t {
  CPU = 0,
  CUDA = 1,
  MKLDNN = 2,
  OPENGL = 3,
  OPENCL = 4,
  IDEEP = 5,
  HIP = 6,
  FPGA = 7,
  MAIA = 8,
  XLA = 9,
  Vulkan = 10,
  Metal = 11,
  XPU = 12,
  MPS = 13,
  Meta = 14,
  HPU = 15,
  VE = 16,
  Lazy = 17,
  IPU = 18,
  MTIA = 19,
  CRESSET_USER_MEMBERS(DeviceType) PrivateUse1 = 20,
};
constexpr int kNumDeviceTypes = 21;
constexpr DeviceType kCPU = DeviceType::CPU;
constexpr DeviceType kCUDA = DeviceType::CUDA;
constexpr DeviceType kMeta = DeviceType::Meta;
constexpr DeviceType kPrivateUse1 = DeviceType::PrivateUse1;

using DeviceIndex = int8_t;

// "cpu", "cuda", ...; PrivateUse1 returns with the name registered for it.
C10_API const char* device_type_name(DeviceType type);
C10_API void set_privateuse1_name(std::string name);

struct C10_API Device {
  DeviceType type_ = DeviceType::CPU;
  DeviceIndex index_ = -1;

  constexpr Device() = default;
  constexpr Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  // Parses "cpu", "cuda:1", ...; throws Error with the list of accepted kinds.
  explicit Device(std::string_view text);

  CRESSET_USER_MEMBERS(Device) constexpr DeviceType type() const { return type_; }
  constexpr DeviceIndex index() const { return index_; }
  constexpr bool has_index() const { return index_ >= 0; }
  constexpr bool is_cpu() const { return type_ == DeviceType::CPU; }
  constexpr bool is_cuda() const { return type_ == DeviceType::CUDA; }
  constexpr bool is_meta() const { return type_ == DeviceType::Meta; }
  constexpr bool operator==(const Device& o) const {
    return type_ == o.type_ && index_ == o.index_;
  }
  constexpr bool operator!=(const Device& o) const { return !(*this == o); }
  std::string str() const; // "cpu", "cuda:1"
};

inline void append(std::string& out, const Device& device) { out += device.str(); }
inline void append(std::string& out, DeviceType type) { out += device_type_name(type); }

} // namespace c10
