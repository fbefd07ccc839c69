// Products of sparse matrices: with dense ones row by row over compressed rows, in parallel over
// rows, and with sparse ones by merging the rows that a row names.
#include <algorithm>
#include <limits>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/CTypeName.h>
#include <ATen/native/Checks.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/sparse/DeviceIndex.h>
#include <ATen/native/sparse/DeviceProduct.h>
#include <ATen/native/sparse/SparseTensor.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/t.h>
#include <ATen/ops/zeros.h>
#include <ATen/parallel/Stretches.h>
#include <c10/core/ScalarType.h>

namespace at::sparse {
namespace {
using native::AllTypes;
using native::dtype_switch;

void check_matrices(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.dim() == 2 && other.dim() == 2, "mm: expected two matrices, got ", self.dim(),
              "-D and ", other.dim(), "-D tensors");
  native::check_multiplies(self, other);
  TORCH_CHECK(self.scalar_type() == other.scalar_type(),
              "expected m1 and m2 to have the same dtype, but got: ",
              native::c_type_name(self.scalar_type()),
              " != ", native::c_type_name(other.scalar_type()));
}

on_device::RowLists row_lists(const Tensor& matrix) {
  const Tensor csr = to_layout(matrix, Layout::SparseCsr, std::nullopt, std::nullopt);
  const SparseTensorImpl& s = compressed(csr, "mm");
  TORCH_CHECK_NOT_IMPLEMENTED(s.indices.dim() == 1 && s.dense_dim == 0,
                              "mm is not implemented for batched or hybrid tensors of layout ",
                              matrix.layout());
  return {s.indices.to(kLong).contiguous(), s.plain.to(kLong).contiguous(), s.values.contiguous()};
}

void check_one_device(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.device() == b.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ",
              a.device(), " and ", b.device(), "!");
}

// Rows of a matrix as starts and columns, every number checked against its size.
struct Rows : on_device::RowLists {
  explicit Rows(const Tensor& matrix) : RowLists(row_lists(matrix)) {
    const int64_t nnz = columns.numel(), n = starts.numel() - 1;
    start = starts.data_ptr<int64_t>();
    column = nnz > 0 ? columns.data_ptr<int64_t>() : nullptr;
    bool good = start[0] == 0 && start[n] == nnz;
    Steps steps;
    for (int64_t i = 0; good && i < n; ++i, steps.add(1))
      good = start[i] <= start[i + 1] && start[i + 1] <= nnz;
    const int64_t width = matrix.size(1);
    for (int64_t i = 0; good && i < nnz; ++i, steps.add(1))
      good = column[i] >= 0 && column[i] < width;
    TORCH_CHECK_INDEX(good, "mm: the indices of the sparse matrix are out of range");
  }
  const int64_t* start;
  const int64_t* column;
};
} // namespace

Tensor times_dense(const Tensor& self, const Tensor& dense) {
  check_matrices(self, dense);
  check_one_device(self, dense);
  if (on_device::applies_to(dense))
    return on_device::times_dense(row_lists(self), self.size(0), dense);
  const Rows rows(self);
  const int64_t n = self.size(0), k = dense.size(1);
  Tensor out = at::zeros({n, k}, TensorOptions(dense.scalar_type()));
  const Tensor held = dense.contiguous();
  if (out.numel() == 0 || rows.values.numel() == 0) return out;
  dtype_switch<AllTypes>(dense.scalar_type(), "addmm_sparse_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    // Half-width types are summed in single precision.
    constexpr bool kNarrow = std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>;
    using Acc = std::conditional_t<kNarrow, float, T>;
    const T* value = rows.values.template data_ptr<T>();
    const T* from = held.template data_ptr<T>();
    T* to = out.template data_ptr<T>();
    at::parallel_for(0, n, std::max<int64_t>(1, 4096 / (k + 1)), [&](int64_t b, int64_t e) {
      std::vector<Acc> sum(static_cast<size_t>(k));
      Steps steps;
      for (int64_t i = b; i < e; ++i) {
        std::fill(sum.begin(), sum.end(), Acc(0));
        for (int64_t p = rows.start[i]; p < rows.start[i + 1]; ++p) {
          steps.add(4 + k);
          const Acc scale = static_cast<Acc>(value[p]);
          const T* row = from + rows.column[p] * k;
          for (int64_t j = 0; j < k; ++j)
            sum[static_cast<size_t>(j)] += scale * static_cast<Acc>(row[j]);
        }
        for (int64_t j = 0; j < k; ++j) to[i * k + j] = static_cast<T>(sum[static_cast<size_t>(j)]);
      }
    });
  });
  return out;
}

namespace {
// The rows of a product that one chunk made: per row its length, then all columns and values.
template <class T> struct ChunkRows {
  std::vector<int64_t> lengths, columns;
  std::vector<T> values;
};

// Rows [begin, end) of a * b. `sum` and `seen` have an entry for each column.
template <class T> void merge_rows(const Rows& a, const T* va, const Rows& b, const T* vb,
                                   int64_t begin, int64_t end, int64_t columns, ChunkRows<T>& out) {
  std::vector<T> sum(static_cast<size_t>(columns));
  std::vector<int64_t> seen(static_cast<size_t>(columns), -1), row;
  Steps steps;
  for (int64_t i = begin; i < end; ++i) {
    row.clear();
    for (int64_t p = a.start[i]; p < a.start[i + 1]; ++p) {
      const int64_t m = a.column[p];
      steps.add(4 + 4 * (b.start[m + 1] - b.start[m]));
      for (int64_t q = b.start[m]; q < b.start[m + 1]; ++q) {
        const size_t c = static_cast<size_t>(b.column[q]);
        if (seen[c] != i) {
          seen[c] = i;
          sum[c] = T(0);
          row.push_back(b.column[q]);
        }
        sum[c] = sum[c] + va[p] * vb[q];
      }
    }
    std::sort(row.begin(), row.end());
    steps.add(32 * static_cast<int64_t>(row.size()));
    for (int64_t c : row) out.values.push_back(sum[static_cast<size_t>(c)]);
    out.columns.insert(out.columns.end(), row.begin(), row.end());
    out.lengths.push_back(static_cast<int64_t>(row.size()));
  }
}
} // namespace

namespace {
// All products of elements, those of equal places then summed.
Tensor times_on_device(const Tensor& self, const Tensor& other) {
  const on_device::Elements all =
      on_device::products_of_elements(row_lists(self), row_lists(other));
  const int64_t size[] = {self.size(0), other.size(1)};
  const Tensor out = coalesced(make_coo(all.indices, all.values, size, false));
  if (self.layout() == Layout::Sparse) return out;
  return to_layout(out, Layout::SparseCsr, std::nullopt, std::nullopt);
}
} // namespace

Tensor times_sparse(const Tensor& self, const Tensor& other) {
  check_matrices(self, other);
  check_one_device(self, other);
  if (on_device::applies_to(any_sparse(self, "mm").indices)) return times_on_device(self, other);
  const Rows a(self), b(other);
  const int64_t n = self.size(0), k = other.size(1);
  Tensor starts = at::zeros({n + 1}, TensorOptions(kLong)), plain, values;
  dtype_switch<AllTypes>(self.scalar_type(), "sparse_sparse_mm_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* va = a.values.numel() ? a.values.template data_ptr<T>() : nullptr;
    const T* vb = b.values.numel() ? b.values.template data_ptr<T>() : nullptr;
    // Every chunk pays for a list of all columns, hence few chunks.
    const int64_t grain = std::max<int64_t>(64, n / 16);
    std::vector<ChunkRows<T>> chunks(static_cast<size_t>(at::chunk_count(n, grain)));
    at::parallel_for(0, n, grain, [&](int64_t begin, int64_t end) {
      merge_rows(a, va, b, vb, begin, end, k,
                 chunks[static_cast<size_t>(begin / at::chunk_size(n, grain))]);
    });
    int64_t* start = starts.data_ptr<int64_t>();
    int64_t row = 0, total = 0;
    for (const ChunkRows<T>& chunk : chunks)
      for (int64_t length : chunk.lengths) start[++row] = total += length;
    plain = detail::empty({total}, kLong);
    values = detail::empty({total}, self.scalar_type());
    if (total == 0) return;
    int64_t* column = plain.data_ptr<int64_t>();
    T* value = values.template data_ptr<T>();
    for (const ChunkRows<T>& chunk : chunks) {
      column = std::copy(chunk.columns.begin(), chunk.columns.end(), column);
      value = std::copy(chunk.values.begin(), chunk.values.end(), value);
    }
  });
  const int64_t size[] = {n, k};
  const Tensor csr = make_compressed(Layout::SparseCsr, starts, plain, values, size);
  return self.layout() == Layout::Sparse ? to_coo(csr) : csr;
}

namespace {
// Substitution in place over the columns [begin, end) of x; rows are taken in the order in which
// what they need is known.
template <class T> void substitute(const Rows& rows, const T* value, T* x, int64_t n, int64_t width,
                                   int64_t begin, int64_t end, bool upper, bool unit) {
  Steps steps;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = upper ? n - 1 - step : step;
    T diagonal = T(unit ? 1 : 0);
    for (int64_t p = rows.start[i]; p < rows.start[i + 1]; ++p) {
      const int64_t j = rows.column[p];
      if (j == i && !unit) diagonal = diagonal + value[p];
      if (upper ? j <= i : j >= i) continue;
      for (int64_t k = begin; k < end; ++k)
        x[i * width + k] = x[i * width + k] - value[p] * x[j * width + k];
      steps.add(end - begin);
    }
    for (int64_t k = begin; k < end; ++k) x[i * width + k] = x[i * width + k] / diagonal;
    steps.add(4 + end - begin);
  }
}
} // namespace

Tensor solve_triangle(const Tensor& matrix, const Tensor& b, bool upper, bool transpose,
                      bool unitriangular) {
  TORCH_CHECK(matrix.dim() == 2 && matrix.size(0) == matrix.size(1),
              "triangular_solve: A must be a square matrix, but it has size ", matrix.sizes());
  TORCH_CHECK(b.layout() == kStrided && b.dim() == 2 && b.size(0) == matrix.size(0),
              "triangular_solve: Incompatible matrix sizes for triangular_solve: each A matrix is ",
              matrix.size(0), " by ", matrix.size(1), " but each b matrix is ", b.sizes());
  TORCH_CHECK(matrix.scalar_type() == b.scalar_type(),
              "triangular_solve: Expected b and A to have the same dtype, but got ",
              b.scalar_type(), " and ", matrix.scalar_type());
  check_one_device(matrix, b);
  const Tensor used = transpose ? at::t(matrix) : matrix;
  if (on_device::applies_to(b))
    return at::linalg_solve_triangular(to_dense(used), b, upper != transpose, true, unitriangular);
  const Rows rows(used);
  Tensor x = b.contiguous().clone();
  const int64_t n = b.size(0), width = b.size(1);
  if (x.numel() == 0) return x;
  dtype_switch<native::FloatingAndComplexTypes>(b.scalar_type(), "triangular_solve", [&](auto tag) {
    using T = typename decltype(tag)::type;
    // A matrix without elements has no solution, nor a quotient that says so.
    if (rows.values.numel() == 0 && !unitriangular) {
      x.fill_(std::numeric_limits<double>::quiet_NaN());
      return;
    }
    const T* value = rows.values.numel() > 0 ? rows.values.template data_ptr<T>() : nullptr;
    T* to = x.template data_ptr<T>();
    at::parallel_for(0, width, 16, [&](int64_t begin, int64_t end) {
      substitute(rows, value, to, n, width, begin, end, upper != transpose, unitriangular);
    });
  });
  return x;
}

} // namespace at::sparse
