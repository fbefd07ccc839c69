// Seeding, renewal and the saved state of the engine. The layout of the saved state was found by
// watching torch.get_rng_state(): see Note [Saved state].

#include <ATen/native/random/engine/Mt19937.h>

#include <ATen/native/random/engine/Kernels.h>
#include <ATen/parallel/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace at::native::random {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

// Note [Saved state]
// Little-endian, all gaps zero:
//      0  u64       seed
//      8  i32       left, 1 to 624
//     12  i32       1 when seeded
//     16  u64       next, 0 to 624
//     24  u64[624]  state words, widened
//   5024  f64       cached normal
//   5040  i32       1 when there is one
//   5048  8 bytes   a cache for single-precision normals that nothing uses
constexpr size_t kLeftAt = 8, kSeededAt = 12, kNextAt = 16, kWordsAt = 24, kNormalAt = 5024,
                 kHasNormalAt = 5040, kReservedAt = 5048;

template <class T> T read(const uint8_t* bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}
template <class T> void write(uint8_t* bytes, size_t offset, T value) {
  std::memcpy(bytes + offset, &value, sizeof value);
}

} // namespace

void Mt19937::seed(uint64_t seed) {
  seed_ = seed;
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; ++i) {
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
  left_ = 1;
  next_ = 0;
  cached_normal_ = 0;
  has_cached_normal_ = false;
  reserved_ = 0;
}

void Mt19937::next_state() {
  engine_kernels().twist(state_);
  left_ = kWords;
  next_ = 0;
  // Every draw of a long fill comes through here, and nothing else of it hears Ctrl-C.
  check_interrupt();
}

void Mt19937::fill(uint32_t* out, int64_t n) {
  const EngineKernels& kernels = engine_kernels();
  while (n > 0) {
    if (left_ == 1) {
      next_state();
      left_ = kWords + 1; // the first draw after a renewal has not been counted yet
    }
    const int64_t count = std::min<int64_t>(n, left_ - 1);
    kernels.temper(state_ + next_, out, count);
    next_ += static_cast<int32_t>(count);
    left_ -= static_cast<int32_t>(count);
    out += count;
    n -= count;
  }
}

double Mt19937::normal() {
  if (has_cached_normal_) {
    has_cached_normal_ = false;
    return std::exchange(cached_normal_, 0.0);
  }
  const double u1 = uniform53();
  const double u2 = uniform53();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double theta = kTwoPi * u1;
  cached_normal_ = radius * std::sin(theta);
  has_cached_normal_ = true;
  return radius * std::cos(theta);
}

void Mt19937::export_state(uint8_t* bytes) const {
  std::memset(bytes, 0, kStateBytes);
  write<uint64_t>(bytes, 0, seed_);
  write<int32_t>(bytes, kLeftAt, left_);
  write<int32_t>(bytes, kSeededAt, 1);
  write<uint64_t>(bytes, kNextAt, static_cast<uint64_t>(next_));
  for (size_t i = 0; i < kWords; ++i) write<uint64_t>(bytes, kWordsAt + 8 * i, state_[i]);
  write<double>(bytes, kNormalAt, cached_normal_);
  write<int32_t>(bytes, kHasNormalAt, has_cached_normal_ ? 1 : 0);
  write<uint64_t>(bytes, kReservedAt, reserved_);
}

void Mt19937::import_state(const uint8_t* bytes, size_t size) {
  TORCH_CHECK(size == kStateBytes, "Expected a CPUGeneratorImplState of size ", kStateBytes,
              " but found the input RNG state size to be ", size);
  const int32_t left = read<int32_t>(bytes, kLeftAt);
  const uint64_t next = read<uint64_t>(bytes, kNextAt);
  // The last condition keeps every draw inside the state; true states have left + next == 625, or
  // (1, 0) right after seeding.
  TORCH_CHECK(read<int32_t>(bytes, kSeededAt) == 1 && left >= 1 && left <= kWords &&
                  next <= kWords && next + static_cast<uint64_t>(left) <= kWords + 1,
              "Invalid mt19937 state");
  seed_ = read<uint64_t>(bytes, 0);
  left_ = left;
  next_ = static_cast<int32_t>(next);
  for (size_t i = 0; i < kWords; ++i) {
    state_[i] = static_cast<uint32_t>(read<uint64_t>(bytes, kWordsAt + 8 * i));
  }
  has_cached_normal_ = read<int32_t>(bytes, kHasNormalAt) != 0;
  cached_normal_ = has_cached_normal_ ? read<double>(bytes, kNormalAt) : 0.0;
  reserved_ = read<uint64_t>(bytes, kReservedAt);
}

} // namespace at::native::random
