// What an out-of-memory error says: PyTorch's sentences, then which sizes hold the most memory.
// Private to c10/cuda.
#pragma once
#include <map>
#include <string>

#include <c10/core/Device.h>

namespace c10::cuda {

struct OutOfMemoryReport {
  size_t requested = 0;
  DeviceIndex device = 0;
  int64_t allocated = 0;
  int64_t reserved = 0;
  double allowed_fraction = 1.0;
  std::map<size_t, int64_t> live; // how many blocks of each size

  void add_live(size_t size) { ++live[size]; }
  std::string text() const;
};

// "20.00 MiB", as PyTorch writes it.
std::string format_size(uint64_t bytes);

} // namespace c10::cuda
