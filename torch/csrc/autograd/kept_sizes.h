// Geometry that a node keeps of the forward pass: plain numbers, or symbols where the pass was
// traced with symbolic sizes. A formula that is written for symbolic numbers takes them as they
// are; for every other one they are guarded to be what they are in the traced run.
#pragma once
#include <c10/core/SymInt.h>
#include <c10/util/SmallVector.h>

namespace torch::autograd {

class KeptInt : public c10::SymInt {
 public:
  KeptInt() = default;
  KeptInt(c10::SymInt value) : c10::SymInt(value) {}
  KeptInt(int64_t value) : c10::SymInt(value) {}
  operator int64_t() const { return guard_int(); }
};

class KeptSizes {
 public:
  KeptSizes() = default;
  KeptSizes(c10::SymIntArrayRef list) : list_(list) {}
  KeptSizes(c10::IntArrayRef list) : KeptSizes(c10::as_symint_array(list)) {}
  operator c10::SymIntArrayRef() const { return list_; }
  operator c10::IntArrayRef() const { return c10::as_int_array(c10::SymIntArrayRef(list_)); }
  size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  KeptInt operator[](size_t i) const { return list_[i]; }
  KeptInt back() const { return list_.back(); }
  // Whether every number is the same one: nothing is guarded.
  bool is_same(c10::SymIntArrayRef other) const {
    if (other.size() != list_.size()) return false;
    for (size_t i = 0; i < list_.size(); ++i)
      if (list_[i].raw() != other[i].raw()) return false;
    return true;
  }

 private:
  c10::SmallVector<c10::SymInt, 6> list_;
};

// Sizes of either kind, as an argument of a formula that is written for both. Does not own them.
class SizesRef {
 public:
  SizesRef(c10::SymIntArrayRef list) : list_(list) {}
  SizesRef(c10::IntArrayRef list) : list_(c10::as_symint_array(list)) {}
  SizesRef(const KeptSizes& list) : list_(list) {}
  operator c10::SymIntArrayRef() const { return list_; }
  size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  c10::SymInt operator[](size_t i) const { return list_[i]; }
  c10::SymInt back() const { return list_.back(); }
  const c10::SymInt* begin() const { return list_.begin(); }
  const c10::SymInt* end() const { return list_.end(); }

 private:
  c10::SymIntArrayRef list_;
};

} // namespace torch::autograd
