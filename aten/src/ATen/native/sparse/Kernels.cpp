// Arithmetic, copies, reductions and products of sparse tensors, for the table of Fallback.cpp.
#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/GeneratedSupport.h>
#include <ATen/native/sparse/DeviceIndex.h>
#include <ATen/native/sparse/Kernels.h>
#include <ATen/ops/_to_copy.h>
#include <ATen/ops/add.h>
#include <ATen/ops/any.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/div.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/t.h>
#include <ATen/ops/zeros.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/SafeArithmetic.h>

namespace at::sparse {
namespace {

ScalarType promoted(const Tensor& a, const Tensor& b) {
  return c10::promoteTypes(a.scalar_type(), b.scalar_type());
}
Tensor as_type(const Tensor& t, ScalarType type) {
  return t.scalar_type() == type ? t : t.to(type);
}
void check_same_size(const char* op, const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.sizes() == b.sizes(), op, ": expected sizes of 'self' and 'other' to match, but ",
              a.sizes(), " != ", b.sizes());
}
bool is_number(const Tensor& t) { return t.layout() == kStrided && t.dim() == 0; }

// ---- sums
// The elements of two tensors in one walk over both lists, equal ones added. Sorted lists give a
// sorted one.
Tensor merged(const SparseTensorImpl& x, const SparseTensorImpl& y, const Tensor& second,
              IntArrayRef size) {
  const Tensor kx = flat_indices(x.indices, size), ky = flat_indices(y.indices, size);
  const int64_t n = kx.numel(), m = ky.numel();
  Tensor keys = detail::empty({n + m}, kLong), place = detail::empty({n + m}, kLong);
  const int64_t* left_key = n > 0 ? kx.data_ptr<int64_t>() : nullptr;
  const int64_t* right_key = m > 0 ? ky.data_ptr<int64_t>() : nullptr;
  int64_t* key = n + m > 0 ? keys.data_ptr<int64_t>() : nullptr;
  int64_t* to = n + m > 0 ? place.data_ptr<int64_t>() : nullptr;
  int64_t count = 0;
  Steps steps;
  for (int64_t i = 0, j = 0; i < n || j < m; ++count, steps.add(4)) {
    const int64_t left = i < n ? left_key[i] : INT64_MAX;
    const int64_t right = j < m ? right_key[j] : INT64_MAX;
    key[count] = std::min(left, right);
    if (left <= right) to[i++] = count;
    if (right <= left) to[n + j++] = count;
  }
  const Tensor rows[] = {as_type(x.values, second.scalar_type()), second};
  DimVector shape(second.sizes());
  shape[0] = count;
  const Tensor zeros = at::zeros(shape, second.options());
  const Tensor values = at::index_add(zeros, 0, place, at::cat(TensorList(rows, 2), 0));
  const Tensor indices =
      unflatten_indices(keys.narrow(0, 0, count), size.slice(0, static_cast<size_t>(x.sparse_dim)));
  return make_coo(indices, values, size, x.coalesced && y.coalesced);
}
Tensor add_sparse(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  check_same_size("add", a, b);
  const SparseTensorImpl& x = coo(a, "add");
  const SparseTensorImpl& y = coo(b, "add");
  TORCH_CHECK(x.sparse_dim == y.sparse_dim,
              "add: expected 'self' and 'other' to have same number of sparse dimensions, but ",
              x.sparse_dim, " != ", y.sparse_dim);
  const ScalarType type = promoted(a, b);
  Tensor second = as_type(y.values, type);
  if (!alpha.equal(int64_t(1))) second = at::mul(second, alpha);
  if (type != kBool && x.values.is_contiguous() && y.values.is_contiguous() &&
      !on_device::applies_to(x.indices))
    return merged(x, y, second, a.sizes());
  const Tensor columns[] = {x.indices, y.indices};
  const Tensor rows[] = {as_type(x.values, type), second};
  const Tensor out = make_coo(at::cat(TensorList(columns, 2), 1), at::cat(TensorList(rows, 2), 0),
                              a.sizes(), false);
  return x.coalesced && y.coalesced ? coalesced(out) : out;
}
// Adds the elements of a sparse tensor to a strided one, touching no others.
void add_into(Tensor& dense, const Tensor& sparse, const Scalar& alpha) {
  check_same_size("add", dense, sparse);
  const SparseTensorImpl& s = coo(sparse, "add");
  const Tensor values = as_type(s.values, dense.scalar_type());
  if (!dense.is_contiguous() || dense.scalar_type() == kBool) {
    at::_ops::add__Tensor::call(dense, to_dense(with_values(sparse, values)), alpha);
    return;
  }
  DimVector shape(s.values.sizes());
  shape[0] = c10::checked_numel(sparse.sizes().slice(0, static_cast<size_t>(s.sparse_dim)));
  Tensor rows = dense.view(shape);
  at::_ops::index_add_::call(rows, 0, flat_indices(s.indices, sparse.sizes()), values, alpha);
}
Tensor add_to_dense(const Tensor& dense, const Tensor& sparse, const Scalar& alpha) {
  const ScalarType type = promoted(dense, sparse);
  if (dense.sizes() != sparse.sizes()) return at::add(dense, to_dense(sparse), alpha);
  Tensor out = dense.to(type, false, true).contiguous();
  add_into(out, sparse, alpha);
  return out;
}

Tensor plus(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  if (a.layout() == kStrided) return add_to_dense(a, to_coo(b), alpha);
  TORCH_CHECK(b.layout() != kStrided,
              "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  return add_sparse(a, to_coo(b), alpha);
}
Scalar negated(const Scalar& alpha) {
  if (alpha.isComplex()) {
    const c10::complex<double> z = alpha.toComplexDouble();
    return c10::complex<double>(-z.real_, -z.imag_);
  }
  return alpha.isFloatingPoint() ? Scalar(-alpha.toDouble()) : Scalar(-alpha.toLong());
}
void add_handler(const OperatorEntry&, Stack& s) {
  answer(s, plus(s[0].toTensor(), s[1].toTensor(), s[2].toScalar()));
}
void sub_handler(const OperatorEntry&, Stack& s) {
  answer(s, plus(s[0].toTensor(), s[1].toTensor(), negated(s[2].toScalar())));
}
// Matrix by matrix, in the layout of the first. Unlike COO, a compressed tensor may stand before a
// strided one.
void add_csr(Stack& s, const Scalar& alpha) {
  const Tensor a = s[0].toTensor(), b = s[1].toTensor();
  if (b.layout() == kStrided) return answer(s, at::add(to_dense(a), b, alpha));
  if (!is_compressed(a.layout())) return answer(s, plus(a, to_coo(b), alpha));
  TORCH_CHECK(a.sizes() == b.sizes(),
              "torch.add: Expected input tensors to have the same shape, but got tensor `self` "
              "with shape ",
              a.sizes(), " and tensor `other` with shape ", b.sizes());
  std::vector<Tensor> sums = matrices_of(a);
  const std::vector<Tensor> others =
      is_compressed(b.layout()) ? matrices_of(b) : std::vector<Tensor>{b};
  if (sums.empty()) return answer(s, a);
  TORCH_CHECK(sums.size() == others.size(),
              "torch.add: a batch of compressed matrices and a tensor of layout ", b.layout(),
              " cannot be added");
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = to_layout_of(add_sparse(to_coo(sums[i]), to_coo(others[i]), alpha), sums[i]);
  const size_t batch = static_cast<size_t>(any_sparse(a, "add").indices.dim()) - 1;
  answer(s, batch_of(sums, a.sizes().slice(0, batch)));
}
void add_csr_handler(const OperatorEntry&, Stack& s) { add_csr(s, s[2].toScalar()); }
void sub_csr_handler(const OperatorEntry&, Stack& s) { add_csr(s, negated(s[2].toScalar())); }
void store(Tensor& self, const Tensor& result) {
  const Tensor typed = as_type(result, self.scalar_type());
  if (self.layout() == kStrided) {
    self.copy_(typed);
  } else {
    become(self, typed);
  }
}
void add_inplace(Stack& s, const Scalar& alpha) {
  Tensor self = s[0].toTensor();
  const Tensor other = s[1].toTensor();
  TORCH_CHECK(c10::canCast(promoted(self, other), self.scalar_type()), "result type ",
              promoted(self, other), " can't be cast to the desired output type ",
              self.scalar_type());
  if (self.layout() == kStrided) {
    add_into(self, to_coo(other), alpha);
  } else {
    store(self, plus(self, other, alpha));
  }
  answer(s, self);
}
void add_inplace_handler(const OperatorEntry&, Stack& s) { add_inplace(s, s[2].toScalar()); }
void sub_inplace_handler(const OperatorEntry&, Stack& s) {
  add_inplace(s, negated(s[2].toScalar()));
}

// ---- products, element by element
// The positions of the keys that two sorted lists have in common, in each of them.
std::pair<Tensor, Tensor> in_both(const Tensor& kp, const Tensor& kq) {
  if (on_device::applies_to(kp)) {
    const on_device::Found found = on_device::find_keys(kq, kp);
    const Tensor from_p = at::nonzero(found.is_there).view({-1});
    return {from_p, at::index_select(found.place, 0, from_p)};
  }
  const int64_t n = kp.numel(), m = kq.numel();
  Tensor from_p = detail::empty({std::min(n, m)}, kLong);
  Tensor from_q = detail::empty({std::min(n, m)}, kLong);
  const int64_t* kept_p = n > 0 ? kp.data_ptr<int64_t>() : nullptr;
  const int64_t* kept_q = m > 0 ? kq.data_ptr<int64_t>() : nullptr;
  int64_t* to_p = n > 0 && m > 0 ? from_p.data_ptr<int64_t>() : nullptr;
  int64_t* to_q = n > 0 && m > 0 ? from_q.data_ptr<int64_t>() : nullptr;
  int64_t both = 0;
  Steps steps;
  for (int64_t i = 0, j = 0; i < n && j < m; steps.add(4)) {
    const int64_t left = kept_p[i], right = kept_q[j];
    if (left == right) {
      to_p[both] = i;
      to_q[both++] = j;
    }
    i += left <= right;
    j += right <= left;
  }
  return {from_p.narrow(0, 0, both), from_q.narrow(0, 0, both)};
}
Tensor mul_sparse(const Tensor& a, const Tensor& b) {
  check_same_size("mul", a, b);
  const Tensor x = coalesced(a), y = coalesced(b);
  const SparseTensorImpl& p = coo(x, "mul");
  const SparseTensorImpl& q = coo(y, "mul");
  TORCH_CHECK(p.sparse_dim == q.sparse_dim,
              "mul: operands have different sparse dimensions: ", p.sparse_dim, " and ",
              q.sparse_dim);
  const auto [from_p, from_q] =
      in_both(flat_indices(p.indices, a.sizes()), flat_indices(q.indices, a.sizes()));
  const Tensor values =
      at::mul(at::index_select(p.values, 0, from_p), at::index_select(q.values, 0, from_q));
  return make_coo(at::index_select(p.indices, 1, from_p), values, a.sizes(), true);
}
// The shape of a product of two tensors, one of which is repeated along dimensions of length 1.
DimVector joint_shape(const Tensor& a, const Tensor& b) {
  const int64_t rank = std::max(a.dim(), b.dim());
  DimVector shape(static_cast<size_t>(rank), 1);
  for (int64_t d = 1; d <= rank; ++d) {
    const int64_t x = d <= a.dim() ? a.size(-d) : 1, y = d <= b.dim() ? b.size(-d) : 1;
    TORCH_CHECK(x == y || x == 1 || y == 1, "The size of tensor a (", x,
                ") must match the size of tensor b (", y, ") at non-singleton dimension ",
                rank - d);
    shape[static_cast<size_t>(rank - d)] = x == 1 ? y : x;
  }
  return shape;
}
Tensor mul_dense(const Tensor& given, const Tensor& dense) {
  if (is_number(dense)) return with_values(given, at::mul(coo(given, "mul").values, dense));
  const DimVector shape = joint_shape(given, dense);
  const Tensor sparse = given.sizes() == IntArrayRef(shape) ? given : broadcast_coo(given, shape);
  const Tensor there = masked_by(dense.expand(shape), sparse);
  return with_values(sparse, at::mul(coo(sparse, "mul").values, coo(there, "mul").values));
}
Tensor times(const Tensor& a, const Tensor& b) {
  if (a.layout() == kStrided) return mul_dense(to_coo(b), a);
  if (b.layout() == kStrided) return mul_dense(a, b);
  // A sparse number is a number; of two, the one with fewer elements is.
  const bool lesser_a = a.dim() == 0 && (b.dim() > 0 || coo(a, "mul").nnz() < coo(b, "mul").nnz());
  if (b.dim() == 0 && !lesser_a) return mul_dense(a, to_dense(b));
  if (lesser_a) return mul_dense(to_coo(b), to_dense(a));
  return mul_sparse(a, to_coo(b));
}
void mul_handler(const OperatorEntry&, Stack& s) {
  answer(s, times(s[0].toTensor(), s[1].toTensor()));
}
// A number scales the values; anything else goes matrix by matrix through COO.
Tensor times_compressed(const Tensor& a, const Tensor& b) {
  if (is_number(b)) return with_values(a, at::mul(any_sparse(a, "mul").values, b));
  if (is_number(a)) return with_values(b, at::mul(a, any_sparse(b, "mul").values));
  const Tensor& like = is_compressed(a.layout()) ? a : b;
  const size_t batch = static_cast<size_t>(any_sparse(like, "mul").indices.dim()) - 1;
  const Tensor out = times(is_compressed(a.layout()) ? to_coo(a) : a, b);
  TORCH_CHECK_NOT_IMPLEMENTED(batch == 0, "mul is not implemented for batched tensors of layout ",
                              like.layout(), " and dtype ", like.scalar_type());
  return to_layout_of(out, like);
}
void mul_csr_handler(const OperatorEntry&, Stack& s) {
  answer(s, times_compressed(s[0].toTensor(), s[1].toTensor()));
}
void mul_csr_inplace_handler(const OperatorEntry&, Stack& s) {
  const Tensor self = s[0].toTensor();
  TORCH_CHECK(self.layout() != kStrided, "mul_: a strided tensor times a sparse one is sparse");
  const Tensor out = times_compressed(self, s[1].toTensor());
  TORCH_CHECK(c10::canCast(out.scalar_type(), self.scalar_type()), "result type ",
              out.scalar_type(), " can't be cast to the desired output type ", self.scalar_type());
  become(self, as_type(out, self.scalar_type()));
  answer(s, self);
}
void mul_inplace_handler(const OperatorEntry&, Stack& s) {
  Tensor self = s[0].toTensor();
  const Tensor other = s[1].toTensor();
  const Tensor out = times(self, other);
  TORCH_CHECK(out.sizes() == self.sizes(), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", out.sizes());
  TORCH_CHECK(c10::canCast(out.scalar_type(), self.scalar_type()), "result type ",
              out.scalar_type(), " can't be cast to the desired output type ", self.scalar_type());
  store(self, self.layout() == kStrided ? to_dense(out) : out);
  answer(s, self);
}
Tensor quotient(const Stack& s) {
  const Tensor self = s[0].toTensor(), other = s[1].toTensor();
  TORCH_CHECK(is_number(other) && is_sparse_layout(self.layout()),
              "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape ",
              other.sizes(), " for divisor)");
  return with_values(self, at::div(any_sparse(self, "div").values, other));
}
void div_handler(const OperatorEntry&, Stack& s) { answer(s, quotient(s)); }
void div_inplace_handler(const OperatorEntry&, Stack& s) {
  Tensor self = s[0].toTensor();
  store(self, quotient(s));
  answer(s, self);
}

// ---- copies
Tensor copied(const Tensor& self) {
  const SparseTensorImpl& s = any_sparse(self, "clone");
  if (self.layout() == Layout::Sparse)
    return make_coo(s.indices.clone(), s.values.clone(), self.sizes(), s.coalesced);
  return make_compressed(self.layout(), s.indices.clone(), s.plain.clone(), s.values.clone(),
                         self.sizes());
}
void clone_handler(const OperatorEntry&, Stack& s) { answer(s, copied(s[0].toTensor())); }
void detach_handler(const OperatorEntry&, Stack& s) {
  const Tensor self = s[0].toTensor();
  c10::intrusive_ptr<TensorImpl> impl = self.unsafeGetTensorImpl()->shallow_copy();
  if (!self.is_inference()) impl->share_version_of(*self.unsafeGetTensorImpl());
  answer(s, Tensor(std::move(impl)));
}
void self_handler(const OperatorEntry&, Stack& s) { answer(s, s[0].toTensor()); }
// On another device.
Tensor moved(const Tensor& self, Device device, bool non_blocking) {
  const SparseTensorImpl& s = any_sparse(self, "to");
  const auto there = [&](const Tensor& member) {
    return moved_to(member, device, member.scalar_type(), non_blocking);
  };
  if (self.layout() == Layout::Sparse)
    return make_coo(there(s.indices), there(s.values), self.sizes(), s.coalesced);
  return make_compressed(self.layout(), there(s.indices), there(s.plain), there(s.values),
                         self.sizes());
}
void to_copy_handler(const OperatorEntry& op, Stack& s) {
  const Tensor self = s[0].toTensor();
  if (!s[3].isNone() && s[3].toDevice() != self.device()) {
    s[0] = moved(self, s[3].toDevice(), s[5].toBool());
    return to_copy_handler(op, s);
  }
  const ScalarType type = s[1].isNone() ? self.scalar_type() : s[1].toScalarType();
  const Layout layout = s[2].isNone() ? self.layout() : s[2].toLayout();
  const SparseTensorImpl& held = any_sparse(self, "to");
  const Tensor values =
      held.values.scalar_type() == type ? held.values.clone() : held.values.to(type);
  const Tensor out = copied(with_values(self, values));
  answer(s, layout == self.layout() ? out : to_layout(out, layout, std::nullopt, std::nullopt));
}
void copy_handler(const OperatorEntry&, Stack& s) {
  Tensor self = s[0].toTensor();
  const Tensor from = s[1].toTensor();
  TORCH_CHECK(self.layout() == from.layout(),
              "copy_() between dense and sparse Tensors is not implemented! Found self layout = ",
              self.layout(), " and src layout = ", from.layout());
  if (!self.is_same(from)) {
    const Tensor here =
        from.device() == self.device() ? from : moved(from, self.device(), s[2].toBool());
    const SparseTensorImpl& held = any_sparse(here, "copy_");
    become(self, copied(with_values(here, as_type(held.values, self.scalar_type()))));
  }
  answer(s, self);
}
Tensor without_elements(const Tensor& self, ScalarType type, Layout layout) {
  const Device device = self.device();
  if (layout == kStrided) return at::zeros(self.sizes(), TensorOptions(type).device(device));
  if (is_compressed(self.layout()) && layout == self.layout()) {
    const SparseTensorImpl& held = any_sparse(self, "zeros_like");
    return make_compressed(layout, at::zeros(held.indices.sizes(), held.indices.options()),
                           held.plain.narrow(-1, 0, 0).clone(),
                           held.values.narrow(held.indices.dim() - 1, 0, 0).to(type), self.sizes());
  }
  if (is_compressed(layout)) return empty_compressed(self.sizes(), layout, type, device);
  const int64_t dims =
      self.layout() == Layout::Sparse ? any_sparse(self, "zeros_like").sparse_dim : self.dim();
  return empty_coo(self.sizes(), dims, type, device);
}
// Nothing stored is zero everywhere; of COO tensors empty_like does the same.
void zeros_like_handler(const OperatorEntry&, Stack& s) {
  const Tensor self = s[0].toTensor();
  const ScalarType type = s[1].isNone() ? self.scalar_type() : s[1].toScalarType();
  TORCH_CHECK(s[5].isNone(), "memory format option is only supported by strided tensors");
  TORCH_CHECK_NOT_IMPLEMENTED(s[3].isNone() || s[3].toDevice() == self.device(),
                              "zeros_like of a sparse tensor is only implemented on its device, ",
                              self.device());
  answer(s, without_elements(self, type, s[2].isNone() ? self.layout() : s[2].toLayout()));
}
// new_zeros and new_empty: of the same layout and another size.
void new_zeros_handler(const OperatorEntry&, Stack& s) {
  const Tensor self = s[0].toTensor();
  const ScalarType type = s[2].isNone() ? self.scalar_type() : s[2].toScalarType();
  const Layout layout = s[3].isNone() ? self.layout() : s[3].toLayout();
  const std::vector<int64_t> size = s[1].toIntList();
  const Device device = s[4].isNone() ? self.device() : s[4].toDevice();
  if (layout == kStrided) return answer(s, at::zeros(size, TensorOptions(type).device(device)));
  answer(s, is_compressed(layout)
                ? empty_compressed(size, layout, type, device)
                : empty_coo(size, static_cast<int64_t>(size.size()), type, device));
}
void zero_handler(const OperatorEntry&, Stack& s) {
  Tensor self = s[0].toTensor();
  become(self, without_elements(self, self.scalar_type(), self.layout()));
  answer(s, self);
}
// zeros and empty with a COO tensor as out: without elements in the given size.
void zeros_out_handler(const OperatorEntry&, Stack& s) {
  const std::vector<int64_t> size = s[0].toIntList();
  const Tensor out = s.back().toTensor();
  become(out, empty_coo(size, static_cast<int64_t>(size.size()), out.scalar_type(), out.device()));
  answer(s, out);
}
void never_handler(const OperatorEntry&, Stack& s) {
  s.clear();
  s.emplace_back(false);
}
void same_size_handler(const OperatorEntry&, Stack& s) {
  const bool same = s[0].toTensor().sizes() == s[1].toTensor().sizes();
  s.clear();
  s.emplace_back(same);
}

// ---- reductions over everything
Tensor final_values(const Tensor& self) {
  if (self.layout() != Layout::Sparse) return any_sparse(self, "reduction").values;
  const Tensor one_each = coalesced(self);
  return coo(one_each, "reduction").values;
}
// The elements that are not stored add nothing to a sum, a norm of positive order or an `any`.
void sum_handler(const OperatorEntry& op, Stack& s) {
  s[0] = any_sparse(s[0].toTensor(), "sum").values;
  op.call_boxed(s);
}
void whole_handler(const OperatorEntry& op, Stack& s) {
  s[0] = final_values(s[0].toTensor());
  op.call_boxed(s);
}
void norm_handler(const OperatorEntry& op, Stack& s) {
  const Tensor self = s[0].toTensor();
  const bool whole = s[2].isNone() || s[2].toIntList().empty() ||
                     static_cast<int64_t>(s[2].toIntList().size()) == self.dim();
  TORCH_CHECK(!s[3].toBool(), "norm_sparse currently does not support keepdim=True");
  TORCH_CHECK(whole,
              "norm_sparse currently only supports full reductions, so 'dim' must either be ",
              "empty or contain all dimensions of the input");
  TORCH_CHECK_NOT_IMPLEMENTED(
      s[1].toScalar().toDouble() >= 0,
      "linalg_vector_norm of a negative order is not implemented for layout ", self.layout(),
      " and ", self.scalar_type());
  s[0] = final_values(self);
  s[2] = IValue();
  op.call_boxed(s);
}
void item_handler(const OperatorEntry& op, Stack& s) {
  s[0] = at::sum(any_sparse(s[0].toTensor(), "item").values);
  op.call_boxed(s);
}

// ---- products of matrices
Tensor product(const Tensor& a, const Tensor& b) {
  const bool first = is_sparse_layout(a.layout()), second = is_sparse_layout(b.layout());
  if (first && second) return times_sparse(a, b);
  if (first) return times_dense(a, b);
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2, "mm: expected two matrices, got ", a.dim(), "-D and ",
              b.dim(), "-D tensors");
  return at::t(times_dense(at::t(b), at::t(a))).contiguous();
}
void mm_handler(const OperatorEntry&, Stack& s) {
  answer(s, product(s[0].toTensor(), s[1].toTensor()));
}
// A matrix times a vector, as a vector.
Tensor product_of_vector(const Tensor& matrix, const Tensor& vector) {
  TORCH_CHECK(matrix.size(1) == vector.size(0), "size mismatch, got input (", matrix.size(0), "x",
              matrix.size(1), "), vec (", vector.size(0), ")");
  return product(matrix, vector.unsqueeze(1)).squeeze(1);
}
void mv_handler(const OperatorEntry&, Stack& s) {
  const Tensor matrix = s[0].toTensor(), vector = s[1].toTensor();
  TORCH_CHECK(vector.dim() == 1 && matrix.dim() == 2 && vector.layout() == kStrided,
              "mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: ", matrix.dim(),
              " Tensor Dim: ", vector.dim());
  answer(s, product_of_vector(matrix, vector));
}
void linear_handler(const OperatorEntry&, Stack& s) {
  const Tensor input = s[0].toTensor(), weight = s[1].toTensor();
  TORCH_CHECK_NOT_IMPLEMENTED(input.dim() == 2 && weight.dim() == 2,
                              "linear is only implemented for matrices where one is sparse, got ",
                              input.dim(), "-D and ", weight.dim(), "-D tensors");
  const Tensor out = product(input, at::t(weight));
  answer(s, s[2].isNone() ? out : at::add(out, s[2].toTensor()));
}
// beta * base + alpha * out, in the layout of the base where both are sparse.
Tensor scaled_sum(const Tensor& base, Tensor out, const Scalar& beta, const Scalar& alpha) {
  if (!alpha.equal(int64_t(1))) out = at::mul(out, alpha);
  const bool both = base.layout() != kStrided && out.layout() != kStrided;
  if (both && base.layout() != out.layout() && !is_block(base.layout()))
    out = to_layout(out, base.layout(), std::nullopt, std::nullopt);
  if (beta.equal(int64_t(0)))
    return base.layout() == kStrided && out.layout() != kStrided ? to_dense(out) : out;
  const Tensor scaled = beta.equal(int64_t(1)) ? base : at::mul(base, beta);
  const bool mixed = scaled.layout() != kStrided && out.layout() == kStrided;
  return mixed ? at::add(out, scaled) : at::add(scaled, out);
}
void addmm_handler(const OperatorEntry&, Stack& s) {
  const Tensor out = product(s[1].toTensor(), s[2].toTensor());
  answer(s, scaled_sum(s[0].toTensor(), out, s[3].toScalar(), s[4].toScalar()));
}
void addmv_handler(const OperatorEntry&, Stack& s) {
  const Tensor matrix = s[1].toTensor(), vector = s[2].toTensor();
  TORCH_CHECK(matrix.dim() == 2 && vector.dim() == 1 && vector.layout() == kStrided,
              "vector + matrix @ vector expected, got ", s[0].toTensor().dim(), ", ", matrix.dim(),
              ", ", vector.dim());
  const Tensor out = product_of_vector(matrix, vector);
  answer(s, scaled_sum(s[0].toTensor(), out, s[3].toScalar(), s[4].toScalar()));
}
Tensor solved(const Stack& s) {
  const Tensor b = s[0].toTensor(), matrix = s[1].toTensor();
  TORCH_CHECK_VALUE(is_compressed(matrix.layout()), "triangular_solve: unsupported sparse layout.");
  return solve_triangle(matrix, b, s[2].toBool(), s[3].toBool(), s[4].toBool());
}
// The second result is a copy of the matrix for strided ones, and nothing for others.
void triangular_solve_handler(const OperatorEntry&, Stack& s) {
  const Tensor solution = solved(s);
  s.clear();
  s.emplace_back(solution);
  s.emplace_back(detail::empty({0}, solution.scalar_type(), solution.device()));
}
void triangular_solve_out_handler(const OperatorEntry&, Stack& s) {
  const Tensor solution = solved(s), out = s[5].toTensor(), rest = s[6].toTensor();
  native::resize_output(out, solution.sizes());
  out.copy_(solution);
  s.clear();
  s.emplace_back(out);
  s.emplace_back(rest);
}
} // namespace

void add_kernels(Handlers& coo, Handlers& csr) {
  coo.insert({{"add.Tensor", add_handler},
              {"add_.Tensor", add_inplace_handler},
              {"sub.Tensor", sub_handler},
              {"sub_.Tensor", sub_inplace_handler},
              {"mul.Tensor", mul_handler},
              {"mul_.Tensor", mul_inplace_handler},
              {"copy_", copy_handler},
              {"empty_like", zeros_like_handler},
              {"zeros.out", zeros_out_handler},
              {"empty.out", zeros_out_handler}});
  for (Handlers* table : {&coo, &csr}) {
    table->insert({{"div.Tensor", div_handler},
                   {"div_.Tensor", div_inplace_handler},
                   {"clone", clone_handler},
                   {"detach", detach_handler},
                   {"alias", detach_handler},
                   {"detach_", self_handler},
                   {"lift_fresh", self_handler},
                   {"_to_copy", to_copy_handler},
                   {"zeros_like", zeros_like_handler},
                   {"new_zeros", new_zeros_handler},
                   {"new_empty", new_zeros_handler},
                   {"zero_", zero_handler},
                   {"is_same_size", same_size_handler},
                   {"sum", sum_handler},
                   {"any", whole_handler},
                   {"count_nonzero", whole_handler},
                   {"linalg_vector_norm", norm_handler},
                   {"_local_scalar_dense", item_handler},
                   {"mm", mm_handler},
                   {"mv", mv_handler},
                   {"linear", linear_handler},
                   {"is_pinned", never_handler},
                   {"addmm", addmm_handler},
                   {"addmv", addmv_handler}});
  }
  csr.insert({{"mul.Tensor", mul_csr_handler}, {"mul_.Tensor", mul_csr_inplace_handler}});
  csr.insert({{"triangular_solve", triangular_solve_handler},
              {"triangular_solve.X", triangular_solve_out_handler}});
  csr.insert({{"add.Tensor", add_csr_handler}, {"sub.Tensor", sub_csr_handler}});
  // A strided tensor plus a compressed one goes through COO like the rest, in place too.
  csr.emplace("add_.Tensor", add_inplace_handler);
  add_shape_kernels(coo, csr);
  add_compressed_kernels(csr);
}

} // namespace at::sparse
