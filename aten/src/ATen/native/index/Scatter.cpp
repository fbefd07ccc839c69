// gather and the scatter operators: shapes and messages here, the walk in ScatterWalk.cpp. Indices
// are checked before they are used, and by the scatter operators before the first element is
// written.
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/SizedOutput.h>
#include <ATen/native/index/IndexUtil.h>
#include <ATen/native/index/Native.h>
#include <ATen/native/index/Reduction.h>
#include <ATen/native/index/RowLoops.h>
#include <ATen/native/index/ScatterWalk.h>
#include <ATen/native/shape/Geometry.h>

#include <algorithm>

namespace at {
namespace native {
namespace {

int64_t rank_of(const Tensor& t) { return std::max<int64_t>(t.dim(), 1); }
int64_t size_of(const Tensor& t, int64_t d) { return t.dim() == 0 ? 1 : t.size(d); }

void check_index_dtype(const char* name, const Tensor& index) {
  // torch.tensor([]) has no elements and a floating dtype; it is let through.
  const bool fits =
      index.scalar_type() == kLong || index.scalar_type() == kInt || index.numel() == 0;
  TORCH_CHECK(fits, name, "(): Expected dtype int32/int64 for index");
}

void check_same_device(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.device() == other.device(),
              "Expected all tensors to be on the same device, but "
              "found at least two devices, ",
              self.device(), " and ", other.device(), "!");
}

// A size that is 0 as it stands: of an index without elements nothing is asked.
bool is_known_empty(const Tensor& t) {
  const SymIntArrayRef sizes = t.sym_sizes();
  return std::any_of(sizes.begin(), sizes.end(),
                     [](const SymInt& n) { return !n.is_symbolic() && as_int(n) == 0; });
}

// The index fits into self (apart from dim) and into src.
// What must hold of symbolic sizes.
void expect_scatter_shapes(const Tensor& self, int64_t dim, const Tensor& index,
                           const Tensor* src) {
  if (is_known_empty(index)) return;
  const SymIntArrayRef places = index.sym_sizes();
  bool fits = self.dim() == index.dim() && (src == nullptr || src->dim() == index.dim());
  for (size_t d = 0; fits && d < places.size(); ++d) {
    const bool along = static_cast<int64_t>(d) == dim;
    fits = along || c10::expect_true(c10::sym_le(places[d], self.sym_sizes()[d]));
    fits =
        fits && (src == nullptr || c10::expect_true(c10::sym_le(places[d], src->sym_sizes()[d])));
  }
  TORCH_CHECK(fits, "Expected index ", places, " to be no larger than self ", self.sym_sizes(),
              " apart from dimension ", dim, " and to be no larger size than src");
}

void check_scatter_shapes(const Tensor& self, int64_t dim, const Tensor& index, const Tensor* src) {
  if (index.numel() == 0) return;
  TORCH_CHECK(rank_of(self) == rank_of(index),
              "Index tensor must have the same number of dimensions as self tensor");
  bool fits = true;
  for (int64_t d = 0; d < rank_of(self); ++d)
    fits = fits && (d == dim || size_of(index, d) <= size_of(self, d));
  if (src == nullptr) {
    TORCH_CHECK(fits, "Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
                " apart from dimension ", dim);
    return;
  }
  TORCH_CHECK(rank_of(*src) == rank_of(index),
              "Index tensor must have the same number of dimensions as src tensor");
  for (int64_t d = 0; d < rank_of(*src); ++d) fits = fits && size_of(index, d) <= size_of(*src, d);
  TORCH_CHECK(fits, "Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
              " apart from dimension ", dim, " and to be no larger size than src ", src->sizes());
}

void check_src_dtype(const Tensor& self, const Tensor& src) {
  TORCH_CHECK(self.scalar_type() == src.scalar_type(),
              "scatter(): Expected self.dtype to be equal to src.dtype");
}

// The shape function of all scatter operators.
void meta_scatter(OutputBuilder& out, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor* src) {
  const int64_t d = wrap_dim(dim, self.dim());
  check_index_dtype("scatter", index);
  check_same_device(self, index);
  if (src != nullptr) {
    check_src_dtype(self, *src);
    check_same_device(self, *src);
  }
  if (is_symbolic(self) || is_symbolic(index)) {
    expect_scatter_shapes(self, d, index, src);
    out.set_symint(0, self.sym_sizes(), self.scalar_type());
    return;
  }
  check_scatter_shapes(self, d, index, src);
  const Tensor& target = out.given(0);
  if (target.defined()) {
    assert_no_internal_overlap(target);
    assert_no_overlap(target, index);
    if (src != nullptr) assert_no_overlap(target, *src);
  }
  if (out.is_inplace())
    out.set_on(0, self.sizes(), self.scalar_type(), self.device(), self.strides());
  else
    out.set_on(0, self.sizes(), self.scalar_type(), self.device());
}

void check_old_reduce(std::string_view reduce) {
  TORCH_CHECK(reduce == "add" || reduce == "multiply",
              "reduce argument must be either add or multiply.");
}

} // namespace
} // namespace native

namespace meta {

void meta_gather(OutputBuilder& out, const Tensor& self, int64_t dim, const Tensor& index,
                 bool sparse_grad) {
  static_cast<void>(sparse_grad);
  const int64_t d = native::wrap_dim(dim, self.dim());
  const Tensor& target = out.given(0);
  if (target.defined()) {
    TORCH_CHECK(target.scalar_type() == self.scalar_type(), "Expected out tensor to have dtype ",
                self.scalar_type(), ", but got ", target.scalar_type(), " instead");
    assert_no_internal_overlap(target);
    assert_no_overlap(target, self);
    assert_no_partial_overlap(target, index);
  }
  native::check_index_dtype("gather", index);
  native::check_same_device(self, index);
  if (native::is_symbolic(self) || native::is_symbolic(index)) {
    if (native::is_known_empty(index)) {
      native::set_like(out, 0, index, self.scalar_type());
      return;
    }
    TORCH_CHECK(native::rank_of(self) == native::rank_of(index),
                "Index tensor must have the same number of dimensions as input tensor");
    for (int64_t i = 0; i < self.dim() && i < index.dim(); ++i)
      TORCH_CHECK(i == d || c10::expect_true(c10::sym_le(index.sym_size(i), self.sym_size(i))),
                  "Size does not match at dimension ", i, " expected index ", index.sym_sizes(),
                  " to be no larger than self ", self.sym_sizes(), " apart from dimension ", d);
    native::set_like(out, 0, index, self.scalar_type());
    return;
  }
  if (index.numel() != 0) {
    TORCH_CHECK(native::rank_of(self) == native::rank_of(index),
                "Index tensor must have the same number of dimensions as input tensor");
    for (int64_t i = 0; i < native::rank_of(self); ++i)
      TORCH_CHECK(i == d || native::size_of(index, i) <= native::size_of(self, i),
                  "Size does not match at dimension ", i, " expected index ", index.sizes(),
                  " to be no larger than self ", self.sizes(), " apart from dimension ", d);
  }
  out.set_on(0, index.sizes(), self.scalar_type(), self.device());
}

void meta_scatter_src(OutputBuilder& out, const Tensor& self, int64_t dim, const Tensor& index,
                      const Tensor& src) {
  native::meta_scatter(out, self, dim, index, &src);
}

void meta_scatter_value(OutputBuilder& out, const Tensor& self, int64_t dim, const Tensor& index,
                        const Scalar& value) {
  static_cast<void>(value);
  native::meta_scatter(out, self, dim, index, nullptr);
}

void meta_scatter_src_reduce(OutputBuilder& out, const Tensor& self, int64_t dim,
                             const Tensor& index, const Tensor& src, std::string_view reduce) {
  native::check_old_reduce(reduce);
  native::meta_scatter(out, self, dim, index, &src);
}

void meta_scatter_value_reduce(OutputBuilder& out, const Tensor& self, int64_t dim,
                               const Tensor& index, const Scalar& value, std::string_view reduce) {
  static_cast<void>(value);
  native::check_old_reduce(reduce);
  native::meta_scatter(out, self, dim, index, nullptr);
}

void meta_scatter_add(OutputBuilder& out, const Tensor& self, int64_t dim, const Tensor& index,
                      const Tensor& src) {
  native::meta_scatter(out, self, dim, index, &src);
}

void meta_scatter_reduce(OutputBuilder& out, const Tensor& self, int64_t dim, const Tensor& index,
                         const Tensor& src, std::string_view reduce, bool include_self) {
  static_cast<void>(include_self);
  native::parse_reduction(reduce);
  native::meta_scatter(out, self, dim, index, &src);
}

} // namespace meta

namespace native {
namespace {

// ---- loops
template <class U, bool kToSelf> void move_loop(char* self, const int64_t* index, char* other,
                                                int64_t n, int64_t ss, int64_t si, int64_t so,
                                                int64_t sd, const void*) {
  const auto move = [](char* a, char* b) {
    if constexpr (kToSelf)
      *reinterpret_cast<U*>(a) = *reinterpret_cast<const U*>(b);
    else
      *reinterpret_cast<U*>(b) = *reinterpret_cast<const U*>(a);
  };
  const int64_t size = static_cast<int64_t>(sizeof(U));
  if (si == 1 && so == size && ss == 0 && sd == size) { // along a contiguous dim
    U* row = reinterpret_cast<U*>(self);
    U* line = reinterpret_cast<U*>(other);
#pragma GCC unroll 4
    for (int64_t k = 0; k < n; ++k)
      move(reinterpret_cast<char*>(row + index[k]), reinterpret_cast<char*>(line + k));
    return;
  }
  if (si == 1 && so == size) {
#pragma GCC unroll 4
    for (int64_t k = 0; k < n; ++k) move(self + k * ss + index[k] * sd, other + k * size);
    return;
  }
  for (int64_t k = 0; k < n; ++k) move(self + k * ss + index[k * si] * sd, other + k * so);
}

template <class T, class Op> void combine_loop(char* self, const int64_t* index, char* other,
                                               int64_t n, int64_t ss, int64_t si, int64_t so,
                                               int64_t sd, const void*) {
  if (si == 0) {
    combine_row<T, Op, false>(self + index[0] * sd, other, n, ss, so, nullptr);
    return;
  }
  for (int64_t k = 0; k < n; ++k)
    combine<T, Op, false>(*reinterpret_cast<T*>(self + k * ss + index[k * si] * sd),
                          *reinterpret_cast<const T*>(other + k * so), nullptr);
}

// Counts the positions that meet each element: self is int64.
void count_loop(char* self, const int64_t* index, char*, int64_t n, int64_t ss, int64_t si, int64_t,
                int64_t sd, const void*) {
  for (int64_t k = 0; k < n; ++k) ++*reinterpret_cast<int64_t*>(self + k * ss + index[k * si] * sd);
}

template <bool kToSelf> ScatterLoop move_loop_of(int64_t itemsize) {
  ScatterLoop loop = nullptr;
  itemsize_switch(itemsize,
                  [&](auto tag) { loop = move_loop<typename decltype(tag)::type, kToSelf>; });
  return loop;
}

ScatterLoop combine_loop_of(Reduction kind, ScalarType dtype) {
  ScatterLoop loop = nullptr;
  switch (kind) {
  case Reduction::Max:
  case Reduction::Min:
    dtype_switch<RealTypesAndBool>(dtype,
                                   kind == Reduction::Max ? "scatter_gather_tensor_cpu_reduce_amax"
                                                          : "scatter_gather_tensor_cpu_reduce_amin",
                                   [&](auto tag) {
                                     using T = typename decltype(tag)::type;
                                     loop = kind == Reduction::Max ? combine_loop<T, MaxOp>
                                                                   : combine_loop<T, MinOp>;
                                   });
    return loop;
  case Reduction::Prod:
    dtype_switch<AllTypesAndBool>(
        dtype, "scatter_gather_tensor_cpu_reduce_multiply_",
        [&](auto tag) { loop = combine_loop<typename decltype(tag)::type, MulOp>; });
    return loop;
  case Reduction::Mean:
    TORCH_CHECK_NOT_IMPLEMENTED(dtype != kBool, "\"scatter_gather_tensor_cpu_reduce_mean\" not "
                                                "implemented for 'Bool'");
    break;
  case Reduction::Sum:
    break;
  }
  dtype_switch<AllTypesAndBool>(dtype, "scatter_add_cpu_kernel", [&](auto tag) {
    loop = combine_loop<typename decltype(tag)::type, AddOp>;
  });
  return loop;
}

// One value seen at every position of the index.
Tensor spread_value(const Tensor& value, const Tensor& index) {
  return detail::view_of(value, index.sizes(), DimVector(static_cast<size_t>(index.dim()), 0),
                         value.storage_offset());
}

void scatter_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                  const Tensor& out, ScatterLoop loop) {
  const ScatterWalk walk(out, wrap_dim(dim, self.dim()), index, src);
  walk.check_indices();
  if (!out.is_same(self)) out.copy_(self);
  walk.run_ordered(loop);
}

Reduction old_reduction(std::string_view reduce) {
  return reduce == "add" ? Reduction::Sum : Reduction::Prod;
}

} // namespace

void gather_cpu(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad,
                const Tensor& out) {
  static_cast<void>(sparse_grad);
  const ScatterWalk walk(self, wrap_dim(dim, self.dim()), index, out);
  walk.run_independent_checked(move_loop_of<false>(self.itemsize()));
}

void scatter_src_cpu(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                     const Tensor& out) {
  scatter_into(self, dim, index, src, out, move_loop_of<true>(self.itemsize()));
}

void scatter_value_cpu(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                       const Tensor& out) {
  const Tensor one = detail::scalar_tensor(value, self.scalar_type());
  scatter_into(self, dim, index, spread_value(one, index), out,
               move_loop_of<true>(self.itemsize()));
}

void scatter_src_reduce_cpu(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                            std::string_view reduce, const Tensor& out) {
  const ScatterLoop loop = combine_loop_of(old_reduction(reduce), self.scalar_type());
  scatter_into(self, dim, index, src, out, loop);
}

void scatter_value_reduce_cpu(const Tensor& self, int64_t dim, const Tensor& index,
                              const Scalar& value, std::string_view reduce, const Tensor& out) {
  const Tensor one = detail::scalar_tensor(value, self.scalar_type());
  const ScatterLoop loop = combine_loop_of(old_reduction(reduce), self.scalar_type());
  scatter_into(self, dim, index, spread_value(one, index), out, loop);
}

void scatter_add_cpu(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                     const Tensor& out) {
  scatter_into(self, dim, index, src, out, combine_loop_of(Reduction::Sum, self.scalar_type()));
}

void scatter_reduce_cpu(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce, bool include_self, const Tensor& out) {
  const Reduction kind = parse_reduction(reduce);
  const ScatterLoop loop = combine_loop_of(kind, self.scalar_type());
  const int64_t d = wrap_dim(dim, self.dim());
  const ScatterWalk walk(out, d, index, src);
  walk.check_indices();
  if (!out.is_same(self)) out.copy_(self);
  if (!include_self) {
    const Tensor start = reduction_identity(kind, self.scalar_type());
    const ScatterWalk fill(out, d, index, spread_value(start, index));
    fill.run_ordered(move_loop_of<true>(self.itemsize()));
  }
  walk.run_ordered(loop);
  if (kind != Reduction::Mean) return;
  const Tensor counts = detail::empty(self.sizes(), kLong);
  counts.fill_(include_self ? 1 : 0);
  const Tensor none = detail::scalar_tensor(0, kLong);
  const ScatterWalk counting(counts, d, index, spread_value(none, index));
  counting.run_ordered(count_loop);
  divide_by_counts(out, counts);
}

} // namespace native
} // namespace at
