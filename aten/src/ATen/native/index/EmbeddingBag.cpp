// embedding_bag: sums, means or maxima of the rows of a table over bags of indices, and its
// gradients. Every bag, and in the gradient every row of the table, belongs to one thread and is
// summed in the order of the indices, so results have the same bits for any number of threads.
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/IsaTable.h>
#include <ATen/native/CTypeName.h>
#include <ATen/native/PrivateCopy.h>
#include <ATen/native/RawTable.h>
#include <ATen/native/index/BagRows.h>
#include <ATen/native/index/IndexUtil.h>
#include <ATen/native/index/Native.h>
#include <ATen/native/index/RowLoops.h>
#include <ATen/ops/_embedding_bag.h>
#include <ATen/ops/_embedding_bag_dense_backward.h>
#include <ATen/ops/_embedding_bag_sparse_backward.h>
#include <ATen/parallel/Stretches.h>

#include <algorithm>
#include <vector>

namespace at::native {

namespace bag_rows {
CRESSET_DEFINE_ISA_TABLE(Table);
} // namespace bag_rows
namespace {

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };
using Bags = std::tuple<Tensor, Tensor, Tensor, Tensor>;

bool is_index(const Tensor& t) { return t.scalar_type() == kLong || t.scalar_type() == kInt; }
bool has(const std::optional<Tensor>& t) { return t && t->defined(); }

void check_types(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
                 const std::optional<Tensor>& per_sample_weights) {
  TORCH_CHECK(is_index(indices),
              "Expected tensor for argument #1 'indices' to have one of the "
              "following scalar types: Long, Int; but got ",
              tensor_type_name(indices.scalar_type(), indices.device()),
              " instead (while checking arguments for embedding_bag)");
  TORCH_CHECK(is_index(offsets),
              "Expected tensor for argument #1 'indices' to have one of the "
              "following scalar types: Long, Int; but got ",
              tensor_type_name(offsets.scalar_type(), offsets.device()),
              " instead (while checking arguments for embedding_bag)");
  TORCH_CHECK(c10::isFloatingType(weight.scalar_type()),
              "Expected tensor for argument #1 'weight' to have one of the following scalar types: "
              "Half, BFloat16, Float, Double; but got torch.",
              weight.scalar_type(), "Tensor instead (while checking arguments for embedding_bag)");
  TORCH_CHECK(weight.dim() == 2, "embedding_bag: weight must be 2-D, but got ", weight.dim(),
              " dimension(s)");
  TORCH_CHECK(indices.dim() == 1 && offsets.dim() == 1,
              "embedding_bag: indices and offsets must be 1-D, but got ", indices.dim(), " and ",
              offsets.dim(), " dimension(s)");
  TORCH_CHECK(mode >= kSum && mode <= kMax, "embedding_bag: mode must be 0, 1 or 2, but got ",
              mode);
  if (!has(per_sample_weights)) return;
  TORCH_CHECK(mode == kSum, "embedding_bag: per_sample_weights only supported with mode='sum'");
  TORCH_CHECK(
      per_sample_weights->scalar_type() == weight.scalar_type(),
      "Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
      "#1 'per_sample_weights'; but type ",
      weight.scalar_type(), " does not equal ", per_sample_weights->scalar_type(),
      " (while checking arguments for embedding_bag)");
  TORCH_CHECK(per_sample_weights->dim() == 1 && per_sample_weights->numel() == indices.numel(),
              "embedding_bag: expected per_sample_weights of shape ", indices.sizes(), ", but got ",
              per_sample_weights->sizes());
}

// Where each bag begins, and at the end the number of indices.
RawTable<int64_t> bag_starts(const Tensor& offsets, int64_t indices, bool include_last_offset) {
  const Tensor given = long_copy(offsets);
  const int64_t n = given.numel();
  const int64_t* data = n > 0 ? given.data_ptr<int64_t>() : nullptr;
  TORCH_CHECK(!include_last_offset || n > 0,
              "include_last_offset: number of offset should be at least 1");
  if (n > 0) {
    TORCH_CHECK(data[0] == 0,
                "offsets[0] has to be 0, i.e., the first sequence in the "
                "mini-batch has to start from position 0. However, got ",
                data[0]);
    TORCH_CHECK(data[n - 1] <= indices, "offsets[-1] can not be greater than input's length ",
                indices, " but got offsets[-1] of ", data[n - 1]);
  }
  parallel_for(1, n, 32768, [=](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      TORCH_CHECK(data[b - 1] <= data[b], "embedding_bag: offsets must not decrease, but offsets[",
                  b - 1, "] = ", data[b - 1], " and offsets[", b, "] = ", data[b]);
  });
  RawTable<int64_t> starts(include_last_offset ? n : n + 1);
  parallel_copy(starts.data(), data, n * 8);
  if (!include_last_offset) starts[n] = indices;
  return starts;
}

void check_rows(const int64_t* index, int64_t n, int64_t rows) {
  parallel_for(0, n, 32768, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      TORCH_CHECK(index[i] >= 0 && index[i] < rows, "Index ", i, " of input takes value ", index[i],
                  " which is not in the valid range [0, ", rows,
                  "). Expected idx >= 0 && idx < num_embeddings but found idx to be ", index[i]);
  });
}

// What one call needs, as plain numbers.
struct Call {
  const int64_t* index;
  const RawTable<int64_t>& starts;
  int64_t bags;
  int64_t width;
  int64_t mode;
  int64_t padding;
};

// Sums or means; `used` receives how many rows went into each bag.
template <class T>
void sum_bags(const Call& c, const T* weight, const T* sample_weights, T* out, int64_t* used) {
  using C = typename Computed<T>::type;
  if (const bag_rows::SumFn sum = bag_rows::table().sum[static_cast<int>(c10::scalar_type_of<T>)]) {
    parallel_for(0, c.bags, 64, [&](int64_t begin, int64_t end) {
      Steps steps;
      for (int64_t b = begin; b < end; ++b) {
        const int64_t first = c.starts[b], count = c.starts[b + 1] - first;
        steps.add(count * (8 + c.width));
        used[b] = sum(weight, c.width, c.index + first, count,
                      sample_weights != nullptr ? sample_weights + first : nullptr, c.padding,
                      c.mode == kMean, out + b * c.width);
      }
    });
    return;
  }
  parallel_for(0, c.bags, 64, [&](int64_t begin, int64_t end) {
    std::vector<C> sum(static_cast<size_t>(c.width));
    Steps steps;
    for (int64_t b = begin; b < end; ++b) {
      std::fill(sum.begin(), sum.end(), C(0));
      int64_t count = 0;
      for (int64_t i = c.starts[b]; i < c.starts[b + 1]; ++i) {
        steps.add(8 + c.width);
        if (c.index[i] == c.padding) continue;
        ++count;
        const T* row = weight + c.index[i] * c.width;
        const C scale = sample_weights != nullptr ? load_computed(sample_weights[i]) : C(1);
        for (int64_t j = 0; j < c.width; ++j) sum[j] += scale * load_computed(row[j]);
      }
      const C divide = c.mode == kMean && count > 0 ? static_cast<C>(count) : C(1);
      for (int64_t j = 0; j < c.width; ++j) out[b * c.width + j] = static_cast<T>(sum[j] / divide);
      used[b] = count;
    }
  });
}

template <class T>
void max_bags(const Call& c, const T* weight, T* out, int64_t* used, int64_t* chosen) {
  parallel_for(0, c.bags, 64, [&](int64_t begin, int64_t end) {
    Steps steps;
    for (int64_t b = begin; b < end; ++b) {
      T* best = out + b * c.width;
      int64_t* from = chosen + b * c.width;
      std::fill_n(best, c.width, static_cast<T>(0.0f));
      std::fill_n(from, c.width, 0);
      int64_t count = 0;
      for (int64_t i = c.starts[b]; i < c.starts[b + 1]; ++i) {
        steps.add(8 + c.width);
        if (c.index[i] == c.padding) continue;
        const T* row = weight + c.index[i] * c.width;
        for (int64_t j = 0; j < c.width; ++j) {
          if (count != 0 && !(load_computed(row[j]) > load_computed(best[j]))) continue;
          best[j] = row[j];
          from[j] = c.index[i];
        }
        ++count;
      }
      used[b] = count;
    }
  });
}

} // namespace

Bags embedding_bag_cpu(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                       bool scale_grad_by_freq, int64_t mode, bool sparse,
                       const std::optional<Tensor>& per_sample_weights, bool include_last_offset,
                       int64_t padding_idx) {
  static_cast<void>(scale_grad_by_freq);
  static_cast<void>(sparse);
  check_types(weight, indices, offsets, mode, per_sample_weights);
  const int64_t n = indices.numel(), width = weight.size(1), rows = weight.size(0);
  if (weight.is_meta()) {
    const int64_t count = std::max<int64_t>(offsets.numel() - (include_last_offset ? 1 : 0), 0);
    const auto like = [&](IntArrayRef sizes) {
      return detail::empty(sizes, indices.scalar_type(), weight.device());
    };
    return {detail::empty({count, width}, weight.scalar_type(), weight.device()), like({n}),
            like({count}), mode == kMax ? like({count, width}) : like({count})};
  }
  const RawTable<int64_t> starts = bag_starts(offsets, n, include_last_offset);
  const int64_t bags = starts.size() - 1;
  const Tensor positions = long_copy(indices);
  const int64_t* index = n > 0 ? positions.data_ptr<int64_t>() : nullptr;
  // With include_last_offset indices behind the last offset belong to no bag.
  check_rows(index, n, rows);
  const Tensor bag_of = detail::empty({n}, kLong), used = detail::empty({bags}, kLong);
  bag_of.zero_();
  used.zero_();
  int64_t* const owner = n > 0 ? bag_of.data_ptr<int64_t>() : nullptr;
  int64_t* const counts = bags > 0 ? used.data_ptr<int64_t>() : nullptr;
  parallel_for(0, bags, 64, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      serial_for(starts[b], starts[b + 1], 1,
                 [&](int64_t first, int64_t last) { std::fill(owner + first, owner + last, b); });
  });
  const Tensor table = weight.contiguous();
  const Tensor samples = has(per_sample_weights) ? per_sample_weights->contiguous() : Tensor();
  Tensor out = detail::empty({bags, width}, weight.scalar_type());
  const ScalarType index_dtype = indices.scalar_type();
  Tensor chosen;
  if (mode == kMax) chosen = detail::empty({bags, width}, kLong);
  // padding_idx counts from the end when it is negative; -1 means none.
  const Call call{index, starts, bags, width, mode, padding_idx};
  dtype_switch<FloatingTypes>(weight.scalar_type(), "embedding_bag", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = reinterpret_cast<const T*>(bytes_of(table));
    T* result = reinterpret_cast<T*>(bytes_of(out));
    if (mode == kMax)
      max_bags(call, data, result, counts, static_cast<int64_t*>(chosen.data_ptr()));
    else
      sum_bags(call, data,
               samples.defined() ? reinterpret_cast<const T*>(bytes_of(samples)) : nullptr, result,
               counts);
  });
  const Tensor sizes = used.to(index_dtype);
  return {out, bag_of.to(index_dtype), sizes,
          mode == kMax ? chosen.to(index_dtype) : sizes.clone()};
}

Bags embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                   bool scale_grad_by_freq, int64_t mode, bool sparse,
                   const std::optional<Tensor>& per_sample_weights, bool include_last_offset) {
  return at::_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                            per_sample_weights, include_last_offset, -1);
}

Bags embedding_bag_padding(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                           bool scale_grad_by_freq, int64_t mode, bool sparse,
                           const std::optional<Tensor>& per_sample_weights,
                           bool include_last_offset, std::optional<int64_t> padding_idx) {
  int64_t padding = -1;
  if (padding_idx) {
    const int64_t rows = weight.size(0);
    TORCH_CHECK(*padding_idx >= -rows && *padding_idx < rows,
                "padding_idx must be within the number of embeddings, -", rows, " through ",
                rows - 1, ", but got ", *padding_idx);
    padding = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  }
  return at::_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                            per_sample_weights, include_last_offset, padding);
}

// ---- gradients
namespace {

// Positions of the indices, grouped by the row they name, in order within a row.
struct ByRow {
  std::vector<int64_t> start; // rows + 1
  std::vector<int64_t> position;

  ByRow(const int64_t* index, int64_t n, int64_t rows, int64_t padding)
      : start(static_cast<size_t>(rows) + 1, 0), position(static_cast<size_t>(n)) {
    serial_for(0, n, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (index[i] != padding) ++start[static_cast<size_t>(index[i]) + 1];
    });
    for (size_t r = 1; r < start.size(); ++r) start[r] += start[r - 1];
    std::vector<int64_t> next(start.begin(), start.end() - 1);
    serial_for(0, n, 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (index[i] != padding) position[next[index[i]]++] = i;
    });
  }
};

struct BackwardCall {
  const int64_t* bag_of;
  const int64_t* bag_size;
  int64_t bags;
  int64_t width;
  bool mean;
  bool by_frequency;
};

template <class T> void sum_rows(const ByRow& by_row, const BackwardCall& c, const T* grad,
                                 const T* sample_weights, T* out) {
  using C = typename Computed<T>::type;
  const int64_t rows = static_cast<int64_t>(by_row.start.size()) - 1;
  parallel_for(0, rows, 64, [&](int64_t begin, int64_t end) {
    std::vector<C> sum(static_cast<size_t>(c.width));
    Steps steps;
    for (int64_t r = begin; r < end; ++r) {
      const int64_t first = by_row.start[r], last = by_row.start[r + 1];
      if (first == last) continue;
      std::fill(sum.begin(), sum.end(), C(0));
      for (int64_t k = first; k < last; ++k) {
        steps.add(16 + c.width);
        const int64_t i = by_row.position[k], bag = c.bag_of[i];
        C scale = sample_weights != nullptr ? load_computed(sample_weights[i]) : C(1);
        if (c.mean) scale /= static_cast<C>(std::max<int64_t>(c.bag_size[bag], 1));
        if (c.by_frequency) scale /= static_cast<C>(last - first);
        const T* from = grad + bag * c.width;
        for (int64_t j = 0; j < c.width; ++j) sum[j] += scale * load_computed(from[j]);
      }
      for (int64_t j = 0; j < c.width; ++j) out[r * c.width + j] = static_cast<T>(sum[j]);
    }
  });
}

void check_bags(const int64_t* bag_of, int64_t n, int64_t bags) {
  parallel_for(0, n, 32768, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      TORCH_CHECK_INDEX(bag_of[i] >= 0 && bag_of[i] < bags, "embedding_bag backward: bag ",
                        bag_of[i], " is out of range for ", bags, " bags");
  });
}

const int64_t* data_or_null(const Tensor& t) {
  return t.numel() > 0 ? t.data_ptr<int64_t>() : nullptr;
}

} // namespace

Tensor embedding_bag_dense_backward_meta(const Tensor& grad, const Tensor& /*indices*/,
                                         const Tensor& /*offset2bag*/, const Tensor& /*bag_size*/,
                                         const Tensor& /*maximum_indices*/, int64_t num_weights,
                                         bool /*scale_grad_by_freq*/, int64_t /*mode*/,
                                         const std::optional<Tensor>& /*per_sample_weights*/,
                                         int64_t /*padding_idx*/) {
  TORCH_CHECK(grad.dim() == 2 && num_weights >= 0,
              "embedding_bag backward: expected a 2-D gradient");
  return detail::empty({num_weights, grad.size(1)}, grad.scalar_type(), Device(kMeta));
}

Tensor embedding_bag_dense_backward_cpu(const Tensor& grad, const Tensor& indices,
                                        const Tensor& offset2bag, const Tensor& bag_size,
                                        const Tensor& maximum_indices, int64_t num_weights,
                                        bool scale_grad_by_freq, int64_t mode,
                                        const std::optional<Tensor>& per_sample_weights,
                                        int64_t padding_idx) {
  TORCH_CHECK(grad.dim() == 2 && num_weights >= 0,
              "embedding_bag backward: expected a 2-D gradient");
  const int64_t bags = grad.size(0), width = grad.size(1), n = indices.numel();
  const Tensor index = long_copy(indices), bag_of = long_copy(offset2bag);
  const Tensor sizes = long_copy(bag_size), from = grad.contiguous();
  const Tensor chosen = mode == kMax ? long_copy(maximum_indices) : Tensor();
  const Tensor samples = has(per_sample_weights) ? per_sample_weights->contiguous() : Tensor();
  TORCH_CHECK(bag_of.numel() == n && sizes.numel() >= bags &&
                  (mode != kMax || chosen.numel() == grad.numel()) &&
                  (!samples.defined() || samples.numel() == n),
              "embedding_bag backward: the saved tensors do not belong to this gradient");
  check_rows(data_or_null(index), n, num_weights);
  check_bags(data_or_null(bag_of), n, bags);
  if (mode == kMax) check_rows(data_or_null(chosen), chosen.numel(), num_weights);
  Tensor result = detail::empty({num_weights, width}, grad.scalar_type());
  result.zero_();
  dtype_switch<FloatingTypes>(grad.scalar_type(), "embedding_bag_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = reinterpret_cast<const T*>(bytes_of(from));
    T* out = reinterpret_cast<T*>(bytes_of(result));
    const int64_t* used = data_or_null(sizes);
    if (mode == kMax) {
      const int64_t* row = data_or_null(chosen);
      Steps steps;
      for (int64_t b = 0; b < bags; ++b, steps.add(8 * width))
        for (int64_t j = 0; j < width && used[b] > 0; ++j)
          combine<T, AddOp, false>(out[row[b * width + j] * width + j], source[b * width + j],
                                   nullptr);
      return;
    }
    const ByRow by_row(data_or_null(index), n, num_weights, padding_idx);
    const BackwardCall call{data_or_null(bag_of), used, bags, width, mode == kMean,
                            scale_grad_by_freq};
    sum_rows(by_row, call, source,
             samples.defined() && n > 0 ? reinterpret_cast<const T*>(bytes_of(samples)) : nullptr,
             out);
  });
  return result;
}

Tensor _embedding_bag_backward(const Tensor& grad, const Tensor& indices, const Tensor& offsets,
                               const Tensor& offset2bag, const Tensor& bag_size,
                               const Tensor& maximum_indices, int64_t num_weights,
                               bool scale_grad_by_freq, int64_t mode, bool sparse,
                               const std::optional<Tensor>& per_sample_weights,
                               int64_t padding_idx) {
  const auto finish = [&](auto backward, const auto&... tensors) {
    return backward(grad, indices, tensors..., num_weights, scale_grad_by_freq, mode,
                    per_sample_weights, padding_idx);
  };
  return sparse ? finish(at::_embedding_bag_sparse_backward, offsets, offset2bag, bag_size)
                : finish(at::_embedding_bag_dense_backward, offset2bag, bag_size, maximum_indices);
}

Tensor embedding_bag_per_sample_weights_backward_meta(const Tensor& /*grad*/, const Tensor& weight,
                                                      const Tensor& indices,
                                                      const Tensor& /*offsets*/,
                                                      const Tensor& /*offset2bag*/, int64_t mode,
                                                      int64_t /*padding_idx*/) {
  TORCH_CHECK(mode == kSum, "embedding_bag: per_sample_weights only supported with mode='sum'");
  return detail::empty({indices.numel()}, weight.scalar_type(), Device(kMeta));
}

Tensor embedding_bag_per_sample_weights_backward_cpu(const Tensor& grad, const Tensor& weight,
                                                     const Tensor& indices, const Tensor& offsets,
                                                     const Tensor& offset2bag, int64_t mode,
                                                     int64_t padding_idx) {
  static_cast<void>(offsets);
  TORCH_CHECK(mode == kSum, "embedding_bag: per_sample_weights only supported with mode='sum'");
  TORCH_CHECK(grad.dim() == 2 && weight.dim() == 2 && grad.size(1) == weight.size(1) &&
                  grad.scalar_type() == weight.scalar_type() &&
                  offset2bag.numel() == indices.numel(),
              "embedding_bag backward: the saved tensors do not belong to this gradient");
  const int64_t n = indices.numel(), width = weight.size(1);
  const Tensor index = long_copy(indices), bag_of = long_copy(offset2bag);
  const Tensor from = grad.contiguous(), table = weight.contiguous();
  check_rows(data_or_null(index), n, weight.size(0));
  check_bags(data_or_null(bag_of), n, grad.size(0));
  Tensor result = detail::empty({n}, weight.scalar_type());
  dtype_switch<FloatingTypes>(
      weight.scalar_type(), "embedding_bag_per_sample_weights_backward", [&](auto tag) {
        using T = typename decltype(tag)::type;
        using C = typename Computed<T>::type;
        const int64_t* row = data_or_null(index);
        const int64_t* bag = data_or_null(bag_of);
        const T* g = reinterpret_cast<const T*>(bytes_of(from));
        const T* w = reinterpret_cast<const T*>(bytes_of(table));
        T* out = reinterpret_cast<T*>(bytes_of(result));
        parallel_for(0, n, 256, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            C dot = C(0);
            for (int64_t j = 0; j < width && row[i] != padding_idx; ++j)
              dot += load_computed(g[bag[i] * width + j]) * load_computed(w[row[i] * width + j]);
            out[i] = static_cast<T>(dot);
          }
        });
      });
  return result;
}

} // namespace at::native
