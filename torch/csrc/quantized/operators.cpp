// torch.ops.quantized: linear layers and convolutions on packed weights. A packed weight is an
// object that Python and scripts hold (torch.classes.quantized); its state is the weight and bias
// it was made of, so that files do not depend on the order of packing. Operators that need no
// object are defined in Python (torch/_quantized_ops).
#include <torch/csrc/quantized/operators.h>

#include <mutex>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/quantized/Linear.h>
#include <ATen/native/quantized/Values.h>
#include <ATen/ops/add.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tanh.h>
#include <torch/custom_class.h>

namespace torch::quantized {
namespace {

using at::Tensor;
using at::quantized::ConvShape;
using at::quantized::ConvWeight;
using at::quantized::LinearWeight;
using at::quantized::Result;
using Bias = std::optional<Tensor>;
using State = std::tuple<Tensor, Bias>;
using Numbers = std::vector<int64_t>;

Tensor plain(const Bias& bias) { return bias.has_value() ? *bias : Tensor(); }
Bias optional(const Tensor& bias) { return bias.defined() ? Bias(bias) : Bias(); }

// ---- linear layers ------------------------------------------------------------------------------
// Weights of 8 bits, or of float16, which are computed with in float32.
struct LinearParams : CustomClassHolder {
  explicit LinearParams(std::unique_ptr<LinearWeight> w) : weight(std::move(w)) {}
  LinearParams(Tensor half, Tensor b) : half_weight(std::move(half)), half_bias(std::move(b)) {}
  State unpack() const {
    if (weight) return {weight->weight, optional(weight->bias)};
    return {half_weight.to(at::kFloat), optional(half_bias)};
  }
  Bias bias() const { return optional(weight ? weight->bias : half_bias); }
  const LinearWeight& levels(const char* op) const {
    TORCH_CHECK(weight != nullptr, op, ": expected a packed weight of dtype qint8, got float16");
    return *weight;
  }

  std::unique_ptr<LinearWeight> weight;
  Tensor half_weight, half_bias;
};
using Linear = c10::intrusive_ptr<LinearParams>;

Linear pack_linear(const Tensor& weight, const Bias& bias) {
  return c10::make_intrusive<LinearParams>(std::make_unique<LinearWeight>(weight, plain(bias)));
}
// Numbers beyond the range of float16 become its limits.
Linear pack_linear_half(const Tensor& weight, const Bias& bias) {
  constexpr double kLimit = 65504;
  TORCH_CHECK(weight.dim() == 2 && weight.scalar_type() == at::kFloat,
              "quantized::linear_prepack_fp16: expected a float32 matrix, got ",
              weight.scalar_type(), " of size ", weight.sizes());
  return c10::make_intrusive<LinearParams>(at::clamp(weight, -kLimit, kLimit).to(at::kHalf),
                                           plain(bias));
}
Linear from_state(const State& state) {
  const auto& [weight, bias] = state;
  return weight.is_quantized() ? pack_linear(weight, bias) : pack_linear_half(weight, bias);
}
State unpack_linear(const Linear& packed) { return packed->unpack(); }

template <bool kRelu>
Tensor linear(const Tensor& x, const Linear& w, double scale, int64_t zero_point) {
  return at::quantized::linear(x, w->levels("quantized::linear"),
                               Result::grid(scale, zero_point, kRelu));
}
template <bool kRelu> Tensor linear_dynamic(const Tensor& x, const Linear& w, bool reduce_range) {
  return at::quantized::linear_dynamic(x, w->levels("quantized::linear_dynamic"), reduce_range,
                                       kRelu);
}
template <bool kRelu> Tensor linear_half(const Tensor& x, const Linear& w) {
  TORCH_CHECK(w->weight == nullptr,
              "quantized::linear_dynamic_fp16: expected a packed weight of float16");
  const Tensor out = at::linear(x, w->half_weight.to(at::kFloat), w->bias());
  return kRelu ? at::clamp_min(out, 0) : out;
}
Tensor linear_half_unpacked(const Tensor& x, const Tensor& weight, const Bias& bias) {
  return linear_half<false>(x, pack_linear_half(weight, bias));
}
// The activation is computed on the values, then rounded once.
template <class F>
Tensor linear_then(const Tensor& x, const Linear& w, double scale, int64_t zero_point, const F& f) {
  const Tensor values =
      at::quantized::linear(x, w->levels("quantized::linear"), Result::values(false));
  return at::quantized::quantize(f(values), x.scalar_type(),
                                 at::quantized::per_tensor(scale, zero_point));
}
Tensor linear_leaky_relu(const Tensor& x, const Linear& w, double scale, int64_t zero_point,
                         double slope) {
  return linear_then(x, w, scale, zero_point,
                     [=](const Tensor& t) { return at::leaky_relu(t, slope); });
}
Tensor linear_tanh(const Tensor& x, const Linear& w, double scale, int64_t zero_point) {
  return linear_then(x, w, scale, zero_point, [](const Tensor& t) { return at::tanh(t); });
}
// float32 in and out, with levels between.
template <bool kRelu>
Tensor linear_of_values(const Tensor& x, double scale, int64_t zero_point, const Linear& w) {
  const Tensor levels = at::quantized::quantize(x, at::ScalarType::QUInt8,
                                                at::quantized::per_tensor(scale, zero_point));
  return at::quantized::linear(levels, w->levels("quantized::linear"), Result::values(kRelu));
}

// One kernel for all devices that is no composition of others: dispatch modes, and so traces, see
// the operator itself.
template <class F> void define(Library& m, const std::string& schema, F f) {
  m.def(schema, torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, std::move(f)));
}

void define_linear(Library& m) {
  m.class_<LinearParams>("LinearPackedParamsBase")
      .def("unpack", &LinearParams::unpack)
      .def("bias", &LinearParams::bias)
      .def_pickle([](const Linear& self) { return self->unpack(); }, &from_state);
  const std::string w = "__torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack";
  const std::string grid = ", float Y_scale_i, int Y_zero_point_i) -> Tensor Y";
  const std::string state = ") -> (Tensor W_origin, Tensor? B_origin)";
  define(m, "linear_prepack(Tensor W, Tensor? B=None) -> " + w, &pack_linear);
  define(m, "linear_prepack_fp16(Tensor W, Tensor? B=None) -> " + w, &pack_linear_half);
  define(m, "linear_unpack(" + w + state, &unpack_linear);
  define(m, "linear_unpack_fp16(" + w + state, &unpack_linear);
  define(m, "linear(Tensor X, " + w + grid, &linear<false>);
  define(m, "linear_relu(Tensor X, " + w + grid, &linear<true>);
  define(m, "linear_dynamic(Tensor X, " + w + ", bool reduce_range=False) -> Tensor Y",
         &linear_dynamic<false>);
  define(m, "linear_relu_dynamic(Tensor X, " + w + ", bool reduce_range=False) -> Tensor Y",
         &linear_dynamic<true>);
  define(m, "linear_dynamic_fp16(Tensor X, " + w + ") -> Tensor Y", &linear_half<false>);
  define(m, "linear_relu_dynamic_fp16(Tensor X, " + w + ") -> Tensor Y", &linear_half<true>);
  define(m,
         "linear_dynamic_fp16_unpacked_weight(Tensor X, Tensor weight, Tensor? bias) -> Tensor Y",
         &linear_half_unpacked);
  define(m,
         "linear_leaky_relu(Tensor X, " + w +
             ", float Y_scale_i, int Y_zero_point_i, float negative_slope) -> Tensor Y",
         &linear_leaky_relu);
  define(m, "linear_tanh(Tensor X, " + w + grid, &linear_tanh);
  const std::string values = "(Tensor X, float X_scale, int X_zero_point, " + w + ") -> Tensor Y";
  define(m, "linear_with_input_q_dq_qweight_dq_output_fp32" + values, &linear_of_values<false>);
  define(m, "linear_with_input_q_dq_qweight_dq_relu_output_fp32" + values, &linear_of_values<true>);
}

// ---- convolutions -------------------------------------------------------------------------------
template <int kDims> struct ConvParams : CustomClassHolder {
  ConvParams(const Tensor& w, const Tensor& b, ConvShape shape) : weight(w, b, std::move(shape)) {}
  State unpack() const { return {weight.weight, optional(weight.bias)}; }
  const Numbers& stride() const { return weight.shape.stride; }
  const Numbers& padding() const { return weight.shape.padding; }
  const Numbers& output_padding() const { return weight.shape.output_padding; }
  const Numbers& dilation() const { return weight.shape.dilation; }
  int64_t groups() const { return weight.shape.groups; }
  bool transpose() const { return weight.shape.transposed; }
  ConvWeight weight;
};
template <int kDims> using Conv = c10::intrusive_ptr<ConvParams<kDims>>;
// What a file holds, in the second version of PyTorch's form: "2", a table of 16-bit numbers (dims,
// stride, padding, dilation, output padding, groups, whether transposed) with the weight, the bias.
using ConvState = std::tuple<std::string, std::vector<Tensor>, std::vector<std::optional<Tensor>>>;

template <int kDims> ConvState conv_state(const Conv<kDims>& w) {
  const ConvShape& s = w->weight.shape;
  Numbers table{kDims};
  for (const Numbers* list : {&s.stride, &s.padding, &s.dilation, &s.output_padding})
    table.insert(table.end(), list->begin(), list->end());
  table.push_back(s.groups);
  table.push_back(s.transposed);
  Tensor numbers = at::detail::empty({static_cast<int64_t>(table.size())}, at::kShort);
  for (size_t i = 0; i < table.size(); ++i) {
    TORCH_CHECK(table[i] >= INT16_MIN && table[i] <= INT16_MAX, "a convolution with the number ",
                table[i], " cannot be saved: 16 bits hold it not");
    numbers.data_ptr<int16_t>()[i] = static_cast<int16_t>(table[i]);
  }
  return {"2", {numbers, w->weight.weight}, {optional(w->weight.bias)}};
}
template <int kDims>
Conv<kDims> conv_made(const Tensor& weight, const Bias& bias, ConvShape shape) {
  return c10::make_intrusive<ConvParams<kDims>>(weight, plain(bias), std::move(shape));
}
template <int kDims> Conv<kDims> conv_from(const ConvState& state) {
  const auto& [version, tensors, biases] = state;
  TORCH_CHECK(version == "2", "the packed convolution is of version ", version, ", not 2");
  constexpr int64_t kNumbers = 4 * kDims + 3;
  TORCH_CHECK(tensors.size() == 2 && biases.size() == 1 && tensors[0].defined() &&
                  tensors[0].scalar_type() == at::kShort && tensors[0].numel() == kNumbers,
              "the state of a packed convolution is damaged");
  const Tensor numbers = tensors[0].contiguous();
  const int16_t* at = numbers.data_ptr<int16_t>();
  TORCH_CHECK(at[0] == kDims, "expected a packed convolution of ", kDims,
              " dimensions, got one of ", at[0]);
  const auto list = [&](int which) {
    const int16_t* first = at + 1 + which * kDims;
    return Numbers(first, first + kDims);
  };
  ConvShape shape{list(0), list(1), list(3), list(2), at[4 * kDims + 1], at[4 * kDims + 2] != 0};
  return conv_made<kDims>(tensors[1], biases[0], std::move(shape));
}

template <int kDims> Conv<kDims> pack_conv(const Tensor& weight, const Bias& bias,
                                           const Numbers& stride, const Numbers& padding,
                                           const Numbers& dilation, int64_t groups) {
  TORCH_CHECK(weight.dim() == kDims + 2, "quantized::conv", kDims,
              "d_prepack: expected a weight of ", kDims + 2, " dimensions, got ", weight.dim());
  return conv_made<kDims>(weight, bias,
                          {stride, padding, Numbers(kDims, 0), dilation, groups, false});
}
template <int kDims> Conv<kDims> pack_transposed(const Tensor& weight, const Bias& bias,
                                                 const Numbers& stride, const Numbers& padding,
                                                 const Numbers& output_padding,
                                                 const Numbers& dilation, int64_t groups) {
  TORCH_CHECK(weight.dim() == kDims + 2, "quantized::conv_transpose", kDims,
              "d_prepack: expected a weight of ", kDims + 2, " dimensions, got ", weight.dim());
  return conv_made<kDims>(weight, bias, {stride, padding, output_padding, dilation, groups, true});
}

// A convolution over one dimension is one over two, the first of size 1.
Numbers with_front(const Numbers& numbers, int64_t front) {
  Numbers out{front};
  out.insert(out.end(), numbers.begin(), numbers.end());
  return out;
}
Tensor with_rows(const Tensor& t, const char* op) {
  TORCH_CHECK(t.dim() == 3, op, ": expected a tensor of 3 dimensions, got ", t.dim());
  return t.unsqueeze(2);
}
// unsqueeze refuses tensors with scales along an axis: the axis of outputs stays where it is.
Tensor weight_with_rows(const Tensor& weight, const char* op) {
  using namespace at::quantized;
  const Tensor levels = with_rows(levels_of(weight, op), op);
  return from_levels(levels, weight.scalar_type(), quantizer_of(weight, op));
}
Conv<2> pack_conv1d(const Tensor& weight, const Bias& bias, const Numbers& stride,
                    const Numbers& padding, const Numbers& dilation, int64_t groups) {
  return pack_conv<2>(weight_with_rows(weight, "quantized::conv1d_prepack"), bias,
                      with_front(stride, 1), with_front(padding, 0), with_front(dilation, 1),
                      groups);
}
Conv<2> pack_transposed1d(const Tensor& weight, const Bias& bias, const Numbers& stride,
                          const Numbers& padding, const Numbers& output_padding,
                          const Numbers& dilation, int64_t groups) {
  return pack_transposed<2>(weight_with_rows(weight, "quantized::conv_transpose1d_prepack"), bias,
                            with_front(stride, 1), with_front(padding, 0),
                            with_front(output_padding, 0), with_front(dilation, 1), groups);
}
State unpack_conv1d(const Conv<2>& packed) {
  using namespace at::quantized;
  const Tensor& weight = packed->weight.weight;
  const Tensor levels = levels_of(weight, "quantized::conv1d_unpack").squeeze(2);
  return {from_levels(levels, weight.scalar_type(), quantizer_of(weight, "conv1d_unpack")),
          optional(packed->weight.bias)};
}
template <int kDims> State unpack_conv(const Conv<kDims>& packed) { return packed->unpack(); }

template <int kDims, bool kRelu>
Tensor conv(const Tensor& x, const Conv<kDims>& w, double scale, int64_t zero_point) {
  return at::quantized::conv(x, w->weight, Result::grid(scale, zero_point, kRelu));
}
template <int kDims, bool kRelu> Tensor conv_old(const Tensor& x, const Conv<kDims>& w,
                                                 const Numbers&, const Numbers&, const Numbers&,
                                                 int64_t, double scale, int64_t zero_point) {
  return conv<kDims, kRelu>(x, w, scale, zero_point);
}
template <bool kRelu>
Tensor conv1d(const Tensor& x, const Conv<2>& w, double scale, int64_t zero_point) {
  const Tensor rows = with_rows(x, "quantized::conv1d");
  return conv<2, kRelu>(rows, w, scale, zero_point).squeeze(2);
}
template <int kDims> Tensor conv_dynamic(const Tensor& x, const Conv<kDims>& w, bool reduce_range) {
  return at::quantized::conv_dynamic(x, w->weight, reduce_range);
}
Tensor conv1d_dynamic(const Tensor& x, const Conv<2>& w, bool reduce_range) {
  return conv_dynamic<2>(with_rows(x, "quantized::conv1d_dynamic"), w, reduce_range).squeeze(2);
}
template <bool kRelu> Tensor conv_add(const Tensor& x, const Tensor& other, const Conv<2>& w,
                                      double scale, int64_t zero_point) {
  const Tensor values = at::quantized::conv(x, w->weight, Result::values(false));
  Tensor sum = at::add(values, at::quantized::dequantize(other));
  if (kRelu) sum = at::clamp_min(sum, 0);
  return at::quantized::quantize(sum, x.scalar_type(),
                                 at::quantized::per_tensor(scale, zero_point));
}

template <int kDims> std::string packed_type() {
  return "__torch__.torch.classes.quantized.Conv" + std::to_string(kDims) + "dPackedParamsBase";
}
constexpr const char* kGrid =
    " packed_weight, float output_scale, int output_zero_point) -> Tensor";
constexpr const char* kDynamic = " packed_weight, bool reduce_range=False) -> Tensor";
constexpr const char* kState = " packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)";
constexpr const char* kPack =
    "_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)"
    " -> ";
constexpr const char* kPackTransposed =
    "_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, int[]"
    " dilation, int groups) -> ";

// conv2d_stride and its kind, for both directions.
template <int kDims> void define_questions(Library& m, const std::string& name) {
  using Params = ConvParams<kDims>;
  const std::string head = "(" + packed_type<kDims>() + " packed_weights) -> ";
  using Packed = const Conv<kDims>&;
  define(m, name + "_stride" + head + "int[]", [](Packed w) { return w->stride(); });
  define(m, name + "_padding" + head + "int[]", [](Packed w) { return w->padding(); });
  define(m, name + "_output_padding" + head + "int[]",
         [](Packed w) { return w->output_padding(); });
  define(m, name + "_dilation" + head + "int[]", [](Packed w) { return w->dilation(); });
  define(m, name + "_groups" + head + "int", [](Packed w) { return w->groups(); });
  define(m, name + "_transpose" + head + "int", [](Packed w) -> int64_t { return w->transpose(); });
  static_assert(std::is_base_of_v<CustomClassHolder, Params>);
}

template <int kDims> void define_conv(Library& m) {
  using Params = ConvParams<kDims>;
  const std::string dims = std::to_string(kDims) + "d", type = packed_type<kDims>();
  m.class_<Params>("Conv" + dims + "PackedParamsBase")
      .def("unpack", &Params::unpack)
      .def("stride", [](const Conv<kDims>& w) { return w->stride(); })
      .def("padding", [](const Conv<kDims>& w) { return w->padding(); })
      .def("output_padding", [](const Conv<kDims>& w) { return w->output_padding(); })
      .def("dilation", [](const Conv<kDims>& w) { return w->dilation(); })
      .def("groups", [](const Conv<kDims>& w) { return w->groups(); })
      .def("transpose", [](const Conv<kDims>& w) { return w->transpose(); })
      .def_pickle([](const Conv<kDims>& self) { return conv_state<kDims>(self); },
                  [](const ConvState& state) { return conv_from<kDims>(state); });
  define(m, "conv" + dims + kPack + type, &pack_conv<kDims>);
  define(m, "conv_transpose" + dims + kPackTransposed + type, &pack_transposed<kDims>);
  for (const char* name : {"conv", "conv_transpose"}) {
    define(m, name + dims + "_unpack(" + type + kState, &unpack_conv<kDims>);
    define(m, name + dims + "_dynamic(Tensor qx, " + type + kDynamic, &conv_dynamic<kDims>);
    define_questions<kDims>(m, name + dims);
  }
  const std::string old = "(Tensor qx, " + type +
                          " weight, int[] stride, int[] padding, int[] dilation, int groups, float "
                          "output_scale, int output_zero_point) -> Tensor";
  define(m, "conv" + dims + ".new(Tensor qx, " + type + kGrid, &conv<kDims, false>);
  define(m, "conv" + dims + old, &conv_old<kDims, false>);
  define(m, "conv" + dims + "_relu.new(Tensor qx, " + type + kGrid, &conv<kDims, true>);
  define(m, "conv" + dims + "_relu" + old, &conv_old<kDims, true>);
  define(m, "conv_transpose" + dims + "(Tensor qx, " + type + kGrid, &conv<kDims, false>);
}

void define_conv1d(Library& m) {
  const std::string type = packed_type<2>();
  define(m, "conv1d" + (kPack + type), &pack_conv1d);
  define(m, "conv_transpose1d" + (kPackTransposed + type), &pack_transposed1d);
  define(m, "conv1d_unpack(" + type + kState, &unpack_conv1d);
  define(m, "conv_transpose1d_unpack(" + type + kState, &unpack_conv1d);
  define(m, "conv1d(Tensor qx, " + type + kGrid, &conv1d<false>);
  define(m, "conv1d_relu(Tensor qx, " + type + kGrid, &conv1d<true>);
  define(m, "conv_transpose1d(Tensor qx, " + type + kGrid, &conv1d<false>);
  define(m, "conv1d_dynamic(Tensor qx, " + type + kDynamic, &conv1d_dynamic);
  define(m, "conv_transpose1d_dynamic(Tensor qx, " + type + kDynamic, &conv1d_dynamic);
  const std::string added = "(Tensor qx, Tensor qaccum, " + type + kGrid;
  define(m, "conv2d_add" + added, &conv_add<false>);
  define(m, "conv2d_add_relu" + added, &conv_add<true>);
  define(
      m,
      "conv_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int "
      "groups) -> " +
          type,
      &pack_conv<2>);
  define(m, "conv_unpack(" + type + kState, &unpack_conv<2>);
}

// ---- objects that other operators, defined in Python, take --------------------------------------
// A table of embeddings in rows of levels, as a quantized tensor.
struct EmbeddingParams : CustomClassHolder {
  explicit EmbeddingParams(Tensor w) : weight(std::move(w)) {
    TORCH_CHECK(weight.is_quantized() && weight.dim() == 2,
                "quantized::embedding_bag_prepack: expected a quantized matrix, got ",
                weight.scalar_type(), " of size ", weight.sizes());
  }
  Tensor unpack() const { return weight; }
  int64_t bit_rate() const {
    return at::quantized::level_type(weight.scalar_type(), "embedding").bits;
  }
  Tensor weight;
};
using Embedding = c10::intrusive_ptr<EmbeddingParams>;

// Version, tensors, real numbers, integers: the bits of a level.
using EmbeddingState =
    std::tuple<int64_t, std::vector<Tensor>, std::vector<double>, std::vector<int64_t>>;

Embedding pack_embedding(const Tensor& weight) {
  return c10::make_intrusive<EmbeddingParams>(weight);
}

void define_embedding(Library& m) {
  const std::string w = "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase W_prepack";
  m.class_<EmbeddingParams>("EmbeddingPackedParamsBase")
      .def("unpack", &EmbeddingParams::unpack)
      .def("bit_rate", &EmbeddingParams::bit_rate)
      .def_pickle(
          [](const Embedding& self) -> EmbeddingState {
            return {1, {self->weight}, {}, {self->bit_rate()}};
          },
          [](const EmbeddingState& state) {
            TORCH_CHECK(std::get<0>(state) == 1 && std::get<1>(state).size() == 1,
                        "the state of a packed embedding is damaged");
            return pack_embedding(std::get<1>(state)[0]);
          });
  define(m, "embedding_bag_prepack(Tensor weight) -> " + w, &pack_embedding);
  define(m, "embedding_bag_unpack(" + w + ") -> Tensor W_origin",
         [](const Embedding& packed) { return packed->weight; });
}

// The weights of a recurrent cell: packed, or float matrices.
struct CellParams : CustomClassHolder {
  CellParams(Linear ih, Linear hh, Bias b_ih, Bias b_hh, bool reduce)
      : w_ih(std::move(ih)), w_hh(std::move(hh)), b_ih(std::move(b_ih)), b_hh(std::move(b_hh)),
        reduce_range(reduce) {}
  Linear w_ih, w_hh;
  Bias b_ih, b_hh;
  bool reduce_range;
  // The product of one matrix and its bias, whichever way the weight is kept.
  Tensor apply(const Linear& w, const Bias& bias, const Tensor& x) const {
    if (!w->weight) return linear_half<false>(x, w);
    const Tensor out = linear_dynamic<false>(x, w, reduce_range);
    return bias && !w->weight->bias.defined() ? at::add(out, *bias) : out;
  }
  Tensor linear_ih(const Tensor& x) const { return apply(w_ih, b_ih, x); }
  Tensor linear_hh(const Tensor& h) const { return apply(w_hh, b_hh, h); }
};
using Cell = c10::intrusive_ptr<CellParams>;
using CellState = std::tuple<Linear, Linear, Bias, Bias, bool>;

Cell make_cell_dynamic(const Linear& ih, const Linear& hh, const Tensor& b_ih, const Tensor& b_hh,
                       bool reduce_range) {
  return c10::make_intrusive<CellParams>(ih, hh, b_ih, b_hh, reduce_range);
}
Cell make_cell_half(const Linear& ih, const Linear& hh) {
  return c10::make_intrusive<CellParams>(ih, hh, Bias(), Bias(), false);
}

void define_cells(Library& m) {
  Library rnn(Library::FRAGMENT, "rnn", std::nullopt);
  rnn.class_<CellParams>("CellParamsBase")
      .def("linear_ih", &CellParams::linear_ih)
      .def("linear_hh", &CellParams::linear_hh)
      .def_pickle(
          [](const Cell& c) -> CellState {
            return {c->w_ih, c->w_hh, c->b_ih, c->b_hh, c->reduce_range};
          },
          [](const CellState& s) {
            return c10::make_intrusive<CellParams>(std::get<0>(s), std::get<1>(s), std::get<2>(s),
                                                   std::get<3>(s), std::get<4>(s));
          });
  const std::string linear = "__torch__.torch.classes.quantized.LinearPackedParamsBase ";
  const std::string made = " -> __torch__.torch.classes.rnn.CellParamsBase";
  define(m,
         "make_quantized_cell_params_dynamic(" + linear + "w_ih, " + linear +
             "w_hh, Tensor bias_ih, Tensor bias_hh, bool reduce_range=False)" + made,
         &make_cell_dynamic);
  define(m, "make_quantized_cell_params_fp16(" + linear + "w_ih, " + linear + "w_hh)" + made,
         &make_cell_half);
}
} // namespace

void register_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    Library m(Library::FRAGMENT, "quantized", std::nullopt);
    define_linear(m);
    define_conv<2>(m);
    define_conv<3>(m);
    define_conv1d(m);
    define_embedding(m);
    define_cells(m);
  });
}

} // namespace torch::quantized
