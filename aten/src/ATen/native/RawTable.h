// An array whose elements are not set when it is made. A std::vector of gigabytes would write them
// all at once; here that is left to loops that are shared between threads and respond to Ctrl-C.
#pragma once
#include <cstdint>
#include <memory>

namespace at::native {

template <class T> class RawTable {
 public:
  RawTable() = default;
  explicit RawTable(int64_t size) : data_(new T[static_cast<size_t>(size)]), size_(size) {}

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data_[static_cast<size_t>(i)]; }
  const T& operator[](int64_t i) const { return data_[static_cast<size_t>(i)]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  std::unique_ptr<T[]> data_;
  int64_t size_ = 0;
};

} // namespace at::native
