// A compiled model that runs without Python: the graphs of a file (aoti_file.h), the plans made of
// them for the shapes they meet, and constants that can be replaced while it runs. Any number of
// threads may call one model: plans are never written, and a run keeps the constants it began with.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <torch/csrc/inductor/aoti_file.h>
#include <torch/csrc/inductor/plan.h>

namespace torch::inductor {

// The bytes of a file of weights, kept as long as a tensor lies in them.
struct AotiBytes {
  std::shared_ptr<void> keeper;
  std::string_view bytes;
};

class TORCH_API AotiModel {
 public:
  // `device` may name another one of the same type. Checks the weights.
  AotiModel(AotiFile file, const AotiBytes& weights, at::Device device);
  ~AotiModel();
  AotiModel(const AotiModel&) = delete;
  AotiModel& operator=(const AotiModel&) = delete;

  // Tensors in, tensors out, in the order of the flat arguments and results. A number among the
  // arguments is given as a tensor of one element.
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs);

  const AotiFile& file() const { return file_; }

  // ---- constants
  // A second set stands beside the one that runs use: it can be filled while they go on, and then
  // be swapped in.
  void update(const std::unordered_map<std::string, at::Tensor>& values, bool inactive, bool full,
              bool user_managed);
  void swap();
  void free_inactive();
  void fold(bool inactive);
  std::unordered_map<std::string, at::Tensor> constants(bool inactive) const;

 private:
  struct Graph;
  struct Constants;
  using Values = std::vector<at::IValue>;

  void check(const std::vector<at::Tensor>& inputs) const;
  Values call(size_t graph, Values inputs, const Constants& constants);
  Values interpret(const Graph& graph, Values inputs, const Constants& constants);
  at::IValue call_node(const Node& node, const Values& env, const Constants& constants);
  at::IValue loop(const Node& node, Values carried, const Constants& constants);
  std::shared_ptr<Constants> folded(std::shared_ptr<Constants> constants);
  void bind(Constants& constants) const;
  size_t find_constant(const std::string& name) const;
  at::Tensor laid_out(const at::Tensor& value, const AotiConstant& constant, bool shared) const;
  std::shared_ptr<Constants>& chosen(bool inactive) { return inactive ? inactive_ : active_; }

  AotiFile file_;
  at::Device device_;
  std::vector<std::unique_ptr<Graph>> graphs_;
  mutable std::mutex mutex_; // of the sets of constants
  std::shared_ptr<Constants> active_, inactive_;
};

} // namespace torch::inductor
