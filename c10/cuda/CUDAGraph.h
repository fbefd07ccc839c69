// Work recorded once and queued again as a whole. A recording takes what the calling thread queues
// on its current stream, which must not be the default one, and the memory it allocates meanwhile
// belongs to the graph. Numbers from a generator cannot be drawn during a recording, because every
// replay would repeat them.
#pragma once
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {

class C10_API CUDAGraph {
 public:
  CUDAGraph() = default;
  ~CUDAGraph();
  CUDAGraph(const CUDAGraph&) = delete;
  CUDAGraph& operator=(const CUDAGraph&) = delete;

  // Starts a recording. `pool`: memory shared with other graphs, zero for the graph's own.
  void capture_begin(uint64_t pool, CUstreamCaptureMode mode);
  void capture_end();
  // Queues the recorded work on the current stream.
  void replay();
  // Forgets the recording; its memory can be reused once its tensors are gone.
  void reset();
  uint64_t pool() const;

 private:
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
  CUstream stream_ = nullptr; // while recording
  DeviceIndex device_ = -1;
  uint64_t pool_ = 0;
};

} // namespace c10::cuda
