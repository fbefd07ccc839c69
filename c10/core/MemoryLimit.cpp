// Asks the system and the cgroup files for the memory limit; whatever cannot be read states none.

#include <c10/core/MemoryLimit.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include <sys/sysinfo.h>

namespace c10::detail {
namespace {

constexpr int64_t kNoLimit = INT64_MAX;

int64_t limit_in(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return kNoLimit;
  unsigned long long value = 0;
  const bool stated = std::fscanf(file, "%llu", &value) == 1; // v2 says "max" for no limit
  std::fclose(file);
  return stated && value > 0 && value < static_cast<unsigned long long>(kNoLimit)
             ? static_cast<int64_t>(value)
             : kNoLimit;
}

/// The tightest of the limits of a cgroup and its parents.
int64_t tightest(const std::string& root, std::string path, const char* name) {
  int64_t best = limit_in(root + "/" + name);
  while (path.size() > 1) {
    best = std::min(best, limit_in(root + path + "/" + name));
    path.erase(path.rfind('/'));
  }
  return best;
}

int64_t cgroup_limit() {
  int64_t best = kNoLimit;
  std::FILE* file = std::fopen("/proc/self/cgroup", "re");
  if (file == nullptr) return best;
  char line[4096];
  while (std::fgets(line, sizeof line, file) != nullptr) { // id:controllers:path
    line[std::strcspn(line, "\n")] = '\0';
    char* controllers = std::strchr(line, ':');
    char* path = controllers != nullptr ? std::strchr(controllers + 1, ':') : nullptr;
    if (path == nullptr || path[1] != '/') continue;
    *path++ = '\0';
    ++controllers;
    if (*controllers == '\0') {
      best = std::min(best, tightest("/sys/fs/cgroup", path, "memory.max"));
    } else if (std::strcmp(controllers, "memory") == 0) {
      best = std::min(best, tightest("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
    }
  }
  std::fclose(file);
  return best;
}

int64_t read_limit() {
  struct sysinfo info;
  int64_t machine = kNoLimit;
  if (sysinfo(&info) == 0) {
    machine = static_cast<int64_t>((info.totalram + info.totalswap) * info.mem_unit);
  }
  return std::min(machine, cgroup_limit());
}

} // namespace

int64_t memory_limit() {
  static const int64_t limit = read_limit();
  return limit;
}

} // namespace c10::detail
