// The log: records of a kind ('=' set, '-' delete), two lengths and two texts. A writer holds the
// lock from reading the end to writing its record, so that add and compare_set are atomic. A file
// that was removed or cut short meanwhile is read anew.
#include <torch/csrc/distributed/c10d/FileStore.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace c10d::engine {

namespace {

constexpr char kSet = '=', kDelete = '-';
constexpr char kUsers[] = "cresset/finished";
constexpr size_t kHead = 1 + 2 * sizeof(uint64_t);

[[noreturn]] void fail(const char* what, const std::string& path) {
  throw DistStoreError(c10::str("FileStore: cannot ", what, " ", path, ": ", std::strerror(errno)));
}

// How many stores of this process use each file.
struct Users {
  std::mutex mutex;
  std::map<std::string, int> by_path;
};
Users& users() {
  static Users* all = new Users; // stores may die after static objects
  return *all;
}

} // namespace

// An open, locked file with the table brought up to date.
class FileStore::Locked {
 public:
  Locked(FileStore& store, bool writes)
      : file_(::open(store.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ < 0) fail("open", store.path_);
    while (::flock(file_, writes ? LOCK_EX : LOCK_SH) != 0) {
      if (errno == EINTR) continue;
      ::close(file_);
      fail("lock", store.path_);
    }
    try {
      store.replay(file_);
    } catch (...) {
      ::close(file_);
      throw;
    }
  }
  ~Locked() { ::close(file_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  int file() const { return file_; }

 private:
  const int file_;
};

FileStore::FileStore(std::string path, int64_t world_size)
    : path_(std::move(path)), world_size_(world_size) {
  {
    std::lock_guard lock(users().mutex);
    ++users().by_path[path_];
  }
  add(kUsers, 0);
}

FileStore::~FileStore() {
  try {
    {
      std::lock_guard lock(users().mutex);
      if (--users().by_path[path_] > 0) return;
      users().by_path.erase(path_);
    }
    struct stat info;
    if (::stat(path_.c_str(), &info) != 0) return;
    const int64_t finished = add(kUsers, 1);
    if (world_size_ >= 0 && finished >= world_size_) ::unlink(path_.c_str());
  } catch (const std::exception&) {
    // The file system is gone: there is nothing left to clean.
  }
}

void FileStore::replay(int file) {
  struct stat info;
  if (::fstat(file, &info) != 0) fail("read", path_);
  if (info.st_size < position_) {
    table_ = StoreTable();
    position_ = 0;
  }
  if (info.st_size == position_) return;
  std::string log(static_cast<size_t>(info.st_size - position_), '\0');
  size_t have = 0;
  while (have < log.size()) {
    const ssize_t got = ::pread(file, log.data() + have, log.size() - have,
                                static_cast<off_t>(position_ + static_cast<int64_t>(have)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path_);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  size_t at = 0;
  while (have - at >= kHead) {
    uint64_t key_size = 0, value_size = 0;
    std::memcpy(&key_size, &log[at + 1], sizeof key_size);
    std::memcpy(&value_size, &log[at + 1 + sizeof key_size], sizeof value_size);
    const size_t rest = have - at - kHead;
    if (key_size > rest || value_size > rest - key_size) break;
    const std::string key = log.substr(at + kHead, key_size);
    TORCH_CHECK(log[at] == kSet || log[at] == kDelete, "FileStore: ", path_,
                " is not the file of a store, or is damaged");
    if (log[at] == kSet) {
      table_.set(key, log.substr(at + kHead + key_size, value_size));
    } else {
      table_.erase(key);
    }
    at += kHead + key_size + value_size;
  }
  position_ += static_cast<int64_t>(at);
}

void FileStore::append_record(int file, char kind, const std::string& key, const Bytes& value) {
  const uint64_t sizes[2] = {key.size(), value.size()};
  std::string record(1, kind);
  record.append(reinterpret_cast<const char*>(sizes), sizeof sizes);
  record += key;
  record += value;
  size_t done = 0;
  while (done < record.size()) {
    const ssize_t put = ::pwrite(file, record.data() + done, record.size() - done,
                                 static_cast<off_t>(position_ + static_cast<int64_t>(done)));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("write", path_);
    done += static_cast<size_t>(put);
  }
  replay(file);
}

void FileStore::set(const std::string& key, const Bytes& value) {
  std::lock_guard lock(mutex_);
  Locked file(*this, true);
  append_record(file.file(), kSet, key, value);
}

Bytes FileStore::get(const std::string& key) {
  wait({key}, timeout());
  std::lock_guard lock(mutex_);
  const Bytes* value = table_.find(key);
  return value ? *value : Bytes();
}

int64_t FileStore::add(const std::string& key, int64_t amount) {
  std::lock_guard lock(mutex_);
  Locked file(*this, true);
  const int64_t sum = table_.add(key, amount);
  append_record(file.file(), kSet, key, std::to_string(sum));
  return sum;
}

bool FileStore::delete_key(const std::string& key) {
  std::lock_guard lock(mutex_);
  Locked file(*this, true);
  if (!table_.contains(key)) return false;
  append_record(file.file(), kDelete, key, "");
  return true;
}

bool FileStore::check(const Keys& keys) {
  std::lock_guard lock(mutex_);
  Locked file(*this, false);
  return table_.contains_all(keys);
}

int64_t FileStore::num_keys() {
  std::lock_guard lock(mutex_);
  Locked file(*this, false);
  return table_.size();
}

Keys FileStore::list_keys() {
  std::lock_guard lock(mutex_);
  Locked file(*this, false);
  return table_.keys();
}

void FileStore::wait(const Keys& keys, Millis timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  // Nobody tells when a file changes: look often at first, then every 10 ms.
  for (auto pause = Millis(1); !check(keys); pause = std::min(pause * 2, Millis(10))) {
    if (timeout >= Millis::zero() && std::chrono::steady_clock::now() >= end) {
      throw DistStoreError("Wait timeout " + timeout_text(timeout, keys));
    }
    std::this_thread::sleep_for(pause);
  }
}

Bytes FileStore::compare_set(const std::string& key, const Bytes& expected, const Bytes& desired) {
  std::lock_guard lock(mutex_);
  Locked file(*this, true);
  const Bytes now = table_.compare_set(key, expected, desired);
  if (now == desired) append_record(file.file(), kSet, key, desired);
  return now;
}

std::shared_ptr<Store> FileStore::clone() {
  auto other = std::make_shared<FileStore>(path_, world_size_);
  other->set_timeout(timeout());
  return other;
}

} // namespace c10d::engine
