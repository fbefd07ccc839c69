// The geometry of symbolic tensors: what plain integers are handed out, and how contiguity is
// decided. See Note [Sizes that are symbols] in TensorImpl.h.
//
// A question about the layout is a conjunction of questions about single dimensions. Each is
// answered from what is known of the symbols; where that does not decide it, the traced run does
// and the answer becomes a guard; where the traced run has no value, the answer is no.
#include <c10/core/SymbolicGeometry.h>

#include <algorithm>

namespace c10 {

namespace {

bool is_one(SymInt size) { return guard_or_false(sym_eq(size, 1)); }

// Whether the dimensions, innermost first, follow each other in memory without gaps.
bool packed(SymIntArrayRef sizes, SymIntArrayRef strides, ArrayRef<int64_t> order) {
  SymInt expected = 1;
  for (int64_t d : order) {
    const SymBool fits = sym_eq(strides[d], expected) | sym_eq(sizes[d], 1);
    if (!guard_or_false(fits)) return false;
    expected = expected * sizes[d];
  }
  return true;
}

DimVector row_major(int64_t ndim) {
  DimVector order;
  for (int64_t d = ndim - 1; d >= 0; --d) order.push_back(d);
  return order;
}

DimVector channels_last_order(int64_t ndim) {
  DimVector order{1};
  for (int64_t d = ndim - 1; d >= 2; --d) order.push_back(d);
  order.push_back(0);
  return order;
}

// Channels innermost, and every stride at least as large as what lies inside it.
bool strides_order_channels_last(SymIntArrayRef sizes, SymIntArrayRef strides) {
  const auto ndim = static_cast<int64_t>(sizes.size());
  SymInt least = 0;
  if (guard_or_false(sym_eq(strides[1], 0))) return false;
  for (int64_t d : channels_last_order(ndim)) {
    if (guard_or_false(sym_eq(sizes[d], 0))) return false;
    if (!guard_or_false(sym_ge(strides[d], least))) return false;
    // Without channels and rows to order, N111 looks like the usual layout.
    if (d == 0 && guard_or_false(sym_eq(least, strides[1]))) return false;
    least = strides[d];
    if (guard_or_false(sym_gt(sizes[d], 1))) least = strides[d] * sizes[d];
  }
  return true;
}

// The order of the traced run, if every stride has a value there; the check of `packed` then holds
// for all runs that keep its guards.
bool packed_in_some_order(SymIntArrayRef sizes, SymIntArrayRef strides) {
  DimVector order;
  std::vector<std::pair<int64_t, int64_t>> keys; // stride, size
  for (size_t d = 0; d < sizes.size(); ++d) {
    const auto stride = strides[d].hint(), size = sizes[d].hint();
    if (!stride || !size) return false;
    keys.emplace_back(*stride, *size);
    if (!is_one(sizes[d])) order.push_back(static_cast<int64_t>(d));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return keys[a] < keys[b]; });
  return packed(sizes, strides, order);
}

} // namespace

SymInt sym_storage_bytes(SymIntArrayRef sizes, SymIntArrayRef strides, int64_t itemsize,
                         SymInt storage_offset) {
  SymInt last = storage_offset;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (guard_or_false(sym_eq(sizes[d], 0))) return 0;
    last = last + (sizes[d] - 1) * strides[d];
  }
  return (last + 1) * itemsize;
}

std::vector<SymInt> sym_contiguous_strides(SymIntArrayRef sizes) {
  std::vector<SymInt> strides(sizes.size());
  SymInt stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride = stride * sym_max(sizes[d], 1))
    strides[d] = stride;
  return strides;
}

void set_symbolic_number(TensorImpl& wrapped, int64_t handle) {
  TORCH_INTERNAL_ASSERT(wrapped.dim() == 0);
  ExtraMeta& extra = wrapped.ensure_extra();
  extra.symbolic_sizes = {handle};
  extra.symbolic_owner = symbolic_node(handle)->owner();
}

void TensorImpl::set_symbolic_geometry(SymIntArrayRef sizes, SymIntArrayRef strides,
                                       SymInt offset) {
  TORCH_INTERNAL_ASSERT(sizes.size() == strides.size());
  if (!has_symbolic(sizes) && !has_symbolic(strides) && !offset.is_symbolic())
    return set_geometry(as_int_array(sizes), as_int_array(strides), offset.raw());
  std::vector<int64_t> raw_sizes, raw_strides;
  SymInt numel = 1, any = offset;
  for (SymInt s : sizes) {
    raw_sizes.push_back(s.raw());
    numel = numel * s;
    if (s.is_symbolic()) any = s;
  }
  for (SymInt s : strides) {
    raw_strides.push_back(s.raw());
    if (s.is_symbolic()) any = s;
  }
  const size_t n = sizes.size();
  reserve_dims(n);
  for (size_t d = 0; d < n; ++d) {
    dims_[d] = SymInt::from_raw(raw_sizes[d]).hint().value_or(0);
    dims_[n + d] = SymInt::from_raw(raw_strides[d]).hint().value_or(0);
  }
  numel_ = numel.hint().value_or(0);
  storage_offset_ = offset.hint().value_or(0);
  ExtraMeta& extra = ensure_extra();
  extra.symbolic_sizes = std::move(raw_sizes);
  extra.symbolic_strides = std::move(raw_strides);
  extra.symbolic_offset = offset.raw();
  extra.symbolic_numel = numel.raw();
  extra.symbolic_owner = symbolic_node(any.raw())->owner();
  extra.known_flags = 0;
  symbolic_ = true;
}

void TensorImpl::guard_sizes() const {
  for (SymInt s : sym_sizes()) s.guard_int("sizes()");
}
void TensorImpl::guard_strides() const {
  for (SymInt s : sym_strides()) s.guard_int("strides()");
}
void TensorImpl::guard_size(int64_t d) const { sym_sizes()[d].guard_int("size()"); }
void TensorImpl::guard_stride(int64_t d) const { sym_strides()[d].guard_int("stride()"); }
void TensorImpl::guard_numel() const { sym_numel().guard_int("numel()"); }
void TensorImpl::guard_offset() const { sym_storage_offset().guard_int("storage_offset()"); }

bool TensorImpl::decide_flag(Flag flag) const {
  const SymIntArrayRef sizes = sym_sizes(), strides = sym_strides();
  const bool has_channels = ndim_ == 4 || ndim_ == 5;
  switch (flag) {
  case Flag::Contiguous:
    return guard_or_false(sym_eq(sym_numel(), 0)) || packed(sizes, strides, row_major(ndim_));
  case Flag::ChannelsLast:
    return has_channels && packed(sizes, strides, channels_last_order(ndim_));
  case Flag::ChannelsLastStrides:
    return has_channels && strides_order_channels_last(sizes, strides);
  case Flag::Dense:
    return symbolic_flag(Flag::Contiguous) || symbolic_flag(Flag::ChannelsLast) ||
           packed_in_some_order(sizes, strides);
  }
  return false;
}

bool TensorImpl::symbolic_flag(Flag flag) const {
  // Answers are kept in the bits that plain tensors have them in.
  auto* self = const_cast<TensorImpl*>(this);
  const auto bit = static_cast<uint8_t>(1U << static_cast<unsigned>(flag));
  const bool known = (extra_->known_flags & bit) != 0;
  const bool value = known ? false : decide_flag(flag);
  if (!known) self->extra_->known_flags |= bit;
  const auto keep = [&](bool kept, auto set) {
    if (known) return kept;
    set();
    return value;
  };
  switch (flag) {
  case Flag::Contiguous:
    return keep(contiguous_, [&] { self->contiguous_ = value; });
  case Flag::ChannelsLast:
    return keep(channels_last_contiguous_, [&] { self->channels_last_contiguous_ = value; });
  case Flag::ChannelsLastStrides:
    return keep(channels_last_strides_, [&] { self->channels_last_strides_ = value; });
  default:
    return keep(dense_, [&] { self->dense_ = value; });
  }
}

} // namespace c10
