// See SymbolicShapes.h.
#include <ATen/iter/SymbolicShapes.h>

#include <ATen/iter/DimensionOrder.h>
#include <c10/core/SymbolicGeometry.h>

#include <algorithm>

namespace at {

using c10::expect_true;
using c10::guard_or_false;
using c10::guard_or_true;

namespace {
bool is_one(SymInt size) { return guard_or_false(c10::sym_eq(size, 1)); }

// The size of two that a dimension gets.
SymInt common_size(SymInt x, SymInt y, size_t dim) {
  if (x.raw() == y.raw()) return x;
  if (is_one(x)) return y;
  if (is_one(y)) return x;
  TORCH_CHECK(expect_true(c10::sym_eq(x, y)), "The size of tensor a (", x,
              ") must match the size of tensor b (", y, ") at non-singleton dimension ", dim);
  // The plain one of two equal sizes says more.
  return x.is_symbolic() ? y : x;
}

bool same_sizes(const Tensor& t, SymIntArrayRef shape) {
  if (t.dim() != static_cast<int64_t>(shape.size())) return false;
  for (size_t d = 0; d < shape.size(); ++d)
    if (!guard_or_false(c10::sym_eq(t.sym_sizes()[d], shape[d]))) return false;
  return true;
}

// Innermost first, as plain tensors of the traced run's sizes would have it.
DimVector traced_order(SymIntArrayRef shape, ArrayRef<const Tensor*> operands) {
  const int64_t ndim = static_cast<int64_t>(shape.size());
  DimVector sizes;
  for (const SymInt size : shape) sizes.push_back(size.hint().value_or(2));
  c10::SmallVector<DimVector, 4> lists;
  for (const Tensor* t : operands) {
    DimVector strides(static_cast<size_t>(ndim), 0);
    const int64_t missing = ndim - t->dim();
    for (int64_t d = missing; d < ndim; ++d) {
      const bool spread = t->sym_sizes()[d - missing].hint() == 1 && sizes[d] != 1;
      if (!spread) strides[d] = t->sym_strides()[d - missing].hint().value_or(0);
    }
    lists.push_back(std::move(strides));
  }
  c10::SmallVector<IntArrayRef, 4> refs;
  for (const DimVector& list : lists) refs.push_back(list);
  return dimension_order(sizes, refs);
}

void guard_order(ArrayRef<const Tensor*> operands, const DimVector& order) {
  const size_t ndim = order.size();
  for (const Tensor* t : operands) {
    if (t->dim() != static_cast<int64_t>(ndim)) continue;
    for (size_t i = 1; i < ndim; ++i) {
      const SymInt inner = t->sym_strides()[order[i - 1]], outer = t->sym_strides()[order[i]];
      if (inner.hint() <= outer.hint()) guard_or_true(c10::sym_le(inner, outer));
    }
  }
}
} // namespace

std::vector<SymInt> symbolic_broadcast(SymIntArrayRef a, SymIntArrayRef b) {
  const size_t n = std::max(a.size(), b.size());
  std::vector<SymInt> out(n);
  for (size_t back = 1; back <= n; ++back) {
    const SymInt x = back <= a.size() ? a[a.size() - back] : SymInt(1);
    const SymInt y = back <= b.size() ? b[b.size() - back] : SymInt(1);
    out[n - back] = common_size(x, y, n - back);
  }
  return out;
}

std::vector<SymInt> symbolic_broadcast(ArrayRef<const Tensor*> operands) {
  std::vector<SymInt> out;
  for (const Tensor* t : operands) out = symbolic_broadcast(out, t->sym_sizes());
  return out;
}

std::vector<SymInt> symbolic_output_strides(SymIntArrayRef shape,
                                            ArrayRef<const Tensor*> operands) {
  bool contiguous = true;
  for (const Tensor* t : operands)
    contiguous = contiguous && (t->dim() == 0 || (same_sizes(*t, shape) && t->is_contiguous()));
  if (contiguous || shape.size() < 2) return c10::sym_contiguous_strides(shape);
  const DimVector order = traced_order(shape, operands);
  guard_order(operands, order);
  std::vector<SymInt> out(shape.size());
  SymInt step = 1;
  for (int64_t d : order) {
    out[d] = step;
    step = step * c10::sym_max(shape[d], 1);
  }
  return out;
}

} // namespace at
