// Distances between rows: cdist of two batches of matrices and pdist within one matrix, with their
// gradients. Each output element, and each row of a gradient, is computed by one thread from start
// to end, so that no bits depend on the threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/IsaTable.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/distance/DistanceKernel.h>
#include <ATen/native/distance/Native.h>
#include <ATen/ops/_cdist_forward.h>
#include <ATen/ops/_pdist_forward.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/sum.h>
#include <ATen/parallel/Stretches.h>

namespace at::native {

namespace distance {
CRESSET_DEFINE_ISA_TABLE(Table);
} // namespace distance
namespace {
// About this many element differences to a chunk of work.
constexpr int64_t kGrainWork = 32768;
// The number of rows from which a product of matrices is used for p = 2, as documented.
constexpr int64_t kProductRows = 25;

const distance::Loops& loops_for(ScalarType dtype, const char* name) {
  const distance::Loops& loops = distance::table().loops[static_cast<int>(dtype)];
  TORCH_CHECK_NOT_IMPLEMENTED(loops.rows != nullptr, "\"", name, "\" not implemented for '", dtype,
                              "'");
  return loops;
}

// Rows longer than this are shared between threads.
constexpr int64_t kLongColumns = int64_t(1) << 20;

// The distance of two long rows from those of their parts, which have fixed lengths.
void long_distance(const distance::Loops& loops, const char* a, const char* b, int64_t columns,
                   double p, char* to, int64_t item) {
  const auto power = [p](double d) { return p == 0 || std::isinf(p) ? d : std::pow(d, p); };
  const double sum = parallel_reduce(
      0, columns, kStretch, 0.0,
      [&](int64_t begin, int64_t end, double) {
        alignas(16) char part[16];
        loops.rows(a + begin * item, b + begin * item, 1, end - begin, p, part);
        return power(loops.load(part, 0));
      },
      [p](double x, double y) { return std::isinf(p) ? std::max(x, y) : x + y; });
  const double distance = p == 0 || std::isinf(p) ? sum : std::pow(sum, 1 / p);
  const float single = static_cast<float>(distance);
  loops.store_row(to,
                  loops.sum_size == sizeof(double) ? static_cast<const void*>(&distance)
                                                   : static_cast<const void*>(&single),
                  1);
}

// loops.slope for the parts of a row: its elements are independent of each other.
void row_slope(const distance::Loops& loops, char* sum, const char* a, const char* b,
               int64_t columns, int64_t item, double p, double grad, double distance) {
  parallel_for(0, columns, kLongColumns, [&](int64_t begin, int64_t end) {
    loops.slope(sum + begin * loops.sum_size, a + begin * item, b + begin * item, end - begin, p,
                grad, distance);
  });
}

// The distances of a row from `count` rows that lie one behind the other. A few at a time, so that
// Ctrl-C is heeded.
void row_distances(const distance::Loops& loops, const char* row, const char* others, int64_t count,
                   int64_t columns, double p, char* to, int64_t item) {
  if (columns > kLongColumns) {
    for (int64_t i = 0; i < count; ++i)
      long_distance(loops, row, others + i * columns * item, columns, p, to + i * item, item);
    return;
  }
  serial_for(0, count, 4 * columns, [&](int64_t b, int64_t e) {
    loops.rows(row, others + b * columns * item, e - b, columns, p, to + b * item);
  });
}

int64_t grain_for(int64_t work_per_item) {
  return std::max<int64_t>(1, kGrainWork / std::max<int64_t>(1, work_per_item));
}

void check_dtypes(const Tensor& x1, const Tensor& x2) {
  TORCH_CHECK(x1.scalar_type() == x2.scalar_type(), "expected scalar type ", x1.scalar_type(),
              " but found ", x2.scalar_type());
}

int64_t product_of(IntArrayRef sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

DimVector with_tail(IntArrayRef batch, int64_t rows, int64_t columns) {
  DimVector sizes(batch);
  sizes.push_back(rows);
  sizes.push_back(columns);
  return sizes;
}
IntArrayRef batch_of(const Tensor& t) { return t.sizes().slice(0, t.dim() - 2); }

bool uses_product(double p, std::optional<int64_t> mode, int64_t rows1, int64_t rows2) {
  if (p != 2) return false;
  const int64_t m = mode.value_or(0);
  return m == 1 || (m == 0 && (rows1 > kProductRows || rows2 > kProductRows));
}

// |a|^2 - 2 a b + |b|^2 as one product of rows lengthened by two columns.
Tensor euclidean_by_product(const Tensor& x1, const Tensor& x2) {
  const int64_t dims[1] = {-1};
  const Tensor squares1 = at::sum(at::mul(x1, x1), IntArrayRef(dims), true);
  const Tensor squares2 = at::sum(at::mul(x2, x2), IntArrayRef(dims), true);
  const Tensor left = at::cat({at::mul(x1, -2), squares1, at::ones_like(squares1)}, -1);
  const Tensor right = at::cat({x2, at::ones_like(squares2), squares2}, -1);
  return at::sqrt(at::clamp_min(at::bmm(left, right.transpose(1, 2)), 0));
}
} // namespace

Tensor euclidean_dist(const Tensor& x1, const Tensor& x2) {
  return at::_cdist_forward(x1, x2, 2.0, 1);
}

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  const Tensor* points[2] = {&x1, &x2};
  for (int i = 0; i < 2; ++i)
    TORCH_CHECK(points[i]->dim() >= 2, "cdist only supports at least 2D tensors, X", i + 1,
                " got: ", points[i]->dim(), "D");
  const int64_t columns = x1.size(-1);
  TORCH_CHECK(columns == x2.size(-1),
              "X1 and X2 must have the same number of columns. X1: ", columns,
              " X2: ", x2.size(-1));
  const DimVector batch = broadcast_shapes(batch_of(x1), batch_of(x2));
  const auto whole = [&](const Tensor& x) {
    const DimVector shape = with_tail(batch, x.size(-2), columns);
    return x.sizes() == IntArrayRef(shape) ? x : x.expand(shape);
  };
  return at::_cdist_forward(whole(x1), whole(x2), p, compute_mode);
}

void cdist_forward_cpu(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode,
                       const Tensor& out) {
  const int64_t rows1 = x1.size(-2), rows2 = x2.size(-2), columns = x1.size(-1);
  const distance::Loops& loops = loops_for(x1.scalar_type(), "cdist");
  if (out.numel() == 0) return;
  if (columns == 0) {
    out.zero_();
    return;
  }
  const int64_t batch = product_of(batch_of(x1));
  const Tensor a = x1.contiguous(), b = x2.contiguous();
  if (uses_product(p, mode, rows1, rows2)) {
    out.copy_(euclidean_by_product(a.view({batch, rows1, columns}), b.view({batch, rows2, columns}))
                  .view(out.sizes()));
    return;
  }
  const char* from1 = static_cast<const char*>(a.data_ptr());
  const char* from2 = static_cast<const char*>(b.data_ptr());
  const int64_t bytes = columns * a.itemsize();
  char* to = static_cast<char*>(out.data_ptr());
  BlockingRegion unlocked;
  parallel_for(0, out.numel(), grain_for(columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t row1 = i / rows2, pair = i % rows2, count = std::min(end - i, rows2 - pair);
      const char* first = from2 + (row1 / rows1 * rows2 + pair) * bytes;
      row_distances(loops, from1 + row1 * bytes, first, count, columns, p, to + i * a.itemsize(),
                    a.itemsize());
      check_interrupt();
      i += count;
    }
  });
}

void cdist_backward_cpu(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                        const Tensor& cdist, const Tensor& out) {
  const int64_t rows1 = x1.size(-2), rows2 = x2.size(-2), columns = x1.size(-1);
  const distance::Loops& loops = loops_for(x1.scalar_type(), "cdist_backward");
  if (out.numel() == 0) return;
  const Tensor a = x1.contiguous(), b = x2.contiguous(), g = grad.contiguous(),
               d = cdist.contiguous();
  const char* from1 = static_cast<const char*>(a.data_ptr());
  const char* from2 = rows2 == 0 ? nullptr : static_cast<const char*>(b.data_ptr());
  const void* grads = g.data_ptr();
  const void* norms = d.data_ptr();
  const int64_t bytes = columns * a.itemsize();
  char* to = static_cast<char*>(out.data_ptr());
  BlockingRegion unlocked;
  const int64_t all_rows = out.numel() / columns;
  parallel_for(0, all_rows, grain_for(columns * rows2), [&](int64_t begin, int64_t end) {
    const std::unique_ptr<char[]> sum(new char[columns * loops.sum_size]);
    Steps steps;
    for (int64_t row = begin; row < end; ++row) {
      parallel_zero(sum.get(), columns * loops.sum_size);
      const char* others = from2 + row / rows1 * rows2 * bytes;
      for (int64_t k = 0; k < rows2; ++k) {
        const int64_t pair = row * rows2 + k;
        steps.add(4 * columns);
        row_slope(loops, sum.get(), from1 + row * bytes, others + k * bytes, columns, a.itemsize(),
                  p, loops.load(grads, pair), loops.load(norms, pair));
      }
      loops.store_row(to + row * bytes, sum.get(), columns);
    }
  });
}

Tensor pdist(const Tensor& self, double p) {
  const char* unfit = self.dim() != 2             ? "2D tensors"
                      : !self.is_floating_point() ? "floating-point dtypes"
                      : !(p >= 0)                 ? "non-negative p values"
                                                  : nullptr;
  TORCH_CHECK(unfit == nullptr, "pdist only supports ", unfit,
              self.dim() == 2 ? "" : c10::str(", got: ", self.dim(), "D"));
  return at::_pdist_forward(self.contiguous(), p);
}

void pdist_forward_cpu(const Tensor& self, double p, const Tensor& out) {
  const distance::Loops& loops = loops_for(self.scalar_type(), "pdist");
  const int64_t rows = self.size(0), columns = self.size(1);
  if (out.numel() == 0) return;
  if (columns == 0) {
    out.zero_();
    return;
  }
  const Tensor a = self.contiguous();
  const char* from = static_cast<const char*>(a.data_ptr());
  const int64_t bytes = columns * a.itemsize();
  char* to = static_cast<char*>(out.data_ptr());
  BlockingRegion unlocked;
  parallel_for(0, rows - 1, grain_for(columns * rows / 2), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t pair = i * rows - i * (i + 1) / 2;
      row_distances(loops, from + i * bytes, from + (i + 1) * bytes, rows - 1 - i, columns, p,
                    to + pair * a.itemsize(), a.itemsize());
      check_interrupt();
    }
  });
}

void pdist_backward_cpu(const Tensor& grad, const Tensor& self, double p, const Tensor& pdist,
                        const Tensor& out) {
  const distance::Loops& loops = loops_for(self.scalar_type(), "pdist_backward");
  const int64_t rows = self.size(0), columns = self.size(1);
  if (out.numel() == 0) return;
  if (rows < 2) {
    out.zero_();
    return;
  }
  const Tensor a = self.contiguous(), g = grad.contiguous(), d = pdist.contiguous();
  const char* from = static_cast<const char*>(a.data_ptr());
  const void* grads = g.data_ptr();
  const void* norms = d.data_ptr();
  const int64_t bytes = columns * a.itemsize();
  char* to = static_cast<char*>(out.data_ptr());
  BlockingRegion unlocked;
  parallel_for(0, rows, grain_for(columns * rows), [&](int64_t begin, int64_t end) {
    const std::unique_ptr<char[]> sum(new char[columns * loops.sum_size]);
    Steps steps;
    for (int64_t i = begin; i < end; ++i) {
      parallel_zero(sum.get(), columns * loops.sum_size);
      for (int64_t j = 0; j < rows; ++j) {
        if (j == i) continue;
        steps.add(4 * columns);
        const int64_t low = std::min(i, j), high = std::max(i, j);
        const int64_t pair = low * rows - low * (low + 1) / 2 + high - low - 1;
        row_slope(loops, sum.get(), from + i * bytes, from + j * bytes, columns, a.itemsize(), p,
                  loops.load(grads, pair), loops.load(norms, pair));
      }
      loops.store_row(to + i * bytes, sum.get(), columns);
    }
  });
}

} // namespace at::native

namespace at::meta {

void meta_cdist_forward(OutputBuilder& out, const Tensor& x1, const Tensor& x2, double p,
                        std::optional<int64_t> mode) {
  TORCH_CHECK(x1.dim() >= 2 && x2.dim() >= 2,
              "cdist only supports at least 2D tensors, X1 got: ", x1.dim(),
              "D, X2 got: ", x2.dim(), "D");
  TORCH_CHECK(x1.is_floating_point(),
              "cdist only supports floating-point dtypes, X1 got: ", x1.scalar_type());
  TORCH_CHECK(x2.is_floating_point(),
              "cdist only supports floating-point dtypes, X2 got: ", x2.scalar_type());
  native::check_dtypes(x1, x2);
  TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
  TORCH_CHECK(!mode || (*mode >= 0 && *mode <= 2), "possible modes: 0, 1, 2, but was: ", *mode);
  TORCH_CHECK(x1.size(-1) == x2.size(-1),
              "X1 and X2 must have the same number of columns. X1: ", x1.size(-1),
              " X2: ", x2.size(-1));
  TORCH_CHECK(native::batch_of(x1) == native::batch_of(x2),
              "X1 and X2 must have the same batch dimensions. X1: ", x1.sizes(),
              " X2: ", x2.sizes());
  out.set(0, native::with_tail(native::batch_of(x1), x1.size(-2), x2.size(-2)), x1.scalar_type());
}

void meta_cdist_backward(OutputBuilder& out, const Tensor& grad, const Tensor& x1, const Tensor& x2,
                         double, const Tensor& cdist) {
  TORCH_CHECK(x1.dim() >= 2 && x2.dim() == x1.dim() && x1.size(-1) == x2.size(-1) &&
                  native::batch_of(x1) == native::batch_of(x2),
              "_cdist_backward: X1 and X2 do not fit: ", x1.sizes(), " and ", x2.sizes());
  const DimVector expected = native::with_tail(native::batch_of(x1), x1.size(-2), x2.size(-2));
  TORCH_CHECK(grad.sizes() == IntArrayRef(expected) && cdist.sizes() == IntArrayRef(expected),
              "_cdist_backward: expected gradient and distances of shape ", IntArrayRef(expected),
              " but got ", grad.sizes(), " and ", cdist.sizes());
  for (const Tensor* t : {&x2, &grad, &cdist}) native::check_dtypes(x1, *t);
  out.set(0, x1.sizes(), x1.scalar_type());
}

void meta_pdist_forward(OutputBuilder& out, const Tensor& self, double) {
  TORCH_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  const int64_t rows = self.size(0);
  TORCH_CHECK(rows < (int64_t(1) << 32), "pdist: too many rows: ", rows);
  out.set(0, {rows < 2 ? 0 : rows * (rows - 1) / 2}, self.scalar_type());
}

void meta_pdist_backward(OutputBuilder& out, const Tensor& grad, const Tensor& self, double,
                         const Tensor& pdist) {
  TORCH_CHECK(self.dim() == 2 && self.size(0) < (int64_t(1) << 32),
              "_pdist_backward: expected a matrix, got ", self.sizes());
  const int64_t rows = self.size(0), pairs = rows < 2 ? 0 : rows * (rows - 1) / 2;
  TORCH_CHECK(grad.dim() == 1 && grad.numel() == pairs && pdist.dim() == 1 &&
                  pdist.numel() == pairs,
              "_pdist_backward: expected gradient and distances of ", pairs, " pairs but got ",
              grad.sizes(), " and ", pdist.sizes());
  native::check_dtypes(self, grad);
  native::check_dtypes(self, pdist);
  out.set(0, self.sizes(), self.scalar_type());
}

} // namespace at::meta
