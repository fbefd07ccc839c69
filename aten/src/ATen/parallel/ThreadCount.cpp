// Reads the thread count from the environment, the affinity mask and the cgroup files. The files
// are read with stdio because this runs once, and every failure means "no limit stated".

#include <ATen/parallel/ThreadCount.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace at::detail {
namespace {

constexpr int kMaxThreads = 1024;

/// The leading integer of an environment variable ("4" or OpenMP's list "4,2"); 0 if there is none.
int env_threads(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return 0;
  char* rest = nullptr;
  const long value = std::strtol(text, &rest, 10);
  if (rest == text || value < 1) return 0;
  return static_cast<int>(std::min<long>(value, kMaxThreads));
}

int affinity_count() {
#if defined(__linux__)
  // A fixed cpu_set_t is too small for machines with more than 1024 CPUs; grow until it fits.
  for (int cpus = 1024; cpus <= (1 << 18); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const size_t size = CPU_ALLOC_SIZE(cpus);
    CPU_ZERO_S(size, set);
    const int rc = sched_getaffinity(0, size, set);
    const int count = rc == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (rc == 0) return std::max(count, 1);
  }
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::string first_line(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return {};
  char line[256];
  const char* got = std::fgets(line, sizeof line, file);
  std::fclose(file);
  return got != nullptr ? std::string(line) : std::string();
}

/// CPUs granted by quota/period, rounded up; kMaxThreads where no limit is stated.
int cpus_of(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return kMaxThreads;
  const long long cpus = quota / period + (quota % period != 0);
  return static_cast<int>(std::min<long long>(std::max<long long>(cpus, 1), kMaxThreads));
}

int quota_v2(const std::string& dir) {
  long long quota = 0, period = 0;
  const std::string line = first_line(dir + "/cpu.max"); // "max 100000" states no limit
  if (std::sscanf(line.c_str(), "%lld %lld", &quota, &period) != 2) return kMaxThreads;
  return cpus_of(quota, period);
}

int quota_v1(const std::string& dir) {
  const std::string quota = first_line(dir + "/cpu.cfs_quota_us"); // -1 states no limit
  const std::string period = first_line(dir + "/cpu.cfs_period_us");
  return cpus_of(std::atoll(quota.c_str()), std::atoll(period.c_str()));
}

/// The tightest limit of `path` and all its parents below `root`: a parent's quota binds too. In a
/// container the path may lead outside of what is mounted; the walk then ends at the root.
template <class Quota> int tightest(const std::string& root, std::string path, Quota quota) {
  int best = quota(root);
  while (path.size() > 1) {
    best = std::min(best, quota(root + path));
    path.erase(path.rfind('/'));
  }
  return best;
}

int cgroup_count() {
  int best = kMaxThreads;
  std::FILE* file = std::fopen("/proc/self/cgroup", "re");
  if (file == nullptr) return best;
  char line[4096];
  while (std::fgets(line, sizeof line, file) != nullptr) { // id:controllers:path
    line[std::strcspn(line, "\n")] = '\0';
    char* controllers = std::strchr(line, ':');
    char* path = controllers != nullptr ? std::strchr(controllers + 1, ':') : nullptr;
    if (path == nullptr) continue;
    *controllers++ = '\0';
    *path++ = '\0';
    if (*path != '/') continue;
    if (*controllers == '\0') {
      best = std::min(best, tightest("/sys/fs/cgroup", path, quota_v2));
    } else if ((std::string(",") + controllers + ",").find(",cpu,") != std::string::npos) {
      best = std::min(best, tightest("/sys/fs/cgroup/cpu", path, quota_v1));
    }
  }
  std::fclose(file);
  return best;
}

} // namespace

int default_num_threads() {
  if (const int n = env_threads("OMP_NUM_THREADS")) return n;
  if (const int n = env_threads("MKL_NUM_THREADS")) return n;
  return std::min({affinity_count(), cgroup_count(), kMaxThreads});
}

} // namespace at::detail
