// The dispatcher: from an operator and the keys of its arguments to a kernel.
//
// Note [Constant operator table]
// Built-in operators are constants of the library (constant-initialised OperatorEntry objects with
// a constant list of kernels): loading the library runs no registration code. The table of resolved
// kernels of an entry starts empty and is filled key by key on first use. Registrations at run time
// (TORCH_LIBRARY, torch.library) add to the entry under a lock and empty its resolved table.
//
// A typed kernel is `Ret (*)(KernelContext, Args...)` with the argument types of the schema; a
// boxed kernel takes a stack of IValues. Per signature, BoxingOps converts between the two, so each
// kernel can be called both ways.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include <ATen/core/Dispatcher_fwd.h>
#include <ATen/core/Tensor.h>

namespace at {

struct IValue;
using Stack = std::vector<IValue>;
struct FunctionSchema;

// A kernel that takes its arguments on a stack and leaves its results there.
struct TORCH_API BoxedKernel : c10::intrusive_ptr_target {
  virtual void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) = 0;
  // A fallthrough is skipped by key computation: dispatch goes on below it.
  virtual bool is_fallthrough() const { return false; }
};

// Adapters of one C++ signature. `unboxed_from_boxed` is a typed kernel that packs its arguments
// and calls the boxed kernel resolved for its keys; `boxed_from_unboxed` does the reverse for `fn`.
struct BoxingOps {
  void* unboxed_from_boxed;
  void (*boxed_from_unboxed)(void* fn, KernelContext context, Stack& stack);
};

struct KernelInit {
  DispatchKey key;
  void* fn;
};

// One registration made at run time.
struct RuntimeKernel {
  void* fn = nullptr; // typed, or null
  c10::intrusive_ptr<BoxedKernel> boxed;
  std::string debug;
};

// What an entry acquires at run time, allocated when first needed.
struct TORCH_API OperatorState {
  ~OperatorState();
  std::unique_ptr<FunctionSchema> schema;
  struct Registration {
    DispatchKey key;
    RuntimeKernel kernel;
    uint64_t id;
  };
  std::vector<Registration> kernels; // the last one for a key wins
  // The boxed kernel behind table[key], for keys that resolved to one.
  c10::intrusive_ptr<BoxedKernel> boxed[c10::kNumRuntimeKeys];
  std::string owned_name, owned_overload, owned_schema;
  std::vector<std::string> tags;
  bool defined_at_runtime = false;
};

enum OperatorFlags : uint32_t {
  kOpMutates = 1,   // writes to an argument
  kOpView = 2,      // returns a view of an argument
  kOpFactory = 4,   // makes a tensor from options: the device argument decides the backend
  kOpComposite = 8, // its only kernel is CompositeImplicitAutograd
};

struct TORCH_API OperatorEntry {
  constexpr OperatorEntry(const char* name, const char* overload, const char* schema,
                          const KernelInit* kernels, const BoxingOps* boxing, uint32_t flags,
                          const char* tags)
      : name(name), overload(overload), schema_text(schema), kernels(kernels), boxing(boxing),
        flags(flags), tags_text(tags) {}

  const char* name;        // "aten::add"
  const char* overload;    // "Tensor" or ""
  const char* schema_text; // "add.Tensor(Tensor self, ...) -> Tensor"
  const KernelInit* kernels;
  const BoxingOps* boxing;
  uint32_t flags;
  const char* tags_text; // comma separated

  // Resolved typed kernels by key number; null until first needed.
  mutable std::atomic<void*> table[c10::kNumRuntimeKeys] = {};
  // Keys added to every call (see Note [Autograd key only where gradients flow]) and keys that have
  // a kernel here or a fallback: all others are masked out of the key computation.
  mutable std::atomic<uint64_t> always_keys{0};
  mutable std::atomic<uint64_t> mask{kDefaultMask};
  mutable std::atomic<OperatorState*> state{nullptr};

  // Backends, and functionality that has kernels or fallbacks for every operator.
  static constexpr uint64_t kDefaultMask =
      (c10::kBackendKeys | c10::kAutogradKeys |
       DispatchKeySet{DispatchKey::Python, DispatchKey::Conjugate, DispatchKey::Negative})
          .raw();

  DispatchKeySet compute_keys(DispatchKeySet tensor_keys) const {
    const c10::LocalDispatchKeySet& local = c10::tls_dispatch_keys;
    const uint64_t bits =
        tensor_keys.raw() | local.included | always_keys.load(std::memory_order_relaxed);
    return DispatchKeySet::from_raw(bits & ~local.excluded & mask.load(std::memory_order_relaxed));
  }
  void* lookup(DispatchKeySet keys) const {
    void* fn = table[keys.highest_index()].load(std::memory_order_acquire);
    return C10_LIKELY(fn != nullptr) ? fn : resolve(keys);
  }
  // Finds, stores and returns the kernel for the highest key; NotImplementedError when there is
  // none.
  void* resolve(DispatchKeySet keys) const;
  bool has_kernel(DispatchKey key) const;     // registered for exactly this (possibly alias) key
  bool has_kernel_for(DispatchKey key) const; // would a call with this key find a kernel

  const FunctionSchema& schema() const;
  void call_boxed(Stack& stack) const; // keys from the tensors on the stack
  void redispatch_boxed(DispatchKeySet keys, Stack& stack) const;
  std::string full_name() const; // "aten::add.Tensor"
  OperatorState& ensure_state() const;
};

// ---- typed calls ------------------------------------------------------------------------------
namespace detail {
inline uint64_t keys_of(const Tensor& t) { return t.defined() ? t.key_set().raw() : 0; }
inline uint64_t keys_of(const std::optional<Tensor>& t) { return t ? keys_of(*t) : 0; }
inline uint64_t keys_of(TensorList list) {
  uint64_t bits = 0;
  for (const Tensor& t : list) bits |= keys_of(t);
  return bits;
}
inline uint64_t keys_of(OptionalTensorList list) {
  uint64_t bits = 0;
  for (const std::optional<Tensor>& t : list) bits |= keys_of(t);
  return bits;
}
inline uint64_t keys_of(const c10::Generator& g) {
  return g ? DispatchKeySet(c10::backend_key(g->device().type())).raw() : 0;
}
inline uint64_t keys_of(const std::optional<c10::Generator>& g) { return g ? keys_of(*g) : 0; }
template <class T> inline uint64_t keys_of(const T&) { return 0; }
[[noreturn]] TORCH_API void throw_no_backend(const OperatorEntry& op, Device device);
// Without any tensor the device argument, or else the CPU, says which backend is meant.
inline uint64_t device_keys(const OperatorEntry& op, const std::optional<Device>& d) {
  if (C10_LIKELY(!d || d->is_cpu())) return DispatchKeySet(DispatchKey::CPU).raw();
  const DispatchKey key = c10::backend_key(d->type());
  if (C10_UNLIKELY(key == DispatchKey::Undefined)) throw_no_backend(op, *d);
  return DispatchKeySet(key).raw();
}
inline uint64_t device_keys(const OperatorEntry& op, const Device& d) {
  return device_keys(op, std::optional<Device>(d));
}
template <class T> inline uint64_t device_keys(const OperatorEntry&, const T&) { return 0; }
template <class... Args>
inline uint64_t collect_keys(const OperatorEntry& op, const Args&... args) {
  uint64_t bits = (uint64_t(0) | ... | keys_of(args));
  if (C10_UNLIKELY((bits & c10::kBackendKeys.raw()) == 0)) {
    bits |= (uint64_t(0) | ... | device_keys(op, args));
    if ((bits & c10::kBackendKeys.raw()) == 0) bits |= DispatchKeySet(DispatchKey::CPU).raw();
  }
  return bits;
}
} // namespace detail

template <class Ret, class... Args>
C10_ALWAYS_INLINE Ret dispatch_redispatch(const OperatorEntry& op, DispatchKeySet keys,
                                          Args... args) {
  using Fn = Ret (*)(KernelContext, Args...);
  return reinterpret_cast<Fn>(op.lookup(keys))(KernelContext{&op, keys},
                                               std::forward<Args>(args)...);
}

template <class Ret, class... Args>
C10_ALWAYS_INLINE Ret dispatch_call(const OperatorEntry& op, Args... args) {
  const DispatchKeySet keys =
      op.compute_keys(DispatchKeySet::from_raw(detail::collect_keys(op, args...)));
  using Fn = Ret (*)(KernelContext, Args...);
  return reinterpret_cast<Fn>(op.lookup(keys))(KernelContext{&op, keys},
                                               std::forward<Args>(args)...);
}

// ---- registry -----------------------------------------------------------------------------------
namespace detail {
// The built-in operators, sorted by name and then overload. Generated (OpTable.cpp).
TORCH_API ArrayRef<const OperatorEntry*> builtin_operators();
} // namespace detail

class TORCH_API Dispatcher {
 public:
  static Dispatcher& singleton();
  // Null when there is no such operator. `name` is "aten::add".
  const OperatorEntry* find(std::string_view name, std::string_view overload) const;
  // All overload names of an operator, in order of definition.
  std::vector<const OperatorEntry*> overloads(std::string_view name) const;
  std::vector<const OperatorEntry*> all() const;

  // Defines an operator from its schema "ns::name.overload(args) -> returns".
  const OperatorEntry* define(const std::string& schema, std::vector<std::string> tags = {});
  void undefine(const OperatorEntry* op);
  // Registers a kernel and returns an id for deregister. Alias keys allowed.
  uint64_t register_kernel(const OperatorEntry* op, DispatchKey key, RuntimeKernel kernel);
  void deregister_kernel(const OperatorEntry* op, uint64_t id);
  // A kernel for every operator that has none of its own for `key`.
  uint64_t register_fallback(DispatchKey key, c10::intrusive_ptr<BoxedKernel> kernel,
                             const std::string& library = "_");
  void deregister_fallback(DispatchKey key);
  c10::intrusive_ptr<BoxedKernel> fallback(DispatchKey key) const;
  std::mutex& mutex() const;

 private:
  Dispatcher();
  struct Registry;
  std::unique_ptr<Registry> registry_;
};

// A boxed kernel that only lets dispatch go on below its key.
TORCH_API c10::intrusive_ptr<BoxedKernel> fallthrough_kernel();

} // namespace at
