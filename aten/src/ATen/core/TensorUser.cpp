// The methods of TensorUser.inc that concern data, and at::indexing.
#undef CRESSET_KERNEL_TU // kernel files do not see these methods
#include <ATen/TensorIndexing.h>
#include <ATen/core/DeprecatedTypeProperties.h>
#include <ATen/core/Dimname.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Formatting.h>
#include <ATen/core/HandlerKeys.h>
#include <ATen/core/Undefined.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/select.h>
#include <ATen/ops/slice.h>

#include <cstring>
#include <iostream>

namespace at {
namespace indexing {

const EllipsisIndexType Ellipsis{};

Slice::Slice(std::optional<SymInt> start, std::optional<SymInt> stop, std::optional<SymInt> step)
    : start_(0), stop_(0), step_(step.value_or(SymInt(1))) {
  TORCH_CHECK_VALUE(step_ != SymInt(0), "slice step cannot be zero");
  const bool down = step_ < SymInt(0);
  start_ = start.value_or(SymInt(down ? INDEX_MAX : 0));
  stop_ = stop.value_or(SymInt(down ? INDEX_MIN : INDEX_MAX));
}

TensorIndex::TensorIndex(const char* text) : kind_(Kind::Ellipsis) {
  TORCH_CHECK_VALUE(std::strcmp(text, "...") == 0,
                    "Expected \"...\" to represent an ellipsis index, but got \"", text, "\"");
}

void append(std::string& out, const Slice& slice) {
  out += c10::str(slice.start().guard_int(), ':', slice.stop().guard_int(), ':',
                  slice.step().guard_int());
}

void append(std::string& out, const TensorIndex& index) {
  if (index.is_none())
    out += "None";
  else if (index.is_ellipsis())
    out += "...";
  else if (index.is_integer())
    c10::append(out, index.integer().guard_int());
  else if (index.is_boolean())
    out += index.boolean() ? "true" : "false";
  else if (index.is_slice())
    append(out, index.slice());
  else
    append(out, index.tensor());
}

void append(std::string& out, const std::vector<TensorIndex>& indices) {
  const char* separator = "(";
  for (const TensorIndex& index : indices) {
    out += separator;
    append(out, index);
    separator = ", ";
  }
  out += indices.empty() ? "()" : ")";
}

std::ostream& operator<<(std::ostream& out, const Slice& slice) { return out << c10::str(slice); }
std::ostream& operator<<(std::ostream& out, const TensorIndex& index) {
  return out << c10::str(index);
}
std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices) {
  return out << c10::str(indices);
}

namespace {

// A tensor that holds one integer means that integer: what it selects is a view. Without memory
// there is no number to read.
bool is_number(const TensorIndex& index) {
  if (!index.is_tensor() || !index.tensor().defined() || index.tensor().dim() != 0) return false;
  const ScalarType dtype = index.tensor().scalar_type();
  return c10::isIntegralType(dtype, /*includeBool=*/false) && dtype != kByte &&
         !index.tensor().is_meta() && !seen_by_handlers(index.tensor());
}

// How many dimensions of the tensor an index uses up.
int64_t dims_used(const TensorIndex& index) {
  if (index.is_tensor()) {
    const ScalarType dtype = index.tensor().scalar_type();
    return dtype == kBool || dtype == kByte ? index.tensor().dim() : 1;
  }
  return index.is_integer() || index.is_slice() ? 1 : 0;
}

// What is left of an index when integers, slices and new dimensions have been applied. The list
// for the operator has one entry per index: a mask of several dimensions is one.
struct Applied {
  Tensor view;
  std::vector<std::optional<Tensor>> advanced;
  int64_t covered = 0; // dimensions of `view` that the entries so far stand for

  void add(int64_t dim, const Tensor& by, int64_t dims) {
    advanced.resize(advanced.size() + dim - covered);
    advanced.emplace_back(by);
    covered = dim + dims;
  }
};

Tensor sliced(const Tensor& self, int64_t dim, const Slice& slice) {
  TORCH_CHECK_VALUE(slice.step() > SymInt(0), "step must be greater than zero");
  if (slice.start() == SymInt(0) && slice.stop() == SymInt(INDEX_MAX) && slice.step() == SymInt(1))
    return self;
  return self.slice(dim, slice.start().guard_int(), slice.stop().guard_int(),
                    slice.step().guard_int());
}

constexpr const char* kNoNumberOfOne = "invalid index of a 0-dim tensor. Use `tensor.item()` in "
                                       "Python or `tensor.item<T>()` in C++ to "
                                       "convert a 0-dim tensor to a number";

Tensor selected(const Tensor& self, int64_t dim, int64_t real_dim, int64_t index) {
  TORCH_CHECK_INDEX(self.dim() > 0, kNoNumberOfOne);
  const int64_t size = self.size(dim);
  TORCH_CHECK_INDEX(index >= -size && index < size, "index ", index,
                    " is out of bounds for dimension ", real_dim, " with size ", size);
  return self.select(dim, index);
}

Applied apply(const Tensor& self, ArrayRef<TensorIndex> indices) {
  int64_t used = 0;
  for (const TensorIndex& index : indices) {
    TORCH_CHECK_INDEX(self.dim() > 0 || !index.is_integer(), kNoNumberOfOne);
    used += dims_used(index);
  }
  TORCH_CHECK_INDEX(used <= self.dim(), "too many indices for tensor of dimension ", self.dim());
  Applied out{self, {}, 0};
  int64_t dim = 0;      // of the view
  int64_t real_dim = 0; // of self
  for (const TensorIndex& index : indices) {
    if (index.is_ellipsis()) {
      dim += self.dim() - used;
      real_dim += self.dim() - used;
      continue;
    }
    if (index.is_integer()) {
      out.view = selected(out.view, dim, real_dim, index.integer().guard_int());
    } else if (is_number(index)) {
      out.view = selected(out.view, dim, real_dim, index.tensor().item().toLong());
    } else if (index.is_slice()) {
      out.view = sliced(out.view, dim++, index.slice());
    } else if (index.is_none()) {
      out.view = out.view.unsqueeze(dim++);
    } else if (index.is_tensor() && dims_used(index) > 0) {
      out.add(dim, index.tensor(), dims_used(index));
      dim += dims_used(index);
    } else {
      // A truth value selects all or nothing along a new dimension.
      const Tensor by =
          index.is_tensor() ? index.tensor() : detail::scalar_tensor(index.boolean(), kBool);
      out.view = out.view.unsqueeze(dim);
      out.add(dim++, by.reshape({1}), 1);
    }
    real_dim += dims_used(index);
  }
  return out;
}

Tensor get(const Tensor& self, ArrayRef<TensorIndex> indices) {
  TORCH_CHECK_INDEX(!indices.empty(),
                    "Passing an empty index list to Tensor::index() is not valid syntax");
  const Applied applied = apply(self, indices);
  if (!applied.advanced.empty()) return at::index(applied.view, applied.advanced);
  // A whole tensor is still another tensor.
  return applied.view.is_same(self) ? at::alias(self) : applied.view;
}

void put(const Tensor& self, ArrayRef<TensorIndex> indices, const Tensor& values) {
  TORCH_CHECK_INDEX(!indices.empty(),
                    "Passing an empty index list to Tensor::index_put_() is not valid syntax");
  const Applied applied = apply(self, indices);
  Tensor from = values;
  const int64_t room = applied.view.dim();
  // Leading dimensions of size one are dropped, as an assignment in Python does.
  if (applied.advanced.empty()) {
    while (from.dim() > room && from.size(0) == 1) from = from.squeeze(0);
    applied.view.copy_(from);
  } else {
    at::index_put_(const_cast<Tensor&>(applied.view), applied.advanced, from.to(self.scalar_type()),
                   false);
  }
}

} // namespace
} // namespace indexing

Tensor Tensor::operator[](int64_t index) const {
  detail::check_defined(*this, "operator[]");
  return indexing::selected(*this, 0, 0, index);
}
Tensor Tensor::operator[](const Scalar& index) const {
  TORCH_CHECK_INDEX(index.isIntegral(false), "Can only index tensors with integral scalars");
  return (*this)[index.toLong()];
}
Tensor Tensor::operator[](const Tensor& index) const {
  TORCH_CHECK_INDEX(index.defined(), "Can only index with tensors that are defined");
  TORCH_CHECK_INDEX(index.dim() == 0, "Can only index with tensors that are scalars (zero-dim)");
  return (*this)[index.item()];
}
TensorImpl* Tensor::undefined_impl() {
  static const auto* const kept = new Tensor(detail::empty({0}, kFloat)); // never freed
  return kept->unsafeGetTensorImpl();
}
Tensor Tensor::alias() const {
  detail::check_defined(*this, "alias");
  return at::alias(*this);
}
bool Tensor::is_nonzero() const {
  detail::check_defined(*this, "is_nonzero");
  TORCH_CHECK(numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  return item().toBool();
}
Tensor Tensor::index(ArrayRef<indexing::TensorIndex> indices) const {
  detail::check_defined(*this, "index");
  return indexing::get(*this, indices);
}
Tensor Tensor::index(std::initializer_list<indexing::TensorIndex> indices) const {
  return index(ArrayRef<indexing::TensorIndex>(indices.begin(), indices.size()));
}
Tensor& Tensor::index_put_(ArrayRef<indexing::TensorIndex> indices, const Tensor& values) const {
  detail::check_defined(*this, "index_put_");
  indexing::put(*this, indices, values);
  return const_cast<Tensor&>(*this);
}
Tensor& Tensor::index_put_(ArrayRef<indexing::TensorIndex> indices, const Scalar& value) const {
  detail::check_defined(*this, "index_put_");
  const Tensor number = detail::scalar_tensor(value, value.type());
  return index_put_(indices, number.to(options().dtype(scalar_type())));
}
Tensor& Tensor::index_put_(std::initializer_list<indexing::TensorIndex> indices,
                           const Tensor& values) const {
  return index_put_(ArrayRef<indexing::TensorIndex>(indices.begin(), indices.size()), values);
}
Tensor& Tensor::index_put_(std::initializer_list<indexing::TensorIndex> indices,
                           const Scalar& value) const {
  return index_put_(ArrayRef<indexing::TensorIndex>(indices.begin(), indices.size()), value);
}

void Tensor::check_accessor(int64_t dims) const {
  TORCH_CHECK(dims > 0, "accessor is used for indexing tensor, for scalars use *data_ptr<T>()");
  TORCH_CHECK(dim() == dims, "TensorAccessor expected ", dims, " dims but tensor has ", dim());
}

Tensor Tensor::operator~() const { return bitwise_not(); }
#define CRESSET_ASSIGNING_OPERATOR(symbol, method)                                                 \
  Tensor& Tensor::operator symbol(const Tensor& other) const { return method(other); }             \
  Tensor& Tensor::operator symbol(const Scalar& other) const { return method(other); }
CRESSET_ASSIGNING_OPERATOR(+=, add_)
CRESSET_ASSIGNING_OPERATOR(-=, sub_)
CRESSET_ASSIGNING_OPERATOR(*=, mul_)
CRESSET_ASSIGNING_OPERATOR(/=, div_)
#undef CRESSET_ASSIGNING_OPERATOR
Tensor& Tensor::operator&=(const Tensor& other) const { return bitwise_and_(other); }
Tensor& Tensor::operator|=(const Tensor& other) const { return bitwise_or_(other); }
Tensor& Tensor::operator^=(const Tensor& other) const { return bitwise_xor_(other); }

Tensor Tensor::refine_names(ArrayRef<Dimname>) const {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Tensor::refine_names: dimensions with names are not "
                                     "implemented");
  return {};
}
std::string Tensor::toString() const { return type().toString(); }
void Tensor::print() const {
  if (defined())
    std::cerr << "[" << toString() << " " << sizes() << "]\n";
  else
    std::cerr << "[UndefinedTensor]\n";
}
DeprecatedTypeProperties& Tensor::type() const {
  return DeprecatedTypeProperties::of(device().type(), layout(), scalar_type());
}

} // namespace at
