// The host side of Cat.cuh. Inputs that are strided or of another dtype are copied piece by piece.
#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/shape/Cat.args.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>

namespace at::native {
namespace {
using cuda::Kernel;

constexpr const char* kProgram = "native/shape/Cat.cuh";
const Kernel kCat[5] = {{kProgram, "cat_1"},
                        {kProgram, "cat_2"},
                        {kProgram, "cat_4"},
                        {kProgram, "cat_8"},
                        {kProgram, "cat_16"}};
constexpr int kInputs = device::kCatInputs;
using Table = device::CatTable;

bool skipped(const Tensor& t) { return t.dim() == 1 && t.size(0) == 0; }

void copy_piece(const Tensor& t, int64_t dim, int64_t start, const Tensor& out) {
  out.narrow(dim, start, t.size(dim)).copy_(t);
}

// Launches for inputs [begin, end) of `blocks`, given in bytes.
void launch_blocks(Table& table, int count, int64_t largest, const Tensor& out) {
  uintptr_t bits = reinterpret_cast<uintptr_t>(out.mutable_data_ptr()) | table.row | 16;
  for (int i = 0; i < count; ++i)
    bits |= reinterpret_cast<uintptr_t>(table.data[i]) | table.width[i] | table.offset[i];
  const int log2 = __builtin_ctzll(bits);
  for (int i = 0; i < count; ++i) {
    table.width[i] >>= log2;
    table.offset[i] >>= log2;
  }
  const int64_t row = table.row;
  table.row >>= log2;
  const unsigned blocks =
      cuda::blocks_for(table.rows * (largest >> log2), 1024, 8 * cuda::multiprocessors());
  cuda::launch(kCat[log2], {blocks, static_cast<unsigned>(count)}, 256, 0, cuda::current_stream(),
               out.mutable_data_ptr(), table);
  table.row = row;
}

} // namespace

void cat_cuda(TensorList tensors, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t d = wrap_dim(dim, out.dim());
  int64_t inner = out.itemsize(), start = 0;
  for (int64_t i = d + 1; i < out.dim(); ++i) inner *= out.size(i);
  Table table;
  table.row = inner * out.size(d);
  table.rows = out.numel() * out.itemsize() / table.row;
  int count = 0;
  int64_t largest = 0;
  for (const Tensor& t : tensors) {
    if (skipped(t) || t.numel() == 0) continue;
    if (out.is_contiguous() && t.is_contiguous() && t.scalar_type() == out.scalar_type()) {
      table.data[count] = t.const_data_ptr();
      table.width[count] = inner * t.size(d);
      table.offset[count] = inner * start;
      largest = std::max(largest, table.width[count]);
      if (++count == kInputs) {
        launch_blocks(table, count, largest, out);
        count = 0;
        largest = 0;
      }
    } else {
      copy_piece(t, d, start, out);
    }
    start += t.size(d);
  }
  if (count > 0) launch_blocks(table, count, largest, out);
}

} // namespace at::native
