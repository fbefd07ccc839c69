// Operators that exist for plain tensors, on quantized ones. They are found by name in one table,
// which says how an operator treats levels:
//   views    run their own kernel: a view shares the levels and what they mean;
//   Move     elements of the result are elements of the argument, so that the operator runs on the
//            levels (copies, gathers, order: scales are positive);
//   Value    runs on the real numbers, and so does its result (comparisons, positions);
//   Round    runs on the real numbers, and its result is rounded to the grid of the argument or to
//            one that fits the operator's range; in-place forms write back to the argument.
// An operator that is not in the table, and not made of others that are, raises
// NotImplementedError: no kernel takes levels for values.
#include <string>
#include <unordered_map>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>
#include <ATen/core/QuantizedFallback.h>
#include <ATen/native/quantized/Values.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/equal.h>
#include <ATen/parallel/Parallel.h>

namespace at::quantized {
namespace {

using Handler = void (*)(const OperatorEntry&, Stack&);

bool is_quantized(const IValue& v) { return v.isTensor() && v.toTensor().is_quantized(); }

// Replaces every quantized tensor of the arguments, those of lists too, by f of it.
template <class F> void replace_quantized(Stack& stack, const F& f) {
  for (IValue& v : stack) {
    if (is_quantized(v)) {
      v = f(v.toTensor());
    } else if (v.isTensorList()) {
      std::vector<Tensor> list = v.toTensorList();
      for (Tensor& t : list)
        if (t.defined() && t.is_quantized()) t = f(t);
      v = IValue(std::move(list));
    }
  }
}

Tensor first_quantized(const Stack& stack) {
  for (const IValue& v : stack) {
    if (is_quantized(v)) return v.toTensor();
    if (!v.isTensorList()) continue;
    for (const Tensor& t : v.toTensorList())
      if (t.defined() && t.is_quantized()) return t;
  }
  TORCH_INTERNAL_ASSERT(false, "a kernel of quantized tensors without one");
}

bool same_grid(const Quantizer& a, const Quantizer& b) {
  if (a.scheme != b.scheme) return false;
  if (!a.per_channel()) return a.scale == b.scale && a.zero_point == b.zero_point;
  return a.axis == b.axis && at::equal(a.scales, b.scales) &&
         at::equal(a.zero_points, b.zero_points);
}

bool mutates_self(const OperatorEntry& op) {
  const FunctionSchema& schema = op.schema();
  return !schema.arguments.empty() && schema.arguments[0].alias &&
         schema.arguments[0].alias->is_write;
}

// The quantizers per channel that a move keeps: those of copies that keep the size.
void check_moves(const OperatorEntry& op, const Quantizer& q) {
  const std::string_view name = std::string_view(op.name).substr(6);
  TORCH_CHECK(!q.per_channel() || name == "clone" || name == "contiguous",
              "Setting strides is possible only on uniformly quantized tensor: '", op.name,
              "' is not defined for a tensor that is quantized per channel");
}

// ---- Move
void on_levels(const OperatorEntry& op, Stack& stack) {
  const Tensor first = first_quantized(stack);
  const QuantizerPtr quantizer = quantizer_of(first, op.name);
  const ScalarType dtype = first.scalar_type(), plain = level_type(dtype, op.name).plain;
  check_moves(op, *quantizer);
  replace_quantized(stack, [&](const Tensor& t) {
    TORCH_CHECK(t.scalar_type() == dtype, op.name,
                ": expected quantized tensors of one dtype, got ", dtype, " and ", t.scalar_type());
    const bool same = same_grid(*quantizer, *quantizer_of(t, op.name));
    return levels_of(same ? t : quantize(dequantize(t), dtype, quantizer), op.name);
  });
  op.call_boxed(stack);
  for (IValue& v : stack) {
    if (v.isTensor() && v.toTensor().defined() && v.toTensor().scalar_type() == plain)
      v = from_levels(v.toTensor(), dtype, quantizer);
  }
}

// ---- Value
void on_values(const OperatorEntry& op, Stack& stack) {
  replace_quantized(stack, [](const Tensor& t) { return dequantize(t); });
  op.call_boxed(stack);
}

// ---- Round
// The grids of operators whose range is known.
struct Fixed {
  const char* name;
  double range; // of 256 levels
  double low;
};
constexpr Fixed kFixed[] = {{"sigmoid", 1, 0}, {"hardsigmoid", 1, 0}, {"tanh", 2, -1}};

QuantizerPtr result_grid(const OperatorEntry& op, const Tensor& self) {
  const std::string_view name = std::string_view(op.name).substr(6);
  const LevelType& type = level_type(self.scalar_type(), op.name);
  for (const Fixed& fixed : kFixed)
    if (name == fixed.name && type.bits == 8)
      return per_tensor(fixed.range / 256,
                        type.min - static_cast<int64_t>(fixed.low * 256 / fixed.range));
  return quantizer_of(self, op.name);
}

void rounded(const OperatorEntry& op, Stack& stack) {
  const Tensor self = first_quantized(stack);
  const QuantizerPtr grid = result_grid(op, self);
  const bool inplace = mutates_self(op);
  replace_quantized(stack, [](const Tensor& t) { return dequantize(t); });
  op.call_boxed(stack);
  if (inplace) {
    quantize_into(self, stack.back().toTensor());
    stack.back() = self;
    return;
  }
  for (IValue& v : stack)
    if (v.isTensor() && v.toTensor().defined() && v.toTensor().scalar_type() == kFloat)
      v = quantize(v.toTensor(), self.scalar_type(), grid);
}

// A function of one element needs to be known at 256 levels only.
void looked_up(const OperatorEntry& op, Stack& stack) {
  const Tensor self = stack[0].toTensor();
  const QuantizerPtr own = quantizer_of(self, op.name);
  const LevelType& type = level_type(self.scalar_type(), op.name);
  if (type.bits != 8 || own->per_channel() || self.numel() < 256 || mutates_self(op))
    return rounded(op, stack);
  const Tensor all = at::arange(type.min, type.max + 1, TensorOptions(type.plain));
  stack[0] = from_levels(all, self.scalar_type(), own);
  rounded(op, stack);
  const Tensor made = stack.back().toTensor();
  const uint8_t* table = static_cast<const uint8_t*>(made.data_ptr());
  const Tensor source = levels_of(self, op.name).is_non_overlapping_and_dense()
                            ? levels_of(self, op.name)
                            : levels_of(self, op.name).contiguous();
  Tensor out = empty_levels(self.sizes(), self.scalar_type(), quantizer_of(made, op.name));
  out.unsafeGetTensorImpl()->set_geometry(source.sizes(), source.strides(), 0);
  const uint8_t* in = static_cast<const uint8_t*>(source.data_ptr());
  uint8_t* to = static_cast<uint8_t*>(out.data_ptr());
  const uint8_t first = static_cast<uint8_t>(type.min);
  parallel_for(0, out.numel(), 65536, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = table[static_cast<uint8_t>(in[i] - first)];
  });
  stack.back() = out;
}

// ---- operators of their own
void relu(const OperatorEntry& op, Stack& stack) {
  const Tensor self = stack[0].toTensor();
  const QuantizerPtr quantizer = quantizer_of(self, op.name);
  TORCH_CHECK_NOT_IMPLEMENTED(!quantizer->per_channel(), "'", op.name,
                              "' is not implemented for tensors quantized per channel");
  const Tensor made = at::clamp_min(levels_of(self, op.name), quantizer->zero_point);
  if (mutates_self(op)) {
    levels_of(self, op.name).copy_(made);
    self.unsafeGetTensorImpl()->bump_version();
    return;
  }
  stack.back() = from_levels(made, self.scalar_type(), quantizer);
}

void copy_(const OperatorEntry& op, Stack& stack) {
  const Tensor self = stack[0].toTensor(), source = stack[1].toTensor();
  stack.resize(1);
  if (!self.is_quantized()) {
    const Tensor values = dequantize(source);
    self.copy_(values);
    return;
  }
  if (!source.is_quantized()) {
    TORCH_CHECK(source.scalar_type() == kFloat,
                "Quantized copy only works with kFloat as source Tensor, got ",
                source.scalar_type());
    return quantize_into(self, source);
  }
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "Quantized Copy only works with Tensors with the same dtype, got ",
              self.scalar_type(), " and ", source.scalar_type());
  TORCH_CHECK(self.sizes() == source.sizes(),
              "Quantized copy only works with Tensors with the same shape");
  if (level_type(self.scalar_type(), op.name).bits < 8)
    packed_bytes(self).copy_(packed_bytes(source));
  else
    levels_of(self, op.name).copy_(levels_of(source, op.name));
  auto* impl = static_cast<QuantizedTensorImpl*>(self.unsafeGetTensorImpl());
  impl->set_quantizer(quantizer_of(source, op.name));
  impl->bump_version();
}

void clone(const OperatorEntry& op, Stack& stack) {
  const Tensor self = stack[0].toTensor();
  if (level_type(self.scalar_type(), op.name).bits >= 8) return on_levels(op, stack);
  Tensor out = empty_levels(self.sizes(), self.scalar_type(), quantizer_of(self, op.name));
  packed_bytes(out).copy_(packed_bytes(self));
  stack.clear();
  stack.emplace_back(out);
}

void equal(const OperatorEntry& op, Stack& stack) {
  const Tensor a = stack[0].toTensor(), b = stack[1].toTensor();
  stack.clear();
  const bool alike = a.is_quantized() && b.is_quantized() && a.scalar_type() == b.scalar_type() &&
                     a.sizes() == b.sizes() &&
                     same_grid(*quantizer_of(a, op.name), *quantizer_of(b, op.name));
  if (!alike) {
    stack.emplace_back(false);
    return;
  }
  const bool packed = level_type(a.scalar_type(), op.name).bits < 8;
  stack.emplace_back(packed ? at::equal(packed_bytes(a), packed_bytes(b))
                            : at::equal(levels_of(a, op.name), levels_of(b, op.name)));
}

// ---- views
// Along the axis of the scales a slice takes its share of them, and a single element has one grid.
void along_axis(const OperatorEntry& op, Stack& stack) {
  const Tensor self = stack[0].toTensor();
  const QuantizerPtr quantizer = quantizer_of(self, op.name);
  const int64_t dim = stack[1].toInt() + (stack[1].toInt() < 0 ? self.dim() : 0);
  TORCH_CHECK(dim == quantizer->axis,
              "Setting strides is possible only on uniformly quantized tensor: '", op.name,
              "' along dimension ", dim, " of a tensor with scales along dimension ",
              quantizer->axis);
  const auto part_of = [&](const Tensor& t, int64_t along) {
    Stack arguments = stack;
    arguments[0] = t;
    arguments[1] = along;
    op.call_boxed(arguments);
    return arguments.back().toTensor();
  };
  const Tensor made = part_of(levels_of(self, op.name), dim);
  const Tensor scales = part_of(quantizer->scales, 0), zeros = part_of(quantizer->zero_points, 0);
  stack.clear();
  stack.emplace_back(from_levels(
      made, self.scalar_type(),
      scales.dim() == 1
          ? per_channel(scales, zeros, quantizer->axis)
          : per_tensor(scales.item<double>(), static_cast<int64_t>(zeros.item<double>()))));
}

// Their kernels make views of whatever they get: a quantized tensor's are quantized.
void view(const OperatorEntry& op, Stack& stack) {
  const std::string_view name = std::string_view(op.name).substr(6);
  if ((name == "select" || name == "slice") &&
      quantizer_of(stack[0].toTensor(), op.name)->per_channel())
    return along_axis(op, stack);
  op.redispatch_boxed(DispatchKeySet(DispatchKey::CPU), stack);
}

struct Entry {
  const char* names; // bare names, separated by blanks; "name_" too where `inplace`
  Handler handler;
  bool inplace;
};
constexpr Entry kTable[] = {
    {"index index_select gather masked_select take flip roll rot90 repeat repeat_interleave cat "
     "stack hstack vstack sort topk kthvalue msort max min amax amin cummax cummin median "
     "_unsafe_view _reshape_copy contiguous max_pool1d max_pool2d_with_indices "
     "max_pool3d_with_indices adaptive_max_pool2d upsample_nearest1d upsample_nearest2d "
     "upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
     "_upsample_nearest_exact3d reflection_pad1d reflection_pad2d reflection_pad3d "
     "replication_pad1d replication_pad2d replication_pad3d channel_shuffle pixel_shuffle "
     "pixel_unshuffle tril triu im2col unfold_copy select_copy slice_copy",
     on_levels, false},
    {"eq ne lt le gt ge argmax argmin argsort isnan isinf isfinite is_nonzero item "
     "_local_scalar_dense allclose isclose nonzero",
     on_values, false},
    {"sigmoid tanh hardsigmoid hardtanh hardswish leaky_relu elu celu selu gelu silu clamp "
     "clamp_min clamp_max relu6 threshold abs",
     looked_up, true},
    {"mean std var avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d "
     "adaptive_avg_pool1d upsample_linear1d upsample_bilinear2d upsample_trilinear3d "
     "upsample_bicubic2d constant_pad_nd prelu _prelu_kernel masked_fill index_put "
     "_index_put_impl fill where",
     rounded, true},
    {"relu", relu, true},
    {"copy_", copy_, false},
    {"clone", clone, false},
    {"equal", equal, false},
};

const std::unordered_map<std::string, Handler>& handlers() {
  static const auto* made = [] {
    auto* table = new std::unordered_map<std::string, Handler>;
    for (const Entry& entry : kTable) {
      const std::string names = entry.names;
      for (size_t begin = 0; begin < names.size();) {
        const size_t end = std::min(names.find(' ', begin), names.size());
        const std::string name = names.substr(begin, end - begin);
        (*table)[name] = entry.handler;
        if (entry.inplace) (*table)[name + "_"] = entry.handler;
        begin = end + 1;
      }
    }
    return table;
  }();
  return *made;
}

class FromTable final : public BoxedKernel {
 public:
  explicit FromTable(Handler handler) : handler_(handler) {}
  void call(const OperatorEntry& op, DispatchKeySet, Stack& stack) override { handler_(op, stack); }

 private:
  Handler handler_;
};
} // namespace

c10::intrusive_ptr<BoxedKernel> quantized_fallback(const OperatorEntry& op) {
  const std::string name = op.name;
  if (name.rfind("aten::", 0) != 0) return nullptr;
  const FunctionSchema& schema = op.schema();
  if (schema.arguments.empty() || schema.arguments.back().is_out) return nullptr;
  const auto found = handlers().find(name.substr(6));
  if (found != handlers().end()) return c10::make_intrusive<FromTable>(found->second);
  return schema.is_view() ? c10::make_intrusive<FromTable>(view) : nullptr;
}

} // namespace at::quantized
