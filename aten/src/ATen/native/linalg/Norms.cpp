// Matrix norms and what is measured with singular values: condition, rank, pseudo-inverse.
#include <cmath>
#include <limits>

#include <ATen/native/linalg/Batch.h>
#include <ATen/native/linalg/Native.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/linalg_inv_ex.h>
#include <ATen/ops/linalg_pinv.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/movedim.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace at::native {
using namespace linalg;

namespace {

// An order as users write it: 2, not 2.0.
std::string shown(const Scalar& ord) {
  const double v = ord.to<double>();
  if (std::isfinite(v) && v == std::floor(v)) return c10::str(static_cast<int64_t>(v));
  return c10::str(v);
}

std::string joined(IntArrayRef dims) {
  std::string out;
  for (size_t i = 0; i < dims.size(); ++i) out += (i ? " " : "") + c10::str(dims[i]);
  return out;
}

int64_t wrapped(int64_t dim, int64_t n) {
  TORCH_CHECK_INDEX(dim >= -n && dim < n, "Dimension out of range (expected to be in range of [",
                    -n, ", ", n - 1, "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

// The dimensions of the matrices, checked and counted from the front.
std::pair<int64_t, int64_t> matrix_dims(const Tensor& a, IntArrayRef dim) {
  check_matrices(a, "linalg.matrix_norm");
  TORCH_CHECK(dim.size() == 2, "linalg.matrix_norm: dim must be a 2-tuple. Got ", joined(dim));
  const int64_t row = wrapped(dim[0], a.dim()), col = wrapped(dim[1], a.dim());
  TORCH_CHECK(row != col, "linalg.matrix_norm: dims must be different. Got (", dim[0], ", ", dim[1],
              ")");
  return {row, col};
}

void check_dtype(std::optional<ScalarType> dtype, const Tensor& a) {
  if (!dtype) return;
  const bool complex = c10::isComplexType(*dtype);
  TORCH_CHECK(c10::isFloatingType(*dtype) || complex,
              "linalg.matrix_norm: dtype should be floating point or complex, but got ", *dtype);
  TORCH_CHECK(complex == a.is_complex(), "linalg.matrix_norm: dtype should be ",
              a.is_complex() ? "complex" : "real", " for ", a.is_complex() ? "complex" : "real",
              " inputs, but got ", *dtype);
}

Tensor as_dtype(const Tensor& a, std::optional<ScalarType> dtype) {
  return dtype && *dtype != a.scalar_type() ? a.to(*dtype) : a;
}

Tensor sum_over(const Tensor& t, int64_t dim, bool keepdim) {
  return at::sum(t, OptionalIntArrayRef(IntArrayRef(dim)), keepdim, std::nullopt);
}

// The largest or smallest along a dimension; the largest of nothing is a norm of zero.
Tensor extreme(const Tensor& t, int64_t dim, bool keepdim, bool largest) {
  if (!largest) return at::amin(t, IntArrayRef(dim), keepdim);
  if (t.size(dim) == 0) return sum_over(t, dim, keepdim);
  return at::amax(t, IntArrayRef(dim), keepdim);
}

Tensor adjoint(const Tensor& t) {
  const Tensor swapped = t.transpose(-2, -1);
  return t.is_complex() ? at::conj(swapped) : swapped;
}

// Singular values of the matrices in dimensions row and col, and the norm made of them put back.
template <class F>
Tensor from_singular_values(const Tensor& a, int64_t row, int64_t col, bool keepdim, const F& f) {
  check_float(a, "linalg.matrix_norm", false);
  const int64_t from[2] = {row, col}, to[2] = {-2, -1};
  const Tensor values = at::linalg_svdvals(at::movedim(a, from, to));
  Tensor result = f(values);
  if (keepdim) result = result.unsqueeze(std::min(row, col)).unsqueeze(std::max(row, col));
  return result;
}

} // namespace

Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim, bool keepdim,
                          std::optional<ScalarType> dtype) {
  check_matrices(self, "linalg.matrix_norm");
  TORCH_CHECK(!ord.isComplex(),
              "linalg.matrix_norm: Expected a non-complex scalar as the order of norm.");
  const double p = ord.to<double>(), size = std::abs(p);
  TORCH_CHECK(size == 1 || size == 2 || size == std::numeric_limits<double>::infinity(),
              "linalg.matrix_norm: Order ", shown(ord), " not supported.");
  check_float(self, "linalg.matrix_norm");
  const auto [row, col] = matrix_dims(self, dim);
  check_dtype(dtype, self);
  const Tensor a = as_dtype(self, dtype);
  const bool largest = p > 0;
  if (size == 2)
    return from_singular_values(a, row, col, keepdim, [&](const Tensor& values) {
      return extreme(values, -1, false, largest);
    });
  // 1 sums down the columns, infinity along the rows.
  int64_t summed = row, kept = col;
  if (size != 1) std::swap(summed, kept);
  if (!keepdim && kept > summed) --kept;
  return extreme(sum_over(at::abs(a), summed, keepdim), kept, keepdim, largest);
}

Tensor linalg_matrix_norm(const Tensor& self, std::string_view ord, IntArrayRef dim, bool keepdim,
                          std::optional<ScalarType> dtype) {
  TORCH_CHECK(ord == "fro" || ord == "nuc", "linalg.matrix_norm: Order ", ord, " not supported.");
  check_matrices(self, "linalg.matrix_norm");
  check_float(self, "linalg.matrix_norm");
  const auto [row, col] = matrix_dims(self, dim);
  check_dtype(dtype, self);
  if (ord == "fro") {
    const int64_t dims[2] = {row, col};
    return at::linalg_vector_norm(self, 2, OptionalIntArrayRef(IntArrayRef(dims)), keepdim, dtype);
  }
  return from_singular_values(as_dtype(self, dtype), row, col, keepdim,
                              [](const Tensor& values) { return sum_over(values, -1, false); });
}

Tensor nuclear_norm(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return native::linalg_matrix_norm(self, std::string_view("nuc"), dim, keepdim, std::nullopt);
}
Tensor nuclear_norm(const Tensor& self, bool keepdim) {
  const int64_t dims[2] = {-2, -1};
  return nuclear_norm(self, IntArrayRef(dims), keepdim);
}

namespace {
void check_norm_dims(const Tensor& self, bool has_ord, const OptionalIntArrayRef& dim) {
  if (dim) {
    TORCH_CHECK(dim->size() == 1 || dim->size() == 2,
                "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", *dim);
  } else if (has_ord) {
    TORCH_CHECK(self.dim() == 1 || self.dim() == 2,
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ",
                self.dim(), "D.");
  }
}
constexpr int64_t kLastTwo[2] = {-2, -1};
} // namespace

Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord, OptionalIntArrayRef dim,
                   bool keepdim, std::optional<ScalarType> dtype) {
  check_norm_dims(self, ord.has_value(), dim);
  const bool matrix = ord && ((dim && dim->size() == 2) || (!dim && self.dim() == 2));
  if (matrix)
    return native::linalg_matrix_norm(self, *ord, dim ? *dim : IntArrayRef(kLastTwo), keepdim,
                                      dtype);
  return at::linalg_vector_norm(self, ord ? *ord : Scalar(2), dim, keepdim, dtype);
}

Tensor linalg_norm(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  check_norm_dims(self, true, dim);
  return native::linalg_matrix_norm(self, ord, dim ? *dim : IntArrayRef(kLastTwo), keepdim, dtype);
}

// ---- condition ---------------------------------------------------------------------------------
namespace {
template <class Norm>
Tensor condition_by_inverse(const Tensor& a, const Norm& norm, double if_singular) {
  const auto [inverse, info] = at::linalg_inv_ex(a, false);
  const Tensor singular = at::ne(info, 0);
  const Tensor filled = at::masked_fill(inverse, singular.unsqueeze(-1).unsqueeze(-1), 1);
  return at::masked_fill(at::mul(norm(a), norm(filled)), singular, if_singular);
}
Tensor zero_conditions(const Tensor& a) {
  return at::zeros(batch_sizes(a), a.options().dtype(c10::toRealValueType(a.scalar_type())));
}
} // namespace

Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p) {
  TORCH_CHECK(self.dim() >= 2, "linalg.cond: The input tensor must have at least 2 dimensions.");
  const double ord = p ? p->to<double>() : 2.0, size = std::abs(ord);
  TORCH_CHECK(size == 1 || size == 2 || size == std::numeric_limits<double>::infinity(),
              "linalg.cond got an invalid norm type: ", shown(p.value_or(Scalar(2))));
  if (self.numel() == 0) return zero_conditions(self);
  if (size == 2) {
    const Tensor values = at::linalg_svdvals(self);
    const Tensor high = values.narrow(-1, 0, 1), low = values.narrow(-1, values.size(-1) - 1, 1);
    return (ord > 0 ? at::div(high, low) : at::div(low, high)).squeeze(-1);
  }
  check_square(self, c10::str("linalg.cond(ord=", shown(*p), ")").c_str());
  return condition_by_inverse(
      self,
      [&](const Tensor& t) {
        return native::linalg_matrix_norm(t, *p, kLastTwo, false, std::nullopt);
      },
      std::numeric_limits<double>::infinity());
}

Tensor linalg_cond(const Tensor& self, std::string_view p) {
  TORCH_CHECK(self.dim() >= 2, "linalg.cond: The input tensor must have at least 2 dimensions.");
  check_square(self, c10::str("linalg.cond(ord=", p, ")").c_str());
  TORCH_CHECK(p == "fro" || p == "nuc", "linalg.cond got an invalid norm type: ", p);
  if (self.numel() == 0) return zero_conditions(self);
  return condition_by_inverse(
      self,
      [&](const Tensor& t) {
        return native::linalg_matrix_norm(t, p, kLastTwo, false, std::nullopt);
      },
      p == "fro" ? std::numeric_limits<double>::infinity()
                 : std::numeric_limits<double>::quiet_NaN());
}

// ---- rank and pseudo-inverse -------------------------------------------------------------------
namespace {

double epsilon_of(ScalarType t) {
  const ScalarType real = c10::toRealValueType(t);
  TORCH_CHECK(real == kFloat || real == kDouble,
              "This function doesn't handle types other than float and double");
  return real == kFloat ? std::numeric_limits<float>::epsilon()
                        : std::numeric_limits<double>::epsilon();
}

Tensor number(double value, const Tensor& like) {
  return at::full({}, value, like.options().dtype(kDouble));
}

struct Tolerances {
  Tensor atol, rtol;
};

Tolerances tolerances(const Tensor& a, const std::optional<Tensor>& atol,
                      const std::optional<Tensor>& rtol, const char* what) {
  const auto check = [&](const Tensor& t, const char* name) {
    TORCH_CHECK(!t.is_complex(), what, ": ", name, " tensor of complex type is not supported. Got ",
                t.scalar_type());
  };
  const bool has_atol = atol && atol->defined(), has_rtol = rtol && rtol->defined();
  if (has_atol) check(*atol, "atol");
  if (has_rtol) check(*rtol, "rtol");
  const double eps = epsilon_of(a.scalar_type());
  const double otherwise =
      has_atol ? 0.0 : eps * static_cast<double>(std::max(a.size(-2), a.size(-1)));
  return {has_atol ? *atol : number(0, a), has_rtol ? *rtol : number(otherwise, a)};
}

// Which of the values (descending in size, or of a Hermitian matrix) count as zero.
Tensor above(const Tensor& values, const Tolerances& t) {
  const Tensor high = at::amax(values, IntArrayRef(int64_t(-1)), true);
  const auto column = [](const Tensor& x) { return x.dim() == 0 ? x : x.unsqueeze(-1); };
  return at::gt(values, at::maximum(column(t.atol), at::mul(column(t.rtol), high)));
}

std::optional<Tensor> number_or_none(std::optional<double> value, const Tensor& like) {
  return value ? std::optional<Tensor>(number(*value, like)) : std::nullopt;
}

} // namespace

Tensor linalg_matrix_rank(const Tensor& input, const std::optional<Tensor>& atol,
                          const std::optional<Tensor>& rtol, bool hermitian) {
  check_matrices(input, "torch.linalg.matrix_rank", "input");
  const Tolerances t = tolerances(input, atol, rtol, "torch.linalg.matrix_rank");
  if (input.numel() == 0) return at::zeros(batch_sizes(input), input.options().dtype(kLong));
  const Tensor plain = input.detach();
  const Tensor values = hermitian ? at::abs(at::linalg_eigvalsh(plain)) : at::linalg_svdvals(plain);
  return sum_over(above(values, t), -1, false);
}
Tensor linalg_matrix_rank(const Tensor& self, std::optional<double> atol,
                          std::optional<double> rtol, bool hermitian) {
  check_matrices(self, "torch.linalg.matrix_rank", "input");
  return native::linalg_matrix_rank(self, number_or_none(atol, self), number_or_none(rtol, self),
                                    hermitian);
}
Tensor linalg_matrix_rank(const Tensor& input, const Tensor& tol, bool hermitian) {
  return native::linalg_matrix_rank(input, std::optional<Tensor>(tol),
                                    std::optional<Tensor>(number(0, input)), hermitian);
}
Tensor linalg_matrix_rank(const Tensor& self, double tol, bool hermitian) {
  return native::linalg_matrix_rank(self, std::optional<double>(tol), std::optional<double>(0.0),
                                    hermitian);
}

Tensor linalg_pinv_tolerances(const Tensor& self, const std::optional<Tensor>& atol,
                              const std::optional<Tensor>& rtol, bool hermitian) {
  const ScalarType type = self.scalar_type();
  TORCH_CHECK(self.dim() >= 2 && (type == kFloat || type == kDouble || type == kComplexFloat ||
                                  type == kComplexDouble),
              "linalg.pinv(", type, "{", self.sizes(),
              "}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble "
              "types");
  const Tolerances t = tolerances(self, atol, rtol, "torch.linalg.pinv");
  if (self.numel() == 0)
    return at::empty(with_matrix(batch_sizes(self), self.size(-1), self.size(-2)), self.options());
  const auto inverted = [&](const Tensor& values, const Tensor& sizes) {
    const Tensor zero = at::zeros({}, values.options());
    return at::where(above(sizes, t), at::reciprocal(values), zero).unsqueeze(-2);
  };
  if (hermitian) {
    const auto [values, vectors] = at::linalg_eigh(self);
    return at::matmul(at::mul(vectors, inverted(values, at::abs(values))), adjoint(vectors));
  }
  const auto [u, s, vh] = at::linalg_svd(self, false);
  return at::matmul(at::mul(adjoint(vh), inverted(s, s)), adjoint(u));
}

Tensor linalg_pinv(const Tensor& self, std::optional<double> atol, std::optional<double> rtol,
                   bool hermitian) {
  return at::_ops::linalg_pinv_atol_rtol_tensor::call(self, number_or_none(atol, self),
                                                      number_or_none(rtol, self), hermitian);
}
Tensor linalg_pinv(const Tensor& self, const Tensor& rcond, bool hermitian) {
  return at::_ops::linalg_pinv_atol_rtol_tensor::call(self, number(0, self), rcond, hermitian);
}
Tensor linalg_pinv(const Tensor& self, double rcond, bool hermitian) {
  return native::linalg_pinv(self, std::optional<double>(0.0), std::optional<double>(rcond),
                             hermitian);
}
Tensor pinverse(const Tensor& self, double rcond) {
  return native::linalg_pinv(self, rcond, false);
}

} // namespace at::native
