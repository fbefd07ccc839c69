// Functions that name memory formats, as programs call them.
#pragma once
#include <c10/core/MemoryFormat.h>

namespace c10 {

inline MemoryFormat get_contiguous_memory_format() { return MemoryFormat::Contiguous; }
inline MemoryFormat get_channels_last_memory_format() { return MemoryFormat::ChannelsLast; }

} // namespace c10
