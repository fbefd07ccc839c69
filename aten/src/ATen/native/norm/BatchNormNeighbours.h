// What a compiled graph does beside a batch norm. The kernels of a GPU do it on the way, with the
// bits that kernels of its own would give, and save passes over memory that take as long as the
// norm itself.
#pragma once

#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/native/norm/PendingSum.h>

namespace at::native {

struct BatchNormNeighbours {
  // Forward: the result is the positive part of the norm, or of the norm plus `added`. `is_done`
  // says whether the kernel did it.
  bool rectifies = false, is_done = false;
  Tensor added; // undefined: nothing
  // Backward: the gradient is one of the positive part, which was `rectified`; undefined: it is
  // that of the norm. Always done.
  Tensor rectified;
};

// Offers the next batch norm of this thread its neighbours.
class OfferNeighbours {
 public:
  explicit OfferNeighbours(BatchNormNeighbours* offered) : before_(t_offer) {
    t_offer = reinterpret_cast<uintptr_t>(offered) | kNeighbours;
  }
  ~OfferNeighbours() { t_offer = before_; }
  OfferNeighbours(const OfferNeighbours&) = delete;
  OfferNeighbours& operator=(const OfferNeighbours&) = delete;

 private:
  uintptr_t before_;
};

// Null where there are none; nobody else gets them.
inline BatchNormNeighbours* take_neighbours() {
  if ((t_offer & kNeighbours) == 0) return nullptr;
  return reinterpret_cast<BatchNormNeighbours*>(std::exchange(t_offer, 0) & ~kNeighbours);
}

} // namespace at::native
