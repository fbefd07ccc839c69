// Sorting through integer keys: each element becomes an unsigned number whose order is the
// element's (NaN last, -0 equal to 0), paired with its position. Pairs are all different, so any
// sort of them is stable and the same everywhere; one set of sorting code serves all dtypes.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/parallel/Stretches.h>

#include <cstring>
#include <limits>
#include <type_traits>

namespace at::native {

using SortTypes = RealTypesAndBool;

template <class U> U float_key(U bits, U sign) { return bits & sign ? ~bits : bits | sign; }

// Unsigned, at most 64 bits wide and no wider than T.
template <class T> uint64_t sort_key(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? 1 : 0;
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const U bits = static_cast<U>(value);
    return std::is_signed_v<T> ? static_cast<U>(bits ^ (U(1) << (8 * sizeof(U) - 1))) : bits;
  } else if constexpr (std::is_same_v<T, double>) {
    if (value != value) return std::numeric_limits<uint64_t>::max();
    const double plus = value + 0.0; // -0 becomes 0
    uint64_t bits;
    std::memcpy(&bits, &plus, 8);
    return float_key<uint64_t>(bits, uint64_t(1) << 63);
  } else {
    const float v = static_cast<float>(value) + 0.0f;
    if (v != v) return std::numeric_limits<uint32_t>::max();
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    return float_key<uint32_t>(bits, uint32_t(1) << 31);
  }
}

// The key of an element in memory. A bool is read as a byte because foreign memory may hold any.
template <class T> uint64_t sort_key_at(const T* p) {
  if constexpr (std::is_same_v<T, bool>)
    return *reinterpret_cast<const unsigned char*>(p) != 0;
  else
    return sort_key(*p);
}

// Bits a key can use.
template <class T> constexpr int key_bits() {
  if (std::is_same_v<T, bool>) return 1;
  if (std::is_integral_v<T> || std::is_same_v<T, double>) return 8 * sizeof(T);
  return 32;
}

// A key and its position. Narrow: both in one number, for keys of up to 32 bits and fewer than 2^32
// elements.
struct WideEntry {
  uint64_t key;
  int64_t position;
  friend bool operator<(const WideEntry& a, const WideEntry& b) {
    return a.key != b.key ? a.key < b.key : a.position < b.position;
  }
};
struct NarrowEntry {
  uint64_t both;
  friend bool operator<(const NarrowEntry& a, const NarrowEntry& b) { return a.both < b.both; }
};
inline WideEntry make_entry(uint64_t key, int64_t position, const WideEntry*) {
  return {key, position};
}
inline NarrowEntry make_entry(uint64_t key, int64_t position, const NarrowEntry*) {
  return {key << 32 | static_cast<uint64_t>(position)};
}
inline int64_t position_of(const WideEntry& e) { return e.position; }
inline int64_t position_of(const NarrowEntry& e) {
  return static_cast<int64_t>(e.both & 0xffffffff);
}
inline uint64_t key_of(const WideEntry& e) { return e.key; }
inline uint64_t key_of(const NarrowEntry& e) { return e.both >> 32; }

// What a thread takes at least of one row.
constexpr int64_t kRowGrain = 32768;

// Entries of n elements `stride` elements apart, in order. reversed: the largest key comes first.
template <class T, class Entry>
void make_entries(const T* data, int64_t stride, int64_t n, bool reversed, Entry* out) {
  constexpr int bits = key_bits<T>();
  constexpr uint64_t all = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  const uint64_t flip = reversed ? all : 0;
  parallel_for(0, n, kRowGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out[i] =
          make_entry(sort_key_at(data + i * stride) ^ flip, i, static_cast<const Entry*>(nullptr));
  });
}

// By key alone, for the algorithms of the standard library on long rows: it responds to Ctrl-C.
template <class Entry> struct ByKey {
  Steps* steps;
  bool operator()(const Entry& a, const Entry& b) const {
    steps->add(2);
    return key_of(a) < key_of(b);
  }
};

// Sorts n entries whose keys have `bits` bits. `scratch` has room for n entries.
void sort_entries(NarrowEntry* entries, NarrowEntry* scratch, int64_t n, int bits);
void sort_entries(WideEntry* entries, WideEntry* scratch, int64_t n, int bits);

// f(tag) with the entry type for n elements of T.
template <class T, class F> void entry_switch(int64_t n, const F& f) {
  if constexpr (key_bits<T>() <= 32) {
    if (n < (int64_t(1) << 32)) {
      f(c10::TypeTag<NarrowEntry>());
      return;
    }
  }
  f(c10::TypeTag<WideEntry>());
}

// The rows of a tensor along `dim`: for row r the offset (in elements) into a tensor with the same
// sizes apart from dim. A 0-dim tensor is one row of one element.
class Rows {
 public:
  Rows(const Tensor& t, int64_t dim);
  int64_t count() const { return count_; }
  int64_t length() const { return length_; }
  int64_t offset(IntArrayRef strides, int64_t row) const;

 private:
  DimVector sizes_; // 1 at dim
  int64_t count_ = 1;
  int64_t length_ = 1;
};

inline int64_t stride_along(const Tensor& t, int64_t dim) {
  return t.dim() == 0 ? 1 : t.stride(dim);
}

// Dense strides in the order of memory of t.
DimVector like_strides(const Tensor& t);

} // namespace at::native
