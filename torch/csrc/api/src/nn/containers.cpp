// Containers of modules and parameters, initial values, and helpers of torch::nn::utils.
#include <torch/nn/init.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/parameters.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/nn/utils/convert_parameters.h>

#include <cmath>
#include <ostream>

namespace torch::nn {

// ---- Sequential
SequentialImpl::SequentialImpl(OrderedDict<std::string, AnyModule>&& ordered_dict) {
  modules_.reserve(ordered_dict.size());
  for (auto& item : ordered_dict) push_back(item.key(), std::move(item.value()));
}
SequentialImpl::SequentialImpl(std::initializer_list<NamedAnyModule> named_modules) {
  modules_.reserve(named_modules.size());
  for (const NamedAnyModule& named : named_modules) push_back(named.name(), named.module());
}
void SequentialImpl::push_back(std::string name, AnyModule any_module) {
  modules_.push_back(std::move(any_module));
  register_module(std::move(name), modules_.back().ptr());
}
std::shared_ptr<Module> SequentialImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<SequentialImpl>();
  for (size_t i = 0; i < modules_.size(); ++i)
    copy->push_back(children_[i].key(), modules_[i].clone(device));
  return copy;
}
void SequentialImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::Sequential"; }

// ---- ModuleList and ModuleDict
std::shared_ptr<Module> ModuleListImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleListImpl>();
  for (const auto& module : modules_) copy->push_back(module->clone(device));
  return copy;
}
void ModuleListImpl::insert(size_t index, std::shared_ptr<Module> module) {
  TORCH_CHECK(index <= size(), "Index out of range");
  if (index == size()) return push_back(std::move(module));
  modules_.insert(modules_.begin() + static_cast<std::ptrdiff_t>(index), std::move(module));
  for (size_t i = index; i + 1 < size(); ++i) replace_module(std::to_string(i), modules_[i]);
  register_module(std::to_string(size() - 1), modules_.back());
}
void ModuleListImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::ModuleList"; }

std::shared_ptr<Module> ModuleDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleDictImpl>();
  for (const auto& item : children_) copy->insert(item.key(), item.value()->clone(device));
  return copy;
}
void ModuleDictImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::ModuleDict"; }

// ---- parameters and functions
namespace {
void print_parameters(std::ostream& stream, const char* name,
                      const OrderedDict<std::string, Tensor>& parameters) {
  stream << "torch::nn::" << name << "(\n";
  for (const auto& item : parameters) {
    stream << "(" << item.key() << "): Parameter containing: [" << item.value().scalar_type()
           << " of size " << item.value().sizes() << "]\n";
  }
  stream << ")";
}
} // namespace
void ParameterListImpl::pretty_print(std::ostream& stream) const {
  print_parameters(stream, "ParameterList", parameters_);
}
void ParameterDictImpl::pretty_print(std::ostream& stream) const {
  print_parameters(stream, "ParameterDict", parameters_);
}
void FunctionalImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Functional()";
}

// ---- initial values
namespace init {
namespace {
double fan_of(const Tensor& tensor, FanModeType mode) {
  const auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  return double(std::holds_alternative<enumtype::kFanIn>(mode) ? in : out);
}
double kaiming_std(const Tensor& tensor, double a, FanModeType mode, NonlinearityType f) {
  return calculate_gain(f, a) / std::sqrt(fan_of(tensor, mode));
}
double xavier_std(const Tensor& tensor, double gain) {
  const auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  return gain * std::sqrt(2.0 / double(in + out));
}
} // namespace

std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  TORCH_CHECK(tensor.dim() >= 2, "Fan in and fan out can not be computed for tensor with fewer "
                                 "than 2 dimensions");
  const int64_t field = tensor.dim() == 2 ? 1 : tensor[0][0].numel();
  return {tensor.size(1) * field, tensor.size(0) * field};
}
double calculate_gain(NonlinearityType nonlinearity, double param) {
  if (std::holds_alternative<enumtype::kTanh>(nonlinearity)) return 5.0 / 3.0;
  if (std::holds_alternative<enumtype::kReLU>(nonlinearity)) return std::sqrt(2.0);
  if (std::holds_alternative<enumtype::kLeakyReLU>(nonlinearity))
    return std::sqrt(2.0 / (1 + param * param));
  return 1.0;
}
Tensor constant_(Tensor tensor, Scalar value) {
  const NoGradGuard guard;
  return tensor.fill_(value);
}
Tensor ones_(Tensor tensor) { return constant_(std::move(tensor), 1); }
Tensor zeros_(Tensor tensor) { return constant_(std::move(tensor), 0); }
Tensor normal_(Tensor tensor, double mean, double std) {
  const NoGradGuard guard;
  return tensor.normal_(mean, std);
}
Tensor uniform_(Tensor tensor, double low, double high) {
  const NoGradGuard guard;
  return tensor.uniform_(low, high);
}
Tensor eye_(Tensor matrix) {
  const NoGradGuard guard;
  TORCH_CHECK(matrix.dim() == 2, "Only tensors with 2 dimensions are supported");
  return matrix.copy_(at::eye(matrix.size(0), matrix.size(1), matrix.options()));
}
Tensor dirac_(Tensor tensor) {
  const NoGradGuard guard;
  TORCH_CHECK(tensor.dim() >= 3 && tensor.dim() <= 5,
              "Only tensors with 3, 4, or 5 dimensions are supported");
  tensor.zero_();
  for (int64_t d = 0; d < std::min(tensor.size(0), tensor.size(1)); ++d) {
    Tensor kernel = tensor[d][d];
    while (kernel.dim() > 0) kernel = kernel[kernel.size(0) / 2];
    kernel.fill_(1);
  }
  return tensor;
}
Tensor orthogonal_(Tensor tensor, double gain) {
  const NoGradGuard guard;
  TORCH_CHECK(tensor.dim() >= 2, "Only tensors with 2 or more dimensions are supported");
  const int64_t rows = tensor.size(0), columns = tensor.numel() / rows;
  Tensor flat = at::randn({rows, columns}, tensor.options());
  if (rows < columns) flat = flat.t();
  const auto [q, r] = at::linalg_qr(flat);
  // Signs that make the distribution uniform over orthogonal matrices.
  Tensor uniform = q * at::diagonal(r).sign();
  if (rows < columns) uniform = uniform.t();
  tensor.view_as(uniform).copy_(uniform);
  return tensor.mul_(gain);
}
Tensor sparse_(Tensor tensor, double sparsity, double std) {
  const NoGradGuard guard;
  TORCH_CHECK(tensor.dim() == 2, "Only tensors with 2 dimensions are supported");
  const int64_t rows = tensor.size(0), columns = tensor.size(1);
  const int64_t zeros = int64_t(std::ceil(sparsity * double(rows)));
  tensor.normal_(0, std);
  for (int64_t c = 0; c < columns; ++c)
    tensor.select(1, c).index_fill_(0, at::randperm(rows).slice(0, 0, zeros), 0);
  return tensor;
}
Tensor kaiming_normal_(Tensor tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  const double std = kaiming_std(tensor, a, mode, nonlinearity);
  return normal_(std::move(tensor), 0, std);
}
Tensor kaiming_uniform_(Tensor tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  const double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return uniform_(std::move(tensor), -bound, bound);
}
Tensor xavier_normal_(Tensor tensor, double gain) {
  const double std = xavier_std(tensor, gain);
  return normal_(std::move(tensor), 0, std);
}
Tensor xavier_uniform_(Tensor tensor, double gain) {
  const double bound = std::sqrt(3.0) * xavier_std(tensor, gain);
  return uniform_(std::move(tensor), -bound, bound);
}
} // namespace init

// ---- gradients and vectors of parameters
namespace utils {

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  std::vector<Tensor> grads;
  for (const Tensor& p : parameters)
    if (p.mutable_grad().defined()) grads.push_back(p.mutable_grad());
  if (grads.empty()) return 0.0;
  const NoGradGuard guard;
  std::vector<Tensor> norms;
  for (const Tensor& g : grads) norms.push_back(g.norm(norm_type).to(at::kCPU, at::kDouble));
  const Tensor all = at::stack(norms);
  const double total =
      std::isinf(norm_type) ? all.max().item<double>() : all.norm(norm_type).item<double>();
  TORCH_CHECK(!error_if_nonfinite || std::isfinite(total), "The total norm of order ", norm_type,
              " for gradients from `parameters` is "
              "non-finite, so it cannot be clipped. To disable this error and scale the gradients "
              "with the non-finite norm anyway, set `error_if_nonfinite=false`");
  const double factor = max_norm / (total + 1e-6);
  if (!(factor >= 1))
    for (const Tensor& g : grads) g.mul_(factor);
  return total;
}
double clip_grad_norm_(Tensor parameter, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  return clip_grad_norm_(std::vector<Tensor>{std::move(parameter)}, max_norm, norm_type,
                         error_if_nonfinite);
}
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  const NoGradGuard guard;
  for (const Tensor& p : parameters)
    if (p.mutable_grad().defined()) p.mutable_grad().clamp_(-clip_value, clip_value);
}
void clip_grad_value_(Tensor parameter, double clip_value) {
  clip_grad_value_(std::vector<Tensor>{std::move(parameter)}, clip_value);
}

namespace {
void check_one_device(const std::vector<Tensor>& parameters) {
  for (const Tensor& p : parameters)
    TORCH_CHECK(p.device() == parameters[0].device(),
                "Found two parameters on different devices, this is currently not supported.");
}
} // namespace
Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  check_one_device(parameters);
  std::vector<Tensor> flat;
  for (const Tensor& p : parameters) flat.push_back(p.reshape({-1}));
  return at::cat(flat);
}
void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters) {
  check_one_device(parameters);
  int64_t at = 0;
  for (const Tensor& p : parameters) {
    p.set_data(vec.slice(0, at, at + p.numel()).view_as(p).data());
    at += p.numel();
  }
}

} // namespace utils
} // namespace torch::nn
