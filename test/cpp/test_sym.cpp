// Symbolic expressions: the normal form, printed text, ranges and what follows from facts. Random
// expressions are compared with plain integer arithmetic, and random facts with all assignments of
// small values that satisfy them.

#include <c10/sym/Facts.h>
#include <c10/sym/Print.h>
#include <c10/sym/Program.h>
#include <c10/util/Exception.h>

#include <gtest/gtest.h>

#include <random>

namespace {

using namespace c10::sym;

struct Symbolic : ::testing::Test {
  Arena arena;
  Facts facts{arena};
  Expr s0 = arena.symbol("s0"), s1 = arena.symbol("s1"), s2 = arena.symbol("s2");
  Expr i(int64_t value) { return arena.integer(value); }
  std::string text(Expr e, Dialect d = Dialect::Torch) { return print(arena, e, d); }
  void positive() {
    for (Expr s : {s0, s1, s2}) ASSERT_TRUE(facts.bound(s, {2, INT64_MAX}));
  }
};

TEST_F(Symbolic, EqualSumsAndProductsAreOneNode) {
  const Expr a = arena.mul(arena.add(s0, i(1)), arena.sub(s0, i(1)));
  const Expr b = arena.sub(arena.mul(s0, s0), i(1));
  EXPECT_EQ(a, b);
  EXPECT_EQ(arena.sub(arena.add(s0, s1), s1), s0);
  EXPECT_EQ(arena.mul(arena.mul(s0, s1), s2), arena.mul(s2, arena.mul(s1, s0)));
}

TEST_F(Symbolic, DivisionTakesMultiplesOut) {
  const Expr e = arena.add(arena.mul(i(6), s0), i(7));
  EXPECT_EQ(arena.floordiv(e, i(3)), arena.add(arena.scale(s0, 2), i(2)));
  EXPECT_EQ(arena.mod(e, i(3)), i(1));
  EXPECT_EQ(arena.floordiv(arena.mul(s0, s1), s1), s0);
  EXPECT_EQ(arena.mod(arena.mul(s0, s1), s1), i(0));
  EXPECT_EQ(arena.floordiv(arena.scale(arena.mul(s0, s1), 4), arena.scale(s1, 2)),
            arena.scale(s0, 2));
  EXPECT_EQ(arena.floordiv(arena.floordiv(s0, i(2)), i(3)), arena.floordiv(s0, i(6)));
  EXPECT_EQ(arena.floordiv(arena.scale(s0, 4), i(6)), arena.floordiv(arena.scale(s0, 2), i(3)));
  EXPECT_EQ(arena.floordiv(arena.add(s0, s1), arena.add(s0, s1)), i(1));
}

TEST_F(Symbolic, DivisionByZeroAndOverflowRaise) {
  EXPECT_THROW(arena.floordiv(s0, i(0)), c10::ValueError);
  EXPECT_THROW(arena.mod(s0, i(0)), c10::ValueError);
  EXPECT_THROW(arena.scale(arena.scale(s0, INT64_MAX), 2), c10::OverflowError);
}

TEST_F(Symbolic, ExtremaFlattenAndDropWhatAConstantBeats) {
  EXPECT_EQ(arena.max(s0, arena.add(s0, i(1))), arena.add(s0, i(1)));
  EXPECT_EQ(arena.max(arena.max(s0, i(1)), i(4)), arena.max(s0, i(4)));
  EXPECT_EQ(arena.min(arena.min(s0, s1), s0), arena.min(s1, s0));
}

TEST_F(Symbolic, RelationsFoldAndNegate) {
  EXPECT_TRUE(is_truth(arena.lt(s0, arena.add(s0, i(1))), true));
  EXPECT_EQ(arena.logical_not(arena.lt(s0, s1)), arena.le(s1, s0));
  const Expr c = arena.logical_and(arena.lt(s0, s1), arena.eq(s2, i(3)));
  EXPECT_EQ(arena.logical_not(arena.logical_not(c)), c);
  EXPECT_TRUE(is_truth(arena.logical_or(arena.lt(s0, s1), arena.le(s1, s0)), true));
}

TEST_F(Symbolic, TextIsWhatReadersOfPyTorchsLogsKnow) {
  EXPECT_EQ(text(arena.add(arena.scale(s1, 2), arena.add(s0, i(3)))), "s0 + 2*s1 + 3");
  EXPECT_EQ(text(arena.sub(i(4), s0)), "4 - s0");
  EXPECT_EQ(text(arena.sub(s1, s0)), "-s0 + s1");
  EXPECT_EQ(text(arena.sub(arena.mul(s0, s0), s0)), "s0**2 - s0");
  EXPECT_EQ(text(arena.mul(s1, s0)), "s0*s1");
  EXPECT_EQ(text(arena.floordiv(s0, i(2))), "(s0//2)");
  EXPECT_EQ(text(arena.floordiv(arena.add(s0, i(1)), i(2))), "((s0 + 1)//2)");
  EXPECT_EQ(text(arena.scale(arena.floordiv(s0, i(2)), 3)), "3*(s0//2)");
  EXPECT_EQ(text(arena.mod(s0, i(2))), "Mod(s0, 2)");
  EXPECT_EQ(text(arena.eq(s0, i(4))), "Eq(s0, 4)");
  EXPECT_EQ(text(arena.lt(s0, s1)), "s0 < s1");
  const Expr first = arena.lt(s0, i(3)), second = arena.lt(s1, i(4));
  EXPECT_EQ(text(arena.logical_and(second, first)), "(s0 < 3) & (s1 < 4)");
  EXPECT_EQ(text(arena.max(i(1), s0)), "Max(s0, 1)");
}

TEST_F(Symbolic, PythonAndCppTextComputeTheSame) {
  const Expr e = arena.eq(arena.mod(arena.add(s0, i(1)), i(2)), arena.floordiv(s1, i(3)));
  EXPECT_EQ(text(e, Dialect::Python), "(s0 + 1) % 2 == (s1 // 3)");
  EXPECT_EQ(text(e, Dialect::Cpp), "floor_mod(s0 + 1LL, 2LL) == floor_div(s1, 3LL)");
  EXPECT_EQ(text(arena.mul(s0, s0), Dialect::Cpp), "s0*s0");
}

TEST_F(Symbolic, RangesDecideRelations) {
  positive();
  EXPECT_EQ(facts.decide(arena.gt(arena.mul(s0, s1), i(3))), true);
  EXPECT_EQ(facts.decide(arena.eq(s0, i(0))), false);
  EXPECT_EQ(facts.decide(arena.eq(s0, i(2))), std::nullopt);
  EXPECT_EQ(facts.decide(arena.eq(arena.scale(s0, 2), i(5))), false);
  EXPECT_EQ(facts.simplify(arena.max(i(1), s0)), s0);
  EXPECT_EQ(facts.decide(arena.ge(arena.floordiv(s0, i(2)), i(1))), true);
}

TEST_F(Symbolic, ALearnedRelationDecidesItsKin) {
  positive();
  ASSERT_TRUE(facts.assume(arena.lt(s0, s1)));
  EXPECT_EQ(facts.decide(arena.lt(s0, s1)), true);
  EXPECT_EQ(facts.decide(arena.ge(s0, s1)), false);
  EXPECT_EQ(facts.decide(arena.eq(s0, s1)), false);
  EXPECT_EQ(facts.decide(arena.lt(s0, arena.add(s1, i(5)))), true);
  ASSERT_TRUE(facts.assume(arena.lt(s1, s2)));
  EXPECT_EQ(facts.decide(arena.lt(s0, s2)), true);
  EXPECT_FALSE(facts.assume(arena.lt(s1, s0)));
}

TEST_F(Symbolic, AnEqualityIsSolvedForTheNewestSymbol) {
  positive();
  ASSERT_TRUE(facts.assume(arena.eq(arena.scale(s0, 2), s2)));
  EXPECT_EQ(facts.simplify(arena.add(s2, i(1))), arena.add(arena.scale(s0, 2), i(1)));
  ASSERT_TRUE(facts.assume(arena.eq(s0, i(5))));
  EXPECT_EQ(facts.simplify(s2), i(10));
  EXPECT_FALSE(facts.assume(arena.eq(s2, i(11))));
}

TEST_F(Symbolic, APreferredSymbolIsSolvedFirst) {
  facts.prefer(s0);
  ASSERT_TRUE(facts.assume(arena.eq(s0, s1)));
  EXPECT_EQ(facts.simplify(s0), s1);
}

TEST_F(Symbolic, KnownDivisibilityCancelsADivision) {
  positive();
  ASSERT_TRUE(facts.assume(arena.eq(arena.mod(s0, i(4)), i(0))));
  EXPECT_EQ(facts.simplify(arena.scale(arena.floordiv(s0, i(4)), 4)), s0);
  EXPECT_EQ(facts.decide(arena.eq(arena.mod(s0, i(4)), i(0))), true);
}

TEST_F(Symbolic, AProgramFindsTheFirstConditionThatFails) {
  const Expr inputs[] = {s0, s1};
  const Expr guards[] = {arena.lt(s0, s1), arena.eq(arena.mod(s1, s0), i(0))};
  const Program program(arena, inputs, guards);
  const Value good[] = {{3}, {6}}, second[] = {{3}, {7}}, zero[] = {{0}, {7}};
  EXPECT_TRUE(program.holds(good));
  EXPECT_EQ(program.first_failure(second), 1);
  EXPECT_EQ(program.first_failure(zero), 1); // a remainder by 0 does not hold
  EXPECT_THROW(Program(arena, {inputs, 1}, guards), c10::Error);
}

// ---- random expressions, against plain arithmetic over all small values -------------------------

struct Random {
  Arena& arena;
  std::vector<Expr> symbols;
  std::mt19937 engine;
  int64_t upto(int64_t n) { return int64_t(engine() % uint64_t(n)); }

  // An expression and, by the same choices, what it is for given values.
  using Plain = std::vector<int64_t>; // one value per assignment; a missing one ends the sample
  struct Pair {
    Expr expr;
    Plain plain;
  };
  const std::vector<std::vector<int64_t>>& points;

  Pair number(int depth) {
    const int64_t pick = upto(depth <= 0 ? 2 : 9);
    if (pick == 0) {
      const int64_t value = upto(9) - 4;
      return {arena.integer(value), Plain(points.size(), value)};
    }
    if (pick == 1) {
      const size_t s = size_t(upto(int64_t(symbols.size())));
      Plain plain;
      for (const auto& p : points) plain.push_back(p[s]);
      return {symbols[s], plain};
    }
    Pair a = number(depth - 1), b = number(depth - 1);
    const auto each = [&](auto f) {
      Plain out;
      for (size_t k = 0; k < points.size(); ++k) out.push_back(f(a.plain[k], b.plain[k]));
      return out;
    };
    switch (pick) {
    case 2:
      return {arena.add(a.expr, b.expr), each([](auto x, auto y) { return x + y; })};
    case 3:
      return {arena.sub(a.expr, b.expr), each([](auto x, auto y) { return x - y; })};
    case 4:
      return {arena.mul(a.expr, b.expr), each([](auto x, auto y) { return x * y; })};
    case 5:
      return {arena.min(a.expr, b.expr), each([](auto x, auto y) { return x < y ? x : y; })};
    case 6:
      return {arena.max(a.expr, b.expr), each([](auto x, auto y) { return x < y ? y : x; })};
    default: {
      int64_t divisor = upto(7) - 3;
      if (divisor == 0) divisor = 5;
      const Expr d = arena.integer(divisor);
      const auto floored = [=](int64_t x, int64_t) {
        return int64_t(std::floor(double(x) / double(divisor)));
      };
      if (pick == 7) return {arena.floordiv(a.expr, d), each(floored)};
      return {arena.mod(a.expr, d),
              each([=](int64_t x, int64_t y) { return x - divisor * floored(x, y); })};
    }
    }
  }

  Pair condition() {
    Pair a = number(2), b = number(2);
    Plain plain;
    const int64_t pick = upto(4);
    for (size_t k = 0; k < points.size(); ++k) {
      const int64_t x = a.plain[k], y = b.plain[k];
      plain.push_back(pick == 0 ? x == y : pick == 1 ? x != y : pick == 2 ? x < y : x <= y);
    }
    const Kind kinds[] = {Kind::Eq, Kind::Ne, Kind::Lt, Kind::Le};
    return {arena.relation(kinds[pick], a.expr, b.expr), plain};
  }
};

std::vector<std::vector<int64_t>> grid(int64_t low, int64_t high) {
  std::vector<std::vector<int64_t>> points;
  for (int64_t a = low; a <= high; ++a)
    for (int64_t b = low; b <= high; ++b)
      for (int64_t c = low; c <= high; ++c) points.push_back({a, b, c});
  return points;
}

TEST(SymbolicRandom, NormalFormKeepsTheValue) {
  const auto points = grid(-3, 4);
  for (unsigned seed = 0; seed < 400; ++seed) {
    Arena arena;
    std::vector<Expr> symbols{arena.symbol("a"), arena.symbol("b"), arena.symbol("c")};
    Random random{arena, symbols, std::mt19937(seed), points};
    const auto [expr, plain] = random.number(4);
    const Program program(arena, symbols, {&expr, 1});
    for (size_t k = 0; k < points.size(); ++k) {
      Value in[3] = {{points[k][0]}, {points[k][1]}, {points[k][2]}}, out;
      ASSERT_TRUE(program.run(in, &out));
      ASSERT_EQ(out.integer, plain[k]) << print(arena, expr) << " seed " << seed;
    }
  }
}

// Whatever is decided, simplified or bounded must hold at every point that satisfies the facts.
TEST(SymbolicRandom, ConclusionsHoldWhereverTheFactsDo) {
  const auto points = grid(0, 6);
  int decided = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Arena arena;
    std::vector<Expr> symbols{arena.symbol("a"), arena.symbol("b"), arena.symbol("c")};
    Random random{arena, symbols, std::mt19937(seed), points};
    Facts facts(arena);
    for (Expr s : symbols) ASSERT_TRUE(facts.bound(s, {0, 6}));
    std::vector<bool> alive(points.size(), true);
    for (int round = 0; round < 4; ++round) {
      const auto [condition, holds] = random.condition();
      std::vector<bool> then = alive;
      for (size_t k = 0; k < points.size(); ++k) then[k] = alive[k] && holds[k];
      const bool possible = std::find(then.begin(), then.end(), true) != then.end();
      if (!possible) continue; // a contradiction need not be found
      ASSERT_TRUE(facts.assume(condition)) << print(arena, condition) << " seed " << seed;
      alive = then;
      const auto [query, truth] = random.condition();
      const auto answer = facts.decide(query);
      decided += answer.has_value();
      const auto [number, value] = random.number(3);
      const Expr simple = facts.simplify(number);
      const Interval range = facts.range(number);
      const Program program(arena, symbols, {&simple, 1});
      for (size_t k = 0; k < points.size(); ++k) {
        if (!alive[k]) continue;
        if (answer) {
          ASSERT_EQ(*answer, bool(truth[k])) << print(arena, query) << " seed " << seed;
        }
        Value in[3] = {{points[k][0]}, {points[k][1]}, {points[k][2]}}, out;
        ASSERT_TRUE(program.run(in, &out));
        ASSERT_EQ(out.integer, value[k])
            << print(arena, number) << " -> " << print(arena, simple) << " seed " << seed;
        ASSERT_TRUE(range.contains(value[k])) << print(arena, number) << " seed " << seed;
      }
    }
  }
  EXPECT_GT(decided, 200);
}

} // namespace
