// The registry of operators and the choice of kernels. See Dispatcher.h.
#include <ATen/core/Dispatcher.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include <ATen/core/BoxedCall.h>
#include <ATen/core/Boxing.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/GeneratorKernel.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/core/OutVariant.h>
#include <ATen/core/PendingKernels.h>
#include <ATen/core/QuantizedFallback.h>
#include <ATen/core/SparseFallback.h>
#include <ATen/core/UnregisteredAutograd.h>

namespace at {
namespace {

// The kernel found for a key: typed, or boxed, or nothing.
struct Found {
  void* fn = nullptr;
  c10::intrusive_ptr<BoxedKernel> boxed;
  explicit operator bool() const { return fn != nullptr || boxed; }
};

Found find_exact(const OperatorEntry& op, DispatchKey key) {
  if (OperatorState* state = op.state.load()) {
    for (auto it = state->kernels.rbegin(); it != state->kernels.rend(); ++it)
      if (it->key == key) return {it->kernel.fn, it->kernel.boxed};
  }
  for (const KernelInit* k = op.kernels; k && k->key != DispatchKey::Undefined; ++k)
    if (k->key == key) return {k->fn, {}};
  return {};
}

bool has_backend_kernel(const OperatorEntry& op) {
  for (int key = 1; key < c10::kNumRuntimeKeys; ++key) {
    if (c10::kBackendKeys.has(static_cast<DispatchKey>(key)) &&
        find_exact(op, static_cast<DispatchKey>(key)))
      return true;
  }
  return static_cast<bool>(find_exact(op, DispatchKey::CompositeExplicitAutograd));
}

constexpr DispatchKeySet kSparseKeys{DispatchKey::SparseCPU,    DispatchKey::SparseCUDA,
                                     DispatchKey::SparseMeta,   DispatchKey::SparsePrivateUse1,
                                     DispatchKey::SparseCsrCPU, DispatchKey::SparseCsrCUDA,
                                     DispatchKey::SparseCsrMeta};

// A sparse tensor has no storage: kernels that may look at memory (CompositeExplicitAutograd ones
// too) are not for it, only those registered for its key, the table of sparse kernels, and
// operators made of others.
Found find_sparse_kernel(const OperatorEntry& op, DispatchKey key) {
  const bool csr = key == DispatchKey::SparseCsrCPU || key == DispatchKey::SparseCsrCUDA;
  if (csr || key == DispatchKey::SparseCPU || key == DispatchKey::SparseCUDA)
    if (c10::intrusive_ptr<BoxedKernel> kernel = sparse::sparse_fallback(op, csr))
      return {nullptr, kernel};
  // What a user's kernel does with its arguments goes through operators again.
  const OperatorState* state = op.state.load();
  if (state != nullptr && state->defined_at_runtime)
    if (Found f = find_exact(op, DispatchKey::CompositeExplicitAutograd)) return f;
  return find_exact(op, DispatchKey::CompositeImplicitAutograd);
}

// The levels of a quantized tensor are not its values: only the table of its kernels and operators
// made of others are for it, besides kernels registered for its key.
Found find_quantized_kernel(const OperatorEntry& op) {
  if (c10::intrusive_ptr<BoxedKernel> kernel = quantized::quantized_fallback(op))
    return {nullptr, kernel};
  const OperatorState* state = op.state.load();
  if (state != nullptr && state->defined_at_runtime)
    if (Found f = find_exact(op, DispatchKey::CompositeExplicitAutograd)) return f;
  if (Found f = find_exact(op, DispatchKey::CompositeImplicitAutograd)) return f;
  if (c10::intrusive_ptr<BoxedKernel> fallback =
          Dispatcher::singleton().fallback(DispatchKey::QuantizedCPU))
    return {nullptr, fallback};
  return {};
}

// In the order of precedence: a kernel for the key itself, what composite kernels offer, the
// Autograd alias, a fallback for the key.
Found find_kernel(const OperatorEntry& op, DispatchKey key) {
  if (Found exact = find_exact(op, key)) return exact;
  if (kSparseKeys.has(key)) {
    if (Found f = find_sparse_kernel(op, key)) return f;
    if (c10::intrusive_ptr<BoxedKernel> fallback = Dispatcher::singleton().fallback(key))
      return {nullptr, fallback};
    return {};
  }
  if (key == DispatchKey::QuantizedCPU) return find_quantized_kernel(op);
  const bool backend = c10::kBackendKeys.has(key);
  const bool autograd = c10::kAutogradKeys.has(key);
  if (backend || key == DispatchKey::Undefined) {
    if (Found f = find_exact(op, DispatchKey::CompositeExplicitAutogradNonFunctional)) return f;
    if (Found f = find_exact(op, DispatchKey::CompositeExplicitAutograd)) return f;
    if (Found f = find_exact(op, DispatchKey::CompositeImplicitAutograd)) return f;
  }
  if (autograd) {
    if (Found f = find_exact(op, DispatchKey::Autograd)) return f;
    // An operator made of other operators is differentiated through them.
    const bool for_devices = has_backend_kernel(op);
    if (!for_devices)
      if (Found f = find_exact(op, DispatchKey::CompositeImplicitAutograd)) return f;
    const OperatorState* state = op.state.load();
    if (for_devices && state != nullptr && state->defined_at_runtime)
      return {nullptr, torch::autograd::unregistered_autograd_kernel()};
  }
  if (key == DispatchKey::PrivateUse1) {
    const OperatorEntry* const out = detail::find_out_variant(op);
    if (out != nullptr && find_exact(*out, key))
      return {nullptr, detail::kernel_by_out_variant(*out)};
  }
  if (c10::intrusive_ptr<BoxedKernel> fallback = Dispatcher::singleton().fallback(key))
    return {nullptr, fallback};
  return {};
}

std::string argument_hint(const OperatorEntry& op, DispatchKey key) {
  std::string known;
  for (int k = 1; k < c10::kNumRuntimeKeys; ++k) {
    const DispatchKey candidate = static_cast<DispatchKey>(k);
    if (!c10::kBackendKeys.has(candidate) || !find_kernel(op, candidate)) continue;
    known += known.empty() ? "" : ", ";
    known += toString(candidate);
  }
  return c10::str("Could not run '", op.full_name(), "' with arguments from the '", key,
                  "' backend. '", op.full_name(), "' is only available for these backends: [",
                  known, "].");
}

} // namespace

// Note [Locks of boxed calls]
// Registrations take the dispatcher's lock. A boxed call only reads what was resolved, the kernel
// of a key and the schema, and must not wait for calls of other operators: these two are guarded by
// a small lock that few operators share, which writers take besides. Nothing is freed under it.
namespace {
class OperatorLock {
 public:
  explicit OperatorLock(const OperatorEntry& op)
      : flag_(flags[(reinterpret_cast<uintptr_t>(&op) / alignof(OperatorEntry)) % kLocks].flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~OperatorLock() { flag_.clear(std::memory_order_release); }
  OperatorLock(const OperatorLock&) = delete;
  OperatorLock& operator=(const OperatorLock&) = delete;

 private:
  static constexpr size_t kLocks = 251; // a prime, as entries lie at regular distances
  struct alignas(64) Padded {
    std::atomic_flag flag = ATOMIC_FLAG_INIT;
  };
  static Padded flags[kLocks];
  std::atomic_flag& flag_;
};
OperatorLock::Padded OperatorLock::flags[kLocks];

c10::intrusive_ptr<BoxedKernel> resolved_boxed(const OperatorEntry& op, int index) {
  OperatorLock lock(op);
  OperatorState* state = op.state.load(std::memory_order_acquire);
  return state ? state->boxed[index] : nullptr;
}

void set_resolved(const OperatorEntry& op, int index, c10::intrusive_ptr<BoxedKernel> kernel) {
  OperatorState& state = op.ensure_state();
  OperatorLock lock(op);
  std::swap(state.boxed[index], kernel); // what was there is freed after the lock
}
} // namespace

OperatorState::~OperatorState() = default;

OperatorState& OperatorEntry::ensure_state() const {
  OperatorState* current = state.load(std::memory_order_acquire);
  if (current == nullptr) {
    auto* fresh = new OperatorState;
    if (state.compare_exchange_strong(current, fresh)) return *fresh;
    delete fresh;
  }
  return *current;
}

void* OperatorEntry::resolve(DispatchKeySet keys) const {
  const DispatchKey key = keys.highest();
  std::lock_guard<std::mutex> lock(Dispatcher::singleton().mutex());
  const int index = static_cast<int>(key);
  if (void* fn = table[index].load(std::memory_order_acquire)) return fn;
  Found found = find_kernel(*this, key);
  if (found.boxed && found.boxed->is_fallthrough()) found = {};
  if (!found) {
    const DispatchKeySet rest = keys.remove(key);
    // Functionality without a kernel here is transparent: go on with the keys below it.
    TORCH_CHECK_NOT_IMPLEMENTED(!c10::kBackendKeys.has(key) && !rest.empty(),
                                argument_hint(*this, key));
    mask.fetch_and(~DispatchKeySet(key).raw());
    for (DispatchKeySet left = rest; !left.empty(); left = left.remove(left.highest())) {
      const DispatchKey next = left.highest();
      found = find_kernel(*this, next);
      if (found.boxed && found.boxed->is_fallthrough()) found = {};
      if (!found) continue;
      if (found.fn) return found.fn;
      set_resolved(*this, index, found.boxed);
      return boxing->unboxed_from_boxed;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(false, argument_hint(*this, rest.highest()));
  }
  void* fn = found.fn;
  if (fn == nullptr) {
    set_resolved(*this, index, found.boxed);
    fn = boxing ? boxing->unboxed_from_boxed : nullptr;
    // An operator defined from text has no typed callers; only boxed calls reach it.
    if (fn == nullptr) return nullptr;
  }
  table[index].store(fn, std::memory_order_release);
  return fn;
}

bool OperatorEntry::has_kernel(DispatchKey key) const {
  std::lock_guard<std::mutex> lock(Dispatcher::singleton().mutex());
  return static_cast<bool>(find_exact(*this, key));
}
bool OperatorEntry::has_kernel_for(DispatchKey key) const {
  std::lock_guard<std::mutex> lock(Dispatcher::singleton().mutex());
  return static_cast<bool>(find_kernel(*this, key));
}

std::string OperatorEntry::full_name() const {
  return overload[0] ? std::string(name) + "." + overload : std::string(name);
}

const FunctionSchema& OperatorEntry::schema() const {
  OperatorState& s = ensure_state();
  {
    OperatorLock lock(*this);
    if (s.schema) return *s.schema;
  }
  auto parsed = std::make_unique<FunctionSchema>(FunctionSchema::parse(schema_text));
  parsed->name = name;
  parsed->overload = overload;
  OperatorLock lock(*this);
  if (!s.schema) s.schema = std::move(parsed); // another thread may have been first
  return *s.schema;
}

// ---- boxed calls --------------------------------------------------------------------------------
namespace {
uint64_t stack_keys(const OperatorEntry& op, const Stack& stack, size_t arguments) {
  uint64_t bits = 0;
  std::optional<Device> device;
  for (size_t i = stack.size() - arguments; i < stack.size(); ++i) {
    const IValue& v = stack[i];
    switch (v.tag) {
    case IValue::Tag::Tensor:
      bits |= static_cast<const c10::TensorImpl*>(v.ref.get())->key_set().raw();
      break;
    case IValue::Tag::TensorList:
      bits |= detail::keys_of(TensorList(v.toTensorList()));
      break;
    case IValue::Tag::OptionalTensorList: {
      const auto list = v.toOptionalTensorList();
      bits |= detail::keys_of(OptionalTensorList(list));
      break;
    }
    case IValue::Tag::Generator:
      bits |= detail::keys_of(v.toGenerator());
      break;
    case IValue::Tag::Device:
      device = v.toDevice();
      break;
    default:
      break;
    }
  }
  if ((bits & c10::kBackendKeys.raw()) == 0) bits |= detail::device_keys(op, device);
  return bits;
}

// Finds the boxed kernel for the keys of a run-time operator, which has no typed table.
c10::intrusive_ptr<BoxedKernel> boxed_for(const OperatorEntry& op, DispatchKeySet keys) {
  if (auto known = resolved_boxed(op, keys.highest_index())) return known;
  std::lock_guard<std::mutex> lock(Dispatcher::singleton().mutex());
  for (DispatchKeySet left = keys; !left.empty(); left = left.remove(left.highest())) {
    Found found = find_kernel(op, left.highest());
    if (found.boxed && !found.boxed->is_fallthrough()) {
      if (left == keys) set_resolved(op, keys.highest_index(), found.boxed);
      return found.boxed;
    }
    if (found.fn) return {};
    if (!found && c10::kBackendKeys.has(left.highest())) break;
  }
  throw c10::NotImplementedError(argument_hint(op, keys.highest()));
}
} // namespace

void OperatorEntry::redispatch_boxed(DispatchKeySet keys, Stack& stack) const {
  if (boxing == nullptr) {
    boxed_for(*this, keys)->call(*this, keys, stack);
    return;
  }
  void* fn = lookup(keys);
  boxing->boxed_from_unboxed(fn, KernelContext{this, keys}, stack);
}

void call_boxed(const OperatorEntry& op, size_t arguments, Stack& stack) {
  TORCH_CHECK(stack.size() >= arguments, op.full_name(), ": expected ", arguments,
              " arguments, got ", stack.size());
  const uint64_t bits = stack_keys(op, stack, arguments);
  op.redispatch_boxed(op.compute_keys(DispatchKeySet::from_raw(bits)), stack);
}

void OperatorEntry::call_boxed(Stack& stack) const {
  at::call_boxed(*this, schema().arguments.size(), stack);
}

namespace boxing {
void call_boxed_kernel(KernelContext context, Stack& stack) {
  const DispatchKeySet keys = context.keys;
  const auto kernel = resolved_boxed(*context.op, keys.highest_index());
  TORCH_INTERNAL_ASSERT(kernel, context.op->full_name());
  kernel->call(*context.op, keys, stack);
}
} // namespace boxing

namespace detail {
void throw_no_backend(const OperatorEntry& op, Device device) {
  throw c10::NotImplementedError(
      c10::str("Could not run '", op.full_name(), "' with arguments from the '",
               c10::device_type_name(device.type()), "' backend: this build has no such backend"));
}
} // namespace detail

// ---- registry -----------------------------------------------------------------------------------
struct Dispatcher::Registry {
  mutable std::mutex mutex;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<OperatorEntry>, std::less<>>
      runtime;
  // Undefined, by their schema. Anyone may hold a pointer to one, so that they are never freed; the
  // same definition made again finds its entry here.
  std::map<std::string, std::unique_ptr<OperatorEntry>, std::less<>> retired;
  c10::intrusive_ptr<BoxedKernel> fallbacks[c10::kNumRuntimeKeys];
  uint64_t next_id = 1;
};

Dispatcher::Dispatcher() : registry_(std::make_unique<Registry>()) {}
Dispatcher& Dispatcher::singleton() {
  static Dispatcher* d = new Dispatcher; // outlives every static destructor
  return *d;
}
std::mutex& Dispatcher::mutex() const { return registry_->mutex; }

namespace {
int compare_names(const OperatorEntry& op, std::string_view name, std::string_view overload) {
  const int by_name = std::string_view(op.name).compare(name);
  return by_name != 0 ? by_name : std::string_view(op.overload).compare(overload);
}
} // namespace

const OperatorEntry* Dispatcher::find(std::string_view name, std::string_view overload) const {
  const ArrayRef<const OperatorEntry*> ops = detail::builtin_operators();
  const auto it = std::lower_bound(ops.begin(), ops.end(), 0, [&](const OperatorEntry* op, int) {
    return compare_names(*op, name, overload) < 0;
  });
  if (it != ops.end() && compare_names(**it, name, overload) == 0) return *it;
  std::lock_guard<std::mutex> lock(registry_->mutex);
  const auto found = registry_->runtime.find({std::string(name), std::string(overload)});
  return found == registry_->runtime.end() ? nullptr : found->second.get();
}

std::vector<const OperatorEntry*> Dispatcher::overloads(std::string_view name) const {
  std::vector<const OperatorEntry*> out;
  for (const OperatorEntry* op : detail::builtin_operators())
    if (name == op->name) out.push_back(op);
  std::lock_guard<std::mutex> lock(registry_->mutex);
  for (const auto& [key, op] : registry_->runtime)
    if (key.first == name) out.push_back(op.get());
  return out;
}

std::vector<const OperatorEntry*> Dispatcher::all() const {
  const ArrayRef<const OperatorEntry*> ops = detail::builtin_operators();
  std::vector<const OperatorEntry*> out(ops.begin(), ops.end());
  std::lock_guard<std::mutex> lock(registry_->mutex);
  for (const auto& [key, op] : registry_->runtime) out.push_back(op.get());
  return out;
}

std::atomic<bool> definitions_shown{false};

namespace {
// Threads that record whole operators: a list, as they are few, are asked seldom, and a library has
// little memory of its threads' own.
struct Recorders {
  std::mutex mutex;
  std::vector<std::thread::id> threads;
};
Recorders& recorders() {
  static Recorders* const all = new Recorders;
  return *all;
}
} // namespace
bool records_whole_operators() {
  Recorders& all = recorders();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto end = all.threads.end();
  return std::find(all.threads.begin(), end, std::this_thread::get_id()) != end;
}
void record_whole_operators(bool on) {
  if (on == records_whole_operators()) return;
  Recorders& all = recorders();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto self = std::this_thread::get_id();
  if (on)
    all.threads.push_back(self);
  else
    all.threads.erase(std::find(all.threads.begin(), all.threads.end(), self));
}

namespace {
// Kernels taken out of use. They may hold Python objects, whose end can run anything: they are
// dropped after the dispatcher's lock.
using Dropped = std::vector<c10::intrusive_ptr<BoxedKernel>>;

// The keys of built-in kernels that calls look for only once show_definitions() has run.
uint64_t shown_keys(const OperatorEntry& op) {
  if (!definitions_shown || op.kernels == nullptr) return 0;
  for (const KernelInit* k = op.kernels; k->key != DispatchKey::Undefined; ++k)
    if (k->key == DispatchKey::PythonTLSSnapshot) return DispatchKeySet(k->key).raw();
  return 0;
}

// Forgets what was resolved before a registration changed. Needs the lock.
void reset_resolution(const OperatorEntry& op, Dropped& dropped) {
  for (auto& slot : op.table) slot.store(nullptr);
  uint64_t mask = OperatorEntry::kDefaultMask, always = 0;
  OperatorState& state = op.ensure_state();
  {
    OperatorLock lock(op);
    for (auto& boxed : state.boxed)
      if (boxed) dropped.push_back(std::move(boxed));
  }
  for (const auto& r : state.kernels) {
    const bool skips = r.kernel.boxed && r.kernel.boxed->is_fallthrough();
    if (!c10::isAliasDispatchKey(r.key) && !skips) mask |= DispatchKeySet(r.key).raw();
    if (r.key == DispatchKey::BackendSelect || GeneratorKernel::is(r.kernel.boxed.get()))
      always |= DispatchKeySet(r.key).raw();
    // See Note [Autograd key only where gradients flow].
    if (c10::kAutogradKeys.has(r.key)) always |= DispatchKeySet(r.key).raw();
    if (r.key == DispatchKey::Autograd) always |= DispatchKeySet(DispatchKey::AutogradCPU).raw();
  }
  for (int key = 1; key < c10::kNumRuntimeKeys; ++key)
    if (Dispatcher::singleton().fallback(static_cast<DispatchKey>(key))) mask |= uint64_t(1) << key;
  op.mask.store(mask | shown_keys(op));
  op.always_keys.store(always);
}
} // namespace

void show_definitions() {
  if (definitions_shown.load(std::memory_order_acquire)) return;
  std::lock_guard<std::mutex> lock(Dispatcher::singleton().mutex());
  definitions_shown = true;
  for (const OperatorEntry* op : detail::builtin_operators()) op->mask.fetch_or(shown_keys(*op));
}

const OperatorEntry* Dispatcher::define(const std::string& schema, std::vector<std::string> tags) {
  FunctionSchema parsed = FunctionSchema::parse(schema);
  TORCH_CHECK(parsed.name.find("::") != std::string::npos,
              "an operator's name needs a namespace: ", schema);
  TORCH_CHECK(find(parsed.name, parsed.overload) == nullptr, "Tried to register an operator (",
              schema, ") with the same name and overload name multiple times.");
  const OperatorEntry* again = nullptr;
  {
    std::lock_guard<std::mutex> lock(registry_->mutex);
    const auto known = registry_->retired.find(schema);
    if (known != registry_->retired.end()) {
      auto& slot = registry_->runtime[{parsed.name, parsed.overload}];
      slot = std::move(known->second);
      registry_->retired.erase(known);
      slot->state.load()->tags = std::move(tags);
      again = slot.get();
    }
  }
  if (again != nullptr) {
    detail::adopt_pending_kernels(*again);
    return again;
  }
  auto state = std::make_unique<OperatorState>();
  state->owned_name = parsed.name;
  state->owned_overload = parsed.overload;
  state->owned_schema = schema;
  state->tags = std::move(tags);
  state->defined_at_runtime = true;
  const uint32_t flags =
      (parsed.is_mutable() ? uint32_t(kOpMutates) : 0) | (parsed.is_view() ? uint32_t(kOpView) : 0);
  state->schema = std::make_unique<FunctionSchema>(std::move(parsed));
  auto op =
      std::make_unique<OperatorEntry>(state->owned_name.c_str(), state->owned_overload.c_str(),
                                      state->owned_schema.c_str(), nullptr, nullptr, flags, "");
  const OperatorEntry* const made = op.get();
  {
    Dropped dropped;
    std::lock_guard<std::mutex> lock(registry_->mutex);
    auto& slot = registry_->runtime[{state->owned_name, state->owned_overload}];
    op->state.store(state.release());
    slot = std::move(op);
    reset_resolution(*slot, dropped); // fallbacks hold from the start
  }
  detail::adopt_pending_kernels(*made);
  return made;
}

void Dispatcher::undefine(const OperatorEntry* op) {
  std::vector<OperatorState::Registration> kernels; // outlive the lock, see Dropped
  Dropped dropped;
  std::lock_guard<std::mutex> lock(registry_->mutex);
  for (auto it = registry_->runtime.begin(); it != registry_->runtime.end(); ++it) {
    if (it->second.get() != op) continue;
    OperatorState& state = *op->state.load();
    kernels.swap(state.kernels);
    reset_resolution(*op, dropped);
    registry_->retired[state.owned_schema] = std::move(it->second);
    registry_->runtime.erase(it);
    return;
  }
}

uint64_t Dispatcher::register_kernel(const OperatorEntry* op, DispatchKey key,
                                     RuntimeKernel kernel) {
  Dropped dropped;
  OperatorState& state = op->ensure_state();
  std::lock_guard<std::mutex> lock(registry_->mutex);
  const uint64_t id = registry_->next_id++;
  state.kernels.push_back({key, std::move(kernel), id});
  reset_resolution(*op, dropped);
  return id;
}

void Dispatcher::deregister_kernel(const OperatorEntry* op, uint64_t id) {
  Dropped dropped;
  OperatorState& state = op->ensure_state();
  std::lock_guard<std::mutex> lock(registry_->mutex);
  for (auto it = state.kernels.begin(); it != state.kernels.end(); ++it) {
    if (it->id != id) continue;
    dropped.push_back(std::move(it->kernel.boxed));
    state.kernels.erase(it);
    break;
  }
  reset_resolution(*op, dropped);
}

uint64_t Dispatcher::register_fallback(DispatchKey key, c10::intrusive_ptr<BoxedKernel> kernel,
                                       const std::string&) {
  {
    std::lock_guard<std::mutex> lock(registry_->mutex);
    registry_->fallbacks[static_cast<int>(key)] = std::move(kernel);
  }
  const uint64_t bit = DispatchKeySet(key).raw();
  for (const OperatorEntry* op : all()) {
    if (op->table[static_cast<int>(key)].load() != nullptr)
      op->table[static_cast<int>(key)].store(nullptr);
    // What a run-time operator resolved to is kept in one place only.
    if (op->boxing == nullptr) set_resolved(*op, static_cast<int>(key), {});
    if ((op->mask.load() & bit) == 0) op->mask.fetch_or(bit);
  }
  return static_cast<uint64_t>(key);
}
void Dispatcher::deregister_fallback(DispatchKey key) { register_fallback(key, {}); }

c10::intrusive_ptr<BoxedKernel> Dispatcher::fallback(DispatchKey key) const {
  return registry_->fallbacks[static_cast<int>(key)];
}

namespace {
struct Fallthrough final : BoxedKernel {
  void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) override {
    op.redispatch_boxed(keys.remove(keys.highest()), stack);
  }
  bool is_fallthrough() const override { return true; }
};
} // namespace
c10::intrusive_ptr<BoxedKernel> fallthrough_kernel() { return c10::make_intrusive<Fallthrough>(); }

} // namespace at
