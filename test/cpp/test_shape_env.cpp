// Shape environments from C++: handles, decisions, and tensors whose sizes are symbols.

#include <ATen/core/SymbolicTensor.h>
#include <c10/core/SymbolicGeometry.h>
#include <c10/shapes/ShapeEnv.h>

#include <gtest/gtest.h>

namespace {

using c10::SymInt;
using c10::shapes::ShapeEnv;
using c10::shapes::Value;

struct Shapes : ::testing::Test {
  std::shared_ptr<ShapeEnv> env = ShapeEnv::create();
  SymInt backed(const char* name, int64_t hint) {
    Value value{hint};
    const auto symbol = env->new_symbol(name, c10::sym::Sort::Int, value, {2, INT64_MAX});
    return SymInt::from_raw(env->handle_of(symbol));
  }
  SymInt unbacked(const char* name) {
    const auto symbol = env->new_symbol(name, c10::sym::Sort::Int, std::nullopt, {});
    return SymInt::from_raw(env->handle_of(symbol));
  }
};

TEST_F(Shapes, PlainNumbersStayPlain) {
  const SymInt a = 3, b = 4;
  EXPECT_FALSE((a * b).is_symbolic());
  EXPECT_EQ((a * b).raw(), 12);
  EXPECT_EQ(c10::sym_max(a, b).raw(), 4);
  EXPECT_TRUE(c10::statically_known_true(c10::sym_lt(a, b)));
}

TEST_F(Shapes, TheSameExpressionIsTheSameHandle) {
  const SymInt s = backed("s0", 4);
  EXPECT_TRUE((s + 1).is_symbolic());
  EXPECT_EQ((s + 1).raw(), (SymInt(1) + s).raw());
  EXPECT_EQ((s - s).raw(), 0);
  EXPECT_EQ((s * 2).hint(), 8);
  EXPECT_EQ((s * 2).str(), "2*s0");
}

TEST_F(Shapes, ADecisionIsGuardedOnce) {
  const SymInt s = backed("s0", 4), t = backed("s1", 6);
  EXPECT_TRUE(s < t);
  EXPECT_TRUE(s <= t);
  EXPECT_FALSE(s == 0);
  EXPECT_EQ(env->guards().size(), 1U);
  EXPECT_EQ(s.guard_int(), 4);
  EXPECT_EQ(env->guards().size(), 2U);
  EXPECT_EQ(s.guard_int(), 4);
  EXPECT_EQ(env->guards().size(), 2U);
}

TEST_F(Shapes, GuardsRunAsAProgram) {
  const SymInt s = backed("s0", 4), t = backed("s1", 6);
  EXPECT_TRUE(s < t);
  const c10::sym::Expr inputs[] = {env->expr_of(s.raw()), env->expr_of(t.raw())};
  const auto program = env->guard_program(inputs);
  const Value good[] = {{3}, {9}}, bad[] = {{9}, {3}};
  EXPECT_TRUE(program.holds(good));
  EXPECT_FALSE(program.holds(bad));
}

TEST_F(Shapes, DataIsNotDecidedButMayBeStated) {
  const SymInt u = unbacked("u0");
  EXPECT_THROW(u.guard_int(), c10::DataDependentError);
  EXPECT_FALSE(c10::guard_or_false(c10::sym_eq(u, 3)));
  EXPECT_TRUE(c10::guard_or_true(c10::sym_eq(u, 3)));
  EXPECT_TRUE(c10::expect_true(c10::sym_gt(u, 2)));
  EXPECT_TRUE(u > 1);
  EXPECT_EQ(env->asserts().size(), 1U);
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(Shapes, ATensorHandsOutGuardedSizes) {
  const SymInt s = backed("s0", 4);
  const SymInt sizes[] = {s, 3};
  const at::Tensor x = at::detail::empty_symint(sizes, c10::kFloat, c10::Device(c10::kMeta));
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_EQ(x.sym_numel().str(), "3*s0");
  EXPECT_EQ(x.size(1), 3);
  EXPECT_TRUE(env->guards().empty());
  EXPECT_EQ(x.sizes(), c10::IntArrayRef({4, 3}));
  EXPECT_EQ(env->guards().size(), 1U);
}

TEST_F(Shapes, ListsOfPlainNumbersAreGuarded) {
  const SymInt list[] = {backed("s0", 4), 3};
  EXPECT_EQ(c10::as_int_array(c10::SymIntArrayRef(list)), c10::IntArrayRef({4, 3}));
  EXPECT_EQ(env->guards().size(), 1U);
}

TEST_F(Shapes, LayoutsOfDataDependentSizesAreTakenFromWhatIsKnown) {
  const SymInt u = unbacked("u0");
  const SymInt sizes[] = {u, 3}, rows[] = {3, 1}, gaps[] = {u, 1};
  const c10::Device meta(c10::kMeta);
  EXPECT_TRUE(at::detail::empty_strided_symint(sizes, rows, c10::kFloat, meta).is_contiguous());
  EXPECT_FALSE(at::detail::empty_strided_symint(sizes, gaps, c10::kFloat, meta).is_contiguous());
}

TEST_F(Shapes, AHandleOfAnEndedEnvironmentRaises) {
  const SymInt s = backed("s0", 4);
  const SymInt sizes[] = {s};
  at::Tensor x = at::detail::empty_symint(sizes, c10::kFloat, c10::Device(c10::kMeta));
  env.reset(); // the tensor keeps the environment
  EXPECT_EQ(x.sym_sizes()[0].hint(), 4);
  x.reset();
  EXPECT_THROW(s.hint(), c10::Error);
}

} // namespace
