// The gradients of a model that several processes train: averaged over the processes while the
// backward pass still runs. Parameters are put together in buckets; when the last gradient of a
// bucket has been accumulated its exchange starts, and the end of the pass waits for all of them.
// One thread at a time; it needs what the engine needs.
#pragma once
#include <torch/csrc/autograd/variable.h>

#include <torch/csrc/distributed/c10d/Backend.h>

namespace c10d::engine {

// How buckets are exchanged: by a backend, or by what a program put in its place.
class TORCH_API GradientExchange {
 public:
  virtual ~GradientExchange();
  // Starts to combine `flat` over all ranks. Calls come in the same order on every rank.
  virtual void start(size_t bucket, const at::Tensor& flat) = 0;
  // Waits for it; returns the result, which may be another tensor than `flat`.
  virtual at::Tensor finish(size_t bucket, const at::Tensor& flat) = 0;
  // Adds up a tensor over all ranks, at once.
  virtual void add_up(const at::Tensor& tensor) = 0;
  // Whether the gradients are to be divided by the number of ranks before they are sent.
  virtual bool divides() const { return true; }
};

// The plain sum of a backend.
TORCH_API std::unique_ptr<GradientExchange> make_exchange(std::shared_ptr<Backend> backend);

struct ReducerOptions {
  bool find_unused = false;
  bool as_bucket_view = false; // gradients are parts of the buckets' memory
  bool static_graph = false;   // every pass is like the first
  std::vector<std::string> names;
  int world_size = 1;
};

class TORCH_API Reducer {
 public:
  using Buckets = std::vector<std::vector<size_t>>;
  Reducer(std::vector<at::Tensor> parameters, Buckets buckets, ReducerOptions options,
          std::unique_ptr<GradientExchange> exchange);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // Before a backward pass that exchanges gradients. `outputs` are what the forward pass gave; they
  // are searched for unused parameters where that was asked for. Throws when the pass before did
  // not use all parameters.
  void prepare_for_backward(const std::vector<at::Tensor>& outputs);
  // Gradients of the next pass stay here.
  void skip_next() { expects_ = false; }
  // New buckets for the same parameters.
  void set_buckets(Buckets buckets);
  // Parameters in the order in which the last pass finished them; empty before one.
  const std::vector<size_t>& arrival() const { return arrival_; }
  void set_exchange(std::unique_ptr<GradientExchange> exchange);
  void set_static_graph() { options_.static_graph = true; }
  // By how many gradients are divided from now on.
  void set_world_size(int size) { options_.world_size = size; }
  void remove_hooks();

  size_t bucket_count() const { return buckets_.size(); }
  at::Tensor bucket_flat(size_t bucket) const { return buckets_.at(bucket).flat; }
  std::vector<at::Tensor> bucket_parameters(size_t bucket) const;
  std::vector<at::Tensor> bucket_gradients(size_t bucket) const {
    return buckets_.at(bucket).views;
  }
  // Which parameters the passes since the last exchange used, as 0 and 1.
  const at::Tensor& used() const { return used_; }

 private:
  class Hook;
  struct Bucket {
    std::vector<size_t> members;
    at::Tensor flat;
    std::vector<at::Tensor> views; // of flat, one per member
    size_t pending = 0;
  };
  struct Place {
    size_t bucket = 0, index = 0;
  };
  void accumulated(size_t parameter);
  void mark_ready(size_t parameter, bool is_used);
  void start_ready_buckets();
  void finish_pass();
  void deliver(const Bucket& bucket, const at::Tensor& result, const at::Tensor& used_anywhere);
  void find_unused(const std::vector<at::Tensor>& outputs);
  [[noreturn]] void throw_unfinished() const;

  const std::vector<at::Tensor> parameters_;
  ReducerOptions options_;
  std::unique_ptr<GradientExchange> exchange_;
  std::vector<c10::intrusive_ptr<torch::autograd::Node>>
      accumulators_; // kept alive: hooks live there
  std::vector<std::shared_ptr<torch::autograd::NodeHook>> hooks_;
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;
  std::vector<char> is_ready_;
  std::vector<size_t> unused_; // found before the pass
  std::vector<size_t> arrival_;
  std::vector<int> uses_, uses_left_; // of a static graph: how often each accumulates in a pass
  at::Tensor used_;
  size_t next_bucket_ = 0;
  bool expects_ = false, has_begun_ = false, is_finished_ = true, is_first_pass_ = true;
};

} // namespace c10d::engine
