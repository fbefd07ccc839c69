// cuDNN, the vendor's convolutions, reached through a table of function pointers that is filled by
// dlopen on first use. The declarations are our own, written from the public documentation, of
// exactly what is called: the graph interface, in which an operation is a descriptor with
// attributes. A convolution is described by plain numbers; the plan made from them is kept in a
// table of the calling thread, so that a repeated call costs one look and one launch.
#pragma once

#include <atomic>
#include <cstdint>

#include <c10/core/ScalarType.h>
#include <c10/cuda/DriverTypes.h>
#include <c10/macros/Macros.h>

namespace at::cuda {

// What torch.backends.cudnn sets.
struct CudnnSettings {
  std::atomic<bool> enabled{true};
  std::atomic<bool> benchmark{false};
  std::atomic<bool> deterministic{false};
  std::atomic<bool> allow_tf32{true};
  std::atomic<int> benchmark_limit{10}; // plans that are timed; 0: all
};
TORCH_API CudnnSettings& cudnn_settings();

// 91002 for 9.10.2; 0 where there is no cuDNN 9.
TORCH_API int64_t cudnn_version();

// Which of the three tensors is computed from the other two.
enum class ConvolutionKind : int8_t { Forward, InputGradient, WeightGradient };

// Channels stand at place 1 of every list; groups follow from the channels of input and weight.
// Hashed and compared byte by byte: no padding, and unused members are zero.
struct CudnnConvolution {
  int64_t input[5] = {}, weight[5] = {}, output[5] = {};
  int64_t padding[3] = {}, stride[3] = {}, dilation[3] = {};
  int32_t rank = 4; // of the tensors: 4 or 5
  int32_t device = 0;
  int8_t dtype = 0; // c10::ScalarType
  ConvolutionKind kind = ConvolutionKind::Forward;
  bool channels_last = false; // all three tensors; otherwise all are contiguous
  bool tf32 = false, deterministic = false, benchmark = false;
  uint8_t align = 0;  // log2 of the alignment that all three pointers have
  uint8_t unused = 0; // fills the last word
};

struct CudnnConvolutionData {
  const void *input, *weight, *output; // the computed one is written
};

// Queues the convolution on `stream`. Returns false where cuDNN has no kernel for it; throws
// c10::Error naming the shape when a kernel fails.
TORCH_API bool run_convolution(const CudnnConvolution& convolution,
                               const CudnnConvolutionData& data, c10::cuda::CUstream stream);

} // namespace at::cuda
