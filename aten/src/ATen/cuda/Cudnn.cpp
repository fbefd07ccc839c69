// See Cudnn.h.
#include <ATen/cuda/Cudnn.h>

#include <dlfcn.h>

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/ByteKey.h>
#include <ATen/cuda/VendorLibrary.h>
#include <c10/cuda/CUDAEvent.h>

namespace at::cuda {
namespace {

using c10::cuda::CUstream;

// ---- the library --------------------------------------------------------------------------------
using Status = int;
constexpr Status kSuccess = 0;
enum DescriptorType : int {
  kConvolutionDescriptor = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kForwardOperation = 10,
  kWeightOperation = 11,
  kInputOperation = 12,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
};
enum Attribute : int {
  kComputeType = 100,
  kMode = 101,
  kDilations = 102,
  kStrides = 103,
  kPostPaddings = 104,
  kPrePaddings = 105,
  kSpatialDims = 106,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorSizes = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNotes = 1303,
};
enum ValueType : int {
  kHandleValue = 0,
  kDataTypeValue = 1,
  kInt64Value = 3,
  kFloatValue = 4,
  kDoubleValue = 5,
  kPointerValue = 6,
  kConvolutionModeValue = 7,
  kHeuristicsModeValue = 8,
  kNoteValue = 11,
  kDescriptorValue = 15,
};
enum Note : int { kTensorCores = 0, kRoundsInputs = 1, kUnrepeatable = 4, kNoteKinds = 10 };
enum HeuristicsMode : int { kFallback = 2, kByDecisionTree = 3 };
constexpr int kCrossCorrelation = 1;

struct Library {
  size_t (*cudnnGetVersion)();
  const char* (*cudnnGetErrorString)(Status);
  Status (*cudnnCreate)(void**);
  Status (*cudnnSetStream)(void*, CUstream);
  Status (*cudnnBackendCreateDescriptor)(int, void**);
  Status (*cudnnBackendDestroyDescriptor)(void*);
  Status (*cudnnBackendFinalize)(void*);
  Status (*cudnnBackendSetAttribute)(void*, int, int, int64_t, const void*);
  Status (*cudnnBackendGetAttribute)(void*, int, int, int64_t, int64_t*, void*);
  Status (*cudnnBackendExecute)(void*, void*, void*);
};

bool fill(Library& library) {
  void* handle = open_vendor_library({"libcudnn.so.9"});
  if (handle == nullptr) return false;
#define CRESSET_FIND(name)                                                                         \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(handle, #name));                   \
  if (library.name == nullptr) return false;
  CRESSET_FIND(cudnnGetVersion)
  CRESSET_FIND(cudnnGetErrorString)
  CRESSET_FIND(cudnnCreate)
  CRESSET_FIND(cudnnSetStream)
  CRESSET_FIND(cudnnBackendCreateDescriptor)
  CRESSET_FIND(cudnnBackendDestroyDescriptor)
  CRESSET_FIND(cudnnBackendFinalize)
  CRESSET_FIND(cudnnBackendSetAttribute)
  CRESSET_FIND(cudnnBackendGetAttribute)
  CRESSET_FIND(cudnnBackendExecute)
#undef CRESSET_FIND
  return true;
}

// Null where there is no cuDNN.
const Library* library() {
  static const Library* const loaded = [] {
    auto* made = new Library{};
    return fill(*made) ? made : nullptr;
  }();
  return loaded;
}

[[noreturn]] void fail(Status status, const char* call, const CudnnConvolution& c) {
  const auto sizes = [&](const int64_t* list) {
    return IntArrayRef(list, static_cast<size_t>(c.rank));
  };
  throw c10::Error(c10::str("cuDNN error: ", library()->cudnnGetErrorString(status),
                            " when calling `", call, "` for a convolution of input ",
                            sizes(c.input), ", weight ", sizes(c.weight), ", output ",
                            sizes(c.output), " (dtype ", static_cast<ScalarType>(c.dtype), ")"));
}

// A handle serves one thread at a time; each thread has its own for each device.
void* handle_of(const CudnnConvolution& c) {
  thread_local void* handles[c10::cuda::kMaxDevices] = {};
  void*& handle = handles[c.device];
  if (handle == nullptr) {
    const Status status = library()->cudnnCreate(&handle);
    if (status != kSuccess) fail(status, "cudnnCreate", c);
  }
  return handle;
}

// ---- descriptors --------------------------------------------------------------------------------
// One that cuDNN refuses to make or to complete is a way that does not exist for this convolution.
struct Unsupported {};

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(DescriptorType type) {
    require(library()->cudnnBackendCreateDescriptor(type, &handle_));
  }
  ~Descriptor() {
    if (handle_) library()->cudnnBackendDestroyDescriptor(handle_);
  }
  Descriptor(Descriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  void* get() const { return handle_; }

  template <class T>
  void set(Attribute name, ValueType type, const T* values, int64_t count) const {
    require(library()->cudnnBackendSetAttribute(handle_, name, type, count, values));
  }
  template <class T> void set(Attribute name, ValueType type, const T& value) const {
    set(name, type, &value, 1);
  }
  void set(Attribute name, const Descriptor& other) const {
    set(name, kDescriptorValue, &other.handle_, 1);
  }
  void set_alpha_beta(Attribute alpha, Attribute beta, bool wide) const {
    const float one = 1, zero = 0;
    const double wide_one = 1, wide_zero = 0;
    if (wide) {
      set(alpha, kDoubleValue, wide_one);
      set(beta, kDoubleValue, wide_zero);
    } else {
      set(alpha, kFloatValue, one);
      set(beta, kFloatValue, zero);
    }
  }
  // How many values were there to get.
  template <class T> int64_t read(Attribute name, ValueType type, T* values, int64_t room) const {
    int64_t count = 0;
    require(library()->cudnnBackendGetAttribute(handle_, name, type, room, &count, values));
    return count;
  }
  void finish() const { require(library()->cudnnBackendFinalize(handle_)); }

 private:
  static void require(Status status) {
    if (status != kSuccess) throw Unsupported();
  }
  void* handle_ = nullptr;
};

int data_type(ScalarType dtype) {
  switch (dtype) {
  case kFloat:
    return 0;
  case kDouble:
    return 1;
  case kHalf:
    return 2;
  case kBFloat16:
    return 9;
  default:
    throw Unsupported();
  }
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

// The operation graph of one convolution, with everything it refers to.
struct Graph {
  Descriptor input, weight, output, convolution, operation, graph;

  explicit Graph(const CudnnConvolution& c)
      : input(tensor_of(c, c.input, kInputId)), weight(tensor_of(c, c.weight, kWeightId)),
        output(tensor_of(c, c.output, kOutputId)), convolution(kConvolutionDescriptor),
        operation(operation_of(c.kind).type), graph(kGraph) {
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
    operation.set_alpha_beta(attribute(0), attribute(1), wide);
    operation.set(attribute(2), convolution);
    operation.set(attribute(3), weight);
    operation.set(attribute(4), input);
    operation.set(attribute(5), output);
    operation.finish();
    void* const handle = handle_of(c);
    graph.set(kGraphHandle, kHandleValue, handle);
    graph.set(kGraphOperations, operation);
    graph.finish();
  }
};

// ---- plans --------------------------------------------------------------------------------------
constexpr int64_t kWorkspaceLimit = int64_t(1) << 30;
constexpr int kMostConfigs = 16;

struct Plan {
  Descriptor plan;
  int64_t workspace = 0;
};

// Whether the settings permit what the engine does to numbers.
bool is_permitted(const CudnnConvolution& c, const Descriptor& config) {
  Descriptor engine(kEngine);
  void* handle = engine.get();
  config.read(kConfigEngine, kDescriptorValue, &handle, 1);
  int notes[kNoteKinds];
  const int64_t count = engine.read(kEngineNotes, kNoteValue, notes, kNoteKinds);
  const bool exact = static_cast<ScalarType>(c.dtype) == kFloat && !c.tf32;
  for (int64_t i = 0; i < count; ++i) {
    if (exact && (notes[i] == kTensorCores || notes[i] == kRoundsInputs)) return false;
    if (c.deterministic && notes[i] == kUnrepeatable) return false;
  }
  return true;
}

// Engines with their settings, best first.
std::vector<Descriptor> configs_of(const Graph& graph, HeuristicsMode mode) {
  std::vector<Descriptor> configs;
  void* handles[kMostConfigs];
  for (void*& handle : handles) {
    configs.emplace_back(kEngineConfig);
    handle = configs.back().get();
  }
  Descriptor heuristics(kHeuristics);
  heuristics.set(kHeuristicsGraph, graph.graph);
  heuristics.set(kHeuristicsMode, kHeuristicsModeValue, static_cast<int>(mode));
  heuristics.finish();
  const int64_t found =
      heuristics.read(kHeuristicsResults, kDescriptorValue, handles, int64_t(kMostConfigs));
  configs.resize(static_cast<size_t>(found < kMostConfigs ? found : kMostConfigs));
  return configs;
}

std::vector<Plan> plans_of(const CudnnConvolution& c, size_t wanted) {
  std::vector<Plan> plans;
  try {
    const Graph graph(c);
    for (const HeuristicsMode mode : {kByDecisionTree, kFallback}) {
      if (!plans.empty()) break;
      for (const Descriptor& config : configs_of(graph, mode)) {
        if (plans.size() == wanted) break;
        try {
          if (!is_permitted(c, config)) continue;
          Plan made{Descriptor(kPlan), 0};
          void* const handle = handle_of(c);
          made.plan.set(kPlanHandle, kHandleValue, handle);
          made.plan.set(kPlanConfig, config);
          made.plan.finish();
          made.plan.read(kPlanWorkspace, kInt64Value, &made.workspace, 1);
          if (made.workspace <= kWorkspaceLimit) plans.push_back(std::move(made));
        } catch (const Unsupported&) {
          continue; // the next engine
        }
      }
    }
  } catch (const Unsupported&) {
    plans.clear();
  }
  return plans;
}

Status execute(const Plan& plan, const CudnnConvolution& c, const CudnnConvolutionData& data,
               CUstream stream) {
  const Device device(kCUDA, static_cast<c10::DeviceIndex>(c.device));
  // Freed memory is used again in the stream's order, so the tensor may go when the call returns.
  const Tensor scratch =
      plan.workspace > 0 ? at::detail::empty({plan.workspace}, kByte, device) : Tensor();
  void* const workspace = scratch.defined() ? scratch.mutable_data_ptr() : nullptr;
  const int64_t ids[3] = {kInputId, kWeightId, kOutputId};
  const void* const pointers[3] = {data.input, data.weight, data.output};
  void* const handle = handle_of(c);
  const Descriptor pack(kVariantPack);
  pack.set(kPackIds, kInt64Value, ids, 3);
  pack.set(kPackPointers, kPointerValue, pointers, 3);
  pack.set(kPackWorkspace, kPointerValue, workspace);
  pack.finish();
  library()->cudnnSetStream(handle, stream);
  return library()->cudnnBackendExecute(handle, plan.plan.get(), pack.get());
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
      plans_of(c, !timed ? 1 : static_cast<size_t>(limit > 0 ? limit : kMostConfigs));
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
