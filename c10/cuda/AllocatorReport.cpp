// The text of an out-of-memory error. See AllocatorReport.h.
#include <c10/cuda/AllocatorReport.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>

namespace c10::cuda {

std::string format_size(uint64_t bytes) {
  char text[64];
  const double size = static_cast<double>(bytes);
  if (bytes <= 1024)
    std::snprintf(text, sizeof text, "%llu bytes", static_cast<unsigned long long>(bytes));
  else if (bytes <= 1048576)
    std::snprintf(text, sizeof text, "%.2f KiB", size / 1024);
  else if (bytes <= 1073741824ull)
    std::snprintf(text, sizeof text, "%.2f MiB", size / 1048576);
  else
    std::snprintf(text, sizeof text, "%.2f GiB", size / 1073741824);
  return text;
}

std::string OutOfMemoryReport::text() const {
  std::string out = str("CUDA out of memory. Tried to allocate ", format_size(requested), ".");
  try {
    const auto [free, total] = CUDACachingAllocator::memory_info(device);
    c10::append(out, str(" GPU ", int{device}, " has a total capacity of ", format_size(total),
                         " of which ", format_size(free), " is free."));
  } catch (const Error&) {
    // The driver says nothing about a device it has lost; our own figures still help.
  }
  if (allowed_fraction < 1.0) {
    char percent[32];
    std::snprintf(percent, sizeof percent, "%.2f", allowed_fraction * 100);
    c10::append(out, str(" The process is limited to ", percent, " % of it."));
  }
  c10::append(out, str(" Of the allocated memory ", format_size(allocated),
                       " is allocated by PyTorch, and ", format_size(reserved - allocated),
                       " is reserved by PyTorch but unallocated."));
  std::vector<std::pair<size_t, int64_t>> groups(live.begin(), live.end());
  std::sort(groups.begin(), groups.end(),
            [](const auto& a, const auto& b) { return a.first * a.second > b.first * b.second; });
  constexpr size_t kShown = 5;
  for (size_t i = 0; i < groups.size() && i < kShown; ++i) {
    const auto [size, count] = groups[i];
    c10::append(out, str(i == 0 ? "\n  largest live groups: " : ", ", count, " x ",
                         format_size(size), " (", format_size(size * count), ")"));
  }
  return out;
}

} // namespace c10::cuda
