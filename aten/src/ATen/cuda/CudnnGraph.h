// cuDNN's graph interface as C++ values: descriptors, graphs of operations, and the plans that run
// them. Reached through a table of function pointers that is filled by dlopen on first use; the
// declarations are our own, written from the public documentation, of exactly what is called.
// Private to the files that describe problems to cuDNN (Cudnn.cpp, CudnnAttention.cpp).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/cuda/DriverTypes.h>

namespace at::cuda::cudnn {

using Status = int;
constexpr Status kSuccess = 0;
enum DescriptorType : int {
  kPointwiseDescriptor = 0,
  kConvolutionDescriptor = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kForwardOperation = 10,
  kWeightOperation = 11,
  kInputOperation = 12,
  kPointwiseOperation = 13,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kProductDescriptor = 18,
  kProductOperation = 19,
  kReductionDescriptor = 21,
  kReductionOperation = 22,
  kReshapeOperation = 31,
  kRandomDescriptor = 32,
  kRandomOperation = 33,
};
enum Attribute : int {
  kPointwiseMode = 0,
  kPointwiseCompute = 1,
  kPointwiseAxis = 9,
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
  kPointwiseOf = 750,
  kPointwiseInput = 751,
  kPointwiseOther = 752,
  kPointwiseOutput = 753,
  kPointwiseCondition = 758,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorSizes = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorVirtual = 907,
  kTensorByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNotes = 1303,
  kProductCompute = 1500,
  kProductLeft = 1520,
  kProductRight = 1521,
  kProductResult = 1522,
  kProductOf = 1523,
  kReductionOperator = 1600,
  kReductionCompute = 1601,
  kReductionInput = 1610,
  kReductionOutput = 1611,
  kReductionOf = 1612,
  kReshapeInput = 2200,
  kReshapeOutput = 2201,
  kRandomDistribution = 2300,
  kRandomProbability = 2305,
  kRandomOutput = 2310,
  kRandomSeed = 2311,
  kRandomOf = 2312,
  kRandomOffset = 2313,
};
enum ValueType : int {
  kHandleValue = 0,
  kDataTypeValue = 1,
  kBooleanValue = 2,
  kInt64Value = 3,
  kFloatValue = 4,
  kDoubleValue = 5,
  kPointerValue = 6,
  kConvolutionModeValue = 7,
  kHeuristicsModeValue = 8,
  kNoteValue = 11,
  kPointwiseModeValue = 14,
  kDescriptorValue = 15,
  kReductionOperatorValue = 18,
  kDistributionValue = 29,
};
enum DataType : int {
  kFloatData = 0,
  kDoubleData = 1,
  kHalfData = 2,
  kInt32Data = 4,
  kBFloat16Data = 9,
  kInt64Data = 10,
  kBooleanData = 11,
};

struct Library {
  size_t (*cudnnGetVersion)();
  const char* (*cudnnGetErrorString)(Status);
  Status (*cudnnCreate)(void**);
  Status (*cudnnSetStream)(void*, c10::cuda::CUstream);
  Status (*cudnnBackendCreateDescriptor)(int, void**);
  Status (*cudnnBackendDestroyDescriptor)(void*);
  Status (*cudnnBackendFinalize)(void*);
  Status (*cudnnBackendSetAttribute)(void*, int, int, int64_t, const void*);
  Status (*cudnnBackendGetAttribute)(void*, int, int, int64_t, int64_t*, void*);
  Status (*cudnnBackendExecute)(void*, void*, void*);
};
// Null where there is no cuDNN 9.
const Library* library();

// A handle serves one thread at a time; each thread has its own for each device.
void* handle_of(int device);

// A descriptor that cuDNN refuses to make or to complete: it has no way to compute the problem.
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

// Throws Unsupported for dtypes that cuDNN has not.
DataType data_type(ScalarType dtype);

// What an engine may do to numbers.
struct EngineRules {
  bool exact = false;         // neither tensor cores nor rounded inputs
  bool deterministic = false; // the same bits every time
};

struct Plan {
  Descriptor plan;
  int64_t workspace = 0;
};

constexpr int kMostConfigs = 16;

// A graph of the operations, for the device.
Descriptor graph_of(int device, const std::vector<void*>& operations);

// At most `wanted` plans for a graph, the likely fastest first; none where there is no engine.
std::vector<Plan> plans_of(const Descriptor& graph, int device, EngineRules rules, size_t wanted);

// Queues a plan on `stream`: ids[i] is at pointers[i], on the host where the tensor is a value.
Status execute(const Plan& plan, int device, c10::cuda::CUstream stream, const int64_t* ids,
               const void* const* pointers, int64_t count);

} // namespace at::cuda::cudnn
