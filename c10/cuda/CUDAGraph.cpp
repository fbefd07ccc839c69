// Recording and replaying graphs. See CUDAGraph.h.
#include <c10/cuda/CUDAGraph.h>

#include <utility>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

namespace c10::cuda {
namespace {
thread_local CUDAGraph* recorded_here = nullptr;
}

GraphInput::~GraphInput() = default;
CUDAGraph* CUDAGraph::recording() noexcept { return recorded_here; }
void CUDAGraph::end_recording() noexcept {
  if (recorded_here == this) recorded_here = nullptr;
}

CUDAGraph::~CUDAGraph() {
  try {
    reset();
  } catch (const Error&) {
    // The driver is gone, and with it the graph.
  }
}

void CUDAGraph::capture_begin(uint64_t pool, CUstreamCaptureMode mode) {
  TORCH_CHECK(executable_ == nullptr && stream_ == nullptr,
              "This CUDAGraph instance already owns a captured graph. To capture a new graph, "
              "create a new instance.");
  const CUDAStream stream = getCurrentCUDAStream();
  TORCH_CHECK(stream.stream() != nullptr,
              "CUDA graphs must be captured on a non-default stream. (However, after capture, "
              "it's ok to replay them on the default stream.)");
  TORCH_CHECK_NOT_IMPLEMENTED(driver().cuStreamBeginCapture != nullptr &&
                                  driver().cuGraphInstantiate != nullptr &&
                                  driver().cuThreadExchangeStreamCaptureMode != nullptr,
                              "CUDA graphs are not supported by this driver");
  const CUDAGuard guard(stream.device_index());
  const uint64_t chosen = pool != 0 ? pool : CUDACachingAllocator::new_graph_pool();
  CUDACachingAllocator::begin_graph_recording(stream.device_index(), chosen);
  const CUresult result = driver().cuStreamBeginCapture(stream, mode);
  if (result != CUDA_SUCCESS) {
    CUDACachingAllocator::end_graph_recording(stream.device_index());
    CUDACachingAllocator::release_graph_pool(stream.device_index(), chosen);
    check(result, "cuStreamBeginCapture");
  }
  device_ = stream.device_index();
  stream_ = stream;
  pool_ = chosen;
  recorded_here = this;
}

void CUDAGraph::capture_end() {
  TORCH_CHECK(stream_ != nullptr, "capture_end() without capture_begin()");
  const CUDAGuard guard(device_);
  const CUstream stream = std::exchange(stream_, nullptr);
  end_recording();
  const CUresult ended = driver().cuStreamEndCapture(stream, &graph_);
  CUDACachingAllocator::end_graph_recording(device_);
  check(ended, "cuStreamEndCapture");
  TORCH_CHECK(graph_ != nullptr, "Invalid capture.");
  CRESSET_CUDA_CHECK(cuGraphInstantiate, &executable_, graph_, 0ull);
}

void CUDAGraph::replay() {
  TORCH_CHECK(executable_ != nullptr,
              "Called CUDAGraph::replay without a preceding successful capture.");
  const CUDAGuard guard(device_);
  for (const auto& input : inputs_) input->write(getCurrentCUDAStream());
  CRESSET_CUDA_CHECK(cuGraphLaunch, executable_, getCurrentCUDAStream());
}

void CUDAGraph::reset() {
  if (pool_ == 0) return;
  const uint64_t pool = std::exchange(pool_, 0);
  end_recording();
  inputs_.clear();
  if (stream_ != nullptr) {
    CUgraph unfinished = nullptr;
    driver().cuStreamEndCapture(std::exchange(stream_, nullptr), &unfinished);
    if (unfinished != nullptr) driver().cuGraphDestroy(unfinished);
    CUDACachingAllocator::end_graph_recording(device_);
  }
  CUDACachingAllocator::release_graph_pool(device_, pool);
  if (executable_ != nullptr) driver().cuGraphExecDestroy(std::exchange(executable_, nullptr));
  if (graph_ != nullptr) driver().cuGraphDestroy(std::exchange(graph_, nullptr));
}

void CUDAGraph::debug_dump(const char* path) const {
  TORCH_CHECK_NOT_IMPLEMENTED(driver().cuGraphDebugDotPrint != nullptr,
                              "CUDAGraph.debug_dump is not supported by this driver");
  CRESSET_CUDA_CHECK(cuGraphDebugDotPrint, raw_graph(), path, 1u);
}
CUgraph CUDAGraph::raw_graph() const {
  TORCH_CHECK(graph_ != nullptr, "You cannot access the raw graph before a capture has ended.");
  return graph_;
}
CUgraphExec CUDAGraph::raw_executable() const {
  TORCH_CHECK(executable_ != nullptr,
              "You cannot access the raw executable graph before a capture has ended.");
  return executable_;
}

uint64_t CUDAGraph::pool() const {
  TORCH_CHECK(pool_ != 0, "Called CUDAGraph::pool() without a preceding successful capture.");
  return pool_;
}

} // namespace c10::cuda
