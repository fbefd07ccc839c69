// Which calls the fused attention kernels compute, and what their results look like.
#pragma once

#include <tuple>

#include <ATen/core/EmptyTensor.h>

namespace at::native {

// Batch x heads x length x dim of one 16-bit type, equal batches, lengths and dims where they must
// be, the heads of keys a divisor of those of queries, and a dim the kernels have room for.
inline bool fused_attention_fits(const Tensor& q, const Tensor& k, const Tensor& v) {
  constexpr int64_t kLongest = int64_t(1) << 30;
  const ScalarType dtype = q.scalar_type();
  if (dtype != kHalf && dtype != kBFloat16) return false;
  if (k.scalar_type() != dtype || v.scalar_type() != dtype) return false;
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4 || k.sizes() != v.sizes()) return false;
  const int64_t dim = q.size(3);
  return q.size(0) == k.size(0) && k.size(3) == dim && dim > 0 && dim <= 128 && dim % 8 == 0 &&
         k.size(1) > 0 && q.size(1) % k.size(1) == 0 && q.size(2) < kLongest &&
         k.size(2) < kLongest && q.size(1) < kLongest;
}

// Of t's shape, its heads inside or outside the length as t's are.
inline Tensor empty_as(const Tensor& t, Device device) {
  const int64_t b = t.size(0), h = t.size(1), n = t.size(2), d = t.size(3);
  if (h == 1 || n <= 1 || t.stride(1) >= t.stride(2))
    return detail::empty(t.sizes(), t.scalar_type(), device);
  const Tensor rows = detail::empty({b, n, h, d}, t.scalar_type(), device);
  return rows.transpose(1, 2);
}
inline Tensor empty_as(const Tensor& t) { return empty_as(t, t.device()); }

// The output and the logarithms of the sums of exponentials.
inline std::tuple<Tensor, Tensor> fused_attention_results(const Tensor& query) {
  return {empty_as(query), detail::empty(query.sizes().slice(0, 3), kFloat, query.device())};
}

} // namespace at::native
