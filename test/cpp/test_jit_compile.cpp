// torch::jit::compile: functions as people write them, and values as pickles. What a function gives
// is compared with the same arithmetic in C++.
#include <gtest/gtest.h>
#include <torch/jit.h>
#include <torch/torch.h>

namespace {

c10::IValue run(const char* source, std::vector<c10::IValue> args) {
  const auto unit = torch::jit::compile(source);
  return unit->get_functions().at(0)(std::move(args));
}

template <class F> std::string error_of(F&& f) {
  try {
    f();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(JitCompile, OperatorsBindAsInPython) {
  const char* source = R"(
    def f(a: int, b: int):
      c = a + b * 8 // 5 - -a % 4
      d = (a << 2 | b) & 13 ^ 1
      return [c, d, a - b - 1])";
  for (int64_t a : {7, -3})
    for (int64_t b : {2, 9}) {
      const int64_t negative = ((-a % 4) + 4) % 4;
      const std::vector<int64_t> expected{a + b * 8 / 5 - negative, ((a << 2 | b) & 13) ^ 1,
                                          a - b - 1};
      EXPECT_EQ(run(source, {a, b}).toIntVector(), expected) << a << ' ' << b;
    }
}

TEST(JitCompile, TruthStopsAtTheFirstAnswer) {
  // A division by zero on the side that is not needed is not done.
  const char* source = R"(
    def f(n: int):
      safe = n != 0 and 10 // n > 3 or n is None
      return 1 if safe else 2 if not n == 0 else 3)";
  EXPECT_EQ(run(source, {2}).toInt(), 1);
  EXPECT_EQ(run(source, {5}).toInt(), 2);
  EXPECT_EQ(run(source, {0}).toInt(), 3);
}

TEST(JitCompile, LoopsLeaveAndGoOnWhereTheySay) {
  const char* source = R"(
    def f(items: List[int], stop: int):
      total = 0
      for x in items:
        if x < 0:
          continue
        if x == stop:
          break
        total += x
      for i in range(10, 0, -3):
        total += i
      while True:
        total -= 1
        if total % 7 == 0:
          return total
      return total)";
  // 1 + 2 before the stop, 10 + 7 + 4 + 1 behind it, then down to the next multiple of 7.
  EXPECT_EQ(run(source, {std::vector<int64_t>{1, -5, 2, 9, 4}, 9}).toInt(), 21);
}

TEST(JitCompile, TensorsAreChangedInPlaceAndIndexed) {
  const char* source = R"(
    def f(a, b):
      a += b
      if bool(a.sum() > 0):
        a *= 2
      return a[1], a[0:2:1], torch.relu(-a))";
  at::Tensor a = torch::tensor({1.0, 2.0, 3.0});
  const c10::IValue out = run(source, {a, torch::ones({3})});
  EXPECT_TRUE(at::equal(a, torch::tensor({4.0, 6.0, 8.0})));
  const auto& parts = out.toTupleRef().elements();
  EXPECT_EQ(parts[0].toTensor().item<float>(), 6.0f);
  EXPECT_TRUE(at::equal(parts[1].toTensor(), torch::tensor({4.0, 6.0})));
  EXPECT_TRUE(at::equal(parts[2].toTensor(), torch::zeros({3})));
}

TEST(JitCompile, OptionalIsAValueBehindItsTest) {
  const char* source = R"(
    def f(a: Optional[Tuple[int, str]]):
      if a is None:
        return -1
      return a[0] + len(a[1]))";
  EXPECT_EQ(run(source, {c10::ivalue::Tuple::create({4, std::string("hi")})}).toInt(), 6);
  EXPECT_EQ(run(source, {c10::IValue()}).toInt(), -1);
}

TEST(JitCompile, FunctionsCallEachOtherAcrossTexts) {
  torch::jit::CompilationUnit unit("def twice(x: int):\n  return later(x) * 2\n"
                                   "def later(x: int):\n  return x + 1\n");
  unit.define("def four(x: int):\n  assert x > 0, 'a positive x'\n  return twice(twice(x))\n");
  EXPECT_EQ(unit.run_method("four", 3).toInt(), 18);
  EXPECT_NE(error_of([&] { unit.run_method("four", 0); }).find("a positive x"), std::string::npos);
  EXPECT_EQ(unit.get_functions().size(), 3u);
}

TEST(JitCompile, WhatIsWrongIsAnErrorThatSaysWhere) {
  EXPECT_NE(
      error_of([] { torch::jit::compile("def f(x):\n  return y\n"); }).find("undefined value"),
      std::string::npos);
  EXPECT_NE(
      error_of([] { torch::jit::compile("def f(n: int):\n  return f(n)\n"); }).find("annotation"),
      std::string::npos);
  EXPECT_THROW(torch::jit::compile("def f(x):\n  break\n"), c10::Error);
  EXPECT_THROW(torch::jit::compile("def f(x):\n return (x +\n"), c10::Error);
  EXPECT_THROW(torch::jit::compile("x = 1\n"), c10::Error);
  const auto unit = torch::jit::compile("def f(a: List[List[Tensor]], b: int):\n  return b\n");
  const c10::List<c10::List<c10::List<at::Tensor>>> deep({{{at::ones({1})}}});
  EXPECT_EQ(error_of([&] { unit->run_method("f", deep, 1); })
                .find("f() Expected a value of type 'List[List[Tensor]]' for argument 'a' but "
                      "instead found type 'List[List[List[Tensor]]]'"),
            0u);
  EXPECT_THROW(unit->run_method("f"), c10::Error);
  EXPECT_THROW(unit->run_method("g", 1), c10::Error);
  EXPECT_THROW(torch::jit::CompilationUnit().run_method("f"), c10::Error);
}

TEST(Pickle, ValuesComeBackAsTheyWere) {
  c10::Dict<std::string, at::Tensor> named;
  named.insert("w", at::arange(6.0).reshape({2, 3}).t());
  const std::vector<c10::IValue> values{
      c10::IValue(),
      2.5,
      int64_t(1) << 40,
      std::string("h\xc3\xa9llo"),
      true,
      std::vector<int64_t>{1, 2},
      c10::ivalue::Tuple::create({1, std::vector<at::Tensor>{at::ones({2})}}),
      named};
  for (const c10::IValue& value : values) {
    const c10::IValue back = torch::pickle_load(torch::pickle_save(value));
    EXPECT_EQ(back.tagKind(), value.tagKind());
    std::vector<at::Tensor> table;
    const std::vector<char> bytes = torch::jit::pickle(value, &table);
    const c10::IValue again = torch::jit::unpickle(bytes.data(), bytes.size(), table);
    EXPECT_EQ(again.tagKind(), value.tagKind());
    if (value.isGenericDict()) {
      for (const c10::IValue& each : {back, again})
        EXPECT_TRUE(at::equal(each.toGenericDict().at("w").toTensor(), named.at("w")));
    } else if (!value.isTuple()) {
      EXPECT_TRUE(back == value && again == value) << value.tagKind();
    }
  }
}

TEST(Pickle, DamagedBytesAreErrors) {
  const std::vector<char> good = torch::pickle_save(at::ones({3}));
  for (size_t size = 0; size < good.size(); size += 7)
    EXPECT_THROW(torch::pickle_load({good.begin(), good.begin() + int64_t(size)}), std::exception);
  EXPECT_THROW(torch::jit::pickle(at::ones({1})), c10::Error);
  std::vector<at::Tensor> table;
  const std::vector<char> bytes = torch::jit::pickle(at::ones({1}), &table);
  EXPECT_THROW(torch::jit::unpickle(bytes.data(), bytes.size()), c10::Error);
}

} // namespace
