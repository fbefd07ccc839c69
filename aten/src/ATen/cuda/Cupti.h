// What the GPU did and when: kernels, copies and fills with their times, and the calls of the
// driver or the runtime that started them, as the vendor's tracing library (CUPTI) records them.
// The library is loaded when a record is first asked for; until then, and whenever nothing records,
// nothing here is on the way of a launch.
//
// There is one record in a process, kept for the thread that started it. Other threads' work on the
// GPU is in it too, without a mark.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/macros/Macros.h>

namespace at::cuda {

enum class ActivityKind : uint8_t { Kernel, Copy, Fill, DriverCall, RuntimeCall };

struct Activity {
  ActivityKind kind = ActivityKind::Kernel;
  std::string name;
  int64_t start = 0, end = 0; // nanoseconds of the steady clock
  // Equal for a call and the work it started; 0: unknown.
  uint32_t correlation = 0;
  // The innermost mark in force on the thread that made the call, 0: none.
  uint64_t mark = 0;
  uint32_t device = 0, context = 0, stream = 0; // of work
  uint32_t thread = 0;                          // of a call
  uint64_t bytes = 0;                           // of a copy or fill
  int32_t grid[3] = {}, block[3] = {};          // of a kernel
  int32_t shared_memory = 0;                    // bytes of a block
  uint16_t registers = 0;                       // of a thread
};

// Begins the record. "" on success, otherwise why there is none: the library is missing or refuses
// (another profiler is attached, the user may not), or the process records already.
TORCH_API std::string start_activity_record();

// Ends the record and returns it, in order of time. Work that has not finished is not in it:
// synchronize first. Empty where no record was begun, or in a child of the process that began it.
TORCH_API std::vector<Activity> stop_activity_record();

// Ends the record and throws it away, where nobody is left to read it.
TORCH_API void abandon_activity_record() noexcept;

// Work started between the two, by this thread, bears the mark; marks nest.
TORCH_API void push_activity_mark(uint64_t mark) noexcept;
TORCH_API void pop_activity_mark() noexcept;

} // namespace at::cuda
