// See MemoryRecord.h.
#undef CRESSET_KERNEL_TU // all functions of an allocator are in its table
#include <c10/core/MemoryRecord.h>

#include <c10/core/CPUAllocator.h>

#include <chrono>
#include <memory>
#include <mutex>

namespace c10 {
namespace {

struct Record {
  std::mutex mutex;
  bool kept = false;
  int64_t total = 0;
  uint64_t generation = 0; // tells blocks of an earlier record
  std::vector<MemoryChange> changes;
};

Record& record() {
  static Record* one = new Record; // blocks may be freed while the process ends
  return *one;
}

// Called with the record's lock held.
void note(Record& r, const void* address, int64_t bytes) {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  r.total += bytes;
  r.changes.push_back({std::chrono::duration_cast<std::chrono::nanoseconds>(since).count(), address,
                       bytes, r.total});
}

struct Block {
  DataPtr inner;
  int64_t bytes;
  uint64_t generation;
};

void free_block(void* ctx) {
  const std::unique_ptr<Block> block(static_cast<Block*>(ctx));
  Record& r = record();
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (!r.kept || r.generation != block->generation) return;
  try {
    note(r, block->inner.get(), -block->bytes);
  } catch (const std::bad_alloc&) {
    // A release must not fail: the record lacks it.
  }
}

class RecordingAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t bytes) override {
    DataPtr inner = below->allocate(bytes);
    if (!inner) return inner;
    Record& r = record();
    const std::lock_guard<std::mutex> lock(r.mutex);
    if (!r.kept) return inner;
    auto block =
        std::make_unique<Block>(Block{std::move(inner), static_cast<int64_t>(bytes), r.generation});
    void* data = block->inner.get();
    note(r, data, static_cast<int64_t>(bytes));
    return DataPtr(data, block.release(), free_block, Device(DeviceType::CPU));
  }
  void copy_data(void* dst, const void* src, size_t bytes) const override {
    below->copy_data(dst, src, bytes);
  }
  Allocator* below = nullptr;
};

RecordingAllocator& recorder() {
  static RecordingAllocator* one = new RecordingAllocator;
  return *one;
}

} // namespace

size_t recorded_block_bytes(const DataPtr& data) {
  if (data.get_deleter() != free_block) return 0;
  return static_cast<size_t>(static_cast<const Block*>(data.get_context())->bytes);
}

bool start_memory_record() {
  Record& r = record();
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (r.kept) return false;
  r.kept = true;
  r.total = 0;
  ++r.generation;
  r.changes.clear();
  recorder().below = GetCPUAllocator();
  SetCPUAllocator(&recorder());
  return true;
}

std::vector<MemoryChange> stop_memory_record() {
  Record& r = record();
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (!r.kept) return {};
  r.kept = false;
  // An extension may have put its own allocator in front meanwhile; then ours stays, and passes on.
  if (GetCPUAllocator() == &recorder()) SetCPUAllocator(recorder().below);
  return std::move(r.changes);
}

} // namespace c10
