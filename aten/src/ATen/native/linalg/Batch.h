// What all kernels of this family share: batches of column-major matrices, the checks PyTorch makes
// on them, and the loop over a batch.
#pragma once
#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/parallel/Stretches.h>

namespace at::native::linalg {

// The element types LAPACK has.
using LapackTypes = Types<float, double, c10::complex<float>, c10::complex<double>>;

// ---- geometry
// Strides of matrices stored column after column, one matrix after the other.
DimVector column_strides(IntArrayRef sizes);
// Strides of the same matrices stored row after row.
DimVector row_strides(IntArrayRef sizes);
// All dimensions but the last two.
inline IntArrayRef batch_sizes(const Tensor& t) { return t.sizes().slice(0, t.dim() - 2); }
DimVector with_matrix(IntArrayRef batch, int64_t rows, int64_t cols);
DimVector with_vector(IntArrayRef batch, int64_t length);
int64_t count_of(IntArrayRef batch);
// A size as LAPACK's integer.
int to_int(int64_t size);

// A copy of `t`, broadcast to these batch dimensions, in column-major order.
Tensor column_copy(const Tensor& t, IntArrayRef batch);
Tensor column_copy(const Tensor& t);
Tensor contiguous_matrices(const Tensor& t, IntArrayRef batch);

// ---- checks; `what` is the name the message begins with
void check_matrices(const Tensor& a, const char* what, const char* name = "A");
void check_square(const Tensor& a, const char* what, const char* name = "A");
void check_float(const Tensor& a, const char* what, bool low_precision = true);
void check_same_dtype(const Tensor& a, const Tensor& b, const char* what, const char* a_name,
                      const char* b_name);
// AX = B or XA = B by the last two dimensions.
void check_system(const Tensor& a, const Tensor& b, bool left, const char* what);
bool all_finite(const Tensor& t);
DimVector broadcast_batches(const Tensor& a, const Tensor& b);
// Whether B of linalg.solve holds one vector per matrix of A.
bool is_vector_system(const Tensor& a, const Tensor& b);

// Raises PyTorch's error for the first status in `info` (int32) that is not 0.
void check_info(const Tensor& info, std::string_view api, bool is_matrix);

// f(first, last) over the matrices of a batch, in parallel when `cost` (about the number of
// multiplications per matrix) pays. The chunks depend on the batch and the cost only.
template <class F> void for_batch(int64_t batch, double cost, const F& f) {
  constexpr double kWorthAThread = 32768;
  const double per_chunk = kWorthAThread / std::max(cost, 1.0);
  const int64_t grain = per_chunk < 1 ? 1 : static_cast<int64_t>(std::min(per_chunk, 1e9));
  if (static_cast<double>(batch) * cost < 4 * kWorthAThread) {
    parallel_for(0, batch, grain, f);
    return;
  }
  BlockingRegion unlocked;
  const int64_t steps = static_cast<int64_t>(std::min(cost, 1e15));
  parallel_for(0, batch, grain, [&](int64_t b, int64_t e) { serial_for(b, e, steps, f); });
}
inline double cube(int64_t n) {
  return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
}

// The element types of `t`, with the data of each operand as T*.
template <class F> void switch_types(const Tensor& t, const char* name, const F& f) {
  dtype_switch<LapackTypes>(t.scalar_type(), name, f);
}
template <class T> T* data_of(const Tensor& t) { return static_cast<T*>(t.data_ptr()); }

} // namespace at::native::linalg
