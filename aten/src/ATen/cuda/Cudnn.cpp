// See Cudnn.h.
#include <ATen/cuda/Cudnn.h>

#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/cuda/ByteKey.h>
#include <ATen/cuda/CudnnGraph.h>
#include <c10/cuda/CUDAEvent.h>

namespace at::cuda {
namespace {

using namespace cudnn;
using c10::cuda::CUstream;

constexpr int kCrossCorrelation = 1;

[[noreturn]] void fail(Status status, const char* call, const CudnnConvolution& c) {
  const auto sizes = [&](const int64_t* list) {
    return IntArrayRef(list, static_cast<size_t>(c.rank));
  };
  throw c10::Error(c10::str("cuDNN error: ", library()->cudnnGetErrorString(status),
                            " when calling `", call, "` for a convolution of input ",
                            sizes(c.input), ", weight ", sizes(c.weight), ", output ",
                            sizes(c.output), " (dtype ", static_cast<ScalarType>(c.dtype), ")"));
}

enum TensorId : int64_t { kInputId = 1, kWeightId = 2, kOutputId = 3 };

Descriptor tensor_of(const CudnnConvolution& c, const int64_t* sizes, TensorId id) {
  int64_t strides[5];
  int64_t next = 1;
  const auto take = [&](int dim) {
    strides[dim] = next;
    next *= sizes[dim];
  };
  if (c.channels_last) take(1);
  for (int dim = c.rank - 1; dim > 1; --dim) take(dim);
  if (!c.channels_last) take(1);
  take(0);
  Descriptor tensor(kTensor);
  const int64_t align = int64_t(1) << c.align;
  tensor.set(kTensorType, kDataTypeValue, data_type(static_cast<ScalarType>(c.dtype)));
  tensor.set(kTensorSizes, kInt64Value, sizes, c.rank);
  tensor.set(kTensorStrides, kInt64Value, strides, c.rank);
  tensor.set(kTensorId, kInt64Value, static_cast<int64_t>(id));
  tensor.set(kTensorAlignment, kInt64Value, align);
  tensor.finish();
  return tensor;
}

// The attributes of an operation stand in a row from `first` on: alpha, beta, the convolution, the
// weight, the input and the output, gradients in the places of what they are gradients of.
struct Operation {
  DescriptorType type;
  int first;
};
Operation operation_of(ConvolutionKind kind) {
  switch (kind) {
  case ConvolutionKind::Forward:
    return {kForwardOperation, 700};
  case ConvolutionKind::InputGradient:
    return {kInputOperation, 706};
  default:
    return {kWeightOperation, 712};
  }
}

void set_factor(const Descriptor& operation, Attribute name, float value, bool wide) {
  if (wide)
    operation.set(name, kDoubleValue, static_cast<double>(value));
  else
    operation.set(name, kFloatValue, value);
}

// The operation graph of one convolution, with everything it refers to.
struct Graph {
  Descriptor input, weight, output, convolution, operation, graph;

  explicit Graph(const CudnnConvolution& c)
      : input(tensor_of(c, c.input, kInputId)), weight(tensor_of(c, c.weight, kWeightId)),
        output(tensor_of(c, c.output, kOutputId)), convolution(kConvolutionDescriptor),
        operation(operation_of(c.kind).type) {
    const int64_t spatial = c.rank - 2;
    const bool wide = static_cast<ScalarType>(c.dtype) == kDouble;
    convolution.set(kComputeType, kDataTypeValue, data_type(wide ? kDouble : kFloat));
    convolution.set(kMode, kConvolutionModeValue, kCrossCorrelation);
    convolution.set(kSpatialDims, kInt64Value, spatial);
    convolution.set(kPrePaddings, kInt64Value, c.padding, spatial);
    convolution.set(kPostPaddings, kInt64Value, c.padding, spatial);
    convolution.set(kStrides, kInt64Value, c.stride, spatial);
    convolution.set(kDilations, kInt64Value, c.dilation, spatial);
    convolution.finish();
    const int first = operation_of(c.kind).first;
    const auto attribute = [&](int place) { return static_cast<Attribute>(first + place); };
    set_factor(operation, attribute(0), 1, wide);
    set_factor(operation, attribute(1), 0, wide);
    operation.set(attribute(2), convolution);
    operation.set(attribute(3), weight);
    operation.set(attribute(4), input);
    operation.set(attribute(5), output);
    operation.finish();
    graph = graph_of(c.device, {operation.get()});
  }
};

// ---- plans --------------------------------------------------------------------------------------
std::vector<Plan> plans_for(const CudnnConvolution& c, size_t wanted) {
  try {
    const Graph graph(c);
    const bool exact = static_cast<ScalarType>(c.dtype) == kFloat && !c.tf32;
    return plans_of(graph.graph, c.device, {exact, c.deterministic}, wanted);
  } catch (const Unsupported&) {
    return {};
  }
}

Status execute(const Plan& plan, const CudnnConvolution& c, const CudnnConvolutionData& data,
               CUstream stream) {
  const int64_t ids[3] = {kInputId, kWeightId, kOutputId};
  const void* const pointers[3] = {data.input, data.weight, data.output};
  return cudnn::execute(plan, c.device, stream, ids, pointers, 3);
}

// Milliseconds of one run, negative where the plan fails. Every plan writes the same result, up to
// rounding, into the place of the result.
float time_of(const Plan& plan, const CudnnConvolution& c, const CudnnConvolutionData& data,
              CUstream stream) {
  constexpr int kRepeats = 3;
  c10::cuda::CUDAEvent before(c10::cuda::kEventDefault), after(c10::cuda::kEventDefault);
  if (execute(plan, c, data, stream) != kSuccess) return -1; // loads the kernel
  before.record();
  for (int i = 0; i < kRepeats; ++i)
    if (execute(plan, c, data, stream) != kSuccess) return -1;
  after.record();
  after.synchronize();
  return before.elapsed_time(after) / kRepeats;
}

Plan choose_plan(const CudnnConvolution& c, const CudnnConvolutionData& data, CUstream stream) {
  const bool timed = c.benchmark && !c10::cuda::is_capturing();
  const int limit = cudnn_settings().benchmark_limit;
  std::vector<Plan> plans =
      plans_for(c, !timed ? 1 : static_cast<size_t>(limit > 0 ? limit : kMostConfigs));
  if (plans.empty()) return Plan();
  size_t best = 0;
  if (timed && plans.size() > 1) {
    float fastest = -1;
    for (size_t i = 0; i < plans.size(); ++i) {
      const float time = time_of(plans[i], c, data, stream);
      if (time < 0 || (fastest >= 0 && time >= fastest)) continue;
      fastest = time;
      best = i;
    }
  }
  return std::move(plans[best]);
}

} // namespace

CudnnSettings& cudnn_settings() {
  static CudnnSettings settings;
  return settings;
}

int64_t cudnn_version() {
  return library() ? static_cast<int64_t>(library()->cudnnGetVersion()) : 0;
}

bool run_convolution(const CudnnConvolution& c, const CudnnConvolutionData& data, CUstream stream) {
  if (library() == nullptr) return false;
  // Plans live as long as the process: a destructor at a thread's end might run after the
  // library's own.
  thread_local auto* plans = new std::unordered_map<CudnnConvolution, Plan, ByteHash, SameBytes>;
  auto found = plans->find(c);
  if (found == plans->end()) found = plans->emplace(c, choose_plan(c, data, stream)).first;
  const Plan& plan = found->second;
  if (plan.plan.get() == nullptr) return false;
  try {
    const Status status = execute(plan, c, data, stream);
    if (status != kSuccess) fail(status, "cudnnBackendExecute", c);
  } catch (const Unsupported&) {
    fail(0, "cudnnBackendFinalize", c);
  }
  return true;
}

} // namespace at::cuda
