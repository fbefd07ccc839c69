// A store in a file that all processes can write: a log of changes under a file lock. For machines
// that share a file system; each handle replays what others appended since it looked last.
#pragma once
#include <torch/csrc/distributed/c10d/Store.h>

namespace c10d::engine {

class TORCH_API FileStore final : public Store {
 public:
  // `world_size`: how many processes use the file; the last of them to finish removes it. Negative:
  // nobody does.
  FileStore(std::string path, int64_t world_size);
  ~FileStore() override;
  void set(const std::string& key, const Bytes& value) override;
  Bytes get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool delete_key(const std::string& key) override;
  bool check(const Keys& keys) override;
  int64_t num_keys() override;
  void wait(const Keys& keys, Millis timeout) override;
  using Store::wait;
  Bytes compare_set(const std::string& key, const Bytes& expected, const Bytes& desired) override;
  Keys list_keys() override;
  std::shared_ptr<Store> clone() override;
  const std::string& path() const { return path_; }

 private:
  class Locked;
  // Applies the records after what was read; stops before one that is not whole.
  void replay(int file);
  void append_record(int file, char kind, const std::string& key, const Bytes& value);
  const std::string path_;
  const int64_t world_size_;
  std::mutex mutex_;
  int64_t position_ = 0;
  StoreTable table_;
};

} // namespace c10d::engine
