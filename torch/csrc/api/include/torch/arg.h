// TORCH_ARG(T, name): a named option with a fluent setter and a getter, as options of modules and
// optimizers have them: `LinearOptions(3, 4).bias(false)`.
#pragma once

#define TORCH_ARG(T, name)                                                                         \
 public:                                                                                           \
  auto name(const T& value)->decltype(*this) {                                                     \
    this->name##_ = value;                                                                         \
    return *this;                                                                                  \
  }                                                                                                \
  auto name(T&& value)->decltype(*this) {                                                          \
    this->name##_ = std::move(value);                                                              \
    return *this;                                                                                  \
  }                                                                                                \
  const T& name() const noexcept { return this->name##_; }                                         \
  T& name() noexcept { return this->name##_; }                                                     \
                                                                                                   \
 private:                                                                                          \
  T name##_
