// 4-bit weights on CUDA: packing, and the product by Int4Product.cuh for a few rows or, for many,
// by a library with the weights in bfloat16. The checks are in WeightOnly.cpp.
#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/quantized/Int4Product.args.h>
#include <ATen/native/quantized/Native.h>
#include <ATen/ops/mm.h>

namespace at::native {
namespace {

constexpr const char* kProgram = "native/quantized/Int4Product.cuh";
// By words of a lane in a tile: 1, 2 and 4.
const cuda::Kernel kProduct[3] = {
    {kProgram, "int4_product_1"}, {kProgram, "int4_product_2"}, {kProgram, "int4_product_4"}};
const cuda::Kernel kPack[3] = {
    {kProgram, "int4_pack_1"}, {kProgram, "int4_pack_2"}, {kProgram, "int4_pack_4"}};
const cuda::Kernel kUnpack[3] = {
    {kProgram, "int4_unpack_1"}, {kProgram, "int4_unpack_2"}, {kProgram, "int4_unpack_4"}};
int slot_of(int64_t words) { return words == 1 ? 0 : words == 2 ? 1 : 2; }

// Rows of x from which writing the weights out and calling a library is faster: the kernel reads
// the weights once for every eight rows.
constexpr int64_t kMostRows = 32;
constexpr unsigned kPackThreads = 256;

// Contiguous, from an address that accesses of 16 bytes take.
Tensor packs_of(const Tensor& t) {
  const Tensor dense = t.contiguous();
  return cuda::is_aligned16(dense.const_data_ptr()) ? dense : dense.clone();
}

// Warps that share 16 rows of weights: as many as have a tile each; more than eight only where
// there are few blocks for the multiprocessors.
unsigned warps_for(int64_t tiles, int64_t blocks) {
  const int64_t most = blocks < 2 * cuda::multiprocessors() ? 16 : 8;
  return static_cast<unsigned>(std::clamp<int64_t>(tiles, 1, most));
}
} // namespace

Tensor _convert_weight_to_int4pack_cuda(const Tensor& self, int64_t inner_k_tiles) {
  const Tensor shape = _convert_weight_to_int4pack_meta(self, inner_k_tiles);
  const Tensor result = detail::empty(shape.sizes(), kInt, self.device());
  if (result.numel() == 0) return result;
  const Tensor bytes = self.contiguous();
  const device::Int4PackArgs args{static_cast<const uint8_t*>(bytes.const_data_ptr()),
                                  static_cast<uint32_t*>(result.mutable_data_ptr()), result.numel(),
                                  2 * self.size(1)};
  cuda::launch(kPack[slot_of(inner_k_tiles / 2)], cuda::blocks_for(args.count, kPackThreads),
               kPackThreads, 0, cuda::current_stream(), args);
  return result;
}

Tensor _weight_int4pack_mm_cuda(const Tensor& self, const Tensor& mat2, int64_t group,
                                const Tensor& scales_and_zeros) {
  cuda::check_same_device({&self, &mat2, &scales_and_zeros});
  const Tensor shape = _weight_int4pack_mm_meta(self, mat2, group, scales_and_zeros);
  const Tensor out = detail::empty(shape.sizes(), kBFloat16, self.device());
  const int64_t m = self.size(0), k = self.size(1), n = mat2.size(0) * 8, words = mat2.size(3);
  if (m == 0 || n == 0) return out;
  if (k == 0) return out.zero_();
  TORCH_CHECK_NOT_IMPLEMENTED(std::max({m, n, k}) <= 1 << 30,
                              "_weight_int4pack_mm on CUDA: sizes above 2^30, got ", m, "x", k,
                              " and ", n, "x", k);
  const Tensor x = packs_of(self), w = packs_of(mat2), pairs = packs_of(scales_and_zeros);
  device::Int4ProductArgs args{x.const_data_ptr(),      w.const_data_ptr(),
                               pairs.const_data_ptr(),  nullptr,
                               static_cast<int32_t>(m), static_cast<int32_t>(n),
                               static_cast<int32_t>(k), static_cast<int32_t>(group)};
  if (m > kMostRows) {
    const Tensor dense = detail::empty({n, k}, kBFloat16, self.device());
    args.y = dense.mutable_data_ptr();
    cuda::launch(kUnpack[slot_of(words)], cuda::blocks_for(n * k / 8, kPackThreads), kPackThreads,
                 0, cuda::current_stream(), args);
    return at::mm(x, dense.transpose(0, 1));
  }
  args.y = out.mutable_data_ptr();
  const cuda::Dim3 grid(cuda::blocks_for(n, 16), cuda::blocks_for(m, 8));
  const unsigned warps = warps_for(k / (32 * words), static_cast<int64_t>(grid.x) * grid.y);
  cuda::launch(kProduct[slot_of(words)], grid, 32 * warps, 0, cuda::current_stream(), args);
  return out;
}

} // namespace at::native
