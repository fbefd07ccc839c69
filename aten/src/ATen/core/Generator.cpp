// Generators as programs see them: the table of their functions, and the state of a generator as
// bytes and as a tensor, each computed from the other where a class defines only one.
#undef CRESSET_KERNEL_TU // functions that kernel files do not see
#include <ATen/core/Generator.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <unordered_map>

#include <ATen/ATen.h>

namespace c10 {

namespace {

// Keys of generators that bring kernels of their own. Few programs have any.
struct KeyTable {
  std::mutex mutex;
  std::unordered_map<const GeneratorImpl*, DispatchKeySet> keys;
  std::atomic<size_t> size{0};
};
KeyTable& key_table() {
  static KeyTable* table = new KeyTable;
  return *table;
}

// Generators whose function is computed from its counterpart, and on which thread. Static storage
// of threads is scarce in a library that others are loaded beside (hence no thread_local).
class Converting {
 public:
  Converting(const GeneratorImpl& generator, const char* function)
      : entry_(&generator, std::this_thread::get_id()) {
    const std::lock_guard<std::mutex> lock(key_table().mutex);
    if (!active().insert(entry_).second)
      throw NotImplementedError(str("this generator does not implement ", function));
  }
  ~Converting() {
    const std::lock_guard<std::mutex> lock(key_table().mutex);
    active().erase(entry_);
  }
  Converting(const Converting&) = delete;
  Converting& operator=(const Converting&) = delete;

 private:
  using Entry = std::pair<const GeneratorImpl*, std::thread::id>;
  static std::set<Entry>& active() {
    static auto* const all = new std::set<Entry>;
    return *all;
  }
  Entry entry_;
};

} // namespace

GeneratorImpl::GeneratorImpl(Device device, DispatchKeySet keys) : device_(device) {
  KeyTable& table = key_table();
  const std::lock_guard<std::mutex> lock(table.mutex);
  table.keys[this] = keys;
  table.size = table.keys.size();
}

GeneratorImpl::~GeneratorImpl() {
  KeyTable& table = key_table();
  if (table.size.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard<std::mutex> lock(table.mutex);
  table.keys.erase(this);
  table.size = table.keys.size();
}

DispatchKeySet GeneratorImpl::key_set() const {
  KeyTable& table = key_table();
  if (table.size.load(std::memory_order_relaxed) > 0) {
    const std::lock_guard<std::mutex> lock(table.mutex);
    const auto found = table.keys.find(this);
    if (found != table.keys.end()) return found->second;
  }
  return DispatchKeySet(backend_key(device_.type()));
}

std::vector<uint8_t> GeneratorImpl::state() const {
  const Converting guard(*this, "get_state");
  const at::Tensor state = at::Tensor(get_state()).contiguous();
  TORCH_CHECK_TYPE(state.scalar_type() == kByte, "RNG state must be a torch.ByteTensor");
  const auto* bytes = static_cast<const uint8_t*>(state.const_data_ptr());
  return std::vector<uint8_t>(bytes, bytes + state.numel());
}

intrusive_ptr<TensorImpl> GeneratorImpl::get_state() const {
  const Converting guard(*this, "get_state");
  const std::vector<uint8_t> bytes = state();
  at::Tensor out = at::empty({static_cast<int64_t>(bytes.size())}, kByte);
  if (!bytes.empty()) std::memcpy(out.mutable_data_ptr(), bytes.data(), bytes.size());
  return out.getIntrusivePtr();
}

void GeneratorImpl::set_state(const uint8_t* bytes, size_t size) {
  const Converting guard(*this, "set_state");
  at::Tensor state = at::empty({static_cast<int64_t>(size)}, kByte);
  if (size > 0) std::memcpy(state.mutable_data_ptr(), bytes, size);
  set_state(*state.unsafeGetTensorImpl());
}

void GeneratorImpl::set_state(const TensorImpl& state) {
  const Converting guard(*this, "set_state");
  const auto owned = intrusive_ptr<TensorImpl>::unsafe_retain(const_cast<TensorImpl*>(&state));
  const at::Tensor bytes = at::Tensor(owned).contiguous();
  TORCH_CHECK_TYPE(bytes.scalar_type() == kByte, "RNG state must be a torch.ByteTensor");
  set_state(static_cast<const uint8_t*>(bytes.const_data_ptr()),
            static_cast<size_t>(bytes.numel()));
}

intrusive_ptr<GeneratorImpl> GeneratorImpl::clone() const {
  return intrusive_ptr<GeneratorImpl>(std::unique_ptr<GeneratorImpl>(clone_impl()));
}

GeneratorImpl* GeneratorImpl::clone_impl() const {
  throw NotImplementedError("this generator does not implement clone_impl");
}

void GeneratorImpl::set_offset(uint64_t) {
  throw NotImplementedError("this generator does not implement set_offset");
}
uint64_t GeneratorImpl::get_offset() const {
  throw NotImplementedError("this generator does not implement get_offset");
}

} // namespace c10
