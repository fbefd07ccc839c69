// See Cupti.h.
//
// Records come in buffers that the library asks for and hands back, full or flushed, from threads
// of its own. Each is read at once into Activity and the buffer is freed. The state is never
// destroyed: a buffer may come back while the process exits.
#include <ATen/cuda/Cupti.h>

#include <cxxabi.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <ATen/cuda/VendorLibrary.h>
#include <c10/cuda/Driver.h>

namespace at::cuda {
namespace {

// ---- the library --------------------------------------------------------------------------------
using Status = int;
constexpr Status kSuccess = 0;

enum RecordKind : uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kConcurrentKernel = 10,
  kMemcpyPeer = 22,
  kExternalCorrelation = 39,
};
constexpr RecordKind kKinds[] = {
    kExternalCorrelation, kDriver, kRuntime, kConcurrentKernel, kMemcpy, kMemset, kMemcpyPeer};
enum CallDomain : uint32_t { kDriverDomain = 1, kRuntimeDomain = 2 };
constexpr uint32_t kMarkKind = 3; // the first of those left to the caller
constexpr uint32_t kFlushForced = 1;

// The beginnings of the records, packed to 8 bytes. They are the same from CUDA 12.0 to 13: newer
// versions only add fields behind them, so what is read here is what every version has.
struct KernelRecord {
  uint32_t kind;
  uint8_t cache_config, shared_config;
  uint16_t registers;
  uint32_t partitioned_requested, partitioned_executed;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared, dynamic_shared;
  uint32_t local_per_thread, local_total, correlation;
  int64_t grid_id;
  const char* name;
};
struct CopyRecord {
  uint32_t kind;
  uint8_t copy, source, target, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};
struct FillRecord {
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};
struct PeerCopyRecord {
  uint32_t kind;
  uint8_t copy, source, target, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t source_device, source_context, target_device, target_context, correlation;
};
struct CallRecord {
  uint32_t kind, call;
  uint64_t start, end;
  uint32_t process, thread, correlation, result;
};
struct MarkRecord {
  uint32_t kind, mark_kind;
  uint64_t mark;
  uint32_t correlation, reserved;
};
static_assert(offsetof(KernelRecord, start) == 16 && offsetof(KernelRecord, device) == 40);
static_assert(offsetof(KernelRecord, correlation) == 92 && offsetof(KernelRecord, name) == 104);
static_assert(offsetof(CopyRecord, device) == 32 && offsetof(CopyRecord, correlation) == 44);
static_assert(offsetof(FillRecord, device) == 32 && offsetof(FillRecord, correlation) == 44);
static_assert(offsetof(PeerCopyRecord, correlation) == 60);
static_assert(offsetof(CallRecord, correlation) == 32 && sizeof(CallRecord) == 40);
static_assert(offsetof(MarkRecord, correlation) == 16 && sizeof(MarkRecord) == 24);

// That of CUDA 12.0; from 13.0 on versions are written 130000 and so on.
constexpr uint32_t kOldestVersion = 18;

using BufferRequested = void (*)(uint8_t**, size_t*, size_t*);
using BufferCompleted = void (*)(void*, uint32_t, uint8_t*, size_t, size_t);

struct Library {
  Status (*cuptiGetVersion)(uint32_t*);
  Status (*cuptiGetTimestamp)(uint64_t*);
  Status (*cuptiGetResultString)(Status, const char**);
  Status (*cuptiGetCallbackName)(uint32_t, uint32_t, const char**);
  Status (*cuptiActivityRegisterCallbacks)(BufferRequested, BufferCompleted);
  Status (*cuptiActivityEnable)(uint32_t);
  Status (*cuptiActivityDisable)(uint32_t);
  Status (*cuptiActivityFlushAll)(uint32_t);
  Status (*cuptiActivityGetNextRecord)(uint8_t*, size_t, uint8_t**);
  Status (*cuptiActivityPushExternalCorrelationId)(uint32_t, uint64_t);
  Status (*cuptiActivityPopExternalCorrelationId)(uint32_t, uint64_t*);
};

const Library* library() {
#define CRESSET_FIND(name) CRESSET_VENDOR_FUNCTION(Library, name)
  static const Library* const loaded = vendor_table<Library>(
      {"libcupti.so.13", "libcupti.so.12", "libcupti.so"},
      {CRESSET_FIND(cuptiGetVersion), CRESSET_FIND(cuptiGetTimestamp),
       CRESSET_FIND(cuptiGetResultString), CRESSET_FIND(cuptiGetCallbackName),
       CRESSET_FIND(cuptiActivityRegisterCallbacks), CRESSET_FIND(cuptiActivityEnable),
       CRESSET_FIND(cuptiActivityDisable), CRESSET_FIND(cuptiActivityFlushAll),
       CRESSET_FIND(cuptiActivityGetNextRecord),
       CRESSET_FIND(cuptiActivityPushExternalCorrelationId),
       CRESSET_FIND(cuptiActivityPopExternalCorrelationId)});
#undef CRESSET_FIND
  return loaded;
}

// ---- the record ---------------------------------------------------------------------------------
// A moment on both clocks.
struct Tick {
  int64_t ours = 0;
  int64_t theirs = 0;
};

struct State {
  std::mutex control; // starting and stopping
  std::mutex mutex;   // what follows
  bool keeping = false;
  std::vector<Activity> activities;
  std::unordered_map<uint32_t, uint64_t> marks; // by correlation
  Tick begin;
};

State& state() {
  static State* const s = new State;
  return *s;
}
// Read by every mark, so outside of the lock.
std::atomic<bool> recording{false};

constexpr size_t kBufferBytes = 4 << 20;

void buffer_requested(uint8_t** buffer, size_t* size, size_t* records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes)); // null: records are dropped
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *records = 0; // as many as fit
}

const char* copy_name(uint8_t kind) {
  static const char* const names[] = {"Memcpy Unknown", "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA",
                                      "Memcpy AtoH",    "Memcpy AtoA", "Memcpy AtoD", "Memcpy DtoA",
                                      "Memcpy DtoD",    "Memcpy HtoH", "Memcpy PtoP"};
  return kind < std::size(names) ? names[kind] : names[0];
}

// Names as the vendor's tools write the two ends: pageable, pinned, device, array, managed.
std::string copy_name(uint8_t kind, uint8_t source, uint8_t target) {
  static const char* const ends[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                     "Array",   "Managed",  "Device Static", "Managed Static"};
  const auto end = [&](uint8_t at) { return at < std::size(ends) ? ends[at] : ends[0]; };
  return std::string(copy_name(kind)) + " (" + end(source) + " -> " + end(target) + ")";
}

std::string plain_name(const char* name) {
  if (name == nullptr) return "<unknown kernel>";
  if (std::strncmp(name, "_Z", 2) != 0) return name;
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string out = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return out;
}

// cudaLaunchKernel_v7000 and cuMemcpyHtoDAsync_v2 under the names that programs call.
std::string without_version(std::string name) {
  const size_t end = name.find_last_not_of("0123456789");
  if (end != std::string::npos && end + 1 < name.size() && end >= 1 && name[end] == 'v' &&
      name[end - 1] == '_')
    name.resize(end - 1);
  return name;
}

template <class Record> Activity work_of(const Record& record, ActivityKind kind) {
  Activity a;
  a.kind = kind;
  a.start = static_cast<int64_t>(record.start);
  a.end = static_cast<int64_t>(record.end);
  a.device = record.device;
  a.context = record.context;
  a.stream = record.stream;
  a.correlation = record.correlation;
  return a;
}

void add(State& s, const KernelRecord& record) {
  Activity a = work_of(record, ActivityKind::Kernel);
  a.name = plain_name(record.name);
  std::copy(record.grid, record.grid + 3, a.grid);
  std::copy(record.block, record.block + 3, a.block);
  a.shared_memory = record.static_shared + record.dynamic_shared;
  a.registers = record.registers;
  s.activities.push_back(std::move(a));
}
template <class Record> void add_copy(State& s, const Record& record) {
  Activity a = work_of(record, ActivityKind::Copy);
  a.name = copy_name(record.copy, record.source, record.target);
  a.bytes = record.bytes;
  s.activities.push_back(std::move(a));
}
void add(State& s, const CopyRecord& record) { add_copy(s, record); }
void add(State& s, const PeerCopyRecord& record) { add_copy(s, record); }
void add(State& s, const FillRecord& record) {
  Activity a = work_of(record, ActivityKind::Fill);
  a.name = "Memset (Device)";
  a.bytes = record.bytes;
  s.activities.push_back(std::move(a));
}
void add(State& s, const CallRecord& record) {
  const bool runtime = record.kind == kRuntime;
  const char* name = nullptr;
  library()->cuptiGetCallbackName(runtime ? kRuntimeDomain : kDriverDomain, record.call, &name);
  Activity a;
  a.kind = runtime ? ActivityKind::RuntimeCall : ActivityKind::DriverCall;
  a.name = name == nullptr ? "<unknown call>" : without_version(name);
  a.start = static_cast<int64_t>(record.start);
  a.end = static_cast<int64_t>(record.end);
  a.thread = record.thread;
  a.correlation = record.correlation;
  s.activities.push_back(std::move(a));
}
void add(State& s, const MarkRecord& record) {
  if (record.mark_kind == kMarkKind) s.marks[record.correlation] = record.mark;
}

// A record that would reach beyond the buffer is not one that is known here.
template <class Record> void read_as(State& s, const uint8_t* at, size_t left) {
  if (left < sizeof(Record)) return;
  Record record;
  std::memcpy(&record, at, sizeof record);
  add(s, record);
}

void read_record(State& s, const uint8_t* at, size_t left) {
  uint32_t kind = 0;
  if (left < sizeof kind) return;
  std::memcpy(&kind, at, sizeof kind);
  switch (kind) {
  case kConcurrentKernel:
    return read_as<KernelRecord>(s, at, left);
  case kMemcpy:
    return read_as<CopyRecord>(s, at, left);
  case kMemcpyPeer:
    return read_as<PeerCopyRecord>(s, at, left);
  case kMemset:
    return read_as<FillRecord>(s, at, left);
  case kDriver:
  case kRuntime:
    return read_as<CallRecord>(s, at, left);
  case kExternalCorrelation:
    return read_as<MarkRecord>(s, at, left);
  default:
    return;
  }
}

void buffer_completed(void*, uint32_t, uint8_t* buffer, size_t, size_t filled) {
  State& s = state();
  try {
    std::lock_guard<std::mutex> lock(s.mutex);
    uint8_t* record = nullptr;
    while (s.keeping && library()->cuptiActivityGetNextRecord(buffer, filled, &record) == kSuccess)
      read_record(s, record, static_cast<size_t>(buffer + filled - record));
  } catch (const std::exception&) { // out of memory: what was read stays
  }
  std::free(buffer);
}

// ---- clocks -------------------------------------------------------------------------------------
int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Their clock between two readings of ours, the closest pair of several.
bool read_clocks(const Library& lib, Tick& out) {
  int64_t closest = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    uint64_t theirs = 0;
    const int64_t before = steady_now();
    if (lib.cuptiGetTimestamp(&theirs) != kSuccess) return false;
    const int64_t after = steady_now();
    if (after - before >= closest) continue;
    closest = after - before;
    out = {before + closest / 2, static_cast<int64_t>(theirs)};
  }
  return true;
}

// Their clock may be corrected while it runs, ours is not: the difference at a time between two
// readings lies between the differences there.
class Clock {
 public:
  Clock(Tick begin, Tick end)
      : begin_(begin), offset_(begin.ours - begin.theirs),
        drift_(end.theirs > begin.theirs
                   ? static_cast<double>((end.ours - end.theirs) - (begin.ours - begin.theirs)) /
                         static_cast<double>(end.theirs - begin.theirs)
                   : 0) {}
  int64_t ours(int64_t theirs) const {
    return theirs + offset_ +
           static_cast<int64_t>(drift_ * static_cast<double>(theirs - begin_.theirs));
  }

 private:
  Tick begin_;
  int64_t offset_;
  double drift_;
};

std::string text_of(const Library& lib, Status status, const char* call) {
  const char* text = nullptr;
  lib.cuptiGetResultString(status, &text);
  return std::string(call) + " returned " + (text == nullptr ? std::to_string(status) : text);
}

void disable_all(const Library& lib) {
  for (const RecordKind kind : kKinds) lib.cuptiActivityDisable(kind);
}

// "" on success; otherwise why not.
std::string enable_all(const Library& lib) {
  static const Status registered =
      lib.cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
  if (registered != kSuccess) return text_of(lib, registered, "cuptiActivityRegisterCallbacks");
  for (const RecordKind kind : kKinds) {
    const Status status = lib.cuptiActivityEnable(kind);
    // Copies between devices are a kind of their own only where there is more than one.
    if (status == kSuccess || kind == kMemcpyPeer) continue;
    disable_all(lib);
    return text_of(lib, status, "cuptiActivityEnable");
  }
  return "";
}

void forget_in_child() { recording.store(false); }

// Calls that only look at or prepare something would fill the timeline; kept are those that started
// work and those that wait, allocate or load.
bool worth_keeping(const Activity& call, const std::vector<uint32_t>& with_work) {
  if (std::binary_search(with_work.begin(), with_work.end(), call.correlation)) return true;
  for (const char* part : {"Synchronize", "Launch", "Alloc", "Free", "MemMap", "MemUnmap",
                           "MemCreate", "MemRelease", "LoadData"})
    if (call.name.find(part) != std::string::npos) return true;
  return false;
}

std::vector<Activity> finished(State& s, const Clock& clock) {
  std::vector<uint32_t> with_work;
  for (const Activity& a : s.activities)
    if (a.kind < ActivityKind::DriverCall) with_work.push_back(a.correlation);
  std::sort(with_work.begin(), with_work.end());
  std::vector<Activity> out;
  for (Activity& a : s.activities) {
    const bool is_call = a.kind >= ActivityKind::DriverCall;
    if (a.start == 0 || a.end < a.start) continue; // not finished, or its times were lost
    if (is_call && !worth_keeping(a, with_work)) continue;
    const auto mark = s.marks.find(a.correlation);
    if (mark != s.marks.end()) a.mark = mark->second;
    a.start = clock.ours(a.start);
    a.end = clock.ours(a.end);
    out.push_back(std::move(a));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Activity& x, const Activity& y) { return x.start < y.start; });
  return out;
}

void clear(State& s, bool keeping) {
  std::lock_guard<std::mutex> lock(s.mutex);
  s.keeping = keeping;
  s.activities.clear();
  s.marks.clear();
}

} // namespace

std::string start_activity_record() {
  if (c10::cuda::in_bad_fork()) return "the process was forked from one that used CUDA";
  const Library* const lib = library();
  if (lib == nullptr) return "libcupti.so.13 or .12 could not be loaded";
  State& s = state();
  std::lock_guard<std::mutex> lock(s.control);
  if (recording.load()) return "another thread records the GPU";
  uint32_t version = 0;
  const Status status = lib->cuptiGetVersion(&version);
  if (status != kSuccess) return text_of(*lib, status, "cuptiGetVersion");
  if (version < kOldestVersion)
    return "the version " + std::to_string(version) + " of libcupti is too old";
  static const int hooked = pthread_atfork(nullptr, nullptr, forget_in_child);
  (void)hooked;
  clear(s, true);
  std::string problem = enable_all(*lib);
  if (problem.empty() && !read_clocks(*lib, s.begin)) {
    disable_all(*lib);
    problem = "its clock cannot be read";
  }
  if (!problem.empty()) {
    clear(s, false);
    return problem;
  }
  recording.store(true);
  return "";
}

std::vector<Activity> stop_activity_record() {
  State& s = state();
  if (!recording.load()) return {};
  const Library& lib = *library();
  std::lock_guard<std::mutex> lock(s.control);
  recording.store(false);
  Tick end = s.begin;
  read_clocks(lib, end);
  lib.cuptiActivityFlushAll(0);
  disable_all(lib);
  lib.cuptiActivityFlushAll(kFlushForced); // what is in buffers that are still open
  std::vector<Activity> out;
  {
    std::lock_guard<std::mutex> records(s.mutex);
    out = finished(s, Clock(s.begin, end));
  }
  clear(s, false);
  return out;
}

void abandon_activity_record() noexcept {
  if (!recording.exchange(false)) return;
  State& s = state();
  std::lock_guard<std::mutex> lock(s.control);
  disable_all(*library());
  clear(s, false);
}

void push_activity_mark(uint64_t mark) noexcept {
  if (recording.load(std::memory_order_relaxed))
    library()->cuptiActivityPushExternalCorrelationId(kMarkKind, mark);
}

void pop_activity_mark() noexcept {
  uint64_t last = 0;
  if (recording.load(std::memory_order_relaxed))
    library()->cuptiActivityPopExternalCorrelationId(kMarkKind, &last);
}

} // namespace at::cuda
