// cat: one shape function and one kernel. Where all inputs are dense in the output's own order of
// memory the result consists of rows in which each input contributes one block of bytes, whatever
// the dtype and rank; the blocks are copied by memcpy and large results are shared between threads
// by output bytes. Other inputs (strided, or of another dtype) are copied piece by piece through
// copy_.
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <cstring>

namespace at {
namespace native {
namespace {

// PyTorch's old rule: a 1-d tensor without elements fits any other tensors, and is skipped.
bool skipped(const Tensor& t) {
  return t.dim() == 1 && c10::guard_or_false(c10::sym_eq(t.sym_size(0), 0));
}

void check_cat_sizes(const Tensor& first, const Tensor& t, int64_t dim, size_t position) {
  TORCH_CHECK(first.dim() == t.dim(), "Tensors must have same number of dimensions: got ",
              first.dim(), " and ", t.dim());
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (d == dim) continue;
    const SymInt expected = first.sym_size(d), got = t.sym_size(d);
    if (C10_LIKELY(got.raw() == expected.raw())) continue; // the same number or the same symbol
    TORCH_CHECK(c10::expect_true(c10::sym_eq(got, expected)),
                "Sizes of tensors must match except in dimension ", dim, ". Expected size ",
                expected, " but got size ", got, " for tensor number ", position, " in the list.");
  }
}

// The common order of memory of the inputs, or row-major where they differ.
MemoryFormat common_format(TensorList tensors) {
  std::optional<MemoryFormat> format;
  for (const Tensor& t : tensors) {
    const MemoryFormat own = t.suggest_memory_format();
    if (own == MemoryFormat::Contiguous || (format && *format != own))
      return MemoryFormat::Contiguous;
    format = own;
  }
  return *format;
}

} // namespace
} // namespace native

namespace meta {

void meta_cat(OutputBuilder& out, TensorList tensors, int64_t dim) {
  TORCH_CHECK_VALUE(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  const Tensor* first = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    TORCH_CHECK(t.defined(), "torch.cat(): tensor number ", i, " in the list is undefined");
    TORCH_CHECK(t.dim() > 0, "zero-dimensional tensor (at position ", i,
                ") cannot be concatenated");
    TORCH_CHECK(t.device() == tensors[0].device(),
                "torch.cat(): all input tensors must be on the same device. "
                "Received ",
                tensors[0].device(), " and ", t.device());
    if (first == nullptr && !native::skipped(t)) first = &t;
  }
  const ScalarType dtype = result_type_of(tensors);
  const Tensor& target = out.given(0);
  TORCH_CHECK_TYPE(!target.defined() || c10::canCast(dtype, target.scalar_type()),
                   "torch.cat(): input types can't be cast to the desired output type ",
                   target.defined() ? target.scalar_type() : dtype);
  for (size_t i = 0; target.defined() && i < tensors.size(); ++i) {
    if (i == 0) assert_no_internal_overlap(target);
    if (tensors[i].numel() > 0) assert_no_overlap(target, tensors[i]);
  }
  const Device device = tensors[0].device();
  if (first == nullptr) {
    // All are 1-d and empty; any dimension is accepted then.
    out.set_on(0, {0}, dtype, device);
    return;
  }
  const int64_t d = native::wrap_dim(dim, first->dim());
  if (native::any_symbolic(tensors) && device.is_meta()) {
    native::SymDimVector shape(first->sym_sizes());
    shape[d] = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (native::skipped(tensors[i])) continue;
      native::check_cat_sizes(*first, tensors[i], d, i);
      shape[d] = shape[d] + tensors[i].sym_size(d);
    }
    out.set_symint(0, shape, dtype);
    return;
  }
  DimVector sizes(first->sizes());
  sizes[d] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (native::skipped(tensors[i])) continue;
    native::check_cat_sizes(*first, tensors[i], d, i);
    TORCH_CHECK(!c10::add_overflows(sizes[d], tensors[i].size(d), &sizes[d]),
                "torch.cat(): the result is too large");
  }
  const MemoryFormat format = native::common_format(tensors);
  if (format == MemoryFormat::Contiguous || sizes.size() != static_cast<size_t>(tensors[0].dim())) {
    out.set_on(0, sizes, dtype, device);
  } else {
    out.set_on(0, sizes, dtype, device, IntArrayRef(native::format_strides(sizes, format)));
  }
}

} // namespace meta

namespace native {
namespace {

// What one input puts into each row of the output.
struct Block {
  const char* data;
  int64_t bytes;  // per row
  int64_t offset; // in the row
};
using Blocks = c10::SmallVector<Block, 8>;

constexpr int64_t kCatGrainBytes = 128 * 1024;

// Copies bytes [begin, end) of the output, which is rows of `row` bytes.
void copy_bytes(char* out, const Blocks& blocks, int64_t row, int64_t begin, int64_t end) {
  int64_t r = begin / row;
  int64_t position = begin % row;
  size_t i =
      static_cast<size_t>(std::upper_bound(blocks.begin(), blocks.end(), position,
                                           [](int64_t v, const Block& b) { return v < b.offset; }) -
                          blocks.begin() - 1);
  while (begin < end) {
    const Block& b = blocks[i];
    const int64_t inside = position - b.offset;
    const int64_t count = std::min(b.bytes - inside, end - begin);
    std::memcpy(out + begin, b.data + r * b.bytes + inside, static_cast<size_t>(count));
    begin += count;
    position += count;
    if (position == row) {
      position = 0;
      ++r;
      i = 0;
    } else {
      ++i;
    }
  }
}

// Blocks of one small element each: a call of memcpy per block would dominate.
template <class T>
void copy_elements(char* out, const Blocks& blocks, int64_t row, int64_t begin, int64_t end) {
  for (const Block& b : blocks) {
    const char* from = b.data + begin * static_cast<int64_t>(sizeof(T));
    char* to = out + begin * row + b.offset;
    for (int64_t r = begin; r < end; ++r, to += row, from += sizeof(T))
      std::memcpy(to, from, sizeof(T));
  }
}

bool all_of_size(const Blocks& blocks, int64_t bytes) {
  for (const Block& b : blocks)
    if (b.bytes != bytes) return false;
  return true;
}

template <class T>
bool try_copy_elements(char* out, const Blocks& blocks, int64_t row, int64_t rows) {
  if (!all_of_size(blocks, sizeof(T))) return false;
  parallel_for(0, rows, std::max<int64_t>(1, kCatGrainBytes / row),
               [&](int64_t b, int64_t e) { copy_elements<T>(out, blocks, row, b, e); });
  return true;
}

void copy_blocks(char* out, const Blocks& blocks, int64_t row, int64_t rows) {
  const bool copied = try_copy_elements<uint32_t>(out, blocks, row, rows) ||
                      try_copy_elements<uint64_t>(out, blocks, row, rows) ||
                      try_copy_elements<uint16_t>(out, blocks, row, rows) ||
                      try_copy_elements<uint8_t>(out, blocks, row, rows);
  if (copied) return;
  parallel_for(0, rows * row, kCatGrainBytes,
               [&](int64_t b, int64_t e) { copy_bytes(out, blocks, row, b, e); });
}

// Bytes of the part of `t` that lies together for one index of everything outside `dim` in memory.
int64_t block_bytes(const Tensor& t, int64_t dim, MemoryFormat format) {
  int64_t n = t.itemsize();
  const IntArrayRef sizes = t.sizes();
  const int64_t ndim = t.dim();
  if (format == MemoryFormat::Contiguous) {
    for (int64_t d = dim; d < ndim; ++d) n *= sizes[d];
    return n;
  }
  // Channels last: the order of memory is 0, 2, 3, ..., 1.
  n *= sizes[1];
  if (dim == 1) return n;
  for (int64_t d = ndim - 1; d >= 2 && d >= dim; --d) n *= sizes[d];
  return dim == 0 ? n * sizes[0] : n;
}

void copy_pieces(TensorList tensors, int64_t dim, const Tensor& out) {
  DimVector sizes(out.sizes());
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    if (skipped(t)) continue;
    sizes[dim] = t.size(dim);
    const int64_t offset = out.storage_offset() + start * out.stride(dim);
    detail::view_of(out, sizes, out.strides(), offset).copy_(t);
    start += sizes[dim];
  }
}

} // namespace

void cat_cpu(TensorList tensors, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t d = wrap_dim(dim, out.dim());
  const MemoryFormat format =
      out.is_contiguous() ? MemoryFormat::Contiguous : out.suggest_memory_format();
  bool dense = out.is_contiguous(format);
  for (const Tensor& t : tensors)
    dense =
        dense && (skipped(t) || (t.scalar_type() == out.scalar_type() && t.is_contiguous(format)));
  if (!dense) return copy_pieces(tensors, d, out);

  Blocks blocks;
  int64_t row = 0;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    const int64_t bytes = block_bytes(t, d, format);
    blocks.push_back({static_cast<const char*>(t.const_data_ptr()), bytes, row});
    row += bytes;
  }
  const int64_t total = out.numel() * out.itemsize();
  if (total <= kCatGrainBytes) {
    copy_blocks(static_cast<char*>(out.data_ptr()), blocks, row, total / row);
  } else {
    BlockingRegion blocking;
    copy_blocks(static_cast<char*>(out.data_ptr()), blocks, row, total / row);
  }
}

} // namespace native
} // namespace at
