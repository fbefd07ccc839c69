// See DeviceProduct.h; the host side of Product.cuh.
#include <ATen/native/sparse/DeviceProduct.h>

#include <limits>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/sparse/DeviceIndex.h>
#include <ATen/native/sparse/Product.args.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>

namespace at::sparse::on_device {
namespace {
using cuda::Kernel;

constexpr const char* kProgram = "native/sparse/Product.cuh";
constexpr int kThreads = 256, kWarps = kThreads / 32;
const Kernel kDense[4] = CRESSET_FLOATING_KERNELS(kProgram, "sparse_times_dense");
const Kernel kVector[4] = CRESSET_FLOATING_KERNELS(kProgram, "sparse_times_vector");
const Kernel kDots[4] = CRESSET_FLOATING_KERNELS(kProgram, "sparse_dots");

bool has_kernels(const Tensor& t) {
  return t.is_cuda() && c10::isFloatingType(t.scalar_type()) && t.itemsize() > 1;
}

device::SparseRows arguments(const Tensor& columns, int64_t rows, int64_t bound, int64_t width) {
  TORCH_CHECK(bound <= std::numeric_limits<int32_t>::max(),
              "mm: a sparse matrix times a dense one of ", bound,
              " rows is not implemented on cuda");
  return {nullptr,
          columns.const_data_ptr<int64_t>(),
          rows,
          columns.numel(),
          bound,
          width,
          cuda::index_check("mm")};
}
} // namespace

Tensor times_dense(const RowLists& matrix, int64_t rows, const Tensor& dense) {
  const int64_t width = dense.size(1);
  if (!has_kernels(dense)) {
    const Tensor products =
        at::mul(matrix.values.unsqueeze(1), at::index_select(dense, 0, matrix.columns));
    const Tensor none = at::zeros({rows, width}, dense.options());
    return at::index_add(none, 0, rows_of_starts(matrix.starts, matrix.columns.numel()), products);
  }
  const c10::cuda::CUDAGuard guard(dense.device());
  const Tensor out = detail::empty({rows, width}, dense.scalar_type(), dense.device());
  if (out.numel() == 0) return out;
  device::SparseRows a = arguments(matrix.columns, rows, dense.size(0), width);
  a.starts = matrix.starts.const_data_ptr<int64_t>();
  const Tensor held = dense.contiguous();
  const int slot = cuda::floating_slot(dense.scalar_type(), "mm");
  const int64_t tiles = (width + device::kSparseTile - 1) / device::kSparseTile;
  cuda::launch((width == 1 ? kVector : kDense)[slot], cuda::blocks_for(rows * tiles, kWarps),
               kThreads, 0, cuda::current_stream(), matrix.values.const_data_ptr(),
               held.const_data_ptr(), out.mutable_data_ptr(), a);
  return out;
}

Tensor products_at(const Tensor& rows, const Tensor& columns, const Tensor& left,
                   const Tensor& right) {
  if (!has_kernels(left)) {
    const int64_t last[] = {1};
    const Tensor products =
        at::mul(at::index_select(left, 0, rows), at::index_select(right, 0, columns));
    return at::sum(products, OptionalIntArrayRef(IntArrayRef(last)));
  }
  const c10::cuda::CUDAGuard guard(left.device());
  const Tensor out = detail::empty({rows.numel()}, left.scalar_type(), left.device());
  if (out.numel() == 0) return out;
  const Tensor y = rows.contiguous(), x = columns.contiguous();
  const device::SparseRows a = arguments(x, left.size(0), right.size(0), left.size(1));
  const Tensor l = left.contiguous(), r = right.contiguous();
  cuda::launch(kDots[cuda::floating_slot(left.scalar_type(), "sampled_addmm")],
               cuda::blocks_for(rows.numel(), kWarps), kThreads, 0, cuda::current_stream(),
               l.const_data_ptr(), r.const_data_ptr(), y.const_data_ptr(), out.mutable_data_ptr(),
               a);
  return out;
}

Elements products_of_elements(const RowLists& a, const RowLists& b) {
  const Tensor first = at::index_select(b.starts, 0, a.columns);
  const Tensor lengths = at::sub(b.starts.narrow(0, 1, b.starts.numel() - 1),
                                 b.starts.narrow(0, 0, b.starts.numel() - 1));
  const Stretches all = stretches(first, at::index_select(lengths, 0, a.columns));
  const Tensor rows = at::index_select(rows_of_starts(a.starts, a.columns.numel()), 0, all.owner);
  const Tensor both[] = {rows, at::index_select(b.columns, 0, all.position)};
  return {at::stack(TensorList(both, 2), 0), at::mul(at::index_select(a.values, 0, all.owner),
                                                     at::index_select(b.values, 0, all.position))};
}

} // namespace at::sparse::on_device
