// Names of device kinds and the parser of device strings.
#include <c10/core/Device.h>

#include <mutex>

#include <c10/core/DeviceType.h>

namespace c10 {
namespace {
const char* const kNames[kNumDeviceTypes] = {
    "cpu",  "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",
    "fpga", "maia", "xla",    "vulkan", "metal",  "xpu",   "mps",
    "meta", "hpu",  "ve",     "lazy",   "ipu",    "mtia",  "privateuseone"};
std::string& privateuse1_name() {
  static std::string name = "privateuseone";
  return name;
}
} // namespace

const char* device_type_name(DeviceType type) {
  if (type == DeviceType::PrivateUse1) return privateuse1_name().c_str();
  const int index = static_cast<int>(type);
  return index >= 0 && index < kNumDeviceTypes ? kNames[index] : "unknown";
}

void set_privateuse1_name(std::string name) {
  TORCH_CHECK(!name.empty(), "a backend name must not be empty");
  privateuse1_name() = std::move(name);
}

namespace {
std::mutex registration_mutex;
bool privateuse1_registered = false;
} // namespace

void register_privateuse1_backend(const std::string& name) {
  const std::lock_guard<std::mutex> lock(registration_mutex);
  TORCH_CHECK(!privateuse1_registered || name == privateuse1_name(),
              "torch.register_privateuse1_backend() has already been set! Current backend: ",
              privateuse1_name());
  if (privateuse1_registered) return;
  for (const char c : name)
    TORCH_CHECK((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_',
                "torch.register_privateuse1_backend(): a backend name has lower-case letters, "
                "digits and underscores, got '",
                name, "'");
  for (const char* taken : kNames)
    TORCH_CHECK(name != taken || name == "privateuseone",
                "Cannot register privateuse1 backend as '", name,
                "': there is a device type of that name");
  set_privateuse1_name(name);
  privateuse1_registered = true;
}

std::string get_privateuse1_backend(bool lower_case) {
  return DeviceTypeName(DeviceType::PrivateUse1, lower_case);
}

bool is_privateuse1_backend_registered() {
  const std::lock_guard<std::mutex> lock(registration_mutex);
  return privateuse1_registered;
}

Device::Device(std::string_view text) {
  // The two that programs pass to every factory call.
  if (text == "cuda" || text == "cpu") {
    type_ = text == "cuda" ? DeviceType::CUDA : DeviceType::CPU;
    return;
  }
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  int found = -1;
  for (int i = 0; i < kNumDeviceTypes; ++i) {
    if (kind == device_type_name(static_cast<DeviceType>(i))) found = i;
  }
  if (kind == "privateuseone") found = static_cast<int>(DeviceType::PrivateUse1);
  TORCH_CHECK(!text.empty(), "Device string must not be empty");
  if (found < 0) {
    // Only letters and underscores begin a device string.
    for (const char c : kind) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      TORCH_CHECK(letter, "Invalid device string: '", text, "'");
    }
    // In the order in which programs have seen them.
    const std::string known =
        std::string("cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, "
                    "ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, ") +
        device_type_name(DeviceType::PrivateUse1);
    TORCH_CHECK(false, "Expected one of ", known, " device type at start of device string: ", text);
  }
  type_ = static_cast<DeviceType>(found);
  if (colon == std::string_view::npos) return;
  const std::string_view digits = text.substr(colon + 1);
  bool valid = !digits.empty() && digits.size() <= 3 && !(digits.size() > 1 && digits[0] == '0');
  int value = 0;
  for (char c : digits) {
    valid = valid && c >= '0' && c <= '9';
    if (valid) value = value * 10 + (c - '0');
  }
  TORCH_CHECK(valid && value <= 127, "Invalid device string: '", text, "'");
  index_ = static_cast<DeviceIndex>(value);
}

std::string Device::str() const {
  std::string out = device_type_name(type_);
  if (has_index()) c10::append(out, ":"), c10::append(out, static_cast<int>(index_));
  return out;
}

} // namespace c10
