// Work recorded once and queued again as a whole. A recording takes what the calling thread queues
// on its current stream, which must not be the default one, and the memory it allocates meanwhile
// belongs to the graph. What a replay must find changed, such as the state of a generator that the
// recorded work draws from, is a GraphInput.
#pragma once
#include <memory>
#include <vector>

#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {

// Something that is written to the device before each replay, on the replay's stream.
class C10_API GraphInput {
 public:
  virtual ~GraphInput();
  virtual void write(CUDAStream stream) = 0;
};

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
  // Writes the recording to a file, as a graph in the dot language.
  void debug_dump(const char* path) const;
  CUgraph raw_graph() const;
  CUgraphExec raw_executable() const;

  // The graph that this thread records; null outside of a recording.
  static CUDAGraph* recording() noexcept;
  const std::vector<std::unique_ptr<GraphInput>>& inputs() const { return inputs_; }
  void add_input(std::unique_ptr<GraphInput> input) { inputs_.push_back(std::move(input)); }

 private:
  void end_recording() noexcept;

  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
  CUstream stream_ = nullptr; // while recording
  DeviceIndex device_ = -1;
  uint64_t pool_ = 0;
  std::vector<std::unique_ptr<GraphInput>> inputs_;
};

} // namespace c10::cuda
