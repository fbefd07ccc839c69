// Generators that programs define, with kernels of their own, and lists of values as programs see
// them.
#include <gtest/gtest.h>

#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>
#include <ATen/native/cpu/DistributionTemplates.h>
#include <torch/library.h>
#include <torch/torch.h>

namespace {

int alive = 0;

// Draws one number again and again.
struct Constant : c10::GeneratorImpl {
  explicit Constant(uint64_t value)
      : c10::GeneratorImpl{c10::Device(c10::DeviceType::CPU),
                           c10::DispatchKeySet(c10::DispatchKey::CustomRNGKeyId)},
        value(value) {
    ++alive;
  }
  ~Constant() override { --alive; }
  uint32_t random() { return static_cast<uint32_t>(value); }
  uint64_t random64() { return value; }
  void set_current_seed(uint64_t seed) override { value = seed; }
  uint64_t current_seed() const override { return value; }
  uint64_t seed() override { return value; }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return torch::tensor({int(value)}, torch::kByte).getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& state) override {
    value = *static_cast<const uint8_t*>(state.data());
  }
  Constant* clone_impl() const override { return new Constant(value); }
  static c10::DeviceType device_type() { return c10::DeviceType::CPU; }
  uint64_t value;
};

at::Tensor& random_(at::Tensor& self, std::optional<at::Generator> generator) {
  return at::native::templates::random_impl<at::native::templates::cpu::RandomKernel, Constant>(
      self, std::move(generator));
}
at::Tensor& random_from(at::Tensor& self, int64_t from, std::optional<int64_t> to,
                        std::optional<at::Generator> generator) {
  return at::native::templates::random_from_to_impl<at::native::templates::cpu::RandomFromToKernel,
                                                    Constant>(self, from, to, std::move(generator));
}
TORCH_LIBRARY_IMPL(aten, CustomRNGKeyId, m) {
  m.impl("aten::random_", random_);
  m.impl("aten::random_.from", random_from);
}

TEST(Generators, OwnClassDrawsWithItsOwnKernels) {
  {
    at::Generator own = at::make_generator<Constant>(42);
    EXPECT_EQ(alive, 1);
    for (const auto dtype : {torch::kLong, torch::kFloat, torch::kByte, torch::kHalf}) {
      const torch::Tensor drawn = torch::empty({2, 3}, dtype).random_(own);
      EXPECT_TRUE(drawn.eq(42).all().item<bool>()) << dtype;
    }
    const torch::Tensor strided = torch::zeros({3, 4}, torch::kLong).t();
    torch::Tensor(strided).random_(10, 50, own); // 10 + 42 % 40
    EXPECT_TRUE(strided.eq(12).all().item<bool>());
    torch::Tensor bytes = torch::zeros({2}, torch::kByte);
    EXPECT_THROW(bytes.random_(0, 1000, own), c10::Error);
    EXPECT_THROW(bytes.random_(5, 5, own), c10::Error);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Generators, OthersDrawAsBefore) {
  torch::manual_seed(3);
  const torch::Tensor first = torch::empty({8}, torch::kLong).random_(0, 1000);
  const torch::Tensor rest = torch::empty({8}, torch::kLong).random_(0, 1000);
  at::Generator again = at::detail::createCPUGenerator(3);
  EXPECT_TRUE(torch::empty({8}, torch::kLong).random_(0, 1000, again).equal(first));
  EXPECT_FALSE(first.equal(rest));
  // A generator without kernels for an operator is refused by the library's own.
  at::Generator own = at::make_generator<Constant>(1);
  EXPECT_THROW(torch::empty({2}).normal_(0, 1, own), c10::Error);
  EXPECT_THROW(at::check_generator<Constant>(again), c10::Error);
  EXPECT_THROW(at::check_generator<Constant>(std::nullopt), c10::Error);
}

TEST(Generators, StateIsBytesAndTensor) {
  const at::Generator own = at::make_generator<Constant>(7);
  EXPECT_EQ(own->state(), std::vector<uint8_t>{7});
  const uint8_t nine = 9;
  own->set_state(&nine, 1);
  EXPECT_EQ(own->current_seed(), 9u);
  EXPECT_EQ(own->clone()->current_seed(), 9u);
  EXPECT_TRUE(own->key_set().has(c10::DispatchKey::CustomRNGKeyId));

  const at::Generator library = at::detail::createCPUGenerator(5);
  const at::Tensor state(library->get_state());
  EXPECT_EQ(state.numel(), int64_t(library->state().size()));
  const at::Tensor drawn = torch::rand({4}, library);
  library->set_state(*state.unsafeGetTensorImpl());
  EXPECT_TRUE(torch::rand({4}, library).equal(drawn));
  EXPECT_TRUE(library->key_set().has(c10::DispatchKey::CPU));
  EXPECT_THROW(library->set_offset(4), c10::NotImplementedError);
}

// Overrides neither of the two forms of its state.
struct Stateless : c10::GeneratorImpl {
  Stateless() : c10::GeneratorImpl(c10::Device(c10::DeviceType::CPU)) {}
  void set_current_seed(uint64_t) override {}
  uint64_t current_seed() const override { return 0; }
  uint64_t seed() override { return 0; }
};
TEST(Generators, WhatAClassLeavesOutIsAnError) {
  const at::Generator own = at::make_generator<Stateless>();
  EXPECT_THROW(own->state(), c10::NotImplementedError);
  EXPECT_THROW(own->get_state(), c10::NotImplementedError);
  EXPECT_THROW(own->set_state(nullptr, 0), c10::NotImplementedError);
  EXPECT_THROW(own->clone(), c10::NotImplementedError);
}

TEST(Lists, EveryKindOfListIsAListOfValues) {
  const at::IValue typed(std::vector<at::Tensor>{torch::ones({2}), torch::zeros({3})});
  const c10::List<at::IValue> tensors = typed.toList();
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors.get(1).toTensor().numel(), 3);
  EXPECT_EQ(at::IValue(std::vector<int64_t>{4, 5}).toList().get(1).toInt(), 5);
  // Values are shared, not copied.
  const at::IValue values(std::vector<at::IValue>{at::IValue(1), at::IValue("two")});
  values.toList().push_back(at::IValue(3.0));
  EXPECT_EQ(values.toListRef().size(), 3u);
  EXPECT_THROW(at::IValue(1).toList(), c10::Error);
}

} // namespace
