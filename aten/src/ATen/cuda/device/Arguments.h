// The arguments of the kernels whose programs are generated (pointwise operators, reductions,
// scans), and what several programs' arguments are made of. The host fills these structures and a
// launch copies them byte by byte, so both sides include this one text and both compilers check the
// layout that is written down here. Arguments of one hand-written program P.cuh stand in P.args.h
// beside it, in the same way.
//
// Only data is shared. A member function belongs to the side that calls it.
#pragma once

#include <cstdint>

#include <c10/cuda/DeviceError.h>

#if defined(__CUDACC_RTC__) && !defined(CRESSET_DEVICE)
#error "include ATen/cuda/device/Prelude.cuh first: it says which side this is"
#endif

// The size of `type` and the offset of its last member, which moves with any other. The run-time
// compiler, which cannot ask for an offset, checks the size.
#if defined(__CUDACC_RTC__)
#define CRESSET_LAYOUT(type, bytes, last, offset)                                                  \
  static_assert(sizeof(type) == (bytes),                                                           \
                "the layout of " #type " differs from the one that is written down")
#else
#define CRESSET_LAYOUT(type, bytes, last, offset)                                                  \
  static_assert(sizeof(type) == (bytes) && __builtin_offsetof(type, last) == (offset),             \
                "the layout of " #type " differs from the one that is written down")
#endif

namespace at::device {

using c10::cuda::DeviceError;
CRESSET_LAYOUT(DeviceError, 32, op, 24);

// q = n / divisor for n < 2^31 by a multiplication and a shift.
struct Divider {
  uint32_t divisor = 1, magic = 1, shift = 0;
#if defined(CRESSET_DEVICE)
  CRESSET_DEVICE_FN uint32_t quotient(uint32_t n) const {
    return (__umulhi(n, magic) + n) >> shift;
  }
#else
  Divider() = default;
  explicit Divider(uint32_t d) : divisor(d) {
    while ((uint64_t(1) << shift) < d) ++shift;
    magic = static_cast<uint32_t>(((uint64_t(1) << 32) * ((uint64_t(1) << shift) - d)) / d + 1);
  }
#endif
};
CRESSET_LAYOUT(Divider, 12, shift, 8);

// Where a kernel reports a bad index, and the name of the operator for the message (a literal).
struct IndexCheck {
  c10::cuda::DeviceError* slot;
  const char* op;
#if defined(CRESSET_DEVICE)
  // Whether 0 <= i < bound; reports otherwise.
  CRESSET_DEVICE_FN bool within(int64_t i, int64_t bound, int dim) const;
  // The same with negative indices counted from the end; gives the plain index, or -1.
  CRESSET_DEVICE_FN int64_t wrapped(int64_t i, int64_t bound, int dim) const;
#endif
};
CRESSET_LAYOUT(IndexCheck, 16, op, 8);

// Each element may take as many 32-bit random numbers from `offset` on as its kernel needs. In a
// recorded graph the seed stands at `graph` on the device, and behind it a number to be added to
// the offset: each replay writes both and takes its own part of the sequence.
struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;
  const uint64_t* graph = nullptr;
};
CRESSET_LAYOUT(PhiloxState, 24, graph, 16);

// ---- pointwise operators (device/Pointwise.cuh) -------------------------------------------------
inline constexpr int kMaxInputs = 4;
inline constexpr int kMaxParams = 4;
inline constexpr int kMaxDims = 12;
inline constexpr int kPointwiseThreads = 256;
inline constexpr int kFlatThreads = 128; // small blocks, so that few are left over at the end

// A number of any type.
struct alignas(16) Number {
  unsigned char bytes[16];
#if defined(CRESSET_DEVICE)
  template <class T> CRESSET_DEVICE_FN T as() const { return *reinterpret_cast<const T*>(bytes); }
#endif
};
CRESSET_LAYOUT(Number, 16, bytes, 0);

struct FlatArgs {
  int64_t n;
  void* out;
  const void* in[kMaxInputs]; // null: the value is `number`
  uint32_t single;            // bit k: in[k] is one value for all elements
  uint32_t aligned;           // all other pointers are aligned to 16 bytes
  Number number[kMaxInputs];
  Number param[kMaxParams];
};
CRESSET_LAYOUT(FlatArgs, 192, param, 128);

struct StridedArgs {
  uint32_t n; // steps: packs where `packed`, elements otherwise
  int32_t ndim;
  void* out;
  const void* in[kMaxInputs];
  uint32_t packed;
  uint32_t inner;                           // bit k: in[k] advances along the innermost dimension
  Divider size[kMaxDims];                   // innermost first, in steps
  int64_t stride[kMaxDims][kMaxInputs + 1]; // bytes per step; out first
  Number number[kMaxInputs];
  Number param[kMaxParams];
};
CRESSET_LAYOUT(StridedArgs, 816, param, 752);

// ---- reductions (device/Reduce.cuh) -------------------------------------------------------------
inline constexpr int kReduceThreads = 256;
inline constexpr int kReduceDims = 12;

struct ReduceArgs {
  const void* in;
  void* out[2];  // null: not wanted
  void* partial; // [splits][outputs] accumulators, where splits > 1
  // Zeroes, one per group of results that share their blocks: the last block of a group to finish
  // combines the group's partial accumulators, and leaves a zero. Null: the kernel `combine` does.
  uint32_t* tickets;
  int64_t outputs, columns;
  int64_t run, runs; // rows: `runs` contiguous stretches of `run` elements
  int64_t count;     // elements per result
  int64_t chunk;     // elements (runs, rows) per piece
  int32_t splits;    // pieces per result
  int32_t lanes;     // threads per result; columns: threads side by side. A power of two
  uint32_t narrow;   // bit k: value k is stored in the input's (real) type
  uint32_t aligned;  // packs can be loaded
  int32_t post;
  int32_t kept_ndim, reduced_ndim;
  double param;
  Divider kept_size[kReduceDims];
  int64_t kept_stride[kReduceDims];
  Divider reduced_size[kReduceDims];
  int64_t reduced_stride[kReduceDims];
};
CRESSET_LAYOUT(ReduceArgs, 608, reduced_stride, 512);

// ---- scans (device/Scan.cuh) --------------------------------------------------------------------
inline constexpr int kScanThreads = 256;

struct ScanArgs {
  const void* in;
  void* out;
  int64_t* where;   // positions, for extremes
  void* totals;     // [lines][pieces] accumulators
  int64_t lines, n; // rows: lines of n elements
  int64_t inner;    // columns: distance of a line's elements
  int64_t chunk;    // elements per piece
  int32_t pieces;
};
CRESSET_LAYOUT(ScanArgs, 72, pieces, 64);

} // namespace at::device
