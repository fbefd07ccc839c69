// Sequences of different lengths: packed without padding, or padded to the longest.
#pragma once
#include <torch/types.h>

namespace torch::nn::utils::rnn {

// Sequences one after the other in time: data holds the first elements of all, then the second
// elements, and so on; batch_sizes says how many there are at each step.
class TORCH_API PackedSequence {
 public:
  explicit PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {},
                          Tensor unsorted_indices = {});
  const Tensor& data() const { return data_; }
  const Tensor& batch_sizes() const { return batch_sizes_; }
  // The order the sequences were sorted into by length, and the way back; undefined if they came
  // sorted.
  const Tensor& sorted_indices() const { return sorted_indices_; }
  const Tensor& unsorted_indices() const { return unsorted_indices_; }
  PackedSequence to(TensorOptions options) const;
  PackedSequence pin_memory() const;
  PackedSequence cpu() const { return to(at::device(kCPU)); }
  PackedSequence cuda() const { return to(at::device(kCUDA)); }
  bool is_cuda() const { return data_.is_cuda(); }
  bool is_pinned() const { return data_.is_pinned(); }

 private:
  Tensor data_, batch_sizes_, sorted_indices_, unsorted_indices_;
};

TORCH_API Tensor invert_permutation(const Tensor& permutation);
TORCH_API PackedSequence pack_padded_sequence(const Tensor& input, Tensor lengths,
                                              bool batch_first = false, bool enforce_sorted = true);
// The padded tensor and the lengths.
TORCH_API std::tuple<Tensor, Tensor>
pad_packed_sequence(const PackedSequence& sequence, bool batch_first = false,
                    double padding_value = 0.0, std::optional<int64_t> total_length = std::nullopt);
TORCH_API Tensor pad_sequence(at::ArrayRef<Tensor> sequences, bool batch_first = false,
                              double padding_value = 0, std::string_view padding_side = "right");
TORCH_API PackedSequence pack_sequence(at::ArrayRef<Tensor> sequences, bool enforce_sorted = true);

} // namespace torch::nn::utils::rnn
