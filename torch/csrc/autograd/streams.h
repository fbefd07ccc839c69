// Devices and streams in a backward pass.
//
// Note [Streams of a backward pass]
// A node runs on the stream on which its forward operator ran, so that a backward pass overlaps and
// orders its work as the forward pass did. Work is queued, not waited for. A gradient that goes
// from a node on one stream to a node on another makes the second stream wait for the first, and
// its memory is kept until the second is past it. Sums of gradients are made on the stream of the
// node that takes them. When the pass ends, the streams that were current for the caller wait for
// all that were used: what follows the call sees finished gradients, as if the pass had run on its
// stream.
#pragma once
#include <torch/csrc/autograd/node.h>

namespace torch::autograd {

// The stream that is current for `device` on this thread; null on the CPU.
void* current_stream(at::Device device);

// Where a node's work goes: a device and its stream, or the CPU.
struct StreamPlace {
  at::Device device;
  void* stream = nullptr;
  bool on_cpu() const { return device.is_cpu(); }
  bool operator==(const StreamPlace& o) const { return device == o.device && stream == o.stream; }
};

// The place of the first gradient that enters the node on a device other than the CPU.
inline StreamPlace place_of(const Node& node) {
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const InputMetadata& meta = node.input_metadata(i);
    if (C10_UNLIKELY(!meta.device.is_cpu() && !meta.device.is_meta()))
      return {meta.device, meta.stream};
  }
  return {};
}

// The streams a pass uses. Costs nothing while only the CPU is involved.
class PassStreams {
 public:
  PassStreams() = default;
  ~PassStreams(); // puts back what was current
  PassStreams(const PassStreams&) = delete;
  PassStreams& operator=(const PassStreams&) = delete;

  // Work from now on goes there. For the CPU nothing changes.
  void enter(const StreamPlace& place) {
    if (C10_UNLIKELY(!place.on_cpu())) enter_device(place);
  }
  // A gradient made at `from` is to be used at `to`. A node of the CPU may have copied it to the
  // device, on the stream current there.
  void hand_over(const StreamPlace& from, const StreamPlace& to, const Tensor& grad) {
    if (C10_UNLIKELY(!to.on_cpu() && !(from == to))) order(from, to, grad);
  }
  // A gradient that came from outside the pass, on the streams current then.
  void receive(const StreamPlace& to, const Tensor& grad);
  // The caller's streams wait for those of the pass.
  void finish();

  // The places that were entered, and one that another thread entered for this pass.
  c10::ArrayRef<StreamPlace> entered() const { return entered_; }
  void adopt(const StreamPlace& place);

 private:
  void enter_device(const StreamPlace& place);
  void order(const StreamPlace& from, const StreamPlace& to, const Tensor& grad);
  // The stream that was current for the device before the pass touched it.
  StreamPlace callers(at::Device device) const;

  bool used_ = false;
  at::Device first_;                         // the device that was current before the pass
  c10::SmallVector<StreamPlace, 2> changed_; // what was current on each device
  c10::SmallVector<StreamPlace, 2> entered_;
};

} // namespace torch::autograd
