// Life of storages, whose short memory lies in one block with them: whichever of the two goes first
// leaves the other usable, and nothing is left behind.

#include <c10/core/CPUAllocator.h>
#include <c10/core/Storage.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace {

const c10::Device kCpu(c10::kCPU);

int64_t live_blocks() {
  const c10::CPUAllocatorStats stats = c10::cpu_allocator_stats();
  return stats.data_blocks + stats.pooled_objects;
}

class StorageOfSize : public ::testing::TestWithParam<size_t> {
 protected:
  void SetUp() override { before_ = live_blocks(); }
  void TearDown() override { EXPECT_EQ(live_blocks(), before_); }
  int64_t before_ = 0;
};

TEST_P(StorageOfSize, MemoryIsAlignedWritableAndAsLongAsAskedFor) {
  std::vector<c10::Storage> storages;
  for (int i = 0; i < 20; ++i) {
    storages.push_back(c10::make_storage(GetParam(), kCpu));
    ASSERT_EQ(storages.back().use_count(), 1u);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(storages.back()->data()) % 64, 0u);
    ASSERT_GE(c10::cpu_block_bytes(storages.back()->data_ptr()), GetParam());
    std::memset(storages.back()->data(), i, GetParam());
  }
  for (int i = 0; i < 20; ++i) { // nothing overlaps, and the objects were not written over
    const auto* data = static_cast<const unsigned char*>(storages[i]->data());
    ASSERT_EQ(data[0], i);
    ASSERT_EQ(data[GetParam() - 1], i);
    ASSERT_EQ(storages[i]->nbytes(), GetParam());
  }
}

TEST_P(StorageOfSize, MemoryThatWasHandedOutOutlivesTheStorage) {
  c10::Storage storage = c10::make_storage(GetParam(), kCpu);
  std::memset(storage->data(), 7, GetParam());
  c10::DataPtr memory = storage->set_data(c10::DataPtr(nullptr, kCpu), 0);
  storage.reset();
  const c10::Storage other = c10::make_storage(GetParam(), kCpu);
  std::memset(other->data(), 1, GetParam());
  const auto* data = static_cast<const unsigned char*>(memory.get());
  for (size_t i = 0; i < GetParam(); ++i) ASSERT_EQ(data[i], 7);
}

TEST_P(StorageOfSize, StorageOutlivesTheMemoryItHandedOut) {
  c10::Storage storage = c10::make_storage(GetParam(), kCpu);
  storage->set_data(c10::DataPtr(nullptr, kCpu), 0);
  EXPECT_EQ(storage->data(), nullptr);
  storage->resize(GetParam());
  std::memset(storage->data(), 3, GetParam());
  EXPECT_EQ(storage->nbytes(), GetParam());
}

TEST_P(StorageOfSize, GrowingKeepsTheContents) {
  c10::Storage storage = c10::make_storage(GetParam(), kCpu);
  std::memset(storage->data(), 9, GetParam());
  storage->resize(3 * GetParam());
  const auto* data = static_cast<const unsigned char*>(storage->data());
  EXPECT_EQ(data[0], 9);
  EXPECT_EQ(data[GetParam() - 1], 9);
}

TEST_P(StorageOfSize, WeakReferenceKeepsTheObjectAlone) {
  c10::Storage storage = c10::make_storage(GetParam(), kCpu);
  c10::weak_intrusive_ptr<c10::StorageImpl> weak(storage);
  storage.reset();
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(weak.unsafe_get()->data(), nullptr);
}

TEST_P(StorageOfSize, BothPartsMayGoOnOtherThreads) {
  for (int i = 0; i < 200; ++i) {
    c10::Storage storage = c10::make_storage(GetParam(), kCpu);
    c10::DataPtr memory = storage->set_data(c10::DataPtr(nullptr, kCpu), 0);
    std::thread first([&] { storage.reset(); });
    std::thread second([&] { memory.clear(); });
    first.join();
    second.join();
  }
}

INSTANTIATE_TEST_SUITE_P(ShortAndLong, StorageOfSize,
                         ::testing::Values(1, 64, 100, 1023, 1024, 1025, 40000));

TEST(Storage, AllocatorOfAnotherPackageServesShortMemoryToo) {
  struct Counting final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override {
      ++calls;
      return c10::GetDefaultCPUAllocator()->allocate(bytes);
    }
    void copy_data(void* to, const void* from, size_t bytes) const override {
      std::memcpy(to, from, bytes);
    }
    int calls = 0;
  } counting;
  c10::SetCPUAllocator(&counting);
  const c10::Storage storage = c10::make_storage(16, kCpu);
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator());
  EXPECT_EQ(counting.calls, 1);
  EXPECT_EQ(storage->allocator(), &counting);
}

} // namespace
