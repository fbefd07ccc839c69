// See LoopDriver.h. Strided operands are gathered into blocks of a few registers: long enough to
// amortise the calls, short enough to stay in the first-level cache.
#include <ATen/iter/LoopDriver.h>

#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/Spread.h>

#include <cstring>

namespace at::native {
namespace {

constexpr int kBlockRegisters = 16;
constexpr int kBlockBytes = kMaxRegisterBytes * kBlockRegisters;

template <int kSize>
void copy_elements(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to, from, kSize);
    to += to_stride;
    from += from_stride;
  }
}

void copy_strided(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n,
                  int size) {
  if (to_stride == size && from_stride == size) {
    std::memcpy(to, from, static_cast<size_t>(n * size));
    return;
  }
  switch (size) {
  case 1:
    return copy_elements<1>(to, to_stride, from, from_stride, n);
  case 2:
    return copy_elements<2>(to, to_stride, from, from_stride, n);
  case 4:
    return copy_elements<4>(to, to_stride, from, from_stride, n);
  case 8:
    return copy_elements<8>(to, to_stride, from, from_stride, n);
  default:
    return copy_elements<16>(to, to_stride, from, from_stride, n);
  }
}

struct Operands {
  alignas(64) char buffer[kMaxLoopInputs][kBlockBytes];
  const char* in[kMaxLoopInputs];
  int64_t step[kMaxLoopInputs];
};

// Fills one register of the operand's buffer with its only element and points the kernel at it.
void splat(Operands& ops, int k, const char* element, const VecLoopShape& shape) {
  static const SpreadFn spread = CRESSET_BY_ISA(, spread);
  spread(ops.buffer[k], shape.lanes, element, 0, 1, shape.in_size);
  ops.in[k] = ops.buffer[k];
  ops.step[k] = 0;
}

// Elements [first, first + count) through the buffers, count at most one block. The lanes behind
// the last element repeat the first one: any other filling could raise an error of its own.
void run_block(const VecLoopShape& shape, Operands& ops, char* const* data, const int64_t* strides,
               int64_t first, int64_t count, const void* params) {
  const int64_t registers = (count + shape.lanes - 1) / shape.lanes;
  const int64_t padded = registers * shape.lanes;
  for (int k = 0; k < shape.inputs; ++k) {
    const int64_t stride = strides[k + 1];
    if (stride == 0) {
      continue;
    }
    const char* from = data[k + 1] + first * stride;
    char* to = ops.buffer[k];
    copy_strided(to, shape.in_size, from, stride, count, shape.in_size);
    if (padded != count) {
      copy_strided(to + count * shape.in_size, shape.in_size, from, 0, padded - count,
                   shape.in_size);
    }
    ops.in[k] = to;
    ops.step[k] = static_cast<int64_t>(shape.lanes) * shape.in_size;
  }
  char* out = data[0] + first * strides[0];
  if (strides[0] == shape.out_size && padded == count) {
    shape.kernel(out, ops.in, ops.step, registers, params);
    return;
  }
  alignas(64) char result[kBlockBytes];
  shape.kernel(result, ops.in, ops.step, registers, params);
  copy_strided(out, strides[0], result, shape.out_size, count, shape.out_size);
}

// Whether the output is one of the inputs, so that an element must not be computed twice.
bool writes_input(const VecLoopShape& shape, char* const* data) {
  bool found = false;
  for (int k = 0; k < shape.inputs; ++k) found = found || data[k + 1] == data[0];
  return found;
}

} // namespace

void run_vec_loop(const VecLoopShape& shape, char* const* data, const int64_t* strides, int64_t n,
                  const void* params) {
  if (n <= 0) {
    return;
  }
  Operands ops;
  bool direct = strides[0] == shape.out_size && n >= shape.lanes;
  for (int k = 0; k < shape.inputs; ++k) {
    if (strides[k + 1] == 0) {
      splat(ops, k, data[k + 1], shape);
    } else {
      direct = direct && strides[k + 1] == shape.in_size;
    }
  }
  int64_t done = 0;
  if (direct) {
    for (int k = 0; k < shape.inputs; ++k) {
      if (strides[k + 1] != 0) {
        ops.in[k] = data[k + 1];
        ops.step[k] = static_cast<int64_t>(shape.lanes) * shape.in_size;
      }
    }
    const int64_t registers = n / shape.lanes;
    shape.kernel(data[0], ops.in, ops.step, registers, params);
    done = registers * shape.lanes;
    if (done < n && !writes_input(shape, data)) {
      // The last elements as a register that begins before them: some are computed twice.
      const int64_t last = n - shape.lanes;
      for (int k = 0; k < shape.inputs; ++k) {
        if (strides[k + 1] != 0) ops.in[k] = data[k + 1] + last * shape.in_size;
      }
      shape.kernel(data[0] + last * shape.out_size, ops.in, ops.step, 1, params);
      return;
    }
  }
  const int64_t block = static_cast<int64_t>(shape.lanes) * kBlockRegisters;
  while (done < n) {
    const int64_t count = n - done < block ? n - done : block;
    run_block(shape, ops, data, strides, done, count, params);
    done += count;
  }
}

} // namespace at::native
