// torch::tensor: nested braces become a tensor.
#include <torch/types.h>

#include <ostream>

namespace torch::detail {
namespace {
std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string out;
  for (size_t i = 0; i < sizes.size(); ++i) out += (i ? ", " : "") + std::to_string(sizes[i]);
  return out;
}
// The dtype that values of a C++ type get where none is asked for.
at::ScalarType usual_dtype(at::ScalarType dtype) {
  if (at::isIntegralType(dtype, /*includeBool=*/false)) return at::kLong;
  if (at::isFloatingType(dtype)) return c10::get_default_dtype();
  if (at::isComplexType(dtype)) return c10::get_default_complex_dtype();
  return dtype;
}
} // namespace

TensorDataContainer::TensorDataContainer(std::initializer_list<TensorDataContainer> list)
    : kind_(Kind::List), dtype_(list.size() ? list.begin()->dtype_ : at::kFloat), list_(list) {
  for (const TensorDataContainer& each : list_) {
    TORCH_CHECK(each.sizes_ == list_[0].sizes_,
                "Expected all sub-lists to have sizes: ", sizes_text(list_[0].sizes_), " (e.g. ",
                list_[0], "), but got sub-list ", each, " with sizes: ", sizes_text(each.sizes_));
    TORCH_CHECK(each.dtype_ == dtype_,
                "Expected all elements of the tensor to have the same scalar type: ", dtype_,
                ", but got element of scalar type: ", each.dtype_);
  }
  sizes_ = {int64_t(list_.size())};
  if (!list_.empty()) sizes_.insert(sizes_.end(), list_[0].sizes_.begin(), list_[0].sizes_.end());
}

#define CRESSET_CONTAINER(T)                                                                       \
  TensorDataContainer::TensorDataContainer(at::ArrayRef<T> values)                                 \
      : kind_(Kind::Tensor), sizes_({int64_t(values.size())}), dtype_(c10::scalar_type_of<T>),     \
        tensor_(at::tensor(values)) {}
CRESSET_CONTAINER(uint8_t)
CRESSET_CONTAINER(int8_t)
CRESSET_CONTAINER(int16_t)
CRESSET_CONTAINER(int32_t)
CRESSET_CONTAINER(int64_t)
CRESSET_CONTAINER(at::Half)
CRESSET_CONTAINER(at::BFloat16)
CRESSET_CONTAINER(float)
CRESSET_CONTAINER(double)
CRESSET_CONTAINER(c10::complex<float>)
CRESSET_CONTAINER(c10::complex<double>)
#undef CRESSET_CONTAINER
TensorDataContainer::TensorDataContainer(at::ArrayRef<bool> values)
    : kind_(Kind::Tensor), sizes_({int64_t(values.size())}), dtype_(at::kBool),
      tensor_(at::empty({int64_t(values.size())}, at::kBool)) {
  std::copy(values.begin(), values.end(), values.empty() ? nullptr : tensor_.data_ptr<bool>());
}
TensorDataContainer::TensorDataContainer(const std::vector<bool>& values)
    : kind_(Kind::Tensor), sizes_({int64_t(values.size())}), dtype_(at::kBool),
      tensor_(at::empty({int64_t(values.size())}, at::kBool)) {
  std::copy(values.begin(), values.end(), values.empty() ? nullptr : tensor_.data_ptr<bool>());
}

const at::Scalar& TensorDataContainer::scalar() const {
  TORCH_CHECK(is_scalar(), "Can only call `scalar()` on a TensorDataContainer that has "
                           "`is_scalar() == true`");
  return scalar_;
}
const std::vector<TensorDataContainer>& TensorDataContainer::init_list() const {
  TORCH_CHECK(is_init_list(), "Can only call `init_list()` on a TensorDataContainer that has "
                              "`is_init_list() == true`");
  return list_;
}
const at::Tensor& TensorDataContainer::tensor() const {
  TORCH_CHECK(is_tensor(), "Can only call `tensor()` on a TensorDataContainer that has "
                           "`is_tensor() == true`");
  return tensor_;
}

void TensorDataContainer::fill(const at::Tensor& target) const {
  if (is_scalar()) {
    target.fill_(scalar_);
  } else if (is_tensor()) {
    target.copy_(tensor_);
  } else {
    for (size_t i = 0; i < list_.size(); ++i) list_[i].fill(target[int64_t(i)]);
  }
}

at::Tensor TensorDataContainer::convert_to_tensor(at::TensorOptions options) const {
  const at::ScalarType dtype = options.has_dtype() ? options.dtype() : usual_dtype(dtype_);
  TORCH_CHECK(!is_tensor() || !at::isComplexType(dtype_) || at::isComplexType(dtype),
              "can not do torch::tensor(complex, dtype=non-complex) because complex can not be "
              "casted to real number without loss of information");
  at::Tensor out;
  {
    const autograd::NoGradGuard no_grad;
    out = at::empty(sizes_, at::TensorOptions(dtype));
    fill(out);
    out = out.to(options.device());
  }
  if (options.requires_grad()) autograd::set_requires_grad(out, true);
  return out;
}

void TensorDataContainer::pretty_print_recursive(std::string& out) const {
  if (is_scalar()) {
    out += c10::str(scalar_);
    return;
  }
  const char* separator = "{";
  const size_t count = is_tensor() ? size_t(tensor_.numel()) : list_.size();
  for (size_t i = 0; i < count; ++i) {
    out += separator;
    separator = ", ";
    if (is_tensor())
      out += c10::str(tensor_[int64_t(i)].item());
    else
      list_[i].pretty_print_recursive(out);
  }
  out += count == 0 ? "{}" : "}";
}
std::ostream& operator<<(std::ostream& out, const TensorDataContainer& values) {
  return out << c10::str(values);
}

} // namespace torch::detail
