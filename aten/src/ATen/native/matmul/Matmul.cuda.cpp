// Matrix products on CUDA by cuBLASLt, which is column-major: a row-major product is computed as
// the product of the transposes, D' = B' A', so operands are handed over as they lie. Only operands
// whose elements lie apart in both dimensions are copied first.
#include <ATen/core/Context.h>
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/CublasLt.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/matmul/IntegerProduct.args.h>
#include <ATen/native/matmul/Native.h>
#include <ATen/native/matmul/Product.h>
#include <ATen/ops/add.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/mul.h>

namespace at::native {
namespace {

using cuda::Product;
using cuda::ProductData;

// The numbers cuBLASLt scales with, in the accumulator's type.
struct Scale {
  union {
    float f[2];
    double d[2];
  };
  Scale(const Scalar& s, ScalarType dtype) {
    if (dtype == kComplexDouble || dtype == kComplexFloat) {
      const auto z = s.to<c10::complex<double>>();
      dtype == kComplexDouble ? set(d, z) : set(f, z);
    } else if (dtype == kDouble) {
      d[0] = s.to<double>();
    } else {
      f[0] = static_cast<float>(s.to<double>());
    }
  }

 private:
  template <class T> static void set(T* to, const c10::complex<double>& z) {
    to[0] = static_cast<T>(z.real());
    to[1] = static_cast<T>(z.imag());
  }
};

// A batch of matrices as cuBLASLt can read it: one of the two strides is 1.
struct Matrix {
  Tensor held; // keeps a copy alive
  const void* data = nullptr;
  int64_t ld = 1, batch_stride = 0;
  bool row_major = true;
};

bool readable(int64_t rows, int64_t cols, int64_t rs, int64_t cs, Matrix& m) {
  const int64_t one = 1;
  if ((cs == 1 || cols == 1) && (rows == 1 || rs >= std::max(cols, one))) {
    m.row_major = true;
    m.ld = rows == 1 ? std::max(cols, one) : rs;
    return true;
  }
  if ((rs == 1 || rows == 1) && (cols == 1 || cs >= std::max(rows, one))) {
    m.row_major = false;
    m.ld = cols == 1 ? std::max(rows, one) : cs;
    return true;
  }
  return false;
}

// t is rank 2, or rank 3 with the batch first.
Matrix matrix_of(const Tensor& t) {
  Matrix m;
  const int64_t d = t.dim();
  m.held = t;
  if (!readable(t.size(d - 2), t.size(d - 1), t.stride(d - 2), t.stride(d - 1), m)) {
    m.held = t.contiguous();
    readable(t.size(d - 2), t.size(d - 1), m.held.stride(d - 2), m.held.stride(d - 1), m);
  }
  m.batch_stride = d == 3 && t.size(0) > 1 ? m.held.stride(0) : 0;
  m.data = m.held.const_data_ptr();
  return m;
}

bool is_one(const Scalar& s) { return s.equal(1.0); }
bool is_zero(const Scalar& s) { return s.equal(0.0); }

bool use_tf32(ScalarType dtype) {
  return (dtype == kFloat || dtype == kComplexFloat) &&
         globalContext().float32_matmul_precision.load(std::memory_order_relaxed) !=
             Float32MatmulPrecision::Highest;
}

// out = alpha a b + beta c + bias for rank 2 or 3; `out` is row-major readable, `c` too (or null:
// beta is zero).
void queue(const Tensor& a, const Tensor& b, const Tensor* c, const Tensor& out, const Tensor* bias,
           const Scalar& beta, const Scalar& alpha) {
  const int64_t d = a.dim();
  const ScalarType dtype = a.scalar_type();
  const Matrix ma = matrix_of(a), mb = matrix_of(b);
  Matrix mc, md;
  readable(out.size(d - 2), out.size(d - 1), out.stride(d - 2), out.stride(d - 1), md);
  Product p;
  p.m = b.size(d - 1);
  p.n = a.size(d - 2);
  p.k = a.size(d - 1);
  p.batch = d == 3 ? a.size(0) : 1;
  p.dtype = static_cast<int8_t>(dtype);
  p.dtype_d = static_cast<int8_t>(out.scalar_type());
  p.lda = mb.ld;
  p.ldb = ma.ld;
  p.ldd = p.ldc = md.ld;
  p.transpose_a = !mb.row_major;
  p.transpose_b = !ma.row_major;
  p.stride_a = mb.batch_stride;
  p.stride_b = ma.batch_stride;
  p.stride_d = p.stride_c = d == 3 && p.batch > 1 ? out.stride(0) : 0;
  p.device = out.device().index();
  p.tf32 = use_tf32(dtype);
  p.bias = bias != nullptr;
  const void* source = out.mutable_data_ptr();
  if (c != nullptr) {
    readable(c->size(d - 2), c->size(d - 1), c->stride(d - 2), c->stride(d - 1), mc);
    p.ldc = mc.ld;
    p.stride_c = d == 3 && p.batch > 1 ? c->stride(0) : 0;
    source = c->const_data_ptr();
  }
  p.align_a = cuda::alignment_log2(mb.data);
  p.align_b = cuda::alignment_log2(ma.data);
  p.align_c = cuda::alignment_log2(source);
  p.align_d = cuda::alignment_log2(out.mutable_data_ptr());
  const Scale scale(alpha, dtype), scale_c(c ? beta : Scalar(0), dtype);
  const ProductData data{
      mb.data, ma.data, source, out.mutable_data_ptr(), bias ? bias->const_data_ptr() : nullptr,
      &scale,  &scale_c};
  cuda::run_product(p, data, cuda::current_stream());
}

bool row_major_matrix(const Tensor& t) {
  Matrix m;
  const int64_t d = t.dim();
  return readable(t.size(d - 2), t.size(d - 1), t.stride(d - 2), t.stride(d - 1), m) && m.row_major;
}

// The bias cuBLASLt can add itself: one value per column, in the real types.
bool fits_epilogue(const Tensor& self, const Tensor& out, const Scalar& beta) {
  return self.dim() == 1 && self.is_contiguous() && is_one(beta) && out.dim() == 2 &&
         self.size(0) == out.size(1) && self.scalar_type() != kDouble && !self.is_complex() &&
         reinterpret_cast<uintptr_t>(self.const_data_ptr()) % 16 == 0;
}

// ---- integers
constexpr const char* kIntegers = "native/matmul/IntegerProduct.cuh";
const cuda::Kernel kInteger[5] = {{kIntegers, "integer_product_u8"},
                                  {kIntegers, "integer_product_i8"},
                                  {kIntegers, "integer_product_i16"},
                                  {kIntegers, "integer_product_i32"},
                                  {kIntegers, "integer_product_i64"}};
int integer_slot(ScalarType dtype) {
  return dtype == kByte    ? 0
         : dtype == kChar  ? 1
         : dtype == kShort ? 2
         : dtype == kInt   ? 3
         : dtype == kLong  ? 4
                           : -1;
}

// out = beta * self + alpha a b; self, where given, broadcasts. `out` is not one of the others.
void integer_product(const Tensor& a, const Tensor& b, const Tensor* self, const Tensor& out,
                     const Scalar& beta, const Scalar& alpha) {
  const int64_t d = a.dim();
  device::IntegerProduct p{};
  p.m = a.size(d - 2);
  p.n = b.size(d - 1);
  p.k = a.size(d - 1);
  const auto strides = [d](const Tensor& t, int64_t(&to)[3]) {
    to[0] = d == 3 ? t.stride(0) : 0;
    to[1] = t.stride(d - 2);
    to[2] = t.stride(d - 1);
  };
  strides(a, p.a);
  strides(b, p.b);
  strides(out, p.d);
  p.alpha = alpha.to<int64_t>();
  Tensor added;
  if (self != nullptr) {
    added = self->expand(out.sizes());
    strides(added, p.c);
    p.beta = beta.to<int64_t>();
  }
  const void* c = added.defined() ? added.const_data_ptr() : nullptr;
  const cuda::Dim3 grid(cuda::blocks_for(p.n, 16), cuda::blocks_for(p.m, 16),
                        d == 3 ? static_cast<unsigned>(a.size(0)) : 1);
  TORCH_CHECK_NOT_IMPLEMENTED(grid.y <= 65535 && grid.z <= 65535,
                              "products of integers on CUDA with more than 65535 matrices or a "
                              "million rows");
  cuda::launch(kInteger[integer_slot(a.scalar_type())], grid, 256, 0, cuda::current_stream(),
               a.const_data_ptr(), b.const_data_ptr(), c, out.mutable_data_ptr(), p);
}

// out = beta * self + alpha a b; self may be broadcast.
void product(const Tensor& a, const Tensor& b, const Tensor* self, const Tensor& out,
             const Scalar& beta, const Scalar& alpha) {
  cuda::check_same_device({&a, &b, self, &out});
  if (out.numel() == 0) return;
  const bool adds = self != nullptr && !is_zero(beta);
  if (a.size(-1) == 0) { // an empty sum
    if (adds)
      out.copy_(at::mul(*self, beta));
    else
      out.zero_();
    return;
  }
  if (integer_slot(a.scalar_type()) >= 0) {
    integer_product(a, b, adds ? self : nullptr, out, beta, alpha);
    return;
  }
  if (!row_major_matrix(out)) {
    const Tensor dense = detail::empty(out.sizes(), out.scalar_type(), out.device());
    product(a, b, self, dense, beta, alpha);
    out.copy_(dense);
    return;
  }
  if (!adds) {
    queue(a, b, nullptr, out, nullptr, beta, alpha);
  } else if (fits_epilogue(*self, out, beta) && !out.is_same(*self)) {
    queue(a, b, nullptr, out, self, beta, alpha);
  } else if (self->sizes() == out.sizes() && row_major_matrix(*self)) {
    queue(a, b, self, out, nullptr, beta, alpha);
  } else {
    if (!out.is_same(*self)) out.copy_(*self);
    queue(a, b, &out, out, nullptr, beta, alpha);
  }
}

Tensor column(const Tensor& vec) { return vec.unsqueeze(1); }

// ---- a few rows times a large matrix (FewRows.cuh)
constexpr int64_t kMostRows = 4;
constexpr const char* kFewRows = "native/matmul/FewRows.cuh";
#define CRESSET_FEW_ROWS(type)                                                                     \
  {                                                                                                \
    {kFewRows, "few_rows_1_" type}, {kFewRows, "few_rows_2_" type},                                \
        {kFewRows, "few_rows_3_" type}, {                                                          \
      kFewRows, "few_rows_4_" type                                                                 \
    }                                                                                              \
  }
const cuda::Kernel kFewRowsOf[3][kMostRows] = {CRESSET_FEW_ROWS("f32"), CRESSET_FEW_ROWS("f16"),
                                               CRESSET_FEW_ROWS("bf16")};
#undef CRESSET_FEW_ROWS

// out = x w' + bias; false where the kernel does not do it. x is rows x k, w n x k.
bool few_rows(const Tensor& x, const Tensor& w, const Tensor* bias, const Tensor& out) {
  const ScalarType dtype = x.scalar_type();
  if (dtype != kFloat && dtype != kHalf && dtype != kBFloat16) return false;
  const int64_t rows = x.size(0), k = x.size(1), n = w.size(0);
  if (rows < 1 || rows > kMostRows || n == 0 || k == 0 || k * x.itemsize() % 16 != 0) return false;
  if (dtype == kFloat && use_tf32(dtype)) return false;
  for (const Tensor* t : {&x, &w, &out, bias}) {
    if (t == nullptr) continue;
    if (t->scalar_type() != dtype || !t->is_contiguous() || t->device() != x.device()) return false;
    if (t != bias && !cuda::is_aligned16(t->const_data_ptr())) return false;
  }
  if (bias != nullptr && (bias->dim() != 1 || bias->size(0) != n)) return false;
  const int type = dtype == kFloat ? 0 : dtype == kHalf ? 1 : 2;
  constexpr unsigned kWarps = 4;
  cuda::launch(kFewRowsOf[type][rows - 1], static_cast<unsigned>((n + kWarps - 1) / kWarps),
               32 * kWarps, 0, cuda::current_stream(), x.const_data_ptr(), w.const_data_ptr(),
               bias ? bias->const_data_ptr() : nullptr, out.mutable_data_ptr(), n, k);
  return true;
}

// The same for a matrix that is a transposed weight, as graphs have it for a linear layer.
bool few_rows_of_product(const Tensor& x, const Tensor& mat2, const Tensor* bias,
                         const Tensor& out) {
  if (x.size(0) > kMostRows || mat2.stride(0) != 1 || x.size(1) != mat2.size(0)) return false;
  return few_rows(x, mat2.transpose(0, 1), bias, out);
}

} // namespace

void product_cuda(const Tensor& a, const Tensor& b, const Tensor& out, const Scalar& alpha) {
  product(a, b, nullptr, out, 0, alpha);
}
void add_product_cuda(const Tensor& a, const Tensor& b, const Tensor& out, const Scalar& alpha) {
  product(a, b, &out, out, 1, alpha);
}

void mm_cuda(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  if (few_rows_of_product(self, mat2, nullptr, out)) return;
  product(self, mat2, nullptr, out, 0, 1);
}
void addmm_cuda(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                const Scalar& alpha, const Tensor& out) {
  if (beta.equal(1.0) && alpha.equal(1.0) && few_rows_of_product(mat1, mat2, &self, out)) return;
  product(mat1, mat2, &self, out, beta, alpha);
}
void bmm_cuda(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  product(self, mat2, nullptr, out, 0, 1);
}
void baddbmm_cuda(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                  const Scalar& beta, const Scalar& alpha, const Tensor& out) {
  product(batch1, batch2, &self, out, beta, alpha);
}
void addbmm_cuda(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                 const Scalar& alpha, const Tensor& out) {
  // The sum over the batch is one product of the batches laid side by side.
  const int64_t batch = batch1.size(0), m = batch1.size(1), k = batch1.size(2);
  const Tensor a = batch1.transpose(0, 1).reshape({m, batch * k});
  const Tensor b = batch2.reshape({batch * k, batch2.size(2)});
  product(a, b, &self, out, beta, alpha);
}
void mv_cuda(const Tensor& self, const Tensor& vec, const Tensor& out) {
  product(self, column(vec), nullptr, column(out), 0, 1);
}
void addmv_cuda(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
                const Scalar& alpha, const Tensor& out) {
  const Tensor wide = column(self.expand({mat.size(0)}));
  product(mat, column(vec), &wide, column(out), beta, alpha);
}
void dot_cuda(const Tensor& self, const Tensor& tensor, const Tensor& out) {
  product(self.unsqueeze(0), column(tensor), nullptr, out.view({1, 1}), 0, 1);
}
void vdot_cuda(const Tensor& self, const Tensor& other, const Tensor& out) {
  dot_cuda(self.is_complex() ? at::conj_physical(self) : self, other, out);
}

void linear_cuda(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                 const Tensor& out) {
  const bool vector = weight.dim() == 1;
  const int64_t k = input.sizes().back(), n = vector ? 1 : weight.size(0);
  const int64_t rows = n == 0 ? 0 : out.numel() / n;
  const Tensor x = input.dim() == 2 ? input : input.reshape({rows, k});
  const Tensor flat = out.dim() == 2 && !vector ? out : out.view({rows, n});
  const Tensor* const added = bias && bias->defined() ? &*bias : nullptr;
  if (!vector && rows <= kMostRows && few_rows(x, weight, added, flat)) return;
  const Tensor w = vector ? column(weight) : weight.transpose(0, 1);
  if (!bias || !bias->defined()) {
    product(x, w, nullptr, flat, 0, 1);
  } else if (bias->dim() <= 1) {
    product(x, w, &*bias, flat, 1, 1);
  } else {
    product(x, w, nullptr, flat, 0, 1);
    Tensor target = out;
    at::_ops::add__Tensor::call(target, *bias, 1);
  }
}

} // namespace at::native
