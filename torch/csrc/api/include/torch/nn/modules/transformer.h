// A whole transformer: an encoder, and a decoder that reads what the encoder made.
#pragma once
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/options/transformer.h>

namespace torch::nn {

class TORCH_API TransformerImpl : public Cloneable<TransformerImpl> {
 public:
  explicit TransformerImpl(TransformerOptions options_ = {});
  // src and tgt are [length, batch, d_model]; masks that are given as numbers are added to the
  // scores, masks of truth values forbid where they are true.
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {},
                 const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& src_key_padding_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {});
  void reset() override;
  void reset_parameters();
  // A mask [size, size] that lets each place see itself and those before it.
  static Tensor generate_square_subsequent_mask(int64_t size);

  TransformerOptions options;
  AnyModule encoder;
  AnyModule decoder;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({2, AnyValue(Tensor())}, {3, AnyValue(Tensor())},
                           {4, AnyValue(Tensor())}, {5, AnyValue(Tensor())},
                           {6, AnyValue(Tensor())}, {7, AnyValue(Tensor())})
};
CRESSET_LIBRARY_MODULE(Transformer);

} // namespace torch::nn
