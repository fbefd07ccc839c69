// Small pieces that the indexing operators share: index tensors in one form, offsets from indices,
// and the walk along one dimension.
#pragma once
#include <ATen/native/index/RowWalk.h>

#include <memory>

namespace at::native {

// A list of numbers that are all about to be written: short ones without allocation, long ones
// without being filled first.
class Offsets {
 public:
  // Contents are not kept.
  void resize(size_t n) {
    if (n > kInline) large_.reset(new int64_t[n]);
    data_ = n > kInline ? large_.get() : small_;
    size_ = n;
  }
  int64_t* data() { return data_; }
  const int64_t* data() const { return data_; }
  size_t size() const { return size_; }
  int64_t& operator[](size_t i) { return data_[i]; }

  Offsets() = default;
  Offsets(const Offsets&) = delete;
  Offsets& operator=(const Offsets&) = delete;

 private:
  static constexpr size_t kInline = 64;
  int64_t small_[kInline];
  std::unique_ptr<int64_t[]> large_;
  int64_t* data_ = small_;
  size_t size_ = 0;
};

// The tensor itself, or its one element as a vector.
Tensor as_vector_if_scalar(const Tensor& t);

// The index as contiguous int64, without a copy where it is so already.
Tensor long_contiguous(const Tensor& index);

// Throws unless these are a table and positions that embedding takes.
void check_embedding(const Tensor& weight, const Tensor& indices);

// Elements share no memory as far as strides tell.
bool surely_disjoint(const Tensor& t);

// Error handed to check_indices.
using OutOfRange = void (*)(int64_t index, int64_t dim, int64_t size);
[[noreturn]] void throw_index_out_of_bounds(int64_t index, int64_t dim, int64_t size); // IndexError
[[noreturn]] void throw_runtime_out_of_bounds(int64_t index, int64_t dim,
                                              int64_t size); // RuntimeError
[[noreturn]] void throw_out_of_range_in_self(int64_t index, int64_t dim,
                                             int64_t size); // IndexError

// offsets[i] = index[i] * stride for n indices, all checked against `size`. wrap: negative indices
// count from the end. The lowest bad position is reported.
void index_offsets(const int64_t* index, int64_t n, int64_t size, int64_t dim, int64_t stride,
                   bool wrap, OutOfRange fail, Offsets& offsets);

// The walk between `indexed` and `linear`, equal in all dimensions but `dim`. Offsets are the
// caller's.
RowWalk walk_along(const Tensor& indexed, const Tensor& linear, int64_t dim);

inline char* bytes_of(const Tensor& t) { return static_cast<char*>(t.data_ptr()); }

} // namespace at::native
