// Loads the driver and turns its failures into the sentences PyTorch's users know.
#include <c10/cuda/Driver.h>

#include <c10/cuda/NoDriver.h>

#include <dlfcn.h>
#include <mutex>
#include <pthread.h>

namespace c10::cuda {

AcceleratorError::~AcceleratorError() = default;
NoDriverError::~NoDriverError() = default;

namespace detail {

std::atomic<const DriverApi*> loaded_driver{nullptr};

namespace {

DriverApi api;
std::mutex mutex;
bool attempted = false;
bool forked = false;
bool found = true;   // the library itself; false once it was looked for in vain
std::string failure; // why there is no driver; empty where there is one

const char* const kNoDriver =
    "Torch not compiled with CUDA enabled for a machine without a driver. Found no NVIDIA driver "
    "on "
    "your system (libcuda.so.1). Please check that you have an NVIDIA GPU and installed a driver "
    "from http://www.nvidia.com/Download/index.aspx";

// A forked child shares the driver's memory but not its connection to the GPU, and the driver
// cannot be initialised a second time: all later calls raise instead of hanging.
void after_fork_in_child() {
  if (loaded_driver.load() == nullptr) return;
  loaded_driver.store(nullptr);
  forked = true;
  failure = "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you "
            "must use the 'spawn' start method";
}

template <class F> bool find(void* library, const char* symbol, F& member) {
  member = reinterpret_cast<F>(dlsym(library, symbol));
  return member != nullptr;
}

std::string fill_table(void* library) {
#define CRESSET_FIND(member, symbol, parameters)                                                   \
  if (!find(library, #symbol, api.member))                                                         \
    return "The NVIDIA driver on your system is too old: it has no function " #symbol;
  CRESSET_DRIVER_FUNCTIONS(CRESSET_FIND)
#undef CRESSET_FIND
#define CRESSET_FIND(member, symbol, parameters) find(library, #symbol, api.member);
  CRESSET_DRIVER_OPTIONAL_FUNCTIONS(CRESSET_FIND)
#undef CRESSET_FIND
  return {};
}

std::string describe(CUresult result) {
  const char* text = nullptr;
  if (api.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown";
  return text;
}

std::string initialise() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    found = false;
    return kNoDriver;
  }
  std::string missing = fill_table(library);
  if (!missing.empty()) return missing;
  const CUresult result = api.cuInit(0);
  if (result == CUDA_ERROR_NO_DEVICE) return "No CUDA GPUs are available";
  if (result != CUDA_SUCCESS) {
    return str("CUDA driver initialization failed, you might not have a CUDA gpu: ",
               describe(result), " (", static_cast<int>(result), ")");
  }
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  return {};
}

const DriverApi* load_once() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!attempted) {
    attempted = true;
    failure = initialise();
    if (failure.empty()) loaded_driver.store(&api, std::memory_order_release);
  }
  return loaded_driver.load(std::memory_order_acquire);
}

} // namespace

const DriverApi& load_driver() {
  const DriverApi* loaded = load_once();
  if (loaded == nullptr && !found) throw NoDriverError(failure);
  TORCH_CHECK(loaded != nullptr, failure);
  return *loaded;
}

void raise(CUresult result, const char* call) {
  throw AcceleratorError(str("CUDA error: ", describe(result), "\n  in ", call, " (error ",
                             static_cast<int>(result),
                             ")\n  CUDA kernel errors might be asynchronously reported at some "
                             "other API call; torch.cuda.synchronize() finds the place"),
                         static_cast<int>(result));
}

} // namespace detail

const DriverApi* try_driver() noexcept {
  const DriverApi* loaded = detail::loaded_driver.load(std::memory_order_acquire);
  if (loaded != nullptr) return loaded;
  try {
    return detail::load_once();
  } catch (...) {
    return nullptr;
  }
}

bool driver_found() noexcept {
  try_driver();
  return detail::found;
}

bool in_bad_fork() noexcept { return detail::forked; }

} // namespace c10::cuda
