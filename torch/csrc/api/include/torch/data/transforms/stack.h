// The tensors of a batch stacked along a new first dimension.
#pragma once
#include <torch/data/transforms/collate.h>

namespace torch::data::transforms {

template <class ExampleType = Example<>> struct Stack;

template <> struct Stack<Example<>> : public Collation<Example<>> {
  Example<> apply_batch(std::vector<Example<>> examples) override {
    std::vector<at::Tensor> data, targets;
    for (Example<>& each : examples) {
      data.push_back(std::move(each.data));
      targets.push_back(std::move(each.target));
    }
    return {at::stack(data), at::stack(targets)};
  }
};

template <> struct Stack<TensorExample> : public Collation<TensorExample> {
  TensorExample apply_batch(std::vector<TensorExample> examples) override {
    std::vector<at::Tensor> data;
    for (TensorExample& each : examples) data.push_back(std::move(each.data));
    return at::stack(data);
  }
};

} // namespace torch::data::transforms
