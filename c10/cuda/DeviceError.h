// A report of a kernel about a value it cannot use, in memory that the host and the device share;
// see ErrorSlot.h. Host and device programs include this text.
#pragma once

#include <cstdint>

namespace c10::cuda {

struct DeviceError {
  uint32_t claimed;
  int32_t dim;    // the indexed dimension; -1: none to name; below: a fault, not an index
  int64_t value;  // the index found
  int64_t bound;  // valid ones are -bound .. bound-1, or 0 .. bound-1 where `op` says so
  const char* op; // a literal that the launcher passed, "index_select"
};
static_assert(sizeof(DeviceError) == 32,
              "the layout of DeviceError differs from the one that is written down");

// What `dim` says of faults that are no indices.
inline constexpr int kFaultZeroDivision = -2;
inline constexpr int kFaultNoProbability = -3;

} // namespace c10::cuda
