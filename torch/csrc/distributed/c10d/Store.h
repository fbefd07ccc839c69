// Stores: small tables of bytes by key that the processes of a group share, to find each other and
// to agree on things. Every operation may be called from any thread.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Error.h>

namespace c10d::engine {

using Bytes = std::string;
using Keys = std::vector<std::string>;
using Millis = std::chrono::milliseconds;

class TORCH_API Store {
 public:
  static constexpr Millis kDefaultTimeout = std::chrono::seconds(300);
  Store() = default;
  explicit Store(Millis timeout) : timeout_(timeout) {}
  virtual ~Store();

  virtual void set(const std::string& key, const Bytes& value) = 0;
  // The value; waits for the key, and throws DistStoreError when the store's timeout passes.
  virtual Bytes get(const std::string& key) = 0;
  // Adds to a decimal number, which starts as 0, and returns the sum.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  // Whether there was such a key.
  virtual bool delete_key(const std::string& key) = 0;
  // Whether all keys are there.
  virtual bool check(const Keys& keys) = 0;
  virtual int64_t num_keys() = 0;
  // Waits until all keys are there; throws DistStoreError when the time passes.
  virtual void wait(const Keys& keys, Millis timeout) = 0;
  // Sets `desired` where the value is `expected`, or where there is none and `expected` is empty.
  // Returns the value that is there afterwards; `expected` where there is none.
  virtual Bytes compare_set(const std::string& key, const Bytes& expected, const Bytes& desired);

  // ---- what a store may do at once; by default one key at a time
  virtual bool has_extended_api() const { return false; }
  virtual void append(const std::string& key, const Bytes& value);
  virtual std::vector<Bytes> multi_get(const Keys& keys);
  virtual void multi_set(const Keys& keys, const std::vector<Bytes>& values);
  virtual Keys list_keys();

  // ---- queues, of which each element is taken once
  virtual void queue_push(const std::string& key, const Bytes& value);
  // Waits for an element with `block`; throws DistQueueEmptyError without.
  virtual Bytes queue_pop(const std::string& key, bool block);
  virtual int64_t queue_len(const std::string& key);

  // Another handle on the same table, whose waits do not hold up this one's callers.
  virtual std::shared_ptr<Store> clone();

  void wait(const Keys& keys) { wait(keys, timeout()); }
  virtual Millis timeout() const { return timeout_; }
  virtual void set_timeout(Millis timeout) { timeout_ = timeout; }

 private:
  Millis timeout_ = kDefaultTimeout;
};

// The table itself, without locks: what HashStore and the server of TCPStore keep.
class TORCH_API StoreTable {
 public:
  void set(const std::string& key, Bytes value);
  const Bytes* find(const std::string& key) const;
  // Throws c10::ValueError where the value is no number.
  int64_t add(const std::string& key, int64_t amount);
  bool erase(const std::string& key);
  bool contains_all(const Keys& keys) const;
  Bytes compare_set(const std::string& key, const Bytes& expected, const Bytes& desired);
  void append(const std::string& key, const Bytes& value);
  void push(const std::string& key, Bytes value);
  // False where the queue is empty.
  bool pop(const std::string& key, Bytes& out);
  int64_t queue_len(const std::string& key) const;
  // A key is there when it has a value or its queue has an element.
  bool contains(const std::string& key) const;
  int64_t size() const { return static_cast<int64_t>(values_.size() + queues_.size()); }
  Keys keys() const;
  // Of keys and values together.
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
  std::map<std::string, Bytes> values_;
  std::map<std::string, std::deque<Bytes>> queues_;
};

// The number a value holds; throws c10::ValueError, naming the key.
TORCH_API int64_t number_in(const std::string& key, const Bytes& value);
// "after 100ms, keys: a, b": the end of an error of a wait.
TORCH_API std::string timeout_text(Millis timeout, const Keys& keys);

// A table within this process.
class TORCH_API HashStore final : public Store {
 public:
  HashStore() = default;
  ~HashStore() override;
  void set(const std::string& key, const Bytes& value) override;
  Bytes get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool delete_key(const std::string& key) override;
  bool check(const Keys& keys) override;
  int64_t num_keys() override;
  void wait(const Keys& keys, Millis timeout) override;
  using Store::wait;
  Bytes compare_set(const std::string& key, const Bytes& expected, const Bytes& desired) override;
  bool has_extended_api() const override { return true; }
  void append(const std::string& key, const Bytes& value) override;
  std::vector<Bytes> multi_get(const Keys& keys) override;
  void multi_set(const Keys& keys, const std::vector<Bytes>& values) override;
  Keys list_keys() override;
  void queue_push(const std::string& key, const Bytes& value) override;
  Bytes queue_pop(const std::string& key, bool block) override;
  int64_t queue_len(const std::string& key) override;

 private:
  void wait_locked(std::unique_lock<std::mutex>& lock, const Keys& keys, Millis timeout);
  std::mutex mutex_;
  std::condition_variable changed_;
  StoreTable table_;
};

// Another store, with "prefix/" before every key.
class TORCH_API PrefixStore final : public Store {
 public:
  PrefixStore(std::string prefix, std::shared_ptr<Store> store);
  ~PrefixStore() override;
  void set(const std::string& key, const Bytes& value) override;
  Bytes get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool delete_key(const std::string& key) override;
  bool check(const Keys& keys) override;
  int64_t num_keys() override;
  void wait(const Keys& keys, Millis timeout) override;
  using Store::wait;
  Bytes compare_set(const std::string& key, const Bytes& expected, const Bytes& desired) override;
  bool has_extended_api() const override { return store_->has_extended_api(); }
  void append(const std::string& key, const Bytes& value) override;
  std::vector<Bytes> multi_get(const Keys& keys) override;
  void multi_set(const Keys& keys, const std::vector<Bytes>& values) override;
  Keys list_keys() override;
  void queue_push(const std::string& key, const Bytes& value) override;
  Bytes queue_pop(const std::string& key, bool block) override;
  int64_t queue_len(const std::string& key) override;
  std::shared_ptr<Store> clone() override;
  Millis timeout() const override { return store_->timeout(); }
  void set_timeout(Millis timeout) override { store_->set_timeout(timeout); }

  std::string prefix() const { return prefix_.substr(0, prefix_.size() - 1); }

 private:
  std::string joined(const std::string& key) const { return prefix_ + key; }
  Keys joined(const Keys& keys) const;
  const std::string prefix_; // with the slash
  const std::shared_ptr<Store> store_;
};

} // namespace c10d::engine
