// The matrix-product library against a plain triple loop in a wider type: odd shapes, every
// transpose and stride, alpha and beta, NaN in an unread C, empty dimensions, all element types,
// and equality of bits for any number of threads.
#include <ATen/native/matmul/gemm/Gemm.h>
#include <ATen/parallel/Parallel.h>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace {

using at::native::gemm::acc_t;
using at::native::gemm::gemm;
using at::native::gemm::gemm_batched;
using at::native::gemm::gemm_bias;

// The wider type a reference is computed in: double, complex<double>, or the wrapping integer.
template <class T> struct Wide { using type = T; };
template <> struct Wide<float> { using type = double; };
template <> struct Wide<c10::Half> { using type = double; };
template <> struct Wide<c10::BFloat16> { using type = double; };
template <> struct Wide<c10::complex<float>> { using type = c10::complex<double>; };

template <class T> double size_of(T x) { return std::fabs(static_cast<double>(x)); }
double size_of(c10::complex<double> x) { return std::fabs(x.real_) + std::fabs(x.imag_); }
double size_of(c10::complex<float> x) { return std::fabs(x.real_) + std::fabs(x.imag_); }

// Relative to the sum of absolute products, for k up to some thousand.
template <class T> double tolerance() { return std::is_integral_v<T> ? 0.0 : 1e-14; }
template <> double tolerance<float>() { return 2e-6; }
template <> double tolerance<c10::complex<float>>() { return 2e-6; }
template <> double tolerance<c10::Half>() { return 1.2e-3; }
template <> double tolerance<c10::BFloat16>() { return 1e-2; }

uint32_t next_random(uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

template <class T> T random_value(uint32_t& state) {
  if constexpr (c10::is_complex_v<T>) {
    using R = typename T::value_type;
    const R re = random_value<R>(state);
    return T(re, random_value<R>(state));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(next_random(state));
  } else {
    return T(static_cast<float>(next_random(state) % 2001) / 1000.0f - 1.0f);
  }
}

// A matrix with its own strides inside a buffer; what lies between elements must stay untouched.
template <class T> struct Matrix {
  int64_t rs, cs;
  std::vector<T> data;
  T& entry(int64_t i, int64_t j) { return data[static_cast<size_t>(i * rs + j * cs)]; }
};

enum class Layout { Rows, Columns, PaddedRows, PaddedColumns, Scattered };
constexpr Layout kLayouts[] = {Layout::Rows, Layout::Columns, Layout::PaddedRows,
                               Layout::PaddedColumns, Layout::Scattered};

template <class T>
Matrix<T> make_matrix(int64_t rows, int64_t cols, Layout layout, uint32_t& state) {
  Matrix<T> m{};
  switch (layout) {
  case Layout::Rows:
    m.rs = cols, m.cs = 1;
    break;
  case Layout::Columns:
    m.rs = 1, m.cs = rows;
    break;
  case Layout::PaddedRows:
    m.rs = cols + 3, m.cs = 1;
    break;
  case Layout::PaddedColumns:
    m.rs = 1, m.cs = rows + 5;
    break;
  case Layout::Scattered:
    m.rs = 3 * cols + 1, m.cs = 3;
    break;
  }
  m.data.resize(static_cast<size_t>(rows * m.rs + cols * m.cs + 1));
  for (T& x : m.data) {
    x = random_value<T>(state);
  }
  return m;
}

template <class T> void check_product(int64_t m, int64_t n, int64_t k, Layout la, Layout lb,
                                      Layout lc, int alpha, int beta, bool with_bias = false) {
  using W = typename Wide<T>::type;
  uint32_t state = static_cast<uint32_t>(m * 7919 + n * 104729 + k);
  Matrix<T> a = make_matrix<T>(m, k, la, state);
  Matrix<T> b = make_matrix<T>(k, n, lb, state);
  Matrix<T> c = make_matrix<T>(m, n, lc, state);
  Matrix<T> bias = make_matrix<T>(1, n, Layout::Rows, state);
  if (beta == 0 && !std::is_integral_v<T>) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        c.entry(i, j) = T(std::numeric_limits<float>::quiet_NaN());
      }
    }
  }
  Matrix<T> before = c;
  if (with_bias) {
    gemm_bias<T>(m, n, k, acc_t<T>(alpha), a.data.data(), a.rs, a.cs, b.data.data(), b.rs, b.cs,
                 bias.data.data(), c.data.data(), c.rs, c.cs);
  } else {
    gemm<T>(m, n, k, acc_t<T>(alpha), a.data.data(), a.rs, a.cs, b.data.data(), b.rs, b.cs,
            acc_t<T>(beta), c.data.data(), c.rs, c.cs);
  }
  int failures = 0;
  for (int64_t i = 0; i < m && failures == 0; ++i) {
    for (int64_t j = 0; j < n && failures == 0; ++j) {
      W sum = W(0);
      double scale = 1.0;
      for (int64_t p = 0; p < k; ++p) {
        const W product =
            static_cast<W>(static_cast<W>(a.entry(i, p)) * static_cast<W>(b.entry(p, j)));
        sum = static_cast<W>(sum + product);
        scale += size_of(product);
      }
      sum = static_cast<W>(sum * W(alpha));
      if (beta != 0) {
        sum = static_cast<W>(sum + static_cast<W>(W(beta) * static_cast<W>(before.entry(i, j))));
      }
      if (with_bias) {
        sum = static_cast<W>(sum + static_cast<W>(bias.entry(0, j)));
      }
      const double error = size_of(static_cast<W>(static_cast<W>(c.entry(i, j)) - sum));
      const double bound = tolerance<T>() * (scale * std::abs(alpha) + std::abs(beta) + 1.0);
      if (!(error <= bound)) {
        ++failures;
        ADD_FAILURE() << m << "x" << n << "x" << k << " layouts " << static_cast<int>(la)
                      << static_cast<int>(lb) << static_cast<int>(lc) << " alpha " << alpha
                      << " beta " << beta << " at (" << i << ", " << j << ") error " << error
                      << " bound " << bound;
      }
      before.entry(i, j) = c.entry(i, j);
    }
  }
  EXPECT_EQ(0, std::memcmp(before.data.data(), c.data.data(), c.data.size() * sizeof(T)))
      << "memory between the elements of C changed, " << m << "x" << n << "x" << k;
}

template <class T> class GemmTest : public ::testing::Test {};
using Types = ::testing::Types<float, double, c10::complex<float>, c10::complex<double>, c10::Half,
                               c10::BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t>;
TYPED_TEST_SUITE(GemmTest, Types);

TYPED_TEST(GemmTest, small_shapes_every_edge_match_reference) {
  for (int64_t m : {1, 2, 3, 5, 6, 7, 13}) {
    for (int64_t n : {1, 2, 7, 16, 17, 33, 65}) {
      for (int64_t k : {1, 2, 3, 16, 31}) {
        check_product<TypeParam>(m, n, k, Layout::Rows, Layout::Rows, Layout::Rows, 1, 0);
        check_product<TypeParam>(m, n, k, Layout::Rows, Layout::Columns, Layout::Rows, 1, 1);
      }
    }
  }
}

TYPED_TEST(GemmTest, every_layout_matches_reference) {
  for (Layout la : kLayouts) {
    for (Layout lb : kLayouts) {
      for (Layout lc : kLayouts) {
        check_product<TypeParam>(37, 83, 51, la, lb, lc, 1, 0);
        check_product<TypeParam>(5, 70, 66, la, lb, lc, 2, 1);
        check_product<TypeParam>(71, 3, 67, la, lb, lc, 1, 3);
        check_product<TypeParam>(1, 130, 65, la, lb, lc, 1, 0);
        check_product<TypeParam>(130, 1, 65, la, lb, lc, 1, 0);
        check_product<TypeParam>(9, 11, 10, la, lb, lc, 2, 3);
      }
    }
  }
}

TYPED_TEST(GemmTest, blocks_of_k_and_several_tiles_match_reference) {
  for (Layout lb : {Layout::Rows, Layout::Columns}) {
    check_product<TypeParam>(131, 150, 601, Layout::Rows, lb, Layout::Rows, 1, 0);
    check_product<TypeParam>(40, 129, 2053, Layout::Columns, lb, Layout::Scattered, 3, 2);
    check_product<TypeParam>(3, 129, 2053, Layout::Columns, lb, Layout::Rows, 1, 0);
    check_product<TypeParam>(26, 70, 4101, Layout::Columns, lb, Layout::Rows, 1, 1);
  }
}

TEST(GemmPartsTest, operands_packed_in_several_parts_match_reference) {
  check_product<float>(30, 1100, 2100, Layout::Rows, Layout::Rows, Layout::Rows, 1, 0);
  check_product<float>(1100, 30, 2100, Layout::Columns, Layout::Columns, Layout::Rows, 2, 1);
  check_product<c10::BFloat16>(30, 1100, 4200, Layout::Columns, Layout::Rows, Layout::Rows, 1, 0);
}

TYPED_TEST(GemmTest, long_k_small_c_matches_reference) {
  check_product<TypeParam>(7, 9, 9001, Layout::Rows, Layout::Rows, Layout::Rows, 1, 0);
  check_product<TypeParam>(20, 33, 8300, Layout::Columns, Layout::Rows, Layout::Rows, 2, 1);
  check_product<TypeParam>(1, 1, 20011, Layout::Rows, Layout::Columns, Layout::Rows, 1, 0);
}

TYPED_TEST(GemmTest, bias_is_added_to_every_row) {
  for (Layout lb : {Layout::Rows, Layout::Columns, Layout::Scattered}) {
    for (Layout lc : {Layout::Rows, Layout::Columns, Layout::Scattered}) {
      check_product<TypeParam>(4, 4, 4, Layout::Rows, lb, lc, 1, 0, true);
      check_product<TypeParam>(1, 70, 90, Layout::Rows, lb, lc, 1, 0, true);
      check_product<TypeParam>(90, 3, 70, Layout::Rows, lb, lc, 1, 0, true);
      check_product<TypeParam>(45, 101, 777, Layout::Rows, lb, lc, 2, 0, true);
    }
  }
}

TYPED_TEST(GemmTest, empty_dimensions) {
  using T = TypeParam;
  for (Layout lc : kLayouts) {
    check_product<T>(5, 7, 0, Layout::Rows, Layout::Rows, lc, 1, 0);
    check_product<T>(5, 7, 0, Layout::Rows, Layout::Rows, lc, 1, 1);
    check_product<T>(5, 7, 0, Layout::Rows, Layout::Rows, lc, 1, 3);
    check_product<T>(5, 7, 0, Layout::Rows, Layout::Rows, lc, 1, 0, true);
  }
  gemm<T>(0, 4, 4, acc_t<T>(1), nullptr, 4, 1, nullptr, 4, 1, acc_t<T>(0), nullptr, 4, 1);
  gemm<T>(4, 0, 4, acc_t<T>(1), nullptr, 4, 1, nullptr, 4, 1, acc_t<T>(0), nullptr, 4, 1);
  gemm_batched<T>(0, 4, 4, 4, acc_t<T>(1), nullptr, 0, 4, 1, nullptr, 0, 4, 1, acc_t<T>(0), nullptr,
                  0, 4, 1);
}

template <class T>
void check_batched(int64_t batch, int64_t m, int64_t n, int64_t k, bool shared_b) {
  uint32_t state = 5;
  Matrix<T> a = make_matrix<T>(batch * m, k, Layout::Rows, state);
  Matrix<T> b = make_matrix<T>(shared_b ? k : batch * k, n, Layout::Rows, state);
  Matrix<T> c = make_matrix<T>(batch * m, n, Layout::Rows, state);
  Matrix<T> expected = c;
  const int64_t b_bs = shared_b ? 0 : k * n;
  gemm_batched<T>(batch, m, n, k, acc_t<T>(1), a.data.data(), m * k, k, 1, b.data.data(), b_bs, n,
                  1, acc_t<T>(1), c.data.data(), m * n, n, 1);
  for (int64_t x = 0; x < batch; ++x) {
    gemm<T>(m, n, k, acc_t<T>(1), a.data.data() + x * m * k, k, 1, b.data.data() + x * b_bs, n, 1,
            acc_t<T>(1), expected.data.data() + x * m * n, n, 1);
  }
  double worst = 0;
  for (size_t i = 0; i < c.data.size(); ++i) {
    worst = std::max(worst, size_of(c.data[i] - expected.data[i]));
  }
  EXPECT_LE(worst, shared_b ? 40 * tolerance<T>() * static_cast<double>(k) : 0.0);
}

TYPED_TEST(GemmTest, batched_equals_single_products) {
  for (bool shared : {false, true}) {
    check_batched<TypeParam>(5, 4, 4, 4, shared);
    check_batched<TypeParam>(7, 33, 65, 40, shared);
    check_batched<TypeParam>(3, 1, 100, 50, shared);
    check_batched<TypeParam>(2, 300, 270, 280, shared);
  }
}

template <class T> std::vector<T> product_with_threads(int threads, int64_t m, int64_t n, int64_t k,
                                                       Layout la, Layout lb, int alpha, int beta) {
  uint32_t state = 3;
  Matrix<T> a = make_matrix<T>(m, k, la, state);
  Matrix<T> b = make_matrix<T>(k, n, lb, state);
  Matrix<T> c = make_matrix<T>(m, n, Layout::Rows, state);
  at::set_num_threads(threads);
  gemm<T>(m, n, k, acc_t<T>(alpha), a.data.data(), a.rs, a.cs, b.data.data(), b.rs, b.cs,
          acc_t<T>(beta), c.data.data(), c.rs, c.cs);
  return c.data;
}

template <class T> void check_threads(int alpha, int beta) {
  for (Layout la : {Layout::Rows, Layout::Columns}) {
    for (Layout lb : {Layout::Rows, Layout::Columns}) {
      const int64_t shapes[][3] = {{200, 190, 500}, {1, 900, 1500}, {900, 1, 1500}, {30, 40, 9000}};
      for (const auto& s : shapes) {
        const auto one = product_with_threads<T>(1, s[0], s[1], s[2], la, lb, alpha, beta);
        for (int threads : {2, 3, 7}) {
          const auto more = product_with_threads<T>(threads, s[0], s[1], s[2], la, lb, alpha, beta);
          EXPECT_EQ(0, std::memcmp(one.data(), more.data(), one.size() * sizeof(T)))
              << s[0] << "x" << s[1] << "x" << s[2] << " with " << threads << " threads";
        }
      }
    }
  }
}

TYPED_TEST(GemmTest, bits_do_not_depend_on_threads) {
  const int before = at::get_num_threads();
  check_threads<TypeParam>(1, 0);
  check_threads<TypeParam>(3, 5);
  at::set_num_threads(before);
}

template <class T> void check_propagation(int64_t m, int64_t n, int64_t k, Layout lb) {
  uint32_t state = 11;
  Matrix<T> a = make_matrix<T>(m, k, Layout::Rows, state);
  Matrix<T> b = make_matrix<T>(k, n, lb, state);
  Matrix<T> c = make_matrix<T>(m, n, Layout::Rows, state);
  for (int64_t p = 0; p < k; ++p) {
    a.entry(0, p) = T(0.0f); // a row of zeros must still meet the NaN and the infinity
  }
  b.entry(k / 2, 0) = T(std::numeric_limits<float>::quiet_NaN());
  b.entry(k - 1, n - 1) = T(std::numeric_limits<float>::infinity());
  gemm<T>(m, n, k, acc_t<T>(1), a.data.data(), a.rs, a.cs, b.data.data(), b.rs, b.cs, acc_t<T>(0),
          c.data.data(), c.rs, c.cs);
  EXPECT_TRUE(std::isnan(size_of(c.entry(0, 0))));
  EXPECT_TRUE(std::isnan(size_of(c.entry(0, n - 1))));
  if (n > 2) {
    EXPECT_EQ(0.0, size_of(c.entry(0, 1)));
  }
}

TEST(GemmPropagationTest, nan_and_infinity_times_zero_are_nan) {
  for (Layout lb : {Layout::Rows, Layout::Columns}) {
    for (int64_t m : {1, 4, 50}) {
      check_propagation<float>(m, 70, 33, lb);
      check_propagation<double>(m, 70, 33, lb);
      check_propagation<c10::Half>(m, 70, 33, lb);
      check_propagation<c10::BFloat16>(m, 70, 33, lb);
      check_propagation<float>(m, 4, 4, lb);
    }
  }
}

TEST(GemmRoundingTest, half_types_round_once) {
  // 4096 ones: a sum kept in half precision would stop at 2048, in bfloat16 at 256.
  const int64_t k = 4096;
  const std::vector<c10::Half> h(static_cast<size_t>(k * 20), c10::Half(1.0f));
  const std::vector<c10::BFloat16> b(static_cast<size_t>(k * 20), c10::BFloat16(1.0f));
  std::vector<c10::Half> ch(400);
  std::vector<c10::BFloat16> cb(400);
  gemm<c10::Half>(20, 20, k, 1.0f, h.data(), k, 1, h.data(), 20, 1, 0.0f, ch.data(), 20, 1);
  gemm<c10::BFloat16>(20, 20, k, 1.0f, b.data(), k, 1, b.data(), 20, 1, 0.0f, cb.data(), 20, 1);
  for (size_t i = 0; i < 400; ++i) {
    EXPECT_EQ(4096.0f, static_cast<float>(ch[i]));
    EXPECT_EQ(4096.0f, static_cast<float>(cb[i]));
  }
}

} // namespace
