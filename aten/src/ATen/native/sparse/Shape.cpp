// Transposes, selections and concatenations of sparse tensors: index arithmetic, with the values
// moved along. For the table of Fallback.cpp.
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/sparse/DeviceIndex.h>
#include <ATen/native/sparse/Kernels.h>
#include <ATen/ops/_sparse_sum.h>
#include <ATen/ops/add.h>
#include <ATen/ops/any.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/select.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/SafeArithmetic.h>

namespace at::sparse {
namespace {

int64_t wrapped(int64_t dim, int64_t rank) {
  TORCH_CHECK_INDEX(dim >= -std::max<int64_t>(rank, 1) && dim < std::max<int64_t>(rank, 1),
                    "Dimension out of range (expected to be in range of [",
                    -std::max<int64_t>(rank, 1), ", ", std::max<int64_t>(rank, 1) - 1,
                    "], but got ", dim, ")");
  return dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim;
}

// ---- order of dimensions
Tensor permuted(const Tensor& self, IntArrayRef dims) {
  const SparseTensorImpl& s = coo(self, "permute");
  const int64_t rank = self.dim();
  TORCH_CHECK(static_cast<int64_t>(dims.size()) == rank,
              "permute(sparse_coo): number of dimensions in the tensor input does not match the "
              "length of the desired ordering of dimensions i.e. input.dim() = ",
              rank, " is not equal to len(dims) = ", dims.size());
  DimVector size, inner{0}, rows;
  std::vector<bool> used(static_cast<size_t>(rank), false);
  bool same = true;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t d = wrapped(dims[static_cast<size_t>(i)], rank);
    TORCH_CHECK(!used[static_cast<size_t>(d)], "permute(): duplicate dims are not allowed.");
    used[static_cast<size_t>(d)] = true;
    TORCH_CHECK((i < s.sparse_dim) == (d < s.sparse_dim),
                "permute(sparse_coo): transpositions between sparse and dense dimensions are not "
                "allowed. Only transpositions within sparse and dense dimensions are supported.");
    size.push_back(self.size(d));
    same &= i == d || i >= s.sparse_dim;
    if (i < s.sparse_dim) {
      rows.push_back(d);
    } else {
      inner.push_back(d - s.sparse_dim + 1);
    }
  }
  const Tensor order = on_device::list_of(rows, s.indices.device());
  return make_coo(at::index_select(s.indices, 0, order), s.values.permute(inner), size,
                  s.coalesced && same);
}
Tensor transposed(const Tensor& self, int64_t a, int64_t b) {
  const int64_t rank = self.dim();
  a = wrapped(a, rank);
  b = wrapped(b, rank);
  if (is_compressed(self.layout())) return transposed_compressed(self, a, b);
  if (rank == 0) return Tensor(self.unsafeGetTensorImpl()->shallow_copy());
  DimVector dims(static_cast<size_t>(rank), 0);
  std::iota(dims.begin(), dims.end(), 0);
  std::swap(dims[static_cast<size_t>(a)], dims[static_cast<size_t>(b)]);
  return permuted(self, dims);
}
void transpose_handler(const OperatorEntry&, Stack& s) {
  answer(s, transposed(s[0].toTensor(), s[1].toInt(), s[2].toInt()));
}
void transpose_inplace_handler(const OperatorEntry&, Stack& s) {
  const Tensor self = s[0].toTensor();
  become(self, transposed(self, s[1].toInt(), s[2].toInt()));
  answer(s, self);
}
Tensor t_of(const Tensor& self) {
  TORCH_CHECK(self.dim() <= 2,
              "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but "
              "self is ",
              self.dim(), "D");
  return self.dim() < 2 ? Tensor(self.unsafeGetTensorImpl()->shallow_copy())
                        : transposed(self, 0, 1);
}
void t_handler(const OperatorEntry&, Stack& s) { answer(s, t_of(s[0].toTensor())); }
void t_inplace_handler(const OperatorEntry&, Stack& s) {
  const Tensor self = s[0].toTensor();
  become(self, t_of(self));
  answer(s, self);
}
void permute_handler(const OperatorEntry&, Stack& s) {
  answer(s, permuted(s[0].toTensor(), s[1].toIntList()));
}

// ---- rank
void unsqueeze_handler(const OperatorEntry&, Stack& stack) {
  const Tensor self = stack[0].toTensor();
  const SparseTensorImpl& s = coo(self, "unsqueeze");
  const int64_t dim = wrapped(stack[1].toInt(), self.dim() + 1);
  DimVector size(self.sizes());
  size.insert(size.begin() + dim, 1);
  if (dim > s.sparse_dim || (dim == s.sparse_dim && s.dense_dim > 0)) {
    answer(stack,
           make_coo(s.indices, s.values.unsqueeze(dim - s.sparse_dim + 1), size, s.coalesced));
    return;
  }
  const Tensor parts[] = {s.indices.narrow(0, 0, dim), at::zeros({1, s.nnz()}, s.indices.options()),
                          s.indices.narrow(0, dim, s.sparse_dim - dim)};
  answer(stack, make_coo(at::cat(TensorList(parts, 3), 0), s.values, size, s.coalesced));
}

} // namespace

Tensor broadcast_coo(const Tensor& self, IntArrayRef size) {
  const SparseTensorImpl& s = coo(self, "_sparse_broadcast_to");
  const int64_t rank = static_cast<int64_t>(size.size()), lead = rank - self.dim();
  TORCH_CHECK(lead >= 0, "expand(", self.sizes(), ", size=", size,
              "): the number of sizes provided (", rank,
              ") must be greater or equal to the number ", "of dimensions in the tensor (",
              self.dim(), ")");
  // How often the elements are repeated, over which of the result's sparse dimensions.
  DimVector repeated, inner{s.nnz()};
  std::vector<int64_t> places;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t extent = size[static_cast<size_t>(d)], held = d < lead ? 1 : self.size(d - lead);
    TORCH_CHECK(extent >= 0 && (held == extent || held == 1), self.sizes(),
                " does not broadcast to ", size, ": the expanded size of the tensor (", extent,
                ") must match the existing size (", held, ") at non-singleton dimension ", d,
                ".  Target sizes: ", size, ".  Tensor sizes: ", self.sizes());
    if (d >= lead + s.sparse_dim) {
      inner.push_back(extent);
    } else if (d < lead || held != extent) {
      repeated.push_back(extent);
      places.push_back(d);
    }
  }
  const int64_t copies = c10::checked_numel(repeated), nnz = s.nnz(), dims = lead + s.sparse_dim;
  const Tensor number = at::arange(copies * nnz, s.indices.options());
  const Tensor which = at::remainder(number, Scalar(std::max<int64_t>(nnz, 1)));
  const Tensor copy = at::floor_divide(number, Scalar(std::max<int64_t>(nnz, 1)));
  const Tensor spread = unflatten_indices(copy, repeated);
  Tensor indices = detail::empty({dims, copies * nnz}, kLong, s.indices.device());
  bool in_front = true;
  for (int64_t d = 0, k = 0; d < dims; ++d) {
    const bool is_repeated = k < static_cast<int64_t>(places.size()) && places[k] == d;
    in_front &= !is_repeated || k == d;
    indices.select(0, d).copy_(is_repeated
                                   ? spread.select(0, k)
                                   : at::index_select(s.indices.select(0, d - lead), 0, which));
    k += is_repeated;
  }
  const Tensor values = at::index_select(s.values.expand(inner), 0, which);
  return make_coo(indices, values, size, s.coalesced && in_front);
}

namespace {
// ---- parts
// Every step-th number from start to end.
struct Range {
  int64_t start, end, step;
};
// The positions of the numbers that are in a range, and which of the range each is.
std::pair<Tensor, Tensor> positions_in(const Tensor& row, const Range& range) {
  const auto [start, end, step] = range;
  if (on_device::applies_to(row)) {
    Tensor inside = at::logical_and(at::ge(row, Scalar(start)), at::lt(row, Scalar(end)));
    const Tensor from_start = at::sub(row, Scalar(start));
    if (step > 1)
      inside = at::logical_and(inside, at::eq(at::remainder(from_start, Scalar(step)), Scalar(0)));
    const Tensor used = at::nonzero(inside).view({-1});
    return {used, at::floor_divide(at::index_select(from_start, 0, used), Scalar(step))};
  }
  const int64_t nnz = row.numel();
  Tensor used = detail::empty({nnz}, kLong), number = detail::empty({nnz}, kLong);
  int64_t n = 0;
  Steps steps;
  for (int64_t i = 0; i < nnz; ++i, steps.add(4)) {
    const int64_t index = row.data_ptr<int64_t>()[i];
    if (index < start || index >= end || (index - start) % step != 0) continue;
    used.data_ptr<int64_t>()[n] = i;
    number.data_ptr<int64_t>()[n++] = (index - start) / step;
  }
  return {used.narrow(0, 0, n), number.narrow(0, 0, n)};
}

// The elements whose number in `dim` is in the range, which has `extent` numbers; without the
// dimension where `drop`.
Tensor picked(const Tensor& self, int64_t dim, bool drop, int64_t extent, const Range& range) {
  const SparseTensorImpl& s = coo(self, "select");
  const auto [used, number] = positions_in(s.indices.select(0, dim).contiguous(), range);
  Tensor indices = at::index_select(s.indices, 1, used);
  DimVector size(self.sizes());
  if (drop) {
    const Tensor parts[] = {indices.narrow(0, 0, dim),
                            indices.narrow(0, dim + 1, s.sparse_dim - dim - 1)};
    indices = at::cat(TensorList(parts, 2), 0);
    size.erase(size.begin() + dim);
  } else {
    indices.select(0, dim).copy_(number);
    size[static_cast<size_t>(dim)] = extent;
  }
  return make_coo(indices, at::index_select(s.values, 0, used), size, s.coalesced);
}

void select_handler(const OperatorEntry&, Stack& stack) {
  const Tensor self = stack[0].toTensor();
  const SparseTensorImpl& s = coo(self, "select");
  TORCH_CHECK_INDEX(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  const int64_t dim = wrapped(stack[1].toInt(), self.dim()), given = stack[2].toInt();
  TORCH_CHECK_INDEX(given >= -self.size(dim) && given < self.size(dim), "select(): index ", given,
                    " out of range for tensor of size ", self.sizes(), " at dimension ", dim);
  const int64_t index = given < 0 ? given + self.size(dim) : given;
  if (dim >= s.sparse_dim) {
    DimVector size(self.sizes());
    size.erase(size.begin() + dim);
    answer(stack,
           make_coo(s.indices, s.values.select(dim - s.sparse_dim + 1, index), size, s.coalesced));
    return;
  }
  const Tensor part = picked(self, dim, true, 0, {index, index + 1, 1});
  // The last sparse dimension selected leaves a strided tensor.
  answer(stack, s.sparse_dim > 1 ? part : to_dense(part));
}

void select_copy_handler(const OperatorEntry&, Stack& stack) {
  const Tensor part = at::select(stack[0].toTensor(), stack[1].toInt(), stack[2].toInt());
  answer(stack, part.clone());
}

void slice_handler(const OperatorEntry&, Stack& stack) {
  const Tensor self = stack[0].toTensor();
  const SparseTensorImpl& s = coo(self, "slice");
  TORCH_CHECK_INDEX(self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  const int64_t dim = wrapped(stack[1].toInt(), self.dim()), length = self.size(dim);
  int64_t start = stack[2].isNone() ? 0 : stack[2].toInt();
  int64_t end = stack[3].isNone() ? length : stack[3].toInt();
  const int64_t step = stack[4].toInt();
  TORCH_CHECK(step > 0, "slice step must be positive");
  start = std::clamp<int64_t>(start < 0 ? start + length : start, 0, length);
  end = std::clamp<int64_t>(end < 0 ? end + length : end, start, length);
  if (dim >= s.sparse_dim) {
    const Tensor values = s.values.slice(dim - s.sparse_dim + 1, start, end, step);
    DimVector size(self.sizes());
    size[static_cast<size_t>(dim)] = values.size(dim - s.sparse_dim + 1);
    answer(stack, make_coo(s.indices, values, size, s.coalesced));
    return;
  }
  const int64_t extent = (end - start) / step + ((end - start) % step != 0);
  answer(stack, picked(self, dim, false, extent, {start, end, step}));
}

void narrow_copy_handler(const OperatorEntry& op, Stack& stack) {
  const Tensor self = stack[0].toTensor();
  const int64_t dim = stack[1].toInt(), start = stack[2].toInt(), length = stack[3].toInt();
  TORCH_CHECK(dim >= 0 && dim < self.dim(), "Dimension ", dim,
              " out of range. Expecting 0 <= dim <", " ", self.dim(), ".");
  TORCH_CHECK(start >= 0 && length >= 0 && start <= self.size(dim) - length,
              "Invalid range to narrow. range(start, start+length) must be a subset of range(0, ",
              self.size(dim), ").");
  stack = {self, dim, start, start + length, int64_t(1)};
  slice_handler(op, stack);
  answer(stack, stack.back().toTensor().clone());
}

// Every element goes to each place that names it: the number of the place and the position of the
// element, in the order of the places.
std::pair<Tensor, Tensor> hits_of(const Tensor& row, const Tensor& wanted, IntArrayRef sizes,
                                  int64_t dim) {
  std::unordered_map<int64_t, std::vector<int64_t>> places;
  Steps steps;
  for (int64_t k = 0; k < wanted.numel(); ++k, steps.add(64)) {
    const int64_t wanted_index = wanted.data_ptr<int64_t>()[k],
                  extent = sizes[static_cast<size_t>(dim)];
    TORCH_CHECK_INDEX(wanted_index >= -extent && wanted_index < extent,
                      "index_select(): index contains ", wanted_index,
                      " that is out of range for tensor of size ", sizes, " at dimension ", dim);
    places[wanted_index < 0 ? wanted_index + extent : wanted_index].push_back(k);
  }
  std::vector<std::pair<int64_t, int64_t>> hits;
  for (int64_t i = 0; i < row.numel(); ++i, steps.add(32)) {
    const auto found = places.find(row.data_ptr<int64_t>()[i]);
    if (found == places.end()) continue;
    for (int64_t k : found->second) hits.emplace_back(k, i), steps.add(2);
  }
  std::sort(hits.begin(), hits.end(), [&steps](const auto& a, const auto& b) {
    steps.add(2);
    return a < b;
  });
  const int64_t n = static_cast<int64_t>(hits.size());
  Tensor used = detail::empty({n}, kLong), number = detail::empty({n}, kLong);
  for (int64_t i = 0; i < n; ++i, steps.add(4)) {
    number.data_ptr<int64_t>()[i] = hits[static_cast<size_t>(i)].first;
    used.data_ptr<int64_t>()[i] = hits[static_cast<size_t>(i)].second;
  }
  return {number, used};
}
std::pair<Tensor, Tensor> hits_on_device(const Tensor& row, const Tensor& wanted, IntArrayRef sizes,
                                         int64_t dim) {
  const int64_t extent = sizes[static_cast<size_t>(dim)];
  const Tensor outside =
      at::logical_or(at::lt(wanted, Scalar(-extent)), at::ge(wanted, Scalar(extent)));
  TORCH_CHECK_INDEX(!on_device::any_true(outside),
                    "index_select(): the index is out of range for tensor of size ", sizes,
                    " at dimension ", dim);
  const Tensor counted =
      at::where(at::lt(wanted, Scalar(0)), at::add(wanted, Scalar(extent)), wanted);
  const on_device::Pairs pairs = on_device::equal_pairs(row, counted);
  return {pairs.wanted, pairs.element};
}

void index_select_handler(const OperatorEntry&, Stack& stack) {
  const Tensor self = stack[0].toTensor(), index = stack[2].toTensor();
  const SparseTensorImpl& s = coo(self, "index_select");
  TORCH_CHECK_INDEX(self.dim() > 0, "index_select() cannot be applied to a 0-dim tensor.");
  const int64_t dim = wrapped(stack[1].toInt(), self.dim());
  TORCH_CHECK_INDEX(index.layout() == kStrided && index.dim() <= 1 &&
                        (index.scalar_type() == kLong || index.scalar_type() == kInt),
                    "index_select(): expected a vector of int32 or int64 indices");
  const Tensor wanted = index.to(kLong).reshape({-1}).contiguous();
  DimVector size(self.sizes());
  size[static_cast<size_t>(dim)] = wanted.numel();
  if (dim >= s.sparse_dim) {
    answer(stack, make_coo(s.indices, at::index_select(s.values, dim - s.sparse_dim + 1, wanted),
                           size, s.coalesced));
    return;
  }
  const Tensor row = s.indices.select(0, dim).contiguous();
  const auto [number, used] = on_device::applies_to(row)
                                  ? hits_on_device(row, wanted, self.sizes(), dim)
                                  : hits_of(row, wanted, self.sizes(), dim);
  Tensor indices = at::index_select(s.indices, 1, used);
  indices.select(0, dim).copy_(number);
  const Tensor out = make_coo(indices, at::index_select(s.values, 0, used), size, false);
  answer(stack, s.coalesced ? coalesced(out) : out);
}

// ---- several
void cat_handler(const OperatorEntry&, Stack& stack) {
  const std::vector<Tensor> tensors = stack[0].toTensorList();
  TORCH_CHECK(!tensors.empty(), "expected a non-empty list of Tensors");
  const SparseTensorImpl& first = coo(tensors[0], "cat");
  const int64_t rank = tensors[0].dim(), dim = wrapped(stack[1].toInt(), rank);
  DimVector size(tensors[0].sizes());
  std::vector<Tensor> columns, values;
  int64_t extent = 0;
  ScalarType type = tensors[0].scalar_type();
  for (const Tensor& t : tensors) type = c10::promoteTypes(type, t.scalar_type());
  for (size_t k = 0; k < tensors.size(); ++k) {
    const Tensor& t = tensors[k];
    TORCH_CHECK(t.layout() == Layout::Sparse, "Concatenating sparse tensors, but a dense tensor ",
                "was found at position ", k, ".");
    const SparseTensorImpl& s = coo(t, "cat");
    bool fits = t.dim() == rank;
    for (int64_t d = 0; fits && d < rank; ++d) fits = d == dim || t.size(d) == tensors[0].size(d);
    TORCH_CHECK(fits, "All tensors must have the same shape: ", tensors[0].sizes(),
                " (except in the concatenating dimension), but found shape: ", t.sizes(),
                " at position ", k, ".");
    TORCH_CHECK(s.sparse_dim == first.sparse_dim,
                "All tensors must have the same sparse_dim and dense_dim: ", first.sparse_dim, ", ",
                first.dense_dim, ", but tensor at position ", k, " has ", s.sparse_dim, ", ",
                s.dense_dim, ".");
    Tensor indices = s.indices,
           held = s.values.scalar_type() == type ? s.values : s.values.to(type);
    if (dim < first.sparse_dim) {
      indices = indices.contiguous().clone();
      const Tensor row = indices.select(0, dim);
      row.copy_(at::add(row, Scalar(extent)));
    } else {
      // Along a dense dimension every part has zeros where the others stand.
      std::vector<Tensor> wide;
      DimVector pad(held.sizes());
      const size_t dense_dim = static_cast<size_t>(dim - first.sparse_dim + 1);
      int64_t after = -extent - t.size(dim);
      for (const Tensor& other : tensors) after += other.size(dim);
      for (int64_t width : {extent, int64_t(-1), after}) {
        pad[dense_dim] = width;
        wide.push_back(width < 0 ? held : at::zeros(pad, held.options()));
      }
      held = at::cat(wide, static_cast<int64_t>(dense_dim));
    }
    columns.push_back(indices);
    values.push_back(held);
    extent += t.size(dim);
  }
  size[static_cast<size_t>(dim)] = extent;
  answer(stack, make_coo(at::cat(columns, 1), at::cat(values, 0), size, false));
}

void stack_handler(const OperatorEntry& op, Stack& stack) {
  std::vector<Tensor> tensors = stack[0].toTensorList();
  TORCH_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const int64_t dim = wrapped(stack[1].toInt(), tensors[0].dim() + 1);
  const DimVector size(tensors[0].sizes());
  for (Tensor& t : tensors) {
    TORCH_CHECK(t.sizes() == IntArrayRef(size),
                "stack expects each tensor to be equal size, but got ", IntArrayRef(size), " and ",
                t.sizes());
    t = t.unsqueeze(dim);
  }
  stack[0] = tensors;
  stack[1] = dim;
  cat_handler(op, stack);
}

void unbind_handler(const OperatorEntry&, Stack& stack) {
  const Tensor self = stack[0].toTensor();
  TORCH_CHECK_INDEX(self.dim() > 0, "Dimension specified as 0 but tensor has no dimensions");
  const int64_t dim = wrapped(stack[1].toInt(), self.dim());
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < self.size(dim); ++i) parts.push_back(at::select(self, dim, i));
  stack.clear();
  stack.emplace_back(std::move(parts));
}

// sum over some dimensions: like torch.sparse.sum, with the reduced ones kept as 1 where asked.
void sum_dim_handler(const OperatorEntry&, Stack& stack) {
  const Tensor self = stack[0].toTensor();
  const bool keep = stack[2].toBool();
  const bool widen = c10::isIntegralType(self.scalar_type(), true);
  const ScalarType type = !stack[3].isNone() ? stack[3].toScalarType()
                          : widen            ? kLong
                                             : self.scalar_type();
  const Tensor typed = self.scalar_type() == type ? self : self.to(type);
  const std::vector<int64_t> dims =
      stack[1].isNone() ? std::vector<int64_t>() : stack[1].toIntList();
  Tensor out = at::_sparse_sum(typed, dims);
  if (!keep) return answer(stack, out);
  std::vector<bool> reduced(static_cast<size_t>(self.dim()), dims.empty());
  for (int64_t d : dims) reduced[static_cast<size_t>(wrapped(d, self.dim()))] = true;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (reduced[static_cast<size_t>(d)]) out = out.unsqueeze(d);
  answer(stack, out);
}

// Complex elements as pairs of real ones, in a dense dimension of their own, and back.
void parts_handler(const OperatorEntry& op, Stack& stack) {
  const Tensor self = stack[0].toTensor();
  const SparseTensorImpl& s = any_sparse(self, op.name);
  const bool to_real = std::string_view(op.name) == "aten::view_as_real";
  DimVector size(self.sizes());
  if (to_real) {
    size.push_back(2);
  } else {
    TORCH_CHECK(s.dense_dim > 0 && size.back() == 2,
                "Tensor must have a last dimension of size 2 that is dense");
    size.pop_back();
  }
  const Tensor values = to_real ? at::view_as_real(s.values) : at::view_as_complex(s.values);
  answer(stack, self.layout() == Layout::Sparse
                    ? make_coo(s.indices, values, size, s.coalesced)
                    : make_compressed(self.layout(), s.indices, s.plain, values, size));
}
void no_expand_handler(const OperatorEntry&, Stack& stack) {
  throw c10::Error(
      c10::str("expand is unsupported for ", spelled(stack[0].toTensor().layout()), " tensors"));
}
void no_reshape_handler(const OperatorEntry& op, Stack&) {
  throw c10::Error(c10::str(op.name + 6, " is not implemented for sparse tensors"));
}
} // namespace

void add_shape_kernels(Handlers& coo, Handlers& csr) {
  for (Handlers* table : {&coo, &csr}) {
    table->insert({{"transpose.int", transpose_handler},
                   {"t", t_handler},
                   {"select_copy.int", select_copy_handler},
                   {"view_as_real", parts_handler},
                   {"view_as_complex", parts_handler},
                   {"expand", no_expand_handler},
                   {"reshape", no_reshape_handler}});
  }
  coo.insert({{"transpose_", transpose_inplace_handler},
              {"t_", t_inplace_handler},
              {"permute", permute_handler},
              {"unsqueeze", unsqueeze_handler},
              {"select.int", select_handler},
              {"slice.Tensor", slice_handler},
              {"narrow_copy", narrow_copy_handler},
              {"index_select", index_select_handler},
              {"cat", cat_handler},
              {"stack", stack_handler},
              {"unbind.int", unbind_handler},
              {"sum.dim_IntList", sum_dim_handler}});
}

} // namespace at::sparse
