// Tensors that keep only some of their elements. One class holds every sparse layout: COO has
// `indices` [sparse_dim, nnz]; the compressed ones (CSR, CSC, BSR, BSC) have `indices` as the
// compressed list of row or column starts and `plain` as the other coordinate. Such a tensor has
// no storage, so its keys never lead to a strided kernel: operators reach it through its own keys
// alone (Dispatcher.cpp, sparse_fallback).
//
// The members are aliases of what the user gave, without history; what a member holds can still be
// written through another alias, so kernels check indices before they use them as addresses.
#pragma once
#include <vector>

#include <ATen/core/Tensor.h>

namespace at::sparse {

class TORCH_API SparseTensorImpl final : public c10::TensorImpl {
 public:
  SparseTensorImpl(Layout layout, ScalarType dtype, Device device);
  void copy_metadata_from(const TensorImpl& from) override;
  c10::intrusive_ptr<TensorImpl> shallow_copy() const override;
  int64_t nnz() const { return layout() == Layout::Sparse ? indices.size(1) : plain.size(-1); }

  Tensor indices;
  Tensor plain;
  Tensor values;
  int64_t sparse_dim = 0;
  int64_t dense_dim = 0;
  bool coalesced = false;

 protected:
  void release_resources() override;
};

inline bool is_compressed(Layout layout) {
  return layout == Layout::SparseCsr || layout == Layout::SparseCsc ||
         layout == Layout::SparseBsr || layout == Layout::SparseBsc;
}
inline bool is_block(Layout layout) {
  return layout == Layout::SparseBsr || layout == Layout::SparseBsc;
}
inline bool by_rows(Layout layout) {
  return layout == Layout::SparseCsr || layout == Layout::SparseBsr;
}
inline bool is_sparse_layout(Layout layout) {
  return layout == Layout::Sparse || is_compressed(layout);
}
// "SparseCsr": how error messages name layouts.
TORCH_API const char* spelled(Layout layout);

// The tensor's own object; RuntimeError naming `op` where it has another layout.
TORCH_API SparseTensorImpl& coo(const Tensor& t, const char* op);
TORCH_API SparseTensorImpl& compressed(const Tensor& t, const char* op);
TORCH_API SparseTensorImpl& any_sparse(const Tensor& t, const char* op);

// The constructors. `check_coo` and `check_compressed` look at everything, every index included,
// and throw what PyTorch throws; that indices ascend is asked for by `coalesced` and `ordered`. The
// makers check ranks and lengths, and trust the numbers.
TORCH_API void check_coo(const Tensor& indices, const Tensor& values, IntArrayRef size,
                         bool coalesced);
TORCH_API void check_compressed(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                                IntArrayRef size, Layout layout, bool ordered = true);
TORCH_API Tensor make_coo(const Tensor& indices, const Tensor& values, IntArrayRef size,
                          bool coalesced);
TORCH_API Tensor make_compressed(Layout layout, const Tensor& compressed, const Tensor& plain,
                                 const Tensor& values, IntArrayRef size);
// Without elements, `sparse_dim` of the dimensions sparse.
TORCH_API Tensor empty_coo(IntArrayRef size, int64_t sparse_dim, ScalarType dtype, Device device);
TORCH_API Tensor empty_compressed(IntArrayRef size, Layout layout, ScalarType dtype, Device device);
// The matrices of a compressed tensor with batch dimensions, in order; and the tensor that such
// matrices make, which need the same number of elements each.
TORCH_API std::vector<Tensor> matrices_of(const Tensor& self);
TORCH_API Tensor batch_of(const std::vector<Tensor>& matrices, IntArrayRef batch);
// Gives `self` the size of another compressed tensor of its layout; its elements become zero.
TORCH_API void resize_as_compressed(const Tensor& self, const Tensor& the_template);
// Makes `self` stand for what `from` does; both of one layout.
TORCH_API void become(const Tensor& self, const Tensor& from);

// ---- pieces the kernels share
// A strided tensor on a device and of a dtype; itself where it is so already, unless `copy`.
TORCH_API Tensor moved_to(const Tensor& t, Device device, ScalarType dtype,
                          bool non_blocking = false, bool copy = false);
// Each column of `indices` as one number, in row-major order of `size` (its first rows).
TORCH_API Tensor flat_indices(const Tensor& indices, IntArrayRef size);
// The coordinates of flat numbers, the inverse of the above.
TORCH_API Tensor unflatten_indices(const Tensor& flat, IntArrayRef size);
TORCH_API Tensor coalesced(const Tensor& self);
TORCH_API Tensor to_dense(const Tensor& self);
TORCH_API Tensor to_coo(const Tensor& self);
TORCH_API Tensor dense_to_coo(const Tensor& self, int64_t sparse_dim);
TORCH_API Tensor to_layout(const Tensor& self, Layout layout, OptionalIntArrayRef blocksize,
                           std::optional<int64_t> dense_dim);
// A COO tensor with the same indices and other values.
TORCH_API Tensor with_values(const Tensor& self, const Tensor& values);
// A COO tensor with its dimensions of length 1 repeated and new sparse ones in front.
TORCH_API Tensor broadcast_coo(const Tensor& self, IntArrayRef size);
// A matrix of any layout in the layout, block size and index dtype of a compressed one.
TORCH_API Tensor to_layout_of(const Tensor& made, const Tensor& like);
// Makes `made` known as a view of `of`, whose memory it shares.
TORCH_API Tensor as_view(Tensor made, const Tensor& of);
// What the first dimension of `values` has for each element of `mask`, zero where it has none.
TORCH_API Tensor masked_by(const Tensor& self, const Tensor& mask);
// sparse [n, m] times dense [m, k].
TORCH_API Tensor times_dense(const Tensor& self, const Tensor& dense);
TORCH_API Tensor times_sparse(const Tensor& self, const Tensor& other);
// The X with `matrix` X = `b`, of the triangle of a square sparse matrix.
TORCH_API Tensor solve_triangle(const Tensor& matrix, const Tensor& b, bool upper, bool transpose,
                                bool unitriangular);

} // namespace at::sparse
