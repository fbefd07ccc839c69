// One example of a dataset, or a batch of them: the data and, for supervised learning, a target.
#pragma once
#include <torch/types.h>

namespace torch::data {
namespace example {
// Stands for the target of examples that have none.
using NoTarget = void;
} // namespace example

template <class Data = at::Tensor, class Target = at::Tensor> struct Example {
  using DataType = Data;
  using TargetType = Target;
  Example() = default;
  Example(Data data, Target target) : data(std::move(data)), target(std::move(target)) {}
  Data data;
  Target target;
};

template <class Data> struct Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;
  Example() = default;
  /* implicit */ Example(Data data) : data(std::move(data)) {}
  // An example without a target is its data.
  operator Data&() { return data; }
  operator const Data&() const { return data; }
  Data data;
};

using TensorExample = Example<at::Tensor, example::NoTarget>;

} // namespace torch::data
