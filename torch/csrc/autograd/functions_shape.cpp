// Gradients of shape and index operators and of matrix products. See functions.h.
#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/functorch/Level.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/expand.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_fill.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/narrow.h>
#include <ATen/ops/new_zeros.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/put.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/scatter_reduce.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/t.h>
#include <ATen/ops/take.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/SymNumbers.h>
#include <torch/csrc/autograd/functions.h>

namespace torch::autograd::generated {

Tensor expanded(const Tensor& t, SizesRef sizes) { return at::_ops::expand::call(t, sizes, false); }
Tensor reshaped(const Tensor& t, SizesRef sizes) { return at::_ops::reshape::call(t, sizes); }
// From behind, the end may be the end of the tensor, which no negative number is.
c10::SymInt narrow_end(c10::SymInt start, c10::SymInt length) {
  const c10::SymInt end = start + length;
  const bool last = !start.is_symbolic() && start < 0 && end.raw() == 0;
  return last ? c10::SymInt(INT64_MAX) : end;
}

Tensor permute_grad(const Tensor& grad, IntArrayRef dims) {
  c10::DimVector inverse(dims.size(), 0);
  const int64_t n = static_cast<int64_t>(dims.size());
  for (int64_t i = 0; i < n; ++i) inverse[dims[i] < 0 ? dims[i] + n : dims[i]] = i;
  return grad.permute(inverse);
}

// Whether two elements of a geometry may lie in one place; it says yes when in doubt.
static bool overlaps(IntArrayRef sizes, IntArrayRef strides) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1) dims.emplace_back(strides[d], sizes[d]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

// The elements of the view are added to where they lie in a buffer as large as what the base spans;
// the base is read from it. Where the base itself repeats memory, each of its elements has an equal
// share.
Tensor as_strided_grad(const Tensor& grad, IntArrayRef base_sizes, IntArrayRef base_strides,
                       int64_t base_offset, IntArrayRef sizes, IntArrayRef strides,
                       std::optional<int64_t> offset) {
  auto span = [](IntArrayRef size, IntArrayRef stride) {
    int64_t last = 0;
    for (size_t d = 0; d < size.size(); ++d) {
      if (size[d] == 0) return int64_t(0);
      last += (size[d] - 1) * stride[d];
    }
    return last + 1;
  };
  const int64_t view_offset = offset.value_or(base_offset);
  const int64_t first = std::min(view_offset, base_offset);
  const int64_t length = std::max(view_offset - first + span(sizes, strides),
                                  base_offset - first + span(base_sizes, base_strides));
  if (length == 0 || grad.numel() == 0) return at::zeros(base_sizes, grad.options());
  if (!overlaps(sizes, strides) && !overlaps(base_sizes, base_strides)) {
    // No two elements lie in one place: the gradient is copied to where the view is.
    const Tensor buffer = zeros_of({length}, grad);
    Tensor view = at::as_strided(buffer, sizes, strides, view_offset - first);
    view.copy_(grad);
    return at::as_strided(buffer, base_sizes, base_strides, base_offset - first);
  }
  const at::TensorOptions integers = at::TensorOptions(at::kLong).device(grad.device());
  // The position in the buffer of each element of a geometry.
  auto positions = [&](IntArrayRef size, IntArrayRef stride, int64_t start) {
    Tensor at_ = at::zeros(size, integers) + start;
    for (size_t d = 0; d < size.size(); ++d) {
      c10::DimVector shape(size.size(), 1);
      shape[d] = size[d];
      Tensor steps = at::zeros({size[d]}, integers);
      for (int64_t k = 0; k < size[d]; ++k) steps.select(0, k).fill_(k * stride[d]);
      at_ = at_ + steps.view(shape);
    }
    return at_.reshape({-1});
  };
  const Tensor view_at = positions(sizes, strides, view_offset - first);
  const Tensor base_at = positions(base_sizes, base_strides, base_offset - first);
  const Tensor buffer =
      at::index_add(at::zeros({length}, grad.options()), 0, view_at, grad.reshape({-1}));
  const Tensor shares =
      at::index_add(at::zeros({length}, integers), 0, base_at, at::ones_like(base_at));
  const Tensor picked = at::index_select(buffer, 0, base_at) / at::index_select(shares, 0, base_at);
  return picked.reshape(base_sizes);
}

Tensor unsqueezed(const Tensor& grad, SizesRef sizes, const OptionalIntArrayRef& dims) {
  const auto rank = static_cast<int64_t>(sizes.size());
  std::vector<bool> chosen(sizes.size(), !dims);
  for (size_t i = 0; dims && i < dims->size() && rank > 0; ++i) {
    const int64_t d = (*dims)[i];
    chosen[static_cast<size_t>(d < 0 ? d + rank : d)] = true;
  }
  Tensor out = grad;
  for (int64_t d = 0; d < rank; ++d)
    if (chosen[static_cast<size_t>(d)] && c10::statically_known_true(c10::sym_eq(sizes[d], 1)))
      out = out.unsqueeze(d);
  return out;
}

// ---- joining and splitting
namespace {
// Zeros for an output that got no gradient. Beside gradients of a class of its own (a distributed
// tensor) they have to be of that class.
Tensor zeros_beside(const TensorVec& grads, c10::SymIntArrayRef sizes,
                    const at::TensorOptions& options) {
  for (const Tensor& g : grads)
    if (g.defined() && g.key_set().has(c10::DispatchKey::Python))
      return at::_ops::new_zeros::call(g, sizes, {}, {}, {}, {});
  return at::zeros_symint(sizes, options);
}
// Whether nobody but the gradients, and the tensors that they are views of, holds their memory, and
// nobody else holds those.
bool have_memory_alone(const TensorVec& grads) {
  c10::SmallVector<const c10::TensorImpl*, 4> bases;
  c10::SmallVector<uint32_t, 4> views; // by base
  for (const Tensor& g : grads) {
    if (!g.defined() || g.use_count() != 1) return false;
    if (!g.is_view()) continue;
    const c10::TensorImpl* base = g.unsafeGetTensorImpl()->base().get();
    size_t k = 0;
    while (k < bases.size() && bases[k] != base) ++k;
    if (k == bases.size()) {
      bases.push_back(base);
      views.push_back(0);
    }
    ++views[k];
  }
  for (size_t k = 0; k < bases.size(); ++k)
    if (bases[k] == nullptr || bases[k]->use_count() != views[k]) return false;
  return grads[0].storage().use_count() == grads.size() + bases.size();
}
// The tensor whose parts along `dim` the gradients are, where they lie side by side in memory that
// nobody else holds, so that nobody can tell that nothing was copied; else undefined.
Tensor joined_in_place(const TensorVec& grads, int64_t dim) {
  const Tensor& first = grads[0];
  const auto is_plain = [](const Tensor& g) {
    constexpr c10::DispatchKeySet kOther{c10::DispatchKey::Fake,
                                         c10::DispatchKey::Functionalize,
                                         c10::DispatchKey::Conjugate,
                                         c10::DispatchKey::Negative,
                                         c10::DispatchKey::FuncTorchBatched,
                                         c10::DispatchKey::FuncTorchGradWrapper};
    return g.defined() && (g.is_cpu() || g.is_cuda()) && g.layout() == at::kStrided &&
           g.has_storage() && !g.requires_grad() && !at::seen_by_handlers(g) &&
           !g.key_set().has_any(kOther);
  };
  if (grads.size() < 2 || !is_plain(first) || first.numel() == 0 || !have_memory_alone(grads))
    return {};
  at::DimVector sizes(first.sizes());
  int64_t next = first.storage_offset();
  sizes[static_cast<size_t>(dim)] = 0;
  for (const Tensor& g : grads) {
    if (!is_plain(g) || !g.is_alias_of(first) || g.scalar_type() != first.scalar_type() ||
        g.strides() != first.strides() || g.storage_offset() != next || g.dim() != first.dim())
      return {};
    for (int64_t d = 0; d < g.dim(); ++d)
      if (d != dim && g.size(d) != first.size(d)) return {};
    sizes[static_cast<size_t>(dim)] += g.size(dim);
    next += g.size(dim) * g.stride(dim);
  }
  return at::detail::view_of(first, sizes, first.strides(), first.storage_offset());
}
} // namespace

Tensor unbind_grad(const TensorVec& grads, SizesRef sizes, const at::TensorOptions& options,
                   int64_t dim) {
  SymSizes part(sizes.begin(), sizes.end());
  const int64_t at_ = dim < 0 ? dim + static_cast<int64_t>(sizes.size()) : dim;
  part.erase(part.begin() + at_);
  Tensors all;
  for (const Tensor& g : grads) all.push_back(g.defined() ? g : zeros_beside(grads, part, options));
  return at::stack(all, dim);
}
Tensor split_sizes_grad(const TensorVec& grads, SizesRef sizes, const at::TensorOptions& options,
                        SizesRef parts, int64_t dim) {
  const int64_t at_ = dim < 0 ? dim + static_cast<int64_t>(sizes.size()) : dim;
  if (Tensor joined = joined_in_place(grads, at_); joined.defined()) return joined;
  Tensors all;
  for (size_t i = 0; i < grads.size(); ++i) {
    SymSizes part(sizes.begin(), sizes.end());
    part[at_] = parts[i];
    all.push_back(grads[i].defined() ? grads[i] : zeros_beside(grads, part, options));
  }
  return at::cat(all, dim);
}
Tensor split_grad(const TensorVec& grads, SizesRef sizes, const at::TensorOptions& options,
                  c10::SymInt size, int64_t dim) {
  const int64_t at_ = dim < 0 ? dim + static_cast<int64_t>(sizes.size()) : dim;
  SymSizes parts(grads.size(), size);
  const c10::SymInt before = size * static_cast<int64_t>(grads.size() - 1);
  parts.back() = sizes[at_] - before;
  return split_sizes_grad(grads, sizes, options, c10::SymIntArrayRef(parts), dim);
}

// An empty one-dimensional tensor may be joined with anything; it has no part in the result.
Tensors cat_grad(const Tensor& grad, const std::vector<KeptSizes>& sizes, int64_t dim) {
  const int64_t at_ = dim < 0 ? dim + grad.dim() : dim;
  Tensors out;
  c10::SymInt start = 0;
  for (const KeptSizes& size : sizes) {
    if (size.size() == 1 && size[0].raw() == 0 && (grad.dim() != 1 || at_ != 0)) {
      out.push_back(at::zeros({0}, grad.options()));
      continue;
    }
    out.push_back(at::_ops::narrow::call(grad, at_, start, size[at_]));
    start += size[at_];
  }
  return out;
}
Tensors stack_grad(const Tensor& grad, int64_t dim) {
  Tensors out;
  const int64_t n = grad.size(dim);
  for (int64_t i = 0; i < n; ++i) out.push_back(grad.select(dim, i));
  return out;
}
Tensors block_diag_grad(const Tensor& grad, const std::vector<KeptSizes>& kept) {
  Tensors out;
  int64_t row = 0, column = 0;
  for (const IntArrayRef size : kept) {
    const int64_t rows = size.size() == 2 ? size[0] : 1;
    const int64_t columns = size.empty() ? 1 : size.back();
    out.push_back(grad.narrow(0, row, rows).narrow(1, column, columns).reshape(size));
    row += rows;
    column += columns;
  }
  return out;
}

Tensor roll_grad(const Tensor& grad, IntArrayRef shifts, IntArrayRef dims) {
  c10::DimVector back;
  for (const int64_t s : shifts) back.push_back(-s);
  return at::roll(grad, back, dims);
}

// Each repeated dimension is seen as (repeats, size) and summed over the first.
Tensor repeat_grad(const Tensor& grad, SizesRef sizes, SizesRef repeats) {
  const size_t lead = repeats.size() - sizes.size();
  SymSizes shape;
  c10::DimVector dims;
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] == 0) return at::zeros_symint(sizes, grad.options());
    dims.push_back(static_cast<int64_t>(shape.size()));
    shape.push_back(repeats[d]);
    if (d >= lead) shape.push_back(sizes[d - lead]);
  }
  if (dims.empty()) return grad;
  return at::sum(reshaped(grad, c10::SymIntArrayRef(shape)),
                 OptionalIntArrayRef(IntArrayRef(dims)));
}

Tensor pad_grad(const Tensor& grad, IntArrayRef pad) {
  c10::DimVector back;
  for (const int64_t p : pad) back.push_back(-p);
  return at::constant_pad_nd(grad, back, 0);
}

// ---- indexing
Tensor zeros_of(SizesRef sizes, const Tensor& like) {
  return at::_ops::new_zeros::call(like, sizes, std::nullopt, std::nullopt, std::nullopt,
                                   std::nullopt);
}

Tensor index_grad(const Tensor& grad, SizesRef sizes, const OptionalTensors& indices) {
  return at::index_put(zeros_of(sizes, grad), indices, grad, true);
}
Tensor index_put_self_grad(const Tensor& grad, const OptionalTensors& indices, bool accumulate) {
  return accumulate ? grad : at::index_put(grad, indices, at::zeros({}, grad.options()), false);
}
Tensor masked_scatter_source_grad(const Tensor& grad, const Tensor& mask, IntArrayRef sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  if (at::functorch::varies_by_sample(mask)) {
    // How many are taken differs: each goes to its place by number.
    const Tensor all = mask.expand(grad.sizes()).reshape({grad.numel()});
    const Tensor place = at::clamp(at::cumsum(all, 0) - Scalar(1), Scalar(0));
    const Tensor kept = keep_where(grad.reshape({grad.numel()}), all);
    return at::index_add(zeros_of(IntArrayRef(n), grad), 0, place, kept).reshape(sizes);
  }
  const Tensor taken = at::masked_select(grad, mask);
  const Tensor rest = zeros_of(IntArrayRef(n - taken.numel()), grad);
  return at::cat({taken, rest}, 0).reshape(sizes);
}
Tensor take_grad(const Tensor& grad, SizesRef sizes, const Tensor& index) {
  return at::put(zeros_of(sizes, grad), index, grad, true);
}
Tensor index_copy_source_grad(const Tensor& grad, const Tensor& index, int64_t dim,
                              IntArrayRef sizes) {
  const Tensor picked = at::index_select(grad, dim, index);
  return sizes.size() == static_cast<size_t>(picked.dim()) ? picked.expand(sizes)
                                                           : picked.reshape(sizes);
}

// ---- reductions into positions
Tensor scatter_reduce_self_grad(const Tensor& grad, const Tensor& self, int64_t dim,
                                const Tensor& index, const Tensor& src, std::string_view reduce,
                                bool include_self, const Tensor& result) {
  Tensor out;
  if (reduce == "sum") {
    out = grad;
  } else if (reduce == "mean") {
    const Tensor count = at::scatter_add(include_self ? at::ones_like(grad) : at::zeros_like(grad),
                                         dim, index, at::ones_like(src));
    out = grad / at::masked_fill(count, at::eq(count, 0), 1);
  } else if (reduce == "prod") {
    // The product of the parts alone; self is the other factor.
    const Tensor parts = at::scatter_reduce(at::ones_like(self), dim, index, src, "prod", true);
    out = grad * parts;
  } else {
    const Tensor mine = at::eq(self, result).to(grad.scalar_type());
    const Tensor theirs = at::eq(src, at::gather(result, dim, index)).to(grad.scalar_type());
    const Tensor base = include_self ? mine : at::scatter(mine, dim, index, 0);
    const Tensor count = at::scatter_add(base, dim, index, theirs);
    out = base * (grad / at::masked_fill(count, at::eq(count, 0), 1));
  }
  return include_self ? out : at::scatter(out, dim, index, 0);
}

Tensor scatter_reduce_src_grad(const Tensor& grad, const Tensor& self, int64_t dim,
                               const Tensor& index, const Tensor& src, std::string_view reduce,
                               bool include_self, const Tensor& result) {
  if (reduce == "sum") return at::gather(grad, dim, index);
  if (reduce == "mean") {
    const Tensor count = at::scatter_add(include_self ? at::ones_like(grad) : at::zeros_like(grad),
                                         dim, index, at::ones_like(src));
    return at::gather(grad / at::masked_fill(count, at::eq(count, 0), 1), dim, index);
  }
  if (reduce == "prod") {
    // result / src where src is not zero. A single zero at a position has the product of the
    // others; two or more leave nothing.
    const Tensor zero = at::eq(src, 0);
    const Tensor filled = at::masked_fill(src, zero, 1);
    const Tensor start = include_self ? self : at::scatter(self, dim, index, 1);
    const Tensor others = at::scatter_reduce(start, dim, index, filled, "prod", true);
    const Tensor zeros = at::gather(
        at::scatter_add(at::zeros_like(self), dim, index, zero.to(self.scalar_type())), dim, index);
    const Tensor single = at::gather(others, dim, index);
    const Tensor usual = at::gather(result, dim, index) / filled;
    const Tensor slope = at::where(zero, at::where(at::eq(zeros, 1), single, 0), usual);
    return at::gather(grad, dim, index) * slope;
  }
  const Tensor mine = at::eq(self, result).to(grad.scalar_type());
  const Tensor theirs = at::eq(src, at::gather(result, dim, index)).to(grad.scalar_type());
  const Tensor base = include_self ? mine : at::scatter(mine, dim, index, 0);
  const Tensor count = at::scatter_add(base, dim, index, theirs);
  return theirs * at::gather(grad / at::masked_fill(count, at::eq(count, 0), 1), dim, index);
}

Tensor index_reduce_grad(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                         const Tensor& source, std::string_view reduce, bool include_self,
                         const Tensor& result, bool of_self) {
  // The same as scatter_reduce with the index repeated over the other dimensions.
  const int64_t rank = source.dim();
  const int64_t at_ = dim < 0 ? dim + rank : dim;
  c10::DimVector shape(static_cast<size_t>(rank), 1);
  if (rank > 0) shape[at_] = index.numel();
  const Tensor wide = index.reshape(shape).expand(source.sizes());
  const std::string_view name = reduce;
  return of_self
             ? scatter_reduce_self_grad(grad, self, dim, wide, source, name, include_self, result)
             : scatter_reduce_src_grad(grad, self, dim, wide, source, name, include_self, result);
}

// ---- matrix products
Tensor matrix_H(const Tensor& t) { return cj(t).transpose(-2, -1); }
Tensor turned(const Tensor& t) { return at::t(cj(t)); }
static bool by_columns(SizesRef strides, c10::SymInt rows) {
  return strides[0] == 1 && strides[1] == rows;
}
Tensor mm_left_grad(const Tensor& grad, const Tensor& right, SizesRef strides) {
  if (!by_columns(strides, grad.sym_size(0))) return at::mm(grad, turned(right));
  return at::t(at::mm(cj(right), at::t(grad)));
}
Tensor mm_right_grad(const Tensor& grad, const Tensor& left, SizesRef strides) {
  if (!by_columns(strides, left.sym_size(1))) return at::mm(turned(left), grad);
  return at::t(at::mm(at::t(grad), cj(left)));
}
Tensor repeated(const Tensor& matrix, SizesRef batch_sizes) {
  const c10::SymInt sizes[] = {batch_sizes[0], matrix.sym_size(0), matrix.sym_size(1)};
  return expanded(matrix.unsqueeze(0), c10::SymIntArrayRef(sizes));
}
Tensor repeated_last(const Tensor& batch, const Tensor& grad) {
  const Tensor other = matrix_H(batch);
  return at::bmm(other, repeated(grad, batch.sym_sizes()));
}

// How many rows all dimensions but the last make, also where the rows have no elements.
static c10::SymInt row_count(SizesRef sizes) {
  c10::SymInt rows = 1;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) rows *= sizes[i];
  return rows;
}
// A weight of one dimension stands for one row, and the results have no last dimension.
Tensor linear_input_grad(const Tensor& grad, SizesRef sizes, const Tensor& weight) {
  const Tensor w = cj(weight.dim() == 1 ? weight.unsqueeze(0) : weight);
  const c10::SymInt rows[] = {row_count(sizes), w.sym_size(0)};
  return reshaped(at::mm(reshaped(grad, c10::SymIntArrayRef(rows)), w), sizes);
}
Tensor linear_weight_grad(const Tensor& grad, const Tensor& input, SizesRef sizes) {
  const c10::SymInt batch = row_count(input.sym_sizes());
  const c10::SymInt flat_sizes[] = {batch, sizes.back()};
  const c10::SymInt grad_sizes[] = {batch, sizes.size() == 1 ? c10::SymInt(1) : sizes[0]};
  const Tensor flat = cj(reshaped(input, c10::SymIntArrayRef(flat_sizes)));
  const Tensor rows = reshaped(grad, c10::SymIntArrayRef(grad_sizes));
  const Tensor out = at::mm(rows.transpose(0, 1), flat);
  return sizes.size() == 1 ? out.squeeze(0) : out;
}
const char* linear_node(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias) {
  const int64_t dim = input.dim();
  if (bias && bias->defined()) {
    if (dim == 2) return "AddmmBackward0";
    return input.is_contiguous() ? "ViewBackward0" : "AddBackward0";
  }
  if (weight.dim() == 1) {
    return dim == 1 ? "DotBackward0" : dim == 2 ? "MvBackward0" : "UnsafeViewBackward0";
  }
  return dim == 1 ? "SqueezeBackward4" : dim == 2 ? "MmBackward0" : "UnsafeViewBackward0";
}

Tensor linear_bias_grad(const Tensor& grad, int64_t weight_dim) {
  if (weight_dim == 1) return at::sum(grad);
  const c10::SymInt rows[] = {row_count(grad.sym_sizes()), grad.sym_size(-1)};
  return at::sum(reshaped(grad, c10::SymIntArrayRef(rows)), IntArrayRef({0}), false);
}

} // namespace torch::autograd::generated
