// Copies of A and B into the layouts the register block reads (KernelSet.h has the vocabulary),
// converting to the compute type on the way: half types are widened, complex numbers split. A
// transposed source goes through squares transposed in registers, which keeps packing at a few
// percent of a product with a hundred rows.
#pragma once

#include <ATen/native/matmul/gemm/Vector.h>

namespace at::native::gemm::CRESSET_ISA {

// dst[r][c] = src[r][c]; src columns contiguous. Strides in elements.
template <class CT, class T>
void copy_rows(int64_t rows, int64_t cols, const T* src, int64_t ls, CT* dst, int64_t ld) {
  constexpr int n = lanes<CT>;
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = src + r * ls;
    CT* to = dst + r * ld;
    int64_t c = 0;
    for (; c + n <= cols; c += n) {
      store<CT>(to + c, load_wide<CT>(from + c));
    }
    for (; c < cols; ++c) {
      to[c] = widen(from[c]);
    }
  }
}

template <class CT, class T> void copy_strided(int64_t rows, int64_t cols, const T* src, int64_t rs,
                                               int64_t cs, CT* dst, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      dst[r * ld + c] = widen(src[r * rs + c * cs]);
    }
  }
}

// dst[c][r] = src[r][c]; src columns contiguous.
template <class CT, class T>
void copy_transposed(int64_t rows, int64_t cols, const T* src, int64_t ls, CT* dst, int64_t ld) {
  constexpr int n = lanes<CT>;
  const int64_t whole_rows = rows / n * n;
  const int64_t whole_cols = cols / n * n;
  for (int64_t r = 0; r < whole_rows; r += n) {
    for (int64_t c = 0; c < whole_cols; c += n) {
      Vec<CT> square[n];
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) {
        square[i] = load_wide<CT>(src + (r + i) * ls + c);
      }
      transpose_square<CT>(square);
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) {
        store<CT>(dst + (c + i) * ld + r, square[i]);
      }
    }
    copy_strided<CT>(cols - whole_cols, n, src + r * ls + whole_cols, 1, ls,
                     dst + whole_cols * ld + r, ld);
  }
  copy_strided<CT>(cols, rows - whole_rows, src + whole_rows * ls, 1, ls, dst + whole_rows, ld);
}

// dst[r][c] = src(r, c) for any strides; integers, which nobody trains with, take the plain loop.
template <class CT, class T> void copy_matrix(int64_t rows, int64_t cols, const T* src, int64_t rs,
                                              int64_t cs, CT* dst, int64_t ld) {
  if (cs == 1) {
    copy_rows<CT>(rows, cols, src, rs, dst, ld);
    return;
  }
  if constexpr (CT(0.5) != CT(0)) {
    if (rs == 1) {
      copy_transposed<CT>(cols, rows, src, cs, dst, ld);
      return;
    }
  }
  copy_strided<CT>(rows, cols, src, rs, cs, dst, ld);
}

template <class CT> void zero_columns(int64_t rows, int64_t from, int64_t to, CT* dst) {
  if (from == to) {
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = from; c < to; ++c) {
      dst[r * to + c] = CT(0);
    }
  }
}

// ---- real types: T stored, CT computed --------------------------------------------------------

template <class T, class CT> void pack_a_real(int64_t rows, int64_t k, const char* a, int64_t rs,
                                              int64_t cs, char* dst, int64_t row) {
  copy_matrix<CT>(rows, k, reinterpret_cast<const T*>(a), rs, cs, reinterpret_cast<CT*>(dst),
                  row / static_cast<int64_t>(sizeof(CT)));
}

template <class T, class CT>
void pack_b_real(int64_t k, int64_t cols, const char* b, int64_t rs, int64_t cs, char* dst) {
  const int64_t width = (cols + lanes<CT> - 1) / lanes<CT> * lanes<CT>;
  CT* panel = reinterpret_cast<CT*>(dst);
  copy_matrix<CT>(k, cols, reinterpret_cast<const T*>(b), rs, cs, panel, width);
  zero_columns(k, cols, width, panel);
}

// ---- complex: pairs of CT ---------------------------------------------------------------------

template <class CT> void pack_a_complex(int64_t rows, int64_t k, const char* a, int64_t rs,
                                        int64_t cs, char* dst, int64_t row) {
  const CT* from = reinterpret_cast<const CT*>(a);
  for (int64_t i = 0; i < rows; ++i) {
    CT* to = reinterpret_cast<CT*>(dst + i * row);
    for (int64_t p = 0; p < k; ++p) {
      to[2 * p] = from[2 * (i * rs + p * cs)];
      to[2 * p + 1] = from[2 * (i * rs + p * cs) + 1];
    }
  }
}

template <class CT, int... I>
GEMM_INLINE void split_parts(const CT* x, CT* to, int64_t width, std::integer_sequence<int, I...>) {
  constexpr int n = lanes<CT>;
  const Vec<CT> lo = load<CT>(x);
  const Vec<CT> hi = load<CT>(x + n);
  const Vec<CT> re = __builtin_shufflevector(lo, hi, (2 * I)...);
  const Vec<CT> im = __builtin_shufflevector(lo, hi, (2 * I + 1)...);
  store<CT>(to, re);
  store<CT>(to + n, im);
  store<CT>(to + width, -im);
  store<CT>(to + width + n, re);
}

// Each k gives two rows: (re | im), multiplied by the real part of A, and (-im | re), by the
// imaginary part; every group of `lanes` columns is a vector of real and one of imaginary lanes.
template <class CT>
void pack_b_complex(int64_t k, int64_t cols, const char* b, int64_t rs, int64_t cs, char* dst) {
  constexpr int n = lanes<CT>;
  const int64_t groups = (cols + n - 1) / n;
  const int64_t width = groups * 2 * n;
  const CT* from = reinterpret_cast<const CT*>(b);
  CT* panel = reinterpret_cast<CT*>(dst);
  int64_t done = 0; // columns
  if (cs == 1) {
    done = cols / n * n;
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < done; j += n) {
        split_parts(from + 2 * (p * rs + j), panel + 2 * (p * width + j), width,
                    std::make_integer_sequence<int, n>());
      }
    }
  }
  for (int64_t j = done; j < groups * n; ++j) {
    for (int64_t p = 0; p < k; ++p) {
      const CT* x = from + 2 * (p * rs + j * cs);
      const CT re = j < cols ? x[0] : CT(0);
      const CT im = j < cols ? x[1] : CT(0);
      CT* to = panel + 2 * p * width + j / n * 2 * n + j % n;
      to[0] = re;
      to[n] = im;
      to[width] = -im;
      to[width + n] = re;
    }
  }
}

} // namespace at::native::gemm::CRESSET_ISA
