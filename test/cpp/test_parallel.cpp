// What the thread pool promises: chunk boundaries that depend on the range alone, results and
// errors that do not depend on the number of threads, life after fork, quick cancellation.

#include <ATen/parallel/Parallel.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using Chunks = std::set<std::pair<int64_t, int64_t>>;

/// Sets the thread count for one test and restores it afterwards.
class Threads {
 public:
  explicit Threads(int n) : saved_(at::get_num_threads()) { at::set_num_threads(n); }
  ~Threads() { at::set_num_threads(saved_); }

 private:
  int saved_;
};

Chunks chunks_of(int64_t begin, int64_t end, int64_t grain, int threads) {
  Threads scope(threads);
  std::mutex mutex;
  Chunks chunks;
  at::parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    std::lock_guard<std::mutex> lock(mutex);
    chunks.insert({b, e});
  });
  return chunks;
}

TEST(Parallel, ChunksDoNotDependOnThreads) {
  for (int64_t n : {2, 7, 100, 129, 1000, 65537}) {
    for (int64_t grain : {0, 1, 3, 64, 1000}) {
      const Chunks one = chunks_of(5, 5 + n, grain, 1);
      EXPECT_EQ(one, chunks_of(5, 5 + n, grain, 2));
      EXPECT_EQ(one, chunks_of(5, 5 + n, grain, 7));
      EXPECT_EQ(static_cast<int64_t>(one.size()), at::chunk_count(n, grain));
      EXPECT_LE(static_cast<int64_t>(one.size()), at::kMaxChunks);
      int64_t expected = 5;
      for (auto [b, e] : one) {
        EXPECT_EQ(b, expected);
        EXPECT_LT(b, e);
        expected = e;
      }
      EXPECT_EQ(expected, 5 + n);
    }
  }
}

TEST(Parallel, ChunkSizeNearTheLimitsDoesNotOverflow) {
  const int64_t big = INT64_MAX;
  EXPECT_EQ(at::chunk_count(big, big), 1);
  EXPECT_EQ(at::chunk_count(big, big - 1), 2);
  EXPECT_LE(at::chunk_count(big, 1), at::kMaxChunks);
  EXPECT_EQ(at::chunk_count(0, 5), 0);
}

TEST(Parallel, EmptyRangeCallsNothing) {
  at::parallel_for(3, 3, 1, [](int64_t, int64_t) { FAIL(); });
  at::parallel_for(3, 1, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(Parallel, EveryElementOnceManyRegions) {
  Threads scope(4);
  std::vector<int> hits(1000);
  for (int round = 0; round < 3000; ++round) {
    at::parallel_for(0, 1000, 50, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) ++hits[i];
    });
  }
  for (int h : hits) ASSERT_EQ(h, 3000);
}

TEST(Parallel, ReduceBitsDoNotDependOnThreads) {
  std::vector<float> x(100003);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1.0f / static_cast<float>(i + 1);
  const auto sum = [&](int threads) {
    Threads scope(threads);
    return at::parallel_reduce(
        int64_t{0}, static_cast<int64_t>(x.size()), 100, 0.0f,
        [&](int64_t b, int64_t e, float s) {
          for (int64_t i = b; i < e; ++i) s += x[i];
          return s;
        },
        [](float a, float b) { return a + b; });
  };
  const float one = sum(1);
  for (int round = 0; round < 50; ++round) ASSERT_EQ(one, sum(2 + round % 5));
}

TEST(Parallel, ReduceOfBoolAndEmpty) {
  const auto all = [](int64_t n) {
    return at::parallel_reduce(
        int64_t{0}, n, 1, true, [](int64_t b, int64_t, bool v) { return v && b != 40; },
        [](bool a, bool b) { return a && b; });
  };
  EXPECT_TRUE(all(0));
  EXPECT_TRUE(all(30));
  EXPECT_FALSE(all(100));
}

TEST(Parallel, LowestErrorWinsAndPoolStaysUsable) {
  for (int threads : {1, 2, 5}) {
    Threads scope(threads);
    for (int round = 0; round < 100; ++round) {
      try {
        at::parallel_for(0, 100, 1, [](int64_t b, int64_t) {
          if (b >= 37) throw c10::Error("chunk " + std::to_string(b));
        });
        FAIL();
      } catch (const c10::Error& error) {
        ASSERT_STREQ(error.what(), "chunk 37");
      }
    }
  }
}

TEST(Parallel, NestedRegionsRunInPlace) {
  Threads scope(3);
  std::atomic<int> count{0};
  EXPECT_FALSE(at::in_parallel_region());
  at::parallel_for(0, 8, 1, [&](int64_t, int64_t) {
    EXPECT_TRUE(at::in_parallel_region());
    const auto self = std::this_thread::get_id();
    at::parallel_for(0, 10, 2, [&](int64_t b, int64_t e) {
      EXPECT_EQ(self, std::this_thread::get_id());
      count += static_cast<int>(e - b);
    });
    EXPECT_GE(at::get_thread_num(), 0);
    EXPECT_LT(at::get_thread_num(), 3);
  });
  EXPECT_EQ(count, 80);
  EXPECT_FALSE(at::in_parallel_region());
}

TEST(Parallel, ManyCallersAtOnce) {
  Threads scope(3);
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int t = 0; t < 24; ++t) { // more than the pool has slots
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        at::parallel_for(0, 64, 4, [&](int64_t b, int64_t e) { total += e - b; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 24 * 100 * 64);
}

TEST(Parallel, ThreadCountCanChangeAndIsChecked) {
  Threads scope(2);
  for (int n : {1, 6, 2, 9, 3}) {
    at::set_num_threads(n);
    EXPECT_EQ(at::get_num_threads(), n);
    std::atomic<int> count{0};
    at::parallel_for(0, 100, 1, [&](int64_t, int64_t) {
      EXPECT_LT(at::get_thread_num(), n);
      ++count;
    });
    EXPECT_EQ(count, 100);
  }
  EXPECT_THROW(at::set_num_threads(0), c10::Error);
  EXPECT_THROW(at::set_num_interop_threads(-1), c10::Error);
}

std::atomic<int> g_polls{0};
bool poll_and_cancel() { return ++g_polls >= 2; }
bool poll_and_go_on() { return ++g_polls, false; }

TEST(Parallel, InterruptCancelsSoon) {
  for (int threads : {1, 2}) {
    Threads scope(threads);
    g_polls = 0;
    at::set_interrupt_check(poll_and_cancel);
    std::atomic<int> ran{0};
    const auto slow = [&](int64_t, int64_t) {
      ++ran;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    };
    EXPECT_THROW(at::parallel_for(0, 128, 1, slow), c10::InterruptedError);
    at::set_interrupt_check(nullptr);
    EXPECT_EQ(g_polls, 2);
    EXPECT_LT(ran, 60);
  }
}

TEST(Parallel, InterruptReachesNestedLoops) {
  Threads scope(2);
  g_polls = 0;
  at::set_interrupt_check(poll_and_cancel);
  std::atomic<int> ran{0};
  const auto outer = [&](int64_t, int64_t) {
    at::parallel_for(0, 128, 1, [&](int64_t, int64_t) {
      ++ran;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    });
  };
  EXPECT_THROW(at::parallel_for(0, 2, 1, outer), c10::InterruptedError);
  at::set_interrupt_check(nullptr);
  EXPECT_LT(ran, 100);
}

TEST(Parallel, ShortRegionsAreNotPolled) {
  g_polls = 0;
  at::set_interrupt_check(poll_and_go_on);
  for (int i = 0; i < 100; ++i) at::parallel_for(0, 64, 1, [](int64_t, int64_t) {});
  at::set_interrupt_check(nullptr);
  EXPECT_EQ(g_polls, 0);
}

int g_entered = 0;
void* enter_hook() { return ++g_entered, &g_entered; }
void leave_hook(void* context) {
  EXPECT_EQ(context, &g_entered);
  --g_entered;
}

TEST(Parallel, BlockingRegionEntersOnce) {
  Threads scope(2);
  at::set_blocking_hooks({enter_hook, leave_hook});
  {
    at::BlockingRegion outer;
    EXPECT_EQ(g_entered, 1);
    at::BlockingRegion inner;
    EXPECT_EQ(g_entered, 1);
  }
  EXPECT_EQ(g_entered, 0);
  at::parallel_for(0, 10, 1, [](int64_t, int64_t) {
    at::BlockingRegion region;
    EXPECT_EQ(g_entered, 0);
  });
  at::set_blocking_hooks({nullptr, nullptr});
}

TEST(Parallel, WorkersBlockSignals) {
  Threads scope(3);
  at::parallel_for(0, 64, 1, [](int64_t, int64_t) {
    if (at::get_thread_num() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_EQ(sigismember(&mask, SIGINT), 1);
  });
}

/// Runs a region in a forked child; true when it ended well within the alarm.
bool child_can_run() {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(10);
    std::atomic<int> count{0};
    at::parallel_for(0, 100, 1, [&](int64_t, int64_t) { ++count; });
    _exit(count == 100 ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Parallel, WorksAfterForkEvenWhileAnotherThreadRuns) {
  Threads scope(3);
  at::parallel_for(0, 100, 1, [](int64_t, int64_t) {});
  EXPECT_TRUE(child_can_run());
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      at::parallel_for(0, 64, 1, [](int64_t, int64_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      });
    }
  });
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(child_can_run());
  stop = true;
  busy.join();
}

TEST(Parallel, ForkInsideARegionRaisesOrFinishesInTheChild) {
  Threads scope(3);
  const pid_t parent = getpid();
  pid_t child = -1;
  const auto body = [&](int64_t b, int64_t) {
    if (b == 0 && at::get_thread_num() == 0) child = fork();
    if (getpid() != parent) alarm(10);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  try {
    at::parallel_for(0, 20, 1, body);
    if (getpid() != parent) _exit(0);
  } catch (const c10::Error&) {
    _exit(getpid() != parent ? 0 : 1);
  }
  if (child > 0) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

} // namespace
