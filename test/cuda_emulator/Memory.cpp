// Device memory of the emulated driver: ranges of host addresses whose pages are inaccessible
// except while a kernel or a copy runs, so that host code that follows a device pointer faults at
// once. Fresh memory is filled with ones (NaN in every floating type): nothing may rely on zeros.
#include "Emulator.h"
#include "Observer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace emulator {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kGranularity = 2 << 20;
constexpr size_t kPoisonLimit = 64 << 20;

int opened_all = 0;
std::map<int, int> opened; // per device

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

bool is_open(int device) { return opened_all > 0 || opened[device] > 0; }

void protect(int device, bool open) {
  for (const auto& [address, region] : state().regions) {
    if (device < 0 || region.device == device) {
      mprotect(reinterpret_cast<void*>(address), round_up(region.size, kPage),
               open || is_open(region.device) ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
  }
}

void poison(uintptr_t address, size_t size) {
  if (dry_run()) {
    return;
  }
  void* p = reinterpret_cast<void*>(address);
  mprotect(p, round_up(size, kPage), PROT_READ | PROT_WRITE);
  std::memset(p, 0xff, std::min(size, kPoisonLimit));
  mprotect(p, round_up(size, kPage), PROT_NONE);
}

// Takes `size` bytes off the device's budget.
bool charge(int device, size_t size) {
  State& s = state();
  if (size > s.capacity - s.used[device]) {
    return false;
  }
  s.used[device] += size;
  return true;
}

const std::pair<const uintptr_t, Region>* region_of(uintptr_t address) {
  auto it = state().regions.upper_bound(address);
  if (it == state().regions.begin()) {
    return nullptr;
  }
  --it;
  return address < it->first + it->second.size ? &*it : nullptr;
}

} // namespace

Access::Access(int device) : device_(device) {
  (device < 0 ? opened_all : opened[device])++;
  protect(device, true);
  if (device >= 0) {
    for (int peer : state().contexts[device].peers) {
      opened[peer]++;
      protect(peer, true);
    }
  }
}

Access::~Access() {
  (device_ < 0 ? opened_all : opened[device_])--;
  protect(device_, false);
  if (device_ >= 0) {
    for (int peer : state().contexts[device_].peers) {
      opened[peer]--;
      protect(peer, false);
    }
  }
}

// Regions mapped side by side count as one range.
bool valid_device_range(CUdeviceptr address, size_t bytes) {
  uintptr_t position = address;
  const uintptr_t end = position + bytes;
  while (position < end) {
    const auto* found = region_of(position);
    if (!found) {
      return false;
    }
    position = found->first + found->second.size;
  }
  return true;
}

bool touches_device(const void* address) {
  return region_of(reinterpret_cast<uintptr_t>(address)) != nullptr;
}

int device_of(CUdeviceptr address) {
  const auto* found = region_of(address);
  return found ? found->second.device : -1;
}

} // namespace emulator

using namespace emulator;

#define ENTER(...)                                                                                 \
  Entry entry{__VA_ARGS__};                                                                        \
  if (entry.error()) return entry.error();

// ---- plain allocations
EMULATOR_API CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  ENTER()
  const int device = current()->device;
  if (bytes == 0) {
    return kInvalidValue;
  }
  const size_t size = round_up(bytes, 512);
  if (!charge(device, size)) {
    return kOutOfMemory;
  }
  void* p = mmap(nullptr, round_up(size, kPage) + kPage, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); // ends with a guard page
  if (p == MAP_FAILED) {
    state().used[device] -= size;
    return kOutOfMemory;
  }
  *pointer = reinterpret_cast<uintptr_t>(p);
  state().regions[*pointer] = Region{size, device};
  poison(*pointer, size);
  return kSuccess;
}
EMULATOR_API CUresult cuMemFree_v2(CUdeviceptr pointer) {
  ENTER()
  auto it = state().regions.find(pointer);
  if (it == state().regions.end()) {
    return pointer ? kInvalidValue : kSuccess;
  }
  state().used[it->second.device] -= it->second.size;
  munmap(reinterpret_cast<void*>(it->first), round_up(it->second.size, kPage) + kPage);
  state().regions.erase(it);
  return kSuccess;
}
EMULATOR_API CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, Stream* stream) {
  return live(stream) ? cuMemAlloc_v2(pointer, bytes) : kInvalidHandle;
}
EMULATOR_API CUresult cuMemFreeAsync(CUdeviceptr pointer, Stream* stream) {
  return live(stream) ? cuMemFree_v2(pointer) : kInvalidHandle;
}
EMULATOR_API CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  ENTER()
  *total = state().capacity;
  *free = state().capacity - state().used[current()->device];
  return kSuccess;
}
EMULATOR_API CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr p) {
  ENTER()
  const auto* found = region_of(p);
  if (!found) {
    return kNotFound;
  }
  if (base) {
    *base = found->first;
  }
  if (size) {
    *size = found->second.size;
  }
  return kSuccess;
}

// ---- virtual memory management
namespace {
struct Location {
  int type, id;
};
struct AllocationProperties { // CUmemAllocationProp, as far as it is read here
  int type, handle_types;
  Location location;
};
} // namespace

EMULATOR_API CUresult cuMemGetAllocationGranularity(size_t* granularity,
                                                    const AllocationProperties*, int) {
  ENTER(false)
  *granularity = kGranularity;
  return kSuccess;
}
EMULATOR_API CUresult cuMemAddressReserve(CUdeviceptr* pointer, size_t size, size_t, CUdeviceptr,
                                          unsigned long long flags) {
  ENTER()
  if (size == 0 || size % kGranularity || flags) {
    return kInvalidValue;
  }
  char* p = static_cast<char*>(mmap(nullptr, size + kGranularity, PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (p == MAP_FAILED) {
    return kOutOfMemory;
  }
  const uintptr_t start = round_up(reinterpret_cast<uintptr_t>(p), kGranularity);
  munmap(p, start - reinterpret_cast<uintptr_t>(p));
  munmap(reinterpret_cast<void*>(start + size),
         reinterpret_cast<uintptr_t>(p) + kGranularity - start);
  state().reserved[start] = Region{size, current()->device};
  *pointer = start;
  return kSuccess;
}
EMULATOR_API CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size) {
  ENTER()
  auto it = state().reserved.find(pointer);
  if (it == state().reserved.end() || it->second.size != size) {
    return kInvalidValue;
  }
  auto mapped = state().regions.lower_bound(pointer);
  if (mapped != state().regions.end() && mapped->first < pointer + size) {
    return kInvalidValue;
  }
  munmap(reinterpret_cast<void*>(pointer), size);
  state().reserved.erase(it);
  return kSuccess;
}
EMULATOR_API CUresult cuMemCreate(unsigned long long* handle, size_t size,
                                  const AllocationProperties* properties,
                                  unsigned long long flags) {
  ENTER()
  const int device = properties->location.id;
  if (size == 0 || size % kGranularity || flags || device < 0 || device >= state().devices) {
    return kInvalidValue;
  }
  if (!charge(device, size)) {
    return kOutOfMemory;
  }
  *handle = state().next_handle++;
  state().physical[*handle] = Region{size, device};
  return kSuccess;
}
EMULATOR_API CUresult cuMemRelease(unsigned long long handle) {
  ENTER()
  auto it = state().physical.find(handle);
  if (it == state().physical.end()) {
    return kInvalidValue;
  }
  state().used[it->second.device] -= it->second.size;
  state().physical.erase(it);
  return kSuccess;
}
EMULATOR_API CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                               unsigned long long handle, unsigned long long) {
  ENTER()
  auto memory = state().physical.find(handle);
  auto range = state().reserved.upper_bound(pointer);
  if (memory == state().physical.end() || range == state().reserved.begin() || offset ||
      memory->second.size != size) {
    return kInvalidValue;
  }
  --range;
  if (pointer + size > range->first + range->second.size || region_of(pointer) ||
      region_of(pointer + size - 1)) {
    return kInvalidValue;
  }
  state().regions[pointer] = memory->second;
  poison(pointer, size);
  return kSuccess;
}
EMULATOR_API CUresult cuMemUnmap(CUdeviceptr pointer, size_t size) {
  ENTER()
  auto it = state().regions.find(pointer);
  while (it != state().regions.end() && it->first < pointer + size) {
    void* p = reinterpret_cast<void*>(it->first);
    madvise(p, it->second.size, MADV_DONTNEED);
    mprotect(p, it->second.size, PROT_NONE);
    it = state().regions.erase(it);
  }
  return kSuccess;
}
EMULATOR_API CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const void*, size_t) {
  ENTER()
  return valid_device_range(pointer, size) ? kSuccess : kInvalidValue;
}

// ---- pinned host memory
EMULATOR_API CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  ENTER()
  if (bytes == 0) {
    return kInvalidValue;
  }
  *pointer = std::aligned_alloc(kPage, round_up(bytes, kPage));
  if (!*pointer) {
    return kOutOfMemory;
  }
  state().pinned[reinterpret_cast<uintptr_t>(*pointer)] = bytes;
  return kSuccess;
}
EMULATOR_API CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}
EMULATOR_API CUresult cuMemFreeHost(void* pointer) {
  ENTER()
  if (state().pinned.erase(reinterpret_cast<uintptr_t>(pointer)) == 0) {
    return kInvalidValue;
  }
  std::free(pointer);
  return kSuccess;
}
EMULATOR_API CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned) {
  ENTER()
  state().pinned[reinterpret_cast<uintptr_t>(pointer)] = bytes;
  return kSuccess;
}
EMULATOR_API CUresult cuMemHostUnregister(void* pointer) {
  ENTER()
  return state().pinned.erase(reinterpret_cast<uintptr_t>(pointer)) ? kSuccess : kInvalidValue;
}
EMULATOR_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* host, unsigned) {
  ENTER()
  auto it = state().pinned.upper_bound(reinterpret_cast<uintptr_t>(host));
  if (it == state().pinned.begin()) {
    return kInvalidValue;
  }
  --it;
  if (reinterpret_cast<uintptr_t>(host) >= it->first + it->second) {
    return kInvalidValue;
  }
  *device = reinterpret_cast<uintptr_t>(host);
  return kSuccess;
}
EMULATOR_API CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr pointer) {
  ENTER()
  const int device = device_of(pointer);
  auto it = state().pinned.upper_bound(pointer);
  const bool pinned = it != state().pinned.begin() && (--it, pointer < it->first + it->second);
  if (device < 0 && !pinned) {
    return kInvalidValue; // memory the driver does not know
  }
  switch (attribute) {
  case 1: // context
    *static_cast<void**>(value) = &state().contexts[device < 0 ? 0 : device];
    return kSuccess;
  case 2: // memory type: host 1, device 2
    *static_cast<unsigned*>(value) = device < 0 ? 1 : 2;
    return kSuccess;
  case 3:
  case 4: // device pointer, host pointer
    *static_cast<CUdeviceptr*>(value) = pointer;
    return kSuccess;
  case 8: // managed
    *static_cast<unsigned*>(value) = 0;
    return kSuccess;
  case 9: // device ordinal
    *static_cast<int*>(value) = device < 0 ? 0 : device;
    return kSuccess;
  default:
    return kNotSupported;
  }
}

// ---- copies and fills
namespace {
// A host side that points to device memory, or a device side that does not, is the mistake these
// checks are for. `device_side` is 0 for a pointer that may be either.
bool plausible(const void* p, size_t bytes, int device_side) {
  if (device_side < 0) {
    return !touches_device(p);
  }
  const CUdeviceptr address = reinterpret_cast<uintptr_t>(p);
  return (device_side == 0 && !touches_device(p)) || valid_device_range(address, bytes) ||
         state().pinned.count(address) != 0 || state().globals.count(address) != 0;
}
Work copy_work(const void* to, int to_side, const void* from, int from_side, size_t bytes) {
  const int source = device_of(reinterpret_cast<uintptr_t>(from));
  const int target = device_of(reinterpret_cast<uintptr_t>(to));
  Work work;
  work.kind =
      source >= 0 && target >= 0 && source != target ? WorkKind::kPeerCopy : WorkKind::kCopy;
  work.device = source >= 0 ? source : target;
  work.stream = stream_of_this_call();
  work.bytes = bytes;
  work.from_side = from_side;
  work.to_side = to_side;
  return work;
}
CUresult copy(void* to, int to_side, const void* from, int from_side, size_t bytes,
              Stream* stream) {
  ENTER()
  if (!live(stream)) {
    return kInvalidHandle;
  }
  if (bytes == 0) {
    return kSuccess;
  }
  if (!plausible(to, bytes, to_side) || !plausible(from, bytes, from_side)) {
    return kInvalidValue;
  }
  if (dry_run() && to_side == 1 && from_side == 1) {
    return kSuccess;
  }
  const auto move = [=] {
    const ObservedWork observed(observer(), copy_work(to, to_side, from, from_side, bytes));
    Access access(-1);
    std::memmove(to, from, bytes);
    return kSuccess;
  };
  if (Graph* graph = recording(stream)) {
    graph->steps.push_back(move);
    return kSuccess;
  }
  return move();
}
void* pointer(CUdeviceptr p) { return reinterpret_cast<void*>(p); }

template <class T> CUresult fill(CUdeviceptr to, T value, size_t count, Stream* stream) {
  ENTER()
  if (!live(stream)) {
    return kInvalidHandle;
  }
  if (to % sizeof(T) || !plausible(pointer(to), count * sizeof(T), 1)) {
    return kInvalidValue;
  }
  if (dry_run()) {
    return kSuccess;
  }
  const auto write = [=] {
    Work work;
    work.kind = WorkKind::kFill;
    work.device = device_of(to);
    work.stream = stream_of_this_call();
    work.bytes = count * sizeof(T);
    const ObservedWork observed(observer(), work);
    Access access(-1);
    std::fill_n(static_cast<T*>(pointer(to)), count, value);
    return kSuccess;
  };
  if (Graph* graph = recording(stream)) {
    graph->steps.push_back(write);
    return kSuccess;
  }
  return write();
}
} // namespace

EMULATOR_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t n, Stream* s) {
  const ObservedCall observed(observer(), "cuMemcpyHtoDAsync_v2", s);
  return copy(pointer(to), 1, from, -1, n, s);
}
EMULATOR_API CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t n, Stream* s) {
  const ObservedCall observed(observer(), "cuMemcpyDtoHAsync_v2", s);
  return copy(to, -1, pointer(from), 1, n, s);
}
EMULATOR_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, Stream* s) {
  const ObservedCall observed(observer(), "cuMemcpyDtoDAsync_v2", s);
  return copy(pointer(to), 1, pointer(from), 1, n, s);
}
EMULATOR_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, Stream* s) {
  const ObservedCall observed(observer(), "cuMemcpyAsync", s);
  return copy(pointer(to), 0, pointer(from), 0, n, s);
}
EMULATOR_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t n) {
  return copy(pointer(to), 1, from, -1, n, nullptr);
}
EMULATOR_API CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t n) {
  return copy(to, -1, pointer(from), 1, n, nullptr);
}
EMULATOR_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n) {
  return copy(pointer(to), 1, pointer(from), 1, n, nullptr);
}
EMULATOR_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t n) {
  return copy(pointer(to), 0, pointer(from), 0, n, nullptr);
}
EMULATOR_API CUresult cuMemcpyPeerAsync(CUdeviceptr to, void*, CUdeviceptr from, void*, size_t n,
                                        Stream* s) {
  const ObservedCall observed(observer(), "cuMemcpyPeerAsync", s);
  return copy(pointer(to), 1, pointer(from), 1, n, s);
}
EMULATOR_API CUresult cuMemcpyPeer(CUdeviceptr to, void*, CUdeviceptr from, void*, size_t n) {
  return copy(pointer(to), 1, pointer(from), 1, n, nullptr);
}
EMULATOR_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, Stream* s) {
  const ObservedCall observed(observer(), "cuMemsetD8Async", s);
  return fill(to, v, n, s);
}
EMULATOR_API CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short v, size_t n, Stream* s) {
  const ObservedCall observed(observer(), "cuMemsetD16Async", s);
  return fill(to, v, n, s);
}
EMULATOR_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned v, size_t n, Stream* s) {
  const ObservedCall observed(observer(), "cuMemsetD32Async", s);
  return fill(to, v, n, s);
}
EMULATOR_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char v, size_t n) {
  return fill(to, v, n, nullptr);
}
EMULATOR_API CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short v, size_t n) {
  return fill(to, v, n, nullptr);
}
EMULATOR_API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned v, size_t n) {
  return fill(to, v, n, nullptr);
}

namespace {
struct PitchedSide {
  size_t x, y;
  unsigned type; // 1: host, 2: device, 4: either
  void* host;
  CUdeviceptr device;
  void* array;
  size_t pitch;
  char* base() const {
    return static_cast<char*>(type == 1 ? host : pointer(device)) + y * pitch + x;
  }
  int side() const { return type == 1 ? -1 : type == 2 ? 1 : 0; }
};
struct PitchedCopy { // CUDA_MEMCPY2D
  PitchedSide from, to;
  size_t width, height;
};
} // namespace
EMULATOR_API CUresult cuMemcpy2DAsync_v2(const PitchedCopy* c, Stream* s) {
  const ObservedCall observed(observer(), "cuMemcpy2DAsync_v2", s);
  for (size_t row = 0; row < c->height; ++row) {
    if (const CUresult error =
            copy(c->to.base() + row * c->to.pitch, c->to.side(),
                 c->from.base() + row * c->from.pitch, c->from.side(), c->width, s)) {
      return error;
    }
  }
  return kSuccess;
}

// For the emulated cuBLASLt, which computes on the host.
EMULATOR_API void cressetEmulatorOpen(int open) {
  state().lock.lock();
  static Access* access = nullptr;
  if (open) {
    access = new Access(-1);
  } else {
    delete access;
    access = nullptr;
    state().lock.unlock();
    state().lock.unlock(); // and the lock taken by open
  }
}
EMULATOR_API int cressetEmulatorDeviceOf(CUdeviceptr address) {
  std::lock_guard<std::recursive_mutex> guard(state().lock);
  return device_of(address);
}
EMULATOR_API int cressetEmulatorValid(CUdeviceptr address, size_t bytes) {
  std::lock_guard<std::recursive_mutex> guard(state().lock);
  return valid_device_range(address, bytes);
}
