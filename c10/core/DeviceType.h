// Kinds of devices, and the name of the kind that is left to other packages.
#pragma once
#include <string>

#include <c10/core/Device.h>

namespace c10 {

// Names the kind PrivateUse1, in device strings and everywhere else. Once per process: the same
// name again changes nothing, another one is an error, as is the name of another kind.
C10_API void register_privateuse1_backend(const std::string& name);
// "privateuseone", or what was registered; in capitals unless `lower_case`.
C10_API std::string get_privateuse1_backend(bool lower_case = true);
C10_API bool is_privateuse1_backend_registered();

inline std::string DeviceTypeName(DeviceType type, bool lower_case = false) {
  std::string name = device_type_name(type);
  if (!lower_case)
    for (char& c : name)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return name;
}
constexpr bool isValidDeviceType(DeviceType type) {
  return static_cast<int>(type) >= 0 && static_cast<int>(type) < kNumDeviceTypes;
}

} // namespace c10
