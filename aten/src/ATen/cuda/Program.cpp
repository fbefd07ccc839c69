// See Program.h.
#include <ATen/cuda/Program.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string_view>

#include <ATen/cuda/Nvrtc.h>
#include <c10/cuda/ErrorSlot.h>

namespace at::cuda {
namespace {
using namespace c10::cuda;

// ---- embedded files -----------------------------------------------------------------------------
std::string_view find_file(std::string_view path) {
  for (size_t i = 0; i < embedded::file_count; ++i) {
    const embedded::File& file = embedded::files[i];
    if (path == file.path) return {embedded::text_data() + file.offset, file.size};
  }
  return {};
}

const embedded::Image* find_image(const char* program) {
  for (size_t i = 0; i < embedded::image_count; ++i)
    if (std::strcmp(program, embedded::images[i].program) == 0) return &embedded::images[i];
  return nullptr;
}

constexpr std::string_view kTraits = "ATen/cuda/device/TypeTraits.cuh";

// The file that serves an include: device code has its own form of a few headers.
std::string answer_of(std::string_view spelling, std::string_view includer) {
  const bool standard = spelling == "type_traits" || spelling == "cstdint" ||
                        spelling == "cstddef" || spelling == "utility";
  if (standard) return std::string(includer == kTraits ? std::string_view() : kTraits);
  std::string own = "ATen/cuda/device/include/" + std::string(spelling);
  return find_file(own).empty() ? std::string(spelling) : own;
}

class Expander {
 public:
  void text(std::string_view text, std::string_view path) {
    out_ += "#line 1 \"" + std::string(path) + "\"\n";
    int number = 1;
    for (size_t position = 0; position < text.size(); ++number) {
      size_t end = text.find('\n', position);
      if (end == std::string_view::npos) end = text.size();
      line(text.substr(position, end - position), path, number);
      position = end + 1;
    }
  }
  std::string take() { return std::move(out_); }

 private:
  void line(std::string_view line, std::string_view path, int number) {
    constexpr std::string_view kInclude = "#include <";
    if (line == "#pragma once") {
      out_ += '\n';
      return;
    }
    const bool is_include = line.substr(0, kInclude.size()) == kInclude;
    if (follow_host_block(line) && is_include) {
      out_ += '\n';
      return;
    }
    if (is_include) {
      const size_t close = line.find('>');
      const auto spelling = line.substr(kInclude.size(), close - kInclude.size());
      const std::string answer = answer_of(spelling, path);
      const std::string_view found = answer.empty() ? std::string_view() : find_file(answer);
      if (!found.empty()) {
        if (seen_.insert(answer).second) {
          text(found, answer);
          out_ += "#line " + std::to_string(number + 1) + " \"" + std::string(path) + "\"\n";
        } else {
          out_ += '\n';
        }
        return;
      }
    }
    out_.append(line);
    out_ += '\n';
  }

  // Whether the line stands in a block that only the host compiles. What is included there is left
  // out: expanded in a block that the device skips, it would be missing where it is included next.
  bool follow_host_block(std::string_view line) {
    const auto begins = [&](std::string_view with) { return line.substr(0, with.size()) == with; };
    if (host_depth_ == 0) {
      const bool host_only = begins("#if") && line.find("||") == std::string_view::npos &&
                             line.find("!defined(__CUDACC_RTC__)") != std::string_view::npos;
      host_depth_ = host_only ? 1 : 0;
    } else if (begins("#if")) {
      ++host_depth_;
    } else if (begins("#endif") || (host_depth_ == 1 && begins("#el"))) {
      --host_depth_;
    }
    return host_depth_ > 0;
  }

  std::string out_;
  std::set<std::string> seen_;
  int host_depth_ = 0;
};

// ---- the cache on disk --------------------------------------------------------------------------
std::string cache_folder() {
  if (const char* named = std::getenv("CRESSET_CACHE_DIR"); named && *named) return named;
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base && *base)
    return std::string(base) + "/cresset";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/cresset";
  return {};
}

// 128 bits, from two multiplicative hashes with different constants.
std::string hash_of(std::string_view text) {
  uint64_t a = 0xcbf29ce484222325ull, b = 0x9e3779b97f4a7c15ull;
  for (const char c : text) {
    a = (a ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    b = (b + static_cast<unsigned char>(c)) * 0xff51afd7ed558ccdull;
    b ^= b >> 29;
  }
  char out[33];
  std::snprintf(out, sizeof(out), "%016lx%016lx", static_cast<unsigned long>(a),
                static_cast<unsigned long>(b));
  return out;
}

std::string read_file(const std::string& path) {
  std::string out;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return out;
  char buffer[65536];
  while (const size_t n = std::fread(buffer, 1, sizeof(buffer), file)) out.append(buffer, n);
  std::fclose(file);
  return out;
}

void make_folders(const std::string& path) {
  for (size_t position = 1; position != std::string::npos;) {
    position = path.find('/', position + 1);
    ::mkdir(path.substr(0, position).c_str(), 0755);
  }
}

// Each file is the hash of its content and the content, so that a damaged one is not used.
std::string cache_read(const std::string& path) {
  std::string all = read_file(path);
  if (all.size() < 32 || hash_of(std::string_view(all).substr(32)) != all.substr(0, 32)) return {};
  return all.substr(32);
}

// A full disk or a folder that cannot be written only costs the next process its compilation.
void cache_write(const std::string& folder, const std::string& path, const std::string& content) {
  static std::atomic<int> counter{0};
  make_folders(folder);
  const std::string temporary =
      path + ".tmp" + std::to_string(::getpid()) + "_" + std::to_string(counter.fetch_add(1));
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) return;
  const std::string head = hash_of(content);
  bool good = std::fwrite(head.data(), 1, head.size(), file) == head.size();
  good = std::fwrite(content.data(), 1, content.size(), file) == content.size() && good;
  good = std::fclose(file) == 0 && good;
  if (!good || std::rename(temporary.c_str(), path.c_str()) != 0) ::unlink(temporary.c_str());
}

// The machine code of a source; with `only_cached`, empty where it would have to be compiled.
std::string compile_cached(int device, const std::string& source, const char* name,
                           const std::vector<std::string>& options, bool only_cached) {
  const DeviceProp& prop = device_properties(static_cast<c10::DeviceIndex>(device));
  std::string identity =
      nvrtc_version() + "|sm_" + std::to_string(prop.major) + std::to_string(prop.minor) + "|";
  for (const std::string& option : options) identity += option + "|";
  const std::string folder = cache_folder() + "/cuda";
  const std::string path = folder + "/" + hash_of(identity + source) + ".cubin";
  const bool caches = folder.size() > 5;
  std::string image = caches ? cache_read(path) : std::string();
  if (!image.empty() || only_cached) return image;
  image = nvrtc_compile(source, name, prop.major, prop.minor, options);
  if (caches) cache_write(folder, path, image);
  return image;
}

// ---- modules ------------------------------------------------------------------------------------
// Loaded once per device and kept for the life of the process, as functions are.
struct Modules {
  std::mutex mutex;
  std::map<std::pair<int, std::string>, CUmodule> loaded;
  bool refuses_images[kMaxDevices] = {}; // the embedded machine code is for another GPU
  CUstream fault_streams[kMaxDevices] = {};
};
Modules& modules() {
  static Modules* const all = new Modules;
  return *all;
}

bool jit_forced() {
  static const bool forced = [] {
    const char* value = std::getenv("CRESSET_CUDA_JIT");
    return value != nullptr && *value != '\0' && *value != '0';
  }();
  return forced;
}

// Lets the functors of a program report (device/Fault.cuh). The copy has a stream to itself, so
// that a graph which is being recorded does not take it in.
void connect_faults(int device, CUmodule module) {
  const DriverApi& api = driver();
  CUdeviceptr variable = 0;
  size_t bytes = 0;
  if (api.cuModuleGetGlobal(&variable, &bytes, module, "cresset_fault_slot") != CUDA_SUCCESS)
    return;
  const auto index = static_cast<c10::DeviceIndex>(device);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  const bool recording = c10::cuda::detail::tls_state.graph_pool != 0;
  if (recording) check(api.cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeCaptureMode");
  const CUdeviceptr slot = error_slot(index);
  CUstream& stream = modules().fault_streams[device];
  if (stream == nullptr)
    check(api.cuStreamCreateWithPriority(&stream, kStreamNonBlocking, 0), "cuStreamCreate");
  check(api.cuMemcpyHtoDAsync(variable, &slot, sizeof(slot), stream), "cuMemcpyHtoDAsync");
  check(api.cuStreamSynchronize(stream), "cuStreamSynchronize");
  if (recording) check(api.cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeCaptureMode");
}

// Null when there is no such machine code or the device does not accept it.
CUmodule image_module(int device, const char* program) {
  Modules& all = modules();
  if (program == nullptr || jit_forced() || all.refuses_images[device]) return nullptr;
  const auto key = std::make_pair(device, std::string("image:") + program);
  if (const auto found = all.loaded.find(key); found != all.loaded.end()) return found->second;
  const embedded::Image* image = find_image(program);
  if (image == nullptr) return nullptr;
  CUmodule module = nullptr;
  const CUresult result =
      driver().cuModuleLoadData(&module, embedded::image_data() + image->offset);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) check(result, "cuModuleLoadData");
  if (result != CUDA_SUCCESS) {
    all.refuses_images[device] = true;
    return nullptr;
  }
  connect_faults(device, module);
  all.loaded.emplace(key, module);
  return module;
}

// Compiles without the lock of the modules, so that threads can compile side by side. Null where
// that is not wanted and nothing is cached.
template <class MakeSource>
CUmodule source_module(std::unique_lock<std::mutex>& lock, int device, const std::string& key,
                       const char* name, MakeSource make_source,
                       const std::vector<std::string>& options, bool only_cached = false) {
  Modules& all = modules();
  const auto full = std::make_pair(device, key);
  if (const auto found = all.loaded.find(full); found != all.loaded.end()) return found->second;
  lock.unlock();
  const std::string image = compile_cached(device, make_source(), name, options, only_cached);
  lock.lock();
  if (image.empty()) return nullptr;
  if (const auto found = all.loaded.find(full); found != all.loaded.end()) return found->second;
  CUmodule module = nullptr;
  check(driver().cuModuleLoadData(&module, image.data()), "cuModuleLoadData");
  connect_faults(device, module);
  all.loaded.emplace(full, module);
  return module;
}

CUfunction function_of(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  const CUresult result = driver().cuModuleGetFunction(&function, module, name);
  TORCH_INTERNAL_ASSERT(result != CUDA_ERROR_NOT_FOUND, "no device function '", name, "'");
  check(result, "cuModuleGetFunction");
  return function;
}

std::vector<std::string> split(const char* options) {
  std::vector<std::string> out;
  std::string_view rest = options;
  while (!rest.empty()) {
    const size_t space = std::min(rest.find(' '), rest.size());
    if (space > 0) out.emplace_back(rest.substr(0, space));
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  return out;
}

} // namespace

std::string expand_file(const std::string& path) {
  const std::string_view text = find_file("ATen/" + path);
  TORCH_INTERNAL_ASSERT(!text.empty(), "no embedded device source '", path, "'");
  Expander expander;
  expander.text(text, "ATen/" + path);
  return expander.take();
}

std::string expand_text(const std::string& text) {
  Expander expander;
  expander.text(text, "generated");
  return expander.take();
}

CUfunction load_function(int device, const char* path, const char* options, const char* name) {
  std::unique_lock<std::mutex> lock(modules().mutex);
  CUmodule module = *options == '\0' ? image_module(device, path) : nullptr;
  if (module == nullptr)
    module = source_module(
        lock, device, std::string(path) + "|" + options, path, [&] { return expand_file(path); },
        split(options));
  return function_of(module, name);
}

CUfunction load_generated(int device, const char* image, const std::string& text,
                          const std::vector<std::string>& options, const char* name) {
  std::unique_lock<std::mutex> lock(modules().mutex);
  CUmodule module = image_module(device, image);
  if (module == nullptr)
    module = source_module(
        lock, device, text, name, [&] { return expand_text(text); }, options);
  return function_of(module, name);
}

CUfunction find_generated(int device, const std::string& text,
                          const std::vector<std::string>& options, const char* name) {
  std::unique_lock<std::mutex> lock(modules().mutex);
  CUmodule module = source_module(
      lock, device, text, name, [&] { return expand_text(text); }, options, /*only_cached=*/true);
  return module == nullptr ? nullptr : function_of(module, name);
}

} // namespace at::cuda
