// Methods of tensors without a value raise an error that names the call.
#include <gtest/gtest.h>

#include <ATen/core/op_registration/op_registration.h>
#include <torch/torch.h>

namespace {

template <class F> std::string message_of(F&& f) {
  try {
    f();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void expect_named(const std::string& message, const std::string& call) {
  EXPECT_NE(message.find("Tensor." + call + "(): called on an undefined Tensor"), std::string::npos)
      << message;
}

} // namespace

TEST(Undefined, OperatorOfADefaultTensorIsAnErrorThatNamesIt) {
  const at::Tensor t;
  expect_named(message_of([&] { t.add(1); }), "add");
  expect_named(message_of([&] { t.sum(); }), "sum");
  expect_named(message_of([&] { t.contiguous(); }), "contiguous");
  expect_named(message_of([&] { t.item<float>(); }), "item");
  expect_named(message_of([&] { t.view({1}); }), "view");
  expect_named(message_of([&] { t[0]; }), "operator[]");
  expect_named(message_of([&] { t.index({0}); }), "index");
}

TEST(Undefined, OperatorOfAMovedFromTensorIsAnError) {
  at::Tensor a = at::ones({2});
  const at::Tensor b = std::move(a);
  expect_named(message_of([&] { a.mul_(2); }), "mul_"); // NOLINT: that is the point
  EXPECT_EQ(b.numel(), 2);
}

TEST(Undefined, GradientMethodsAreErrors) {
  const at::Tensor t;
  expect_named(message_of([&] { t.backward(); }), "backward");
  expect_named(message_of([&] { t.grad(); }), "grad");
  expect_named(message_of([&] { t.requires_grad_(); }), "set_requires_grad");
  expect_named(message_of([&] { t.retain_grad(); }), "retain_grad");
}

TEST(Backward, OfAComplexScalarNeedsAGradient) {
  const at::Tensor x = torch::ones({2}, torch::requires_grad());
  const at::Tensor y = (x * c10::Scalar(c10::complex<float>(0, 0.5))).sum();
  EXPECT_NE(message_of([&] { y.backward(); }).find("only for real scalar outputs"),
            std::string::npos);
}

TEST(RegisterOperators, FunctionAloneSaysTheSchema) {
  [[maybe_unused]] static auto registry =
      c10::RegisterOperators()
          .op("cpp_registered::twice", [](const at::Tensor& x) { return x * 2; })
          .op("cpp_registered::power(Tensor x, int n=2) -> Tensor",
              [](const at::Tensor& x, int64_t n) { return x.pow(n); });
  c10::RegisterOperators().op("cpp_registered::both", [](const at::Tensor& x) {
    return std::tuple<at::Tensor, at::Tensor>(x, x);
  });
  EXPECT_EQ(at::Dispatcher::singleton().find("cpp_registered::both", "")->schema().str(),
            "cpp_registered::both(Tensor _0) -> (Tensor _0, Tensor _1)");
  const at::OperatorEntry* twice = at::Dispatcher::singleton().find("cpp_registered::twice", "");
  ASSERT_NE(twice, nullptr);
  EXPECT_EQ(twice->schema().str(), "cpp_registered::twice(Tensor _0) -> Tensor _0");
  at::Stack stack{at::IValue(at::ones({1}))};
  twice->call_boxed(stack);
  EXPECT_EQ(stack[0].toTensor().item<float>(), 2.0f);
}

TEST(Complex, AbsoluteValueAndAngleHaveTheirStandardNames) {
  const c10::complex<double> z(3, 4);
  EXPECT_EQ(std::abs(z), 5.0);
  EXPECT_EQ(std::norm(z), 25.0);
  EXPECT_DOUBLE_EQ(std::arg(c10::complex<double>(0, 1)), std::acos(0.0));
}

TEST(Interpolate, NearestTakesAlignCornersThatSayFalse) {
  namespace F = torch::nn::functional;
  const auto options =
      F::InterpolateFuncOptions().size(std::vector<int64_t>{4, 4}).mode(torch::kNearestExact);
  const at::Tensor x = torch::arange(4.0).reshape({1, 1, 2, 2});
  auto with = options;
  EXPECT_TRUE(at::equal(F::interpolate(x, with.align_corners(false)), F::interpolate(x, options)));
  EXPECT_THROW(F::interpolate(x, with.align_corners(true)), c10::Error);
}

TEST(PrettyPrint, ModuleOfOursHasTheNameOfItsHolder) {
  const std::string text = c10::str(torch::nn::MultiheadAttention(4, 2));
  EXPECT_EQ(text.rfind("torch::nn::MultiheadAttention(", 0), 0u) << text;
}

TEST(Undefined, CallsOnHandlesWithoutAnObjectAreErrors) {
  const at::Generator generator;
  EXPECT_THROW(generator.current_seed(), c10::Error);
  EXPECT_THROW(generator.seed(), c10::Error);
  EXPECT_THROW(generator.set_current_seed(3), c10::Error);
  EXPECT_THROW(generator.device(), c10::Error);
  EXPECT_THROW(generator.clone(), c10::Error);
  const at::Storage storage;
  EXPECT_THROW(storage.nbytes(), c10::Error);
  EXPECT_THROW(storage.data(), c10::Error);
  EXPECT_THROW(storage.data_ptr(), c10::Error);
  EXPECT_THROW(storage.device_type(), c10::Error);
}

TEST(Undefined, PartsThatAListDoesNotHaveAreErrors) {
  const std::vector<int64_t> three = {1, 2, 3};
  const at::IntArrayRef list(three), none;
  EXPECT_THROW(none.front(), c10::Error);
  EXPECT_THROW(none.back(), c10::Error);
  EXPECT_THROW(none.slice(1), c10::Error);
  EXPECT_THROW(list.slice(2, 2), c10::Error);
  EXPECT_THROW(list.slice(4, 0), c10::Error);
  EXPECT_THROW(list.slice(1, SIZE_MAX), c10::Error);
  EXPECT_THROW(list.drop_back(4), c10::Error);
  EXPECT_THROW(list.take_front(4), c10::Error);
  EXPECT_EQ(list.slice(1), at::IntArrayRef({2, 3}));
  EXPECT_EQ(list.slice(3).size(), 0u);
  EXPECT_EQ(none.slice(0).size(), 0u);
}

TEST(Undefined, ScalarsBecomeIntegersOfEveryWidthThatHoldThem) {
  const at::Scalar small(100), large(70000);
  EXPECT_EQ(small.toInt(), 100);
  EXPECT_EQ(small.toChar(), 100);
  EXPECT_EQ(small.toByte(), 100);
  EXPECT_EQ(large.toInt(), 70000);
  EXPECT_THROW(large.toShort(), c10::Error);
  EXPECT_EQ(at::Scalar(-1).toByte(), 255); // unsigned numbers count backwards from 0
  EXPECT_THROW(at::Scalar(-300).toByte(), c10::Error);
}
