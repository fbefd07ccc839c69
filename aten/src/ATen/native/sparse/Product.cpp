// Products of sparse matrices: with dense ones row by row over compressed rows, in parallel over
// rows, and with sparse ones by merging the rows that a row names.
#include <algorithm>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/sparse/SparseTensor.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>
#include <ATen/parallel/Parallel.h>
#include <c10/core/ScalarType.h>

namespace at::sparse {
namespace {
using native::AllTypes;
using native::dtype_switch;

void check_matrices(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.dim() == 2 && other.dim() == 2, "mm: expected two matrices, got ",
              self.dim(), "-D and ", other.dim(), "-D tensors");
  TORCH_CHECK(self.size(1) == other.size(0), "mat1 and mat2 shapes cannot be multiplied (",
              self.size(0), "x", self.size(1), " and ", other.size(0), "x", other.size(1), ")");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(),
              "expected m1 and m2 to have the same dtype, but got: ", self.scalar_type(),
              " != ", other.scalar_type());
}

// Rows of a matrix as starts and columns, every number checked against its size.
struct Rows {
  explicit Rows(const Tensor& matrix)
      : csr(to_layout(matrix, Layout::SparseCsr, std::nullopt, std::nullopt)) {
    const SparseTensorImpl& s = compressed(csr, "mm");
    TORCH_CHECK_NOT_IMPLEMENTED(s.indices.dim() == 1 && s.dense_dim == 0,
                                "mm is not implemented for batched or hybrid tensors of layout ",
                                matrix.layout());
    starts = s.indices.to(kLong).contiguous();
    columns = s.plain.to(kLong).contiguous();
    values = s.values.contiguous();
    const int64_t nnz = columns.numel(), n = starts.numel() - 1;
    start = starts.data_ptr<int64_t>();
    column = nnz > 0 ? columns.data_ptr<int64_t>() : nullptr;
    bool good = start[0] == 0 && start[n] == nnz;
    for (int64_t i = 0; good && i < n; ++i) good = start[i] <= start[i + 1] && start[i + 1] <= nnz;
    for (int64_t i = 0; good && i < nnz; ++i) good = column[i] >= 0 && column[i] < matrix.size(1);
    TORCH_CHECK_INDEX(good, "mm: the indices of the sparse matrix are out of range");
  }
  Tensor csr, starts, columns, values;
  const int64_t* start;
  const int64_t* column;
};
} // namespace

Tensor times_dense(const Tensor& self, const Tensor& dense) {
  check_matrices(self, dense);
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
      for (int64_t i = b; i < e; ++i) {
        std::fill(sum.begin(), sum.end(), Acc(0));
        for (int64_t p = rows.start[i]; p < rows.start[i + 1]; ++p) {
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

Tensor times_sparse(const Tensor& self, const Tensor& other) {
  check_matrices(self, other);
  const Rows a(self), b(other);
  const int64_t n = self.size(0), k = other.size(1);
  Tensor starts = at::zeros({n + 1}, TensorOptions(kLong));
  std::vector<int64_t> columns;
  Tensor values;
  dtype_switch<AllTypes>(self.scalar_type(), "sparse_sparse_mm_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* va = a.values.numel() ? a.values.template data_ptr<T>() : nullptr;
    const T* vb = b.values.numel() ? b.values.template data_ptr<T>() : nullptr;
    std::vector<T> sum(static_cast<size_t>(k)), found;
    std::vector<int64_t> seen(static_cast<size_t>(k), -1), row;
    for (int64_t i = 0; i < n; ++i) {
      row.clear();
      for (int64_t p = a.start[i]; p < a.start[i + 1]; ++p) {
        const int64_t m = a.column[p];
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
      for (int64_t c : row) found.push_back(sum[static_cast<size_t>(c)]);
      columns.insert(columns.end(), row.begin(), row.end());
      starts.data_ptr<int64_t>()[i + 1] = static_cast<int64_t>(columns.size());
    }
    values = detail::empty({static_cast<int64_t>(found.size())}, self.scalar_type());
    if (!found.empty())
      std::copy(found.begin(), found.end(), values.template data_ptr<T>());
  });
  Tensor plain = detail::empty({static_cast<int64_t>(columns.size())}, kLong);
  if (!columns.empty()) std::copy(columns.begin(), columns.end(), plain.data_ptr<int64_t>());
  const int64_t size[] = {n, k};
  const Tensor csr = make_compressed(Layout::SparseCsr, starts, plain, values, size);
  const Layout wanted = is_block(self.layout()) ? Layout::SparseCsr : self.layout();
  return to_layout(csr, wanted, std::nullopt, std::nullopt);
}

} // namespace at::sparse
