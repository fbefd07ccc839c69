// What a C++ user writes against <torch/torch.h> alone.
#include <ATen/native/Pow.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

namespace {

TEST(FrontEnd, FactoriesHeedRequiresGrad) {
  const auto wanted = torch::TensorOptions().dtype(at::kDouble).requires_grad(true);
  const torch::Tensor x = torch::ones({2, 3}, wanted);
  EXPECT_TRUE(x.requires_grad());
  EXPECT_EQ(x.scalar_type(), at::kDouble);
  EXPECT_FALSE(torch::ones({2, 3}).requires_grad());
  const torch::Tensor dx = torch::autograd::grad({(x * x).sum()}, {x})[0];
  EXPECT_TRUE(torch::equal(dx, torch::full({2, 3}, 2, at::TensorOptions(at::kDouble))));
  EXPECT_THROW(torch::ones({2}, wanted.dtype(at::kLong)), c10::Error);
}

TEST(FrontEnd, NoGradGuardEndsWithItsScope) {
  const torch::Tensor x = torch::ones({2}, torch::TensorOptions().requires_grad(true));
  {
    const torch::NoGradGuard off;
    EXPECT_FALSE((x * 2).requires_grad());
    {
      const torch::AutoGradMode on(true);
      EXPECT_TRUE((x * 2).requires_grad());
    }
    EXPECT_FALSE((x * 2).requires_grad());
  }
  EXPECT_TRUE((x * 2).requires_grad());
}

TEST(FrontEnd, OverloadsWithoutOptionsAreNotHidden) {
  const torch::Tensor mean = torch::zeros({4});
  EXPECT_EQ(torch::normal(mean, 1.0).size(0), 4);
  EXPECT_EQ(torch::arange(5).size(0), 5);
  EXPECT_EQ(torch::cat({mean, mean}).size(0), 8);
}

TEST(FrontEnd, OperatorsOfTensorsAndNumbers) {
  const torch::Tensor a = torch::arange(4), b = torch::full({4}, 2);
  EXPECT_TRUE(torch::equal(1 - a * b + 3, 4 - (b * a)));
  EXPECT_TRUE(torch::equal(-a, 0 - a));
  EXPECT_TRUE(torch::equal(8 / (b + 2), torch::full({4}, 2.0)));
  EXPECT_TRUE(torch::equal((a < 2) & (a != 0), a == 1));
}

TEST(FrontEnd, PowersOfIntegersWrapAndTruncate) {
  EXPECT_EQ(at::native::powi<int64_t>(3, 4), 81);
  EXPECT_EQ(at::native::powi<int16_t>(-3, 3), -27);
  EXPECT_EQ(at::native::powi<int32_t>(2, 32), 0);
  EXPECT_EQ(at::native::powi<uint8_t>(2, 7), 128);
  EXPECT_EQ(at::native::powi<int32_t>(-1, -3), -1);
  EXPECT_EQ(at::native::powi<int32_t>(-1, -2), 1);
  EXPECT_EQ(at::native::powi<int32_t>(2, -1), 0);
  EXPECT_EQ(at::native::powi<int32_t>(0, 0), 1);
}

TEST(FrontEnd, StandardLimitsOfReducedTypesAreTheirOwn) {
  EXPECT_EQ(float(std::numeric_limits<at::Half>::max()), 65504.0f);
  EXPECT_EQ(float(std::numeric_limits<at::Half>::lowest()), -65504.0f);
  EXPECT_GT(float(std::numeric_limits<at::BFloat16>::max()), 3e38f);
  EXPECT_TRUE(std::isinf(float(std::numeric_limits<at::BFloat16>::infinity())));
  EXPECT_EQ(float(std::numeric_limits<at::Float8_e4m3fn>::max()), 448.0f);
}

template <class T> void expect_standard_limits(int digits10, int exponent10) {
  using Limits = std::numeric_limits<T>;
  const auto exponent = [](T value) { return std::ilogb(static_cast<float>(value)) + 1; };
  EXPECT_EQ(Limits::max_exponent, exponent(Limits::max()));
  EXPECT_EQ(Limits::min_exponent, exponent(Limits::min()));
  EXPECT_EQ(Limits::max_exponent10, exponent10);
  EXPECT_EQ(Limits::digits10, digits10);
  EXPECT_EQ(std::isnan(static_cast<float>(Limits::signaling_NaN())), Limits::has_signaling_NaN);
  EXPECT_NE(Limits::signaling_NaN().x, Limits::quiet_NaN().x);
}

TEST(FrontEnd, StandardLimitsAreComplete) {
  expect_standard_limits<at::Half>(3, 4);
  expect_standard_limits<at::BFloat16>(2, 38);
  expect_standard_limits<at::Float8_e4m3fn>(0, 2);
  expect_standard_limits<at::Float8_e5m2>(0, 4);
  expect_standard_limits<at::Float8_e4m3fnuz>(0, 2);
  expect_standard_limits<at::Float8_e5m2fnuz>(0, 4);
}

TEST(FrontEnd, ConversionTakesNoRequiresGrad) {
  const torch::Tensor x = torch::ones({2}, torch::requires_grad());
  EXPECT_THROW(x.to(torch::TensorOptions().requires_grad(true)), c10::Error);
  EXPECT_TRUE(x.to(torch::TensorOptions(at::kDouble).requires_grad(false)).requires_grad());
}

} // namespace
