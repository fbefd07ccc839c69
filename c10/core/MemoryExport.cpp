// The table of exported storages. It is asked only when a storage gives up a block, and not even
// then while nothing is exported.
#include <c10/core/MemoryExport.h>

#include <c10/core/Retired.h>

#include <atomic>
#include <mutex>
#include <pthread.h>
#include <unordered_map>
#include <vector>

namespace c10 {
namespace {

struct Exports {
  int64_t count = 0;
  std::vector<DataPtr> retired;
};

// Never destroyed: arrays may be freed after the static objects of this library.
struct Table {
  std::mutex mutex;
  std::unordered_map<const StorageImpl*, Exports> exports;
};

Table& table() {
  static Table* only = [] {
    static Table* made = new Table;
    // A fork while another thread works on the table must not leave it locked in the child.
    pthread_atfork([] { made->mutex.lock(); }, [] { made->mutex.unlock(); },
                   [] { made->mutex.unlock(); });
    return made;
  }();
  return *only;
}

std::atomic<int64_t> exported{0};
std::atomic<DeleterFnPtr> immovable{nullptr};

} // namespace

MemoryExport::MemoryExport(Storage storage) : storage_(std::move(storage)) {
  if (!storage_) return;
  Table& all = table();
  const std::lock_guard<std::mutex> lock(all.mutex);
  ++all.exports[storage_.get()].count;
  exported.fetch_add(1, std::memory_order_relaxed);
}

MemoryExport::~MemoryExport() {
  if (!storage_) return;
  std::vector<DataPtr> unused; // freed after the lock is given back
  Table& all = table();
  const std::lock_guard<std::mutex> lock(all.mutex);
  exported.fetch_sub(1, std::memory_order_relaxed);
  auto found = all.exports.find(storage_.get());
  if (found == all.exports.end() || --found->second.count > 0) return;
  unused = std::move(found->second.retired);
  all.exports.erase(found);
}

void retire_memory(const StorageImpl* storage, DataPtr old) {
  if (exported.load(std::memory_order_relaxed) != 0) {
    Table& all = table();
    const std::lock_guard<std::mutex> lock(all.mutex);
    auto found = all.exports.find(storage);
    if (found != all.exports.end()) {
      found->second.retired.push_back(std::move(old));
      return;
    }
  }
  retire(std::move(old));
}

void declare_immovable(DeleterFnPtr deleter) { immovable.store(deleter); }

bool is_immovable(const DataPtr& data) {
  const DeleterFnPtr known = immovable.load(std::memory_order_relaxed);
  return known != nullptr && data.get_deleter() == known;
}

} // namespace c10
