// Operators as C++ callers write them: lists in braces, of one element too.
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>

namespace {

at::Tensor table() { return at::arange(6, at::kFloat).reshape({2, 3}); }

TEST(Functions, ListsOfOneDimensionLiveAsLongAsTheCall) {
  const at::Tensor x = table();
  EXPECT_EQ(at::sum(x, {-1}, true).sizes(), at::IntArrayRef({2, 1}));
  EXPECT_EQ(at::sum(x, {0}).sizes(), at::IntArrayRef({3}));
  EXPECT_EQ(at::mean(x, {1}).sizes(), at::IntArrayRef({2}));
  const int64_t dim = 1;
  EXPECT_TRUE(at::equal(at::sum(x, {dim}), at::sum(x, {-1})));
}

TEST(Functions, ListsMayBeAbsentOrLonger) {
  const at::Tensor x = table();
  EXPECT_EQ(at::sum(x, std::nullopt, true).sizes(), at::IntArrayRef({1, 1}));
  EXPECT_EQ(at::sum(x, {0, 1}).dim(), 0);
  const std::vector<int64_t> dims{0};
  EXPECT_EQ(at::sum(x, dims).sizes(), at::IntArrayRef({3}));
}

} // namespace
