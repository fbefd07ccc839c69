// Matrix products of tensors over the raw products of gemm/. Strides are handed down as they are,
// so transposed operands are not copied.
#include <algorithm>
#include <cstring>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/IsaTable.h>
#include <ATen/iter/SymbolicShapes.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/matmul/Dot.h>
#include <ATen/native/matmul/Native.h>
#include <ATen/native/matmul/gemm/Gemm.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/expand.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/resolve_conj.h>
#include <ATen/ops/squeeze.h>
#include <ATen/ops/t.h>
#include <ATen/ops/view.h>
#include <ATen/parallel/Parallel.h>

namespace at::native {

namespace dot {
CRESSET_DEFINE_ISA_TABLE(Table);
} // namespace dot
namespace {

using GemmTypes = Types<float, double, c10::complex<float>, c10::complex<double>, c10::Half,
                        c10::BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t>;

// A product worth giving other Python threads a turn.
bool is_large(int64_t m, int64_t n, int64_t k) {
  return m * n > (int64_t(1) << 22) / std::max<int64_t>(k, 1);
}

template <class A> A scale_of(const Scalar& s) { return s.to<A>(); }

// out = beta out + alpha mat vec for complex rows that lie flush, by the dot product of each. False
// where that does not apply.
bool complex_rows_times(const Tensor& mat, const Tensor& vec, const Scalar& beta,
                        const Scalar& alpha, const Tensor& out) {
  const dot::DotFn dot = dot::table().dot[static_cast<int>(mat.scalar_type())];
  const int64_t rows = mat.size(0), n = mat.size(1);
  if (!mat.is_complex() || dot == nullptr || n < 8 || mat.stride(1) != 1 || vec.stride(0) != 1)
    return false;
  const int64_t row = mat.stride(0), step = out.stride(0);
  dtype_switch<Types<c10::complex<float>, c10::complex<double>>>(
      mat.scalar_type(), "addmv_impl_cpu", [&](auto tag) {
        using T = typename decltype(tag)::type;
        const T a = scale_of<T>(alpha), b = scale_of<T>(beta);
        const bool fresh = beta.equal(0.0), plain = alpha.equal(1.0);
        const T *from = static_cast<const T*>(mat.data_ptr()),
                *x = static_cast<const T*>(vec.data_ptr());
        T* to = static_cast<T*>(out.data_ptr());
        const BlockingRegion unlocked;
        parallel_for(0, rows, std::max<int64_t>(1, 16384 / n), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            T sum;
            dot(from + i * row, x, n, false, &sum);
            if (!plain) sum = a * sum;
            to[i * step] = fresh ? sum : b * to[i * step] + sum;
          }
        });
      });
  return true;
}

// out = beta * out + alpha * a @ b for matrices (rank 2).
void product(const Tensor& a, const Tensor& b, const Tensor& out, const Scalar& beta,
             const Scalar& alpha, const char* name) {
  const int64_t m = a.size(0), n = b.size(1), k = a.size(1);
  if (m == 0 || n == 0) return;
  if (n == 1 && complex_rows_times(a, b.select(1, 0), beta, alpha, out.select(1, 0))) return;
  dtype_switch<GemmTypes>(a.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = gemm::acc_t<T>;
    auto run = [&] {
      gemm::gemm<T>(m, n, k, scale_of<A>(alpha), static_cast<const T*>(a.data_ptr()),
                    a.strides()[0], a.strides()[1], static_cast<const T*>(b.data_ptr()),
                    b.strides()[0], b.strides()[1], scale_of<A>(beta),
                    static_cast<T*>(out.data_ptr()), out.strides()[0], out.strides()[1]);
    };
    if (is_large(m, n, k)) {
      BlockingRegion unlocked;
      run();
    } else {
      run();
    }
  });
}

void batched_product(const Tensor& a, const Tensor& b, const Tensor& out, const Scalar& beta,
                     const Scalar& alpha, const char* name) {
  const int64_t batch = a.size(0), m = a.size(1), n = b.size(2), k = a.size(2);
  if (batch == 0 || m == 0 || n == 0) return;
  if (batch == 1)
    return product(a.select(0, 0), b.select(0, 0), out.select(0, 0), beta, alpha, name);
  dtype_switch<GemmTypes>(a.scalar_type(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = gemm::acc_t<T>;
    BlockingRegion unlocked;
    gemm::gemm_batched<T>(batch, m, n, k, scale_of<A>(alpha), static_cast<const T*>(a.data_ptr()),
                          a.strides()[0], a.strides()[1], a.strides()[2],
                          static_cast<const T*>(b.data_ptr()), b.strides()[0], b.strides()[1],
                          b.strides()[2], scale_of<A>(beta), static_cast<T*>(out.data_ptr()),
                          out.strides()[0], out.strides()[1], out.strides()[2]);
  });
}

// Puts `self`, broadcast, where the product will be added; with beta 0 it is not read.
void prepare(const Tensor& self, const Tensor& out, const Scalar& beta) {
  if (!beta.equal(0.0) && !out.is_same(self)) out.copy_(self);
}
Tensor column(const Tensor& vec) { return vec.unsqueeze(1); }
} // namespace

void mm_cpu(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  product(self, mat2, out, 0, 1, "addmm_impl_cpu_");
}

namespace {
// out = a b + bias for one contiguous row of biases, without a pass that copies it to every row.
// False where that does not apply.
bool product_with_bias(const Tensor& bias, const Tensor& a, const Tensor& b, const Tensor& out) {
  const int64_t m = a.size(0), n = b.size(1), k = a.size(1);
  if (bias.dim() != 1 || bias.size(0) != n || !bias.is_contiguous() || n < 2 || m == 0 || k == 0 ||
      out.is_same(bias))
    return false;
  dtype_switch<GemmTypes>(a.scalar_type(), "addmm_impl_cpu_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = gemm::acc_t<T>;
    const auto run = [&] {
      gemm::gemm_bias<T>(m, n, k, A(1), static_cast<const T*>(a.data_ptr()), a.strides()[0],
                         a.strides()[1], static_cast<const T*>(b.data_ptr()), b.strides()[0],
                         b.strides()[1], static_cast<const T*>(bias.data_ptr()),
                         static_cast<T*>(out.data_ptr()), out.strides()[0], out.strides()[1]);
    };
    if (is_large(m, n, k)) {
      BlockingRegion unlocked;
      run();
    } else {
      run();
    }
  });
  return true;
}
} // namespace

void addmm_cpu(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
               const Scalar& alpha, const Tensor& out) {
  if (beta.equal(1.0) && alpha.equal(1.0) && product_with_bias(self, mat1, mat2, out)) return;
  prepare(self, out, beta);
  product(mat1, mat2, out, beta, alpha, "addmm_impl_cpu_");
}
void bmm_cpu(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  batched_product(self, mat2, out, 0, 1, "bmm");
}
void baddbmm_cpu(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                 const Scalar& alpha, const Tensor& out) {
  prepare(self, out, beta);
  batched_product(batch1, batch2, out, beta, alpha, "baddbmm");
}
void addbmm_cpu(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                const Scalar& alpha, const Tensor& out) {
  prepare(self, out, beta);
  if (beta.equal(0.0)) out.zero_();
  for (int64_t i = 0; i < batch1.size(0); ++i)
    product(batch1.select(0, i), batch2.select(0, i), out, i == 0 ? beta : Scalar(1), alpha,
            "addbmm");
  if (batch1.size(0) == 0 && !beta.equal(1.0)) out.copy_(at::mul(out, beta));
}
void mv_cpu(const Tensor& self, const Tensor& vec, const Tensor& out) {
  product(self, column(vec), column(out), 0, 1, "addmv_impl_cpu");
}
void addmv_cpu(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
               const Scalar& alpha, const Tensor& out) {
  prepare(self, out, beta);
  product(mat, column(vec), column(out), beta, alpha, "addmv_impl_cpu");
}
namespace {
// Long contiguous vectors: sums of blocks, added in their order. False where that does not apply.
bool dot_by_blocks(const Tensor& a, const Tensor& b, bool conjugate, const Tensor& out) {
  const dot::DotFn sum = dot::table().dot[static_cast<int>(a.scalar_type())];
  const int64_t n = a.numel(), size = a.itemsize();
  if (!sum || n < 16 || !a.is_contiguous() || !b.is_contiguous()) return false;
  const int64_t blocks = (n + dot::kBlock - 1) / dot::kBlock;
  c10::SmallVector<char, 256> partial(static_cast<size_t>(blocks * size));
  const auto* x = static_cast<const char*>(a.const_data_ptr());
  const auto* y = static_cast<const char*>(b.const_data_ptr());
  parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * dot::kBlock, count = std::min(dot::kBlock, n - first);
      sum(x + first * size, y + first * size, count, conjugate, partial.data() + i * size);
    }
  });
  dtype_switch<GemmTypes>(a.scalar_type(), "dot", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T total;
    std::memcpy(&total, partial.data(), sizeof(T));
    for (int64_t i = 1; i < blocks; ++i) {
      T next;
      std::memcpy(&next, partial.data() + i * size, sizeof(T));
      total = static_cast<T>(total + next);
    }
    *static_cast<T*>(out.data_ptr()) = total;
  });
  return true;
}
} // namespace

void dot_cpu(const Tensor& self, const Tensor& tensor, const Tensor& out) {
  if (dot_by_blocks(self, tensor, false, out)) return;
  product(self.unsqueeze(0), column(tensor), out.view({1, 1}), 0, 1, "dot");
}
void vdot_cpu(const Tensor& self, const Tensor& other, const Tensor& out) {
  if (dot_by_blocks(self, other, true, out)) return;
  dot_cpu(self.is_complex() ? at::resolve_conj(at::conj(self)) : self, other, out);
}

void linear_cpu(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                const Tensor& out) {
  const int64_t k = input.sizes().back();
  const int64_t n = weight.dim() == 2 ? weight.size(0) : 1;
  const int64_t m = k == 0 ? (n == 0 ? 0 : out.numel() / n) : input.numel() / k;
  const Tensor x = input.dim() == 2 ? input : input.contiguous();
  const bool fused_bias =
      bias && bias->defined() && bias->dim() == 1 && bias->size(0) == n && bias->is_contiguous();
  const int64_t x_rs = input.dim() == 2 ? x.strides()[0] : k,
                x_cs = input.dim() == 2 ? x.strides()[1] : 1;
  const int64_t w_rs = weight.strides().back(), w_cs = weight.dim() == 2 ? weight.strides()[0] : 0;
  dtype_switch<GemmTypes>(input.scalar_type(), "addmm_impl_cpu_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = gemm::acc_t<T>;
    auto run = [&] {
      gemm::gemm_bias<T>(m, n, k, A(1), static_cast<const T*>(x.data_ptr()), x_rs, x_cs,
                         static_cast<const T*>(weight.data_ptr()), w_rs, w_cs,
                         fused_bias ? static_cast<const T*>(bias->data_ptr()) : nullptr,
                         static_cast<T*>(out.data_ptr()), n, 1);
    };
    if (is_large(m, n, k)) {
      BlockingRegion unlocked;
      run();
    } else {
      run();
    }
  });
  if (bias && bias->defined() && !fused_bias) {
    Tensor target = out;
    at::_ops::add__Tensor::call(target, *bias, 1);
  }
}

// What linear stands for: a transpose and a product. See Note [Definitions shown to handlers].
Tensor linear_in_parts(const Tensor& input, const Tensor& weight,
                       const std::optional<Tensor>& bias) {
  if (!bias || !bias->defined()) return at::matmul(input, at::t(weight));
  if (input.dim() == 2) return at::addmm(*bias, input, at::t(weight));
  if (input.dim() == 0 || weight.dim() != 2 || !input.is_contiguous())
    return at::add(at::matmul(input, at::t(weight)), *bias);
  SymDimVector shape(input.sym_sizes());
  const SymInt rows[2] = {product_of(SymIntArrayRef(shape).slice(0, shape.size() - 1)),
                          shape.back()};
  const Tensor flat = at::_ops::view::call(input, rows);
  shape.back() = weight.sym_size(0);
  return at::_ops::view::call(at::addmm(*bias, flat, at::t(weight)), shape);
}

// ---- matmul: vectors, matrices and broadcast batches --------------------------------------------
namespace {
Tensor fold_rows(const Tensor& a, const Tensor& b) {
  // (..., k) @ (k, n): all leading dimensions are rows of one product.
  SymDimVector shape(a.sym_sizes());
  const SymInt rows = product_of(SymIntArrayRef(shape).slice(0, shape.size() - 1));
  const SymInt folded[2] = {rows, shape.back()};
  shape.back() = b.sym_size(1);
  return at::_unsafe_view_symint(at::mm(at::reshape_symint(a, folded), b), shape);
}

// (..., k) @ (k): the same with a vector.
Tensor fold_rows_of_vector(const Tensor& a, const Tensor& vec) {
  const SymIntArrayRef sizes = a.sym_sizes(), shape = sizes.slice(0, sizes.size() - 1);
  const SymInt folded[2] = {product_of(shape), sizes.back()};
  return at::_unsafe_view_symint(at::mv(at::reshape_symint(a, folded), vec), shape);
}

template <class Int> Tensor batched(const Tensor& self, const Tensor& other, ArrayRef<Int> batch) {
  const auto symbolic = [](const Ints<Int>& list) {
    return SymIntArrayRef(reinterpret_cast<const SymInt*>(list.data()), list.size());
  };
  const Int count = product_of(batch);
  auto spread = [&](const Tensor& t) {
    const Int rows = length_of<Int>(t, -2), columns = length_of<Int>(t, -1);
    Ints<Int> shape(batch), flat{count, rows, columns};
    shape.push_back(rows);
    shape.push_back(columns);
    return at::reshape_symint(at::_ops::expand::call(t, symbolic(shape), false), symbolic(flat));
  };
  Ints<Int> shape(batch);
  shape.push_back(length_of<Int>(self, -2));
  shape.push_back(length_of<Int>(other, -1));
  const Int inner = length_of<Int>(self, -1), wanted = length_of<Int>(other, -2);
  TORCH_CHECK(c10::expect_true(c10::sym_eq(inner, wanted)),
              "Expected size for first two dimensions of batch2 tensor to be: [", count, ", ",
              inner, "] but got: [", count, ", ", wanted, "].");
  return at::_unsafe_view_symint(at::bmm(spread(self), spread(other)), symbolic(shape));
}

// The dimensions before the last two.
template <class Int> ArrayRef<Int> batch_of(ArrayRef<Int> sizes) {
  return sizes.slice(0, sizes.size() - 2);
}
Tensor batched(const Tensor& self, const Tensor& other) {
  if (any_symbolic(self, other))
    return batched<SymInt>(
        self, other, symbolic_broadcast(batch_of(self.sym_sizes()), batch_of(other.sym_sizes())));
  return batched<int64_t>(self, other,
                          broadcast_shapes(batch_of(self.sizes()), batch_of(other.sizes())));
}
} // namespace

Tensor matmul(const Tensor& self, const Tensor& other) {
  const int64_t da = self.dim(), db = other.dim();
  TORCH_CHECK(da > 0 && db > 0, "both arguments to matmul need to be at least 1D, but they are ",
              da, "D and ", db, "D");
  if (da == 2 && db == 2) return at::mm(self, other);
  if (da == 1 && db == 1) return at::dot(self, other);
  if (da == 2 && db == 1) return at::mv(self, other);
  if (da == 1 && db == 2) {
    Tensor row = at::mm(self.unsqueeze(0), other);
    return at::_ops::squeeze__dim::call(row, 0);
  }
  if (db == 1) return fold_rows_of_vector(self, other);
  if (da == 1) return fold_rows_of_vector(other.transpose(-2, -1), self);
  if (db == 2) return fold_rows(self, other);
  return batched(self, other);
}
Tensor linalg_matmul(const Tensor& self, const Tensor& other) {
  return native::matmul(self, other);
}

} // namespace at::native
