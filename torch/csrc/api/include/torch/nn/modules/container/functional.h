// A function as a module: Functional(torch::relu), Functional(torch::elu, /*alpha=*/1, ...).
#pragma once
#include <functional>

#include <torch/nn/cloneable.h>

namespace torch::nn {

class TORCH_API FunctionalImpl : public Cloneable<FunctionalImpl> {
 public:
  using Function = std::function<Tensor(Tensor)>;
  explicit FunctionalImpl(Function function) : function_(std::move(function)) {}
  template <class F, class... Args, class = std::enable_if_t<(sizeof...(Args) > 0)>>
  explicit FunctionalImpl(F original, Args&&... args)
      : function_(std::bind(original, std::placeholders::_1, std::forward<Args>(args)...)) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input) { return function_(std::move(input)); }
  Tensor operator()(Tensor input) { return function_(std::move(input)); }
  bool is_serializable() const override { return false; }

 private:
  Function function_;
};
CRESSET_LIBRARY_MODULE(Functional);

} // namespace torch::nn
