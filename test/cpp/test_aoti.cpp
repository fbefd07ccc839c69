// Compiled models from C++. The package `test/compiler/data/aoti_mlp.pt2` was made once and stays:
// later builds have to read it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner_cpu.h>
#include <torch/torch.h>

namespace {

using torch::inductor::AOTIModelContainerRunnerCpu;
using torch::inductor::AOTIModelPackageLoader;

std::string package() { return CRESSET_TEST_FOLDER "/compiler/data/aoti_mlp.pt2"; }

// What the package computes: relu(x @ w.T + b) @ v.T, for 1 to 64 rows of 6 numbers.
torch::Tensor expected(const torch::Tensor& x, AOTIModelPackageLoader& model) {
  const auto held = model.get_runner()->extract_constants_map(false);
  const auto hidden = torch::relu(torch::linear(x, held.at("up.weight"), held.at("up.bias")));
  return torch::linear(hidden, held.at("down.weight"));
}

TEST(Aoti, RunsAPackageOfAnEarlierBuildForSeveralSizes) {
  AOTIModelPackageLoader model(package());
  for (const int64_t rows : {1, 3, 64}) {
    const auto x = torch::randn({rows, 6});
    const auto out = model.run({x});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_TRUE(torch::allclose(out[0], expected(x, model)));
  }
  EXPECT_EQ(model.get_metadata().at("made"), "once");
  EXPECT_EQ(model.get_call_spec().size(), 2u);
}

TEST(Aoti, RefusesInputsThatDoNotFit) {
  AOTIModelPackageLoader model(package());
  EXPECT_THROW(model.run({}), c10::Error);
  EXPECT_THROW(model.run({torch::randn({2, 7})}), c10::Error);
  EXPECT_THROW(model.run({torch::randn({65, 6})}), c10::Error);
  EXPECT_THROW(model.run({torch::randn({2, 6}, torch::kDouble)}), c10::Error);
  EXPECT_THROW(model.run({torch::randn({6})}), c10::Error);
  EXPECT_THROW(AOTIModelPackageLoader(package(), "other"), c10::Error);
  EXPECT_THROW(AOTIModelContainerRunnerCpu("/nowhere/model.pt2"), c10::Error);
}

TEST(Aoti, ReplacesConstantsWhileThreadsRun) {
  AOTIModelPackageLoader model(package());
  const auto x = torch::randn({4, 6});
  const auto before = expected(x, model);
  const auto zero = torch::zeros_like(before);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto out = model.run({x})[0];
        if (!torch::allclose(out, before) && !torch::equal(out, zero)) ++wrong;
      }
    });
  auto& runner = *model.get_runner();
  std::unordered_map<std::string, torch::Tensor> none;
  for (const auto& [name, value] : runner.extract_constants_map(false))
    none[name] = torch::zeros_like(value);
  model.load_constants(none, true, true);
  runner.swap_constant_buffer();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(torch::equal(model.run({x})[0], zero));
  runner.swap_constant_buffer();
  EXPECT_TRUE(torch::allclose(model.run({x})[0], before));
  EXPECT_THROW(model.load_constants({{"up.weight", torch::zeros({2})}}, false, false), c10::Error);
  EXPECT_THROW(model.load_constants({{"what", torch::zeros({2})}}, false, false), c10::Error);
  EXPECT_THROW(model.load_constants({}, false, true), c10::Error);
}

TEST(Aoti, RefusesFilesThatAreCut) {
  std::ifstream in(package(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  ASSERT_GT(whole.size(), 1000u);
  const auto path = std::filesystem::temp_directory_path() / "cresset_aoti_cut.pt2";
  for (const size_t left : {size_t(0), size_t(21), whole.size() / 2, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary).write(whole.data(), static_cast<long>(left));
    EXPECT_THROW(AOTIModelPackageLoader model(path.string()), c10::Error);
  }
  std::filesystem::remove(path);
}

} // namespace
