// See NcclTable.h.
#include <torch/csrc/distributed/nccl/NcclTable.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include <dlfcn.h>

namespace c10d::engine::nccl {

namespace {

// torch/lib/libtorch_nccl.so lies three levels below the folder of packages.
std::string packages_folder() {
  Dl_info info;
  if (!::dladdr(reinterpret_cast<void*>(&packages_folder), &info)) return {};
  std::string path = info.dli_fname;
  for (int level = 0; level < 3; ++level) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {};
    path.resize(slash);
  }
  return path;
}

std::vector<std::string> candidates() {
  const char* chosen = ::getenv("CRESSET_NCCL_LIBRARY");
  if (chosen && *chosen) return {chosen};
  std::vector<std::string> found = {"libnccl.so.2"};
  const std::string folder = packages_folder();
  if (!folder.empty()) found.push_back(folder + "/nvidia/nccl/lib/libnccl.so.2");
  return found;
}

struct Entry {
  const char* name;
  size_t place;
};
#define ENTRY(name)                                                                                \
  { #name, offsetof(Table, name) }
constexpr Entry kEntries[] = {ENTRY(ncclGetVersion),
                              ENTRY(ncclGetUniqueId),
                              ENTRY(ncclCommInitRank),
                              ENTRY(ncclCommFinalize),
                              ENTRY(ncclCommDestroy),
                              ENTRY(ncclCommAbort),
                              ENTRY(ncclCommGetAsyncError),
                              ENTRY(ncclGetErrorString),
                              ENTRY(ncclGetLastError),
                              ENTRY(ncclRedOpCreatePreMulSum),
                              ENTRY(ncclRedOpDestroy),
                              ENTRY(ncclAllReduce),
                              ENTRY(ncclReduce),
                              ENTRY(ncclBroadcast),
                              ENTRY(ncclAllGather),
                              ENTRY(ncclReduceScatter),
                              ENTRY(ncclSend),
                              ENTRY(ncclRecv),
                              ENTRY(ncclGroupStart),
                              ENTRY(ncclGroupEnd),
                              ENTRY(ncclCommRegister),
                              ENTRY(ncclCommDeregister)};
#undef ENTRY

struct Loaded {
  Table table;
  std::string why;
  bool usable = false;
};

Loaded load() {
  Loaded out;
  void* library = nullptr;
  for (const auto& path : candidates()) {
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    const char* reason = ::dlerror();
    out.why += (out.why.empty() ? "" : "; ") + std::string(reason ? reason : path);
  }
  if (!library) return out;
  for (const auto& entry : kEntries) {
    void* const address = ::dlsym(library, entry.name);
    if (!address) {
      out.why = std::string("the NCCL library has no ") + entry.name + ": it is too old";
      return out;
    }
    std::memcpy(reinterpret_cast<char*>(&out.table) + entry.place, &address, sizeof address);
  }
  out.table.is_emulated = ::dlsym(library, "cresset_emulates_nccl") != nullptr;
  out.usable = true;
  return out;
}

} // namespace

const Table* table(std::string& why) {
  static const auto* loaded = new Loaded(load());
  why = loaded->why;
  return loaded->usable ? &loaded->table : nullptr;
}

} // namespace c10d::engine::nccl
