// See StridedPlan.h.
#include <ATen/cuda/StridedPlan.h>

#include <utility>

namespace at::cuda {
namespace {

void swap_dims(StridedPlan& p, int a, int b) {
  std::swap(p.size[a], p.size[b]);
  for (int k = 0; k < p.operands; ++k) std::swap(p.stride[a][k], p.stride[b][k]);
}

// True when dimension b belongs inside dimension a: the first operand that tells decides.
bool inside(const StridedPlan& p, int b, int a) {
  for (int k = 0; k < p.operands; ++k) {
    const int64_t x = p.stride[a][k], y = p.stride[b][k];
    if (x == 0 || y == 0 || x == y) continue;
    return y < x;
  }
  return false;
}

bool continues(const StridedPlan& p, int inner, int outer) {
  for (int k = 0; k < p.operands; ++k)
    if (p.stride[outer][k] != p.stride[inner][k] * p.size[inner]) return false;
  return true;
}

} // namespace

StridedPlan::StridedPlan(IntArrayRef shape, int count)
    : ndim(static_cast<int>(shape.size())), operands(count) {
  TORCH_CHECK(ndim <= kMaxRank, "tensors of more than ", kMaxRank, " dimensions are not supported");
  for (int d = 0; d < ndim; ++d) {
    size[d] = shape[static_cast<size_t>(ndim - 1 - d)];
    for (int k = 0; k < operands; ++k) stride[d][k] = 0;
  }
}

void StridedPlan::set(int k, const Tensor& tensor) {
  const IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  const int64_t itemsize = tensor.itemsize();
  const int rank = static_cast<int>(sizes.size());
  for (int d = 0; d < rank && d < ndim; ++d) {
    const size_t from = static_cast<size_t>(rank - 1 - d);
    stride[d][k] = sizes[from] == 1 ? 0 : strides[from] * itemsize;
  }
}

void StridedPlan::set(int k, IntArrayRef byte_strides) {
  for (int d = 0; d < ndim; ++d) stride[d][k] = byte_strides[static_cast<size_t>(ndim - 1 - d)];
}

void StridedPlan::build() {
  int kept = 0;
  for (int d = 0; d < ndim; ++d) {
    if (size[d] == 1) continue;
    if (kept != d) swap_dims(*this, kept, d);
    ++kept;
  }
  ndim = kept;
  for (int d = 1; d < ndim; ++d)
    for (int e = d; e > 0 && inside(*this, e, e - 1); --e) swap_dims(*this, e, e - 1);
  int last = 0;
  for (int d = 1; d < ndim; ++d) {
    if (continues(*this, last, d)) {
      size[last] *= size[d];
    } else if (++last != d) {
      swap_dims(*this, last, d);
    }
  }
  if (ndim > 0) ndim = last + 1;
}

} // namespace at::cuda
