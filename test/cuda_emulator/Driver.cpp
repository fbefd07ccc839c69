// The emulated driver's devices, contexts, streams and events. Streams run at once, events are
// clock readings; what a real driver rejects (no context, a foreign or destroyed handle) is
// rejected here too, so that such mistakes show on machines without a GPU.
#include "Emulator.h"
#include "Observer.h"

#include <dlfcn.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulator {
namespace {

thread_local std::vector<Context*> context_stack;

double now_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

long long environment(const char* name, long long otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoll(text) : otherwise;
}

Context* context_of(void* handle) {
  for (Context& c : state().contexts) {
    if (&c == handle) {
      return &c;
    }
  }
  return nullptr;
}

bool bad_device(int device) { return device < 0 || device >= state().devices; }

// Numbers of CUdevice_attribute. The capability is one for which no machine code is ever embedded,
// so that programs are always compiled from their sources.
int attribute(int code, int device, bool& known) {
  known = true;
  switch (code) {
  case 1:
  case 2:
  case 3:
    return 1024;
  case 4:
    return 64;
  case 5:
    return 2147483647;
  case 6:
  case 7:
    return 65535;
  case 8:
    return 48 * 1024;
  case 9:
    return 65536;
  case 10:
    return 32;
  case 11:
    return 2147483647;
  case 12:
  case 82:
    return 65536;
  case 13:
    return 1000000;
  case 14:
    return 512;
  case 16:
    return 4; // multiprocessors: few, so that grids sized by them stay small
  case 19:
  case 31:
  case 41:
  case 78:
  case 95:
    return 1;
  case 33:
    return device + 1;
  case 36:
    return 1000000;
  case 37:
    return 256;
  case 38:
    return 1 << 20;
  case 39:
    return 2048;
  case 40:
    return 2;
  case 75:
    return 8;
  case 76:
    return 9;
  case 81:
    return 100 * 1024;
  case 97:
    return 227 * 1024;
  case 102:
    return environment("CRESSET_EMULATOR_VMM", 1) != 0;
  case 106:
    return 32;
  default:
    break;
  }
  known = code > 0 && code < 200;
  return 0;
}

} // namespace

State& state() {
  static State* s = new State; // never destroyed: exit handlers of others may still call
  return *s;
}

bool dry_run() {
  static const bool dry = std::getenv("CRESSET_EMULATOR_DRY") != nullptr;
  return dry;
}

Context* current() { return context_stack.empty() ? nullptr : context_stack.back(); }

Entry::Entry(bool needs_context) : guard_(state().lock) {
  if (!state().initialized) {
    error_ = kNotInitialized;
  } else if (needs_context) {
    error_ = current() ? current()->sticky : static_cast<CUresult>(kInvalidContext);
  }
}

bool live(Stream* stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 2 || state().streams.count(stream) != 0;
}

} // namespace emulator

using namespace emulator;

#define ENTER(...)                                                                                 \
  Entry entry{__VA_ARGS__};                                                                        \
  if (entry.error()) return entry.error();

EMULATOR_API CUresult cuInit(unsigned flags) {
  std::lock_guard<std::recursive_mutex> guard(state().lock);
  State& s = state();
  if (flags) {
    return kInvalidValue;
  }
  if (!s.initialized) {
    s.devices = static_cast<int>(environment("CRESSET_EMULATOR_DEVICES", 2));
    s.capacity = static_cast<size_t>(environment("CRESSET_EMULATOR_MEMORY", 2LL << 30));
    if (s.devices <= 0) {
      return kNoDevice;
    }
    s.contexts.resize(s.devices);
    s.used.resize(s.devices);
    for (int i = 0; i < s.devices; ++i) {
      s.contexts[i].device = i;
    }
    s.initialized = true;
  }
  return kSuccess;
}

EMULATOR_API CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}

// ---- errors
namespace {
struct ErrorText {
  CUresult code;
  const char *name, *text;
};
const ErrorText kErrors[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kNoBinary, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for this device"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kPeerEnabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {kPeerNotEnabled, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};
const ErrorText* find_error(CUresult code) {
  for (const ErrorText& e : kErrors) {
    if (e.code == code) {
      return &e;
    }
  }
  return nullptr;
}
} // namespace

EMULATOR_API CUresult cuGetErrorName(CUresult error, const char** text) {
  const ErrorText* found = find_error(error);
  *text = found ? found->name : nullptr;
  return found ? kSuccess : kInvalidValue;
}
EMULATOR_API CUresult cuGetErrorString(CUresult error, const char** text) {
  const ErrorText* found = find_error(error);
  *text = found ? found->text : nullptr;
  return found ? kSuccess : kInvalidValue;
}

EMULATOR_API CUresult cuGetProcAddress_v2(const char* symbol, void** address, int, uint64_t,
                                          int* status) {
  const std::string versioned = std::string(symbol) + "_v2";
  static void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  *address = dlsym(self, versioned.c_str());
  if (!*address) {
    *address = dlsym(self, symbol);
  }
  if (status) {
    *status = *address ? 0 : 1;
  }
  return *address ? kSuccess : kNotFound;
}

// ---- devices
EMULATOR_API CUresult cuDeviceGetCount(int* count) {
  ENTER(false)
  *count = state().devices;
  return kSuccess;
}
EMULATOR_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  ENTER(false)
  if (bad_device(ordinal)) {
    return kInvalidDevice;
  }
  *device = ordinal;
  return kSuccess;
}
EMULATOR_API CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  ENTER(false)
  if (bad_device(device)) {
    return kInvalidDevice;
  }
  std::snprintf(name, length, "Emulated GPU %d", device);
  return kSuccess;
}
EMULATOR_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  ENTER(false)
  if (bad_device(device)) {
    return kInvalidDevice;
  }
  *bytes = state().capacity;
  return kSuccess;
}
EMULATOR_API CUresult cuDeviceGetAttribute(int* value, int code, CUdevice device) {
  ENTER(false)
  if (bad_device(device)) {
    return kInvalidDevice;
  }
  bool known;
  *value = attribute(code, device, known);
  return known ? kSuccess : kInvalidValue;
}
EMULATOR_API CUresult cuDeviceGetUuid_v2(unsigned char* uuid, CUdevice device) {
  ENTER(false)
  if (bad_device(device)) {
    return kInvalidDevice;
  }
  std::memset(uuid, 0xe0 + device, 16);
  return kSuccess;
}
EMULATOR_API CUresult cuDeviceGetUuid(unsigned char* uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}
EMULATOR_API CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  ENTER(false)
  std::snprintf(text, length, "0000:%02x:00.0", device + 1);
  return kSuccess;
}
EMULATOR_API CUresult cuDeviceCanAccessPeer(int* can, CUdevice a, CUdevice b) {
  ENTER(false)
  if (bad_device(a) || bad_device(b)) {
    return kInvalidDevice;
  }
  *can = a != b;
  return kSuccess;
}

// ---- contexts
EMULATOR_API CUresult cuDevicePrimaryCtxRetain(void** context, CUdevice device) {
  ENTER(false)
  if (bad_device(device)) {
    return kInvalidDevice;
  }
  state().contexts[device].retained++;
  *context = &state().contexts[device];
  return kSuccess;
}
EMULATOR_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENTER(false)
  if (bad_device(device) || state().contexts[device].retained == 0) {
    return kInvalidContext;
  }
  state().contexts[device].retained--;
  return kSuccess;
}
EMULATOR_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  ENTER(false)
  if (bad_device(device)) {
    return kInvalidDevice;
  }
  *flags = 0;
  *active = state().contexts[device].retained > 0;
  return kSuccess;
}
EMULATOR_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned) { return kSuccess; }
EMULATOR_API CUresult cuCtxSetCurrent(void* context) {
  ENTER(false)
  if (!context) {
    if (!context_stack.empty()) {
      context_stack.pop_back();
    }
    return kSuccess;
  }
  Context* c = context_of(context);
  if (!c || !c->retained) {
    return kInvalidContext;
  }
  if (context_stack.empty()) {
    context_stack.push_back(c);
  } else {
    context_stack.back() = c;
  }
  return kSuccess;
}
EMULATOR_API CUresult cuCtxGetCurrent(void** context) {
  ENTER(false)
  *context = current();
  return kSuccess;
}
EMULATOR_API CUresult cuCtxPushCurrent_v2(void* context) {
  ENTER(false)
  Context* c = context_of(context);
  if (!c || !c->retained) {
    return kInvalidContext;
  }
  context_stack.push_back(c);
  return kSuccess;
}
EMULATOR_API CUresult cuCtxPopCurrent_v2(void** context) {
  ENTER(false)
  if (context_stack.empty()) {
    return kInvalidContext;
  }
  if (context) {
    *context = context_stack.back();
  }
  context_stack.pop_back();
  return kSuccess;
}
EMULATOR_API CUresult cuCtxGetDevice(CUdevice* device) {
  ENTER(false)
  if (!current()) {
    return kInvalidContext;
  }
  *device = current()->device;
  return kSuccess;
}
EMULATOR_API CUresult cuCtxSynchronize() {
  const ObservedCall observed(observer(), "cuCtxSynchronize", nullptr);
  ENTER()
  return kSuccess;
}
EMULATOR_API CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  ENTER()
  *least = 0;
  *greatest = -5;
  return kSuccess;
}
EMULATOR_API CUresult cuCtxGetApiVersion(void*, unsigned* version) {
  *version = 13000;
  return kSuccess;
}
EMULATOR_API CUresult cuCtxEnablePeerAccess(void* context, unsigned flags) {
  ENTER()
  Context* c = context_of(context);
  if (!c || flags || c == current()) {
    return kInvalidValue;
  }
  return current()->peers.insert(c->device).second ? kSuccess : kPeerEnabled;
}
EMULATOR_API CUresult cuCtxDisablePeerAccess(void* context) {
  ENTER()
  Context* c = context_of(context);
  return c && current()->peers.erase(c->device) ? kSuccess : kPeerNotEnabled;
}

// ---- streams
EMULATOR_API CUresult cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  ENTER()
  if (flags > 1) {
    return kInvalidValue;
  }
  Stream* made = new Stream{current()->device, flags,
                            priority < -5  ? -5
                            : priority > 0 ? 0
                                           : priority,
                            nullptr};
  state().streams.insert(made);
  *stream = made;
  return kSuccess;
}
EMULATOR_API CUresult cuStreamCreate(void** stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}
EMULATOR_API CUresult cuStreamDestroy_v2(Stream* stream) {
  ENTER()
  if (state().streams.erase(stream) == 0) {
    return kInvalidHandle;
  }
  delete stream;
  return kSuccess;
}
EMULATOR_API CUresult cuStreamSynchronize(Stream* stream) {
  const ObservedCall observed(observer(), "cuStreamSynchronize", stream);
  ENTER()
  if (recording(stream) != nullptr) {
    stream->waited = true;
    return kCaptureUnsupported;
  }
  return live(stream) ? kSuccess : kInvalidHandle;
}
EMULATOR_API CUresult cuStreamQuery(Stream* stream) { return cuStreamSynchronize(stream); }
EMULATOR_API CUresult cuStreamGetPriority(Stream* stream, int* priority) {
  ENTER()
  if (!live(stream)) {
    return kInvalidHandle;
  }
  *priority = state().streams.count(stream) ? stream->priority : 0;
  return kSuccess;
}
EMULATOR_API CUresult cuStreamGetFlags(Stream* stream, unsigned* flags) {
  ENTER()
  if (!live(stream)) {
    return kInvalidHandle;
  }
  *flags = state().streams.count(stream) ? stream->flags : 0;
  return kSuccess;
}
EMULATOR_API CUresult cuStreamGetId(Stream* stream, unsigned long long* id) {
  ENTER()
  *id = reinterpret_cast<uintptr_t>(stream);
  return live(stream) ? kSuccess : kInvalidHandle;
}
EMULATOR_API CUresult cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  ENTER()
  return live(stream) && state().events.count(event) ? kSuccess : kInvalidHandle;
}
EMULATOR_API CUresult cuLaunchHostFunc(Stream* stream, void (*function)(void*), void* data) {
  {
    ENTER()
    if (!live(stream)) {
      return kInvalidHandle;
    }
  }
  function(data);
  return kSuccess;
}

// ---- events
EMULATOR_API CUresult cuEventCreate(void** event, unsigned flags) {
  ENTER()
  Event* made = new Event{current()->device, flags};
  state().events.insert(made);
  *event = made;
  return kSuccess;
}
EMULATOR_API CUresult cuEventDestroy_v2(Event* event) {
  ENTER()
  if (state().events.erase(event) == 0) {
    return kInvalidHandle;
  }
  delete event;
  return kSuccess;
}
EMULATOR_API CUresult cuEventRecord(Event* event, Stream* stream) {
  const ObservedCall observed(observer(), "cuEventRecord", stream);
  ENTER()
  if (!state().events.count(event) || !live(stream)) {
    return kInvalidHandle;
  }
  const int device = state().streams.count(stream) ? stream->device : current()->device;
  if (device != event->device) {
    return kInvalidHandle; // a stream records only events of its own device
  }
  event->recorded = true;
  event->time_ms = now_ms();
  return kSuccess;
}
EMULATOR_API CUresult cuEventRecordWithFlags(Event* event, Stream* stream, unsigned) {
  return cuEventRecord(event, stream);
}
EMULATOR_API CUresult cuEventQuery(Event* event) {
  ENTER()
  return state().events.count(event) ? kSuccess : kInvalidHandle;
}
EMULATOR_API CUresult cuEventSynchronize(Event* event) { return cuEventQuery(event); }

namespace {
CUresult elapsed(float* ms, Event* start, Event* end) {
  ENTER()
  const auto timed = [](Event* e) {
    return state().events.count(e) && e->recorded && (e->flags & 2) == 0; // 2: no timing
  };
  if (!timed(start) || !timed(end)) {
    return kInvalidHandle;
  }
  *ms = static_cast<float>(end->time_ms - start->time_ms);
  return kSuccess;
}
} // namespace
EMULATOR_API CUresult cuEventElapsedTime(float* ms, Event* start, Event* end) {
  return elapsed(ms, start, end);
}
EMULATOR_API CUresult cuEventElapsedTime_v2(float* ms, Event* start, Event* end) {
  return elapsed(ms, start, end);
}
