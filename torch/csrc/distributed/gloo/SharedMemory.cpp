// The memory itself is a file in /dev/shm that loses its name as soon as everybody has mapped it,
// so that nothing is left behind whoever dies.
#include <torch/csrc/distributed/gloo/SharedMemory.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace c10d::engine::gloo_backend {

using Clock = std::chrono::steady_clock;

namespace {

// A slot fits the second cache of a core, with what it is combined with.
constexpr size_t kSlotBytes = size_t{1} << 18;
constexpr uint32_t kSlots = 4;
constexpr int kSpins = 2000;
constexpr Millis kLook = Millis(20);
enum Kind : uint32_t { AllReduce = 1, Broadcast, AllGather, ReduceScatter };
constexpr const char* kNames[] = {"", "all_reduce", "broadcast", "all_gather", "reduce_scatter"};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

size_t pages(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

void sleep_on(std::atomic<uint32_t>& word, uint32_t value, Millis time) {
  timespec limit{time.count() / 1000, time.count() % 1000 * 1000000};
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, value, &limit, nullptr, 0);
}

void wake(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, 1 << 30, nullptr, nullptr,
            0);
}

// Whether a process has ended, also one that its parent has not asked about yet.
bool is_gone(pid_t process) {
  if (::kill(process, 0) != 0) return errno == ESRCH;
  std::ifstream file(c10::str("/proc/", process, "/stat"));
  std::string text;
  std::getline(file, text);
  // "17 (name) S ...", where the name may hold anything.
  const size_t end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() &&
         (text[end + 2] == 'Z' || text[end + 2] == 'X');
}

// Equal for processes that can share memory and see each other: one run of one kernel, one user,
// one view of process numbers.
std::string machine() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char space[64] = "";
  const auto length = ::readlink("/proc/self/ns/pid", space, sizeof space - 1);
  if (length < 0) return {};
  return boot.empty() ? boot : c10::str(boot, " ", space, " ", ::getuid());
}

std::string key(const char* what, int rank) { return c10::str("cresset/memory/", what, rank); }

// Whether all ranks say the same.
bool all_say(Store& store, const char* what, int rank, int size, const std::string& word,
             Millis timeout) {
  store.set(key(what, rank), word);
  std::vector<std::string> keys;
  for (int other = 0; other < size; ++other) keys.push_back(key(what, other));
  store.wait(keys, timeout);
  bool same = true;
  for (const auto& name : keys) {
    const auto value = store.get(name);
    same = same && std::string(value.begin(), value.end()) == word;
  }
  return same;
}

} // namespace

struct alignas(64) SharedMemory::Rank {
  std::atomic<uint32_t> filled;
  alignas(64) std::atomic<uint32_t> emptied;
  alignas(64) std::atomic<uint32_t> sleepers;
  pid_t process;
};

struct alignas(64) SharedMemory::Slot {
  uint32_t kind;
  uint64_t bytes;
  alignas(64) char data[kSlotBytes];
};

std::unique_ptr<SharedMemory> SharedMemory::open(Store& store, int rank, int size, Millis timeout) {
  const char* setting = ::getenv("CRESSET_SHARED_MEMORY");
  const bool wanted = !setting || std::string(setting) != "0";
  const std::string here = wanted ? machine() : std::string();
  if (!all_say(store, "machine", rank, size, here, timeout) || here.empty()) return nullptr;
  const size_t bytes =
      pages(sizeof(Rank) * size) + pages(sizeof(Slot) * kSlots * static_cast<size_t>(size));
  int file = -1;
  std::string path;
  if (rank == 0) {
    path = "/dev/shm/cresset-XXXXXX";
    file = ::mkostemp(path.data(), O_CLOEXEC);
    // Memory that is promised and not there would be a crash later.
    if (file >= 0 && ::posix_fallocate(file, 0, static_cast<off_t>(bytes)) != 0) {
      ::close(file);
      ::unlink(path.c_str());
      file = -1;
    }
    store.set(key("file", 0), file >= 0 ? path : std::string("none"));
  } else {
    const auto value = store.get(key("file", 0));
    path.assign(value.begin(), value.end());
    if (path != "none") file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  }
  void* memory = MAP_FAILED;
  if (file >= 0) {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
  }
  const bool mapped = memory != MAP_FAILED;
  if (mapped) (static_cast<Rank*>(memory) + rank)->process = ::getpid();
  const bool all = all_say(store, "mapped", rank, size, mapped ? "yes" : "no", timeout);
  if (rank == 0 && path != "none") ::unlink(path.c_str());
  if (!mapped) return nullptr;
  if (!all) {
    ::munmap(memory, bytes);
    return nullptr;
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(memory, bytes, rank, size));
}

SharedMemory::SharedMemory(void* memory, size_t bytes, int rank, int size)
    : memory_(static_cast<char*>(memory)), bytes_(bytes), rank_(rank), size_(size) {}

SharedMemory::~SharedMemory() { ::munmap(memory_, bytes_); }

SharedMemory::Rank& SharedMemory::control(int rank) const {
  return reinterpret_cast<Rank*>(memory_)[rank];
}

SharedMemory::Slot& SharedMemory::slot(int rank, uint32_t step) const {
  auto* slots = reinterpret_cast<Slot*>(memory_ + pages(sizeof(Rank) * size_));
  return slots[static_cast<uint32_t>(rank) * kSlots + step % kSlots];
}

// ---- Note [Steps of the shared memory]
// Counters are compared by their difference: they may run over.
void SharedMemory::wait(std::atomic<uint32_t>& counter, uint32_t at_least, int other,
                        Millis timeout) {
  const auto reached = [&](uint32_t value) { return static_cast<int32_t>(value - at_least) >= 0; };
  for (int i = 0; i < kSpins; ++i) {
    if (reached(counter.load(std::memory_order_acquire))) return;
    relax();
  }
  const auto end = Clock::now() + timeout;
  auto& sleepers = control(other).sleepers;
  for (;;) {
    sleepers.fetch_add(1);
    const uint32_t value = counter.load();
    if (!reached(value)) sleep_on(counter, value, kLook);
    sleepers.fetch_sub(1);
    if (reached(counter.load(std::memory_order_acquire))) return;
    if (is_interrupted_) break;
    is_broken_ = true; // unless it goes on after all
    if (is_gone(control(other).process)) {
      TORCH_CHECK(reached(counter.load()), "Connection closed by peer: the process of rank ", other,
                  " is gone");
    }
    TORCH_CHECK(Clock::now() < end, "Timed out waiting ", timeout.count(), "ms for rank ", other);
    is_broken_ = false;
  }
  is_broken_ = true;
  TORCH_CHECK(false, "the operation was aborted");
}

char* SharedMemory::begin_fill(Millis timeout) {
  TORCH_CHECK(!is_broken_, "an earlier operation of the group has failed");
  for (int other = 0; other < size_; ++other) {
    if (other != rank_) wait(control(other).emptied, step_ + 1 - kSlots, other, timeout);
  }
  return slot(rank_, step_).data;
}

void SharedMemory::end_fill(uint32_t kind, uint64_t bytes) {
  slot(rank_, step_).kind = kind;
  slot(rank_, step_).bytes = bytes;
  control(rank_).filled.store(step_ + 1);
  if (control(rank_).sleepers.load()) wake(control(rank_).filled);
}

const char* SharedMemory::filled(int other, uint32_t kind, uint64_t bytes, Millis timeout) {
  wait(control(other).filled, step_ + 1, other, timeout);
  const Slot& got = slot(other, step_);
  if (got.kind != kind || got.bytes != bytes) {
    is_broken_ = true;
    TORCH_CHECK(false, "rank ", other, " runs ", kNames[std::min(got.kind, 4u)], " of ", got.bytes,
                " bytes while rank ", rank_, " runs ", kNames[kind], " of ", bytes, " bytes");
  }
  return got.data;
}

void SharedMemory::end_step() {
  control(rank_).emptied.store(step_ + 1);
  if (control(rank_).sleepers.load()) wake(control(rank_).emptied);
  ++step_;
}

// ---- operations
// Everybody adds everything in the order of ranks: the same bits everywhere.
void SharedMemory::all_reduce(void* data, size_t count, size_t element,
                              const ReduceFunction& function, Millis timeout) {
  const size_t most = kSlotBytes / element;
  const uint64_t whole = count * element;
  auto* at = static_cast<char*>(data);
  for (size_t done = 0; done < count; done += most, at += most * element) {
    const size_t now = std::min(most, count - done);
    char* own = begin_fill(timeout);
    std::memcpy(own, at, now * element);
    end_fill(AllReduce, whole);
    const char* sum = nullptr;
    for (int other = 0; other < size_; ++other) {
      const char* part = other == rank_ ? own : filled(other, AllReduce, whole, timeout);
      if (other > 0) function(at, sum, part, now);
      sum = other > 0 ? at : part;
    }
    end_step();
  }
}

void SharedMemory::broadcast(void* data, size_t bytes, int root, Millis timeout) {
  auto* at = static_cast<char*>(data);
  for (size_t done = 0; done < bytes; done += kSlotBytes) {
    const size_t now = std::min(kSlotBytes, bytes - done);
    char* own = begin_fill(timeout);
    if (rank_ == root) std::memcpy(own, at + done, now);
    end_fill(Broadcast, bytes);
    if (rank_ != root) std::memcpy(at + done, filled(root, Broadcast, bytes, timeout), now);
    end_step();
  }
}

void SharedMemory::all_gather(void* out, const void* in, size_t bytes, Millis timeout) {
  auto* to = static_cast<char*>(out);
  const auto* from = static_cast<const char*>(in);
  for (size_t done = 0; done < bytes; done += kSlotBytes) {
    const size_t now = std::min(kSlotBytes, bytes - done);
    std::memcpy(begin_fill(timeout), from + done, now);
    end_fill(AllGather, bytes);
    for (int i = 1; i < size_; ++i) {
      const int other = (rank_ + i) % size_;
      const char* part = filled(other, AllGather, bytes, timeout);
      std::memcpy(to + static_cast<size_t>(other) * bytes + done, part, now);
    }
    end_step();
  }
  char* own = to + static_cast<size_t>(rank_) * bytes;
  if (own != from) std::memcpy(own, from, bytes);
}

// A slot holds a piece of the part of every rank.
void SharedMemory::reduce_scatter(void* out, const void* in, size_t count, size_t element,
                                  const ReduceFunction& function, Millis timeout) {
  const size_t most = kSlotBytes / element / static_cast<size_t>(size_);
  const uint64_t whole = count * element;
  auto* to = static_cast<char*>(out);
  const auto* from = static_cast<const char*>(in);
  for (size_t done = 0; done < count; done += most, to += most * element) {
    const size_t now = std::min(most, count - done);
    const auto piece = [&](int part) {
      return from + (static_cast<size_t>(part) * count + done) * element;
    };
    char* own = begin_fill(timeout);
    for (int part = 0; part < size_; ++part) {
      if (part == rank_) continue;
      std::memcpy(own + static_cast<size_t>(part) * most * element, piece(part), now * element);
    }
    end_fill(ReduceScatter, whole);
    const char* sum = nullptr;
    for (int other = 0; other < size_; ++other) {
      const char* part = piece(rank_);
      if (other != rank_) {
        part = filled(other, ReduceScatter, whole, timeout) +
               static_cast<size_t>(rank_) * most * element;
      }
      if (other > 0) function(to, sum, part, now);
      sum = other > 0 ? to : part;
    }
    end_step();
  }
}

} // namespace c10d::engine::gloo_backend
