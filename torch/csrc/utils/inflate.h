// Data packed by the deflate method of zip files (RFC 1951), which PyTorch uses for source text.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include <c10/macros/Macros.h>

namespace torch::serialize {

// The unpacked bytes, of which there must be exactly `size`. Error for anything else.
TORCH_API std::string inflate(std::string_view packed, size_t size);

} // namespace torch::serialize
