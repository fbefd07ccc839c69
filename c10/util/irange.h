// for (const auto i : c10::irange(n)): a counted loop whose counter cannot be changed.
#pragma once
#include <cstddef>
#include <iterator>
#include <type_traits>

namespace c10 {

template <class I> class integer_range {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = I;
    using difference_type = std::ptrdiff_t;
    using pointer = const I*;
    using reference = I;
    constexpr explicit iterator(I value) : value_(value) {}
    constexpr I operator*() const { return value_; }
    constexpr iterator& operator++() {
      ++value_;
      return *this;
    }
    constexpr iterator operator++(int) {
      const iterator before = *this;
      ++value_;
      return before;
    }
    constexpr bool operator==(const iterator& o) const { return value_ == o.value_; }
    constexpr bool operator!=(const iterator& o) const { return value_ != o.value_; }

   private:
    I value_;
  };
  constexpr integer_range(I begin, I end) : begin_(begin), end_(end < begin ? begin : end) {}
  constexpr iterator begin() const { return iterator(begin_); }
  constexpr iterator end() const { return iterator(end_); }

 private:
  I begin_, end_;
};

template <class A, class B,
          std::enable_if_t<std::is_integral_v<A> && std::is_integral_v<B>, int> = 0>
constexpr integer_range<B> irange(A begin, B end) {
  return {static_cast<B>(begin), end};
}
template <class I, std::enable_if_t<std::is_integral_v<I>, int> = 0>
constexpr integer_range<I> irange(I end) {
  return {I(0), end};
}

} // namespace c10
