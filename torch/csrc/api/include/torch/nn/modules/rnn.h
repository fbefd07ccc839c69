// Recurrent layers as modules.
#pragma once
#include <torch/nn/modules/common.h>
#include <torch/nn/options/rnn.h>
#include <torch/nn/utils/rnn.h>

namespace torch::nn {

namespace detail {

// The weights of a recurrent network of several layers, in the order that the operators take them.
class TORCH_API RNNBase : public Module {
 public:
  explicit RNNBase(const RNNOptionsBase& options_) : options_base(options_) {}
  void reset_weights();
  void reset_parameters();
  void flatten_parameters() {}
  std::vector<Tensor> all_weights() const { return flat_weights_; }
  void to(Device device, Dtype dtype, bool non_blocking = false) override;
  void to(Dtype dtype, bool non_blocking = false) override;
  void to(Device device, bool non_blocking = false) override;
  void pretty_print(std::ostream& stream) const override;
  RNNOptionsBase options_base;

 protected:
  // Zeros where no hidden state is given; errors where a given one does not fit.
  Tensor hidden_or_zeros(const Tensor& input, const Tensor& hidden, int64_t batch,
                         int64_t features) const;
  void check_input(const Tensor& input, bool packed) const;
  // The parameters as they are now: to() may have replaced what they hold.
  std::vector<Tensor> flat_weights_;
};

template <class Derived> class RNNImplBase : public Cloneable<Derived, RNNBase> {
 public:
  using Cloneable<Derived, RNNBase>::Cloneable;
  void reset() override { this->reset_weights(); }
};

} // namespace detail

#define CRESSET_PLAIN_RNN(Name)                                                                    \
  class TORCH_API Name##Impl : public detail::RNNImplBase<Name##Impl> {                            \
   public:                                                                                         \
    Name##Impl(int64_t input_size, int64_t hidden_size)                                            \
        : Name##Impl(Name##Options(input_size, hidden_size)) {}                                    \
    explicit Name##Impl(const Name##Options& options_);                                            \
    std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {});                       \
    std::tuple<utils::rnn::PackedSequence, Tensor>                                                 \
    forward_with_packed_input(const utils::rnn::PackedSequence& packed_input, Tensor hx = {});     \
    Name##Options options;                                                                         \
                                                                                                   \
   protected:                                                                                      \
    FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(Tensor())})                                              \
  };                                                                                               \
  CRESSET_LIBRARY_CLONE(Name##Impl, detail::RNNBase);                                              \
  TORCH_MODULE(Name)
CRESSET_PLAIN_RNN(RNN);
CRESSET_PLAIN_RNN(GRU);
#undef CRESSET_PLAIN_RNN

class TORCH_API LSTMImpl : public detail::RNNImplBase<LSTMImpl> {
 public:
  using State = std::optional<std::tuple<Tensor, Tensor>>;
  LSTMImpl(int64_t input_size, int64_t hidden_size)
      : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  explicit LSTMImpl(const LSTMOptions& options_);
  std::tuple<Tensor, std::tuple<Tensor, Tensor>> forward(const Tensor& input, State hx_opt = {});
  std::tuple<utils::rnn::PackedSequence, std::tuple<Tensor, Tensor>>
  forward_with_packed_input(const utils::rnn::PackedSequence& packed_input, State hx_opt = {});
  LSTMOptions options;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(State())})
};
CRESSET_LIBRARY_CLONE(LSTMImpl, detail::RNNBase);
TORCH_MODULE(LSTM);

namespace detail {
class TORCH_API RNNCellBase : public Module {
 public:
  explicit RNNCellBase(const RNNCellOptionsBase& options_) : options_base(options_) {}
  void reset_weights();
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  RNNCellOptionsBase options_base;
  Tensor weight_ih;
  Tensor weight_hh;
  Tensor bias_ih;
  Tensor bias_hh;

 protected:
  virtual std::string get_nonlinearity_str() const { return ""; }
  void check_forward_input(const Tensor& input, const std::string& name) const;
  void check_forward_hidden(const Tensor& input, const Tensor& hidden,
                            const std::string& label) const;
};

template <class Derived> class RNNCellImplBase : public Cloneable<Derived, RNNCellBase> {
 public:
  using Cloneable<Derived, RNNCellBase>::Cloneable;
  void reset() override { this->reset_weights(); }
};
} // namespace detail

class TORCH_API RNNCellImpl : public detail::RNNCellImplBase<RNNCellImpl> {
 public:
  RNNCellImpl(int64_t input_size, int64_t hidden_size)
      : RNNCellImpl(RNNCellOptions(input_size, hidden_size)) {}
  explicit RNNCellImpl(const RNNCellOptions& options_);
  Tensor forward(const Tensor& input, const Tensor& hx = {});
  RNNCellOptions options;

 protected:
  std::string get_nonlinearity_str() const override;
  FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(Tensor())})
};
CRESSET_LIBRARY_CLONE(RNNCellImpl, detail::RNNCellBase);
TORCH_MODULE(RNNCell);

class TORCH_API LSTMCellImpl : public detail::RNNCellImplBase<LSTMCellImpl> {
 public:
  using State = std::optional<std::tuple<Tensor, Tensor>>;
  LSTMCellImpl(int64_t input_size, int64_t hidden_size)
      : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  explicit LSTMCellImpl(const LSTMCellOptions& options_);
  std::tuple<Tensor, Tensor> forward(const Tensor& input, State hx_opt = {});
  LSTMCellOptions options;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(State())})
};
CRESSET_LIBRARY_CLONE(LSTMCellImpl, detail::RNNCellBase);
TORCH_MODULE(LSTMCell);

class TORCH_API GRUCellImpl : public detail::RNNCellImplBase<GRUCellImpl> {
 public:
  GRUCellImpl(int64_t input_size, int64_t hidden_size)
      : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
  explicit GRUCellImpl(const GRUCellOptions& options_);
  Tensor forward(const Tensor& input, const Tensor& hx = {});
  GRUCellOptions options;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(Tensor())})
};
CRESSET_LIBRARY_CLONE(GRUCellImpl, detail::RNNCellBase);
TORCH_MODULE(GRUCell);

} // namespace torch::nn
