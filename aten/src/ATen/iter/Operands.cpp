// Checks on operands that do not need the iterator: memory overlap and the common dtype.
#include <ATen/iter/TensorIterator.h>

namespace at {

// ---- memory overlap -----------------------------------------------------------------------------
namespace {
// The bytes a tensor can touch, [first, last).
std::pair<const char*, const char*> extent(const Tensor& t) {
  const char* first = static_cast<const char*>(t.unsafeGetTensorImpl()->data());
  const char* last = first;
  for (int64_t i = 0; i < t.dim(); ++i) {
    const int64_t reach = (t.sizes()[i] - 1) * t.strides()[i] * t.itemsize();
    (reach < 0 ? first : last) += reach;
  }
  return {first, last + t.itemsize()};
}

enum class Overlap { None, Full, Partial, TooHard };

Overlap overlap_of(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return Overlap::Full;
  const void* const start = a.unsafeGetTensorImpl()->data(); // null on meta, where nothing overlaps
  if (start == nullptr || !a.is_alias_of(b)) return Overlap::None;
  if (a.numel() == 0 || b.numel() == 0) return Overlap::None;
  if (!a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense()) {
    if (start == b.unsafeGetTensorImpl()->data() && a.sizes() == b.sizes() &&
        a.strides() == b.strides())
      return Overlap::Full;
    return Overlap::TooHard;
  }
  const auto x = extent(a), y = extent(b);
  if (x == y) return a.strides() == b.strides() ? Overlap::Full : Overlap::Partial;
  return x.first < y.second && y.first < x.second ? Overlap::Partial : Overlap::None;
}
} // namespace

bool may_overlap(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return true;
  if (!a.is_alias_of(b) || a.numel() == 0 || b.numel() == 0) return false;
  const auto x = extent(a), y = extent(b);
  return x.first < y.second && y.first < x.second;
}

void assert_no_internal_overlap(const Tensor& out) {
  if (out.is_non_overlapping_and_dense()) return;
  for (int64_t i = 0; i < out.dim(); ++i) {
    TORCH_CHECK(
        !(out.strides()[i] == 0 && out.sizes()[i] > 1),
        "unsupported operation: more than one element of the written-to tensor refers to a single "
        "memory location. Please clone() the tensor before performing the operation.");
  }
}

void assert_no_partial_overlap(const Tensor& out, const Tensor& in) {
  TORCH_CHECK(overlap_of(out, in) != Overlap::Partial,
              "unsupported operation: some elements of the input tensor and the written-to tensor "
              "refer to a "
              "single memory location. Please clone() the tensor before performing the operation.");
}

void assert_no_overlap(const Tensor& out, const Tensor& in) {
  const Overlap kind = overlap_of(out, in);
  TORCH_CHECK(kind != Overlap::Partial && kind != Overlap::Full,
              "unsupported operation: some elements of the input tensor and the written-to tensor "
              "refer to a "
              "single memory location. Please clone() the tensor before performing the operation.");
}

// ---- dtypes -----------------------------------------------------------------------------------
namespace {
ScalarType promote_skip_undefined(ScalarType a, ScalarType b) {
  if (a == ScalarType::Undefined) return b;
  if (b == ScalarType::Undefined) return a;
  return c10::promoteTypes(a, b);
}
int category(ScalarType t) {
  if (c10::isComplexType(t)) return 3;
  if (c10::isFloatingType(t)) return 2;
  return t == kBool ? 0 : 1;
}
// `high` outranks `low`: low counts only when its category is higher.
ScalarType combine(ScalarType high, ScalarType low) {
  if (high == ScalarType::Undefined) return low;
  if (low == ScalarType::Undefined) return high;
  if (category(low) <= category(high)) return high;
  // A complex number makes a floating point type complex without making it wider.
  if (c10::isComplexType(low) && c10::isFloatingType(high)) return c10::toComplexType(high);
  return category(low) > 1 ? low : c10::promoteTypes(high, low);
}
} // namespace

void ResultType::add(const Tensor& tensor) {
  TORCH_CHECK(tensor.defined(), "expected a tensor, got an undefined one");
  ScalarType type = tensor.scalar_type();
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    if (c10::isComplexType(type))
      type = c10::get_default_complex_dtype();
    else if (c10::isFloatingType(type))
      type = c10::get_default_dtype();
    wrapped_ = promote_skip_undefined(wrapped_, type);
  } else if (tensor.dim() > 0) {
    dim_ = promote_skip_undefined(dim_, type);
  } else {
    zero_ = promote_skip_undefined(zero_, type);
  }
}

void ResultType::add(const Scalar& scalar) {
  ScalarType type = scalar.type();
  if (scalar.isComplex())
    type = c10::get_default_complex_dtype();
  else if (scalar.isFloatingPoint())
    type = c10::get_default_dtype();
  wrapped_ = promote_skip_undefined(wrapped_, type);
}

ScalarType ResultType::get() const { return combine(dim_, combine(zero_, wrapped_)); }

ScalarType result_type_of(const Tensor& a, const Tensor& b) {
  ResultType state;
  state.add(a);
  state.add(b);
  return state.get();
}
ScalarType result_type_of(const Tensor& a, const Scalar& b) {
  ResultType state;
  state.add(a);
  state.add(b);
  return state.get();
}
ScalarType result_type_of(TensorList tensors) {
  ResultType state;
  for (const Tensor& t : tensors) state.add(t);
  return state.get();
}

} // namespace at
