// Composites that pack tensors of different sizes together (padded batches, flat buffers) and fill
// diagonals; all of them over differentiable operators.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/shape/Native.h>

#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/stack.h>

namespace at::native {

Tensor pad_sequence(TensorList sequences, bool batch_first, double padding_value,
                    std::string_view padding_side) {
  TORCH_CHECK(!sequences.empty(), "received an empty list of sequences");
  TORCH_CHECK(padding_side == "left" || padding_side == "right",
              "Expected padding_side to be one of left or right, but got ", padding_side, ".");
  int64_t longest = 0;
  for (const Tensor& t : sequences) {
    TORCH_CHECK(t.dim() > 0,
                "pad_sequence: expected sequences with at least one dimension, got a 0-dim tensor");
    longest = std::max(longest, t.size(0));
  }
  std::vector<Tensor> padded;
  padded.reserve(sequences.size());
  for (const Tensor& t : sequences) {
    DimVector pads(static_cast<size_t>(2 * t.dim()), 0);
    pads[pads.size() - (padding_side == "left" ? 2 : 1)] = longest - t.size(0);
    padded.push_back(t.size(0) == longest ? t : at::constant_pad_nd(t, pads, padding_value));
  }
  return at::stack(padded, batch_first ? 0 : 1);
}

Tensor flatten_dense_tensors(TensorList tensors) {
  std::vector<Tensor> flat;
  flat.reserve(tensors.size());
  for (const Tensor& t : tensors) flat.push_back(t.contiguous().view({-1}));
  return at::cat(flat, 0);
}

std::vector<Tensor> unflatten_dense_tensors(const Tensor& flat, TensorList tensors) {
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    out.push_back(flat.narrow(0, start, t.numel()).view(t.sizes()));
    start += t.numel();
  }
  return out;
}

Tensor& fill_diagonal_(Tensor& self, const Scalar& value, bool wrap) {
  const int64_t ndim = self.dim();
  TORCH_CHECK(ndim >= 2, "dimensions must larger than 1");
  int64_t length = self.size(0), step = 0;
  for (int64_t d = 0; d < ndim; ++d) {
    TORCH_CHECK(ndim == 2 || self.size(d) == self.size(0),
                "all dimensions of input must be of equal length");
    length = std::min(length, self.size(d));
    step += self.stride(d);
  }
  (ndim == 2 ? at::diagonal(self) : self.as_strided({length}, {step}, self.storage_offset()))
      .fill_(value);
  // A tall matrix is wrapped: below each square block and one free row the diagonal starts again.
  const int64_t period = self.size(1) + 1;
  for (int64_t row = period; wrap && ndim == 2 && row < self.size(0); row += period)
    at::diagonal(self.slice(0, row, std::min(row + period - 1, self.size(0)), 1)).fill_(value);
  return self;
}

// ---- shapes as tensors
Tensor _shape_as_tensor(const Tensor& self) {
  const Tensor out = detail::empty({self.dim()}, kLong);
  std::copy(self.sizes().begin(), self.sizes().end(), out.data_ptr<int64_t>());
  return out;
}

Tensor _reshape_from_tensor(const Tensor& self, const Tensor& shape) {
  TORCH_CHECK(shape.dim() == 1 && shape.scalar_type() == kLong && shape.is_cpu(),
              "_reshape_from_tensor: expected the shape as a vector of int64 on the cpu");
  const Tensor list = shape.contiguous();
  return self.reshape(IntArrayRef(list.data_ptr<int64_t>(), static_cast<size_t>(list.numel())));
}

} // namespace at::native
