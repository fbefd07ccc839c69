// Operators that exist for strided tensors, on sparse ones. They are found by name in one table
// instead of a kernel per operator in the operator list: most do the same thing (the operator
// itself, on the values), and none is hot enough for the boxed call to matter. An operator that is
// not in the table, and not made of others that are, raises NotImplementedError: a kernel for
// strided memory never sees a tensor that has none.
#include <cstring>
#include <string>
#include <unordered_map>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/IValue.h>
#include <ATen/core/SparseFallback.h>
#include <ATen/native/GeneratedSupport.h>
#include <ATen/native/sparse/Kernels.h>

namespace at::sparse {
namespace {

// ---- the operator itself on the values
constexpr const char* kKeepZero[] = {
    "abs",      "sin",        "sinh",    "tan",     "tanh",     "asin",  "asinh",
    "atan",     "atanh",      "sqrt",    "ceil",    "floor",    "round", "trunc",
    "frac",     "sign",       "sgn",     "signbit", "relu",     "expm1", "log1p",
    "erf",      "erfinv",     "deg2rad", "rad2deg", "isnan",    "isinf", "isposinf",
    "isneginf", "nan_to_num", "angle",   "square",  "positive", "pow",   "floor_divide"};
// These also commute with sums, so that elements with equal indices may stay apart.
constexpr const char* kLinear[] = {"neg", "_conj_physical", "mul", "div", "_conj", "_neg_view"};

bool listed(const char* const* names, size_t count, std::string_view name) {
  for (size_t i = 0; i < count; ++i)
    if (name == names[i]) return true;
  return false;
}
std::string_view bare(std::string_view name) { return name.substr(6); } // without "aten::"

void check_keeps_zero(std::string_view name, const Stack& stack) {
  if (name == "pow" || name == "pow_")
    TORCH_CHECK(stack.size() < 2 || stack[1].isTensor() || stack[1].toScalar().toDouble() != 0,
                "pow: cannot raise to zeroth power on sparse tensor; it would make the result "
                "tensor dense");
  if (name == "floor_divide" || name == "floor_divide_")
    TORCH_CHECK(!stack[1].isTensor() ||
                    (stack[1].toTensor().dim() == 0 && stack[1].toTensor().layout() == kStrided),
                "Sparse floor division requires a scalar or zero-dim dense tensor divisor");
}

void on_values(const OperatorEntry& op, Stack& stack, bool linear) {
  const std::string_view name = bare(op.name);
  const bool inplace = name.size() > 1 && name.back() == '_';
  Tensor self = stack[0].toTensor();
  check_keeps_zero(name, stack);
  Tensor out;
  if (op.schema().arguments.back().is_out) out = stack.back().toTensor();
  const bool is_coo = self.layout() == Layout::Sparse;
  if (is_coo && !linear && !coo(self, op.name).coalesced) {
    TORCH_CHECK(!inplace || name == "floor_divide_", name, " requires coalesced input");
    if (inplace) become(self, coalesced(self));
    self = inplace ? self : coalesced(self);
  }
  stack[0] = any_sparse(self, op.name).values;
  if (out.defined()) stack.back() = detail::empty({0}, out.scalar_type(), out.device());
  op.call_boxed(stack);
  const Tensor values = stack.back().toTensor();
  stack.clear();
  if (inplace) {
    self.unsafeGetTensorImpl()->bump_version();
    stack.emplace_back(self);
  } else if (out.defined()) {
    become(out, with_values(self, values));
    stack.emplace_back(out);
  } else {
    stack.emplace_back(with_values(self, values));
  }
}
void nonlinear_on_values(const OperatorEntry& op, Stack& stack) { on_values(op, stack, false); }
void linear_on_values(const OperatorEntry& op, Stack& stack) { on_values(op, stack, true); }

// ---- compressed tensors through COO
// Sparse arguments become COO, the operator runs, and a COO result of the same rank gets back the
// layout that the first of them had.
void through_coo(const OperatorEntry& op, Stack& stack) {
  Tensor first;
  for (IValue& v : stack) {
    if (!v.isTensor()) continue;
    const Tensor t = v.toTensor();
    if (!is_compressed(t.layout())) continue;
    if (!first.defined()) first = t;
    v = to_coo(t);
  }
  op.call_boxed(stack);
  if (stack.empty() || !stack.back().isTensor()) return;
  const Tensor out = stack.back().toTensor();
  if (out.layout() != Layout::Sparse || out.dim() != first.dim() || out.dim() != 2) return;
  if (!is_block(first.layout()) || out.sizes() == first.sizes())
    stack.back() = to_layout_of(out, first);
}

// ---- out= variants: the functional operator, then its result stored
struct OutOf {
  const char* out;
  const char* overload; // of the functional operator
};
constexpr OutOf kOut[] = {{"add.out", "Tensor"}, {"sub.out", "Tensor"}, {"mul.out", "Tensor"},
                          {"div.out", "Tensor"}, {"mm.out", ""},        {"mv.out", ""},
                          {"addmm.out", ""},     {"addmv.out", ""},     {"cat.out", ""}};

void into_out(const OperatorEntry& op, Stack& stack) {
  Tensor out = stack.back().toTensor();
  stack.pop_back();
  const char* overload = "";
  const std::string full = std::string(bare(op.name)) + "." + op.overload;
  for (const OutOf& entry : kOut)
    if (full == entry.out) overload = entry.overload;
  Dispatcher::singleton().find(op.name, overload)->call_boxed(stack);
  const Tensor result = stack.back().toTensor();
  TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()), "result type ",
              result.scalar_type(), " can't be cast to the desired output type ",
              out.scalar_type());
  if (out.layout() == kStrided && result.layout() == kStrided) {
    native::resize_output(out, result.sizes());
    out.copy_(result);
  } else {
    become(out, result.scalar_type() == out.scalar_type() ? result : result.to(out.scalar_type()));
  }
  stack.back() = out;
}

struct Table {
  std::unordered_map<std::string, Handler> coo, csr;
  Table() {
    add_kernels(coo, csr);
    static constexpr const char* shared[] = {"index_select", "sum.dim_IntList"};
    for (const char* name : shared) csr.emplace(name, through_coo);
    for (const OutOf& entry : kOut) {
      coo.emplace(entry.out, into_out);
      csr.emplace(entry.out, into_out);
    }
  }
};

Handler find(const OperatorEntry& op, bool csr) {
  static const Table table;
  if (std::strncmp(op.name, "aten::", 6) != 0) return nullptr;
  const std::string_view name = bare(op.name);
  const std::string full = *op.overload ? std::string(name) + "." + op.overload : std::string(name);
  const auto& entries = csr ? table.csr : table.coo;
  if (auto it = entries.find(full); it != entries.end()) return it->second;
  const std::string_view overload = op.overload;
  const bool one_tensor = overload.empty() || overload == "out" || overload == "decimals" ||
                          overload == "decimals_out" || overload == "Scalar" ||
                          overload == "Scalar_mode" || overload == "Tensor_Scalar" ||
                          overload == "Tensor_Scalar_out" ||
                          (overload == "Tensor" && name == "floor_divide_");
  std::string_view root = name;
  if (root.size() > 1 && root.back() == '_') root.remove_suffix(1);
  if (!one_tensor) return nullptr;
  if (overload == "out" && (root == "mul" || root == "div")) return nullptr;
  if (root == "pow" && overload != "Tensor_Scalar" && !(name == "pow_" && overload == "Scalar"))
    return nullptr;
  if (listed(kLinear, std::size(kLinear), root)) return linear_on_values;
  if (listed(kKeepZero, std::size(kKeepZero), root)) return nonlinear_on_values;
  return nullptr;
}

class FromTable final : public BoxedKernel {
 public:
  explicit FromTable(bool csr) : csr_(csr) {}
  void call(const OperatorEntry& op, DispatchKeySet, Stack& stack) override {
    find(op, csr_)(op, stack);
  }

 private:
  bool csr_;
};
} // namespace

c10::intrusive_ptr<BoxedKernel> sparse_fallback(const OperatorEntry& op, bool csr) {
  if (find(op, csr) == nullptr) return nullptr;
  static const c10::intrusive_ptr<BoxedKernel> kernels[] = {c10::make_intrusive<FromTable>(false),
                                                            c10::make_intrusive<FromTable>(true)};
  return kernels[csr ? 1 : 0];
}

} // namespace at::sparse
