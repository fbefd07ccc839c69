// How a tensor's elements are laid out.
#pragma once
#include <cstdint>
#include <string>

namespace c10 {
enum class Layout : int8_t {
  Strided,
  Sparse,
  SparseCsr,
  Mkldnn,
  SparseCsc,
  SparseBsr,
  SparseBsc,
  Jagged,
  NumOptions
};
constexpr Layout kStrided = Layout::Strided;
constexpr Layout kSparse = Layout::Sparse;
constexpr Layout kSparseCsr = Layout::SparseCsr;
inline const char* layout_name(Layout layout) {
  static const char* const names[] = {"strided",    "sparse_coo", "sparse_csr", "_mkldnn",
                                      "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
  return names[static_cast<int>(layout)];
}
inline void append(std::string& out, Layout layout) { out += layout_name(layout); }
} // namespace c10
