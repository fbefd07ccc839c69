// Operators and kernels registered from C++, and the dispatcher's choice between keys.
#include <gtest/gtest.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Library.h>
#include <ATen/core/RegistrationFailures.h>

namespace {
at::Tensor scale_cpu(const at::Tensor& x, double by) {
  at::Tensor out = at::detail::empty(x.sizes(), x.scalar_type());
  for (int64_t i = 0; i < x.numel(); ++i)
    out.data_ptr<float>()[i] = x.data_ptr<float>()[i] * static_cast<float>(by);
  return out;
}
int autograd_calls = 0;
} // namespace

TORCH_LIBRARY(cresset_test, m) {
  m.def("scale(Tensor x, float by=2.0) -> Tensor");
  m.def("twice(Tensor x, int[] dims) -> (Tensor, int)",
        [](const at::Tensor& x, at::IntArrayRef dims) {
          return std::make_tuple(x, static_cast<int64_t>(dims.size()));
        });
}
TORCH_LIBRARY_IMPL(cresset_test, CPU, m) { m.impl("scale", &scale_cpu); }
TORCH_LIBRARY(cresset_by_device, m) {
  m.def("scale(Tensor x, float by=2.0) -> Tensor");
  m.impl("scale", c10::kCPU, &scale_cpu);
}

namespace {
// Boxed kernels, with and without the keys of the call.
void count_arguments(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  torch::jit::drop(*stack, count);
  torch::jit::push(*stack, static_cast<int64_t>(count));
}
void name_of_key(const c10::OperatorHandle&, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  torch::jit::drop(*stack, 1);
  torch::jit::push(*stack, std::string(c10::toString(keys.highest())));
}
} // namespace

TORCH_LIBRARY(cresset_boxed, m) {
  m.def("count(Tensor x, int n, str s) -> int", {at::Tag::pt2_compliant_tag});
  m.impl("count", torch::CppFunction::makeFromBoxedFunction<&count_arguments>());
  m.def("key(Tensor x) -> str");
  m.impl("key", c10::DispatchKey::CPU, torch::CppFunction::makeFromBoxedFunction<&name_of_key>());
  m.def("halve_(Tensor(a!) x) -> Tensor(a!)", [](const at::Tensor& x) {
    for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] /= 2;
    return x;
  });
}
// A block that fails half way.
TORCH_LIBRARY(cresset_failing, m) {
  m.def("first(Tensor x) -> Tensor");
  m.def("second(Tensor x -> Tensor");
}
TORCH_LIBRARY_IMPL(cresset_failing, CPU, m) { throw c10::Error("this block throws"); }

namespace {
const at::OperatorEntry* op(const char* name) { return at::Dispatcher::singleton().find(name, ""); }

at::Tensor ones(int64_t n) {
  at::Tensor t = at::detail::empty({n}, at::kFloat);
  for (int64_t i = 0; i < n; ++i) t.data_ptr<float>()[i] = 1;
  return t;
}

TEST(Library, KernelIsCalledThroughTheStack) {
  at::Stack stack{at::IValue(ones(3)), at::IValue(4.0)};
  op("cresset_test::scale")->call_boxed(stack);
  ASSERT_EQ(stack.size(), 1u);
  EXPECT_EQ(stack[0].toTensor().data_ptr<float>()[2], 4.0f);
}

TEST(Library, KernelOfADeviceKindServesItsKey) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("cresset_by_device::scale", "");
  EXPECT_TRUE(op.hasKernelForDispatchKey(c10::DispatchKey::CPU));
  EXPECT_FALSE(op.hasKernelForDispatchKey(c10::DispatchKey::CUDA));
}

TEST(Library, SeveralResultsAreLeftInOrder) {
  at::Stack stack{at::IValue(ones(1)), at::IValue(std::vector<int64_t>{1, 2, 3})};
  op("cresset_test::twice")->call_boxed(stack);
  ASSERT_EQ(stack.size(), 2u);
  EXPECT_EQ(stack[1].toInt(), 3);
}

TEST(Library, BoxedFunctionSeesTheOperatorAndTheKeys) {
  const auto count = c10::Dispatcher::singleton().findSchemaOrThrow("cresset_boxed::count", "");
  EXPECT_EQ((count.typed<int64_t(const at::Tensor&, int64_t, std::string)>().call(ones(1), 7, "s")),
            3);
  const auto key = c10::Dispatcher::singleton().findSchemaOrThrow("cresset_boxed::key", "");
  EXPECT_EQ(key.typed<std::string(const at::Tensor&)>().call(ones(1)), "CPU");
  EXPECT_EQ(count.operator_name().name, "cresset_boxed::count");
}

TEST(Library, TypedCallOfAnOperatorThatWritesReturnsTheCallersTensor) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("cresset_boxed::halve_", "");
  at::Tensor x = ones(2);
  at::Tensor& out = op.typed<at::Tensor&(at::Tensor&)>().call(x);
  EXPECT_EQ(&out, &x);
  EXPECT_EQ(x.data_ptr<float>()[1], 0.5f);
}

TEST(Library, OperatorThatIsNotThereIsNamed) {
  EXPECT_FALSE(c10::Dispatcher::singleton().findSchema({"cresset_boxed::none", ""}).has_value());
  EXPECT_THROW(c10::Dispatcher::singleton().findSchemaOrThrow("cresset_boxed::none", "x"),
               c10::Error);
}

TEST(Library, BlockThatThrowsWhileItIsLoadedIsKeptWithItsFileAndText) {
  std::vector<torch::detail::RegistrationFailure> mine;
  for (auto& each : torch::detail::registration_failures())
    if (each.ns == "cresset_failing") mine.push_back(each);
  ASSERT_EQ(mine.size(), 2u);
  EXPECT_EQ(mine[0].block, "TORCH_LIBRARY(cresset_failing)");
  EXPECT_EQ(mine[1].block, "TORCH_LIBRARY_IMPL(cresset_failing, CPU)");
  EXPECT_NE(mine[1].text.find("this block throws"), std::string::npos) << mine[1].text;
  EXPECT_NE(mine[0].file.find("cresset_tests"), std::string::npos) << mine[0].file;
  EXPECT_NE(op("cresset_failing::first"), nullptr);
}

TEST(Library, MissingBackendRaisesNotImplemented) {
  at::Stack stack{at::IValue(at::detail::empty({2}, at::kFloat, at::Device(at::kMeta))),
                  at::IValue(1.0)};
  EXPECT_THROW(op("cresset_test::scale")->call_boxed(stack), c10::NotImplementedError);
}

TEST(Library, WrongArgumentKindRaisesTypeError) {
  at::Stack stack{at::IValue(ones(1)), at::IValue(std::string("two"))};
  EXPECT_THROW(op("cresset_test::scale")->call_boxed(stack), c10::TypeError);
}

TEST(Library, ANewKernelTakesEffectAndLeavesWithItsRegistration) {
  struct Counting final : at::BoxedKernel {
    void call(const at::OperatorEntry& entry, at::DispatchKeySet keys, at::Stack& stack) override {
      ++autograd_calls;
      entry.redispatch_boxed(keys & at::DispatchKeySet::below(at::DispatchKey::AutogradCPU), stack);
    }
  };
  auto& dispatcher = at::Dispatcher::singleton();
  const uint64_t id =
      dispatcher.register_kernel(op("cresset_test::scale"), at::DispatchKey::AutogradCPU,
                                 {nullptr, c10::make_intrusive<Counting>(), "test"});
  at::Stack stack{at::IValue(ones(1)), at::IValue(3.0)};
  op("cresset_test::scale")->call_boxed(stack);
  EXPECT_EQ(autograd_calls, 1);
  EXPECT_EQ(stack[0].toTensor().data_ptr<float>()[0], 3.0f);
  dispatcher.deregister_kernel(op("cresset_test::scale"), id);
  at::Stack again{at::IValue(ones(1)), at::IValue(3.0)};
  op("cresset_test::scale")->call_boxed(again);
  EXPECT_EQ(autograd_calls, 1);
}

TEST(Library, DefiningTwiceRaises) {
  EXPECT_THROW(at::Dispatcher::singleton().define("cresset_test::scale(Tensor x) -> Tensor"),
               c10::Error);
}

TEST(Schema, RoundTrips) {
  const char* texts[] = {
      "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
      "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
      "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
      "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
      "Tensor",
      "x::y(int[2]? a=None, str b=\"mean\", float[] c=[1.0, 2.0]) -> (Tensor out, int[] n)",
      "x::nothing() -> ()",
  };
  for (const char* text : texts) EXPECT_EQ(at::FunctionSchema::parse(text).str(), text);
}

TEST(Schema, NonsenseRaisesWithPosition) {
  for (const char* text :
       {"", "f", "f(", "f(Tensor)", "f(Tensr x) -> Tensor", "f(Tensor x) -> Tensor trailing junk"})
    EXPECT_THROW(at::FunctionSchema::parse(text), c10::Error) << text;
}
} // namespace
