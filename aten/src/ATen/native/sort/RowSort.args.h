// How RowSort.cuh turns elements of any type into numbers whose unsigned order is theirs.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

enum KeyKind : int32_t { kKeyUnsigned, kKeySigned, kKeyFloat, kKeyBool };

struct KeyMasks {
  uint64_t sign, infinity, mask; // the element's sign bit, its +infinity, all of its bits
  int32_t bytes, kind;
  int32_t flip; // the order turned around
  int32_t unused;
};
CRESSET_LAYOUT(KeyMasks, 40, unused, 36);

} // namespace at::device
