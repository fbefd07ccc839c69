// What tests of operators written with GoogleTest use: calls by handle, and stacks of values. Where
// GoogleMock is not installed, the one matcher that such tests use is here.
#pragma once
#include <gtest/gtest.h>
#if __has_include(<gmock/gmock.h>)
#include <gmock/gmock.h>
#else
#include <gtest/gtest-matchers.h>
#endif

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#if !__has_include(<gmock/gmock.h>)
namespace testing {
namespace cresset_internal {
class Substring {
 public:
  using is_gtest_matcher = void;
  explicit Substring(std::string wanted) : wanted_(std::move(wanted)) {}
  bool MatchAndExplain(const std::string& text, std::ostream*) const {
    return text.find(wanted_) != std::string::npos;
  }
  void DescribeTo(std::ostream* out) const { *out << "has substring \"" << wanted_ << "\""; }
  void DescribeNegationTo(std::ostream* out) const {
    *out << "has no substring \"" << wanted_ << "\"";
  }

 private:
  std::string wanted_;
};
template <class M> AssertionResult matches(const std::string& value, const M& matcher) {
  if (matcher.MatchAndExplain(value, nullptr)) return AssertionSuccess();
  AssertionResult failure = AssertionFailure();
  std::ostringstream expected;
  matcher.DescribeTo(&expected);
  return failure << "Expected: " << expected.str() << "\n  Actual: \"" << value << "\"";
}
} // namespace cresset_internal
inline cresset_internal::Substring HasSubstr(std::string wanted) {
  return cresset_internal::Substring(std::move(wanted));
}
} // namespace testing
#define ASSERT_THAT(value, matcher)                                                                \
  ASSERT_TRUE(::testing::cresset_internal::matches((value), (matcher)))
#define EXPECT_THAT(value, matcher)                                                                \
  EXPECT_TRUE(::testing::cresset_internal::matches((value), (matcher)))
#endif

template <class... Inputs> std::vector<c10::IValue> makeStack(Inputs&&... inputs) {
  return {std::forward<Inputs>(inputs)...};
}
template <class... Args>
std::vector<c10::IValue> callOp(const c10::OperatorHandle& op, Args... args) {
  std::vector<c10::IValue> stack = makeStack(std::forward<Args>(args)...);
  op.callBoxed(&stack);
  return stack;
}
template <class Result, class... Args>
Result callOpUnboxed(const c10::OperatorHandle& op, Args... args) {
  return op.typed<Result(Args...)>().call(std::forward<Args>(args)...);
}
template <class Result, class... Args>
Result callOpUnboxedWithPrecomputedDispatchKeySet(const c10::OperatorHandle& op,
                                                  c10::DispatchKeySet keys, Args... args) {
  return op.typed<Result(Args...)>().redispatch(keys, std::forward<Args>(args)...);
}
// The message of what `functor` throws must have `expected` in it.
template <class Exception = c10::Error, class Functor>
void expectThrows(Functor&& functor, const char* expected) {
  try {
    std::forward<Functor>(functor)();
  } catch (const Exception& error) {
    EXPECT_THAT(std::string(error.what()), ::testing::HasSubstr(expected));
    return;
  }
  ADD_FAILURE() << "Expected to throw an exception with " << expected;
}
