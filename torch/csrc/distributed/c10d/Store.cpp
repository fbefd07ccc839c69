// What all stores share, and the two that need no system call.
#include <torch/csrc/distributed/c10d/Store.h>

#include <charconv>

namespace c10d::engine {

DistError::~DistError() = default;
DistBackendError::~DistBackendError() = default;
DistNetworkError::~DistNetworkError() = default;
DistStoreError::~DistStoreError() = default;
DistQueueEmptyError::~DistQueueEmptyError() = default;

int64_t number_in(const std::string& key, const Bytes& value) {
  int64_t found = 0;
  const char* end = value.data() + value.size();
  const auto [stopped, error] = std::from_chars(value.data(), end, found);
  TORCH_CHECK_VALUE(error == std::errc() && stopped == end, "Store.add: the value of key '", key,
                    "' (", value.size(), " bytes) is not a number");
  return found;
}

std::string timeout_text(Millis timeout, const Keys& keys) {
  std::string text = c10::str("after ", timeout.count(), "ms, keys: ");
  for (size_t i = 0; i < keys.size(); ++i) text += (i ? ", " : "") + keys[i];
  return text;
}

// ---- Store --------------------------------------------------------------------------------------
Store::~Store() = default;

Bytes Store::compare_set(const std::string&, const Bytes&, const Bytes&) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Not implemented. This store has no compare_set");
}

void Store::append(const std::string& key, const Bytes& value) {
  // Without a lock of the store's own this is what one writer at a time can do.
  set(key, check({key}) ? get(key) + value : value);
}

std::vector<Bytes> Store::multi_get(const Keys& keys) {
  std::vector<Bytes> values;
  values.reserve(keys.size());
  for (const auto& key : keys) values.push_back(get(key));
  return values;
}

void Store::multi_set(const Keys& keys, const std::vector<Bytes>& values) {
  TORCH_CHECK_VALUE(keys.size() == values.size(),
                    "multi_set keys and values must be of the same "
                    "size: ",
                    keys.size(), " keys and ", values.size(), " values");
  for (size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i]);
}

Keys Store::list_keys() {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Not implemented. This store does not list its keys");
}
void Store::queue_push(const std::string&, const Bytes&) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Not implemented. This store has no queues");
}
Bytes Store::queue_pop(const std::string&, bool) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Not implemented. This store has no queues");
}
int64_t Store::queue_len(const std::string&) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Not implemented. This store has no queues");
}
std::shared_ptr<Store> Store::clone() {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Not implemented. This store cannot be cloned");
}

// ---- StoreTable ---------------------------------------------------------------------------------
const Bytes* StoreTable::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

int64_t StoreTable::add(const std::string& key, int64_t amount) {
  const Bytes* value = find(key);
  const int64_t before = value ? number_in(key, *value) : 0;
  int64_t sum = 0;
  TORCH_CHECK_VALUE(!__builtin_add_overflow(before, amount, &sum), "Store.add: the number of key '",
                    key, "' would overflow");
  set(key, std::to_string(sum));
  return sum;
}

void StoreTable::set(const std::string& key, Bytes value) {
  const auto [entry, is_new] = values_.try_emplace(key);
  bytes_ += static_cast<int64_t>(value.size()) - static_cast<int64_t>(entry->second.size());
  if (is_new) bytes_ += static_cast<int64_t>(key.size());
  entry->second = std::move(value);
}

void StoreTable::append(const std::string& key, const Bytes& value) {
  const auto [entry, is_new] = values_.try_emplace(key);
  bytes_ += static_cast<int64_t>(value.size() + (is_new ? key.size() : 0));
  entry->second += value;
}

void StoreTable::push(const std::string& key, Bytes value) {
  const auto [entry, is_new] = queues_.try_emplace(key);
  bytes_ += static_cast<int64_t>(value.size() + (is_new ? key.size() : 0));
  entry->second.push_back(std::move(value));
}

bool StoreTable::erase(const std::string& key) {
  bool found = false;
  if (const auto value = values_.find(key); value != values_.end()) {
    bytes_ -= static_cast<int64_t>(key.size() + value->second.size());
    values_.erase(value);
    found = true;
  }
  if (const auto queue = queues_.find(key); queue != queues_.end()) {
    bytes_ -= static_cast<int64_t>(key.size());
    for (const auto& value : queue->second) bytes_ -= static_cast<int64_t>(value.size());
    queues_.erase(queue);
    found = true;
  }
  return found;
}

bool StoreTable::contains(const std::string& key) const {
  return values_.count(key) != 0 || queue_len(key) > 0;
}

bool StoreTable::contains_all(const Keys& keys) const {
  for (const auto& key : keys) {
    if (!contains(key)) return false;
  }
  return true;
}

Bytes StoreTable::compare_set(const std::string& key, const Bytes& expected, const Bytes& desired) {
  const Bytes* value = find(key);
  if (value ? *value != expected : !expected.empty()) return value ? *value : expected;
  set(key, desired);
  return desired;
}

bool StoreTable::pop(const std::string& key, Bytes& out) {
  const auto found = queues_.find(key);
  if (found == queues_.end()) return false;
  out = std::move(found->second.front());
  found->second.pop_front();
  bytes_ -= static_cast<int64_t>(out.size());
  if (found->second.empty()) {
    bytes_ -= static_cast<int64_t>(key.size());
    queues_.erase(found);
  }
  return true;
}

int64_t StoreTable::queue_len(const std::string& key) const {
  const auto found = queues_.find(key);
  return found == queues_.end() ? 0 : static_cast<int64_t>(found->second.size());
}

Keys StoreTable::keys() const {
  Keys found;
  for (const auto& entry : values_) found.push_back(entry.first);
  for (const auto& entry : queues_) found.push_back(entry.first);
  return found;
}

// ---- HashStore ----------------------------------------------------------------------------------
HashStore::~HashStore() = default;

void HashStore::set(const std::string& key, const Bytes& value) {
  std::lock_guard lock(mutex_);
  table_.set(key, value);
  changed_.notify_all();
}

void HashStore::wait_locked(std::unique_lock<std::mutex>& lock, const Keys& keys, Millis timeout) {
  const auto there = [&] { return table_.contains_all(keys); };
  if (timeout < Millis::zero()) {
    changed_.wait(lock, there);
  } else if (!changed_.wait_for(lock, timeout, there)) {
    throw DistStoreError("Wait timeout " + timeout_text(timeout, keys));
  }
}

Bytes HashStore::get(const std::string& key) {
  std::unique_lock lock(mutex_);
  const Keys keys{key};
  for (;;) {
    if (const Bytes* value = table_.find(key)) return *value;
    TORCH_CHECK(table_.queue_len(key) == 0, "Store.get: key '", key, "' is a queue");
    wait_locked(lock, keys, timeout());
  }
}

int64_t HashStore::add(const std::string& key, int64_t amount) {
  std::lock_guard lock(mutex_);
  const int64_t sum = table_.add(key, amount);
  changed_.notify_all();
  return sum;
}
bool HashStore::delete_key(const std::string& key) {
  std::lock_guard lock(mutex_);
  return table_.erase(key);
}
bool HashStore::check(const Keys& keys) {
  std::lock_guard lock(mutex_);
  return table_.contains_all(keys);
}
int64_t HashStore::num_keys() {
  std::lock_guard lock(mutex_);
  return table_.size();
}
void HashStore::wait(const Keys& keys, Millis timeout) {
  std::unique_lock lock(mutex_);
  wait_locked(lock, keys, timeout);
}
Bytes HashStore::compare_set(const std::string& key, const Bytes& expected, const Bytes& desired) {
  std::lock_guard lock(mutex_);
  Bytes now = table_.compare_set(key, expected, desired);
  changed_.notify_all();
  return now;
}
void HashStore::append(const std::string& key, const Bytes& value) {
  std::lock_guard lock(mutex_);
  table_.append(key, value);
  changed_.notify_all();
}
std::vector<Bytes> HashStore::multi_get(const Keys& keys) { return Store::multi_get(keys); }
void HashStore::multi_set(const Keys& keys, const std::vector<Bytes>& values) {
  Store::multi_set(keys, values);
}
Keys HashStore::list_keys() {
  std::lock_guard lock(mutex_);
  return table_.keys();
}
void HashStore::queue_push(const std::string& key, const Bytes& value) {
  std::lock_guard lock(mutex_);
  table_.push(key, value);
  changed_.notify_all();
}
Bytes HashStore::queue_pop(const std::string& key, bool block) {
  std::unique_lock lock(mutex_);
  const Keys keys{key};
  for (Bytes value;;) {
    if (table_.pop(key, value)) return value;
    if (!block) throw DistQueueEmptyError("queue is empty: key '" + key + "'");
    wait_locked(lock, keys, timeout());
  }
}
int64_t HashStore::queue_len(const std::string& key) {
  std::lock_guard lock(mutex_);
  return table_.queue_len(key);
}

// ---- PrefixStore --------------------------------------------------------------------------------
PrefixStore::PrefixStore(std::string prefix, std::shared_ptr<Store> store)
    : prefix_(std::move(prefix) + "/"), store_(std::move(store)) {
  TORCH_CHECK_VALUE(store_ != nullptr, "PrefixStore: store must not be None");
}
PrefixStore::~PrefixStore() = default;

Keys PrefixStore::joined(const Keys& keys) const {
  Keys out;
  out.reserve(keys.size());
  for (const auto& key : keys) out.push_back(prefix_ + key);
  return out;
}
void PrefixStore::set(const std::string& key, const Bytes& value) {
  store_->set(joined(key), value);
}
Bytes PrefixStore::get(const std::string& key) { return store_->get(joined(key)); }
int64_t PrefixStore::add(const std::string& key, int64_t amount) {
  return store_->add(joined(key), amount);
}
bool PrefixStore::delete_key(const std::string& key) { return store_->delete_key(joined(key)); }
bool PrefixStore::check(const Keys& keys) { return store_->check(joined(keys)); }
int64_t PrefixStore::num_keys() { return store_->num_keys(); }
void PrefixStore::wait(const Keys& keys, Millis timeout) { store_->wait(joined(keys), timeout); }
Bytes PrefixStore::compare_set(const std::string& key, const Bytes& expected,
                               const Bytes& desired) {
  return store_->compare_set(joined(key), expected, desired);
}
void PrefixStore::append(const std::string& key, const Bytes& value) {
  store_->append(joined(key), value);
}
std::vector<Bytes> PrefixStore::multi_get(const Keys& keys) {
  return store_->multi_get(joined(keys));
}
void PrefixStore::multi_set(const Keys& keys, const std::vector<Bytes>& values) {
  store_->multi_set(joined(keys), values);
}
Keys PrefixStore::list_keys() {
  Keys mine;
  for (auto& key : store_->list_keys()) {
    if (key.compare(0, prefix_.size(), prefix_) == 0) mine.push_back(key.substr(prefix_.size()));
  }
  return mine;
}
void PrefixStore::queue_push(const std::string& key, const Bytes& value) {
  store_->queue_push(joined(key), value);
}
Bytes PrefixStore::queue_pop(const std::string& key, bool block) {
  return store_->queue_pop(joined(key), block);
}
int64_t PrefixStore::queue_len(const std::string& key) { return store_->queue_len(joined(key)); }
std::shared_ptr<Store> PrefixStore::clone() {
  return std::make_shared<PrefixStore>(prefix(), store_->clone());
}

} // namespace c10d::engine
