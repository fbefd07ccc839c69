// Dispatch keys and sets of them. A key is a bit number: a larger number is dispatched first. One
// flat 64-bit set makes the choice of a kernel an or, a mask, a count of leading zeros and a load.
//
// Note [Autograd key only where gradients flow]
// A tensor carries its Autograd key only while it requires grad (or carries a tangent), so that
// plain tensors never enter an autograd kernel that would do nothing. Operators for which a user
// registered an Autograd kernel ask for the key themselves (OperatorEntry::always_keys), because
// such a kernel may be the only implementation.
#pragma once
#include <cstdint>
#include <string_view>

#include <c10/core/Device.h>

namespace c10 {

// In the order of dispatch, lowest first. X(name)
// clang-format off
#define CRESSET_FORALL_DISPATCH_KEYS(X)                                                            \
  X(CPU) X(CUDA) X(Meta) X(PrivateUse1)                                                            \
  X(QuantizedCPU) X(QuantizedCUDA)                                                                 \
  X(SparseCPU) X(SparseCUDA) X(SparseMeta) X(SparsePrivateUse1)                                    \
  X(SparseCsrCPU) X(SparseCsrCUDA) X(SparseCsrMeta)                                                \
  X(NestedTensorCPU) X(NestedTensorCUDA) X(NestedTensorMeta)                                       \
  X(BackendSelect) X(Fake) X(Python) X(FuncTorchDynamicLayerBackMode) X(Functionalize) X(Named)    \
  X(Conjugate) X(Negative) X(ZeroTensor) X(ADInplaceOrView)                                        \
  X(AutogradOther) X(AutogradFunctionality) X(AutogradNestedTensor) X(AutogradCPU)                 \
  X(AutogradCUDA) X(AutogradMeta) X(AutogradPrivateUse1) X(ForwardGrad) X(Tracer)                  \
  X(AutocastCPU) X(AutocastCUDA) X(AutocastPrivateUse1)                                            \
  X(FuncTorchBatched) X(BatchedNestedTensor) X(FuncTorchVmapMode) X(Batched) X(VmapMode)           \
  X(FuncTorchGradWrapper) X(InferenceCheck) X(DeferredInit) X(PythonTLSSnapshot)                   \
  X(FunctionalizeMode) X(FuncTorchDynamicLayerFrontMode)                                           \
  X(TESTING_ONLY_GenericWrapper) X(TESTING_ONLY_GenericMode) X(Profiler) X(PreDispatch)            \
  X(PythonDispatcher)
// clang-format on
// Names that stand for several keys in a registration.
// clang-format off
#define CRESSET_FORALL_ALIAS_KEYS(X)                                                               \
  X(Autograd) X(CompositeImplicitAutograd) X(CompositeImplicitAutogradNestedTensor)                \
  X(CompositeExplicitAutograd) X(CompositeExplicitAutogradNonFunctional)                           \
  X(FuncTorchBatchedDecomposition)
// clang-format on

enum class DispatchKey : uint8_t {
  Undefined = 0,
#define X(name) name,
  CRESSET_FORALL_DISPATCH_KEYS(X) EndOfRuntimeKeys,
  CRESSET_FORALL_ALIAS_KEYS(X) CRESSET_USER_MEMBERS(DispatchKey)
#undef X
};
constexpr int kNumRuntimeKeys = static_cast<int>(DispatchKey::EndOfRuntimeKeys);
static_assert(kNumRuntimeKeys <= 64, "a DispatchKeySet has 64 bits");

C10_API const char* toString(DispatchKey key);
C10_API DispatchKey parseDispatchKey(std::string_view name); // ValueError when unknown
inline void append(std::string& out, DispatchKey key) { out += toString(key); }
constexpr bool isAliasDispatchKey(DispatchKey key) { return key > DispatchKey::EndOfRuntimeKeys; }

class DispatchKeySet {
 public:
  enum Full { FULL };
  constexpr DispatchKeySet() = default;
  constexpr explicit DispatchKeySet(Full) : bits_(~uint64_t(1)) {}
  constexpr explicit DispatchKeySet(DispatchKey key)
      : bits_(key == DispatchKey::Undefined ? 0 : uint64_t(1) << static_cast<int>(key)) {}
  constexpr DispatchKeySet(std::initializer_list<DispatchKey> keys) {
    for (DispatchKey key : keys) bits_ |= DispatchKeySet(key).bits_;
  }
  static constexpr DispatchKeySet from_raw(uint64_t bits) {
    DispatchKeySet out;
    out.bits_ = bits;
    return out;
  }
  // Everything dispatched after `key`: what a kernel registered at `key` redispatches to.
  static constexpr DispatchKeySet below(DispatchKey key) {
    return from_raw(((uint64_t(1) << static_cast<int>(key)) - 1) & ~uint64_t(1));
  }
  constexpr uint64_t raw() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(DispatchKey key) const { return (bits_ & DispatchKeySet(key).bits_) != 0; }
  constexpr bool has_any(DispatchKeySet o) const { return (bits_ & o.bits_) != 0; }
  constexpr DispatchKeySet operator|(DispatchKeySet o) const { return from_raw(bits_ | o.bits_); }
  constexpr DispatchKeySet operator&(DispatchKeySet o) const { return from_raw(bits_ & o.bits_); }
  constexpr DispatchKeySet operator-(DispatchKeySet o) const { return from_raw(bits_ & ~o.bits_); }
  constexpr bool operator==(DispatchKeySet o) const { return bits_ == o.bits_; }
  constexpr bool operator!=(DispatchKeySet o) const { return bits_ != o.bits_; }
  constexpr DispatchKeySet add(DispatchKey key) const { return *this | DispatchKeySet(key); }
  constexpr DispatchKeySet remove(DispatchKey key) const { return *this - DispatchKeySet(key); }
  DispatchKey highest() const { return static_cast<DispatchKey>(63 - __builtin_clzll(bits_ | 1)); }
  int highest_index() const { return __builtin_clzll(bits_ | 1) ^ 63; }

 private:
  uint64_t bits_ = 0;
};

constexpr DispatchKeySet kAutogradKeys{
    DispatchKey::AutogradOther,        DispatchKey::AutogradFunctionality,
    DispatchKey::AutogradNestedTensor, DispatchKey::AutogradCPU,
    DispatchKey::AutogradCUDA,         DispatchKey::AutogradMeta,
    DispatchKey::AutogradPrivateUse1};
constexpr DispatchKeySet kAutocastKeys{DispatchKey::AutocastCPU, DispatchKey::AutocastCUDA,
                                       DispatchKey::AutocastPrivateUse1};
constexpr DispatchKeySet kBackendKeys{DispatchKey::CPU,
                                      DispatchKey::CUDA,
                                      DispatchKey::Meta,
                                      DispatchKey::PrivateUse1,
                                      DispatchKey::QuantizedCPU,
                                      DispatchKey::QuantizedCUDA,
                                      DispatchKey::SparseCPU,
                                      DispatchKey::SparseCUDA,
                                      DispatchKey::SparseMeta,
                                      DispatchKey::SparsePrivateUse1,
                                      DispatchKey::SparseCsrCPU,
                                      DispatchKey::SparseCsrCUDA,
                                      DispatchKey::SparseCsrMeta,
                                      DispatchKey::NestedTensorCPU,
                                      DispatchKey::NestedTensorCUDA,
                                      DispatchKey::NestedTensorMeta};

// The dense backend key of a device; Undefined for kinds without a backend here.
C10_API DispatchKey backend_key(DeviceType type);
C10_API DispatchKey autograd_key(DeviceType type);
C10_API DispatchKey autocast_key(DeviceType type);

// Keys that this thread adds to or takes from every dispatch.
struct LocalDispatchKeySet {
  uint64_t included = 0;
  uint64_t excluded = 0;
};
extern C10_API C10_PLAIN_THREAD_LOCAL LocalDispatchKeySet tls_dispatch_keys
    __attribute__((tls_model("initial-exec")));

class ExcludeDispatchKeyGuard {
 public:
  explicit ExcludeDispatchKeyGuard(DispatchKeySet keys) : saved_(tls_dispatch_keys.excluded) {
    tls_dispatch_keys.excluded |= keys.raw();
  }
  explicit ExcludeDispatchKeyGuard(DispatchKey key)
      : ExcludeDispatchKeyGuard(DispatchKeySet(key)) {}
  ~ExcludeDispatchKeyGuard() { tls_dispatch_keys.excluded = saved_; }
  ExcludeDispatchKeyGuard(const ExcludeDispatchKeyGuard&) = delete;
  ExcludeDispatchKeyGuard& operator=(const ExcludeDispatchKeyGuard&) = delete;

 private:
  uint64_t saved_;
};
class IncludeDispatchKeyGuard {
 public:
  explicit IncludeDispatchKeyGuard(DispatchKeySet keys) : saved_(tls_dispatch_keys.included) {
    tls_dispatch_keys.included |= keys.raw();
  }
  explicit IncludeDispatchKeyGuard(DispatchKey key)
      : IncludeDispatchKeyGuard(DispatchKeySet(key)) {}
  ~IncludeDispatchKeyGuard() { tls_dispatch_keys.included = saved_; }
  IncludeDispatchKeyGuard(const IncludeDispatchKeyGuard&) = delete;
  IncludeDispatchKeyGuard& operator=(const IncludeDispatchKeyGuard&) = delete;

 private:
  uint64_t saved_;
};

} // namespace c10
