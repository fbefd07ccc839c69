// sort, argsort and topk on CUDA. Rows that a block can take whole are sorted by the kernels of
// RowSort.cuh, and so are few elements selected. For longer rows those of RadixSort.cuh are used:
// values become keys whose unsigned order is theirs, the keys are sorted with their positions, and
// the results are gathered.
#include <limits>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/sort/Native.h>
#include <ATen/native/sort/RadixSort.h>
#include <ATen/native/sort/RowSort.args.h>

namespace at::native {
namespace {
using cuda::blocks_for;
using cuda::Kernel;

constexpr const char* kProgram = "native/sort/RadixSort.cuh";
const Kernel kSort256(kProgram, "radix_sort_256"), kSort2048(kProgram, "radix_sort_2048"),
    kCount(kProgram, "radix_count"), kScan(kProgram, "radix_scan"), kMove(kProgram, "radix_move");

struct TypeKernels {
  ScalarType dtype;
  int bits;
  Kernel keys, results;
};
#define CRESSET_SORT(dtype, bits, name)                                                            \
  {                                                                                                \
    dtype, bits, {kProgram, "sort_keys_" name}, { kProgram, "sort_results_" name }                 \
  }
const TypeKernels kTypes[] = {
    CRESSET_SORT(kFloat, 32, "f32"),  CRESSET_SORT(kDouble, 64, "f64"),
    CRESSET_SORT(kHalf, 32, "f16"),   CRESSET_SORT(kBFloat16, 32, "bf16"),
    CRESSET_SORT(kByte, 8, "u8"),     CRESSET_SORT(kChar, 8, "i8"),
    CRESSET_SORT(kShort, 16, "i16"),  CRESSET_SORT(kInt, 32, "i32"),
    CRESSET_SORT(kLong, 64, "i64"),   CRESSET_SORT(kUInt16, 16, "u16"),
    CRESSET_SORT(kUInt32, 32, "u32"), CRESSET_SORT(kUInt64, 64, "u64"),
    CRESSET_SORT(kBool, 8, "bool"),
};

const TypeKernels& kernels_for(ScalarType dtype, const char* op) {
  for (const TypeKernels& k : kTypes)
    if (k.dtype == dtype) return k;
  TORCH_CHECK_NOT_IMPLEMENTED(false, "\"", op, "\" not implemented for '", dtype, "'");
  return kTypes[0];
}

constexpr int64_t kTile = 2048, kMaxRowsPerLaunch = 65535;

// ---- rows that a block takes whole
constexpr const char* kRowProgram = "native/sort/RowSort.cuh";
struct RowKernel {
  int64_t size; // the longest row
  unsigned threads;
  Kernel narrow, wide; // by keys of 32 and 64 bits
};
const RowKernel kRowSort[] = {
    {512, 128, {kRowProgram, "row_sort_w32_512"}, {kRowProgram, "row_sort_w64_512"}},
    {2048, 256, {kRowProgram, "row_sort_w32_2048"}, {kRowProgram, "row_sort_w64_2048"}},
    {4096, 512, {kRowProgram, "row_sort_w32_4096"}, {kRowProgram, "row_sort_w64_4096"}},
    {8192, 512, {kRowProgram, "row_sort_w32_8192"}, {kRowProgram, "row_sort_w64_8192"}},
};
const Kernel kSelect(kRowProgram, "row_select");
constexpr int64_t kMostSelected = 64;
constexpr int64_t kMostStaged = 8192;

using device::KeyMasks;
KeyMasks form_of(ScalarType dtype, bool flip) {
  using namespace device;
  const int bytes = static_cast<int>(c10::elementSize(dtype)), bits = 8 * bytes;
  KeyMasks form{
      uint64_t(1) << (bits - 1), 0, ~uint64_t(0) >> (64 - bits), bytes, kKeyUnsigned, flip, 0};
  if (dtype == kBool) form.kind = kKeyBool;
  if (c10::isFloatingType(dtype)) {
    form.kind = kKeyFloat;
    const int fraction = dtype == kDouble ? 52 : dtype == kFloat ? 23 : dtype == kHalf ? 10 : 7;
    form.infinity = (form.sign - 1) >> fraction << fraction;
  } else if (c10::isSignedType(dtype)) {
    form.kind = kKeySigned;
  }
  return form;
}

// `rows` rows of digits of both buffers, lowest digit first; gives which buffer ends up sorted.
int sort_digits(void* const keys[2], void* const values[2], void* counts, int64_t rows, int64_t n,
                int bits, bool given) {
  const auto stream = cuda::current_stream();
  const unsigned tiles = blocks_for(n, kTile);
  int from = 0;
  for (int shift = 0; shift < bits; shift += 8) {
    const cuda::Dim3 grid(tiles, static_cast<unsigned>(rows));
    cuda::launch(kCount, grid, 256, 0, stream, keys[from], counts, n, shift);
    cuda::launch(kScan, static_cast<unsigned>(rows), 1024, 0, stream, counts,
                 static_cast<int64_t>(tiles) * 256);
    cuda::launch(kMove, grid, 256, 0, stream, keys[from], values[from], keys[1 - from],
                 values[1 - from], counts, n, shift, static_cast<int>(given || shift > 0));
    from = 1 - from;
  }
  return from;
}

struct Axis {
  int64_t rows, n;
  Tensor moved; // self with the dimension last, contiguous
};
Axis axis_of(const Tensor& self, int64_t dim) {
  if (self.dim() == 0) return {1, 1, self.reshape({1})};
  const int64_t d = wrap_dim(dim, self.dim());
  Axis a{0, self.size(d), self.transpose(d, self.dim() - 1).contiguous()};
  a.rows = a.n == 0 ? 0 : self.numel() / a.n;
  return a;
}

// A result with the dimension last: as it is, or through a contiguous stand-in.
struct Target {
  Tensor given, used;
  Target(const Tensor& t, int64_t dim) {
    given = t.dim() == 0 ? t : t.transpose(wrap_dim(dim, t.dim()), t.dim() - 1);
    used =
        given.is_contiguous() ? given : detail::empty(given.sizes(), t.scalar_type(), t.device());
  }
  void finish() const {
    if (!used.is_same(given)) given.copy_(used);
  }
};

void sort_prefix(const TypeKernels& kernels, const Axis& a, int64_t k, bool descending,
                 const Target& values, const Target& indices) {
  const Tensor keys = detail::empty({a.rows, a.n}, kLong, a.moved.device());
  const auto stream = cuda::current_stream();
  cuda::launch(kernels.keys, blocks_for(a.rows * a.n, 256), 256, 0, stream,
               a.moved.const_data_ptr(), keys.mutable_data_ptr(), a.rows * a.n,
               static_cast<int>(descending));
  const SortedRows sorted = radix_sort_cuda(keys, Tensor(), kernels.bits);
  cuda::launch(kernels.results, blocks_for(a.rows * k, 256), 256, 0, stream,
               a.moved.const_data_ptr(), sorted.values.const_data_ptr(),
               values.used.mutable_data_ptr(), indices.used.mutable_data_ptr(), a.rows, a.n, k);
}

void sort_rows(const Axis& a, int64_t k, const KeyMasks& form, const Target& values,
               const Target& indices) {
  const RowKernel* kernel = kRowSort;
  while (kernel->size < a.n) ++kernel;
  const bool wide = form.bytes == 8;
  const int64_t shared = kernel->size * (wide ? 10 : 6) + kernel->threads / 32 * 256 * 2;
  cuda::launch(wide ? kernel->wide : kernel->narrow, static_cast<unsigned>(a.rows), kernel->threads,
               static_cast<unsigned>(shared), cuda::current_stream(), a.moved.const_data_ptr(),
               values.used.mutable_data_ptr(), indices.used.mutable_data_ptr(),
               static_cast<int>(a.n), k, form);
}

void select_in_rows(const Axis& a, int64_t k, const KeyMasks& form, const Target& values,
                    const Target& indices) {
  const unsigned threads = a.n <= 4096 ? 128 : a.n <= 16384 ? 256 : 1024;
  const bool staging = a.n <= kMostStaged;
  const unsigned shared = threads * 8 + (staging ? static_cast<unsigned>(a.n) * 4 : 0);
  cuda::launch(kSelect, static_cast<unsigned>(a.rows), threads, shared, cuda::current_stream(),
               a.moved.const_data_ptr(), values.used.mutable_data_ptr(),
               indices.used.mutable_data_ptr(), static_cast<int>(a.n), static_cast<int>(k),
               static_cast<int>(staging), form);
}

// Writes the first k of each row in order to `values` and `indices`, whose dimension `dim` has size
// k.
void ordered_prefix(const Tensor& self, int64_t dim, int64_t k, bool descending, bool few,
                    const char* op, const Tensor& values, const Tensor& indices) {
  const TypeKernels& kernels = kernels_for(self.scalar_type(), op);
  if (indices.numel() == 0) return;
  const Axis a = axis_of(self, dim);
  TORCH_CHECK_NOT_IMPLEMENTED(a.n <= std::numeric_limits<int32_t>::max(), op,
                              ": more than 2^31 elements along the dimension");
  const Target to_values(values, dim), to_indices(indices, dim);
  // The selection puts the largest keys first, sorting the smallest.
  if (few && k <= kMostSelected && self.itemsize() <= 4)
    select_in_rows(a, k, form_of(self.scalar_type(), !descending), to_values, to_indices);
  else if (a.n <= kRowSort[3].size)
    sort_rows(a, k, form_of(self.scalar_type(), descending), to_values, to_indices);
  else
    sort_prefix(kernels, a, k, descending, to_values, to_indices);
  to_values.finish();
  to_indices.finish();
}

} // namespace

SortedRows radix_sort_cuda(const Tensor& keys, const Tensor& values, int bits) {
  const int64_t rows = keys.size(0), n = keys.size(1);
  const Device device = keys.device();
  const bool given = values.defined();
  SortedRows result{keys, given ? values : detail::empty({rows, n}, kInt, device)};
  if (rows == 0 || n == 0) return result;
  const auto stream = cuda::current_stream();
  if (n <= kTile) {
    cuda::launch(n <= 256 ? kSort256 : kSort2048, static_cast<unsigned>(rows), n <= 256 ? 128 : 512,
                 0, stream, keys.mutable_data_ptr(), result.values.mutable_data_ptr(),
                 static_cast<int>(n), static_cast<int>(given));
    return result;
  }
  const Tensor other_keys = detail::empty({rows, n}, kLong, device);
  const Tensor other_values = detail::empty({rows, n}, kInt, device);
  const int64_t step = std::min(rows, kMaxRowsPerLaunch);
  const Tensor counts = detail::empty({step, 256, (n + kTile - 1) / kTile}, kInt, device);
  int buffer = 0;
  for (int64_t row = 0; row < rows; row += step) {
    const auto from = [&](const Tensor& t) {
      return static_cast<void*>(static_cast<char*>(t.mutable_data_ptr()) + row * n * t.itemsize());
    };
    void* const k[2] = {from(keys), from(other_keys)};
    void* const v[2] = {from(result.values), from(other_values)};
    buffer =
        sort_digits(k, v, counts.mutable_data_ptr(), std::min(step, rows - row), n, bits, given);
  }
  return buffer == 0 ? result : SortedRows{other_keys, other_values};
}

void sort_cuda(const Tensor& self, int64_t dim, bool descending, const Tensor& values,
               const Tensor& indices) {
  const int64_t n = self.dim() == 0 ? 1 : self.size(wrap_dim(dim, self.dim()));
  ordered_prefix(self, dim, n, descending, false, "sort_cuda", values, indices);
}
void sort_stable_cuda(const Tensor& self, std::optional<bool>, int64_t dim, bool descending,
                      const Tensor& values, const Tensor& indices) {
  sort_cuda(self, dim, descending, values, indices);
}
void topk_cuda(const Tensor& self, int64_t k, int64_t dim, bool largest, bool, const Tensor& values,
               const Tensor& indices) {
  ordered_prefix(self, dim, k, largest, true, "topk_cuda", values, indices);
}

} // namespace at::native
