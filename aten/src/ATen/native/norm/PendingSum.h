// A gradient that is to be added to a sum which is already there. In a network of residual blocks
// the gradient of a norm's input always meets one that came past the block; a kernel that adds its
// result to the sum at once saves a pass over both.
//
// The engine offers the sum for as long as a node runs, the node's formula grants it to the call
// that computes its first gradient, and the kernel may take it: it then returns the sum itself, by
// which the engine knows. Everybody may ignore it.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace at::native {

// One word of a thread's memory, of which libraries have little, for what a caller offers a kernel:
// the sum's address, with the lowest bit set once it was granted; or, with the next bit set, the
// address of what BatchNormNeighbours.h describes.
inline thread_local uintptr_t t_offer = 0;
inline constexpr uintptr_t kGranted = 1, kNeighbours = 2;

class OfferSum {
 public:
  explicit OfferSum(const Tensor* sum) : before_(t_offer) {
    t_offer = reinterpret_cast<uintptr_t>(sum);
  }
  ~OfferSum() { t_offer = before_; }
  OfferSum(const OfferSum&) = delete;
  OfferSum& operator=(const OfferSum&) = delete;

 private:
  uintptr_t before_;
};

// Takes the offer: further calls of the node get none.
class GrantSum {
 public:
  GrantSum() {
    if (t_offer != 0 && (t_offer & kNeighbours) == 0) t_offer |= kGranted;
  }
  ~GrantSum() { t_offer = 0; }
  GrantSum(const GrantSum&) = delete;
  GrantSum& operator=(const GrantSum&) = delete;
};

// The sum that a gradient of the form of `like` may be added to, or null.
inline const Tensor* granted_sum(const Tensor& like) {
  if ((t_offer & kGranted) == 0) return nullptr;
  const auto* sum = reinterpret_cast<const Tensor*>(t_offer & ~kGranted);
  const bool fits = sum->sizes() == like.sizes() && sum->scalar_type() == like.scalar_type() &&
                    sum->device() == like.device() && sum->is_contiguous();
  return fits ? sum : nullptr;
}

} // namespace at::native
