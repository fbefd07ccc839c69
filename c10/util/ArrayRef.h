// A non-owning view of a constant array: two words, trivially copyable, passed by value.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <c10/util/Exception.h>

namespace c10 {

template <class T, unsigned N> class SmallVector;

namespace detail {
[[noreturn]] C10_API void throw_no_element(const char* asked);
[[noreturn]] C10_API void throw_bad_slice(size_t start, size_t count, size_t size);
} // namespace detail

template <class T> class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = size_t;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), size_(end - begin) {}
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  template <class A> ArrayRef(const std::vector<T, A>& v) : data_(v.data()), size_(v.size()) {}
  template <unsigned N> ArrayRef(const SmallVector<T, N>& v) : data_(v.data()), size_(v.size()) {}
  template <size_t N> constexpr ArrayRef(const T (&a)[N]) : data_(a), size_(N) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
  // Valid until the end of the full expression, which is what argument passing needs.
  constexpr ArrayRef(std::initializer_list<T> list) : data_(list.begin()), size_(list.size()) {}
#pragma GCC diagnostic pop

  CRESSET_USER_MEMBERS(ArrayRef) constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& front() const {
    if (size_ == 0) detail::throw_no_element("front()");
    return data_[0];
  }
  constexpr const T& back() const {
    if (size_ == 0) detail::throw_no_element("back()");
    return data_[size_ - 1];
  }
  // Error where the part is not within the list.
  constexpr ArrayRef slice(size_t start, size_t count) const {
    if (start > size_ || count > size_ - start) detail::throw_bad_slice(start, count, size_);
    return {data_ + start, count};
  }
  constexpr ArrayRef slice(size_t start) const {
    if (start > size_) detail::throw_bad_slice(start, 0, size_);
    return {data_ + start, size_ - start};
  }
  bool equals(ArrayRef o) const {
    if (size_ != o.size_) return false;
    for (size_t i = 0; i < size_; ++i)
      if (!(data_[i] == o.data_[i])) return false;
    return true;
  }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  friend bool operator==(ArrayRef a, ArrayRef b) { return a.equals(b); }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !a.equals(b); }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

using IntArrayRef = ArrayRef<int64_t>;

// A list that may be absent, as a parameter: `f({0})` passes a list of one, which lives to the end
// of the call. std::optional alone would view a temporary that dies inside its own constructor.
template <class T> class OptionalArrayRef : public std::optional<ArrayRef<T>> {
  using Base = std::optional<ArrayRef<T>>;
  template <class C>
  static constexpr bool is_list = std::is_convertible_v<const C&, ArrayRef<T>> &&
                                  (!std::is_arithmetic_v<C> || std::is_same_v<C, T>);

 public:
  CRESSET_USER_MEMBERS(OptionalArrayRef) constexpr OptionalArrayRef() = default;
  constexpr OptionalArrayRef(std::nullopt_t) {}
  constexpr OptionalArrayRef(const Base& list) : Base(list) {}
  constexpr OptionalArrayRef(std::initializer_list<T> list) : Base(ArrayRef<T>(list)) {}
  template <class C, class = std::enable_if_t<is_list<C>>> constexpr OptionalArrayRef(const C& list)
      : Base(ArrayRef<T>(list)) {}
};
using OptionalIntArrayRef = OptionalArrayRef<int64_t>;

// "[2, 3]": how shapes appear in messages.
template <class T> void append(std::string& out, ArrayRef<T> list) {
  out += '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out += ", ";
    append(out, list[i]);
  }
  out += ']';
}

} // namespace c10

#ifndef CRESSET_KERNEL_TU
#include <c10/util/ArrayRefUser.h>
#endif
