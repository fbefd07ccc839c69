// The order in which a dense tensor's dimensions lie in memory.
#pragma once
#include <cstdint>
#include <string>

#include <c10/util/SmallVector.h>

namespace c10 {
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d, NumOptions };
inline const char* memory_format_name(MemoryFormat format) {
  static const char* const names[] = {"contiguous_format", "preserve_format", "channels_last",
                                      "channels_last_3d"};
  return names[static_cast<int>(format)];
}
inline void append(std::string& out, MemoryFormat format) { out += memory_format_name(format); }

// Row-major strides; a dimension of size 0 counts as 1, as PyTorch computes them.
C10_API void contiguous_strides(IntArrayRef sizes, int64_t* strides);
inline DimVector contiguous_strides(IntArrayRef sizes) {
  DimVector out(sizes.size());
  contiguous_strides(sizes, out.data());
  return out;
}
// Strides of `sizes` (4-d or 5-d) with the channel dimension innermost.
C10_API DimVector channels_last_strides(IntArrayRef sizes);
C10_API bool is_channels_last_strides(IntArrayRef sizes, IntArrayRef strides);
C10_API bool is_contiguous_strides(IntArrayRef sizes, IntArrayRef strides);
// Every element is reached once and there are no gaps, in any order of dimensions.
C10_API bool is_non_overlapping_and_dense(IntArrayRef sizes, IntArrayRef strides);
// Strides that keep the order of `strides` but are dense: what `empty_like` and pointwise results
// use.
C10_API DimVector infer_dense_strides(IntArrayRef sizes, IntArrayRef strides);
} // namespace c10
