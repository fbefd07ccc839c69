// Products of sparse matrices that are not in host memory.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::sparse::on_device {

// A matrix as lists: `starts` of its rows and the `columns` and `values` of its elements.
struct RowLists {
  Tensor starts, columns, values;
};

// By kernels for floating types, made of operators for the others.
Tensor times_dense(const RowLists& matrix, int64_t rows, const Tensor& dense);
// The elements of left @ right^T at the given places.
Tensor products_at(const Tensor& rows, const Tensor& columns, const Tensor& left,
                   const Tensor& right);
// Rows, columns and values of all products of elements of two matrices; not summed.
struct Elements {
  Tensor indices, values;
};
Elements products_of_elements(const RowLists& a, const RowLists& b);

} // namespace at::sparse::on_device
