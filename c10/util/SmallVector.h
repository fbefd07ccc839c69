// A vector with room for N elements inside itself. Shapes live in these: no allocation for the
// ranks people use, which is what keeps view and iterator set-up cheap.
#pragma once
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include <c10/util/ArrayRef.h>

namespace c10 {

template <class T, unsigned N> class SmallVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() : data_(inline_data()) {}
  explicit SmallVector(size_t n, const T& value = T()) : SmallVector() { resize(n, value); }
  SmallVector(std::initializer_list<T> list) : SmallVector() { append(list.begin(), list.end()); }
  SmallVector(ArrayRef<T> list) : SmallVector() { append(list.begin(), list.end()); }
  template <class It, class = decltype(*std::declval<It>()),
            class = decltype(++std::declval<It&>())>
  SmallVector(It first, It last) : SmallVector() {
    append(first, last);
  }
  SmallVector(const SmallVector& o) : SmallVector() { append(o.begin(), o.end()); }
  SmallVector(SmallVector&& o) noexcept : SmallVector() { steal(o); }
  ~SmallVector() {
    destroy(begin(), end());
    release();
  }
  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) assign(o.begin(), o.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this != &o) {
      clear();
      release();
      data_ = inline_data();
      capacity_ = N;
      steal(o);
    }
    return *this;
  }
  SmallVector& operator=(ArrayRef<T> o) {
    assign(o.begin(), o.end());
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }
  void push_back(T value) { emplace_back(std::move(value)); }
  template <class... Args> T& emplace_back(Args&&... args) {
    if (size_ == capacity_) grow(size_ + 1);
    return *new (data_ + size_++) T(std::forward<Args>(args)...);
  }
  void pop_back() { data_[--size_].~T(); }
  void clear() {
    destroy(begin(), end());
    size_ = 0;
  }
  void resize(size_t n, const T& value = T()) {
    while (size_ > n) pop_back();
    reserve(n);
    while (size_ < n) emplace_back(value);
  }
  CRESSET_USER_MEMBERS(SmallVector) template <class It> void append(It first, It last) {
    for (; first != last; ++first) emplace_back(*first);
  }
  template <class It> void assign(It first, It last) {
    clear();
    append(first, last);
  }
  T* insert(T* where, T value) {
    const size_t at = where - data_;
    emplace_back(std::move(value));
    for (size_t i = size_ - 1; i > at; --i) std::swap(data_[i], data_[i - 1]);
    return data_ + at;
  }
  T* erase(T* where) {
    for (T* p = where; p + 1 != end(); ++p) *p = std::move(p[1]);
    pop_back();
    return where;
  }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return ArrayRef<T>(a) == ArrayRef<T>(b);
  }
  friend bool operator!=(const SmallVector& a, const SmallVector& b) { return !(a == b); }

 private:
  T* inline_data() { return reinterpret_cast<T*>(inline_); }
  bool is_inline() const { return data_ == reinterpret_cast<const T*>(inline_); }
  static void destroy(T* first, T* last) {
    if constexpr (!std::is_trivially_destructible_v<T>)
      for (; first != last; ++first) first->~T();
  }
  void release() {
    if (!is_inline()) std::free(data_);
  }
  void steal(SmallVector& o) {
    if (o.is_inline()) {
      for (T& x : o) emplace_back(std::move(x));
      o.clear();
    } else {
      data_ = o.data_, size_ = o.size_, capacity_ = o.capacity_;
      o.data_ = o.inline_data(), o.size_ = 0, o.capacity_ = N;
    }
  }
  C10_NOINLINE void grow(size_t least) {
    const size_t n = least > 2 * size_t(capacity_) ? least : 2 * size_t(capacity_);
    T* fresh = static_cast<T*>(std::malloc(n * sizeof(T)));
    if (!fresh) throw std::bad_alloc();
    for (size_t i = 0; i < size_; ++i) {
      new (fresh + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    release();
    data_ = fresh;
    capacity_ = static_cast<uint32_t>(n);
  }

  T* data_;
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  alignas(T) unsigned char inline_[N * sizeof(T)];
};

// Sizes or strides of one tensor.
using DimVector = SmallVector<int64_t, 6>;

} // namespace c10
