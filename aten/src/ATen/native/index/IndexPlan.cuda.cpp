// See IndexPlan.h.
#include <ATen/native/index/IndexPlan.h>

#include <limits>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/sort/RadixSort.h>

namespace at::native::cuda_index {
namespace {
using cuda::blocks_for;
using cuda::Kernel;

constexpr const char* kProgram = "native/index/Indexing.cuh";
const Kernel kRead[5] = {{kProgram, "index_read_b1"},
                         {kProgram, "index_read_b2"},
                         {kProgram, "index_read_b4"},
                         {kProgram, "index_read_b8"},
                         {kProgram, "index_read_b16"}};
const Kernel kWrite[5] = {{kProgram, "index_write_b1"},
                          {kProgram, "index_write_b2"},
                          {kProgram, "index_write_b4"},
                          {kProgram, "index_write_b8"},
                          {kProgram, "index_write_b16"}};
const Kernel kKeys(kProgram, "index_keys");

struct CombineKernel {
  ScalarType dtype;
  Kernel kernel;
};
const CombineKernel kCombine[] = {
    {kFloat, {kProgram, "index_combine_f32"}},
    {kDouble, {kProgram, "index_combine_f64"}},
    {kHalf, {kProgram, "index_combine_f16"}},
    {kBFloat16, {kProgram, "index_combine_bf16"}},
    {kByte, {kProgram, "index_combine_u8"}},
    {ScalarType::UInt16, {kProgram, "index_combine_u16"}},
    {ScalarType::UInt32, {kProgram, "index_combine_u32"}},
    {ScalarType::UInt64, {kProgram, "index_combine_u64"}},
    {kChar, {kProgram, "index_combine_i8"}},
    {kShort, {kProgram, "index_combine_i16"}},
    {kInt, {kProgram, "index_combine_i32"}},
    {kLong, {kProgram, "index_combine_i64"}},
    {kBool, {kProgram, "index_combine_bool"}},
    {kComplexFloat, {kProgram, "index_combine_c64"}},
    {kComplexDouble, {kProgram, "index_combine_c128"}},
};

const Kernel& combine_kernel(ScalarType dtype, const char* op) {
  for (const CombineKernel& k : kCombine)
    if (k.dtype == dtype) return k.kernel;
  TORCH_CHECK_NOT_IMPLEMENTED(false, "\"", op, "_cuda\" not implemented for '", dtype, "'");
  return kCombine[0].kernel;
}

int size_slot(int64_t itemsize) {
  return itemsize == 1 ? 0 : itemsize == 2 ? 1 : itemsize == 4 ? 2 : itemsize == 8 ? 3 : 4;
}

// The numbers of enum Combine in Indexing.cuh.
int combine_code(Reduction how) {
  switch (how) {
  case Reduction::Prod:
    return 1;
  case Reduction::Min:
    return 2;
  case Reduction::Max:
    return 3;
  case Reduction::Mean:
    return 4;
  case Reduction::Sum:
    break;
  }
  return 0;
}

// An upper bound of the places the plan can name.
int64_t largest_place(const IndexPlan& plan) {
  int64_t largest = 0;
  for (int d = 0; d < plan.positions.ndim; ++d)
    largest += (plan.positions.sizes[d] - 1) * plan.positions.a[d];
  for (int k = 0; k < plan.indices; ++k)
    largest += (plan.index[k].bound - 1) * plan.index[k].stride;
  return largest;
}

} // namespace

void add_dimension(DualWalk& walk, int64_t size, int64_t stride_a, int64_t stride_b) {
  if (size == 1) return;
  const int last = walk.ndim - 1;
  if (last >= 0 && walk.a[last] == stride_a * size && walk.b[last] == stride_b * size) {
    walk.sizes[last] *= size; // continues the dimension before it
    walk.a[last] = stride_a;
    walk.b[last] = stride_b;
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(walk.ndim < kDims, "indexing on CUDA of tensors with more than ",
                                kDims, " separate dimensions");
    walk.sizes[walk.ndim] = size;
    walk.a[walk.ndim] = stride_a;
    walk.b[walk.ndim] = stride_b;
    ++walk.ndim;
  }
  walk.count *= size;
}

IndexPlan plan_along(const char* op, const Tensor& indexed, const Tensor& linear, int64_t dim,
                     const Tensor& index, bool wraps) {
  IndexPlan plan = plan_for(op);
  plan.wraps = wraps;
  const int64_t n = index.numel();
  plan.positions.count = n;
  plan.positions.ndim = 1;
  plan.positions.sizes[0] = n;
  plan.positions.b[0] = linear.stride(dim);
  IndexOperand& operand = plan.index[0];
  operand.data = index.const_data_ptr();
  operand.strides[0] = index.dim() == 0 ? 0 : index.stride(0);
  operand.bound = indexed.size(dim);
  operand.stride = indexed.stride(dim);
  operand.dim = static_cast<int32_t>(dim);
  operand.narrow = index.scalar_type() == kInt;
  plan.indices = 1;
  for (int64_t d = 0; d < indexed.dim(); ++d)
    if (d != dim) add_dimension(plan.slices, indexed.size(d), indexed.stride(d), linear.stride(d));
  return plan;
}

IndexPlan plan_elements(const char* op, const Tensor& indexed, const Tensor& linear, int64_t dim,
                        const Tensor& index) {
  IndexPlan plan = plan_for(op);
  TORCH_CHECK_NOT_IMPLEMENTED(index.dim() <= kDims, op, " on CUDA of tensors with more than ",
                              kDims, " dimensions");
  IndexOperand& operand = plan.index[0];
  plan.positions.ndim = static_cast<int32_t>(index.dim());
  for (int64_t d = 0; d < index.dim(); ++d) {
    plan.positions.count *= index.size(d);
    plan.positions.sizes[d] = index.size(d);
    plan.positions.a[d] = d == dim ? 0 : indexed.stride(d);
    plan.positions.b[d] = linear.stride(d);
    operand.strides[d] = index.stride(d);
  }
  operand.data = index.const_data_ptr();
  operand.bound = indexed.size(dim);
  operand.stride = indexed.stride(dim);
  operand.dim = static_cast<int32_t>(dim);
  operand.narrow = index.scalar_type() == kInt;
  plan.indices = 1;
  return plan;
}

namespace {
// The same plan in units of several elements, up to 16 bytes, where both sides hold slices that
// consist of them. Returns the unit's size.
int64_t widen(IndexPlan& plan, int64_t itemsize, const void* a, const void* b) {
  DualWalk& s = plan.slices;
  if (s.ndim == 0 || s.a[s.ndim - 1] != 1 || s.b[s.ndim - 1] != 1) return itemsize;
  // In bytes, every stride but the innermost, the innermost size and both addresses.
  uint64_t bits = (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) | 16) |
                  static_cast<uint64_t>(s.sizes[s.ndim - 1] * itemsize);
  const auto each_stride = [&](const auto& f) {
    for (int d = 0; d < s.ndim - 1; ++d) f(s.a[d]), f(s.b[d]);
    for (int d = 0; d < plan.positions.ndim; ++d) f(plan.positions.a[d]), f(plan.positions.b[d]);
    for (int k = 0; k < plan.indices; ++k) f(plan.index[k].stride);
  };
  each_stride([&](int64_t& stride) { bits |= static_cast<uint64_t>(stride * itemsize); });
  const int64_t unit = static_cast<int64_t>(bits & (~bits + 1)), ratio = unit / itemsize;
  if (ratio <= 1) return itemsize;
  each_stride([&](int64_t& stride) { stride /= ratio; });
  s.sizes[s.ndim - 1] /= ratio;
  s.count /= ratio;
  return unit;
}

void move(const Kernel* kernels, IndexPlan plan, const Tensor& indexed, void* a, void* b) {
  const int64_t unit = widen(plan, indexed.itemsize(), a, b);
  const int64_t n = plan.positions.count * plan.slices.count;
  cuda::launch(kernels[size_slot(unit)], blocks_for(n, 256), 256, 0, cuda::current_stream(), a, b,
               plan);
}
} // namespace

void read(const IndexPlan& plan, const Tensor& indexed, const Tensor& linear) {
  move(kRead, plan, indexed, const_cast<void*>(indexed.const_data_ptr()),
       linear.mutable_data_ptr());
}

void write(const IndexPlan& plan, const Tensor& indexed, const Tensor& linear) {
  move(kWrite, plan, indexed, indexed.mutable_data_ptr(),
       const_cast<void*>(linear.const_data_ptr()));
}

void combine(const IndexPlan& plan, const Tensor& indexed, const Tensor& linear,
             const CombineOptions& options, const char* op) {
  const Kernel& kernel = combine_kernel(indexed.scalar_type(), op);
  const bool ordered = options.how == Reduction::Min || options.how == Reduction::Max;
  TORCH_CHECK_NOT_IMPLEMENTED(
      !(ordered && indexed.is_complex()) &&
          !(options.how == Reduction::Mean && indexed.scalar_type() == kBool),
      "\"", op, "_cuda\" not implemented for '", indexed.scalar_type(), "'");
  const int64_t n = plan.positions.count, width = plan.slices.count;
  if (n == 0 || width == 0) return;
  TORCH_CHECK_NOT_IMPLEMENTED(n <= std::numeric_limits<int32_t>::max(), op,
                              " on CUDA with more than 2^31 indices");
  const Tensor keys = detail::empty({1, n}, kLong, indexed.device());
  const auto stream = cuda::current_stream();
  cuda::launch(kKeys, blocks_for(n, 256), 256, 0, stream, plan, keys.mutable_data_ptr(),
               options.skipped);
  // One bit more than places have, so that skipped positions come last.
  const int bits = 65 - __builtin_clzll(static_cast<uint64_t>(largest_place(plan)) | 1);
  const SortedRows sorted = radix_sort_cuda(keys, Tensor(), std::min(bits, 64));
  cuda::launch(kernel, blocks_for(n * width, 256), 256, 0, stream, indexed.mutable_data_ptr(),
               linear.const_data_ptr(), sorted.keys.const_data_ptr(),
               sorted.values.const_data_ptr(), plan, combine_code(options.how),
               static_cast<int>(options.include_self), static_cast<int>(options.by_count),
               options.scale);
}

} // namespace at::native::cuda_index
