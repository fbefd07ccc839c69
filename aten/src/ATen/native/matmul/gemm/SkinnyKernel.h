// Products with a few rows of A: each element of B is used too few times to pay for packing, so B
// is streamed once, along its contiguous direction. Where that is k (a linear layer's weight) sums
// are inner products: one vector accumulator each, taken over k in order and folded by a fixed
// tree. Where it is n, rows of B are added into accumulators that stay in the first-level cache,
// k in order. Neither order depends on how many rows and columns are handled together.
#pragma once

#include <ATen/native/matmul/gemm/KernelSet.h>
#include <ATen/native/matmul/gemm/Vector.h>

namespace at::native::gemm::CRESSET_ISA {

template <class T, class CT> GEMM_INLINE Vec<CT> load_tail(const T* p, int64_t count) {
  CT lane[lanes<CT>] = {};
  for (int64_t i = 0; i < count; ++i) {
    lane[i] = widen(p[i]);
  }
  return load<CT>(lane);
}

template <class T, class CT, int M, int N>
void dot_block(const SkinnyTile& d, int64_t i0, int64_t j0) {
  constexpr int n = lanes<CT>;
  constexpr int64_t prefetch = 1024; // bytes ahead in each column
  const char* a = d.a + i0 * d.a_row;
  const char* b = d.b + j0 * d.b_line;
  Vec<CT> acc[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      acc[i][j] = Vec<CT>{};
    }
  }
  int64_t p = 0;
  for (; p + n <= d.k; p += n) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      const T* column = reinterpret_cast<const T*>(b + j * d.b_line) + p;
      const Vec<CT> bv = load_wide<CT>(column);
      __builtin_prefetch(reinterpret_cast<const char*>(column) + prefetch);
#pragma GCC unroll 8
      for (int i = 0; i < M; ++i) {
        acc[i][j] += load<CT>(a + i * d.a_row + p * static_cast<int64_t>(sizeof(CT))) * bv;
      }
    }
  }
  if (p < d.k) {
    for (int j = 0; j < N; ++j) {
      const Vec<CT> bv =
          load_tail<T, CT>(reinterpret_cast<const T*>(b + j * d.b_line) + p, d.k - p);
      for (int i = 0; i < M; ++i) {
        acc[i][j] += load<CT>(a + i * d.a_row + p * static_cast<int64_t>(sizeof(CT))) * bv;
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < N; ++j) {
      reinterpret_cast<CT*>(d.acc + (i0 + i) * d.acc_row)[j0 + j] = sum_lanes<CT>(acc[i][j]);
    }
  }
}

template <class T, class CT, int N> void dot_columns(const SkinnyTile& d, int64_t j) {
  int64_t i = 0;
  for (; i + 4 <= d.m; i += 4) {
    dot_block<T, CT, 4, N>(d, i, j);
  }
  for (; i + 2 <= d.m; i += 2) {
    dot_block<T, CT, 2, N>(d, i, j);
  }
  if (i < d.m) {
    dot_block<T, CT, 1, N>(d, i, j);
  }
}

template <class T, class CT> void dot_tile(const SkinnyTile& d) {
  int64_t j = 0;
  for (; j + 4 <= d.n; j += 4) {
    dot_columns<T, CT, 4>(d, j);
  }
  for (; j < d.n; ++j) {
    dot_columns<T, CT, 1>(d, j);
  }
}

// acc[i][j] += sum over P rows of B from p0 on, for M rows of A.
template <class T, class CT, int M, int P>
void rows_block(const SkinnyTile& d, int64_t i0, int64_t p0) {
  constexpr int n = lanes<CT>;
  Vec<CT> x[M][P];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    const CT* a = reinterpret_cast<const CT*>(d.a + (i0 + i) * d.a_row) + p0;
#pragma GCC unroll 8
    for (int q = 0; q < P; ++q) {
      x[i][q] = splat<CT>(a[q]);
    }
  }
  const char* b = d.b + p0 * d.b_line;
  char* acc = d.acc + i0 * d.acc_row;
  const auto update = [&](int64_t j, const Vec<CT>(&bv)[P]) {
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      CT* target = reinterpret_cast<CT*>(acc + i * d.acc_row) + j;
      Vec<CT> sum = load<CT>(target);
#pragma GCC unroll 8
      for (int q = 0; q < P; ++q) {
        sum += x[i][q] * bv[q];
      }
      store<CT>(target, sum);
    }
  };
  int64_t j = 0;
  for (; j + n <= d.n; j += n) {
    Vec<CT> bv[P];
#pragma GCC unroll 8
    for (int q = 0; q < P; ++q) {
      bv[q] = load_wide<CT>(reinterpret_cast<const T*>(b + q * d.b_line) + j);
    }
    update(j, bv);
  }
  if (j < d.n) {
    Vec<CT> bv[P];
    for (int q = 0; q < P; ++q) {
      bv[q] = load_tail<T, CT>(reinterpret_cast<const T*>(b + q * d.b_line) + j, d.n - j);
    }
    update(j, bv);
  }
}

template <class T, class CT, int P> void rows_group(const SkinnyTile& d, int64_t p) {
  int64_t i = 0;
  for (; i + 4 <= d.m; i += 4) {
    rows_block<T, CT, 4, P>(d, i, p);
  }
  for (; i + 2 <= d.m; i += 2) {
    rows_block<T, CT, 2, P>(d, i, p);
  }
  if (i < d.m) {
    rows_block<T, CT, 1, P>(d, i, p);
  }
}

template <class T, class CT> void rows_tile(const SkinnyTile& d) {
  const int64_t row = (d.n + lanes<CT> - 1) / lanes<CT> * kVecBytes;
  for (int64_t i = 0; i < d.m; ++i) {
    std::memset(d.acc + i * d.acc_row, 0, static_cast<size_t>(row));
  }
  int64_t p = 0;
  if (d.m == 1) {
    for (; p + 8 <= d.k; p += 8) {
      rows_block<T, CT, 1, 8>(d, 0, p);
    }
  }
  for (; p + 4 <= d.k; p += 4) {
    rows_group<T, CT, 4>(d, p);
  }
  for (; p < d.k; ++p) {
    rows_group<T, CT, 1>(d, p);
  }
}

} // namespace at::native::gemm::CRESSET_ISA
