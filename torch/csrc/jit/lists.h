// The vectors behind lists of scripted code. What works on whole lists takes the vector once, so
// that items are not looked up and wrapped one by one.
#pragma once
#include <torch/csrc/jit/values.h>

namespace torch::jit {

// Calls f with the vector behind a list; the vectors of IValue are constant only to operators.
template <class F> auto visit_list(const IValue& list, F&& f) {
  auto vector = [&](auto* type) -> auto& {
    using T = std::remove_pointer_t<decltype(type)>;
    return static_cast<IValue::Holder<T>*>(list.ref.get())->value;
  };
  switch (list.tag) {
  case IValue::Tag::IntList:
    return f(vector(static_cast<std::vector<int64_t>*>(nullptr)));
  case IValue::Tag::DoubleList:
    return f(vector(static_cast<std::vector<double>*>(nullptr)));
  case IValue::Tag::BoolList:
    return f(vector(static_cast<std::vector<bool>*>(nullptr)));
  case IValue::Tag::TensorList:
    return f(vector(static_cast<std::vector<at::Tensor>*>(nullptr)));
  case IValue::Tag::OptionalTensorList:
    return f(vector(static_cast<std::vector<std::optional<at::Tensor>>*>(nullptr)));
  case IValue::Tag::ScalarList:
    return f(vector(static_cast<std::vector<c10::Scalar>*>(nullptr)));
  case IValue::Tag::List:
    return f(vector(static_cast<std::vector<IValue>*>(nullptr)));
  default:
    throw c10::TypeError(c10::str("expected a list but got a value of ", list.kind()));
  }
}

template <class T> T item_as(const IValue& v) {
  if constexpr (std::is_same_v<T, int64_t>)
    return v.toInt();
  else if constexpr (std::is_same_v<T, double>)
    return v.toDouble();
  else if constexpr (std::is_same_v<T, bool>)
    return v.toBool();
  else if constexpr (std::is_same_v<T, at::Tensor>)
    return v.toTensor();
  else if constexpr (std::is_same_v<T, std::optional<at::Tensor>>)
    return v.isNone() ? std::nullopt : std::optional<at::Tensor>(v.toTensor());
  else if constexpr (std::is_same_v<T, c10::Scalar>)
    return v.toScalar();
  else
    return v;
}

// The vector of a list that is known to hold items of this type.
template <class T> std::vector<T>& vector_of(const IValue& list) {
  return static_cast<IValue::Holder<std::vector<T>>*>(list.ref.get())->value;
}

} // namespace torch::jit
