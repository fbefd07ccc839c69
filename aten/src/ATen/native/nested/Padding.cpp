// Between the jagged form of a batch (rows of all components one after the other, with offsets) and
// the padded form (one block of equal length per component). Both ways copy whole rows of bytes, so
// one loop serves every dtype; each is the other's gradient.
#include <ATen/native/nested/Native.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/parallel/Parallel.h>
#include <c10/util/SafeArithmetic.h>

#include <algorithm>
#include <cstring>

namespace at::native {
namespace {

constexpr int64_t kBytesPerChunk = 64 * 1024;

// Where each component begins, and the end of the last; checked.
std::vector<int64_t> read_offsets(const char* op, TensorList offsets, int64_t limit) {
  TORCH_CHECK_NOT_IMPLEMENTED(offsets.size() == 1, op, ": expected one list of offsets, got ",
                              offsets.size(),
                              "; more than one ragged dimension is not implemented");
  const Tensor& given = offsets[0];
  TORCH_CHECK(given.dim() == 1 && given.numel() >= 1 &&
                  (given.scalar_type() == kLong || given.scalar_type() == kInt),
              op, ": offsets must be a list of integers, got ", given.scalar_type(), given.sizes());
  const Tensor wide = detail::empty(given.sizes(), kLong); // on the CPU, wherever they come from
  wide.copy_(given);
  const int64_t* first = wide.data_ptr<int64_t>();
  std::vector<int64_t> out(first, first + wide.numel());
  const bool ascending = std::is_sorted(out.begin(), out.end());
  TORCH_CHECK(ascending && out.front() >= 0 && (limit < 0 || out.back() <= limit), op,
              ": offsets must ascend from 0 to at most the number of rows");
  return out;
}

int64_t row_bytes(const Tensor& t, size_t leading) {
  int64_t bytes = static_cast<int64_t>(t.itemsize());
  for (size_t d = leading; d < t.sizes().size(); ++d) bytes *= t.sizes()[d];
  return bytes;
}

int64_t rows_per_chunk(int64_t bytes) { return std::max<int64_t>(1, kBytesPerChunk / (bytes + 1)); }

} // namespace

Tensor jagged_to_padded_cpu(const Tensor& values, TensorList offsets, IntArrayRef max_lengths,
                            double padding_value) {
  const char* op = "_jagged_to_padded_dense_forward";
  TORCH_CHECK(values.dim() >= 1, op, ": values must have at least one dimension");
  const std::vector<int64_t> starts = read_offsets(op, offsets, values.sizes()[0]);
  TORCH_CHECK(max_lengths.size() == 1 && max_lengths[0] >= 0, op,
              ": expected one length of at least 0, got ", max_lengths);
  const int64_t batch = static_cast<int64_t>(starts.size()) - 1, width = max_lengths[0];
  c10::DimVector sizes{batch, width};
  sizes.append(values.sizes().begin() + 1, values.sizes().end());
  c10::checked_numel(sizes);
  Tensor out = detail::empty(sizes, values.scalar_type(), values.device());
  const Tensor source = values.contiguous();
  const Tensor filler = at::full(source.sizes().slice(1), padding_value, source.options());
  const int64_t bytes = row_bytes(source, 1);
  const char* from = static_cast<const char*>(source.data_ptr());
  const char* blank = static_cast<const char*>(filler.data_ptr());
  char* to = static_cast<char*>(out.data_ptr());
  if (bytes == 0) return out;
  BlockingRegion region;
  parallel_for(0, batch * width, rows_per_chunk(bytes), [&](int64_t b, int64_t e) {
    for (int64_t row = b; row < e; ++row) {
      const int64_t component = row / width, place = row % width;
      const int64_t line = starts[static_cast<size_t>(component)] + place;
      const bool inside = line < starts[static_cast<size_t>(component) + 1];
      std::memcpy(to + row * bytes, inside ? from + line * bytes : blank,
                  static_cast<size_t>(bytes));
    }
  });
  return out;
}

Tensor padded_to_jagged_cpu(const Tensor& dense, TensorList offsets,
                            std::optional<int64_t> total_L) {
  const char* op = "_padded_dense_to_jagged_forward";
  TORCH_CHECK(dense.dim() >= 2, op, ": expected a batch of rows, got ", dense.sizes());
  const std::vector<int64_t> starts = read_offsets(op, offsets, total_L.value_or(-1));
  const int64_t batch = static_cast<int64_t>(starts.size()) - 1, width = dense.sizes()[1];
  TORCH_CHECK(dense.sizes()[0] == batch, op, ": ", starts.size(), " offsets do not fit a batch of ",
              dense.sizes()[0]);
  c10::DimVector sizes{total_L.value_or(starts.back())};
  TORCH_CHECK(sizes[0] >= 0, op, ": total_L must be at least 0, got ", sizes[0]);
  sizes.append(dense.sizes().begin() + 2, dense.sizes().end());
  c10::checked_numel(sizes);
  Tensor out = detail::empty(sizes, dense.scalar_type(), dense.device());
  const Tensor source = dense.contiguous();
  const int64_t bytes = row_bytes(source, 2);
  const char* from = static_cast<const char*>(source.data_ptr());
  char* to = static_cast<char*>(out.data_ptr());
  if (bytes == 0) return out;
  BlockingRegion region;
  parallel_for(0, sizes[0], rows_per_chunk(bytes), [&](int64_t b, int64_t e) {
    // Rows before the first component, after the last, and beyond the padded width are zero.
    auto next = std::upper_bound(starts.begin(), starts.end(), b);
    for (int64_t row = b; row < e; ++row) {
      while (next != starts.end() && *next <= row) ++next;
      const int64_t component = next - starts.begin() - 1;
      const bool owned = component >= 0 && component < batch;
      const int64_t place = owned ? row - starts[static_cast<size_t>(component)] : width;
      char* target = to + row * bytes;
      if (place < width) {
        std::memcpy(target, from + (component * width + place) * bytes, static_cast<size_t>(bytes));
      } else {
        std::memset(target, 0, static_cast<size_t>(bytes));
      }
    }
  });
  return out;
}

#ifndef CRESSET_NO_CUDA
namespace {
// Rows of `source` by number; those of number -1 are `blank`.
Tensor gathered(const Tensor& source, const Tensor& blank, const std::vector<int64_t>& rows) {
  const Tensor all = at::cat({source, blank.unsqueeze(0)}, 0);
  const Tensor host = detail::empty({static_cast<int64_t>(rows.size())}, kLong);
  std::transform(rows.begin(), rows.end(), static_cast<int64_t*>(host.mutable_data_ptr()),
                 [&](int64_t row) { return row < 0 ? source.size(0) : row; });
  const Tensor index = detail::empty(host.sizes(), kLong, source.device());
  index.copy_(host);
  return at::index_select(all, 0, index);
}
} // namespace

Tensor jagged_to_padded_cuda(const Tensor& values, TensorList offsets, IntArrayRef max_lengths,
                             double padding_value) {
  const char* op = "_jagged_to_padded_dense_forward";
  TORCH_CHECK(values.dim() >= 1, op, ": values must have at least one dimension");
  const std::vector<int64_t> starts = read_offsets(op, offsets, values.sizes()[0]);
  TORCH_CHECK(max_lengths.size() == 1 && max_lengths[0] >= 0, op,
              ": expected one length of at least 0, got ", max_lengths);
  const int64_t batch = static_cast<int64_t>(starts.size()) - 1, width = max_lengths[0];
  c10::DimVector sizes{batch, width};
  sizes.append(values.sizes().begin() + 1, values.sizes().end());
  std::vector<int64_t> rows(static_cast<size_t>(c10::checked_numel({batch, width})), -1);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t first = starts[static_cast<size_t>(b)];
    const int64_t length = std::min(width, starts[static_cast<size_t>(b) + 1] - first);
    for (int64_t i = 0; i < length; ++i) rows[static_cast<size_t>(b * width + i)] = first + i;
  }
  const Tensor blank = at::full(values.sizes().slice(1), padding_value, values.options());
  return gathered(values, blank, rows).view(sizes);
}

Tensor padded_to_jagged_cuda(const Tensor& dense, TensorList offsets,
                             std::optional<int64_t> total_L) {
  const char* op = "_padded_dense_to_jagged_forward";
  TORCH_CHECK(dense.dim() >= 2, op, ": expected a batch of rows, got ", dense.sizes());
  const std::vector<int64_t> starts = read_offsets(op, offsets, total_L.value_or(-1));
  const int64_t batch = static_cast<int64_t>(starts.size()) - 1, width = dense.sizes()[1];
  TORCH_CHECK(dense.sizes()[0] == batch, op, ": ", starts.size(), " offsets do not fit a batch of ",
              dense.sizes()[0]);
  const int64_t total = total_L.value_or(starts.back());
  TORCH_CHECK(total >= 0, op, ": total_L must be at least 0, got ", total);
  std::vector<int64_t> rows(static_cast<size_t>(total), -1);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t first = starts[static_cast<size_t>(b)];
    const int64_t length = std::min(width, starts[static_cast<size_t>(b) + 1] - first);
    for (int64_t i = 0; i < length; ++i) rows[static_cast<size_t>(first + i)] = b * width + i;
  }
  c10::DimVector sizes{batch * width};
  sizes.append(dense.sizes().begin() + 2, dense.sizes().end());
  const Tensor blank = at::full(dense.sizes().slice(2), 0, dense.options());
  return gathered(dense.reshape(sizes), blank, rows);
}
#endif

Tensor jagged_to_padded_meta(const Tensor& values, TensorList offsets, IntArrayRef max_lengths,
                             double) {
  TORCH_CHECK(values.dim() >= 1 && offsets.size() == 1 && offsets[0].numel() >= 1 &&
                  max_lengths.size() == 1,
              "_jagged_to_padded_dense_forward: expected values, one list of offsets, one length");
  c10::DimVector sizes{offsets[0].numel() - 1, max_lengths[0]};
  sizes.append(values.sizes().begin() + 1, values.sizes().end());
  return detail::empty(sizes, values.scalar_type(), values.device());
}

Tensor padded_to_jagged_meta(const Tensor& dense, TensorList, std::optional<int64_t> total_L) {
  TORCH_CHECK(dense.dim() >= 2, "_padded_dense_to_jagged_forward: expected a batch of rows");
  TORCH_CHECK_NOT_IMPLEMENTED(total_L.has_value(),
                              "_padded_dense_to_jagged_forward: the number of rows is not known "
                              "without the data of the offsets; give total_L");
  c10::DimVector sizes{*total_L};
  sizes.append(dense.sizes().begin() + 2, dense.sizes().end());
  return detail::empty(sizes, dense.scalar_type(), dense.device());
}

// Nested tensors answer these calls in Python, before a kernel is looked for.
Tensor to_padded_plain(const Tensor& self, double, OptionalIntArrayRef) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "to_padded_tensor is not implemented for plain tensors, got ",
                              self.scalar_type(), self.sizes(), " on ", self.device(),
                              "; expected a nested tensor");
}
Tensor nested_to_padded_tensor(const Tensor& self, double padding,
                               OptionalIntArrayRef output_size) {
  return to_padded_plain(self, padding, output_size);
}

} // namespace at::native
