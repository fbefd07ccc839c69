// The operators with 8-bit and 4-bit weights: _weight_int8pack_mm, _weight_int4pack_mm_for_cpu and
// the packing it needs, _int_mm. See WeightOnly.h. Here too: the shapes of the 4-bit product on
// CUDA (Int4Product.cuda.cpp), whose weights are packed in another order.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") // loops over bytes whose length is not known become vectors
#endif
#include <ATen/native/quantized/WeightOnly.h>

#include <algorithm>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/SymbolicTensor.h>
#include <ATen/native/Checks.h>
#include <ATen/native/OutputBuilder.h>
#include <ATen/native/quantized/Int8Product.h>
#include <ATen/native/quantized/Native.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/parallel/Parallel.h>

namespace at::quantized::weight_only {
CRESSET_DEFINE_ISA_TABLE(Table);

namespace {
// Multiplications below which another thread costs more than it does.
constexpr int64_t kWork = 1 << 18;
int64_t grain(int64_t work) { return std::max<int64_t>(1, kWork / std::max<int64_t>(work, 1)); }

bool is_activation(ScalarType dtype) {
  return dtype == kFloat || dtype == kHalf || dtype == kBFloat16;
}

Scales scales_of(ScalarType dtype) {
  return dtype == kFloat ? kScalesFloat : dtype == kHalf ? kScalesHalf : kScalesBFloat16;
}

void check_dtype(const Tensor& t, ScalarType expected) {
  TORCH_CHECK(t.scalar_type() == expected, "expected scalar type ", expected, " but found ",
              t.scalar_type());
}

// float32 room for the result: the result itself where it has that dtype.
Tensor float_result(const Tensor& out) {
  if (out.scalar_type() == kFloat && out.is_contiguous()) return out;
  return at::detail::empty(out.sizes(), kFloat);
}
} // namespace
} // namespace at::quantized::weight_only

namespace at::meta {
using namespace at::quantized::weight_only;

void meta_int_mm(OutputBuilder& out, const Tensor& self, const Tensor& mat2) {
  native::Checker("_int_mm").rank({"self", self}, 2).rank({"mat2", mat2}, 2);
  TORCH_CHECK(c10::expect_true(c10::sym_eq(self.sym_size(1), mat2.sym_size(0))),
              "_int_mm: self.size(1) needs to match mat2.size(0) but got ", self.sym_size(1),
              " and ", mat2.sym_size(0));
  const ScalarType left = self.scalar_type(), right = mat2.scalar_type();
  TORCH_CHECK(left == kChar || left == kByte,
              "_int_mm: Expected self dtype to be int8 or uint8 but got ", left);
  TORCH_CHECK(right == kChar, "_int_mm: Expected mat2 dtype to be of type int8 but got ", right);
  const SymInt sizes[2] = {self.sym_size(0), mat2.sym_size(1)};
  out.set_symint(0, sizes, kInt);
}

void meta_weight_int8pack_mm(OutputBuilder& out, const Tensor& self, const Tensor& mat2,
                             const Tensor& scales) {
  const ScalarType dtype = self.scalar_type();
  TORCH_CHECK(is_activation(dtype),
              "_weight_int8pack_mm: expect A to be either 32-bit or 16-bit float tensor.");
  TORCH_CHECK(self.dim() == 2, "_weight_int8pack_mm: expect A to be 2-D tensor.");
  TORCH_CHECK(mat2.scalar_type() == kChar, "_weight_int8pack_mm: expect B to be int8 tensor.");
  TORCH_CHECK(mat2.dim() == 2 && c10::expect_true(c10::sym_eq(mat2.sym_size(1), self.sym_size(1))),
              "_weight_int8pack_mm: expect B.size(1) == ", self.sym_size(1));
  TORCH_CHECK(scales.dim() == 1 &&
                  c10::expect_true(c10::sym_eq(scales.sym_size(0), mat2.sym_size(0))),
              "_weight_int8pack_mm: expect scales to be 1d tensor with size ", mat2.sym_size(0));
  check_dtype(scales, dtype);
  const SymInt sizes[2] = {self.sym_size(0), mat2.sym_size(0)};
  out.set_symint(0, sizes, dtype);
}

void meta_convert_weight_to_int4pack_for_cpu(OutputBuilder& out, const Tensor& self, int64_t) {
  TORCH_CHECK(self.dim() == 2, "_convert_weight_to_int4pack_cpu : expect weight to be 2D tensor.");
  TORCH_CHECK(self.scalar_type() == kInt,
              "_convert_weight_to_int4pack_cpu : expect weight to be kInt.");
  const SymInt n = self.sym_size(0), k = self.sym_size(1);
  TORCH_CHECK(c10::expect_true(c10::sym_eq(n % 16, 0)),
              "_convert_weight_to_int4pack_cpu : expect N to be dividable by 16");
  TORCH_CHECK(c10::expect_true(c10::sym_eq(k % 2, 0)),
              "_convert_weight_to_int4pack: expect K to be dividable by 2");
  const SymInt sizes[2] = {n, k / 2};
  out.set_symint(0, sizes, kByte);
}

void meta_weight_int4pack_mm_for_cpu(OutputBuilder& out, const Tensor& self, const Tensor& mat2,
                                     int64_t group, const Tensor& scales_and_zeros) {
  constexpr const char* op = "_weight_int4pack_mm_cpu";
  TORCH_CHECK(is_activation(self.scalar_type()), op,
              " : expect A to be either 32-bit or 16-bit float tensor.");
  TORCH_CHECK(self.dim() == 2, op, " : expect A to be 2D tensor.");
  TORCH_CHECK(mat2.scalar_type() == kByte, op, " : expect B to be uint8 tensor.");
  TORCH_CHECK(mat2.dim() == 2, op, " : expect B to be 2D tensor.");
  TORCH_CHECK(c10::expect_true(c10::sym_eq(mat2.sym_size(1) * 2, self.sym_size(1))), op,
              " : expect B to hold ", self.sym_size(1), " values a row, got ",
              mat2.sym_size(1) * 2);
  TORCH_CHECK(group == 32 || group == 64 || group == 128 || group == 256, op,
              ": expect qGroupSize to be 32, 64, 128 or 256, got ", group);
  TORCH_CHECK(c10::expect_true(c10::sym_eq(self.sym_size(1) % group, 0)), op,
              ": expect K to be a multiple of qGroupSize ", group, ", got ", self.sym_size(1));
  const SymInt n = mat2.sym_size(0);
  TORCH_CHECK(c10::expect_true(c10::sym_eq(n % 16, 0)), op,
              ": expect N to be dividable by 16, got ", n);
  const bool fits = scales_and_zeros.dim() == 3 &&
                    c10::expect_true(c10::sym_eq(scales_and_zeros.sym_size(1), n)) &&
                    c10::expect_true(c10::sym_eq(scales_and_zeros.sym_size(2), 2));
  TORCH_CHECK(fits, op, ": expect qScaleAndZeros to be 3d tensor with sizes [:, ", n, ", 2]");
  TORCH_CHECK(c10::expect_true(c10::sym_eq(scales_and_zeros.sym_size(0) * group, self.sym_size(1))),
              op, ": expect qScaleAndZeros to have a row for each group, ",
              self.sym_size(1) / group, ", got ", scales_and_zeros.sym_size(0));
  check_dtype(scales_and_zeros, self.scalar_type());
  const SymInt sizes[2] = {self.sym_size(0), n};
  out.set_symint(0, sizes, self.scalar_type());
}

} // namespace at::meta

namespace at::native {
using namespace at::quantized::weight_only;

namespace {
// Rows from which packing the weights pays.
constexpr int64_t kPackedRows = 128;

// Signed levels become unsigned ones, 128 above; sums of the weights take that off again.
void packed_product(const Tensor& self, const Tensor& mat2, int32_t* out) {
  const int64_t m = self.size(0), k = self.size(1), n = mat2.size(1);
  const int64_t stride = quantized::int8::padded(k);
  const bool is_signed = self.scalar_type() == kChar;
  const uint8_t flip = is_signed ? 0x80 : 0;
  const Tensor a = self.contiguous();
  const auto* in = static_cast<const uint8_t*>(a.data_ptr());
  std::vector<uint8_t> rows(static_cast<size_t>(m * stride));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < k; ++j)
      rows[static_cast<size_t>(i * stride + j)] = in[i * k + j] ^ flip;
  const quantized::int8::Weight packed(static_cast<const int8_t*>(mat2.data_ptr()), n, k,
                                       mat2.stride(1), mat2.stride(0));
  std::vector<int32_t> offset(static_cast<size_t>(n), 0);
  if (is_signed)
    for (size_t j = 0; j < offset.size(); ++j) offset[j] = 128 * packed.sums()[j];
  quantized::int8::Epilogue epilogue;
  epilogue.offset = offset.data();
  epilogue.out = out;
  epilogue.stride = n;
  quantized::int8::multiply(rows.data(), stride, m, packed, epilogue,
                            quantized::int8::table().integers);
}
} // namespace

void _int_mm_cpu(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  const int64_t m = self.size(0), k = self.size(1), n = mat2.size(1);
  if (m == 0 || n == 0) return;
  const Tensor result = out.is_contiguous() ? out : at::detail::empty(out.sizes(), kInt);
  if (m >= kPackedRows && k > 0) {
    packed_product(self, mat2, result.data_ptr<int32_t>());
    if (!result.is_same(out)) out.copy_(result);
    return;
  }
  const Tensor a = self.contiguous(), w = mat2.transpose(0, 1).contiguous();
  // Signed levels become unsigned ones that are 128 too large; unsigned ones lie 128 above what the
  // kernel takes off, which a row of sums puts back.
  const bool is_signed = self.scalar_type() == kChar;
  const auto* in = static_cast<const uint8_t*>(a.data_ptr());
  std::vector<uint8_t> moved;
  if (is_signed) {
    moved.resize(static_cast<size_t>(m * k));
    for (int64_t i = 0; i < m * k; ++i) moved[static_cast<size_t>(i)] = in[i] ^ 0x80;
    in = moved.data();
  }
  const auto* weights = static_cast<const int8_t*>(w.data_ptr());
  constexpr int64_t kColumns = 64;
  parallel_for(0, (n + kColumns - 1) / kColumns, grain(m * k * kColumns),
               [&](int64_t begin, int64_t end) {
                 for (int64_t block = begin; block < end; ++block) {
                   const int64_t first = block * kColumns, columns = std::min(kColumns, n - first);
                   int32_t* to = result.data_ptr<int32_t>() + first;
                   table().integers({in, m, k, weights + first * k, k, columns, to, n});
                   if (is_signed) continue;
                   for (int64_t j = 0; j < columns; ++j) {
                     const int8_t* row = weights + (first + j) * k;
                     int32_t sum = 0;
                     for (int64_t i = 0; i < k; ++i) sum += row[i];
                     for (int64_t i = 0; i < m; ++i) to[i * n + j] += 128 * sum;
                   }
                 }
               });
  if (!result.is_same(out)) out.copy_(result);
}

// There the factors are widened: sums of 8-bit integers are exact in 32 bits.
void _int_mm_cuda(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  out.copy_(at::mm(self.to(kInt), mat2.to(kInt)));
}

void _weight_int8pack_mm_cuda(const Tensor& self, const Tensor& mat2, const Tensor& scales,
                              const Tensor& out) {
  const Tensor sums = at::mm(self.to(kFloat), mat2.to(kFloat).transpose(0, 1));
  out.copy_(at::mul(sums, scales.to(kFloat)));
}

void _weight_int8pack_mm_cpu(const Tensor& self, const Tensor& mat2, const Tensor& scales,
                             const Tensor& out) {
  const int64_t m = self.size(0), k = self.size(1), n = mat2.size(0);
  if (m == 0 || n == 0) return;
  const Tensor x = self.to(kFloat).contiguous(), w = mat2.contiguous();
  const Tensor factors = scales.to(kFloat).contiguous(), result = float_result(out);
  const auto* weights = static_cast<const int8_t*>(w.data_ptr());
  constexpr int64_t kColumns = 32;
  parallel_for(0, (n + kColumns - 1) / kColumns, grain(m * k * kColumns),
               [&](int64_t begin, int64_t end) {
                 for (int64_t block = begin; block < end; ++block) {
                   const int64_t first = block * kColumns;
                   table().int8({x.data_ptr<float>(), k, m, weights + first * k, k,
                                 std::min(kColumns, n - first), factors.data_ptr<float>() + first,
                                 result.data_ptr<float>() + first, n});
                 }
               });
  if (!result.is_same(out)) out.copy_(result);
}

void _convert_weight_to_int4pack_for_cpu(const Tensor& self, int64_t, const Tensor& out) {
  const Tensor weights = self.contiguous();
  const Int4Layout layout{self.size(0), self.size(1), table().int4_block};
  const auto* in = weights.data_ptr<int32_t>();
  const Tensor result = out.is_contiguous() ? out : at::detail::empty(out.sizes(), kByte);
  auto* bytes = static_cast<uint8_t*>(result.data_ptr());
  for (int64_t row = 0; row < layout.n; ++row) {
    const bool high = layout.high(row);
    for (int64_t k = 0; k < layout.k; ++k) {
      const auto level = static_cast<uint8_t>(in[row * layout.k + k] & 15);
      uint8_t& byte = bytes[layout.byte(row, k)];
      // The low half is written first: its row comes before that of the high half.
      byte = high ? static_cast<uint8_t>(byte | (level << 4)) : level;
    }
  }
  if (!result.is_same(out)) out.copy_(result);
}

void _weight_int4pack_mm_for_cpu(const Tensor& self, const Tensor& mat2, int64_t group,
                                 const Tensor& scales_and_zeros, const Tensor& out) {
  const int64_t m = self.size(0), k = self.size(1), n = mat2.size(0);
  if (m == 0 || n == 0) return;
  if (k == 0) {
    out.zero_();
    return;
  }
  const Tensor x = self.to(kFloat).contiguous(), w = mat2.contiguous();
  const Tensor scales = scales_and_zeros.contiguous(), result = float_result(out);
  const auto* weights = static_cast<const uint8_t*>(w.data_ptr());
  const auto* pairs = static_cast<const char*>(scales.data_ptr());
  const int64_t pair = 2 * scales.element_size();
  const Scales dtype = scales_of(scales.scalar_type());
  std::vector<float> sums(static_cast<size_t>(m * (k / group)));
  for (int64_t i = 0; i < m; ++i)
    table().group_sums(x.data_ptr<float>() + i * k, k, group, sums.data() + i * (k / group));
  const Int4Layout layout{n, k, table().int4_block};
  const int64_t blocks = (n + layout.block - 1) / layout.block;
  parallel_for(0, blocks, grain(m * k * layout.block), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * layout.block;
      const Int4Tile tile{x.data_ptr<float>(),
                          sums.data(),
                          k,
                          m,
                          weights + first * k / 2,
                          pairs + first * pair,
                          n,
                          k,
                          group,
                          std::min(layout.block, n - first),
                          result.data_ptr<float>() + first,
                          n};
      (first < layout.whole() ? table().int4_whole : table().int4_rest)[dtype](tile);
    }
  });
  if (!result.is_same(out)) out.copy_(result);
}

// The checks and shapes of the product on CUDA; its kernels ask the same functions.
Tensor _convert_weight_to_int4pack_meta(const Tensor& self, int64_t tiles) {
  constexpr const char* op = "_convert_weight_to_int4pack";
  TORCH_CHECK(self.dim() == 2, op, ": expect weight to be 2D tensor.");
  TORCH_CHECK(self.scalar_type() == kByte, op, ": expect weight to be kByte.");
  TORCH_CHECK(tiles == 2 || tiles == 4 || tiles == 8, op,
              ": expect innerKTiles to be 2, 4 or 8, got ", tiles);
  const SymInt n = self.sym_size(0), k = self.sym_size(1) * 2;
  TORCH_CHECK(c10::expect_true(c10::sym_eq(n % 8, 0)), op, ": expect N to be dividable by 8, got ",
              n);
  TORCH_CHECK(c10::expect_true(c10::sym_eq(k % (16 * tiles), 0)), op,
              ": expect K to be dividable by 16 * innerKTiles, ", 16 * tiles, ", got ", k);
  const SymInt sizes[4] = {n / 8, k / (16 * tiles), 32, tiles / 2};
  return detail::empty_symint(sizes, kInt, Device(kMeta));
}

Tensor _weight_int4pack_mm_meta(const Tensor& self, const Tensor& mat2, int64_t group,
                                const Tensor& scales_and_zeros) {
  constexpr const char* op = "_weight_int4pack_mm";
  const auto equal = [](const SymInt& a, const SymInt& b) {
    return c10::expect_true(c10::sym_eq(a, b));
  };
  TORCH_CHECK(self.scalar_type() == kBFloat16, op, ": expect A to be bfloat16 tensor.");
  TORCH_CHECK(self.dim() == 2, op, ": expect A to be 2D tensor.");
  TORCH_CHECK(mat2.scalar_type() == kInt, op, ": expect B to be int32 tensor.");
  TORCH_CHECK(mat2.dim() == 4 && equal(mat2.sym_size(2), 32), op,
              ": expect B to be 4d tensor of [N / 8, K / (innerKTiles * 16), 32, innerKTiles / 2]");
  const SymInt words = mat2.sym_size(3), k = self.sym_size(1), n = mat2.sym_size(0) * 8;
  TORCH_CHECK(equal(words, 1) || equal(words, 2) || equal(words, 4), op,
              ": expect B to be packed with innerKTiles 2, 4 or 8, got ", words * 2);
  TORCH_CHECK(equal(mat2.sym_size(1) * words * 32, k), op, ": expect B to hold ", k,
              " values a row, got ", mat2.sym_size(1) * words * 32);
  TORCH_CHECK(group == 32 || group == 64 || group == 128 || group == 256, op,
              ": expect qGroupSize to be 32, 64, 128 or 256, got ", group);
  TORCH_CHECK(equal(k % group, 0), op, ": expect K to be a multiple of qGroupSize ", group,
              ", got ", k);
  TORCH_CHECK(scales_and_zeros.dim() == 3 && equal(scales_and_zeros.sym_size(0) * group, k) &&
                  equal(scales_and_zeros.sym_size(1), n) && equal(scales_and_zeros.sym_size(2), 2),
              op, ": expect qScaleAndZeros to be 3d tensor with sizes [", k / group, ", ", n,
              ", 2], got ", scales_and_zeros.sym_sizes());
  check_dtype(scales_and_zeros, kBFloat16);
  const SymInt sizes[2] = {self.sym_size(0), n};
  return detail::empty_symint(sizes, kBFloat16, Device(kMeta));
}

} // namespace at::native
