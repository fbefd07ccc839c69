// Operators that are methods of every tensor, through the dispatcher, and the messages of
// accessors.
#include <ATen/core/Tensor.h>
#include <ATen/core/Undefined.h>

#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/contiguous.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/detach.h>
#include <ATen/ops/expand.h>
#include <ATen/ops/fill.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/item.h>
#include <ATen/ops/narrow.h>
#include <ATen/ops/permute.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/select.h>
#include <ATen/ops/slice.h>
#include <ATen/ops/squeeze.h>
#include <ATen/ops/to.h>
#include <ATen/ops/transpose.h>
#include <ATen/ops/unsqueeze.h>
#include <ATen/ops/view.h>
#include <ATen/ops/zero.h>

namespace at {

void detail::throw_undefined(const char* method) {
  throw c10::Error(c10::str("Tensor.", method, "(): called on an undefined Tensor (made by the ",
                            "default constructor, moved from, or reset)"));
}

using c10::as_symint_array;

Tensor Tensor::contiguous(MemoryFormat format) const {
  detail::check_defined(*this, "contiguous");
  return is_contiguous(format) ? *this : _ops::contiguous::call(*this, format);
}
Tensor Tensor::clone(std::optional<MemoryFormat> format) const {
  detail::check_defined(*this, "clone");
  return _ops::clone::call(*this, format);
}
Tensor& Tensor::copy_(const Tensor& src, bool non_blocking) const {
  detail::check_defined(*this, "copy_");
  return _ops::copy_::call(const_cast<Tensor&>(*this), src, non_blocking);
}
Tensor& Tensor::fill_(const Scalar& value) const {
  detail::check_defined(*this, "fill_");
  return _ops::fill__Scalar::call(const_cast<Tensor&>(*this), value);
}
Tensor& Tensor::zero_() const {
  detail::check_defined(*this, "zero_");
  return _ops::zero_::call(const_cast<Tensor&>(*this));
}
Tensor Tensor::to(ScalarType dtype, bool non_blocking, bool copy) const {
  detail::check_defined(*this, "to");
  return _ops::to_dtype::call(*this, dtype, non_blocking, copy, std::nullopt);
}
Tensor Tensor::view(IntArrayRef size) const {
  detail::check_defined(*this, "view");
  return _ops::view::call(*this, as_symint_array(size));
}
Tensor Tensor::reshape(IntArrayRef size) const {
  detail::check_defined(*this, "reshape");
  return _ops::reshape::call(*this, as_symint_array(size));
}
Tensor Tensor::expand(IntArrayRef size, bool implicit) const {
  detail::check_defined(*this, "expand");
  return _ops::expand::call(*this, as_symint_array(size), implicit);
}
Tensor Tensor::permute(IntArrayRef dims) const {
  detail::check_defined(*this, "permute");
  return _ops::permute::call(*this, dims);
}
Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const {
  detail::check_defined(*this, "transpose");
  return _ops::transpose_int::call(*this, dim0, dim1);
}
Tensor Tensor::select(int64_t dim, int64_t index) const {
  detail::check_defined(*this, "select");
  return _ops::select_int::call(*this, dim, index);
}
Tensor Tensor::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                     int64_t step) const {
  detail::check_defined(*this, "slice");
  auto symbolic = [](std::optional<int64_t> v) {
    return v ? std::optional<SymInt>(*v) : std::nullopt;
  };
  return _ops::slice_Tensor::call(*this, dim, symbolic(start), symbolic(end), step);
}
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  detail::check_defined(*this, "narrow");
  return _ops::narrow::call(*this, dim, start, length);
}
Tensor Tensor::unsqueeze(int64_t dim) const {
  detail::check_defined(*this, "unsqueeze");
  return _ops::unsqueeze::call(*this, dim);
}
Tensor Tensor::squeeze(int64_t dim) const {
  detail::check_defined(*this, "squeeze");
  return _ops::squeeze_dim::call(*this, dim);
}
Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const {
  detail::check_defined(*this, "flatten");
  return _ops::flatten_using_ints::call(*this, start_dim, end_dim);
}
Tensor Tensor::as_strided(IntArrayRef size, IntArrayRef stride,
                          std::optional<int64_t> storage_offset) const {
  detail::check_defined(*this, "as_strided");
  return _ops::as_strided::call(*this, as_symint_array(size), as_symint_array(stride),
                                storage_offset ? std::optional<SymInt>(*storage_offset)
                                               : std::nullopt);
}
Tensor Tensor::detach() const {
  detail::check_defined(*this, "detach");
  return _ops::detach::call(*this);
}
Scalar Tensor::item() const {
  detail::check_defined(*this, "item");
  return _ops::item::call(*this);
}

void Tensor::throw_dim(int64_t d) const {
  const int64_t n = dim();
  TORCH_CHECK_INDEX(n > 0, "dimension specified as ", d, " but tensor has no dimensions");
  throw c10::IndexError(c10::str("Dimension out of range (expected to be in range of [", -n, ", ",
                                 n - 1, "], but got ", d, ")"));
}
void Tensor::throw_dtype(ScalarType wanted) const {
  throw c10::Error(c10::str("expected scalar type ", wanted, " but found ", scalar_type()));
}

void Tensor::throw_no_data() const {
  throw c10::Error(
      c10::str("Cannot access the data of a tensor of shape ", sizes(), " on ", device(),
               ": it has no memory. Expected all tensors to be on the same device, with "
               "storages that were not resized to zero"));
}

void append(std::string& out, const Tensor& tensor) {
  if (!tensor.defined()) {
    out += "undefined";
    return;
  }
  out += c10::info(tensor.scalar_type()).name;
  c10::append(out, tensor.sym_sizes()); // symbols as they are: a message decides nothing
  out += ' ';
  out += tensor.device().str();
}

} // namespace at
