// Nested braces of numbers, as torch::tensor({{1, 2}, {3, 4}}) receives them.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::detail {

class TORCH_API TensorDataContainer {
 public:
  // `{}`: a list without elements.
  TensorDataContainer() : kind_(Kind::List), sizes_({0}), dtype_(at::kFloat) {}
  TensorDataContainer(std::initializer_list<TensorDataContainer> list);
#define CRESSET_CONTAINER(T, Name)                                                                 \
  TensorDataContainer(T value)                                                                     \
      : kind_(Kind::Scalar), dtype_(at::ScalarType::Name), scalar_(value) {}                       \
  TensorDataContainer(at::ArrayRef<T> values);                                                     \
  TensorDataContainer(const std::vector<T>& values)                                                \
      : TensorDataContainer(at::ArrayRef<T>(values)) {}
  CRESSET_CONTAINER(uint8_t, Byte)
  CRESSET_CONTAINER(int8_t, Char)
  CRESSET_CONTAINER(int16_t, Short)
  CRESSET_CONTAINER(int32_t, Int)
  CRESSET_CONTAINER(int64_t, Long)
  CRESSET_CONTAINER(at::Half, Half)
  CRESSET_CONTAINER(at::BFloat16, BFloat16)
  CRESSET_CONTAINER(float, Float)
  CRESSET_CONTAINER(double, Double)
  CRESSET_CONTAINER(c10::complex<float>, ComplexFloat)
  CRESSET_CONTAINER(c10::complex<double>, ComplexDouble)
#undef CRESSET_CONTAINER
  TensorDataContainer(bool value) : kind_(Kind::Scalar), dtype_(at::kBool), scalar_(value) {}
  TensorDataContainer(at::ArrayRef<bool> values);
  TensorDataContainer(const std::vector<bool>& values);

  bool is_scalar() const { return kind_ == Kind::Scalar; }
  bool is_init_list() const { return kind_ == Kind::List; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }
  const at::Scalar& scalar() const;
  const std::vector<TensorDataContainer>& init_list() const;
  const at::Tensor& tensor() const;
  const std::vector<int64_t>& sizes() const { return sizes_; }
  at::ScalarType scalar_type() const { return dtype_; }
  at::Tensor convert_to_tensor(at::TensorOptions options) const;
  void pretty_print_recursive(std::string& out) const;

 private:
  enum class Kind { Scalar, List, Tensor };
  void fill(const at::Tensor& target) const;
  Kind kind_;
  std::vector<int64_t> sizes_;
  at::ScalarType dtype_;
  at::Scalar scalar_;
  std::vector<TensorDataContainer> list_;
  at::Tensor tensor_;
};

inline void append(std::string& out, const TensorDataContainer& values) {
  values.pretty_print_recursive(out);
}
TORCH_API std::ostream& operator<<(std::ostream& out, const TensorDataContainer& values);

} // namespace torch::detail
