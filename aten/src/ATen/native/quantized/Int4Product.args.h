// The arguments of Int4Product.cuh.
#pragma once

#include <ATen/cuda/device/Arguments.h>

namespace at::device {

// y = x w' with w[r][i] = (level - 8) scale + zero, where a row's values share scale and zero in
// groups.
struct Int4ProductArgs {
  const void* x;     // bfloat16 [m][k]
  const void* words; // levels in the order of Int4Product.cuh
  const void* pairs; // bfloat16 [k / group][n][2]: scale and zero
  void* y;           // bfloat16 [m][n]
  int32_t m, n, k, group;
};
CRESSET_LAYOUT(Int4ProductArgs, 48, group, 44);

struct Int4PackArgs {
  const uint8_t* bytes; // [n][k / 2]; the high half is the even value
  uint32_t* words;
  int64_t count; // words
  int64_t k;
};
CRESSET_LAYOUT(Int4PackArgs, 32, k, 24);

} // namespace at::device
