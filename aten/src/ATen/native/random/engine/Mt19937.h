#pragma once

// The CPU generator's engine: MT19937 (Matsumoto and Nishimura, 1998), with the draws and the saved
// state that PyTorch builds on it, so that a seed gives the same numbers in both. Not thread-safe:
// who draws holds the generator's mutex.

#include <c10/macros/Macros.h>

#include <cstddef>
#include <cstdint>

namespace at::native::random {

class TORCH_API Mt19937 {
 public:
  static constexpr int kWords = 624;
  static constexpr size_t kStateBytes = 5056;
  static constexpr uint64_t kDefaultSeed = 67280421310721;

  explicit Mt19937(uint64_t seed = kDefaultSeed) { this->seed(seed); }

  /// Restarts the stream and drops the cached normal. Only the low 32 bits select the stream.
  void seed(uint64_t seed);
  uint64_t initial_seed() const { return seed_; }

  uint32_t random() {
    if (--left_ == 0) next_state();
    return temper(state_[next_++]);
  }
  /// Two draws, the high word first.
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }
  /// The next n draws of random(), in bulk.
  void fill(uint32_t* out, int64_t n);

  /// In [0, 1), from one draw.
  float uniform24() { return to_uniform24(random()); }
  /// In [0, 1), from two draws.
  double uniform53() { return to_uniform53(random64()); }
  /// Standard normal by Box-Muller on two uniform53; the second of the pair is kept for the next
  /// call.
  double normal();

  static float to_uniform24(uint32_t r) { return static_cast<float>(r & 0xffffff) * 0x1p-24f; }
  static double to_uniform53(uint64_t r) {
    return static_cast<double>(r & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
  }

  /// The bytes of torch.get_rng_state(): kStateBytes of them.
  void export_state(uint8_t* bytes) const;
  /// Throws c10::Error and changes nothing when the bytes are no state.
  void import_state(const uint8_t* bytes, size_t size);

 private:
  static uint32_t temper(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  void next_state();

  uint32_t state_[kWords];
  int32_t left_ = 1; // draws until the state is renewed, plus one
  int32_t next_ = 0; // word the next draw takes
  uint64_t seed_ = 0;
  double cached_normal_ = 0;
  bool has_cached_normal_ = false;
  uint64_t reserved_ =
      0; // a slot of the saved state that no draw uses, kept for a faithful round trip
};

} // namespace at::native::random
