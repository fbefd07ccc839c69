// Lookup of rows: embedding, its dense gradient, renormalisation of the rows in use, and one_hot.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/CTypeName.h>
#include <ATen/native/PrivateCopy.h>
#include <ATen/native/Sizes.h>
#include <ATen/native/index/IndexUtil.h>
#include <ATen/native/index/Native.h>
#include <ATen/native/index/RowLoops.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/embedding_renorm.h>
#include <ATen/ops/embedding_sparse_backward.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/zeros.h>
#include <ATen/parallel/Stretches.h>
#include <c10/util/SafeArithmetic.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace at::native {
namespace {

void check_index_type(const Tensor& indices, const char* name) {
  TORCH_CHECK(
      indices.scalar_type() == kLong || indices.scalar_type() == kInt,
      "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
      "Long, Int; but got ",
      tensor_type_name(indices.scalar_type(), indices.device()),
      " instead (while checking arguments for ", name, ")");
}

} // namespace

void check_embedding(const Tensor& weight, const Tensor& indices) {
  TORCH_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_index_type(indices, "embedding");
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx,
                 bool scale_grad_by_freq, bool sparse) {
  static_cast<void>(padding_idx);
  static_cast<void>(scale_grad_by_freq);
  static_cast<void>(sparse);
  check_embedding(weight, indices);
  if (indices.dim() == 1) return at::index_select(weight, 0, indices);
  SymDimVector sizes(indices.sym_sizes());
  sizes.push_back(weight.sym_size(1));
  // Not view(): the rows are nobody else's, and callers may write to the result.
  return at::_unsafe_view_symint(at::index_select(weight, 0, indices.reshape({-1})), sizes);
}

Tensor embedding_backward(const Tensor& grad, const Tensor& indices, SymInt num_weights,
                          SymInt padding_idx, bool scale_grad_by_freq, bool sparse) {
  if (sparse)
    return at::embedding_sparse_backward(grad, indices, num_weights.guard_int(),
                                         padding_idx.guard_int(), scale_grad_by_freq);
  return at::embedding_dense_backward_symint(grad, indices, num_weights, padding_idx,
                                             scale_grad_by_freq);
}

namespace {

// How often each row occurs.
std::vector<int64_t> frequencies(const int64_t* index, int64_t n, int64_t rows) {
  std::vector<int64_t> counts(static_cast<size_t>(rows), 0);
  for (int64_t i = 0; i < n; ++i)
    if (const int64_t r = index[i]; r >= 0 && r < rows) ++counts[static_cast<size_t>(r)];
  return counts;
}

// The positions that carry a gradient, with the row each goes to.
struct Lookups {
  Offsets to;   // bytes into the result
  Offsets from; // bytes into the gradient
  int64_t count = 0;

  Lookups(const int64_t* index, int64_t n, int64_t rows, int64_t padding, int64_t row_bytes) {
    to.resize(static_cast<size_t>(n));
    from.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      // As in PyTorch, positions outside the table carry nothing.
      const int64_t r = index[i];
      if (r == padding || r < 0 || r >= rows) continue;
      to[static_cast<size_t>(count)] = r * row_bytes;
      from[static_cast<size_t>(count)] = i * row_bytes;
      ++count;
    }
  }
};

template <class T> void scale_rows(T* data, int64_t width, const std::vector<int64_t>& counts) {
  using C = typename Computed<T>::type;
  for (size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] < 2) continue;
    T* row = data + static_cast<int64_t>(r) * width;
    for (int64_t j = 0; j < width; ++j) {
      if constexpr (c10::is_complex_v<C>)
        row[j] = static_cast<T>(load_computed(row[j]) /
                                C(static_cast<typename C::value_type>(counts[r]), 0));
      else
        row[j] = static_cast<T>(load_computed(row[j]) / static_cast<C>(counts[r]));
    }
  }
}

} // namespace

Tensor embedding_dense_backward_cpu(const Tensor& grad_output, const Tensor& indices,
                                    int64_t num_weights, int64_t padding_idx,
                                    bool scale_grad_by_freq) {
  check_index_type(indices, "embedding_backward");
  TORCH_CHECK(num_weights >= 0, "embedding_dense_backward: num_weights must not be negative");
  TORCH_CHECK(grad_output.dim() > 0, "embedding_dense_backward: the gradient needs a dimension");
  const int64_t width = grad_output.size(-1);
  const Tensor positions = long_copy(indices);
  const int64_t n = positions.numel();
  TORCH_CHECK(grad_output.numel() == n * width, "embedding_dense_backward: gradient of shape ",
              grad_output.sizes(), " does not fit indices of shape ", indices.sizes());
  const Tensor grad = grad_output.contiguous();
  Tensor result = detail::empty({num_weights, width}, grad.scalar_type());
  result.zero_();
  const int64_t* index = positions.data_ptr<int64_t>();
  const int64_t row_bytes = width * grad.itemsize();
  const Lookups lookups(index, n, num_weights, padding_idx, row_bytes);
  RowWalk walk;
  walk.after.add(width, grad.itemsize(), grad.itemsize());
  walk.count = lookups.count;
  walk.offsets = lookups.to.data();
  walk.linear_offsets = lookups.from.data();
  walk.itemsize = grad.itemsize();
  run_ordered(walk, bytes_of(result), bytes_of(grad),
              add_loops(grad.scalar_type(), "embedding_backward"));
  if (!scale_grad_by_freq) return result;
  // All lookups of a row have the same weight, so the sum can be divided.
  const std::vector<int64_t> counts = frequencies(index, n, num_weights);
  dtype_switch<FloatingAndComplexTypes>(result.scalar_type(), "embedding_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    scale_rows(reinterpret_cast<T*>(bytes_of(result)), width, counts);
  });
  return result;
}

Tensor embedding_dense_backward_symbolic(const Tensor& grad_output, const Tensor& indices,
                                         SymInt num_weights, SymInt, bool) {
  check_index_type(indices, "embedding_backward");
  const SymInt sizes[] = {num_weights, grad_output.sym_size(-1)};
  return detail::empty_symint(sizes, grad_output.scalar_type(), grad_output.device());
}
Tensor embedding_dense_backward_meta(const Tensor& grad_output, const Tensor& indices,
                                     int64_t num_weights, int64_t padding_idx,
                                     bool scale_grad_by_freq) {
  static_cast<void>(padding_idx);
  static_cast<void>(scale_grad_by_freq);
  check_index_type(indices, "embedding_backward");
  return detail::empty({num_weights, grad_output.size(-1)}, grad_output.scalar_type(),
                       grad_output.device());
}

namespace {

template <class T> double row_norm(const T* row, int64_t n, int64_t stride, double p) {
  double sum = 0, largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    const double v = std::abs(static_cast<double>(load_computed(row[j * stride])));
    if (p == 2)
      sum += v * v;
    else if (p == 1)
      sum += v;
    else if (std::isinf(p))
      largest = std::max(largest, v);
    else
      sum += p == 0 ? (v != 0) : std::pow(v, p);
  }
  if (std::isinf(p)) return largest;
  return p == 2 ? std::sqrt(sum) : p == 1 || p == 0 ? sum : std::pow(sum, 1 / p);
}

} // namespace

Tensor& embedding_renorm_meta_(Tensor& self, const Tensor& indices, double /*max_norm*/,
                               double /*norm_type*/) {
  TORCH_CHECK(self.dim() == 2, "'self' must be 2-D");
  check_index_type(indices, "embedding_renorm_");
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Tensor& embedding_renorm_cpu_(Tensor& self, const Tensor& indices, double max_norm,
                              double norm_type) {
  TORCH_CHECK(self.dim() == 2, "'self' must be 2-D");
  check_index_type(indices, "embedding_renorm_");
  const Tensor positions = long_contiguous(indices);
  std::vector<int64_t> rows(positions.data_ptr<int64_t>(),
                            positions.data_ptr<int64_t>() + positions.numel());
  Steps steps;
  for (int64_t r : rows) {
    steps.add(1);
    TORCH_CHECK_INDEX(r >= 0 && r < self.size(0), "select(): index ", r,
                      " out of range for tensor of size ", self.sizes(), " at dimension 0");
  }
  std::sort(rows.begin(), rows.end(), [&steps](int64_t a, int64_t b) {
    steps.add(2);
    return a < b;
  });
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const int64_t width = self.size(1), stride = self.stride(1);
  dtype_switch<FloatingTypes>(self.scalar_type(), "embedding_renorm_cpu_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = typename Computed<T>::type;
    for (int64_t r : rows) {
      steps.add(4 * width);
      T* row = reinterpret_cast<T*>(bytes_of(self)) + r * self.stride(0);
      const double norm = row_norm(row, width, stride, norm_type);
      if (!(norm > max_norm)) continue;
      const C scale = static_cast<C>(max_norm / (norm + 1e-7));
      for (int64_t j = 0; j < width; ++j)
        row[j * stride] = static_cast<T>(load_computed(row[j * stride]) * scale);
    }
  });
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}

Tensor embedding_renorm(const Tensor& self, const Tensor& indices, double max_norm,
                        double norm_type) {
  Tensor result = self.clone();
  return at::embedding_renorm_(result, indices, max_norm, norm_type);
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  TORCH_CHECK(self.scalar_type() == kLong,
              "one_hot is only applicable to index tensor of type LongTensor.");
  DimVector shape(self.sizes());
  if (self.numel() == 0) {
    TORCH_CHECK(num_classes > 0, "Can not infer total number of classes from empty tensor.");
    shape.push_back(num_classes);
    return at::zeros(shape, self.options());
  }
  int64_t largest = num_classes - 1;
  // A wrapper of another tensor has no values of its own: they are asked for by operators, and only
  // where they decide the shape.
  const bool is_wrapper = self.key_set().has_any({DispatchKey::Functionalize, DispatchKey::Python});
  const bool has_data = !self.key_set().has(DispatchKey::Meta);
  const bool ask = self.is_cuda() || (is_wrapper && num_classes == -1);
  if (!self.has_storage() || (has_data && ask)) {
    largest = at::_ops::max::call(self).item<int64_t>();
    TORCH_CHECK(at::_ops::min::call(self).item<int64_t>() >= 0,
                "Class values must be non-negative.");
  } else if (has_data && !is_wrapper) {
    const Tensor classes = self.contiguous();
    TORCH_CHECK_NOT_IMPLEMENTED(classes.is_cpu(), "one_hot is not available on ", self.device());
    const int64_t* first = classes.data_ptr<int64_t>();
    const auto [low, high] = std::minmax_element(first, first + classes.numel());
    TORCH_CHECK(*low >= 0, "Class values must be non-negative.");
    largest = *high;
  }
  TORCH_CHECK(has_data || num_classes != -1,
              "one_hot: the number of classes cannot be found without data");
  if (num_classes == -1)
    TORCH_CHECK(!c10::add_overflows(largest, 1, &num_classes), "Class values are too large.");
  TORCH_CHECK(largest < num_classes, "Class values must be smaller than num_classes.");
  shape.push_back(num_classes);
  Tensor out = at::zeros(shape, self.options());
  // In place where that is a plain write: a copy of the zeros costs more than they did.
  if (!is_wrapper && self.has_storage() && self.is_cpu())
    return at::_ops::scatter__value::call(out, -1, self.unsqueeze(-1), Scalar(1));
  return at::scatter(out, -1, self.unsqueeze(-1), Scalar(1));
}

} // namespace at::native
