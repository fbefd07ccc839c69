// Operators that use the stable interface only: its binary fits every build of the library.
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/TensorAccessor.h>

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

Tensor axpy(const Tensor& x, const Tensor& y, double a) {
  STD_TORCH_CHECK(x.scalar_type() == ScalarType::Float && x.is_contiguous(), "axpy: a float x");
  STD_TORCH_CHECK(x.numel() == y.numel(), "axpy: ", x.numel(), " and ", y.numel(), " elements");
  Tensor out = torch::stable::empty_like(x);
  const float* xs = x.const_data_ptr<float>();
  const float* ys = y.const_data_ptr<float>();
  float* outs = out.mutable_data_ptr<float>();
  torch::stable::parallel_for(0, x.numel(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) outs[i] = static_cast<float>(a) * xs[i] + ys[i];
  });
  return out;
}

// One argument of every kind that has a form in the interface.
std::tuple<Tensor, int64_t, std::string>
kinds(std::vector<Tensor> tensors, std::optional<int64_t> number, const std::string& text,
      torch::headeronly::HeaderOnlyArrayRef<int64_t> sizes, std::optional<ScalarType> dtype,
      torch::stable::Device device, bool flag, std::vector<double> floats) {
  Tensor out = torch::stable::empty(sizes, dtype, std::nullopt, device);
  double sum = static_cast<double>(tensors.size());
  for (const double each : floats) sum += each;
  torch::stable::fill_(out, sum);
  return {out, number.value_or(-1), flag ? text + "!" : text};
}

Tensor maybe(std::optional<Tensor> x) {
  return x ? torch::stable::clone(*x) : torch::stable::full({1}, 7.0);
}

Tensor chain(const Tensor& x) {
  const Tensor square = torch::stable::matmul(x, torch::stable::transpose(x, 0, 1));
  const Tensor flat = torch::stable::reshape(square, {-1});
  return torch::stable::amax(torch::stable::to(flat, ScalarType::Double), 0);
}

std::vector<int64_t> geometry(const Tensor& x) {
  std::vector<int64_t> out{x.dim(), x.numel(), x.storage_offset(), x.is_cpu(),
                           static_cast<int64_t>(x.element_size())};
  for (const int64_t size : x.sizes()) out.push_back(size);
  for (int64_t d = 0; d < x.dim(); ++d) out.push_back(x.stride(d));
  return out;
}

Tensor parts_that_throw(const Tensor& x) {
  torch::stable::parallel_for(0, 4, 1, [](int64_t begin, int64_t) {
    STD_TORCH_CHECK(begin != 2, "part ", begin, " failed");
  });
  return x;
}

int64_t size_of_an_undefined_tensor() { return Tensor().size(0); }
int64_t current_device() { return torch::stable::accelerator::getCurrentDeviceIndex(); }
Tensor throws_a_number(const Tensor&) { throw 3; }

// On memory of the extension, which is freed with the last tensor that uses it.
int64_t freed = 0;
Tensor counted(int64_t n, const torch::stable::Device& device) {
  auto* numbers = new std::vector<float>(static_cast<size_t>(n < 0 ? 0 : n));
  for (int64_t i = 0; i < n; ++i) (*numbers)[static_cast<size_t>(i)] = static_cast<float>(i);
  Tensor out = torch::stable::from_blob(numbers->data(), {n}, {1}, device, ScalarType::Float,
                                        [numbers](void*) {
                                          delete numbers;
                                          ++freed;
                                        });
  out.set_requires_grad(true);
  return out;
}
int64_t freed_blocks() { return freed; }
Tensor minus_twice_the_sum(const Tensor& x, const std::string& device) {
  const Tensor moved = torch::stable::to(x, torch::stable::Device(device));
  Tensor out = torch::stable::empty({});
  torch::stable::sum_out(out, torch::stable::subtract(moved, moved, 3.0),
                         torch::headeronly::IntHeaderOnlyArrayRef(int64_t(0)));
  const float value = out.const_data_ptr<float>()[0];
  const int64_t sizes[1] = {1}, strides[1] = {1};
  const torch::headeronly::HeaderOnlyTensorAccessor<const float, 1> first(&value, sizes, strides);
  return torch::stable::full({1}, first[0]);
}

// Written by hand, as code for earlier versions is.
void boxed_neg(StableIValue* stack, uint64_t, uint64_t) {
  StableIValue call[1] = {from(to<Tensor>(stack[0]))};
  TORCH_ERROR_CODE_CHECK(aoti_torch_call_dispatcher("aten::neg", "", call));
  stack[0] = call[0];
}
void boxed_unknown_operator(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor x = to<Tensor>(stack[0]);
  TORCH_ERROR_CODE_CHECK(aoti_torch_call_dispatcher("aten::no_such_operator", "", stack));
}

STABLE_TORCH_LIBRARY(stable_kernels, m) {
  m.def("axpy(Tensor x, Tensor y, float a) -> Tensor");
  m.def("kinds(Tensor[] tensors, int? number, str text, SymInt[] sizes, ScalarType? dtype, "
        "Device device, bool flag, float[] floats) -> (Tensor, int, str)");
  m.def("maybe(Tensor? x) -> Tensor");
  m.def("chain(Tensor x) -> Tensor");
  m.def("geometry(Tensor x) -> int[]");
}
STABLE_TORCH_LIBRARY_FRAGMENT(stable_kernels, m) {
  m.def("parts_that_throw(Tensor x) -> Tensor");
  m.def("size_of_an_undefined_tensor() -> int");
  m.def("current_device() -> int");
  m.def("throws_a_number(Tensor x) -> Tensor");
  m.def("counted(int n, Device device) -> Tensor");
  m.def("freed_blocks() -> int");
  m.def("minus_twice_the_sum(Tensor x, str device) -> Tensor");
  m.def("neg(Tensor x) -> Tensor");
  m.def("unknown_operator(Tensor x) -> Tensor");
  m.def("one_argument_too_many(Tensor x, int n) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(stable_kernels, CPU, m) { m.impl("axpy", TORCH_BOX(&axpy)); }
STABLE_TORCH_LIBRARY_IMPL(stable_kernels, CompositeExplicitAutograd, m) {
  m.impl("kinds", TORCH_BOX(&kinds));
  m.impl("maybe", TORCH_BOX(&maybe));
  m.impl("chain", TORCH_BOX(&chain));
  m.impl("geometry", TORCH_BOX(&geometry));
  m.impl("parts_that_throw", TORCH_BOX(&parts_that_throw));
  m.impl("size_of_an_undefined_tensor", TORCH_BOX(&size_of_an_undefined_tensor));
  m.impl("current_device", TORCH_BOX(&current_device));
  m.impl("throws_a_number", TORCH_BOX(&throws_a_number));
  m.impl("counted", TORCH_BOX(&counted));
  m.impl("freed_blocks", TORCH_BOX(&freed_blocks));
  m.impl("minus_twice_the_sum", TORCH_BOX(&minus_twice_the_sum));
  m.impl("neg", &boxed_neg);
  m.impl("unknown_operator", &boxed_unknown_operator);
  m.impl("one_argument_too_many", TORCH_BOX(&chain));
}
