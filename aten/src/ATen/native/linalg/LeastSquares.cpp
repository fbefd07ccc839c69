// Least squares by LAPACK's four drivers. The solution is a view of the array LAPACK worked in,
// whose further rows hold what the residuals are made of.
#include <limits>

#include <ATen/iter/TensorIterator.h>
#include <ATen/native/linalg/Batch.h>
#include <ATen/native/linalg/LeastSquares.h>
#include <ATen/native/linalg/Native.h>
#include <ATen/native/linalg/lapack/Lapack.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

namespace at::native {
using namespace linalg;

namespace {

using Driver = LeastSquaresDriver;
using Problem = LeastSquares;

Driver driver_of(std::optional<std::string_view> name, bool cuda) {
  const std::string_view d = name.value_or(cuda ? "gels" : "gelsy");
  TORCH_CHECK(!cuda || d == "gels",
              "torch.linalg.lstsq: `driver` other than `gels` is not supported on CUDA");
  if (d == "gels") return Driver::Gels;
  if (d == "gelsy") return Driver::Gelsy;
  if (d == "gelsd") return Driver::Gelsd;
  TORCH_CHECK(d == "gelss", "torch.linalg.lstsq: parameter `driver` should be one of ",
              "(gels, gelsy, gelsd, gelss)");
  return Driver::Gelss;
}

Problem check_problem(const Tensor& a, const Tensor& b, std::optional<double> rcond,
                      std::optional<std::string_view> driver) {
  constexpr const char* what = "torch.linalg.lstsq";
  TORCH_CHECK(a.dim() >= 2, what, ": input must have at least 2 dimensions.");
  TORCH_CHECK(b.dim() >= 1, what, ": other must have at least 1 dimension.");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), what,
              ": Expected input and other to have the same dtype, but got input's dtype ",
              a.scalar_type(), " and other's dtype ", b.scalar_type());
  const int64_t extra = a.dim() - b.dim();
  TORCH_CHECK(extra >= 0 && extra <= 1, what,
              ": input.dim() must be greater or equal to other.dim() and (input.dim() - "
              "other.dim()) <= 1");
  Problem p;
  p.driver = driver_of(driver, a.is_cuda());
  p.vector = extra == 1;
  const Tensor columns = p.vector ? b.unsqueeze(-1) : b;
  TORCH_CHECK(a.size(-2) == columns.size(-2), what,
              p.vector ? ": input.size(-2) should match other.size(-1)"
                       : ": input.size(-2) should match other.size(-2)");
  TORCH_CHECK(a.scalar_type() == kFloat || a.scalar_type() == kDouble ||
                  a.scalar_type() == kComplexFloat || a.scalar_type() == kComplexDouble,
              "This function doesn't handle types other than float and double");
  p.batch = broadcast_batches(a, columns);
  p.m = a.size(-2), p.n = a.size(-1), p.cols = columns.size(-1);
  const bool single = a.scalar_type() == kFloat || a.scalar_type() == kComplexFloat;
  const double eps =
      single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  p.rcond = rcond.value_or(eps * static_cast<double>(std::max(p.m, p.n)));
  return p;
}

struct Results {
  Tensor raw, residuals, rank, values;
};

Results allocate(const Problem& p, const Tensor& a) {
  const ScalarType real = c10::toRealValueType(a.scalar_type());
  const DimVector rows = with_matrix(p.batch, std::max(p.m, p.n), p.cols);
  const bool has_values = p.driver == Driver::Gelsd || p.driver == Driver::Gelss;
  Results r;
  r.raw = detail::empty_strided(rows, column_strides(rows), a.scalar_type(), a.device());
  r.residuals = detail::empty({0}, real, a.device());
  r.rank = p.driver == Driver::Gels ? detail::empty({0}, kLong, a.device())
                                    : detail::empty(p.batch, kLong, a.device());
  r.values = has_values ? detail::empty(with_vector(p.batch, std::min(p.m, p.n)), real, a.device())
                        : detail::empty({0}, real, a.device());
  return r;
}

void prepare(const Problem& p, const Tensor& b, const Results& r) {
  r.raw.zero_();
  r.raw.narrow(-2, 0, p.m).copy_(p.vector ? b.unsqueeze(-1) : b);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> finish(const Problem& p, const Results& r) {
  Tensor solution = r.raw.narrow(-2, 0, p.n);
  if (p.vector) solution = solution.squeeze(-1);
  return {solution, r.residuals, r.rank, r.values};
}

template <class T> class Solver {
 public:
  explicit Solver(const Problem& p) : p_(p), m_(to_int(p.m)), n_(to_int(p.n)), c_(to_int(p.cols)) {}

  int run(T* a, T* b, int64_t* rank, c10::real_type_t<T>* values) {
    const int ldb = std::max(m_, n_);
    const auto rcond = static_cast<c10::real_type_t<T>>(p_.rcond);
    int found = 0, info = 0;
    switch (p_.driver) {
    case Driver::Gels:
      return lapack::gels(m_, n_, c_, a, m_, b, ldb, work_);
    case Driver::Gelsy:
      pivots_.reserve(n_);
      std::fill(pivots_.data(), pivots_.data() + n_, 0);
      info = lapack::gelsy(m_, n_, c_, a, m_, b, ldb, pivots_.data(), rcond, &found, work_);
      break;
    case Driver::Gelsd:
      info = lapack::gelsd(m_, n_, c_, a, m_, b, ldb, values, rcond, &found, work_);
      break;
    case Driver::Gelss:
      info = lapack::gelss(m_, n_, c_, a, m_, b, ldb, values, rcond, &found, work_);
      break;
    }
    *rank = found;
    return info;
  }

 private:
  const Problem& p_;
  int m_, n_, c_;
  lapack::EigenWork<T> work_;
  lapack::Work<int> pivots_;
};

void solve_problems(const Problem& p, const Tensor& a, const Results& r) {
  const int64_t batch = count_of(p.batch);
  const Tensor scratch = column_copy(a, p.batch);
  const Tensor info = detail::empty(p.batch, kInt);
  switch_types(a, "linalg_lstsq_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = c10::real_type_t<T>;
    const int64_t size = p.m * p.n, rows = std::max(p.m, p.n) * p.cols, k = std::min(p.m, p.n);
    T* from = data_of<T>(scratch);
    T* to = data_of<T>(r.raw);
    int64_t* rank = r.rank.numel() == 0 ? nullptr : data_of<int64_t>(r.rank);
    R* values = r.values.numel() == 0 ? nullptr : data_of<R>(r.values);
    auto* status = data_of<int32_t>(info);
    for_batch(batch, 4.0 * static_cast<double>(size) * static_cast<double>(k + p.cols),
              [&](int64_t first, int64_t last) {
                Solver<T> solver(p);
                for (int64_t i = first; i < last; ++i)
                  status[i] = solver.run(from + i * size, to + i * rows, rank ? rank + i : nullptr,
                                         values ? values + i * k : nullptr);
              });
  });
  check_info(info, "torch.linalg.lstsq", p.batch.empty());
}

// Sums of squares of what is left below the solution.
Tensor residuals_of(const Problem& p, const Results& r) {
  const int64_t batch = count_of(p.batch), rows = std::max(p.m, p.n);
  const Tensor out =
      detail::empty(with_vector(p.batch, p.cols), c10::toRealValueType(r.raw.scalar_type()));
  switch_types(r.raw, "linalg_lstsq_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = c10::real_type_t<T>;
    const T* x = data_of<T>(r.raw);
    R* sums = data_of<R>(out);
    for (int64_t i = 0; i < batch * p.cols; ++i) {
      R sum = 0;
      for (int64_t j = p.n; j < p.m; ++j) {
        const T v = x[i * rows + j];
        if constexpr (c10::is_complex_v<T>)
          sum += v.real_ * v.real_ + v.imag_ * v.imag_;
        else
          sum += v * v;
      }
      sums[i] = sum;
    }
  });
  return out;
}

} // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor>
linalg_lstsq_cpu(const Tensor& self, const Tensor& b, std::optional<double> rcond,
                 std::optional<std::string_view> driver) {
  const Problem p = check_problem(self, b, rcond, driver);
  Results r = allocate(p, self);
  prepare(p, b, r);
  if (r.rank.numel() > 0) r.rank.zero_();
  if (count_of(p.batch) > 0 && p.m > 0 && p.n > 0 && p.cols > 0) {
    lapack::require();
    TORCH_CHECK(all_finite(self) && all_finite(b),
                "torch.linalg.lstsq: the input contains infinities or NaNs");
    solve_problems(p, self, r);
  }
  bool full_rank = true;
  if (p.driver != Driver::Gels) {
    const auto* rank = data_of<int64_t>(r.rank);
    for (int64_t i = 0; i < r.rank.numel(); ++i) full_rank = full_rank && rank[i] == p.n;
  }
  if (p.driver != Driver::Gelsy && p.m > p.n && full_rank) r.residuals = residuals_of(p, r);
  return finish(p, r);
}

#ifndef CRESSET_NO_CUDA
std::tuple<Tensor, Tensor, Tensor, Tensor>
linalg_lstsq_cuda(const Tensor& self, const Tensor& b, std::optional<double> rcond,
                  std::optional<std::string_view> driver) {
  const Problem p = check_problem(self, b, rcond, driver);
  Results r = allocate(p, self);
  prepare(p, b, r);
  if (count_of(p.batch) > 0 && p.m > 0 && p.n > 0 && p.cols > 0)
    solve_full_rank_cuda(p, self, r.raw);
  if (p.m > p.n) {
    const Tensor sizes = at::abs(r.raw.narrow(-2, p.n, p.m - p.n));
    const int64_t rows = -2;
    r.residuals = at::sum(at::mul(sizes, sizes), IntArrayRef(&rows, 1));
  }
  return finish(p, r);
}
#endif

std::tuple<Tensor, Tensor, Tensor, Tensor>
linalg_lstsq_meta(const Tensor& self, const Tensor& b, std::optional<double> rcond,
                  std::optional<std::string_view> driver) {
  const Problem p = check_problem(self, b, rcond, driver);
  Results r = allocate(p, self);
  if (p.driver != Driver::Gelsy && p.m > p.n)
    r.residuals =
        detail::empty(with_vector(p.batch, p.cols), r.residuals.scalar_type(), self.device());
  return finish(p, r);
}

} // namespace at::native
