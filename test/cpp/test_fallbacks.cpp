// Operators without a derivative, libraries that end, and where a node was made.
#include <gtest/gtest.h>

#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/torch.h>

namespace {

using torch::Tensor;

template <class F> std::string message_of(F&& f) {
  try {
    f();
  } catch (const c10::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

Tensor sum_of(const Tensor& a, const Tensor& b) { return a + b; }
Tensor add_to(const Tensor& a, const Tensor& b) { return a.add_(b); }
Tensor view_of(const Tensor& a) { return a.alias(); }

// An operator for the length of a test, called by name.
template <class Signature> struct TestOp {
  TestOp(const std::string& schema, torch::CppFunction kernel)
      : name(schema.substr(0, schema.find('('))), library(MAKE_TORCH_LIBRARY(fallback_test)),
        backend(MAKE_TORCH_LIBRARY_IMPL(fallback_test, CPU)),
        autograd(MAKE_TORCH_LIBRARY_IMPL(fallback_test, Autograd)),
        views(MAKE_TORCH_LIBRARY_IMPL(fallback_test, ADInplaceOrView)) {
    library.def(schema);
    backend.impl(name, std::move(kernel));
    autograd.impl(name, torch::autograd::autogradNotImplementedFallback());
    views.impl(name, torch::autograd::autogradNotImplementedInplaceOrViewFallback());
  }
  template <class... Args> Tensor operator()(Args... args) const {
    const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow(("fallback_test::" + name).c_str(), "");
    return op.template typed<Signature>().call(args...);
  }
  std::string name;
  torch::Library library, backend, autograd, views;
};
using Binary = Tensor(const Tensor&, const Tensor&);

} // namespace

TEST(NotImplementedFallback, BackwardThroughTheOperatorRaisesAndPlainTensorsPass) {
  const TestOp<Binary> op("sum_of(Tensor a, Tensor b) -> Tensor", &sum_of);
  const Tensor x = torch::ones({2}, torch::requires_grad()), y = torch::ones({2});
  const Tensor out = op(x, y);
  EXPECT_TRUE(out.requires_grad());
  EXPECT_EQ(out[0].item<float>(), 2);
  EXPECT_TRUE(has(message_of([&] { out.sum().backward(); }), "fallback_test::sum_of is not"));
  EXPECT_FALSE(op(y, y).requires_grad());
}

TEST(NotImplementedFallback, WriteToALeafThatNeedsAGradientRaises) {
  const TestOp<Binary> op("add_to(Tensor(a!) a, Tensor b) -> Tensor(a!)", &add_to);
  const Tensor x = torch::ones({2}, torch::requires_grad()), y = torch::ones({2});
  EXPECT_TRUE(has(message_of([&] { op(x, y); }), "a leaf Variable that requires grad"));
  EXPECT_EQ(x[0].item<float>(), 1);
  EXPECT_TRUE(op(y, x).requires_grad());
}

TEST(NotImplementedFallback, WriteToAViewThatTheOperatorMadeRaises) {
  const TestOp<Tensor(const Tensor&)> op("view_of(Tensor(a) a) -> Tensor(a)", &view_of);
  const Tensor base = torch::ones({2}, torch::requires_grad()).clone();
  const Tensor view = op(base);
  EXPECT_TRUE(view.is_view());
  EXPECT_TRUE(has(message_of([&] { view.add_(base); }), "does not have a derivative implemented"));
}

TEST(Library, RegistrationsEndWithTheObject) {
  {
    const TestOp<Binary> op("ends(Tensor a, Tensor b) -> Tensor", &sum_of);
    EXPECT_NE(at::Dispatcher::singleton().find("fallback_test::ends", ""), nullptr);
  }
  EXPECT_EQ(at::Dispatcher::singleton().find("fallback_test::ends", ""), nullptr);
  const TestOp<Binary> again("ends(Tensor a, Tensor b) -> Tensor", &sum_of);
  EXPECT_EQ(again(torch::ones({1}), torch::ones({1})).item<float>(), 2);
}

TEST(UndefinedGrad, SwallowsTheGradientOfItsInput) {
  const Tensor x = torch::ones({}, torch::requires_grad());
  const auto out = torch::autograd::UndefinedGrad().apply({x * 2});
  out[0].backward();
  EXPECT_FALSE(x.grad().defined());
}

TEST(Backward, GivenATensorThatIsNoLeafFillsItsGradient) {
  const Tensor x = torch::ones({2}, torch::requires_grad());
  const Tensor y = x * 3;
  const std::vector<Tensor> inputs = {y};
  (y * y).sum().backward({}, std::nullopt, false, inputs);
  EXPECT_EQ(y.grad()[0].item<float>(), 6);
  EXPECT_FALSE(x.grad().defined());
}

TEST(Anomaly, WithoutPythonTheFramesOfTheForwardCallAreNamed) {
  struct Keep : at::WarningHandler {
    void process(const c10::Warning& warning) override { text += warning.msg(); }
    std::string text;
  } keep;
  const torch::autograd::DetectAnomalyGuard guard;
  const Tensor x = torch::zeros({1}, torch::requires_grad());
  const Tensor y = x.sqrt() * 0;
  c10::WarningUtils::set_warning_handler(&keep);
  const std::string message = message_of([&] { y.backward(); });
  c10::WarningUtils::set_warning_handler(nullptr);
  EXPECT_TRUE(has(message, "returned nan values")) << message;
  EXPECT_TRUE(has(keep.text, "Traceback of forward call that caused the error")) << keep.text;
}

TEST(InputMetadata, GradientsAreBroughtToTheShapeOfTheirInputs) {
  const std::vector<std::optional<torch::autograd::InputMetadata>> wanted = {
      torch::autograd::InputMetadata(torch::ones({2, 1})), std::nullopt};
  std::vector<Tensor> grads = {torch::ones({2, 3}), torch::ones({5})};
  const auto same = [](const std::string& text) { return "wrapped: " + text; };
  torch::autograd::validate_outputs(wanted, grads, same);
  EXPECT_EQ(grads[0].sizes(), at::IntArrayRef({2, 1}));
  EXPECT_EQ(grads[0][0][0].item<float>(), 3);
  std::vector<Tensor> wrong = {torch::ones({4}), Tensor()};
  EXPECT_TRUE(has(message_of([&] { torch::autograd::validate_outputs(wanted, wrong, same); }),
                  "wrapped: "));
}
