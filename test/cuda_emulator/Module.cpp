// Programs and launches of the emulated driver. An image is what the emulated NVRTC made: a short
// header and a shared object, which is loaded from memory. Launches are checked as the hardware
// checks them (block and grid limits, shared memory, the parameters' total size).
#include "Emulator.h"
#include "Fibers.h"
#include "Observer.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace emulator;

#define ENTER(...)                                                                                 \
  Entry entry{__VA_ARGS__};                                                                        \
  if (entry.error()) return entry.error();

namespace {

constexpr char kMagic[16] = "CRESSETEMULATOR";
constexpr unsigned kMaxParameters = 32764;

CUresult load(Module*& module, const void* image) {
  if (std::memcmp(image, kMagic, 4) != 0 || std::memcmp(image, kMagic, sizeof kMagic) != 0) {
    return kNoBinary; // machine code of a real GPU
  }
  uint64_t size;
  std::memcpy(&size, static_cast<const char*>(image) + sizeof kMagic, sizeof size);
  if (dry_run()) {
    module = new Module{nullptr, current()->device};
    state().modules.insert(module);
    return kSuccess;
  }
  const int file = memfd_create("cresset-program", MFD_CLOEXEC);
  const char* bytes = static_cast<const char*>(image) + sizeof kMagic + sizeof size;
  for (uint64_t done = 0; done < size;) {
    const ssize_t n = write(file, bytes + done, size - done);
    if (n <= 0) {
      close(file);
      return kOutOfMemory;
    }
    done += n;
  }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), file);
  // The file stays open: dlopen would take the next one under the same path for this one.
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    close(file);
    std::fprintf(stderr, "cuda emulator: %s\n", dlerror());
    return kInvalidImage;
  }
  module = new Module{handle, current()->device};
  state().modules.insert(module);
  return kSuccess;
}

CUresult find(Function*& function, Module* module, const char* name) {
  if (!state().modules.count(module)) {
    return kInvalidHandle;
  }
  const std::string suffix = name;
  static constexpr unsigned kNoSizes[] = {~0u};
  const bool dry = dry_run();
  void* call = dry ? nullptr : dlsym(module->handle, ("cresset_emulator_call_" + suffix).c_str());
  const void* sizes =
      dry ? kNoSizes : dlsym(module->handle, ("cresset_emulator_sizes_" + suffix).c_str());
  if (!dry && (!call || !sizes)) {
    return kNotFound;
  }
  for (Function* known : state().functions) {
    if (known->module == module && known->name == name) {
      function = known;
      return kSuccess;
    }
  }
  function = new Function;
  function->module = module;
  function->name = name;
  function->call = reinterpret_cast<void (*)(void**)>(call);
  function->sizes = static_cast<const unsigned*>(sizes);
  state().functions.insert(function);
  return kSuccess;
}

// Offsets follow the natural alignment, which trampolines record beside each size.
unsigned parameter_bytes(const Function& f) {
  unsigned offset = 0;
  for (const unsigned* p = f.sizes; *p != ~0u; p += 2) {
    offset = (offset + p[1] - 1) / p[1] * p[1] + p[0];
  }
  return offset;
}

CUresult check_launch(const Function& f, const unsigned grid[3], const unsigned block[3],
                      unsigned shared_bytes) {
  const unsigned long long threads = 1ull * block[0] * block[1] * block[2];
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || threads == 0 || threads > 1024 ||
      block[0] > 1024 || block[1] > 1024 || block[2] > 64 || grid[0] > 2147483647u ||
      grid[1] > 65535 || grid[2] > 65535 || shared_bytes > f.dynamic_limit) {
    std::fprintf(
        stderr, "cuda emulator: %s cannot start with grid %u,%u,%u block %u,%u,%u shared %u\n",
        f.name.c_str(), grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes);
    return kInvalidValue;
  }
  if (parameter_bytes(f) > kMaxParameters) {
    std::fprintf(stderr, "cuda emulator: %s takes %u bytes of parameters\n", f.name.c_str(),
                 parameter_bytes(f));
    return kInvalidValue;
  }
  return kSuccess;
}

} // namespace

namespace emulator {

CUresult run_kernel(Function& f, const unsigned grid[3], const unsigned block[3],
                    unsigned shared_bytes, void** args) {
  if (const CUresult error = check_launch(f, grid, block, shared_bytes)) {
    return error;
  }
  Launch launch{
      f.call, args, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared_bytes};
  auto* program = static_cast<CressetEmulatorThread**>(dlsym(f.module->handle, "cresset_emulator"));
  const char* why = nullptr;
  Outcome outcome;
  {
    Work work;
    work.name = f.name.c_str();
    work.device = f.module->device;
    work.stream = stream_of_this_call();
    work.grid = grid;
    work.block = block;
    work.shared_bytes = shared_bytes;
    const ObservedWork observed(observer(), work);
    Access access(f.module->device);
    outcome = run_blocks(launch, *program, &why);
  }
  if (outcome == Outcome::kDone) {
    return kSuccess;
  }
  std::fprintf(stderr, "cuda emulator: %s: %s\n", f.name.c_str(), why);
  current()->sticky = outcome == Outcome::kFault ? kIllegalAddress : kLaunchFailed;
  return current()->sticky;
}

} // namespace emulator

EMULATOR_API CUresult cuModuleLoadData(Module** module, const void* image) {
  ENTER()
  return load(*module, image);
}
EMULATOR_API CUresult cuModuleLoadDataEx(Module** module, const void* image, unsigned, int*,
                                         void**) {
  ENTER()
  return load(*module, image);
}
EMULATOR_API CUresult cuModuleUnload(Module* module) {
  ENTER()
  if (!state().modules.erase(module)) {
    return kInvalidHandle;
  }
  for (auto it = state().functions.begin(); it != state().functions.end();) {
    it = (*it)->module == module ? state().functions.erase(it) : std::next(it);
  }
  if (module->handle) {
    dlclose(module->handle);
  }
  delete module;
  return kSuccess;
}
EMULATOR_API CUresult cuModuleGetFunction(Function** function, Module* module, const char* name) {
  ENTER()
  return find(*function, module, name);
}
EMULATOR_API CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, size_t* bytes, Module* module,
                                           const char* name) {
  ENTER()
  if (!state().modules.count(module)) {
    return kInvalidHandle;
  }
  void* found = module->handle ? dlsym(module->handle, name) : nullptr;
  if (found) {
    state().globals.insert(reinterpret_cast<uintptr_t>(found));
  }
  if (pointer) {
    *pointer = reinterpret_cast<uintptr_t>(found);
  }
  if (bytes) {
    *bytes = 0;
  }
  return found ? kSuccess : kNotFound;
}

// A library is a module here, and a kernel its function.
EMULATOR_API CUresult cuLibraryLoadData(Module** module, const void* image, int*, void**, unsigned,
                                        int*, void**, unsigned) {
  ENTER()
  return load(*module, image);
}
EMULATOR_API CUresult cuLibraryUnload(Module* module) { return cuModuleUnload(module); }
EMULATOR_API CUresult cuLibraryGetKernel(Function** kernel, Module* module, const char* name) {
  ENTER()
  return find(*kernel, module, name);
}
EMULATOR_API CUresult cuLibraryGetModule(Module** out, Module* module) {
  ENTER()
  *out = module;
  return kSuccess;
}
EMULATOR_API CUresult cuKernelGetFunction(Function** function, Function* kernel) {
  ENTER()
  *function = kernel;
  return state().functions.count(kernel) ? kSuccess : kInvalidHandle;
}

EMULATOR_API CUresult cuFuncGetAttribute(int* value, int attribute, Function* function) {
  ENTER()
  if (!state().functions.count(function)) {
    return kInvalidHandle;
  }
  switch (attribute) {
  case 0:
    *value = 1024;
    return kSuccess;
  case 1:
  case 2:
  case 3:
    *value = 0;
    return kSuccess;
  case 4:
    *value = 32;
    return kSuccess;
  case 5:
  case 6:
    *value = 89;
    return kSuccess;
  case 8:
    *value = static_cast<int>(function->dynamic_limit);
    return kSuccess;
  default:
    *value = 0;
    return kInvalidValue;
  }
}
EMULATOR_API CUresult cuFuncSetAttribute(Function* function, int attribute, int value) {
  ENTER()
  if (!state().functions.count(function)) {
    return kInvalidHandle;
  }
  if (attribute == 8) {
    if (value < 0 || value > 227 * 1024) {
      return kInvalidValue;
    }
    function->dynamic_limit = static_cast<unsigned>(value);
  }
  return kSuccess;
}
EMULATOR_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function* function,
                                                                  int threads, size_t) {
  ENTER()
  if (!state().functions.count(function) || threads <= 0) {
    return kInvalidValue;
  }
  *blocks = 2048 / threads;
  return kSuccess;
}

EMULATOR_API CUresult cuLaunchKernel(Function* function, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned bx, unsigned by, unsigned bz, unsigned shared_bytes,
                                     Stream* stream, void** args, void** extra) {
  const ObservedCall observed(observer(), "cuLaunchKernel", stream);
  ENTER()
  if (!state().functions.count(function) || function->module->device != current()->device ||
      !live(stream) || (state().streams.count(stream) && stream->device != current()->device)) {
    return kInvalidHandle;
  }
  if (extra) {
    return kNotSupported;
  }
  if (dry_run()) {
    return kSuccess;
  }
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  if (Graph* graph = recording(stream)) {
    record_kernel(*graph, *function, grid, block, shared_bytes, args);
    return kSuccess;
  }
  return run_kernel(*function, grid, block, shared_bytes, args);
}

namespace {
struct LaunchConfig { // CUlaunchConfig
  unsigned grid[3], block[3], shared_bytes;
  Stream* stream;
  void* attributes;
  unsigned count;
};
} // namespace
EMULATOR_API CUresult cuLaunchKernelEx(const LaunchConfig* c, Function* function, void** args,
                                       void** extra) {
  const ObservedCall observed(observer(), "cuLaunchKernelEx", c->stream);
  return cuLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1],
                        c->block[2], c->shared_bytes, c->stream, args, extra);
}

EMULATOR_API CUresult cuProfilerStart() { return kSuccess; }
EMULATOR_API CUresult cuProfilerStop() { return kSuccess; }
