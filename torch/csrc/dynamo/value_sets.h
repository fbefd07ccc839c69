// Sets that one check of a guard tree fills: of addresses, and of memory that tensors show. They
// are emptied at the start of the next check by a stamp.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <vector>

namespace torch::dynamo {

class PointerSet {
 public:
  explicit PointerSet(size_t count) {
    size_t size = 8;
    while (size < 2 * count) size *= 2;
    slots_.resize(size);
  }
  void clear() { ++stamp_; }
  // False when the pointer was there.
  bool add(const void* p) {
    const size_t mask = slots_.size() - 1;
    size_t at = (reinterpret_cast<uintptr_t>(p) >> 4) * 0x9E3779B97F4A7C15u >> 20;
    for (size_t tries = 0; tries <= mask; ++tries, ++at) {
      Slot& slot = slots_[at & mask];
      if (slot.stamp != stamp_) {
        slot = {p, stamp_};
        return true;
      }
      if (slot.pointer == p) return false;
    }
    return false;
  }

 private:
  struct Slot {
    const void* pointer = nullptr;
    uint64_t stamp = 0;
  };
  std::vector<Slot> slots_;
  uint64_t stamp_ = 1;
};

// Whether two tensors of one storage have an element in common. Where one has more elements than a
// million their ranges decide; views of other dtypes and symbolic sizes are taken to have one.
bool share_elements(const at::Tensor& a, const at::Tensor& b);

// Tensors of which no two have an element in common.
class MemorySet {
 public:
  explicit MemorySet(size_t count) : storages_(count) {}
  void clear();
  // False when the tensor has an element in common with one that was added.
  bool add(const at::Tensor& t);

 private:
  // Which memory a tensor shows. The tensor itself may be gone when the next one comes.
  struct Place {
    const void* storage;
    at::ScalarType dtype;
    int64_t offset, count;
    at::DimVector sizes, strides;
  };
  friend bool share_elements(const at::Tensor& a, const at::Tensor& b);
  static Place place_of(const at::Tensor& t);
  static bool share(const Place& a, const Place& b);
  static std::vector<int64_t> elements(const Place& place);

  PointerSet storages_;
  std::vector<Place> places_;
};

} // namespace torch::dynamo
