// Transforms of the data of examples whose data is a tensor.
#pragma once
#include <functional>

#include <torch/data/example.h>
#include <torch/data/transforms/base.h>

namespace torch::data::transforms {

template <class Target = at::Tensor> class TensorTransform
    : public Transform<Example<at::Tensor, Target>, Example<at::Tensor, Target>> {
 public:
  using E = Example<at::Tensor, Target>;
  virtual at::Tensor operator()(at::Tensor input) = 0;
  E apply(E input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};

template <class Target = at::Tensor> class TensorLambda : public TensorTransform<Target> {
 public:
  using FunctionType = std::function<at::Tensor(at::Tensor)>;
  explicit TensorLambda(FunctionType function) : function_(std::move(function)) {}
  at::Tensor operator()(at::Tensor input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

// (x - mean) / stddev, with one value for all channels or one for each. Channels are the dimension
// before height and width.
template <class Target = at::Tensor> struct Normalize : public TensorTransform<Target> {
  Normalize(at::ArrayRef<double> mean, at::ArrayRef<double> stddev)
      : mean(of_channels(mean)), stddev(of_channels(stddev)) {}
  at::Tensor operator()(at::Tensor input) override { return input.sub(mean).div(stddev); }
  at::Tensor mean, stddev;

 private:
  static at::Tensor of_channels(at::ArrayRef<double> values) {
    const at::Tensor list = torch::tensor(values, torch::kFloat32);
    return values.size() == 1 ? list[0] : list.reshape({-1, 1, 1});
  }
};

} // namespace torch::data::transforms
