// Reductions made of other operators: the overloads of std and var with a flag instead of a
// correction, the norms by name, and comparisons of whole tensors.
#include <ATen/native/reduce/Native.h>

#include <cstring>

#include <ATen/iter/TensorIterator.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/ops/all.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/isclose.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/nansum.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/std.h>
#include <ATen/ops/std_mean.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/var.h>
#include <ATen/ops/var_mean.h>
#include <ATen/parallel/Parallel.h>

#include <atomic>

namespace at::native {
namespace {
std::optional<Scalar> correction(bool unbiased) { return Scalar(unbiased ? 1 : 0); }
} // namespace

Tensor max(const Tensor& self, const Tensor& other) { return at::maximum(self, other); }
Tensor min(const Tensor& self, const Tensor& other) { return at::minimum(self, other); }

Tensor nanmean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
               std::optional<ScalarType> dtype) {
  TORCH_CHECK(self.is_floating_point() || self.is_complex(),
              "nanmean(): expected input to have floating point or complex dtype but got ",
              self.scalar_type());
  TORCH_CHECK(!dtype || !c10::isIntegralType(*dtype, true),
              "nanmean(): could not infer output dtype. Optional dtype must be either a floating "
              "point or complex dtype. Got: ",
              dtype.value_or(self.scalar_type()));
  const Tensor values = self.detach();
  Tensor valid = at::ne(values, values);
  const Tensor count = at::sum(at::_ops::logical_not_::call(valid), dim, keepdim);
  return at::div(at::nansum(self, dim, keepdim, dtype), count);
}

// ---- std and var
Tensor std(const Tensor& self, bool unbiased) {
  return at::_ops::std_correction::call(self, std::nullopt, correction(unbiased), false);
}
Tensor std(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim) {
  return at::_ops::std_correction::call(self, dim, correction(unbiased), keepdim);
}
Tensor var(const Tensor& self, bool unbiased) {
  return at::_ops::var_correction::call(self, std::nullopt, correction(unbiased), false);
}
Tensor var(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim) {
  return at::_ops::var_correction::call(self, dim, correction(unbiased), keepdim);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, bool unbiased) {
  return at::_ops::std_mean_correction::call(self, std::nullopt, correction(unbiased), false);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                    bool keepdim) {
  return at::_ops::std_mean_correction::call(self, dim, correction(unbiased), keepdim);
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, bool unbiased) {
  return at::_ops::var_mean_correction::call(self, std::nullopt, correction(unbiased), false);
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                    bool keepdim) {
  return at::_ops::var_mean_correction::call(self, dim, correction(unbiased), keepdim);
}

// ---- norms
Tensor norm(const Tensor& self, const Scalar& p) {
  return at::linalg_vector_norm(self, p, std::nullopt, false, std::nullopt);
}
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim) {
  return at::linalg_vector_norm(self, p.value_or(Scalar(2)), dim, keepdim, std::nullopt);
}
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim,
            ScalarType dtype) {
  return at::linalg_vector_norm(self, p.value_or(Scalar(2)), dim, keepdim, dtype);
}
Tensor norm_dtype(const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype) {
  return at::linalg_vector_norm(self, p.value_or(Scalar(2)), std::nullopt, false, dtype);
}
Tensor frobenius_norm(const Tensor& self, IntArrayRef dim, bool keepdim) {
  TORCH_CHECK(dim.size() <= 2, "Expected at most 2 dimensions, but got ", dim.size(),
              " dimensions instead.");
  return at::linalg_vector_norm(self, 2, dim, keepdim, std::nullopt);
}
Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  const Tensor difference = at::sub(self, other);
  TORCH_CHECK(difference.is_floating_point() || difference.is_complex(),
              "norm(): input dtype should be either floating point or complex. Got ",
              difference.scalar_type(), " instead.");
  return at::linalg_vector_norm(difference, p, std::nullopt, false, std::nullopt);
}
Tensor norm_except_dim(const Tensor& v, int64_t pow, int64_t dim) {
  // -1 means all elements; otherwise one norm per index of `dim`.
  if (dim == -1) return at::linalg_vector_norm(v, pow, std::nullopt, false, std::nullopt);
  const int64_t d = wrap_dim(dim, v.dim());
  DimVector others;
  for (int64_t i = 0; i < v.dim(); ++i)
    if (i != d) others.push_back(i);
  if (others.empty())
    return at::linalg_vector_norm(v.unsqueeze(0), pow, IntArrayRef{0}, false, std::nullopt);
  return at::linalg_vector_norm(v, pow, IntArrayRef(others), true, std::nullopt);
}
Tensor special_logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return at::logsumexp(self, dim, keepdim);
}

Tensor sum_to_size(const Tensor& self, IntArrayRef size) {
  if (size.empty()) return at::sum(self);
  const int64_t extra = self.dim() - static_cast<int64_t>(size.size());
  bool fits = extra >= 0;
  DimVector dims;
  for (int64_t d = 0; fits && d < self.dim(); ++d) {
    const int64_t wanted = d < extra ? 1 : size[d - extra];
    if (d < extra || (wanted == 1 && self.sizes()[d] != 1))
      dims.push_back(d);
    else
      fits = wanted == self.sizes()[d];
  }
  TORCH_CHECK(fits, "size {", size, "} is not expandable to size {", self.sizes(), "}.");
  if (dims.empty()) return self;
  const Tensor sum = at::sum(self, IntArrayRef(dims), true);
  return extra > 0 ? sum.view(size) : sum;
}

// ---- comparisons
namespace {
constexpr int64_t kCompareBlock = 16384;
constexpr int64_t kFirstLook = 64;

template <class T>
__attribute__((optimize("O3"))) bool same_block(const T* a, const T* b, int64_t n) {
  bool different = false;
  for (int64_t i = 0; i < n; ++i) different |= !(a[i] == b[i]);
  return !different;
}

bool same_elements(const Tensor& a, const Tensor& b) {
  std::atomic<bool> same{true};
  const int64_t n = a.numel();
  dtype_switch<AllTypesAndFloat8>(a.scalar_type(), "equal_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = static_cast<const T*>(a.const_data_ptr());
    const T* y = static_cast<const T*>(b.const_data_ptr());
    // Most tensors that differ do so at once: no thread is woken for them.
    if (!same_block(x, y, std::min(n, kFirstLook))) {
      same.store(false);
      return;
    }
    at::parallel_for(0, n, kCompareBlock, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end && same.load(std::memory_order_relaxed); i += kCompareBlock) {
        const int64_t count = end - i < kCompareBlock ? end - i : kCompareBlock;
        bool equal;
        if constexpr (std::is_integral_v<T>) {
          equal = std::memcmp(x + i, y + i, count * sizeof(T)) == 0;
        } else {
          equal = same_block(x + i, y + i, count);
        }
        if (!equal) same.store(false, std::memory_order_relaxed);
      }
    });
  });
  return same.load();
}
} // namespace

bool equal_cpu(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.device() == other.device(),
              "Cannot compare two tensors on different devices. Got: ", self.device(), " and ",
              other.device());
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  ScalarType common = c10::promoteTypes(self.scalar_type(), other.scalar_type());
  if (common == ScalarType::Float8_e8m0fnu) common = kFloat;
  if (!self.is_cpu()) return at::_ops::all::call(at::eq(self, other)).item<bool>();
  const Tensor a = self.to(common).contiguous(), b = other.to(common).contiguous();
  if (a.numel() <= kCompareBlock) return same_elements(a, b);
  at::BlockingRegion region;
  return same_elements(a, b);
}

bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return at::_ops::all::call(at::isclose(self, other, rtol, atol, equal_nan)).item<bool>();
}

} // namespace at::native
