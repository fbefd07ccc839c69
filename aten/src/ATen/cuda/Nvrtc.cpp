// See Nvrtc.h. The declarations are our own, written from NVRTC's documentation.
#include <ATen/cuda/Nvrtc.h>

#include <dlfcn.h>

#include <cstdlib>

#include <c10/util/Exception.h>

namespace at::cuda {
namespace {

using Result = int; // 0: success
using Program = struct NvrtcProgram*;

struct Api {
  Result (*version)(int*, int*) = nullptr;
  Result (*create)(Program*, const char*, const char*, int, const char* const*,
                   const char* const*) = nullptr;
  Result (*compile)(Program, int, const char* const*) = nullptr;
  Result (*cubin_size)(Program, size_t*) = nullptr;
  Result (*cubin)(Program, char*) = nullptr;
  Result (*log_size)(Program, size_t*) = nullptr;
  Result (*log)(Program, char*) = nullptr;
  Result (*destroy)(Program*) = nullptr;
  const char* (*error_string)(Result) = nullptr;
  std::string text; // the version
};

void* open_library() {
  const char* names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  for (const char* name : names)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(variable);
    const std::string folder = root != nullptr ? root : "/usr/local/cuda";
    for (const char* name : names)
      if (void* library = dlopen((folder + "/lib64/" + name).c_str(), RTLD_NOW | RTLD_LOCAL))
        return library;
  }
  return nullptr;
}

template <class F> bool resolve(void* library, F& slot, const char* name) {
  slot = reinterpret_cast<F>(dlsym(library, name));
  return slot != nullptr;
}

const Api* load_api() {
  void* library = open_library();
  if (library == nullptr) return nullptr;
  auto api = new Api; // kept for the life of the process
  const bool complete = resolve(library, api->version, "nvrtcVersion") &&
                        resolve(library, api->create, "nvrtcCreateProgram") &&
                        resolve(library, api->compile, "nvrtcCompileProgram") &&
                        resolve(library, api->cubin_size, "nvrtcGetCUBINSize") &&
                        resolve(library, api->cubin, "nvrtcGetCUBIN") &&
                        resolve(library, api->log_size, "nvrtcGetProgramLogSize") &&
                        resolve(library, api->log, "nvrtcGetProgramLog") &&
                        resolve(library, api->destroy, "nvrtcDestroyProgram") &&
                        resolve(library, api->error_string, "nvrtcGetErrorString");
  int major = 0, minor = 0;
  if (!complete || api->version(&major, &minor) != 0) {
    delete api;
    return nullptr;
  }
  api->text = std::to_string(major) + "." + std::to_string(minor);
  return api;
}

const Api* try_api() {
  static const Api* const api = load_api();
  return api;
}

struct ProgramGuard {
  const Api& api;
  Program program = nullptr;
  ~ProgramGuard() {
    if (program != nullptr) api.destroy(&program);
  }
};

std::string program_log(const Api& api, Program program) {
  size_t size = 0;
  if (api.log_size(program, &size) != 0 || size < 2) return {};
  std::string log(size, '\0');
  if (api.log(program, log.data()) != 0) return {};
  log.resize(size - 1);
  return log;
}

} // namespace

const std::string& nvrtc_version() {
  static const std::string none;
  const Api* api = try_api();
  return api != nullptr ? api->text : none;
}

std::string nvrtc_compile(const std::string& source, const char* name, int major, int minor,
                          const std::vector<std::string>& options) {
  const Api* api = try_api();
  TORCH_CHECK_NOT_IMPLEMENTED(
      api != nullptr, "the device code '", name,
      "' was not compiled with this library for compute "
      "capability ",
      major, ".", minor,
      ", and the run-time compiler libnvrtc was not found: "
      "install the CUDA toolkit's libnvrtc (pip install nvidia-cuda-nvrtc) and put it on "
      "LD_LIBRARY_PATH");
  const auto check = [&](Result result, const char* call) {
    TORCH_CHECK(result == 0, call, " failed for '", name, "': ", api->error_string(result));
  };
  // Lambdas and functions that both sides share carry no annotation.
  std::vector<std::string> all = {
      "--gpu-architecture=sm_" + std::to_string(major) + std::to_string(minor), "--std=c++20",
      "--diag-suppress=186,2388", "--device-as-default-execution-space"};
  all.insert(all.end(), options.begin(), options.end());
  std::vector<const char*> pointers;
  for (const std::string& option : all) pointers.push_back(option.c_str());

  ProgramGuard guard{*api};
  check(api->create(&guard.program, source.c_str(), name, 0, nullptr, nullptr),
        "nvrtcCreateProgram");
  const Result result =
      api->compile(guard.program, static_cast<int>(pointers.size()), pointers.data());
  TORCH_CHECK(result == 0, "the run-time compiler refused the device code '", name,
              "': ", api->error_string(result), "\n", program_log(*api, guard.program));
  size_t size = 0;
  check(api->cubin_size(guard.program, &size), "nvrtcGetCUBINSize");
  std::string image(size, '\0');
  check(api->cubin(guard.program, image.data()), "nvrtcGetCUBIN");
  return image;
}

} // namespace at::cuda
