// Names of dispatch keys, and the keys of each device kind.
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace c10 {

C10_PLAIN_THREAD_LOCAL LocalDispatchKeySet tls_dispatch_keys;

namespace {
const char* const kKeyNames[] = {"Undefined",
#define X(name) #name,
                                 CRESSET_FORALL_DISPATCH_KEYS(X) "EndOfRuntimeKeys",
                                 CRESSET_FORALL_ALIAS_KEYS(X)
#undef X
};
constexpr int kNumKeyNames = sizeof(kKeyNames) / sizeof(kKeyNames[0]);

// A kind without a backend here for which another package registered one (see DispatchKey in
// UserMembers.h).
bool is_foreign(DeviceType type) {
  return type != DeviceType::CPU && impl::find_guard_impl(type) != nullptr;
}
} // namespace

const char* toString(DispatchKey key) {
  const int index = static_cast<int>(key);
  return index < kNumKeyNames ? kKeyNames[index] : "Unknown";
}

DispatchKey parseDispatchKey(std::string_view name) {
  // Shorthands that PyTorch accepts in registrations.
  if (name == "CompositeImplicit") name = "CompositeImplicitAutograd";
  if (name == "CompositeExplicit") name = "CompositeExplicitAutograd";
  for (int i = 0; i < kNumKeyNames; ++i)
    if (name == kKeyNames[i]) return static_cast<DispatchKey>(i);
  throw Error(str("could not parse dispatch key: ", name));
}

DispatchKey backend_key(DeviceType type) {
  switch (type) {
  case DeviceType::CPU:
    return DispatchKey::CPU;
  case DeviceType::CUDA:
    return DispatchKey::CUDA;
  case DeviceType::Meta:
    return DispatchKey::Meta;
  case DeviceType::PrivateUse1:
    return DispatchKey::PrivateUse1;
  default:
    return is_foreign(type) ? DispatchKey::PrivateUse1 : DispatchKey::Undefined;
  }
}

DispatchKey autograd_key(DeviceType type) {
  switch (type) {
  case DeviceType::CPU:
    return DispatchKey::AutogradCPU;
  case DeviceType::CUDA:
    return DispatchKey::AutogradCUDA;
  case DeviceType::Meta:
    return DispatchKey::AutogradMeta;
  case DeviceType::PrivateUse1:
    return DispatchKey::AutogradPrivateUse1;
  default:
    return is_foreign(type) ? DispatchKey::AutogradPrivateUse1 : DispatchKey::AutogradOther;
  }
}

DispatchKey autocast_key(DeviceType type) {
  switch (type) {
  case DeviceType::CUDA:
    return DispatchKey::AutocastCUDA;
  case DeviceType::PrivateUse1:
    return DispatchKey::AutocastPrivateUse1;
  default:
    return is_foreign(type) ? DispatchKey::AutocastPrivateUse1 : DispatchKey::AutocastCPU;
  }
}

} // namespace c10
