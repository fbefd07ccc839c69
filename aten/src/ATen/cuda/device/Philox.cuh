// Philox4x32-10 (Salmon et al., 2011): four 32-bit random numbers as a function of a 64-bit key and
// a 128-bit counter. Kernels number the counters by element, so what an element gets depends on the
// generator's state alone, not on the launch.
#pragma once

#include <ATen/cuda/device/Prelude.cuh>

namespace at::device {

struct Draws {
  unsigned v[4];
  // Uniform in [0, 1) with 24 bits, in (0, 1), and the same with 53 bits from two words.
  CRESSET_DEVICE_FN float uniform(int i) const { return (v[i] >> 8) * 0x1p-24f; }
  CRESSET_DEVICE_FN float open(int i) const {
    return (static_cast<float>(v[i] >> 9) + 0.5f) * 0x1p-23f;
  }
  CRESSET_DEVICE_FN unsigned long wide(int i) const {
    return static_cast<unsigned long>(v[2 * i + 1]) << 32 | v[2 * i];
  }
  CRESSET_DEVICE_FN double uniform_wide(int i) const { return (wide(i) >> 11) * 0x1p-53; }
  CRESSET_DEVICE_FN double open_wide(int i) const {
    return (static_cast<double>(wide(i) >> 12) + 0.5) * 0x1p-52;
  }
};

CRESSET_DEVICE_FN Draws philox(unsigned long key, unsigned long low, unsigned long high) {
  unsigned k0 = static_cast<unsigned>(key), k1 = static_cast<unsigned>(key >> 32);
  Draws c = {{static_cast<unsigned>(low), static_cast<unsigned>(low >> 32),
              static_cast<unsigned>(high), static_cast<unsigned>(high >> 32)}};
  CRESSET_UNROLL
  for (int round = 0; round < 10; ++round) {
    const unsigned hi0 = __umulhi(0xD2511F53u, c.v[0]), lo0 = 0xD2511F53u * c.v[0];
    const unsigned hi1 = __umulhi(0xCD9E8D57u, c.v[2]), lo1 = 0xCD9E8D57u * c.v[2];
    c = {{hi1 ^ c.v[1] ^ k0, lo1, hi0 ^ c.v[3] ^ k1, lo0}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// The numbers of group `group` of a call that starts at this state.
CRESSET_DEVICE_FN Draws draws_of(const PhiloxState& state, unsigned long group) {
  if (state.graph != nullptr)
    return philox(state.graph[0], (state.graph[1] + state.offset) / 4, group);
  return philox(state.seed, state.offset / 4, group);
}

} // namespace at::device
