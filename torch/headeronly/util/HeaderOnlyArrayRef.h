// A view of an array that someone else owns, without any part of this library: indexing by at() is
// checked with STD_TORCH_CHECK.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <torch/headeronly/util/Exception.h>

namespace torch::headeronly {

template <class T> class HeaderOnlyArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  constexpr HeaderOnlyArrayRef() = default;
  constexpr HeaderOnlyArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr HeaderOnlyArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr HeaderOnlyArrayRef(const T* begin, const T* end)
      : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  template <class A> HeaderOnlyArrayRef(const std::vector<T, A>& list)
      : data_(list.data()), size_(list.size()) {}
  // Lives as long as the list: to the end of the call it is an argument of.
  constexpr HeaderOnlyArrayRef(const std::initializer_list<T>& list)
      : HeaderOnlyArrayRef(list.begin(), list.size()) {}

  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const {
    STD_TORCH_CHECK(i < size_, "HeaderOnlyArrayRef: invalid index ", i, " for length ", size_);
    return data_[i];
  }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  HeaderOnlyArrayRef slice(size_t start, size_t count) const {
    STD_TORCH_CHECK(start <= size_ && count <= size_ - start, "HeaderOnlyArrayRef: invalid slice");
    return {data_ + start, count};
  }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  bool equals(HeaderOnlyArrayRef o) const {
    if (size_ != o.size_) return false;
    for (size_t i = 0; i < size_; ++i)
      if (!(data_[i] == o.data_[i])) return false;
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};
template <class T> bool operator==(HeaderOnlyArrayRef<T> a, HeaderOnlyArrayRef<T> b) {
  return a.equals(b);
}
using IntHeaderOnlyArrayRef = HeaderOnlyArrayRef<int64_t>;

} // namespace torch::headeronly
