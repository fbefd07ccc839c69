// Recurrent modules and packed sequences.
#include <torch/nn/init.h>
#include <torch/nn/modules/rnn.h>

#include <cmath>

#include <torch/csrc/api/src/nn/describe.h>
#include <torch/csrc/api/src/nn/maybe.h>

namespace torch::nn {

// ---- sequences
namespace utils::rnn {

PackedSequence::PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices,
                               Tensor unsorted_indices)
    : data_(std::move(data)), batch_sizes_(std::move(batch_sizes)),
      sorted_indices_(std::move(sorted_indices)), unsorted_indices_(std::move(unsorted_indices)) {
  if (sorted_indices_.defined() && !unsorted_indices_.defined())
    unsorted_indices_ = invert_permutation(sorted_indices_);
  TORCH_CHECK(batch_sizes_.device().is_cpu(), "batch_sizes should always be on CPU. Instances of "
                                              "PackedSequence should never be created manually.");
}
PackedSequence PackedSequence::to(TensorOptions options) const {
  const auto moved = [&](const Tensor& t) { return t.defined() ? t.to(options.device()) : t; };
  return PackedSequence(data_.to(options), batch_sizes_, moved(sorted_indices_),
                        moved(unsorted_indices_));
}
PackedSequence PackedSequence::pin_memory() const {
  const auto pinned = [](const Tensor& t) { return t.defined() ? t.pin_memory() : t; };
  return PackedSequence(data_.pin_memory(), batch_sizes_, pinned(sorted_indices_),
                        pinned(unsorted_indices_));
}
Tensor invert_permutation(const Tensor& permutation) {
  if (!permutation.defined()) return {};
  const Tensor out = at::empty_like(permutation);
  return out.scatter_(0, permutation, at::arange(0, permutation.numel(), permutation.options()));
}
PackedSequence pack_padded_sequence(const Tensor& input, Tensor lengths, bool batch_first,
                                    bool enforce_sorted) {
  lengths = lengths.to(at::kCPU);
  if (enforce_sorted) {
    const auto [data, sizes] = at::_pack_padded_sequence(input, lengths, batch_first);
    return PackedSequence(data, sizes);
  }
  const auto [sorted, order] = at::sort(lengths, -1, /*descending=*/true);
  const Tensor indices = order.to(input.device());
  const Tensor rows = input.index_select(batch_first ? 0 : 1, indices);
  const auto [data, sizes] = at::_pack_padded_sequence(rows, sorted, batch_first);
  return PackedSequence(data, sizes, indices);
}
std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first,
                                               double padding_value,
                                               std::optional<int64_t> total_length) {
  int64_t longest = sequence.batch_sizes().size(0);
  if (total_length) {
    TORCH_CHECK(*total_length >= longest,
                "Expected total_length to be at least the length of the "
                "longest sequence in input, but got total_length=",
                *total_length, " and max sequence length being ", longest);
    longest = *total_length;
  }
  auto [padded, lengths] = at::_pad_packed_sequence(sequence.data(), sequence.batch_sizes(),
                                                    batch_first, padding_value, longest);
  const Tensor& back = sequence.unsorted_indices();
  if (!back.defined()) return {padded, lengths};
  return {padded.index_select(batch_first ? 0 : 1, back), lengths.index({back.cpu()})};
}
Tensor pad_sequence(at::ArrayRef<Tensor> sequences, bool batch_first, double padding_value,
                    std::string_view padding_side) {
  return at::pad_sequence(sequences, batch_first, padding_value, padding_side);
}
PackedSequence pack_sequence(at::ArrayRef<Tensor> sequences, bool enforce_sorted) {
  std::vector<int64_t> lengths;
  for (const Tensor& t : sequences) lengths.push_back(t.size(0));
  return pack_padded_sequence(rnn::pad_sequence(sequences),
                              torch::tensor(at::ArrayRef<int64_t>(lengths)), false, enforce_sorted);
}

} // namespace utils::rnn

// ---- networks
namespace detail {
namespace {
int64_t gates_of(const RNNOptionsBase& o) {
  if (std::holds_alternative<enumtype::kLSTM>(o.mode())) return 4;
  return std::holds_alternative<enumtype::kGRU>(o.mode()) ? 3 : 1;
}
} // namespace

void RNNBase::reset_weights() {
  const RNNOptionsBase& o = options_base;
  TORCH_CHECK(o.dropout() >= 0 && o.dropout() <= 1,
              "dropout should be a number in range [0, 1] representing the probability of an "
              "element being zeroed");
  if (o.dropout() > 0 && o.num_layers() == 1)
    TORCH_WARN("dropout option adds dropout after all but last recurrent layer, so non-zero "
               "dropout expects num_layers greater than 1, but got dropout=",
               o.dropout(), " and num_layers=", o.num_layers());
  TORCH_CHECK(o.hidden_size() > 0, "hidden_size must be greater than zero");
  TORCH_CHECK(o.num_layers() > 0, "num_layers must be greater than zero");
  TORCH_CHECK(o.proj_size() >= 0 && o.proj_size() < o.hidden_size(),
              "proj_size has to be a positive integer, smaller than hidden_size or zero to "
              "disable projections");
  const int64_t gates = gates_of(o) * o.hidden_size();
  const int64_t directions = o.bidirectional() ? 2 : 1;
  const int64_t output = o.proj_size() > 0 ? o.proj_size() : o.hidden_size();
  flat_weights_.clear();
  for (int64_t layer = 0; layer < o.num_layers(); ++layer) {
    const int64_t input = layer == 0 ? o.input_size() : output * directions;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string end = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
      const auto add = [&](const char* name, std::vector<int64_t> sizes) {
        flat_weights_.push_back(register_parameter(name + end, torch::empty(sizes)));
      };
      add("weight_ih", {gates, input});
      add("weight_hh", {gates, output});
      if (o.bias()) add("bias_ih", {gates});
      if (o.bias()) add("bias_hh", {gates});
      if (o.proj_size() > 0) add("weight_hr", {o.proj_size(), o.hidden_size()});
    }
  }
  reset_parameters();
}
void RNNBase::reset_parameters() {
  const double bound = 1.0 / std::sqrt(double(options_base.hidden_size()));
  for (const Tensor& weight : parameters()) init::uniform_(weight, -bound, bound);
}
void RNNBase::to(Device device, Dtype dtype, bool non_blocking) {
  Module::to(device, dtype, non_blocking);
}
void RNNBase::to(Dtype dtype, bool non_blocking) { Module::to(dtype, non_blocking); }
void RNNBase::to(Device device, bool non_blocking) { Module::to(device, non_blocking); }

void RNNBase::check_input(const Tensor& input, bool packed) const {
  const int64_t rank = input.dim(), features = options_base.input_size();
  const bool known = rank == 2 || (rank == 3 && !packed);
  const char* ranks = packed ? "2" : "2 or 3";
  TORCH_CHECK(known, "input must have ", ranks, " dimensions, got ", rank);
  const int64_t last = input.sizes().back();
  TORCH_CHECK(last == features, "input.size(-1) must be equal to input_size. Expected ", features,
              ", got ", last);
}
Tensor RNNBase::hidden_or_zeros(const Tensor& input, const Tensor& hidden, int64_t batch,
                                int64_t features) const {
  const int64_t layers = options_base.num_layers() * (options_base.bidirectional() ? 2 : 1);
  if (!hidden.defined())
    return torch::zeros({layers, batch, features},
                        torch::dtype(input.dtype()).device(input.device()));
  TORCH_CHECK(hidden.sizes() == IntArrayRef({layers, batch, features}), "Expected hidden size ",
              IntArrayRef({layers, batch, features}), ", got ", hidden.sizes());
  return hidden;
}
void RNNBase::pretty_print(std::ostream& stream) const {
  std::string name = this->name();
  name = name.substr(name.rfind(':') + 1);
  if (name.size() > 4 && name.compare(name.size() - 4, 4, "Impl") == 0)
    name.resize(name.size() - 4);
  const RNNOptionsBase& o = options_base;
  Describe(stream, name.c_str())
      .add("input_size", o.input_size())
      .add("hidden_size", o.hidden_size())
      .add("num_layers", o.num_layers())
      .add("bias", o.bias())
      .add("batch_first", o.batch_first())
      .add("dropout", o.dropout())
      .add("bidirectional", o.bidirectional())
      .add_unless(0, "proj_size", o.proj_size());
}

namespace {
Tensor permuted(const Tensor& hidden, const Tensor& order) {
  return hidden.defined() && order.defined() ? hidden.index_select(1, order) : hidden;
}

// What one call of a network needs besides its weights. An input without a batch gets one of one.
struct Call {
  Tensor input, order, back;
  int64_t batch;
  bool unbatched = false;

  Call(const RNNOptionsBase& o, const Tensor& given) : input(given) {
    unbatched = given.dim() == 2;
    if (unbatched) input = given.unsqueeze(o.batch_first() ? 0 : 1);
    batch = input.size(o.batch_first() ? 0 : 1);
  }
  explicit Call(const utils::rnn::PackedSequence& packed)
      : input(packed.data()), order(packed.sorted_indices()), back(packed.unsorted_indices()),
        batch(packed.batch_sizes()[0].item<int64_t>()) {}
  Tensor take(const Tensor& hidden) const {
    return unbatched && hidden.defined() ? hidden.unsqueeze(1) : permuted(hidden, order);
  }
  Tensor give(const Tensor& hidden) const {
    return unbatched ? hidden.squeeze(1) : permuted(hidden, back);
  }
};
} // namespace
} // namespace detail

namespace {
detail::RNNOptionsBase base_of(const RNNOptions& o) {
  using Mode = detail::RNNOptionsBase::rnn_options_base_mode_t;
  const bool tanh = std::holds_alternative<enumtype::kTanh>(o.nonlinearity());
  return detail::RNNOptionsBase(tanh ? Mode(torch::kRNN_TANH) : Mode(torch::kRNN_RELU),
                                o.input_size(), o.hidden_size(), o.num_layers(), o.bias(),
                                o.batch_first(), o.dropout(), o.bidirectional());
}
detail::RNNOptionsBase base_of(const GRUOptions& o) {
  return detail::RNNOptionsBase(torch::kGRU, o.input_size(), o.hidden_size(), o.num_layers(),
                                o.bias(), o.batch_first(), o.dropout(), o.bidirectional());
}
detail::RNNOptionsBase base_of(const LSTMOptions& o) {
  return detail::RNNOptionsBase(torch::kLSTM, o.input_size(), o.hidden_size(), o.num_layers(),
                                o.bias(), o.batch_first(), o.dropout(), o.bidirectional(),
                                o.proj_size());
}
} // namespace

RNNImpl::RNNImpl(const RNNOptions& options_) : RNNImplBase(base_of(options_)), options(options_) {
  reset();
}
GRUImpl::GRUImpl(const GRUOptions& options_) : RNNImplBase(base_of(options_)), options(options_) {
  reset();
}
LSTMImpl::LSTMImpl(const LSTMOptions& options_)
    : RNNImplBase(base_of(options_)), options(options_) {
  reset();
}

std::tuple<Tensor, Tensor> RNNImpl::forward(const Tensor& input, Tensor hx) {
  check_input(input, false);
  const detail::Call call(options_base, input);
  hx = hidden_or_zeros(call.input, call.take(hx), call.batch, options.hidden_size());
  const bool tanh = std::holds_alternative<enumtype::kTanh>(options.nonlinearity());
  const auto run = [&](const auto& op) {
    return op(call.input, hx, parameters(), options.bias(), options.num_layers(), options.dropout(),
              is_training(), options.bidirectional(), options.batch_first());
  };
  const auto [output, hidden] = tanh ? run([](const auto&... a) { return at::rnn_tanh(a...); })
                                     : run([](const auto&... a) { return at::rnn_relu(a...); });
  return {call.unbatched ? output.squeeze(options.batch_first() ? 0 : 1) : output,
          call.give(hidden)};
}
std::tuple<utils::rnn::PackedSequence, Tensor>
RNNImpl::forward_with_packed_input(const utils::rnn::PackedSequence& packed, Tensor hx) {
  check_input(packed.data(), true);
  const detail::Call call(packed);
  hx = hidden_or_zeros(call.input, call.take(hx), call.batch, options.hidden_size());
  const bool tanh = std::holds_alternative<enumtype::kTanh>(options.nonlinearity());
  const auto run = [&](const auto& op) {
    return op(call.input, packed.batch_sizes(), hx, parameters(), options.bias(),
              options.num_layers(), options.dropout(), is_training(), options.bidirectional());
  };
  const auto [output, hidden] = tanh ? run([](const auto&... a) { return at::rnn_tanh(a...); })
                                     : run([](const auto&... a) { return at::rnn_relu(a...); });
  return {utils::rnn::PackedSequence(output, packed.batch_sizes(), call.order, call.back),
          call.give(hidden)};
}

std::tuple<Tensor, Tensor> GRUImpl::forward(const Tensor& input, Tensor hx) {
  check_input(input, false);
  const detail::Call call(options_base, input);
  hx = hidden_or_zeros(call.input, call.take(hx), call.batch, options.hidden_size());
  const auto [output, hidden] =
      at::gru(call.input, hx, parameters(), options.bias(), options.num_layers(), options.dropout(),
              is_training(), options.bidirectional(), options.batch_first());
  return {call.unbatched ? output.squeeze(options.batch_first() ? 0 : 1) : output,
          call.give(hidden)};
}
std::tuple<utils::rnn::PackedSequence, Tensor>
GRUImpl::forward_with_packed_input(const utils::rnn::PackedSequence& packed, Tensor hx) {
  check_input(packed.data(), true);
  const detail::Call call(packed);
  hx = hidden_or_zeros(call.input, call.take(hx), call.batch, options.hidden_size());
  const auto [output, hidden] =
      at::gru(call.input, packed.batch_sizes(), hx, parameters(), options.bias(),
              options.num_layers(), options.dropout(), is_training(), options.bidirectional());
  return {utils::rnn::PackedSequence(output, packed.batch_sizes(), call.order, call.back),
          call.give(hidden)};
}

std::tuple<Tensor, std::tuple<Tensor, Tensor>> LSTMImpl::forward(const Tensor& input,
                                                                 State hx_opt) {
  check_input(input, false);
  const detail::Call call(options_base, input);
  const int64_t output_size = options.proj_size() > 0 ? options.proj_size() : options.hidden_size();
  const auto [h, c] = hx_opt.value_or(std::tuple<Tensor, Tensor>());
  const std::vector<Tensor> state = {
      hidden_or_zeros(call.input, call.take(h), call.batch, output_size),
      hidden_or_zeros(call.input, call.take(c), call.batch, options.hidden_size())};
  const auto [output, h_out, c_out] =
      at::lstm(call.input, state, parameters(), options.bias(), options.num_layers(),
               options.dropout(), is_training(), options.bidirectional(), options.batch_first());
  return {call.unbatched ? output.squeeze(options.batch_first() ? 0 : 1) : output,
          std::make_tuple(call.give(h_out), call.give(c_out))};
}
std::tuple<utils::rnn::PackedSequence, std::tuple<Tensor, Tensor>>
LSTMImpl::forward_with_packed_input(const utils::rnn::PackedSequence& packed, State hx_opt) {
  check_input(packed.data(), true);
  const detail::Call call(packed);
  const int64_t output_size = options.proj_size() > 0 ? options.proj_size() : options.hidden_size();
  const auto [h, c] = hx_opt.value_or(std::tuple<Tensor, Tensor>());
  const std::vector<Tensor> state = {
      hidden_or_zeros(call.input, call.take(h), call.batch, output_size),
      hidden_or_zeros(call.input, call.take(c), call.batch, options.hidden_size())};
  const auto [output, h_out, c_out] =
      at::lstm(call.input, packed.batch_sizes(), state, parameters(), options.bias(),
               options.num_layers(), options.dropout(), is_training(), options.bidirectional());
  return {utils::rnn::PackedSequence(output, packed.batch_sizes(), call.order, call.back),
          std::make_tuple(call.give(h_out), call.give(c_out))};
}

// ---- cells
namespace detail {
void RNNCellBase::reset_weights() {
  const RNNCellOptionsBase& o = options_base;
  const int64_t gates = o.num_chunks() * o.hidden_size();
  weight_ih = register_parameter("weight_ih", torch::empty({gates, o.input_size()}));
  weight_hh = register_parameter("weight_hh", torch::empty({gates, o.hidden_size()}));
  const auto bias = [&](const char* name) -> Tensor& {
    return o.bias() ? register_parameter(name, torch::empty({gates}))
                    : register_parameter(name, Tensor(), /*requires_grad=*/false);
  };
  bias_ih = bias("bias_ih");
  bias_hh = bias("bias_hh");
  reset_parameters();
}
void RNNCellBase::reset_parameters() {
  const double bound = 1.0 / std::sqrt(double(options_base.hidden_size()));
  for (const Tensor& weight : parameters()) init::uniform_(weight, -bound, bound);
}
void RNNCellBase::pretty_print(std::ostream& stream) const {
  std::string name = this->name();
  name = name.substr(name.rfind(':') + 1);
  if (name.size() > 4 && name.compare(name.size() - 4, 4, "Impl") == 0)
    name.resize(name.size() - 4);
  const std::string nonlinearity = get_nonlinearity_str();
  Describe(stream, name.c_str())
      .bare(options_base.input_size())
      .bare(options_base.hidden_size())
      .add_unless(true, "bias", options_base.bias())
      .add_if(!nonlinearity.empty() && nonlinearity != "kTanh", "nonlinearity", nonlinearity);
}
void RNNCellBase::check_forward_input(const Tensor& input, const std::string& name) const {
  TORCH_CHECK(input.dim() == 1 || input.dim() == 2, "Expected ", name, " to be 1D or 2D, got ",
              input.dim(), "D instead");
}
void RNNCellBase::check_forward_hidden(const Tensor& input, const Tensor& hidden,
                                       const std::string& label) const {
  TORCH_CHECK(input.size(-1) == options_base.input_size(),
              "input has inconsistent input_size: got ", input.size(-1), " expected ",
              options_base.input_size());
  if (!hidden.defined()) return;
  TORCH_CHECK(hidden.size(-1) == options_base.hidden_size(), "hidden", label,
              " has inconsistent hidden_size: got ", hidden.size(-1), ", expected ",
              options_base.hidden_size());
}
} // namespace detail

RNNCellImpl::RNNCellImpl(const RNNCellOptions& o)
    : RNNCellImplBase(detail::RNNCellOptionsBase(o.input_size(), o.hidden_size(), o.bias(), 1)),
      options(o) {
  reset();
}
LSTMCellImpl::LSTMCellImpl(const LSTMCellOptions& o)
    : RNNCellImplBase(detail::RNNCellOptionsBase(o.input_size(), o.hidden_size(), o.bias(), 4)),
      options(o) {
  reset();
}
GRUCellImpl::GRUCellImpl(const GRUCellOptions& o)
    : RNNCellImplBase(detail::RNNCellOptionsBase(o.input_size(), o.hidden_size(), o.bias(), 3)),
      options(o) {
  reset();
}
std::string RNNCellImpl::get_nonlinearity_str() const {
  return enumtype::get_enum_name(options.nonlinearity());
}

namespace {
Tensor state_or_zeros(const Tensor& state, const Tensor& rows, int64_t features, bool batched) {
  if (!state.defined()) return torch::zeros({rows.size(0), features}, rows.options());
  return batched ? state : state.unsqueeze(0);
}
} // namespace

Tensor RNNCellImpl::forward(const Tensor& input, const Tensor& hx) {
  check_forward_input(input, "input");
  if (hx.defined()) check_forward_input(hx, "hidden");
  check_forward_hidden(input, hx, "0");
  const bool batched = input.dim() == 2;
  const Tensor rows = batched ? input : input.unsqueeze(0);
  const Tensor state = state_or_zeros(hx, rows, options.hidden_size(), batched);
  const bool tanh = std::holds_alternative<enumtype::kTanh>(options.nonlinearity());
  const Tensor out =
      tanh ? at::rnn_tanh_cell(rows, state, weight_ih, weight_hh, maybe(bias_ih), maybe(bias_hh))
           : at::rnn_relu_cell(rows, state, weight_ih, weight_hh, maybe(bias_ih), maybe(bias_hh));
  return batched ? out : out.squeeze(0);
}
std::tuple<Tensor, Tensor> LSTMCellImpl::forward(const Tensor& input, State hx_opt) {
  const auto [h, c] = hx_opt.value_or(std::tuple<Tensor, Tensor>());
  check_forward_input(input, "input");
  if (h.defined()) check_forward_input(h, "hx[0]");
  if (c.defined()) check_forward_input(c, "hx[1]");
  check_forward_hidden(input, h, "0");
  check_forward_hidden(input, c, "1");
  const bool batched = input.dim() == 2;
  const Tensor rows = batched ? input : input.unsqueeze(0);
  const std::vector<Tensor> state = {state_or_zeros(h, rows, options.hidden_size(), batched),
                                     state_or_zeros(c, rows, options.hidden_size(), batched)};
  const auto [h_out, c_out] =
      at::lstm_cell(rows, state, weight_ih, weight_hh, maybe(bias_ih), maybe(bias_hh));
  return batched ? std::make_tuple(h_out, c_out)
                 : std::make_tuple(h_out.squeeze(0), c_out.squeeze(0));
}
Tensor GRUCellImpl::forward(const Tensor& input, const Tensor& hx) {
  check_forward_input(input, "input");
  if (hx.defined()) check_forward_input(hx, "hidden");
  check_forward_hidden(input, hx, "0");
  const bool batched = input.dim() == 2;
  const Tensor rows = batched ? input : input.unsqueeze(0);
  const Tensor state = state_or_zeros(hx, rows, options.hidden_size(), batched);
  const Tensor out =
      at::gru_cell(rows, state, weight_ih, weight_hh, maybe(bias_ih), maybe(bias_hh));
  return batched ? out : out.squeeze(0);
}

} // namespace torch::nn
