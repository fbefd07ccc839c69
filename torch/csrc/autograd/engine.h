// The backward pass. It runs on the calling thread; where several CUDA devices take part each has a
// thread besides (Note [Threads of a backward pass] in engine_devices.cpp, Note [Streams of a
// backward pass] in streams.h).
#pragma once
#include <functional>

#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {

struct BackwardOptions {
  bool keep_graph = false;
  bool create_graph = false;
  // The pass was asked for gradients of `inputs` (autograd.grad): they are answered, not
  // accumulated.
  bool accumulate = true;
};

// Runs the pass from `roots` with `grads` (one each). `inputs`: where gradients are wanted; empty
// means every leaf. Returns the gradients at `inputs`, undefined where nothing arrived, when
// options.accumulate is false; with it, gradients arriving at `inputs` that are leaves are
// accumulated.
TORCH_API TensorVec run_backward(c10::ArrayRef<Edge> roots, TensorVec grads,
                                 c10::ArrayRef<Edge> inputs, const BackwardOptions& options);

// Runs `callback` when the backward pass in progress on this thread has ended. Error outside of
// one.
TORCH_API void queue_callback(std::function<void()> callback);
// The same when all passes in progress on this thread have ended: a pass that a node of another one
// runs, as checkpoints do, may compute some of the gradients of a parameter only.
TORCH_API void queue_outermost_callback(std::function<void()> callback);
// The node being run on this thread, or null.
TORCH_API Node* current_node();
// A number that tells the backward pass in progress on this thread from others; -1 outside of one.
TORCH_API int64_t current_pass_id();
// Whether the pass in progress computes what arrives at `edge`. Error outside of a pass.
TORCH_API bool will_compute(const Edge& edge);
// Whether the pass in progress, if it runs `node`, has a use for what it gives along edge `i`.
TORCH_API bool is_wanted(const Node* node, size_t i);
// Whether the pass in progress runs `node` for the last time: what it saved may go at its last use.
TORCH_API bool is_last_run(const Node* node);

// What surrounds work on a thread that the engine starts; set by the Python layer, whose lock the
// work needs. `leave` gets what `enter` gave and returns an error to carry over, or null; `resume`
// raises it again on the thread that waited, `drop` forgets it. `release` gives the lock away where
// the thread has it, and `acquire` takes it back with what `release` gave. `plain` tells whether
// the calling thread has no state of the Python layer that another one would miss.
struct ThreadHooks {
  void* (*enter)() = nullptr;
  void* (*leave)(void* held) = nullptr;
  void (*resume)(void* carried) = nullptr;
  void (*drop)(void* carried) = nullptr;
  void* (*release)() = nullptr;
  void (*acquire)(void* released) = nullptr;
  bool (*plain)() = nullptr;
};
TORCH_API extern ThreadHooks thread_hooks;

// Brings each gradient to the shape and dtype of what it is the gradient of, as the engine does
// with what a node returned; undefined ones stay. Raises what `format_error` makes of a message.
TORCH_API void validate_outputs(const std::vector<std::optional<InputMetadata>>& wanted,
                                std::vector<Tensor>& grads,
                                const std::function<std::string(const std::string&)>& format_error);

// Warns, once, that a pass which records itself leaves a cycle of tensor and gradient.
TORCH_API void warn_create_graph(bool create_graph);

// ---- the C++ front end --------------------------------------------------------------------------
TORCH_API void backward(at::TensorList tensors, at::TensorList grads = {},
                        std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                        at::TensorList inputs = {});
TORCH_API std::vector<Tensor> grad(at::TensorList outputs, at::TensorList inputs,
                                   at::TensorList grad_outputs = {},
                                   std::optional<bool> retain_graph = std::nullopt,
                                   bool create_graph = false, bool allow_unused = false);

} // namespace torch::autograd
