// See VendorLibrary.h.
#include <ATen/cuda/VendorLibrary.h>

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace at::cuda {
namespace {

// The folder that holds the package this library belongs to, "" where that cannot be told: the
// library lies in torch/lib.
std::string packages_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&packages_folder), &info)) return "";
  std::string path = info.dli_fname;
  for (int level = 0; level < 3; ++level) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return "";
    path.resize(slash);
  }
  return path;
}

std::vector<std::string> folders() {
  std::vector<std::string> all = {""}, toolkits;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(variable)) toolkits.push_back(root);
  toolkits.push_back("/usr/local/cuda");
  for (const std::string& toolkit : toolkits)
    for (const char* place : {"/lib64/", "/extras/CUPTI/lib64/"}) all.push_back(toolkit + place);
  const std::string packages = packages_folder();
  if (packages.empty()) return all;
  for (const char* package :
       {"cu13", "cublas", "cuda_nvrtc", "cudnn", "cufft", "cusolver", "cuda_cupti", "nvtx"})
    all.push_back(packages + "/nvidia/" + package + "/lib/");
  return all;
}

void* open_library(std::initializer_list<const char*> names) {
  for (const std::string& folder : folders())
    for (const char* name : names)
      if (void* library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

} // namespace

bool fill_vendor_table(void* table, std::initializer_list<const char*> names,
                       c10::ArrayRef<VendorFunction> functions) {
  void* const library = open_library(names);
  if (library == nullptr) return false;
  for (const VendorFunction& function : functions) {
    void* const address = dlsym(library, function.name);
    if (address == nullptr) return false;
    std::memcpy(static_cast<char*>(table) + function.place, &address, sizeof address);
  }
  return true;
}

} // namespace at::cuda
