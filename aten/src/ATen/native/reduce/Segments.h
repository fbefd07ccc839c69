// The segments of segment_reduce, checked, for the kernels of all devices.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace at::native {

enum class SegmentOp { Sum, Mean, Max, Min, Prod };

struct Segments {
  int64_t outer = 1, count = 0, size = 0, inner = 1;
  std::vector<int64_t> begin, end; // [outer * count]
  DimVector shape;                 // of the result
};

// Errors for a name that is none.
SegmentOp segment_op(std::string_view name);
// Reads the borders, which may lie on a device; errors where one lies outside the data.
Segments segments_of(const Tensor& data, const std::optional<Tensor>& lengths,
                     const std::optional<Tensor>& offsets, int64_t axis, bool unsafe);

} // namespace at::native
