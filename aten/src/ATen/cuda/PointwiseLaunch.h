// Launching the two kernels of a pointwise program (device/Pointwise.cuh): which of them an
// operation's geometry allows, and their arguments.
#pragma once

#include <ATen/cuda/Launch.h>
#include <ATen/cuda/StridedPlan.h>
#include <c10/core/Scalar.h>

namespace at::cuda {

using device::FlatArgs;
using device::kFlatThreads;
using device::kMaxDims;
using device::kMaxInputs;
using device::kMaxParams;
using device::kPointwiseThreads;
using device::Number;
using device::StridedArgs;

// The scalar as a value of `dtype`.
Number number_of(const Scalar& value, ScalarType dtype);

// Finds the flat (0) or strided (1) function of a program.
struct FunctionPair {
  CUfunction (*find)(const void* program, int device, int kind);
  const void* program;
  CUfunction operator()(int device, int kind) const { return find(program, device, kind); }
};

struct PointwiseLaunch {
  FunctionPair functions;
  int inputs;
  int largest;                      // bytes of the widest element among the operands
  int64_t itemsize[kMaxInputs + 1]; // bytes per element, the output's first
  void* out;
  const void* in[kMaxInputs]; // null: a number
  Number number[kMaxInputs];
  Number param[kMaxParams];
};

// Elements per access and accesses per thread, as the kernels have them.
inline int pack_size(int largest) { return 16 / largest; }
inline constexpr int kFlatSteps = 2;
inline unsigned flat_blocks(int64_t n, int largest) {
  const int64_t block = int64_t(kFlatThreads) * pack_size(largest) * kFlatSteps;
  return static_cast<unsigned>((n + block - 1) / block);
}

// Runs over `plan` (operand 0 is the output), which is built. The device is bound.
void launch_pointwise(const PointwiseLaunch& call, const StridedPlan& plan, int device,
                      CUstream stream);

// A call of a hand-written program's pair of kernels (CRESSET_POINTWISE_KERNELS): `pair[0]` is the
// flat and `pair[1]` the strided one. Operands are broadcast to the output's shape; numbers and CPU
// tensors of no dimensions travel as arguments of the launch.
class PairLaunch {
 public:
  PairLaunch(const Kernel* pair, int inputs, const Tensor& out);
  void set(int k, const Scalar& value, ScalarType dtype);
  // Converted to dtype first where it has another.
  void set(int k, const Tensor& tensor, ScalarType dtype);
  // Launches on the output's device and the current stream. Call once.
  void run();

 private:
  const Tensor& out_;
  Tensor keep_[kMaxInputs];
  PointwiseLaunch call_;
  StridedPlan plan_;
};

// The name of an element type in the names of kernels; null for one without kernels.
const char* device_type_name(ScalarType dtype);

} // namespace at::cuda
