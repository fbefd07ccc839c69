// Sizes of ragged dimensions: what is sure for all lengths is answered, the rest is an error.
#include <ATen/core/NestedIntSymNodeImpl.h>

#include <gtest/gtest.h>

namespace {

c10::SymInt ragged(int64_t number, int64_t factor = 1) {
  return c10::SymInt(c10::SymNode(c10::make_intrusive<c10::NestedIntSymNodeImpl>(number, factor)));
}

TEST(NestedInt, EqualsItselfAlone) {
  EXPECT_TRUE(ragged(1) == ragged(1));
  EXPECT_FALSE(ragged(1) == ragged(2));
  EXPECT_FALSE(ragged(1) == ragged(1, 2));
  EXPECT_TRUE(ragged(1) != 5);
  EXPECT_FALSE(5 == ragged(1));
}

TEST(NestedInt, IsOrderedWhereEveryLengthIs) {
  const c10::SymInt a = ragged(1), b = ragged(2);
  EXPECT_TRUE(a >= a && a <= a && !(a < a) && !(a > a));
  EXPECT_TRUE(a >= 2 && a > 1 && 1 < a && 2 <= a);
  EXPECT_FALSE(1 >= a);
  EXPECT_THROW((void)(a >= 3), c10::ValueError);
  EXPECT_THROW((void)(a > 2), c10::ValueError);
  EXPECT_THROW((void)(3 < a), c10::ValueError);
  EXPECT_THROW((void)(a >= b), c10::ValueError);
  EXPECT_TRUE(ragged(1, 5) >= 10);
  EXPECT_TRUE(ragged(1, 10) > ragged(1, 5));
}

TEST(NestedInt, IsMultipliedByPositiveIntegers) {
  const c10::SymInt a = ragged(1, 5);
  EXPECT_TRUE(a * 2 == ragged(1, 10));
  EXPECT_TRUE(2 * a == a * 2);
  EXPECT_EQ((a * 2).str(), "10*j1");
  EXPECT_THROW(a * 0, c10::Error);
  EXPECT_THROW(a * -1, c10::Error);
  EXPECT_THROW(a * INT64_MAX, c10::Error);
  EXPECT_THROW(a * a, c10::NotImplementedError);
  EXPECT_THROW(ragged(1, 0), c10::Error);
}

TEST(NestedInt, HasNoValue) {
  const c10::SymInt a = ragged(1);
  EXPECT_EQ(a.hint(), std::nullopt);
  EXPECT_THROW(a.guard_int(), c10::NotImplementedError);
  EXPECT_THROW(a + 1, c10::NotImplementedError);
  EXPECT_THROW(c10::SymInt(c10::SymNode()), c10::Error);
}

} // namespace
