// See CudnnGraph.h.
#include <ATen/cuda/CudnnGraph.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/VendorLibrary.h>
#include <c10/cuda/CUDADevice.h>

namespace at::cuda::cudnn {
namespace {

enum Note : int { kTensorCores = 0, kRoundsInputs = 1, kUnrepeatable = 4, kNoteKinds = 10 };
enum HeuristicsMode : int { kFallback = 2, kByDecisionTree = 3 };
constexpr int64_t kWorkspaceLimit = int64_t(1) << 30;

bool is_permitted(EngineRules rules, const Descriptor& config) {
  Descriptor engine(kEngine);
  void* handle = engine.get();
  config.read(kConfigEngine, kDescriptorValue, &handle, 1);
  int notes[kNoteKinds];
  const int64_t count = engine.read(kEngineNotes, kNoteValue, notes, kNoteKinds);
  for (int64_t i = 0; i < count; ++i) {
    if (rules.exact && (notes[i] == kTensorCores || notes[i] == kRoundsInputs)) return false;
    if (rules.deterministic && notes[i] == kUnrepeatable) return false;
  }
  return true;
}

// Engines with their settings, best first.
std::vector<Descriptor> configs_of(const Descriptor& graph, HeuristicsMode mode) {
  std::vector<Descriptor> configs;
  void* handles[kMostConfigs];
  for (void*& handle : handles) {
    configs.emplace_back(kEngineConfig);
    handle = configs.back().get();
  }
  Descriptor heuristics(kHeuristics);
  heuristics.set(kHeuristicsGraph, graph);
  heuristics.set(kHeuristicsMode, kHeuristicsModeValue, static_cast<int>(mode));
  heuristics.finish();
  const int64_t found =
      heuristics.read(kHeuristicsResults, kDescriptorValue, handles, int64_t(kMostConfigs));
  configs.resize(static_cast<size_t>(found < kMostConfigs ? found : kMostConfigs));
  return configs;
}

Plan plan_of(const Descriptor& config, int device) {
  Plan made{Descriptor(kPlan), 0};
  void* const handle = handle_of(device);
  made.plan.set(kPlanHandle, kHandleValue, handle);
  made.plan.set(kPlanConfig, config);
  made.plan.finish();
  made.plan.read(kPlanWorkspace, kInt64Value, &made.workspace, 1);
  return made;
}

} // namespace

const Library* library() {
#define CRESSET_FIND(name) CRESSET_VENDOR_FUNCTION(Library, name)
  static const Library* const loaded = vendor_table<Library>(
      {"libcudnn.so.9"},
      {CRESSET_FIND(cudnnGetVersion), CRESSET_FIND(cudnnGetErrorString), CRESSET_FIND(cudnnCreate),
       CRESSET_FIND(cudnnSetStream), CRESSET_FIND(cudnnBackendCreateDescriptor),
       CRESSET_FIND(cudnnBackendDestroyDescriptor), CRESSET_FIND(cudnnBackendFinalize),
       CRESSET_FIND(cudnnBackendSetAttribute), CRESSET_FIND(cudnnBackendGetAttribute),
       CRESSET_FIND(cudnnBackendExecute)});
#undef CRESSET_FIND
  return loaded;
}

void* handle_of(int device) {
  // On the heap: room for thread-local variables is scarce, see test_package_names.py.
  thread_local auto* handles = new void*[c10::cuda::kMaxDevices]();
  void*& handle = handles[device];
  if (handle == nullptr) {
    const Status status = library()->cudnnCreate(&handle);
    TORCH_CHECK(status == kSuccess, "cuDNN error: ", library()->cudnnGetErrorString(status),
                " when calling `cudnnCreate`");
  }
  return handle;
}

DataType data_type(ScalarType dtype) {
  switch (dtype) {
  case kFloat:
    return kFloatData;
  case kDouble:
    return kDoubleData;
  case kHalf:
    return kHalfData;
  case kBFloat16:
    return kBFloat16Data;
  default:
    throw Unsupported();
  }
}

Descriptor graph_of(int device, const std::vector<void*>& operations) {
  Descriptor graph(kGraph);
  void* const handle = handle_of(device);
  graph.set(kGraphHandle, kHandleValue, handle);
  graph.set(kGraphOperations, kDescriptorValue, operations.data(),
            static_cast<int64_t>(operations.size()));
  graph.finish();
  return graph;
}

std::vector<Plan> plans_of(const Descriptor& graph, int device, EngineRules rules, size_t wanted) {
  std::vector<Plan> plans;
  for (const HeuristicsMode mode : {kByDecisionTree, kFallback}) {
    if (!plans.empty()) break;
    for (const Descriptor& config : configs_of(graph, mode)) {
      if (plans.size() == wanted) break;
      try {
        if (!is_permitted(rules, config)) continue;
        Plan made = plan_of(config, device);
        if (made.workspace <= kWorkspaceLimit) plans.push_back(std::move(made));
      } catch (const Unsupported&) {
        continue; // the next engine
      }
    }
  }
  return plans;
}

Status execute(const Plan& plan, int device, c10::cuda::CUstream stream, const int64_t* ids,
               const void* const* pointers, int64_t count) {
  const Device where(kCUDA, static_cast<c10::DeviceIndex>(device));
  // Freed memory is used again in the stream's order, so the tensor may go when the call returns.
  const Tensor scratch =
      plan.workspace > 0 ? at::detail::empty({plan.workspace}, kByte, where) : Tensor();
  void* const workspace = scratch.defined() ? scratch.mutable_data_ptr() : nullptr;
  void* const handle = handle_of(device);
  const Descriptor pack(kVariantPack);
  pack.set(kPackIds, kInt64Value, ids, count);
  pack.set(kPackPointers, kPointerValue, pointers, count);
  pack.set(kPackWorkspace, kPointerValue, workspace);
  pack.finish();
  library()->cudnnSetStream(handle, stream);
  return library()->cudnnBackendExecute(handle, plan.plan.get(), pack.get());
}

} // namespace at::cuda::cudnn
