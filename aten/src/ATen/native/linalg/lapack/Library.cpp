// Opens OpenBLAS. It is searched for where CRESSET_LAPACK says, in the package folder beside ours
// (both installed into one environment), where the build linked it, where the Python layer finds
// the package, and last by its plain name as the system's loader does.
#include <ATen/native/linalg/lapack/Library.h>

#include <atomic>
#include <climits>
#include <cstdlib>
#include <mutex>
#include <vector>

#include <dlfcn.h>

#include <ATen/native/linalg/lapack/Lapack.h>
#include <c10/util/Exception.h>

namespace at::native::lapack {
namespace {

constexpr const char* kPackageFile = "scipy_openblas32/lib/libscipy_openblas.so";

std::atomic<Finder> finder{nullptr};
std::atomic<void*> handle{nullptr};
std::mutex mutex;

// The folder `up` levels above this library, with a slash at its end; empty when it has no path.
// `resolved`: above the file itself where the library was opened by a link to it.
std::string folder_above(int up, bool resolved) {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&set_finder), &info) == 0 || !info.dli_fname) return {};
  char real[PATH_MAX];
  std::string path = resolved && realpath(info.dli_fname, real) ? real : info.dli_fname;
  for (int level = 0; level < up; ++level) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {};
    path.resize(slash);
  }
  return path + "/";
}

// Where the build linked the package's library, for C++ programs that run on a built source tree.
// Programs find the tree's library by a link in torch/lib; what was linked is beside the file.
// The link is followed here: the library finds its own neighbours by the path it is opened with.
std::string linked_by_build() {
  const std::string folder = folder_above(1, /*resolved=*/true);
  char real[PATH_MAX];
  const std::string link = folder + "libscipy_openblas.so";
  return !folder.empty() && realpath(link.c_str(), real) != nullptr ? real : "";
}

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  if (const char* given = std::getenv("CRESSET_LAPACK")) {
    paths.emplace_back(given);
    return paths;
  }
  // site-packages/torch/lib/libtorch.so -> site-packages/
  const std::string folder = folder_above(3, /*resolved=*/false);
  if (!folder.empty()) paths.push_back(folder + kPackageFile);
  if (const std::string linked = linked_by_build(); !linked.empty()) paths.push_back(linked);
  if (const Finder ask = finder.load()) {
    const std::string found = ask();
    if (!found.empty()) paths.push_back(found);
  }
  paths.emplace_back("libscipy_openblas.so");
  return paths;
}

void* open_one_of(const std::vector<std::string>& paths) {
  std::string reasons;
  for (const std::string& path : paths) {
    if (void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      using SetThreads = void (*)(int);
      void* set_threads = dlsym(opened, "scipy_openblas_set_num_threads");
      if (set_threads && dlsym(opened, "scipy_dgetrf_")) {
        reinterpret_cast<SetThreads>(set_threads)(1);
        return opened;
      }
      reasons += "\n  " + path + ": not an OpenBLAS with the scipy_ prefix";
      dlclose(opened);
      continue;
    }
    const char* why = dlerror();
    reasons += std::string("\n  ") + (why ? why : path.c_str());
  }
  TORCH_CHECK(
      false,
      "this operator needs LAPACK, which comes with the package scipy-openblas32: install it "
      "(pip install scipy-openblas32) or set CRESSET_LAPACK to its libscipy_openblas.so. "
      "Tried:",
      reasons);
}

} // namespace

void set_finder(Finder f) { finder.store(f); }

void require() {
  if (handle.load(std::memory_order_acquire)) return;
  // Asking Python may hand the interpreter's lock to a thread that comes here too: not under ours.
  const std::vector<std::string> paths = candidates();
  const std::lock_guard<std::mutex> lock(mutex);
  if (!handle.load()) handle.store(open_one_of(paths), std::memory_order_release);
}

void* symbol(const char* name) {
  require();
  void* address = dlsym(handle.load(), (std::string("scipy_") + name + "_").c_str());
  TORCH_CHECK(address, "the LAPACK library has no routine ", name);
  return address;
}

} // namespace at::native::lapack
