// See Nvrtc.h. The declarations are our own, written from NVRTC's documentation.
#include <ATen/cuda/Nvrtc.h>

#include <ATen/cuda/VendorLibrary.h>
#include <c10/util/Exception.h>

namespace at::cuda {
namespace {

using Result = int; // 0: success
using Program = struct NvrtcProgram*;

struct Api {
  Result (*version)(int*, int*);
  Result (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  Result (*compile)(Program, int, const char* const*);
  Result (*cubin_size)(Program, size_t*);
  Result (*cubin)(Program, char*);
  Result (*log_size)(Program, size_t*);
  Result (*log)(Program, char*);
  Result (*destroy)(Program*) = nullptr;
  const char* (*error_string)(Result) = nullptr;
};

const Api* try_api() {
#define CRESSET_FIND(member, symbol)                                                               \
  { #symbol, offsetof(Api, member) }
  static const Api* const api = vendor_table<Api>(
      {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
      {CRESSET_FIND(version, nvrtcVersion), CRESSET_FIND(create, nvrtcCreateProgram),
       CRESSET_FIND(compile, nvrtcCompileProgram), CRESSET_FIND(cubin_size, nvrtcGetCUBINSize),
       CRESSET_FIND(cubin, nvrtcGetCUBIN), CRESSET_FIND(log_size, nvrtcGetProgramLogSize),
       CRESSET_FIND(log, nvrtcGetProgramLog), CRESSET_FIND(destroy, nvrtcDestroyProgram),
       CRESSET_FIND(error_string, nvrtcGetErrorString)});
#undef CRESSET_FIND
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
  static const std::string version = [] {
    const Api* api = try_api();
    int major = 0, minor = 0;
    if (api == nullptr || api->version(&major, &minor) != 0) return std::string();
    return std::to_string(major) + "." + std::to_string(minor);
  }();
  return version;
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
  // Without declarations that no device code here uses, and without a second cache beside ours:
  // 50-85 ms instead of 100-146 for a fused kernel. Older compilers do not know the words.
  int release = 0, step = 0;
  if (api->version(&release, &step) == 0 && release >= 13)
    all.insert(all.end(), {"--minimal", "--no-cache"});
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
