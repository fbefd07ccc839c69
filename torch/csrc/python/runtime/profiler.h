// The recorder behind torch.profiler: which operators ran, when, on what, as torch._C._profiler_*.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <cstdint>
#include <string>

namespace torch::python {

// What a device adds to a recording: its own work, marked by the events during which it was
// started, and ranges in the timeline of the vendor's tools.
struct DeviceRecorder {
  std::string (*start)(); // "", or why the device's work is not recorded
  PyRef (*stop)();        // a list of tuples, see _profiler_stop
  void (*abandon)() noexcept;
  void (*push_mark)(uint64_t mark) noexcept;
  void (*pop_mark)() noexcept;
  int (*push_range)(const char* name);
  int (*pop_range)();
};
// The recorder lives as long as the process.
void set_device_recorder(const DeviceRecorder* recorder) noexcept;

bool init_profiler(PyObject* module);
// Whether the operators of this thread are being recorded.
bool is_profiling() noexcept;

} // namespace torch::python
