// Order statistics along a dimension: median, nanmedian, kthvalue and mode. Which of several equal
// elements is reported is part of what people compare, so each operator has its own rule: the
// median is the element that stands in the middle of a stable sort, kthvalue the one that Hoare's
// selection leaves in place, the mode the last of its run.
#include <ATen/native/reduce/Native.h>
#include <ATen/native/reduce/ReduceDims.h>

#include <algorithm>
#include <memory>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/NumericLimits.h>

namespace at::native {
namespace {

template <class T> bool is_nan(T x) { return x != x; }
// NaN is the largest number.
template <class T> bool less(T a, T b) { return a < b || (is_nan(b) && !is_nan(a)); }
template <class T> struct Picked {
  T value;
  int64_t index;
};

template <class T> void number(const T* line, Picked<T>* work, int64_t n) {
  parallel_for(0, n, 32768, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work[i] = {line[i], i};
  });
}

// The element at place k (from 0) of a stable sort of line[0..n).
template <class T> Picked<T> stable_kth(const T* line, Picked<T>* work, int64_t n, int64_t k) {
  number(line, work, n);
  Steps steps;
  std::nth_element(work, work + k, work + n, [&steps](const Picked<T>& a, const Picked<T>& b) {
    steps.add(1);
    return less(a.value, b.value) || (!less(b.value, a.value) && a.index < b.index);
  });
  return work[k];
}

// Hoare's selection with a median of three: place k of a[0..n) holds the k-th smallest.
template <class T> Picked<T> hoare_kth(const T* line, Picked<T>* a, int64_t n, int64_t k) {
  number(line, a, n);
  Steps steps;
  const auto order = [&](int64_t lower, int64_t upper) {
    if (less(a[upper].value, a[lower].value)) std::swap(a[lower], a[upper]);
  };
  int64_t left = 0, right = n - 1;
  while (right > left + 1) {
    std::swap(a[left + (right - left) / 2], a[left + 1]);
    order(left + 1, right);
    order(left, right);
    order(left + 1, left);
    const T pivot = a[left].value;
    int64_t i = left + 1, j = right;
    for (;;) {
      const int64_t before = i - j;
      do ++i;
      while (less(a[i].value, pivot));
      do --j;
      while (less(pivot, a[j].value));
      steps.add(i - j - before);
      if (j < i) break;
      std::swap(a[i], a[j]);
    }
    std::swap(a[left], a[j]);
    if (j <= k) left = i;
    if (j >= k) right = j - 1;
  }
  if (right == left + 1) order(left, right);
  return a[k];
}

template <class T> Picked<T> median_of(const T* line, Picked<T>* work, int64_t n, bool ignore_nan) {
  int64_t nans = 0;
  if constexpr (!std::is_integral_v<T>) {
    serial_for(0, n, 1, [&](int64_t begin, int64_t end) {
      nans += std::count_if(line + begin, line + end, is_nan<T>);
    });
  }
  const int64_t valid = n - nans;
  // The first NaN follows the valid elements in a stable sort.
  const bool answer_nan = nans > 0 && (!ignore_nan || valid == 0);
  return stable_kth(line, work, n, answer_nan ? valid : (valid - 1) / 2);
}

// The most frequent value, the smallest of several.
template <class T> Picked<T> mode_of(const T* line, Picked<T>* work, int64_t n) {
  number(line, work, n);
  Steps steps;
  std::sort(work, work + n, [&steps](const Picked<T>& a, const Picked<T>& b) {
    steps.add(2);
    return less(a.value, b.value);
  });
  Picked<T> best = work[0];
  int64_t longest = 0;
  for (int64_t i = 0; i < n;) {
    int64_t end = i + 1;
    while (end < n && work[end].value == work[i].value) ++end;
    if (end - i > longest) longest = end - i, best = work[end - 1];
    steps.add(end - i);
    i = end;
  }
  return best;
}

// pick(line, scratch, n) for every line of `self` along `dim`; the results in the order of the
// others.
template <class T, class Pick> void pick_lines(const Tensor& self, int64_t dim,
                                               const Tensor& values, const Tensor& indices,
                                               const Pick& pick) {
  const bool scalar = self.dim() == 0;
  const int64_t d = wrap_dim(dim, self.dim());
  const int64_t n = scalar ? 1 : self.sizes()[d];
  // Lines become contiguous: the picked dimension goes last.
  Tensor lines = (scalar ? self : self.transpose(d, self.dim() - 1)).contiguous();
  // Transposing swaps d with the last dimension, so results come out in that order and are stored
  // through a view of the same order.
  DimVector shape(lines.sizes());
  if (!scalar) shape.pop_back();
  Tensor by_line = self.dim() <= 1 || d == self.dim() - 1
                       ? values
                       : at::detail::empty(shape, values.scalar_type());
  Tensor where = self.dim() <= 1 || d == self.dim() - 1 ? indices : at::detail::empty(shape, kLong);
  const T* from = static_cast<const T*>(lines.const_data_ptr());
  T* value = static_cast<T*>(by_line.mutable_data_ptr());
  int64_t* index = static_cast<int64_t*>(where.mutable_data_ptr());
  const int64_t count = by_line.numel();
  at::BlockingRegion region;
  at::parallel_for(0, count, std::max<int64_t>(1, 8192 / std::max<int64_t>(n, 1)),
                   [&](int64_t b, int64_t e) {
                     std::unique_ptr<Picked<T>[]> work(new Picked<T>[n]);
                     for (int64_t i = b; i < e; ++i) {
                       const Picked<T> p = pick(from + i * n, work.get(), n);
                       value[i] = p.value;
                       index[i] = p.index;
                     }
                   });
  if (by_line.is_same(values)) return;
  // by_line has the last dimension of self where d was; move it back to the end.
  DimVector order;
  for (int64_t i = 0; i < self.dim() - 1; ++i)
    if (i != d) order.push_back(i);
  order.push_back(d);
  values.view(by_line.permute(order).sizes()).copy_(by_line.permute(order));
  indices.view(by_line.permute(order).sizes()).copy_(where.permute(order));
}

void run_median(const Tensor& self, int64_t dim, bool ignore_nan, const Tensor& values,
                const Tensor& indices) {
  dtype_switch<RealTypes>(self.scalar_type(), "median_out", [&](auto tag) {
    using T = typename decltype(tag)::type;
    pick_lines<T>(self, dim, values, indices, [&](const T* line, Picked<T>* work, int64_t n) {
      return median_of(line, work, n, ignore_nan);
    });
  });
}

void run_full_median(const Tensor& self, bool ignore_nan, const Tensor& out) {
  const Tensor input = self.contiguous();
  dtype_switch<RealTypes>(self.scalar_type(), "median_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* result = static_cast<T*>(out.mutable_data_ptr());
    const int64_t n = input.numel();
    if (n == 0) {
      // What a NaN turns into: the lowest value of signed integers, 0 of unsigned ones.
      if constexpr (std::is_integral_v<T>)
        *result = c10::numeric_limits<T>::lowest();
      else
        *result = T(c10::numeric_limits<float>::quiet_NaN());
      return;
    }
    at::BlockingRegion region;
    std::unique_ptr<Picked<T>[]> work(new Picked<T>[n]);
    *result =
        median_of(static_cast<const T*>(input.const_data_ptr()), work.get(), n, ignore_nan).value;
  });
}

} // namespace

void median_cpu(const Tensor& self, const Tensor& out) { run_full_median(self, false, out); }
void nanmedian_cpu(const Tensor& self, const Tensor& out) { run_full_median(self, true, out); }
void median_dim_cpu(const Tensor& self, int64_t dim, bool, const Tensor& values,
                    const Tensor& indices) {
  run_median(self, dim, false, values, indices);
}
void nanmedian_dim_cpu(const Tensor& self, int64_t dim, bool, const Tensor& values,
                       const Tensor& indices) {
  run_median(self, dim, true, values, indices);
}
void kthvalue_cpu(const Tensor& self, int64_t k, int64_t dim, bool, const Tensor& values,
                  const Tensor& indices) {
  dtype_switch<RealTypes>(self.scalar_type(), "kthvalue_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    pick_lines<T>(self, dim, values, indices, [&](const T* line, Picked<T>* work, int64_t n) {
      return hoare_kth(line, work, n, k - 1);
    });
  });
}
void mode_cpu(const Tensor& self, int64_t dim, bool, const Tensor& values, const Tensor& indices) {
  dtype_switch<RealTypesAndBool>(self.scalar_type(), "mode_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    pick_lines<T>(self, dim, values, indices,
                  [](const T* line, Picked<T>* work, int64_t n) { return mode_of(line, work, n); });
  });
}

} // namespace at::native

namespace at::meta {
namespace {
using namespace at::native::reduce;

void set_picked(OutputBuilder& out, const Tensor& self, int64_t dim, bool keepdim, const char* fn) {
  const DimMask mask = dim_mask(dim, self.dim());
  check_not_empty(self, IntArrayRef(&dim, 1), fn);
  if (out.is_out_variant()) {
    // mode has texts of its own.
    const bool mode = std::string_view(fn).find("mode") != std::string_view::npos;
    TORCH_CHECK(!mode || out.given(1).scalar_type() == kLong,
                "expected scalar type 'Long' but got '", out.given(1).scalar_type(),
                "' for indices output");
    TORCH_CHECK(out.given(1).scalar_type() == kLong,
                "Expected tensor for argument #1 'indices' to have scalar type Long; but got ",
                out.given(1).scalar_type(), " instead (while checking arguments for ", fn, ")");
    TORCH_CHECK(mode || out.given(0).scalar_type() == self.scalar_type(),
                "output values must be of same type as input");
    TORCH_CHECK(out.given(0).scalar_type() == self.scalar_type(), "expected scalar type '",
                self.scalar_type(), "' but got '", out.given(0).scalar_type(),
                "' for values output");
  }
  const DimVector shape = reduced_shape(self.sizes(), mask, keepdim);
  out.set(0, shape, self.scalar_type());
  out.set(1, shape, kLong);
}
} // namespace

void meta_median(OutputBuilder& out, const Tensor& self) { out.set(0, {}, self.scalar_type()); }
void meta_nanmedian(OutputBuilder& out, const Tensor& self) { out.set(0, {}, self.scalar_type()); }
void meta_median_dim(OutputBuilder& out, const Tensor& self, int64_t dim, bool keepdim) {
  set_picked(out, self, dim, keepdim, "median()");
}
void meta_nanmedian_dim(OutputBuilder& out, const Tensor& self, int64_t dim, bool keepdim) {
  set_picked(out, self, dim, keepdim, "median()");
}
void meta_kthvalue(OutputBuilder& out, const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  const int64_t d = native::wrap_dim(dim, self.dim());
  const int64_t n = self.dim() == 0 ? 1 : self.sizes()[d];
  check_not_empty(self, IntArrayRef(&d, 1), "kthvalue()");
  TORCH_CHECK(k >= 1 && k <= n, "kthvalue(): selected number k out of range for dimension ", d);
  set_picked(out, self, dim, keepdim, "kthvalue()");
}
void meta_mode(OutputBuilder& out, const Tensor& self, int64_t dim, bool keepdim) {
  set_picked(out, self, dim, keepdim, "mode()");
}

} // namespace at::meta
