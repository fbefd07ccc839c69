// Gradients of queries, keys and values that are parts of one projection.
//
// A model computes the three by one product and splits it. In eager code their gradients are then
// laid out as the parts are, side by side in one piece of memory, and the gradient of the split
// finds them joined already. A traced graph says that they lie apart, so it is asked for by whoever
// knows that nothing is traced.
#pragma once

#include <ATen/core/Tensor.h>

namespace at::native {

inline thread_local bool t_packs_gradients = false;

class PackGradients {
 public:
  explicit PackGradients(bool wanted) : before_(t_packs_gradients) { t_packs_gradients = wanted; }
  ~PackGradients() { t_packs_gradients = before_; }
  PackGradients(const PackGradients&) = delete;
  PackGradients& operator=(const PackGradients&) = delete;

 private:
  bool before_;
};

// Whether batch x heads x length x dim tensors are the parts, in this order, of one batch x length
// x (3 heads dim) tensor.
inline bool are_parts_of_one(const Tensor& q, const Tensor& k, const Tensor& v) {
  if (q.sizes() != k.sizes() || q.sizes() != v.sizes() || q.numel() == 0) return false;
  if (q.strides() != k.strides() || q.strides() != v.strides()) return false;
  if (!q.is_alias_of(k) || !q.is_alias_of(v)) return false;
  const int64_t h = q.size(1), n = q.size(2), d = q.size(3), part = h * d;
  return q.stride(3) == 1 && q.stride(1) == d && q.stride(2) == 3 * part &&
         q.stride(0) == n * 3 * part && k.storage_offset() == q.storage_offset() + part &&
         v.storage_offset() == k.storage_offset() + part;
}

inline bool packs_gradients(const Tensor& q, const Tensor& k, const Tensor& v) {
  return t_packs_gradients && are_parts_of_one(q, k, v);
}

} // namespace at::native
