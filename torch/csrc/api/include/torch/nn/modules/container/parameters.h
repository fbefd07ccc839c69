// Parameters in lists and dictionaries.
#pragma once
#include <torch/nn/cloneable.h>

namespace torch::nn {

class TORCH_API ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  using Iterator = OrderedDict<std::string, Tensor>::Iterator;
  using ConstIterator = OrderedDict<std::string, Tensor>::ConstIterator;

  ParameterListImpl() = default;
  template <class... Tensors,
            class = std::enable_if_t<(std::is_convertible_v<Tensors, Tensor> && ...) &&
                                     sizeof...(Tensors) != 0>>
  explicit ParameterListImpl(Tensors&&... parameters) {
    (append(Tensor(parameters)), ...);
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  void append(const Tensor& parameter) { append(Tensor(parameter), parameter.requires_grad()); }
  void append(Tensor&& parameter) {
    const bool requires_grad = parameter.requires_grad();
    append(std::move(parameter), requires_grad);
  }
  void append(const OrderedDict<std::string, Tensor>::Item& pair) {
    register_parameter(pair.key(), pair.value(), pair.value().requires_grad());
  }
  // Appends what a container of tensors, or another list, holds, under the numbers that follow.
  template <class Container> void extend(const Container& container) {
    using Item = OrderedDict<std::string, Tensor>::Item;
    for (const auto& parameter : container) {
      if constexpr (std::is_same_v<std::decay_t<decltype(parameter)>, Item>)
        append(parameter.value());
      else
        append(parameter);
    }
  }
  // Appends the parameters of another list, under the numbers that follow.
  ParameterListImpl& operator+=(const ParameterListImpl& other) {
    for (const Tensor& parameter : other.parameters_.values()) append(parameter);
    return *this;
  }
  Iterator begin() { return parameters_.begin(); }
  Iterator end() { return parameters_.end(); }
  ConstIterator begin() const { return parameters_.begin(); }
  ConstIterator end() const { return parameters_.end(); }
  Tensor& at(size_t index) {
    TORCH_CHECK(index < size(), "Index out of range");
    return parameters_[std::to_string(index)];
  }
  const Tensor& at(size_t index) const { return const_cast<ParameterListImpl*>(this)->at(index); }
  Tensor& operator[](size_t index) { return at(index); }
  const Tensor& operator[](size_t index) const { return at(index); }
  size_t size() const noexcept { return parameters_.size(); }
  bool is_empty() const noexcept { return parameters_.is_empty(); }

 private:
  void append(Tensor parameter, bool requires_grad) {
    register_parameter(std::to_string(size()), std::move(parameter), requires_grad);
  }
};
CRESSET_LIBRARY_MODULE(ParameterList);

class TORCH_API ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  using Iterator = OrderedDict<std::string, Tensor>::Iterator;
  using ConstIterator = OrderedDict<std::string, Tensor>::ConstIterator;

  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) {
    parameters_ = parameters;
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor& insert(const std::string& key, const Tensor& parameter) {
    return register_parameter(key, parameter, parameter.requires_grad());
  }
  Tensor pop(const std::string& key) {
    Tensor parameter = parameters_[key];
    parameters_.erase(key);
    return parameter;
  }
  std::vector<std::string> keys() const { return parameters_.keys(); }
  std::vector<Tensor> values() const { return parameters_.values(); }
  Iterator begin() { return parameters_.begin(); }
  Iterator end() { return parameters_.end(); }
  ConstIterator begin() const { return parameters_.begin(); }
  ConstIterator end() const { return parameters_.end(); }
  size_t size() const noexcept { return parameters_.size(); }
  bool empty() const noexcept { return parameters_.is_empty(); }
  void clear() { parameters_.clear(); }
  bool contains(const std::string& key) const noexcept { return parameters_.contains(key); }
  const Tensor& get(const std::string& key) const { return parameters_[key]; }
  Tensor& get(const std::string& key) { return parameters_[key]; }
  Tensor& operator[](const std::string& key) { return parameters_[key]; }
  const Tensor& operator[](const std::string& key) const { return parameters_[key]; }
  // Takes the values of `container`, whose keys must all be known.
  template <class Container> void update(const Container& container) {
    for (const auto& item : container) parameters_[item.key()] = item.value();
  }
};
CRESSET_LIBRARY_MODULE(ParameterDict);

} // namespace torch::nn
