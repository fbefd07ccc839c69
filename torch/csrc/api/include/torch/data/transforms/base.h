// A transform turns a batch into another; most do it example by example.
#pragma once
#include <utility>
#include <vector>

namespace torch::data::transforms {

template <class InputBatch, class OutputBatch> class BatchTransform {
 public:
  using InputBatchType = InputBatch;
  using OutputBatchType = OutputBatch;
  virtual ~BatchTransform() = default;
  virtual OutputBatch apply_batch(InputBatch input_batch) = 0;
};

template <class Input, class Output> class Transform
    : public BatchTransform<std::vector<Input>, std::vector<Output>> {
 public:
  using InputType = Input;
  using OutputType = Output;
  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> input_batch) override {
    std::vector<Output> out;
    out.reserve(input_batch.size());
    for (Input& each : input_batch) out.push_back(apply(std::move(each)));
    return out;
  }
};

} // namespace torch::data::transforms
