// The guard of inference mode in programs without Python, and what they can ask of a tensor's
// versions and of how a view was made.
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace {

using torch::autograd::CreationMeta;
using torch::autograd::DifferentiableViewMeta;

CreationMeta creation_of(const torch::Tensor& view) {
  auto* meta = static_cast<DifferentiableViewMeta*>(view.unsafeGetTensorImpl()->autograd_meta());
  EXPECT_TRUE(meta->has_bw_view());
  return meta->get_creation_meta();
}

TEST(InferenceMode, TensorOfTheModeIsNotWrittenOutsideOfIt) {
  torch::Tensor made;
  {
    const c10::InferenceMode guard;
    made = torch::ones({3});
    made.add_(1);
    EXPECT_TRUE(made.is_inference());
  }
  EXPECT_THROW(made.add_(1), c10::Error);
  EXPECT_THROW(made.copy_(torch::zeros({3})), c10::Error);
  EXPECT_TRUE(torch::equal(made, torch::full({3}, 2.0)));
  const c10::InferenceMode again;
  made.add_(1);
  EXPECT_EQ(made[0].item<float>(), 3);
}

TEST(InferenceMode, KeysOfTheThreadFollowTheMode) {
  const auto expect_mode = [](bool on) {
    EXPECT_EQ(c10::InferenceMode::is_enabled(), on);
    EXPECT_EQ(c10::impl::tls_is_dispatch_keyset_excluded(c10::autograd_dispatch_keyset), on);
    EXPECT_FALSE(c10::impl::tls_is_dispatch_keyset_included(c10::autograd_dispatch_keyset));
    EXPECT_EQ(c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::ADInplaceOrView), !on);
    EXPECT_FALSE(c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::ADInplaceOrView));
  };
  expect_mode(false);
  {
    const c10::InferenceMode on;
    expect_mode(true);
    {
      const c10::InferenceMode off(false);
      expect_mode(false);
    }
    expect_mode(true);
  }
  expect_mode(false);
}

TEST(InferenceMode, WriteToANormalTensorIsCounted) {
  const torch::Tensor leaf = torch::ones({2}, torch::requires_grad());
  const torch::Tensor a = leaf.clone();
  const torch::Tensor out = a * a;
  {
    const c10::InferenceMode guard;
    a.mul_(1);
  }
  EXPECT_THROW(out.sum().backward(), c10::Error);
}

TEST(VersionCounter, IsSharedWithViewsAndMissingOfInferenceTensors) {
  const torch::Tensor base = torch::zeros({4});
  const auto counter = base.unsafeGetTensorImpl()->version_counter();
  const uint32_t before = counter.current_version();
  base.slice(0, 1, 3).add_(1);
  EXPECT_EQ(counter.current_version(), before + 1);
  EXPECT_EQ(base.view({2, 2}).unsafeGetTensorImpl()->version_counter().current_version(),
            before + 1);
  const c10::InferenceMode guard;
  const torch::Tensor made = torch::ones({2});
  EXPECT_THROW(made.unsafeGetTensorImpl()->version_counter().current_version(), c10::Error);
}

TEST(ViewMeta, SaysHowTheViewWasMade) {
  for (const bool requires_grad : {false, true}) {
    const torch::Tensor base = torch::ones({2, 3}).set_requires_grad(requires_grad).clone();
    EXPECT_EQ(creation_of(base.view({6})), CreationMeta::DEFAULT);
    {
      const torch::NoGradGuard off;
      EXPECT_EQ(creation_of(base.view({6})), CreationMeta::NO_GRAD_MODE);
    }
    const c10::InferenceMode guard;
    EXPECT_EQ(creation_of(base.view({6})), CreationMeta::INFERENCE_MODE);
  }
  EXPECT_EQ(torch::ones({2}).unsafeGetTensorImpl()->autograd_meta(), nullptr);
}

TEST(ViewMeta, ViewMadeWithoutGradModeCollectsNoGradient) {
  const torch::Tensor leaf = torch::ones({2, 3}, torch::requires_grad());
  const torch::Tensor base = leaf.clone();
  torch::Tensor view;
  {
    const torch::NoGradGuard off;
    view = base.view({6});
  }
  EXPECT_TRUE(view.requires_grad());
  EXPECT_TRUE(view.is_leaf());
  (view * view).sum().backward();
  EXPECT_FALSE(view.grad().defined());
  EXPECT_FALSE(leaf.grad().defined());
}

torch::Tensor made_in_the_mode() {
  const c10::InferenceMode guard;
  return torch::ones({2, 3});
}

TEST(InferenceMode, ViewThatIsWrittenInTheModeStaysALeafThere) {
  const torch::Tensor leaf = torch::ones({2}, torch::requires_grad());
  const torch::Tensor a = leaf.clone();
  const c10::InferenceMode guard;
  const torch::Tensor view = a.view({1, 2});
  view.mul_(2);
  EXPECT_TRUE(view.is_leaf());
  EXPECT_TRUE(view.requires_grad());
}

TEST(InferenceMode, ResultsOfRecordedCallsAreRefusedByAutogradFirst) {
  torch::Tensor out = made_in_the_mode();
  const torch::Tensor x = torch::ones({2, 3}, torch::requires_grad());
  const auto message = [&](const torch::Tensor& a) -> std::string {
    try {
      torch::mul_out(out, a, a);
    } catch (const c10::Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(x).find("out=... arguments don't support automatic"), std::string::npos);
  EXPECT_NE(message(x.detach()).find("Inplace update to inference tensor"), std::string::npos);
}

} // namespace
