// Graphs of the emulated driver: a stream that records keeps what is queued on it as a list of
// steps, and launching the graph runs the list.
#include "Emulator.h"
#include "Observer.h"

#include <cstring>
#include <memory>

using namespace emulator;

#define ENTER(...)                                                                                 \
  Entry entry{__VA_ARGS__};                                                                        \
  if (entry.error()) return entry.error();

namespace emulator {

Graph* recording(Stream* stream) {
  return state().streams.count(stream) != 0 ? stream->recording : nullptr;
}

void record_kernel(Graph& graph, Function& function, const unsigned grid[3],
                   const unsigned block[3], unsigned shared_bytes, void** args) {
  std::vector<std::vector<char>> values;
  int i = 0;
  for (const unsigned* p = function.sizes; *p != ~0u; p += 2, ++i) {
    const char* bytes = static_cast<const char*>(args[i]);
    values.emplace_back(bytes, bytes + p[0]);
  }
  const std::vector<unsigned> g(grid, grid + 3), b(block, block + 3);
  graph.steps.push_back([=, &function]() mutable {
    // Parameters may be read by aligned accesses.
    std::vector<std::unique_ptr<std::max_align_t[]>> kept;
    std::vector<void*> pointers;
    for (const std::vector<char>& value : values) {
      kept.emplace_back(new std::max_align_t[value.size() / sizeof(std::max_align_t) + 1]);
      std::memcpy(kept.back().get(), value.data(), value.size());
      pointers.push_back(kept.back().get());
    }
    return run_kernel(function, g.data(), b.data(), shared_bytes, pointers.data());
  });
}

} // namespace emulator

// Work of the other emulated libraries.
EMULATOR_API int cressetEmulatorIsRecording(Stream* stream) {
  const std::lock_guard<std::recursive_mutex> lock(state().lock);
  return recording(stream) != nullptr;
}
EMULATOR_API void cressetEmulatorRecord(Stream* stream, int (*run)(void*), void* work,
                                        void (*free)(void*)) {
  const std::lock_guard<std::recursive_mutex> lock(state().lock);
  const std::shared_ptr<void> kept(work, free);
  recording(stream)->steps.push_back([=] { return run(kept.get()) ? kLaunchFailed : kSuccess; });
}

EMULATOR_API CUresult cuStreamBeginCapture_v2(Stream* stream, int) {
  ENTER()
  if (state().streams.count(stream) == 0 || stream->recording != nullptr) {
    return kInvalidValue;
  }
  stream->recording = new Graph;
  stream->waited = false;
  return kSuccess;
}
EMULATOR_API CUresult cuStreamEndCapture(Stream* stream, Graph** graph) {
  ENTER()
  if (recording(stream) == nullptr) {
    return kInvalidValue;
  }
  *graph = stream->recording;
  stream->recording = nullptr;
  if (stream->waited) {
    delete *graph;
    *graph = nullptr;
    return kCaptureInvalidated;
  }
  return kSuccess;
}
EMULATOR_API CUresult cuStreamIsCapturing(Stream* stream, int* status) {
  ENTER()
  *status = recording(stream) != nullptr ? 1 : 0;
  return live(stream) ? kSuccess : kInvalidHandle;
}
EMULATOR_API CUresult cuThreadExchangeStreamCaptureMode(int*) { return kSuccess; }
EMULATOR_API CUresult cuGraphInstantiateWithFlags(Graph** executable, Graph* graph, uint64_t) {
  ENTER()
  *executable = new Graph(*graph);
  return kSuccess;
}
EMULATOR_API CUresult cuGraphLaunch(Graph* executable, Stream* stream) {
  const ObservedCall observed(observer(), "cuGraphLaunch", stream);
  ENTER()
  if (!live(stream)) {
    return kInvalidHandle;
  }
  for (const auto& step : executable->steps) {
    if (const CUresult error = step()) {
      return error;
    }
  }
  return kSuccess;
}
EMULATOR_API CUresult cuGraphExecDestroy(Graph* executable) {
  delete executable;
  return kSuccess;
}
EMULATOR_API CUresult cuGraphDestroy(Graph* graph) {
  delete graph;
  return kSuccess;
}
