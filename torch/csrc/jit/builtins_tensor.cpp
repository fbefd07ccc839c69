// Attributes of tensors, conversions between tensors and numbers, and the state of a program
// (gradient mode, seeds) as scripted code names them.
#include <torch/csrc/jit/builtins.h>

#include <ATen/Utils.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/ops/_to_copy.h>
#include <ATen/ops/to.h>
#include <torch/csrc/autocast/Autocast.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

namespace torch::jit {
namespace {

at::Tensor tensor_of(const IValue& v) {
  at::Tensor out = v.toTensor();
  TORCH_CHECK(out.defined(), "expected a Tensor but got None");
  return out;
}

// ---- tensors from numbers ---------------------------------------------------------------------
struct Numbers {
  std::vector<int64_t> sizes;
  std::vector<IValue> flat;
  IValue::Tag empty = IValue::Tag::None; // of a list without items
};
void collect(const IValue& v, size_t depth, Numbers& out) {
  if (!is_list(v)) {
    TORCH_CHECK(depth == out.sizes.size(), "expected a nested list of numbers of one length");
    using Tag = IValue::Tag;
    const bool number = v.tag == Tag::Int || v.tag == Tag::Double || v.tag == Tag::Bool ||
                        v.tag == Tag::Complex || v.tag == Tag::Tensor;
    TORCH_CHECK(number, "Input must be of ints, floats, or bools, got ", v.kind());
    out.flat.push_back(v);
    return;
  }
  const auto n = static_cast<int64_t>(list_size(v));
  if (n == 0) out.empty = v.tag;
  if (depth == out.sizes.size()) {
    TORCH_CHECK(out.flat.empty() && depth < 64, "expected a nested list of numbers of one length");
    out.sizes.push_back(n);
  }
  TORCH_CHECK(out.sizes[depth] == n, "expected sequence of length ", out.sizes[depth], " at dim ",
              depth, " (got ", n, ")");
  for (int64_t i = 0; i < n; ++i) collect(list_get(v, size_t(i)), depth + 1, out);
}

at::ScalarType common_type(const Numbers& numbers) {
  using Tag = IValue::Tag;
  TORCH_CHECK(!numbers.flat.empty() || numbers.empty != Tag::TensorList,
              "Empty lists default to List[Tensor]: add an annotation to the list of which a "
              "tensor is made");
  bool integral = numbers.empty == Tag::IntList, complex = false;
  bool real = numbers.flat.empty() && !integral && numbers.empty != Tag::BoolList;
  for (const IValue& v : numbers.flat) {
    integral |= v.tag == Tag::Int;
    real |= v.tag == Tag::Double;
    complex |= v.tag == Tag::Complex;
  }
  if (complex) return c10::get_default_complex_dtype();
  if (real) return c10::get_default_dtype();
  return integral ? c10::kLong : c10::kBool;
}

template <class T> void fill(const at::Tensor& out, const std::vector<IValue>& flat) {
  T* data = static_cast<T*>(out.data_ptr());
  for (const IValue& v : flat) *data++ = v.toScalar().to<T>();
}

at::Tensor from_numbers(const IValue& data, const IValue& dtype, const IValue& device) {
  Numbers numbers;
  collect(data, 0, numbers);
  const at::ScalarType found = common_type(numbers);
  const bool complex = c10::isComplexType(found), real = c10::isFloatingType(found);
  at::Tensor out = at::detail::empty(numbers.sizes, complex ? c10::kComplexDouble
                                                    : real  ? c10::kDouble
                                                            : c10::kLong);
  if (complex) {
    fill<c10::complex<double>>(out, numbers.flat);
  } else if (real) {
    fill<double>(out, numbers.flat);
  } else {
    fill<int64_t>(out, numbers.flat);
  }
  const at::ScalarType wanted = dtype.isNone() ? found : dtype.toScalarType();
  const std::optional<at::Device> place =
      device.isNone() ? std::nullopt : std::optional<at::Device>(device.toDevice());
  return at::_to_copy(out, wanted, std::nullopt, place, std::nullopt, false, std::nullopt);
}

// tensor(data, dtype, device, requires_grad)
IValue make_tensor(const IValue* a, size_t) {
  at::Tensor out;
  if (a[0].isTensor()) {
    const at::ScalarType dtype =
        a[1].isNone() ? tensor_of(a[0]).scalar_type() : a[1].toScalarType();
    out = at::_to_copy(autograd::detach(tensor_of(a[0])), dtype, std::nullopt,
                       a[2].isNone() ? std::nullopt : std::optional<at::Device>(a[2].toDevice()),
                       std::nullopt, false, std::nullopt);
  } else {
    out = from_numbers(a[0], a[1], a[2]);
  }
  if (a[3].toBool()) autograd::set_requires_grad(out, true);
  return IValue(out);
}

IValue number(const at::Tensor& t) { return IValue(t.item()); }
IValue to_float(const IValue* a, size_t) {
  const IValue v = a[0].isTensor() ? number(tensor_of(a[0])) : a[0];
  return IValue(v.toScalar().toDouble());
}
IValue to_int(const IValue* a, size_t) {
  const IValue v = a[0].isTensor() ? number(tensor_of(a[0])) : a[0];
  if (v.tag == IValue::Tag::Double) return IValue(int64_t(v.bits.d[0]));
  return IValue(v.toScalar().to<int64_t>());
}
IValue to_bool(const IValue* a, size_t) {
  if (a[0].isTensor()) {
    const at::Tensor tensor = tensor_of(a[0]);
    TORCH_CHECK(tensor.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
    TORCH_CHECK(tensor.numel() == 1,
                "Boolean value of Tensor with more than one value is ambiguous");
  }
  const IValue v = a[0].isTensor() ? number(tensor_of(a[0])) : a[0];
  return IValue(v.toScalar().to<bool>());
}
IValue to_complex(const IValue* a, size_t) {
  const IValue v = a[0].isTensor() ? number(tensor_of(a[0])) : a[0];
  return IValue(v.toScalar().toComplexDouble());
}
void need_no_grad(const at::Tensor& t) {
  TORCH_CHECK(!t.requires_grad(), "Cannot input a tensor that requires grad as a scalar argument");
  TORCH_CHECK(t.dim() == 0, "Cannot input a tensor of dimension other than 0 as a scalar argument");
}

constexpr Entry kConversions[] = {
    {"aten::Complex.float_float(float x, float y) -> complex",
     [](const IValue* a, size_t) {
       return IValue(c10::complex<double>(a[0].toDouble(), a[1].toDouble()));
     }},
    {"aten::FloatImplicit(Tensor a) -> float",
     [](const IValue* a, size_t n) {
       need_no_grad(tensor_of(a[0]));
       return to_float(a, n);
     }},
    {"aten::IntImplicit(Tensor a) -> int",
     [](const IValue* a, size_t n) {
       need_no_grad(tensor_of(a[0]));
       return to_int(a, n);
     }},
    {"aten::ScalarImplicit(Tensor a) -> Scalar",
     [](const IValue* a, size_t) {
       need_no_grad(tensor_of(a[0]));
       return number(tensor_of(a[0]));
     }},
    {"aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, bool "
     "requires_grad=False) -> Tensor",
     make_tensor},
    {"aten::tensor.number(Scalar data, *, ScalarType? dtype=None, Device? device=None, bool "
     "requires_grad=False) -> Tensor",
     make_tensor},
    {"aten::tensor.bool(bool data, *, ScalarType? dtype=None, Device? device=None, bool "
     "requires_grad=False) -> Tensor",
     make_tensor},
    {"aten::tensor.Tensor(Tensor data, *, ScalarType? dtype=None, Device? device=None, bool "
     "requires_grad=False) -> Tensor",
     make_tensor},
    {"aten::as_tensor(Tensor(a) data, *, ScalarType? dtype=None, Device? device=None) -> "
     "Tensor(a|b)",
     [](const IValue* a, size_t) {
       const at::Tensor t = tensor_of(a[0]);
       return IValue(at::_ops::to_dtype_layout::call(
           t, a[1].isNone() ? t.scalar_type() : a[1].toScalarType(), std::nullopt,
           a[2].isNone() ? std::nullopt : std::optional<at::Device>(a[2].toDevice()), std::nullopt,
           false, false, std::nullopt));
     }},
    {"aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) -> Tensor",
     [](const IValue* a, size_t) { return IValue(from_numbers(a[0], a[1], a[2])); }},
    {"aten::as_tensor.number(Scalar data, *, ScalarType? dtype=None, Device? device=None) -> "
     "Tensor",
     [](const IValue* a, size_t) { return IValue(from_numbers(a[0], a[1], a[2])); }},
};

void add_conversions(Builtins& out) {
  for (const char* t : {"Tensor", "Scalar", "int", "bool", "float"}) {
    if (std::string_view(t) != "float")
      out.push_back({c10::str("aten::Float.", t, "(", t, " a) -> float"), to_float});
    if (std::string_view(t) != "int")
      out.push_back({c10::str("aten::Int.", t, "(", t, " a) -> int"), to_int});
    if (std::string_view(t) != "bool" && std::string_view(t) != "Scalar")
      out.push_back({c10::str("aten::Bool.", t, "(", t, " a) -> bool"), to_bool});
    out.push_back({c10::str("aten::Complex.", t, "(", t, " a) -> complex"), to_complex});
    if (std::string_view(t) != "Tensor")
      out.push_back(
          {c10::str("prim::NumToTensor.", t, "(", t, " a) -> Tensor"),
           [](const IValue* a, size_t) { return IValue(from_numbers(a[0], IValue(), IValue())); }});
  }
  add_entries(out, kConversions);
}

// ---- attributes -------------------------------------------------------------------------------
IValue to_list(const at::Tensor& t, const at::Tensor& flat, int64_t dim, int64_t& next) {
  if (dim == t.dim()) {
    const char* at = static_cast<const char*>(flat.data_ptr());
    switch (flat.scalar_type()) {
    case c10::kLong:
      return IValue(reinterpret_cast<const int64_t*>(at)[next++]);
    case c10::kBool:
      return IValue(reinterpret_cast<const bool*>(at)[next++]);
    case c10::kComplexDouble:
      return IValue(reinterpret_cast<const c10::complex<double>*>(at)[next++]);
    default:
      return IValue(reinterpret_cast<const double*>(at)[next++]);
    }
  }
  Type element;
  element.kind = dim + 1 < t.dim()                           ? Type::Kind::Any
                 : flat.scalar_type() == c10::kLong          ? Type::Kind::Int
                 : flat.scalar_type() == c10::kBool          ? Type::Kind::Bool
                 : flat.scalar_type() == c10::kComplexDouble ? Type::Kind::Any
                                                             : Type::Kind::Float;
  IValue out = new_list(element);
  for (int64_t i = 0; i < t.size(dim); ++i) list_push(out, to_list(t, flat, dim + 1, next));
  return out;
}
IValue tensor_to_list(const IValue* a, size_t) {
  const at::Tensor t = tensor_of(a[0]);
  const at::ScalarType dtype = t.scalar_type();
  const at::ScalarType plain = c10::isComplexType(dtype)    ? c10::kComplexDouble
                               : c10::isFloatingType(dtype) ? c10::kDouble
                               : dtype == c10::kBool        ? c10::kBool
                                                            : c10::kLong;
  const at::Tensor flat =
      at::_to_copy(autograd::detach(t), plain, std::nullopt, at::Device(c10::kCPU), std::nullopt,
                   false, at::MemoryFormat::Contiguous);
  int64_t next = 0;
  return to_list(flat, flat, 0, next);
}

using Query = bool (*)(const at::Tensor&);
template <Query query> IValue asks(const IValue* a, size_t) {
  return IValue(query(tensor_of(a[0])));
}
bool device_is(const at::Tensor& t, at::DeviceType type) { return t.device().type() == type; }
bool never(const at::Tensor&) { return false; }

constexpr Entry kAttributes[] = {
    {"prim::is_cuda(Tensor a) -> bool",
     [](const IValue* a, size_t) {
       const at::Tensor t = tensor_of(a[0]);
       return IValue(device_is(t, c10::kCUDA));
     }},
    {"prim::is_cpu(Tensor a) -> bool",
     [](const IValue* a, size_t) {
       const at::Tensor t = tensor_of(a[0]);
       return IValue(device_is(t, c10::kCPU));
     }},
    {"prim::is_meta(Tensor a) -> bool",
     [](const IValue* a, size_t) {
       const at::Tensor t = tensor_of(a[0]);
       return IValue(device_is(t, c10::kMeta));
     }},
    {"prim::is_sparse(Tensor a) -> bool",
     [](const IValue* a, size_t) {
       const at::Tensor t = tensor_of(a[0]);
       return IValue(t.layout() == c10::kSparse);
     }},
    {"prim::is_sparse_csr(Tensor a) -> bool",
     [](const IValue* a, size_t) {
       const at::Tensor t = tensor_of(a[0]);
       return IValue(t.layout() == c10::kSparseCsr);
     }},
    {"prim::is_quantized(Tensor a) -> bool",
     [](const IValue* a, size_t) { return IValue(tensor_of(a[0]).is_quantized()); }},
    {"prim::is_nested(Tensor a) -> bool",
     [](const IValue* a, size_t) {
       const at::Tensor t = tensor_of(a[0]);
       return IValue(t.key_set().has(c10::DispatchKey::NestedTensorCPU) ||
                     t.key_set().has(c10::DispatchKey::NestedTensorCUDA));
     }},
    {"prim::requires_grad(Tensor a) -> bool",
     [](const IValue* a, size_t) {
       const at::Tensor t = tensor_of(a[0]);
       return IValue(t.requires_grad());
     }},
    {"aten::is_leaf(Tensor self) -> bool", asks<autograd::is_leaf>},
    {"prim::dtype(Tensor a) -> int",
     [](const IValue* a, size_t) { return IValue(int64_t(tensor_of(a[0]).scalar_type())); }},
    {"prim::layout(Tensor a) -> Layout",
     [](const IValue* a, size_t) { return IValue(int64_t(tensor_of(a[0]).layout())); }},
    {"prim::device(Tensor a) -> Device",
     [](const IValue* a, size_t) { return IValue(tensor_of(a[0]).device()); }},
    {"prim::shape(Tensor a) -> int[]",
     [](const IValue* a, size_t) { return IValue(tensor_of(a[0]).sizes()); }},
    {"aten::size(Tensor self) -> int[]",
     [](const IValue* a, size_t) { return IValue(tensor_of(a[0]).sizes()); }},
    {"aten::stride(Tensor self) -> int[]",
     [](const IValue* a, size_t) { return IValue(tensor_of(a[0]).strides()); }},
    {"aten::len.Tensor(Tensor t) -> int",
     [](const IValue* a, size_t) {
       TORCH_CHECK_TYPE(tensor_of(a[0]).dim() > 0, "len() of a 0-d tensor");
       return IValue(tensor_of(a[0]).size(0));
     }},
    {"aten::dim(Tensor self) -> int",
     [](const IValue* a, size_t) { return IValue(tensor_of(a[0]).dim()); }},
    {"prim::ndim(Tensor a) -> int",
     [](const IValue* a, size_t) { return IValue(tensor_of(a[0]).dim()); }},
    {"aten::ndimension(Tensor self) -> int",
     [](const IValue* a, size_t) { return IValue(tensor_of(a[0]).dim()); }},
    {"aten::nelement(Tensor self) -> int",
     [](const IValue* a, size_t) { return IValue(tensor_of(a[0]).numel()); }},
    {"aten::element_size(Tensor self) -> int",
     [](const IValue* a, size_t) { return IValue(int64_t(tensor_of(a[0]).itemsize())); }},
    {"prim::itemsize(Tensor a) -> int",
     [](const IValue* a, size_t) { return IValue(int64_t(tensor_of(a[0]).itemsize())); }},
    {"prim::nbytes(Tensor a) -> int",
     [](const IValue* a, size_t) {
       return IValue(int64_t(tensor_of(a[0]).itemsize()) * tensor_of(a[0]).numel());
     }},
    {"aten::get_device(Tensor self) -> int",
     [](const IValue* a, size_t) { return IValue(int64_t(tensor_of(a[0]).device().index())); }},
    {"prim::grad(Tensor a) -> Tensor(*)",
     [](const IValue* a, size_t) {
       const auto* meta = autograd::meta_of(tensor_of(a[0]));
       return meta ? IValue(meta->grad) : IValue();
     }},
    {"prim::data(Tensor(a) a) -> Tensor(a)",
     [](const IValue* a, size_t) { return IValue(autograd::variable_data(tensor_of(a[0]))); }},
    {"aten::requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)",
     [](const IValue* a, size_t) {
       autograd::set_requires_grad(tensor_of(a[0]), a[1].toBool());
       return a[0];
     }},
    {"aten::retain_grad(Tensor(a!) self) -> ()",
     [](const IValue* a, size_t) {
       autograd::retain_grad(tensor_of(a[0]));
       return IValue();
     }},
    {"aten::cpu(Tensor(a) self) -> Tensor(a|b)",
     [](const IValue* a, size_t) {
       return IValue(at::_ops::to_dtype_layout::call(tensor_of(a[0]), std::nullopt, std::nullopt,
                                                     at::Device(c10::kCPU), std::nullopt, false,
                                                     false, std::nullopt));
     }},
    {"aten::cuda(Tensor(a) self) -> Tensor(a|b)",
     [](const IValue* a, size_t) {
       return IValue(at::_ops::to_dtype_layout::call(tensor_of(a[0]), std::nullopt, std::nullopt,
                                                     at::Device(c10::kCUDA), std::nullopt, false,
                                                     false, std::nullopt));
     }},
    {"aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool "
     "non_blocking=False, bool copy=False) -> Tensor(a|b)",
     [](const IValue* a, size_t) {
       return IValue(at::_ops::to_dtype_layout::call(
           tensor_of(a[0]),
           a[2].isNone() ? std::nullopt : std::optional<at::ScalarType>(a[2].toScalarType()),
           std::nullopt, a[1].isNone() ? std::nullopt : std::optional<at::Device>(a[1].toDevice()),
           std::nullopt, a[3].toBool(), a[4].toBool(), std::nullopt));
     }},
    {"prim::tolist(Tensor a) -> Any", tensor_to_list},
};

void add_attributes(Builtins& out) {
  for (const char* name :
       {"is_xpu", "is_ipu", "is_maia", "is_mtia", "is_mps", "is_vulkan", "is_mkldnn", "is_xla"})
    out.push_back({c10::str("prim::", name, "(Tensor a) -> bool"), asks<never>});
  add_entries(out, kAttributes);
}

at::Device parse_device(const std::string& text) { return at::Device(text); }

constexpr Entry kState[] = {
    {"aten::device(str a) -> Device",
     [](const IValue* a, size_t) { return IValue(parse_device(a[0].toStringRef())); }},
    {"aten::device.with_index(str type, int index) -> Device",
     [](const IValue* a, size_t) {
       return IValue(parse_device(c10::str(a[0].toStringRef(), ":", a[1].toInt())));
     }},
    {"prim::type(Device self) -> str",
     [](const IValue* a, size_t) {
       return IValue(std::string(c10::device_type_name(a[0].toDevice().type())));
     }},
    {"prim::index(Device self) -> int?",
     [](const IValue* a, size_t) {
       const int64_t index = a[0].toDevice().index();
       return index < 0 ? IValue() : IValue(index);
     }},
    {"aten::is_grad_enabled() -> bool",
     [](const IValue*, size_t) { return IValue(c10::tls_autograd_state.grad_mode); }},
    {"aten::set_grad_enabled(bool val) -> ()",
     [](const IValue* a, size_t) {
       c10::tls_autograd_state.grad_mode = a[0].toBool();
       return IValue();
     }},
    {"aten::manual_seed(int seed) -> ()",
     [](const IValue* a, size_t) {
       at::manual_seed(uint64_t(a[0].toInt()));
       return IValue();
     }},
    {"aten::is_scripting() -> bool", [](const IValue*, size_t) { return IValue(true); }},
    {"aten::has_torch_function(...) -> bool", [](const IValue*, size_t) { return IValue(false); }},
    {"aten::_get_tracing_state() -> bool", [](const IValue*, size_t) { return IValue(false); }},
    {"aten::is_autocast_enabled() -> bool",
     [](const IValue*, size_t) { return IValue(at::autocast::is_enabled(c10::kCUDA)); }},
    {"aten::is_autocast_cpu_enabled() -> bool",
     [](const IValue*, size_t) { return IValue(at::autocast::is_enabled(c10::kCPU)); }},
};

void add_state(Builtins& out) { add_entries(out, kState); }

} // namespace

void add_tensor_builtins(Builtins& out) {
  add_conversions(out);
  add_attributes(out);
  add_state(out);
}

const std::vector<Builtin>& builtins() {
  static const auto* table = [] {
    auto* out = new Builtins;
    add_number_builtins(*out);
    add_container_builtins(*out);
    add_string_builtins(*out);
    add_tensor_builtins(*out);
    return out;
  }();
  return *table;
}

} // namespace torch::jit
