// The inverses of view operators. Each is made of operators that a trace may show: the scatter
// forms, and views themselves. Arguments are handed on as they were given, so that symbolic ones
// stay symbols.
#include <ATen/functional/ViewInverse.h>

#include <unordered_map>

#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/as_strided_scatter.h>
#include <ATen/ops/diagonal_scatter.h>
#include <ATen/ops/permute.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/select.h>
#include <ATen/ops/select_scatter.h>
#include <ATen/ops/slice.h>
#include <ATen/ops/slice_scatter.h>
#include <ATen/ops/squeeze.h>
#include <ATen/ops/t.h>
#include <ATen/ops/transpose.h>
#include <ATen/ops/unfold.h>
#include <ATen/ops/unsqueeze.h>
#include <ATen/ops/view.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

namespace at::functional {

Inverse inverse_of(const OperatorEntry& op) {
  static const auto* const table = [] {
    auto* rows = new std::unordered_map<const OperatorEntry*, Inverse>();
    for (const detail::InverseRow& row : detail::inverse_table())
      rows->emplace(row.op, row.inverse);
    return rows;
  }();
  const auto it = table->find(&op);
  return it == table->end() ? nullptr : it->second;
}

namespace inverse {
namespace {

Tensor call(const OperatorEntry& op, Stack stack) {
  op.call_boxed(stack);
  return stack.at(0).toTensor();
}

// A view operator on the new values, in the form that the program's views have.
Tensor view_of(const ViewCall& v, const OperatorEntry& op, Stack stack) {
  return call(v.copies ? *copying_form(op) : op, std::move(stack));
}

int64_t wrapped_dim(const IValue& dim, const Tensor& t) {
  const int64_t d = dim.toInt();
  return d < 0 ? d + t.dim() : d;
}

IValue sizes_of(const Tensor& t) { return IValue(t.sym_sizes()); }

// The part of a dimension that one of several results covers, replaced.
Tensor replace_part(const ViewCall& v, int64_t dim, SymInt start, SymInt end) {
  return call(_ops::slice_scatter::entry,
              {v.before, v.now, IValue(dim), IValue(start), IValue(end), IValue(int64_t(1))});
}
} // namespace

Tensor select(const ViewCall& v) {
  return call(_ops::select_scatter::entry, {v.before, v.now, v.args[1], v.args[2]});
}
Tensor slice(const ViewCall& v) {
  return call(_ops::slice_scatter::entry,
              {v.before, v.now, v.args[1], v.args[2], v.args[3], v.args[4]});
}
Tensor diagonal(const ViewCall& v) {
  return call(_ops::diagonal_scatter::entry, {v.before, v.now, v.args[1], v.args[2], v.args[3]});
}
Tensor transpose(const ViewCall& v) {
  return view_of(v, _ops::transpose_int::entry, {v.now, v.args[1], v.args[2]});
}
Tensor t(const ViewCall& v) { return view_of(v, _ops::t::entry, {v.now}); }

Tensor permute(const ViewCall& v) {
  const std::vector<int64_t> order = v.args[1].toIntList();
  std::vector<int64_t> back(order.size());
  for (size_t d = 0; d < order.size(); ++d)
    back[order[d] < 0 ? order[d] + v.before.dim() : order[d]] = static_cast<int64_t>(d);
  return view_of(v, _ops::permute::entry, {v.now, IValue(std::move(back))});
}

Tensor unbind(const ViewCall& v) {
  return call(_ops::select_scatter::entry,
              {v.before, v.now, v.args[1], IValue(static_cast<int64_t>(v.output))});
}
Tensor split(const ViewCall& v) {
  const int64_t dim = wrapped_dim(v.args[2], v.before);
  const SymInt start = v.args[1].toSymInt() * SymInt(static_cast<int64_t>(v.output));
  return replace_part(v, dim, start, start + v.now.sym_sizes()[dim]);
}
Tensor split_with_sizes(const ViewCall& v) {
  const int64_t dim = wrapped_dim(v.args[2], v.before);
  const std::vector<int64_t> sizes = v.args[1].toIntList();
  SymInt start(0);
  for (size_t i = 0; i < v.output; ++i) start = start + SymInt::from_raw(sizes[i]);
  return replace_part(v, dim, start, start + v.now.sym_sizes()[dim]);
}

Tensor as_strided(const ViewCall& v) {
  return call(_ops::as_strided_scatter::entry, {v.before, v.now, v.args[1], v.args[2], v.args[3]});
}

Tensor view(const ViewCall& v) {
  if (v.copies) return view_of(v, _ops::view::entry, {v.now, sizes_of(v.before)});
  // New values may lie in memory in a way that the view does not allow.
  return call(_ops::reshape::entry, {v.now, sizes_of(v.before)});
}
Tensor unsqueeze(const ViewCall& v) {
  return view_of(v, _ops::squeeze_dim::entry, {v.now, v.args[1]});
}
// Puts the dimensions of size one back that were taken away: all, or those that were named.
Tensor squeeze(const ViewCall& v) {
  const int64_t ndim = v.before.dim();
  std::vector<bool> named(static_cast<size_t>(ndim), v.args.size() == 1);
  if (v.args.size() > 1) {
    const bool one = v.args[1].isInt();
    for (const int64_t d : one ? std::vector<int64_t>{v.args[1].toInt()} : v.args[1].toIntList())
      if (ndim > 0) named[static_cast<size_t>(d < 0 ? d + ndim : d)] = true;
  }
  Tensor out = v.now;
  for (int64_t d = 0; d < ndim; ++d)
    if (named[static_cast<size_t>(d)] && v.before.sym_sizes()[d].raw() == 1)
      out = view_of(v, _ops::unsqueeze::entry, {out, IValue(d)});
  return out;
}

// Several elements of the view are one element of what it views: the first of them counts.
Tensor expand(const ViewCall& v) {
  Tensor out = v.now;
  while (out.dim() > v.before.dim())
    out = call(_ops::select_int::entry, {out, int64_t(0), int64_t(0)});
  for (int64_t d = 0; d < v.before.dim(); ++d) {
    if (v.before.sym_sizes()[d].raw() == out.sym_sizes()[d].raw()) continue;
    out = call(_ops::slice_Tensor::entry,
               {out, IValue(d), IValue(int64_t(0)), IValue(int64_t(1)), IValue(int64_t(1))});
  }
  return out;
}

Tensor unfold(const ViewCall& v) {
  const Tensor base = v.before.contiguous();
  Stack stack{base, v.args[1], v.args[2], v.args[3]};
  const Tensor shape = call(_ops::unfold::entry, std::move(stack));
  return at::as_strided_scatter(base, v.now, shape.sizes(), shape.strides(),
                                shape.storage_offset());
}

Tensor same(const ViewCall& v) { return v.now; }
Tensor view_dtype(const ViewCall& v) {
  return view_of(v, _ops::view_dtype::entry, {v.now, IValue(v.before.scalar_type())});
}
Tensor view_as_real(const ViewCall& v) {
  return view_of(v, _ops::view_as_complex::entry, {v.now.contiguous()});
}
Tensor view_as_complex(const ViewCall& v) { return view_of(v, _ops::view_as_real::entry, {v.now}); }
Tensor conj(const ViewCall& v) { return view_of(v, _ops::_conj::entry, {v.now}); }
Tensor neg(const ViewCall& v) { return view_of(v, _ops::_neg_view::entry, {v.now}); }

} // namespace inverse
} // namespace at::functional
