// Which operator calls are kernels over rows: softmax and the norms of the last dimensions. What
// they compute is in ATen; here is only how their arguments say it.
#include <torch/csrc/inductor/ir.h>

#include <string_view>

#include <ATen/native/shape/Geometry.h>

namespace torch::inductor {
namespace {

using at::IValue;
using at::ScalarType;
using at::Tensor;

using ViewOf = std::function<int32_t(const Tensor&)>;

bool is_whole(const Tensor& t) {
  return t.dim() > 0 && t.sym_numel() > 0 && t.is_contiguous() &&
         same(t.unsafeGetTensorImpl()->sym_storage_offset(), 0);
}
bool is_last(const IValue& dim, const Tensor& t) {
  return t.dim() > 0 && at::native::wrap_dim(dim.toInt(), t.dim()) == t.dim() - 1;
}
ScalarType compute_type(ScalarType dtype) {
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

// Weight or bias of the type that elements compute in; -2 where it is another.
int32_t parameter(const IValue& value, ScalarType compute, const ViewOf& view_of) {
  if (value.isNone() || (value.isTensor() && !value.toTensor().defined())) return -1;
  const Tensor t = value.toTensor();
  if (!t.is_meta() || t.scalar_type() != compute || !t.is_contiguous()) return -2;
  return view_of(t);
}

RowForm softmax(bool log, const at::Stack& args, const at::Stack& results, const ViewOf& view_of) {
  RowForm form;
  const Tensor self = args[0].toTensor(), out = results[0].toTensor();
  if (!is_last(args[1], self) || args[2].toBool() || !is_whole(self) || !is_whole(out)) return form;
  form.kernel = at::native::softmax_rows(log, self.scalar_type(), self.sym_sizes().back().raw());
  form.in = {view_of(self)};
  form.out = {view_of(out)};
  return form;
}

RowForm softmax_backward(bool log, const at::Stack& args, const at::Stack& results,
                         const ViewOf& view_of) {
  RowForm form;
  const Tensor grad = args[0].toTensor(), output = args[1].toTensor();
  const Tensor out = results[0].toTensor();
  if (!is_last(args[2], output) || !is_whole(grad) || !is_whole(output) || !is_whole(out) ||
      out.scalar_type() != grad.scalar_type() || grad.scalar_type() != output.scalar_type())
    return form;
  form.kernel =
      at::native::softmax_backward_rows(log, grad.scalar_type(), grad.sym_sizes().back().raw());
  form.by_row = 2;
  form.in = {view_of(grad), view_of(output)};
  form.out = {view_of(out)};
  return form;
}

RowForm norm(bool rms, const at::Stack& args, const at::Stack& results, const ViewOf& view_of) {
  RowForm form;
  const Tensor self = args[0].toTensor();
  const ScalarType dtype = self.scalar_type(), compute = compute_type(dtype);
  if (!is_whole(self)) return form;
  form.in = {view_of(self), parameter(args[2], compute, view_of)};
  if (!rms) form.in.push_back(parameter(args[3], compute, view_of));
  for (const int32_t view : form.in)
    if (view == -2) return form;
  for (size_t k = 0; k < results.size(); ++k) {
    const Tensor out = results[k].toTensor();
    if (!is_whole(out) || out.scalar_type() != (k == 0 ? dtype : compute)) return form;
    form.out.push_back(view_of(out));
  }
  SymInt product = 1;
  for (const int64_t size : args[1].toIntList()) product *= SymInt::from_raw(size);
  const int64_t length = product.raw();
  if (rms) {
    const double eps =
        args[3].isNone() ? at::native::default_rms_eps(dtype) : args[3].toScalar().to<double>();
    form.kernel = at::native::rms_norm_rows(dtype, length, eps);
  } else {
    form.kernel = at::native::layer_norm_rows(dtype, length, args[4].toScalar().to<double>());
  }
  return form;
}

} // namespace

bool has_kernel_of_user(const at::OperatorEntry& op) {
  const at::OperatorState* state = op.state.load(std::memory_order_acquire);
  if (state == nullptr) return false;
  for (const auto& registration : state->kernels)
    if (!(c10::kAutogradKeys | c10::kAutocastKeys).has(registration.key)) return true;
  return false;
}

RowForm row_form(const at::OperatorEntry& op, const at::Stack& args, const at::Stack& results,
                 const ViewOf& view_of) {
  RowForm form;
  if (has_kernel_of_user(op)) return form;
  const std::string_view name(op.name);
  if (name == "aten::_softmax" || name == "aten::_log_softmax")
    form = softmax(name == "aten::_log_softmax", args, results, view_of);
  else if (name == "aten::_softmax_backward_data" || name == "aten::_log_softmax_backward_data")
    form = softmax_backward(name == "aten::_log_softmax_backward_data", args, results, view_of);
  else if (name == "aten::native_layer_norm" || name == "aten::_fused_rms_norm")
    form = norm(name == "aten::_fused_rms_norm", args, results, view_of);
  const SymInt length = SymInt::from_raw(form.kernel.length);
  if (form.kernel.run && length > 0)
    form.count = (args[0].toTensor().sym_numel() / length).raw();
  else
    form.kernel.run = nullptr;
  return form;
}

} // namespace torch::inductor
