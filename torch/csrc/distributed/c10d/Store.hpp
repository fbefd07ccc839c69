// Stores as C++ extensions see them: bytes by key that the processes of a group share. What Python
// made comes to a C++ function as such a store. Any thread may call.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include <c10/macros/Macros.h>
#include <c10/util/intrusive_ptr.h>

namespace c10d {

class TORCH_API Store : public c10::intrusive_ptr_target {
 public:
  static constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::seconds(300);
  static constexpr std::chrono::milliseconds kNoTimeout = std::chrono::milliseconds::zero();
  Store() = default;
  explicit Store(const std::chrono::milliseconds& timeout) : timeout_(timeout) {}
  ~Store() override;

  void set(const std::string& key, const std::string& value);
  virtual void set(const std::string& key, const std::vector<uint8_t>& value) = 0;
  // Sets `desired` where the value is `expected`, or where there is none and `expected` is empty;
  // the value that is there afterwards.
  std::string compareSet(const std::string& key, const std::string& expected,
                         const std::string& desired);
  virtual std::vector<uint8_t> compareSet(const std::string& key,
                                          const std::vector<uint8_t>& expected,
                                          const std::vector<uint8_t>& desired);
  // Both wait for the key.
  std::string get_to_str(const std::string& key);
  virtual std::vector<uint8_t> get(const std::string& key) = 0;
  // The sum of a decimal number and `value`.
  virtual int64_t add(const std::string& key, int64_t value) = 0;
  virtual bool deleteKey(const std::string& key) = 0;
  virtual bool check(const std::vector<std::string>& keys) = 0;
  virtual int64_t getNumKeys() = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys,
                    const std::chrono::milliseconds& timeout) = 0;
  virtual const std::chrono::milliseconds& getTimeout() const noexcept { return timeout_; }
  virtual void setTimeout(const std::chrono::milliseconds& timeout) { timeout_ = timeout; }

  // One step each where hasExtendedApi() says so; else a key at a time.
  virtual void append(const std::string& key, const std::vector<uint8_t>& value);
  virtual std::vector<std::vector<uint8_t>> multiGet(const std::vector<std::string>& keys);
  virtual void multiSet(const std::vector<std::string>& keys,
                        const std::vector<std::vector<uint8_t>>& values);
  virtual bool hasExtendedApi() const { return false; }

 protected:
  std::chrono::milliseconds timeout_ = kDefaultTimeout;
};

} // namespace c10d
