// Whether tensors of one call overlap in memory.
#include <algorithm>
#include <torch/csrc/dynamo/value_sets.h>

namespace torch::dynamo {
namespace {
constexpr int64_t kExactUpTo = int64_t(1) << 20;
} // namespace

MemorySet::Place MemorySet::place_of(const at::Tensor& t) {
  return {t.unsafeGetTensorImpl()->storage().get(),
          t.scalar_type(),
          t.storage_offset(),
          t.numel(),
          at::DimVector(t.sizes()),
          at::DimVector(t.strides())};
}

std::vector<int64_t> MemorySet::elements(const Place& place) {
  std::vector<int64_t> found{place.offset};
  for (size_t d = 0; d < place.sizes.size(); ++d) {
    const size_t before = found.size();
    const int64_t length = place.strides[d] == 0 ? 1 : place.sizes[d];
    found.reserve(before * static_cast<size_t>(length));
    for (int64_t i = 1; i < length; ++i)
      for (size_t k = 0; k < before; ++k) found.push_back(found[k] + i * place.strides[d]);
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool MemorySet::share(const Place& a, const Place& b) {
  if (a.count == 0 || b.count == 0) return false;
  if (a.dtype != b.dtype) return true;
  const auto last = [](const Place& place) {
    int64_t reach = place.offset;
    for (size_t d = 0; d < place.sizes.size(); ++d)
      reach += (place.sizes[d] - 1) * place.strides[d];
    return reach;
  };
  if (last(a) < b.offset || last(b) < a.offset) return false;
  if (std::max(a.count, b.count) > kExactUpTo) return true;
  const std::vector<int64_t> of_a = elements(a), of_b = elements(b);
  for (size_t i = 0, k = 0; i < of_a.size() && k < of_b.size();) {
    if (of_a[i] == of_b[k]) return true;
    of_a[i] < of_b[k] ? ++i : ++k;
  }
  return false;
}

bool share_elements(const at::Tensor& a, const at::Tensor& b) {
  const auto varies = [](const at::Tensor& t) {
    return t.unsafeGetTensorImpl()->has_symbolic_sizes();
  };
  if (varies(a) || varies(b)) return true;
  return MemorySet::share(MemorySet::place_of(a), MemorySet::place_of(b));
}

void MemorySet::clear() {
  storages_.clear();
  places_.clear();
}

bool MemorySet::add(const at::Tensor& t) {
  const c10::TensorImpl& impl = *t.unsafeGetTensorImpl();
  if (!impl.has_storage() || impl.has_symbolic_sizes()) return true;
  Place place = place_of(t);
  const bool is_new = storages_.add(place.storage);
  const bool apart =
      is_new || std::none_of(places_.begin(), places_.end(), [&](const Place& other) {
        return other.storage == place.storage && share(other, place);
      });
  places_.push_back(std::move(place));
  return apart;
}

} // namespace torch::dynamo
