// The emulated libcupti.so.13: records of what the emulated driver and cuBLASLt do, with the
// records' layouts of CUDA 13 (of 12 on request), written field by field at the vendor's offsets,
// on a clock that is not the steady one. Buffers are left after a few records, so that a program
// sees many of them.
//
// CRESSET_EMULATOR_CUPTI: "refuse" another profiler is attached; "old" the library of CUDA 11;
// "12" the library of CUDA 12; "lost" kernels whose times were lost.
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "Observer.h"

#define EMULATOR_API extern "C" __attribute__((visibility("default")))

namespace {

using emulator::Observer;
using emulator::Work;
using emulator::WorkKind;

enum : int {
  kSuccess = 0,
  kInvalidParameter = 1,
  kMaxLimitReached = 12,
  kQueueEmpty = 18,
  kMultipleSubscribers = 39,
};
constexpr uint32_t kMemcpy = 1, kMemset = 2, kDriver = 4, kRuntime = 5, kKernel = 10, kPeer = 22,
                   kExternal = 39;
constexpr size_t kBytesUsed = 2048; // of each buffer

bool setting_is(const char* value) {
  const char* const text = std::getenv("CRESSET_EMULATOR_CUPTI");
  return text != nullptr && std::strcmp(text, value) == 0;
}

uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

size_t record_size(uint32_t kind) {
  const bool old = setting_is("12");
  switch (kind) {
  case kKernel:
    return old ? 208 : 248;
  case kMemcpy:
    return old ? 88 : 112;
  case kMemset:
    return old ? 88 : 104;
  case kPeer:
    return 96;
  case kDriver:
  case kRuntime:
    return 40;
  default:
    return 24;
  }
}

struct Buffer {
  uint8_t* data = nullptr;
  size_t size = 0, used = 0;
};

struct State {
  std::recursive_mutex mutex;
  void (*request)(uint8_t**, size_t*, size_t*) = nullptr;
  void (*complete)(void*, uint32_t, uint8_t*, size_t, size_t) = nullptr;
  std::set<uint32_t> enabled;
  std::vector<Buffer> full;
  Buffer open;
  std::map<std::string, uint32_t> call_numbers;
  std::vector<const char*> call_names;
  std::map<const void*, uint32_t> streams;
  std::set<std::string> kernel_names; // handed out by address
  uint32_t next_correlation = 1;
};
State& state() {
  static State* const s = new State;
  return *s;
}
thread_local std::map<uint32_t, std::vector<uint64_t>> marks;
thread_local uint32_t call_correlation = 0;
thread_local uint64_t call_start = 0, work_start = 0;

template <class T> void put(uint8_t* record, size_t offset, T value) {
  std::memcpy(record + offset, &value, sizeof value);
}

// A record of the size of its kind, filled with what a careless reader would notice.
uint8_t* new_record(uint32_t kind) {
  State& s = state();
  const size_t size = record_size(kind);
  if (s.open.data != nullptr && s.open.used + size > std::min(s.open.size, kBytesUsed)) {
    s.full.push_back(s.open);
    s.open = Buffer{};
  }
  if (s.open.data == nullptr) {
    size_t most = 0;
    s.request(&s.open.data, &s.open.size, &most);
    if (s.open.data == nullptr || s.open.size < size) return nullptr;
  }
  uint8_t* const record = s.open.data + s.open.used;
  s.open.used += size;
  std::memset(record, 0xAB, size);
  put<uint32_t>(record, 0, kind);
  return record;
}

void put_place(uint8_t* record, size_t offset, const Work& work) {
  State& s = state();
  const auto stream =
      s.streams.emplace(work.stream, static_cast<uint32_t>(s.streams.size() + 7)).first->second;
  put<uint32_t>(record, offset, static_cast<uint32_t>(work.device));
  put<uint32_t>(record, offset + 4, 1u);
  put<uint32_t>(record, offset + 8, stream);
}

void write_kernel(const Work& work, uint64_t end) {
  uint8_t* const r = new_record(kKernel);
  if (r == nullptr) return;
  const bool lost = setting_is("lost");
  put<uint16_t>(r, 6, 32);
  put<uint64_t>(r, 16, lost ? 0 : work_start);
  put<uint64_t>(r, 24, lost ? 0 : end);
  put_place(r, 40, work);
  for (int i = 0; i < 3; ++i) {
    put<int32_t>(r, 52 + 4 * i, work.grid ? static_cast<int32_t>(work.grid[i]) : 1);
    put<int32_t>(r, 64 + 4 * i, work.block ? static_cast<int32_t>(work.block[i]) : 1);
  }
  put<int32_t>(r, 76, 0);
  put<int32_t>(r, 80, static_cast<int32_t>(work.shared_bytes));
  put<uint32_t>(r, 92, call_correlation);
  put<const char*>(r, 104, state().kernel_names.insert(work.name).first->c_str());
}

void write_copy(const Work& work, uint64_t end) {
  const bool peer = work.kind == WorkKind::kPeerCopy;
  uint8_t* const r = new_record(peer ? kPeer : kMemcpy);
  if (r == nullptr) return;
  const bool from_host = work.from_side < 0, to_host = work.to_side < 0;
  put<uint8_t>(r, 4, peer ? 10 : from_host ? 1 : to_host ? 2 : 8);
  put<uint8_t>(r, 5, from_host ? 1 : 3);
  put<uint8_t>(r, 6, to_host ? 1 : 3);
  put<uint64_t>(r, 8, work.bytes);
  put<uint64_t>(r, 16, work_start);
  put<uint64_t>(r, 24, end);
  put_place(r, 32, work);
  put<uint32_t>(r, peer ? 60 : 44, call_correlation);
}

void write_fill(const Work& work, uint64_t end) {
  uint8_t* const r = new_record(kMemset);
  if (r == nullptr) return;
  put<uint64_t>(r, 8, work.bytes);
  put<uint64_t>(r, 16, work_start);
  put<uint64_t>(r, 24, end);
  put_place(r, 32, work);
  put<uint32_t>(r, 44, call_correlation);
}

void on_work(const Work& work, bool begins) {
  if (begins) {
    work_start = now();
    return;
  }
  State& s = state();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  const uint64_t end = now();
  if (work.kind == WorkKind::kKernel && s.enabled.count(kKernel)) write_kernel(work, end);
  if (work.kind == WorkKind::kCopy && s.enabled.count(kMemcpy)) write_copy(work, end);
  if (work.kind == WorkKind::kPeerCopy && s.enabled.count(kPeer)) write_copy(work, end);
  if (work.kind == WorkKind::kFill && s.enabled.count(kMemset)) write_fill(work, end);
}

void on_call(const char* name, bool begins) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  if (begins) {
    call_correlation = s.next_correlation++;
    call_start = now();
    return;
  }
  const uint32_t kind = std::strncmp(name, "cuda", 4) == 0 ? kRuntime : kDriver;
  if (!s.enabled.count(kind)) return;
  if (s.enabled.count(kExternal)) {
    for (const auto& [mark_kind, values] : marks) {
      uint8_t* const r = values.empty() ? nullptr : new_record(kExternal);
      if (r == nullptr) continue;
      put<uint32_t>(r, 4, mark_kind);
      put<uint64_t>(r, 8, values.back());
      put<uint32_t>(r, 16, call_correlation);
    }
  }
  uint8_t* const r = new_record(kind);
  if (r == nullptr) return;
  const auto number =
      s.call_numbers.emplace(name, static_cast<uint32_t>(s.call_numbers.size() + 1)).first;
  if (number->second > s.call_names.size()) s.call_names.push_back(number->first.c_str());
  put<uint32_t>(r, 4, number->second);
  put<uint64_t>(r, 8, call_start);
  put<uint64_t>(r, 16, now());
  put<uint32_t>(r, 28, static_cast<uint32_t>(pthread_self()));
  put<uint32_t>(r, 32, call_correlation);
  put<uint32_t>(r, 36, 0u);
}

constexpr Observer kObserver = {on_call, on_work};

// The driver is told while anything is enabled.
void observe(bool on) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return;
  using Function = void (*)(const Observer*);
  const auto tell = reinterpret_cast<Function>(dlsym(driver, "cressetEmulatorObserve"));
  if (tell != nullptr) tell(on ? &kObserver : nullptr);
}

} // namespace

EMULATOR_API int cuptiGetVersion(uint32_t* version) {
  *version = setting_is("old") ? 14 : setting_is("12") ? 22 : 130401;
  return kSuccess;
}
EMULATOR_API int cuptiGetTimestamp(uint64_t* time) {
  *time = now();
  return kSuccess;
}
EMULATOR_API int cuptiGetResultString(int status, const char** text) {
  *text = status == kMultipleSubscribers ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                                         : "CUPTI_ERROR_UNKNOWN";
  return kSuccess;
}
EMULATOR_API int cuptiGetCallbackName(uint32_t, uint32_t number, const char** name) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  if (number == 0 || number > s.call_names.size()) return kInvalidParameter;
  *name = s.call_names[number - 1];
  return kSuccess;
}
EMULATOR_API int cuptiActivityRegisterCallbacks(void (*request)(uint8_t**, size_t*, size_t*),
                                                void (*complete)(void*, uint32_t, uint8_t*, size_t,
                                                                 size_t)) {
  state().request = request;
  state().complete = complete;
  return kSuccess;
}
EMULATOR_API int cuptiActivityEnable(uint32_t kind) {
  if (setting_is("refuse")) return kMultipleSubscribers;
  State& s = state();
  if (s.request == nullptr) return kInvalidParameter;
  {
    std::lock_guard<std::recursive_mutex> lock(s.mutex);
    s.enabled.insert(kind);
  }
  observe(true);
  return kSuccess;
}
EMULATOR_API int cuptiActivityDisable(uint32_t kind) {
  State& s = state();
  bool idle;
  {
    std::lock_guard<std::recursive_mutex> lock(s.mutex);
    s.enabled.erase(kind);
    idle = s.enabled.empty();
  }
  if (idle) observe(false);
  return kSuccess;
}
EMULATOR_API int cuptiActivityFlushAll(uint32_t) {
  State& s = state();
  std::vector<Buffer> done;
  {
    std::lock_guard<std::recursive_mutex> lock(s.mutex);
    done.swap(s.full);
    if (s.open.data != nullptr) done.push_back(s.open);
    s.open = Buffer{};
  }
  for (const Buffer& b : done) s.complete(nullptr, 0, b.data, b.size, b.used);
  return kSuccess;
}
EMULATOR_API int cuptiActivityGetNextRecord(uint8_t* buffer, size_t used, uint8_t** record) {
  uint32_t kind = 0;
  uint8_t* next = buffer;
  if (*record != nullptr) {
    std::memcpy(&kind, *record, sizeof kind);
    next = *record + record_size(kind);
  }
  if (next >= buffer + used) return kMaxLimitReached;
  *record = next;
  return kSuccess;
}
EMULATOR_API int cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
  marks[kind].push_back(id);
  return kSuccess;
}
EMULATOR_API int cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t* last) {
  if (marks[kind].empty()) return kQueueEmpty;
  if (last != nullptr) *last = marks[kind].back();
  marks[kind].pop_back();
  return kSuccess;
}
