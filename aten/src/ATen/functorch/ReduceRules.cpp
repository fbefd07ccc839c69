// Batching rules of reductions, scans and sorts: those along dimensions move them by one, those
// over everything go over all dimensions of a sample.
#include <ATen/functorch/BatchRule.h>

#include <ATen/ops/add.h>
#include <ATen/ops/all.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/any.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/median.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/nanmedian.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>

namespace at::functorch {
namespace {

std::optional<ScalarType> dtype_argument(const Call& call) {
  const int at = call.find("dtype");
  if (at < 0 || call.args[at].isNone()) return std::nullopt;
  return call.args[at].toScalarType();
}
// The samples as rows.
Tensor rows(const Call& call) {
  return call.front(call.tensor(0)).reshape({call.batch(), call.tensor(0).numel()});
}

void sum_all(Call& call) {
  call.give(at::sum(rows(call), OptionalIntArrayRef(IntArrayRef{1}), false, dtype_argument(call)));
}
void mean_all(Call& call) {
  call.give(at::mean(rows(call), OptionalIntArrayRef(IntArrayRef{1}), false, dtype_argument(call)));
}
void prod_all(Call& call) { call.give(at::prod(rows(call), 1, false, dtype_argument(call))); }
void max_all(Call& call) { call.give(at::amax(rows(call), {1})); }
void min_all(Call& call) { call.give(at::amin(rows(call), {1})); }
void all_all(Call& call) { call.give(at::all(rows(call), 1)); }
void any_all(Call& call) { call.give(at::any(rows(call), 1)); }
void median_all(Call& call) { call.give(std::get<0>(at::median(rows(call), 1))); }
void nanmedian_all(Call& call) { call.give(std::get<0>(at::nanmedian(rows(call), 1))); }
void aminmax_all(Call& call) {
  const Tensor flat = rows(call);
  call.give(at::amin(flat, {1}));
  call.give(at::amax(flat, {1}));
}
void trace_rule(Call& call) { call.give_batched(at::sum(at::diagonal(call.tensor(0)))); }

// `int? dim`: without one, the elements of a sample in a row.
void optional_dim(Call& call) {
  const int dim = call.find("dim"), keep = call.find("keepdim");
  if (!call.args[dim].isNone()) {
    dims_rule(call);
    return;
  }
  Stack stack = call.args;
  stack[0] = IValue(rows(call));
  stack[dim] = IValue(int64_t(1));
  const bool kept = keep >= 0 && stack[keep].toBool();
  if (keep >= 0) stack[keep] = IValue(false);
  call.op.call_boxed(stack);
  std::vector<int64_t> ones{call.batch()};
  for (int64_t d = 0; kept && d < call.tensor(0).dim(); ++d) ones.push_back(1);
  for (const IValue& v : stack) call.give(v.toTensor().reshape(ones));
}

// The norm is over all dimensions but one.
void renorm_rule(Call& call) {
  const Tensor self = call.tensor(0);
  const int64_t dim = call.shifted(call.args[2].toInt(), self.dim()) - 1;
  std::vector<int64_t> others;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim) others.push_back(d);
  const Tensor norm = at::linalg_vector_norm(self, call.args[1].toScalar(),
                                             OptionalIntArrayRef(IntArrayRef(others)), true);
  const Scalar most = call.args[3].toScalar();
  const Tensor factor = at::div(at::mul(at::ones_like(norm), most), at::add(norm, 1e-7));
  call.give_batched(at::mul(self, at::where(at::gt(norm, most), factor, at::ones_like(norm))));
}

// Sequences have one row for each row of values, or are one for all.
void searchsorted_rule(Call& call) {
  const int at = call.find("sorter");
  const Tensor sequence = call.tensor(0);
  const bool scalar = !call.args[1].isTensor();
  const bool rowwise = call.batched(sequence) || !call.args[at].isNone();
  Stack stack = call.args;
  if (!rowwise && sequence.dim() == 1) {
    stack[1] = IValue(call.expanded(call.tensor(1)));
    call.run(std::move(stack));
    return;
  }
  stack[0] = IValue(call.expanded(sequence));
  if (!call.args[at].isNone()) stack[at] = IValue(call.expanded(call.tensor(at)));
  if (scalar) {
    run_per_sample(call);
    return;
  }
  const Tensor values = call.expanded(call.tensor(1));
  if (sequence.dim() > 1) {
    stack[1] = IValue(values);
    call.run(std::move(stack));
    return;
  }
  stack[1] = IValue(values.reshape({call.batch(), call.tensor(1).numel()}));
  call.op.call_boxed(stack);
  call.give(stack[0].toTensor().reshape(values.sizes()));
}

void bucketize_rule(Call& call) {
  if (call.batched(call.tensor(1))) {
    call.give_batched(at::searchsorted(call.tensor(1), call.tensor(0), call.args[2].toBool(),
                                       call.args[3].toBool()));
    return;
  }
  Stack stack = call.args;
  stack[0] = IValue(call.front(call.tensor(0)));
  call.run(std::move(stack));
}

// The result takes only values from the other operand.
void isin_rule(Call& call) {
  const size_t set = 1;
  if (call.args[set].isTensor() && call.batched(call.tensor(set))) {
    const Tensor wanted = call.tensor(set).reshape({call.tensor(set).numel()});
    const Tensor found = at::any(at::eq(call.tensor(0).unsqueeze(-1), wanted), -1);
    call.give_batched(call.args[3].toBool() ? at::logical_not(found) : found);
    return;
  }
  Stack stack = call.args;
  stack[0] = IValue(call.front(call.tensor(0)));
  call.run(std::move(stack));
}
} // namespace

ArrayRef<RuleEntry> reduce_rules() {
  static const RuleEntry entries[] = {
      {"sum", sum_all, 0},
      {"mean", mean_all, 0},
      {"prod", prod_all, 0},
      {"max", max_all, 0},
      {"min", min_all, 0},
      {"all _is_all_true", all_all, 0},
      {"any _is_any_true", any_all, 0},
      {"median", median_all, 0},
      {"nanmedian", nanmedian_all, 0},
      {"_aminmax", aminmax_all, 0},
      {"trace", trace_rule, 0},
      {"argmax argmin aminmax count_nonzero", optional_dim, kScalarOk},
      {"sum.dim_IntList nansum mean.dim amax amin all.dims any.dims std.correction var.correction "
       "std_mean.correction var_mean.correction logsumexp linalg_vector_norm hash_tensor "
       "count_nonzero.dim_IntList",
       dims_rule, kScalarOk | kAllIfNone},
      {"prod.dim_int _aminmax.dim max.dim min.dim all.dim any.dim cumsum cumprod logcumsumexp "
       "_logcumsumexp cummax cummin _softmax _log_softmax _softmax_backward_data "
       "_log_softmax_backward_data _safe_softmax median.dim nanmedian.dim mode kthvalue sort "
       "sort.stable argsort.stable topk glu glu_backward glu_jvp _fft_r2c _fft_c2r _fft_c2c",
       dims_rule, kScalarOk},
      {"renorm", renorm_rule, 0},
      {"searchsorted.Tensor searchsorted.Scalar", searchsorted_rule, 0},
      {"bucketize.Tensor", bucketize_rule, 0},
      {"isin.Tensor_Tensor isin.Tensor_Scalar", isin_rule, 0},
  };
  return entries;
}

} // namespace at::functorch
