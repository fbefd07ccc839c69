// What the CPU allocator promises: alignment, failure as an exception and nothing else, honest
// counts, memory that can be freed anywhere and at any time.

#include <c10/core/CPUAllocator.h>
#include <c10/core/SmallPool.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

c10::Allocator& cpu() { return *c10::GetCPUAllocator(); }

TEST(CPUAllocator, AlignedAndWritableAtEverySize) {
  std::vector<c10::DataPtr> blocks;
  std::vector<size_t> sizes;
  for (size_t n = 1; n <= (size_t{9} << 20); n = n + n / 3 + 1) sizes.push_back(n);
  for (size_t edge : {64, 65, 1024, 1025, 1152, 32768, 32769, 1 << 20, (1 << 20) + 1, 2 << 20}) {
    sizes.push_back(edge);
  }
  for (size_t n : sizes) {
    blocks.push_back(cpu().allocate(n));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(blocks.back().get()) % 64, 0u);
    std::memset(blocks.back().get(), static_cast<int>(n & 0xff), n);
  }
  for (size_t i = 0; i < sizes.size(); ++i) { // no two blocks overlap
    const unsigned char* data = static_cast<unsigned char*>(blocks[i].get());
    ASSERT_EQ(data[0], sizes[i] & 0xff);
    ASSERT_EQ(data[sizes[i] - 1], sizes[i] & 0xff);
  }
}

TEST(CPUAllocator, SizeClassesHoldTheirSizes) {
  for (size_t n = 1; n <= c10::small::kMaxBytes; ++n) {
    const int index = c10::small::class_of(n);
    ASSERT_LT(index, c10::small::kClasses);
    ASSERT_GE(c10::small::class_bytes(index), n);
    ASSERT_EQ(c10::small::class_bytes(index) % 64, 0u);
    if (index > 0) {
      ASSERT_LT(c10::small::class_bytes(index - 1), n);
    }
  }
}

TEST(CPUAllocator, ZeroBytesGiveNull) {
  const c10::DataPtr empty = cpu().allocate(0);
  EXPECT_EQ(empty.get(), nullptr);
  EXPECT_TRUE(empty.device().is_cpu());
}

TEST(CPUAllocator, ImpossibleSizesRaiseOutOfMemory) {
  for (size_t n : {SIZE_MAX, SIZE_MAX - 63, size_t{1} << 63, size_t{1} << 62, size_t{1} << 50}) {
    try {
      cpu().allocate(n);
      FAIL();
    } catch (const c10::OutOfMemoryError& error) {
      EXPECT_EQ(error.message(),
                c10::str("DefaultCPUAllocator: can't allocate memory: you tried to allocate ", n,
                         " bytes. Error code 12 (Cannot allocate memory)"));
    }
  }
}

TEST(CPUAllocator, CountsFollowAllocations) {
  const c10::CPUAllocatorStats before = c10::cpu_allocator_stats();
  {
    const c10::DataPtr small = cpu().allocate(100);
    const c10::DataPtr large = cpu().allocate(5 << 20);
    void* object = c10::SmallPool<200>::take();
    const c10::CPUAllocatorStats during = c10::cpu_allocator_stats();
    EXPECT_EQ(during.data_blocks - before.data_blocks, 2);
    EXPECT_EQ(during.pooled_objects - before.pooled_objects, 1);
    EXPECT_EQ(during.live_bytes - before.live_bytes, 128 + (5 << 20) + 256);
    EXPECT_GE(during.peak_bytes, during.live_bytes);
    EXPECT_EQ(during.total_allocations - before.total_allocations, 3);
    c10::SmallPool<200>::give(object);
  }
  const c10::CPUAllocatorStats after = c10::cpu_allocator_stats();
  EXPECT_EQ(after.data_blocks, before.data_blocks);
  EXPECT_EQ(after.pooled_objects, before.pooled_objects);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
}

TEST(CPUAllocator, LargeBlocksAreReusedAndCacheCanBeEmptied) {
  void* first = nullptr;
  {
    const c10::DataPtr block = cpu().allocate(3 << 20);
    first = block.get();
  }
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(cpu().allocate(3 << 20).get(), first);
  EXPECT_GT(c10::cpu_allocator_stats().cached_bytes, 0);
#endif
  c10::empty_cpu_cache();
  EXPECT_EQ(c10::cpu_allocator_stats().cached_bytes, 0);
}

TEST(CPUAllocator, CacheIsBounded) {
  c10::empty_cpu_cache();
  c10::reset_cpu_peak_bytes();
  for (int i = 0; i < 200; ++i) { // many different sizes, one live at a time
    const c10::DataPtr block = cpu().allocate((size_t{1} << 20) * (1 + i % 40));
  }
  EXPECT_LE(c10::cpu_allocator_stats().cached_bytes, int64_t{64} << 20);
}

TEST(CPUAllocator, FreedOnAnotherThreadAndAfterItsOwnerEnded) {
  const int64_t before = c10::cpu_allocator_stats().data_blocks;
  std::vector<c10::DataPtr> blocks;
  std::thread([&] {
    for (int i = 0; i < 5000; ++i) blocks.push_back(cpu().allocate(64 + i % 3000));
  }).join();
  std::thread([&] { blocks.resize(1000); }).join();
  blocks.clear();
  EXPECT_EQ(c10::cpu_allocator_stats().data_blocks, before);
}

struct FreesLate {
  c10::DataPtr data;
  void* object = nullptr;
  ~FreesLate() { c10::SmallPool<300>::give(object); }
};

TEST(CPUAllocator, ThreadLocalTensorsMayDieAfterThePool) {
  const c10::CPUAllocatorStats before = c10::cpu_allocator_stats();
  std::thread([] {
    static thread_local FreesLate late; // made before the thread's pool, so destroyed after it
    late.data = cpu().allocate(1000);
    late.object = c10::SmallPool<300>::take();
  }).join();
  const c10::CPUAllocatorStats after = c10::cpu_allocator_stats();
  EXPECT_EQ(after.data_blocks, before.data_blocks);
  EXPECT_EQ(after.pooled_objects, before.pooled_objects);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
}

TEST(CPUAllocator, KthAllocationFailsOnceOrForGood) {
  const auto run = [](int count) { // alternates the three tiers; says how many succeeded
    int done = 0;
    for (int i = 0; i < count; ++i) {
      try {
        if (i % 3 == 0) {
          c10::SmallPool<100>::give(c10::SmallPool<100>::take());
        } else {
          cpu().allocate(i % 3 == 1 ? 100 : 100000);
        }
        ++done;
      } catch (const c10::OutOfMemoryError&) {
      }
    }
    return done;
  };
  run(30);
  const c10::CPUAllocatorStats before = c10::cpu_allocator_stats();
  for (int k = 1; k <= 9; ++k) {
    c10::set_alloc_failure(k);
    EXPECT_EQ(run(9), 8);
    c10::set_alloc_failure(k, true);
    EXPECT_EQ(run(9), k - 1);
  }
  c10::set_alloc_failure(0);
  EXPECT_EQ(run(9), 9);
  EXPECT_EQ(c10::cpu_allocator_stats().live_bytes, before.live_bytes);
}

TEST(CPUAllocator, WorksInAForkedChildWhileThreadsAllocate) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      cpu().allocate(100000);
      std::thread([] { cpu().allocate(100); }).join();
    }
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(10);
      for (int j = 0; j < 10; ++j) cpu().allocate(j % 2 == 0 ? 100 : 200000);
      _exit(c10::cpu_allocator_stats().total_allocations > 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  stop = true;
  busy.join();
}

TEST(DataPtr, MovesOwnershipAndFreesOnce) {
  static int freed = 0;
  freed = 0;
  int value = 0;
  const auto deleter = [](void*) { ++freed; };
  {
    c10::DataPtr a(&value, &value, deleter, c10::Device(c10::kCPU));
    c10::DataPtr b = std::move(a);
    EXPECT_EQ(a.get(), nullptr);
    EXPECT_EQ(b.get(), &value);
    b = c10::DataPtr();
    EXPECT_EQ(freed, 1);
    c10::DataPtr c(&value, &value, deleter, c10::Device(c10::kCPU));
    EXPECT_EQ(c.release_context(), &value);
  }
  EXPECT_EQ(freed, 1);
}

} // namespace
