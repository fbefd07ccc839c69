// See DenseIndex.h.
#include <ATen/native/index/DenseIndex.h>

#include <algorithm>
#include <limits>

#include <ATen/cuda/KernelCall.h>
#include <ATen/cuda/PointwiseLaunch.h>
#include <ATen/native/index/DenseIndex.args.h>

namespace at::native::cuda_index {
namespace {
using cuda::blocks_for;
using cuda::Kernel;

constexpr const char* kProgram = "native/index/DenseIndex.cuh";
const Kernel kGather[5] = {{kProgram, "gather_dense_b1"},
                           {kProgram, "gather_dense_b2"},
                           {kProgram, "gather_dense_b4"},
                           {kProgram, "gather_dense_b8"},
                           {kProgram, "gather_dense_b16"}};
const Kernel kGatherStaged[5] = {{kProgram, "gather_staged_b1"},
                                 {kProgram, "gather_staged_b2"},
                                 {kProgram, "gather_staged_b4"},
                                 {kProgram, "gather_staged_b8"},
                                 {kProgram, "gather_staged_b16"}};
struct SumKernels {
  ScalarType dtype;
  int64_t accumulator; // bytes
  Kernel staged;
  const Kernel* columns; // null: sums are kept in a wider type, which memory does not hold
};
const Kernel kColumns[4] = {{kProgram, "scatter_columns_f32"},
                            {kProgram, "scatter_columns_f64"},
                            {kProgram, "scatter_columns_i32"},
                            {kProgram, "scatter_columns_i64"}};
const SumKernels kSums[] = {
    {kFloat, 4, {kProgram, "scatter_staged_f32"}, &kColumns[0]},
    {kDouble, 8, {kProgram, "scatter_staged_f64"}, &kColumns[1]},
    {kInt, 4, {kProgram, "scatter_staged_i32"}, &kColumns[2]},
    {kLong, 8, {kProgram, "scatter_staged_i64"}, &kColumns[3]},
    {kHalf, 4, {kProgram, "scatter_staged_f16"}, nullptr},
    {kBFloat16, 4, {kProgram, "scatter_staged_bf16"}, nullptr},
};

constexpr int64_t kThreads = device::kDenseThreads, kAhead = device::kDenseAhead;
constexpr int64_t kRowBytes = 64 << 10; // of shared memory for a row, so that several blocks fit
// Fewer owners than this leave most of the GPU idle, and sorting is faster.
constexpr int64_t kFewestColumns = 128, kFewestRows = 64;
// Columns that fill the GPU with a thread each, and the least elements that pay for staging one.
constexpr int64_t kManyColumns = 65536, kLongColumn = 512;

using device::DenseIndex;

// Whether `indexed` and `index` lie dense and agree outside `dim`, so that they are
// (outer, bound, inner) and (outer, n, inner); the first may have more of the outermost.
bool describe(DenseIndex& d, const Tensor& indexed, int64_t dim, const Tensor& index) {
  if (index.scalar_type() != kLong || !indexed.is_contiguous() || !index.is_contiguous())
    return false;
  int64_t outer = 1, inner = 1;
  for (int64_t k = 0; k < index.dim(); ++k) {
    if (k == dim) continue;
    if (index.size(k) != indexed.size(k) && (k != 0 || dim == 0)) return false;
    (k < dim ? outer : inner) *= index.size(k);
  }
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  const int64_t n = index.size(dim);
  if (inner > kLimit || n > kLimit || n * inner > kLimit) return false;
  d.index = index.const_data_ptr<int64_t>();
  d.columns = outer * inner;
  d.row = n * inner;
  d.bound = indexed.size(dim);
  d.other_row = d.bound * inner;
  d.n = static_cast<int32_t>(n);
  d.inner = static_cast<int32_t>(inner);
  d.dim = static_cast<int32_t>(dim);
  d.inner_size = cuda::Divider(static_cast<uint32_t>(inner));
  return true;
}

// Rows that are summed at a time where columns are made rows first: whole waves of the largest GPU,
// and few enough that the copies stay small.
constexpr int64_t kTurnedRows = 9 * 132;

// A warp per row (d.inner is 1), which fits into shared memory.
void sum_rows(const SumKernels& kernels, const DenseIndex& d, const Tensor& self,
              const Tensor& source) {
  cuda::launch(kernels.staged, static_cast<unsigned>(d.columns), 32,
               static_cast<unsigned>(d.bound * kernels.accumulator), cuda::current_stream(),
               self.mutable_data_ptr(), source.const_data_ptr(), d);
}

// Columns of dense tensors, some at a time, as rows: a warp that walks a column reads 32 bytes of
// memory for every element.
void sum_columns_as_rows(const SumKernels& kernels, const DenseIndex& d, const Tensor& self,
                         const Tensor& index, const Tensor& source) {
  const int64_t outer = d.columns / d.inner, inner = d.inner;
  const Tensor to = self.as_strided({outer, d.bound, inner}, {d.other_row, inner, 1});
  const Tensor places = index.view({outer, d.n, inner});
  const Tensor values = source.view({outer, d.n, inner});
  const int64_t step = std::max<int64_t>(64, kTurnedRows / outer);
  for (int64_t first = 0; first < inner; first += step) {
    const int64_t count = std::min(step, inner - first);
    const auto turned = [&](const Tensor& t) { return t.narrow(2, first, count).transpose(1, 2); };
    const Tensor sums = turned(to).contiguous(), row_places = turned(places).contiguous();
    DenseIndex rows{nullptr, 0, 0, 0, 0, 0, 0, 0, 0, {}, d.check};
    describe(rows, sums, 2, row_places);
    rows.dim = d.dim;
    sum_rows(kernels, rows, sums, turned(values).contiguous());
    turned(to).copy_(sums);
  }
}

int size_slot(int64_t itemsize) { return __builtin_ctzll(static_cast<uint64_t>(itemsize)); }

} // namespace

bool gather_dense(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  DenseIndex d{nullptr, 0, 0, 0, 0, 0, 0, 0, 0, {}, cuda::index_check("gather")};
  if (!out.is_contiguous() || !describe(d, self, dim, index)) return false;
  const int64_t rows = d.columns / d.inner, bytes = d.bound * self.itemsize();
  const auto stream = cuda::current_stream();
  const int slot = size_slot(self.itemsize());
  // Reading a whole row pays where a good part of it is asked for.
  if (d.inner == 1 && rows >= kFewestRows && bytes <= kRowBytes && d.n >= d.bound / 4) {
    cuda::launch(kGatherStaged[slot], static_cast<unsigned>(rows), kThreads,
                 static_cast<unsigned>(bytes), stream, self.const_data_ptr(),
                 out.mutable_data_ptr(), d);
    return true;
  }
  d.row_blocks = blocks_for(d.row, kThreads * kAhead);
  const int64_t blocks = rows * d.row_blocks;
  if (blocks > std::numeric_limits<int32_t>::max()) return false;
  cuda::launch(kGather[slot], static_cast<unsigned>(blocks), kThreads, 0, stream,
               self.const_data_ptr(), out.mutable_data_ptr(), d);
  return true;
}

bool scatter_add_dense(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                       const char* op) {
  DenseIndex d{nullptr, 0, 0, 0, 0, 0, 0, 0, 0, {}, cuda::index_check(op)};
  const SumKernels* kernels = nullptr;
  for (const SumKernels& k : kSums)
    if (k.dtype == self.scalar_type()) kernels = &k;
  if (kernels == nullptr || source.sizes() != index.sizes() || !source.is_contiguous() ||
      !describe(d, self, dim, index))
    return false;
  const auto stream = cuda::current_stream();
  const int64_t bytes = d.bound * kernels->accumulator;
  const bool staged = d.inner == 1
                          ? d.columns <= std::numeric_limits<int32_t>::max()
                          : d.columns < kManyColumns && d.n >= kLongColumn && d.n >= d.bound / 4;
  if (staged && d.columns >= kFewestRows && bytes <= kRowBytes) {
    if (d.inner == 1)
      sum_rows(*kernels, d, self, source);
    else
      sum_columns_as_rows(*kernels, d, self, index, source);
    return true;
  }
  if (d.inner == 1 || d.columns < kFewestColumns || kernels->columns == nullptr) return false;
  // Small blocks, so that few columns still reach all multiprocessors.
  const int64_t threads = d.columns > kManyColumns ? 128 : 32;
  cuda::launch(*kernels->columns, blocks_for(d.columns, threads), static_cast<unsigned>(threads), 0,
               stream, self.mutable_data_ptr(), source.const_data_ptr(), d);
  return true;
}

} // namespace at::native::cuda_index
