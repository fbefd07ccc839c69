// An array of D numbers that a single number stands for as well: kernel sizes, strides, padding.
#pragma once
#include <array>
#include <initializer_list>
#include <optional>
#include <vector>

#include <c10/util/ArrayRef.h>

namespace torch {

template <size_t D, class T = int64_t> class ExpandingArray {
 public:
  ExpandingArray(std::initializer_list<T> list) { assign(list.begin(), list.size()); }
  ExpandingArray(std::vector<T> list) { assign(list.data(), list.size()); }
  ExpandingArray(c10::ArrayRef<T> list) { assign(list.data(), list.size()); }
  ExpandingArray(T value) { values_.fill(value); }
  ExpandingArray(const std::array<T, D>& values) : values_(values) {}

  std::array<T, D>& operator*() { return values_; }
  const std::array<T, D>& operator*() const { return values_; }
  std::array<T, D>* operator->() { return &values_; }
  const std::array<T, D>* operator->() const { return &values_; }
  operator c10::ArrayRef<T>() const { return values_; }
  size_t size() const noexcept { return D; }

 protected:
  template <class U> void assign(const U* data, size_t size) {
    TORCH_CHECK(size == D, "Expected ", D, " values, but instead got ", size);
    for (size_t i = 0; i < D; ++i) values_[i] = data[i];
  }
  std::array<T, D> values_;
};

// The same where elements may be left out (output sizes of adaptive pooling).
template <size_t D, class T = int64_t> class ExpandingArrayWithOptionalElem
    : public ExpandingArray<D, std::optional<T>> {
  using Base = ExpandingArray<D, std::optional<T>>;

 public:
  using Base::Base;
  ExpandingArrayWithOptionalElem(std::initializer_list<T> list) : Base(std::nullopt) {
    this->assign(list.begin(), list.size());
  }
  ExpandingArrayWithOptionalElem(std::vector<T> list) : Base(std::nullopt) {
    this->assign(list.data(), list.size());
  }
  ExpandingArrayWithOptionalElem(T value) : Base(std::optional<T>(value)) {}
  ExpandingArrayWithOptionalElem(const std::array<T, D>& values) : Base(std::nullopt) {
    this->assign(values.data(), D);
  }
};

// One number is written alone, several as "[1, 2]".
template <class Stream, size_t D, class T>
Stream& operator<<(Stream& out, const ExpandingArray<D, T>& array) {
  const auto write = [&](const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, T> && std::is_arithmetic_v<T>)
      out << value;
    else if (value)
      out << *value;
    else
      out << "None";
  };
  if (D > 1) out << '[';
  for (size_t i = 0; i < D; ++i) {
    if (i) out << ", ";
    write((*array)[i]);
  }
  if (D > 1) out << ']';
  return out;
}

} // namespace torch
