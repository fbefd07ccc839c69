// Sequences of different lengths in one matrix without padding: the first elements of all
// sequences, then the second ones, and so on, longest sequence first. Both directions are row moves
// by computed places, so gradients come from index_select and index_copy.
#include <algorithm>

#include <ATen/native/rnn/Native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_copy.h>
#include <ATen/ops/index_select.h>

namespace at::native {
namespace {
Tensor long_tensor(const std::vector<int64_t>& values) {
  Tensor out = at::empty({static_cast<int64_t>(values.size())}, TensorOptions(kLong));
  std::copy(values.begin(), values.end(), out.data_ptr<int64_t>());
  return out;
}

// Rows of the flattened [time, batch] matrix in packed order.
Tensor places_of(IntArrayRef batch_sizes, int64_t batch, Device device) {
  std::vector<int64_t> places;
  for (size_t t = 0; t < batch_sizes.size(); ++t)
    for (int64_t b = 0; b < batch_sizes[t]; ++b)
      places.push_back(static_cast<int64_t>(t) * batch + b);
  Tensor out = long_tensor(places);
  return device.is_cpu() ? out : at::empty(out.sizes(), out.options().device(device)).copy_(out);
}

std::vector<int64_t> values_of(const Tensor& t, const char* name) {
  TORCH_CHECK(t.dim() == 1 && t.scalar_type() == kLong && t.is_cpu(), name,
              " should be a 1D CPU int64 tensor, but got ", t);
  if (t.key_set().has(DispatchKey::Meta)) { // a fake tensor refuses
    std::vector<int64_t> known;
    for (int64_t i = 0; i < t.numel(); ++i) known.push_back(t.select(0, i).item<int64_t>());
    return known;
  }
  const Tensor dense = t.contiguous();
  const int64_t* from = static_cast<const int64_t*>(dense.data_ptr());
  return std::vector<int64_t>(from, from + dense.numel());
}

DimVector with_front(std::initializer_list<int64_t> front, IntArrayRef sizes, size_t skip) {
  DimVector out(front.begin(), front.end());
  for (size_t d = skip; d < sizes.size(); ++d) out.push_back(sizes[d]);
  return out;
}
} // namespace

std::tuple<Tensor, Tensor> pack_padded_sequence(const Tensor& input, const Tensor& lengths,
                                                bool batch_first) {
  TORCH_CHECK(input.dim() >= 2, "Expected padded sequences of at least 2 dimensions, but got ",
              input.sizes());
  TORCH_CHECK(input.numel() > 0, "Cannot pack empty tensors.");
  const Tensor padded = batch_first ? input.transpose(0, 1) : input;
  const std::vector<int64_t> length = values_of(lengths, "lengths");
  const int64_t steps = padded.size(0), batch = padded.size(1);
  TORCH_CHECK(static_cast<int64_t>(length.size()) == batch,
              "Expected `len(lengths)` to be equal to batch_size, but got ", length.size(),
              " (batch_size=", batch, ")");
  TORCH_CHECK(length.back() > 0,
              "Length of all samples has to be greater than 0, but found an element in 'lengths' "
              "that is <= 0");
  for (size_t i = 1; i < length.size(); ++i)
    TORCH_CHECK(length[i] <= length[i - 1],
                "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
                "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence "
                "to sidestep this requirement if you do not need ONNX exportability.");
  TORCH_CHECK(length[0] <= steps, "Expected `lengths` to be at most the sequence length ", steps,
              ", but got ", length[0]);
  std::vector<int64_t> sizes;
  int64_t alive = batch;
  for (int64_t t = 0; t < length[0]; ++t) {
    while (length[static_cast<size_t>(alive - 1)] <= t) --alive;
    sizes.push_back(alive);
  }
  const Tensor rows = padded.reshape(with_front({steps * batch}, padded.sizes(), 2));
  return {at::index_select(rows, 0, places_of(sizes, batch, input.device())), long_tensor(sizes)};
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const Tensor& data, const Tensor& batch_sizes,
                                               bool batch_first, const Scalar& padding_value,
                                               int64_t total_length) {
  const std::vector<int64_t> sizes = values_of(batch_sizes, "batch_sizes");
  TORCH_CHECK(!sizes.empty() && data.dim() >= 1, "pad_packed_sequence: got no sequences");
  int64_t rows = 0;
  for (size_t t = 0; t < sizes.size(); ++t) {
    TORCH_CHECK(sizes[t] > 0 && (t == 0 || sizes[t] <= sizes[t - 1]),
                "pad_packed_sequence: batch_sizes must be positive and not increase");
    TORCH_CHECK(sizes[t] <= data.size(0), "pad_packed_sequence: batch_sizes exceed the data");
    rows += sizes[t];
  }
  TORCH_CHECK(rows == data.size(0), "pad_packed_sequence: batch_sizes add up to ", rows,
              " but the data has ", data.size(0), " rows");
  const auto longest = static_cast<int64_t>(sizes.size());
  TORCH_CHECK(total_length <= 0 || total_length >= longest,
              "Expected total_length to be at least the length of the longest sequence in input, "
              "but got total_length=",
              total_length, " and max sequence length being ", longest);
  const int64_t steps = std::max(longest, total_length), batch = sizes[0];
  const Tensor padding =
      at::full(with_front({steps * batch}, data.sizes(), 1), padding_value, data.options());
  Tensor out = at::index_copy(padding, 0, places_of(sizes, batch, data.device()), data)
                   .reshape(with_front({steps, batch}, data.sizes(), 1));
  std::vector<int64_t> lengths(static_cast<size_t>(batch));
  for (size_t t = 0; t < sizes.size(); ++t)
    for (int64_t b = 0; b < sizes[t]; ++b) ++lengths[static_cast<size_t>(b)];
  return {batch_first ? out.transpose(0, 1) : out, long_tensor(lengths)};
}

} // namespace at::native
