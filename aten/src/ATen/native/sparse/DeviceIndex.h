// Index arithmetic of sparse tensors by operators, for index lists that host loops cannot read: the
// same results as the loops beside which each is called. Nothing here waits for the GPU except
// where a length is only known there.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::sparse::on_device {

// Whether a list is worked on by operators: it is on a GPU, or CRESSET_SPARSE_BY_OPERATORS is set,
// by which the tests of the loops become tests of the operators.
TORCH_API bool applies_to(const Tensor& list);

// A short list of numbers on a device.
TORCH_API Tensor list_of(IntArrayRef numbers, Device device);
// Whether any element of a bool tensor is true.
TORCH_API bool any_true(const Tensor& mask);

Tensor flat_indices(const Tensor& indices, IntArrayRef size);
Tensor unflatten_indices(const Tensor& flat, IntArrayRef size);

// Of a list of keys: the distinct ones in order, and which of them each key is.
struct Distinct {
  Tensor keys, number;
};
Distinct distinct_keys(const Tensor& keys);

// Where each of `wanted` stands in a sorted list of distinct keys, and whether it does.
struct Found {
  Tensor place, is_there;
};
Found find_keys(const Tensor& sorted, const Tensor& wanted);

// Starts of the rows of elements whose rows are given, and back.
Tensor starts_of_rows(const Tensor& rows, int64_t count);
Tensor rows_of_starts(const Tensor& starts, int64_t nnz);

// Whether some number does not fit: the loops then say which.
bool has_bad_coordinates(const Tensor& indices, IntArrayRef size);
bool has_bad_starts(const Tensor& starts, const Tensor& plain, int64_t plain_size);

// For each pair of a list and a wanted number that are equal, in the order of the wanted ones: the
// position of the wanted one, and that of the element.
struct Pairs {
  Tensor wanted, element;
};
Pairs equal_pairs(const Tensor& list, const Tensor& wanted);

// Positions start[i] .. start[i] + count[i] - 1 of all i, one after the other, and which i each is
// from.
struct Stretches {
  Tensor owner, position;
};
Stretches stretches(const Tensor& start, const Tensor& count);

} // namespace at::sparse::on_device
