// The state shared by the parts of the emulated driver (libcuda.so.1). Everything stands behind one
// lock: streams are synchronous, so there is nothing to overlap, and tests gain a driver whose
// behaviour repeats exactly. See README.md for what is checked that a GPU would let pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#define EMULATOR_API extern "C" __attribute__((visibility("default")))

namespace emulator {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;

enum : CUresult {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinary = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kIllegalAddress = 700,
  kPeerEnabled = 704,
  kPeerNotEnabled = 705,
  kLaunchFailed = 719,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
};

// A range of device addresses. Its pages are PROT_NONE except while a kernel or copy runs.
struct Region {
  size_t size = 0;
  int device = 0;
};

struct Module {
  void* handle = nullptr;
  int device = 0;
};

struct Function {
  Module* module = nullptr;
  std::string name;
  void (*call)(void**) = nullptr;
  const unsigned* sizes = nullptr; // of the parameters, ended by ~0u
  unsigned dynamic_limit = 48 * 1024;
};

struct Context {
  int device = 0;
  int retained = 0;
  CUresult sticky = kSuccess; // once a kernel failed every later call reports it, as on a GPU
  std::set<int> peers;        // devices whose memory kernels of this one may touch
};

struct Graph {
  std::vector<std::function<CUresult()>> steps;
};

struct Stream {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  Graph* recording = nullptr;
  bool waited = false; // while it recorded, which spoils the recording
};

struct Event {
  int device = 0;
  unsigned flags = 0;
  bool recorded = false;
  double time_ms = 0;
};

struct State {
  std::recursive_mutex lock;
  bool initialized = false;
  int devices = 2;
  size_t capacity = 0; // bytes of each device
  std::vector<Context> contexts;
  std::vector<size_t> used;
  std::map<uintptr_t, Region> regions; // allocated or mapped device memory by address
  std::map<uintptr_t, Region> reserved;
  std::map<uintptr_t, size_t> pinned;
  std::set<uintptr_t> globals; // variables of programs that were asked for
  std::map<uint64_t, Region> physical;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Module*> modules;
  std::set<Function*> functions;
  uint64_t next_handle = 1;
};

State& state();
bool dry_run();     // CRESSET_EMULATOR_DRY: nothing is computed, so that the host's time can be
                    // measured
Context* current(); // of this thread; nullptr: none

// Every call into the driver starts with one of these: holds the lock and says whether the call
// may go on.
class Entry {
 public:
  explicit Entry(bool needs_context = true);
  CUresult error() const { return error_; }

 private:
  std::lock_guard<std::recursive_mutex> guard_;
  CUresult error_ = kSuccess;
};

// Opens the device memory that device `device` may touch; -1: all of it. Nests.
class Access {
 public:
  explicit Access(int device);
  ~Access();
  Access(const Access&) = delete;

 private:
  int device_;
};

// The whole range lies in live device memory (or, with host_allowed, in no device range at all).
bool valid_device_range(CUdeviceptr address, size_t bytes);
bool touches_device(const void* address);
// The device an address belongs to, -1 for host memory.
int device_of(CUdeviceptr address);

bool live(Stream* stream);        // also the three special values
Graph* recording(Stream* stream); // what the stream records into; nullptr: it runs
void record_kernel(Graph& graph, Function& function, const unsigned grid[3],
                   const unsigned block[3], unsigned shared_bytes, void** args);
CUresult run_kernel(Function& function, const unsigned grid[3], const unsigned block[3],
                    unsigned shared_bytes, void** args);

} // namespace emulator
