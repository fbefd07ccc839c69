// The random streams: the engine against the published check value, its saved state, and the fills
// against hashes of what PyTorch gives for the same seed. A change of any hash breaks the promise
// that a seed means the same numbers.

#include <ATen/native/random/engine/RawFill.h>
#include <ATen/parallel/Parallel.h>
#include <c10/util/Exception.h>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace {

using namespace at::native::random;
using c10::ScalarType;

uint64_t fnv(const void* data, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < bytes; ++i) {
    hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3u;
  }
  return hash;
}

std::vector<uint8_t> state_of(const Mt19937& engine) {
  std::vector<uint8_t> bytes(Mt19937::kStateBytes);
  engine.export_state(bytes.data());
  return bytes;
}

/// Runs a fill from seed 42 on n elements and compares the hashes of the elements and of the state
/// after.
template <class Fill>
void expect_stream(ScalarType dtype, int64_t n, uint64_t values, uint64_t state, const Fill& fill) {
  Mt19937 engine(42);
  std::vector<uint8_t> out(static_cast<size_t>(n * c10::elementSize(dtype)));
  fill(engine, out.data(), n);
  EXPECT_EQ(fnv(out.data(), out.size()), values);
  const std::vector<uint8_t> after = state_of(engine);
  EXPECT_EQ(fnv(after.data(), after.size()), state);
}

TEST(Mt19937, TenThousandthOutputOfTheStandard) {
  Mt19937 engine(5489);
  for (int i = 0; i < 9999; ++i) engine.random();
  EXPECT_EQ(engine.random(), 4123659995u);
}

TEST(Mt19937, OnlyTheLow32BitsOfTheSeedCount) {
  Mt19937 a(5), b((uint64_t{1} << 40) + 5);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.random(), b.random());
  EXPECT_EQ(b.initial_seed(), (uint64_t{1} << 40) + 5);
}

TEST(Mt19937, BulkDrawsEqualSingleDraws) {
  for (int64_t n : {1, 7, 623, 624, 625, 1248, 2000}) {
    Mt19937 bulk(3), single(3);
    for (int round = 0; round < 3; ++round) {
      std::vector<uint32_t> out(static_cast<size_t>(n));
      bulk.fill(out.data(), n);
      for (uint32_t value : out) ASSERT_EQ(value, single.random());
      ASSERT_EQ(bulk.random(), single.random());
      ASSERT_EQ(state_of(bulk), state_of(single));
    }
  }
}

TEST(Mt19937, SixtyFourBitsHighWordFirst) {
  Mt19937 a(1), b(1);
  const uint64_t high = a.random(), low = a.random();
  EXPECT_EQ(b.random64(), high << 32 | low);
}

TEST(Mt19937, StateRoundTripsWithCachedNormal) {
  Mt19937 engine(7);
  for (int i = 0; i < 700; ++i) engine.random();
  engine.normal(); // leaves one behind
  const std::vector<uint8_t> saved = state_of(engine);
  const double normal = engine.normal();
  const uint32_t draw = engine.random();
  Mt19937 other(0);
  other.import_state(saved.data(), saved.size());
  EXPECT_EQ(state_of(other), saved);
  EXPECT_EQ(other.normal(), normal);
  EXPECT_EQ(other.random(), draw);
}

TEST(Mt19937, BadStatesRaiseAndChangeNothing) {
  Mt19937 engine(7);
  const std::vector<uint8_t> good = state_of(engine);
  const auto rejects = [&](size_t offset, int32_t value) {
    std::vector<uint8_t> bad = good;
    std::memcpy(bad.data() + offset, &value, sizeof value);
    EXPECT_THROW(engine.import_state(bad.data(), bad.size()), c10::Error) << offset << " " << value;
  };
  for (int32_t left : {0, -1, 625, INT32_MAX}) rejects(8, left);
  rejects(12, 0);
  for (int32_t next : {625, -1}) rejects(16, next);
  std::vector<uint8_t> beyond = good; // each field fine, together past the end of the state
  const int32_t words = 624;
  std::memcpy(beyond.data() + 8, &words, sizeof words);
  std::memcpy(beyond.data() + 16, &words, sizeof words);
  EXPECT_THROW(engine.import_state(beyond.data(), beyond.size()), c10::Error);
  EXPECT_THROW(engine.import_state(good.data(), good.size() - 1), c10::Error);
  EXPECT_EQ(state_of(engine), good);
}

// The state after one draw per element and after two, for 1000 elements.
constexpr uint64_t kAfterOne = 0x47756a6594c69aab, kAfterTwo = 0xfe61af2947b8e48c;

TEST(RandomFill, UniformStreams) {
  expect_stream(c10::kFloat, 1000, 0x9a09202fcef2a2b8, kAfterOne,
                [](auto& g, void* out, int64_t n) { fill_uniform(g, c10::kFloat, out, n, 0, 1); });
  expect_stream(
      c10::kDouble, 1000, 0x3152acdc08b56e37, kAfterTwo,
      [](auto& g, void* out, int64_t n) { fill_uniform(g, c10::kDouble, out, n, -2, 5); });
  expect_stream(
      c10::kBFloat16, 1000, 0xb1836e25880d5238, kAfterOne,
      [](auto& g, void* out, int64_t n) { fill_uniform(g, c10::kBFloat16, out, n, 0.1, 0.3); });
}

TEST(RandomFill, NormalStreams) {
  expect_stream(c10::kFloat, 15, 0x4c7fdcb26081ae6b, 0xf5ac35b33c517be9,
                [](auto& g, void* out, int64_t n) { fill_normal(g, c10::kFloat, out, n, 0, 1); });
  expect_stream(c10::kFloat, 1001, 0x9e7fff3cf56646eb, 0x61f2dc5d033ee96b,
                [](auto& g, void* out, int64_t n) { fill_normal(g, c10::kFloat, out, n, 2, 3); });
  expect_stream(c10::kHalf, 40, 0xd24b4bd31b8c235e, 0xdad7f804be5ed33b,
                [](auto& g, void* out, int64_t n) { fill_normal(g, c10::kHalf, out, n, 0, 1); });
}

TEST(RandomFill, OtherContinuousStreams) {
  expect_stream(c10::kFloat, 1000, 0xcd5d0b132770f49, kAfterTwo, [](auto& g, void* out, int64_t n) {
    fill_exponential(g, c10::kFloat, out, n, 0.7);
  });
  expect_stream(c10::kFloat, 1000, 0xa0628d2661e44f83, kAfterTwo,
                [](auto& g, void* out, int64_t n) { fill_cauchy(g, c10::kFloat, out, n, 1, 0.5); });
  expect_stream(
      c10::kFloat, 1000, 0x91bbcdb23e37cefb, kAfterTwo,
      [](auto& g, void* out, int64_t n) { fill_log_normal(g, c10::kFloat, out, n, 1, 2); });
}

TEST(RandomFill, DiscreteStreams) {
  expect_stream(c10::kLong, 1000, 0xc2e33ca56bcb4be4, kAfterTwo,
                [](auto& g, void* out, int64_t n) { fill_geometric(g, c10::kLong, out, n, 0.3); });
  expect_stream(c10::kBool, 1000, 0x3cbfbd6525fe7b55, kAfterTwo,
                [](auto& g, void* out, int64_t n) { fill_bernoulli(g, c10::kBool, out, n, 0.3); });
  expect_stream(c10::kFloat, 1000, 0xec3b03f53d5be338, kAfterOne,
                [](auto& g, void* out, int64_t n) {
                  std::vector<float> p(static_cast<size_t>(n));
                  for (int64_t i = 0; i < n; ++i) p[i] = static_cast<float>(i) / 1000.0f;
                  fill_bernoulli_tensor(g, c10::kFloat, out, n, c10::kFloat, p.data());
                });
  expect_stream(c10::kLong, 1000, 0x902b4782699491e7, kAfterOne, [](auto& g, void* out, int64_t n) {
    fill_int_range(g, c10::kLong, out, n, int_range(c10::kLong, 0, 10));
  });
  expect_stream(c10::kLong, 1000, 0xaa7efdc4e9443c40, kAfterTwo, [](auto& g, void* out, int64_t n) {
    fill_int_range(g, c10::kLong, out, n, int_range(c10::kLong, 0, int64_t{1} << 40));
  });
  expect_stream(c10::kFloat, 1000, 0xa27b6e03898ccbd8, kAfterOne,
                [](auto& g, void* out, int64_t n) { fill_random(g, c10::kFloat, out, n); });
  expect_stream(c10::kInt, 1000, 0x5cdc149b3c49fe88, kAfterOne,
                [](auto& g, void* out, int64_t n) { fill_random(g, c10::kInt, out, n); });
  expect_stream(c10::kLong, 1000, 0xac050cc352041a61, 0xb676056241dcb7,
                [](auto& g, void* out, int64_t n) { fill_randperm(g, c10::kLong, out, n); });
}

TEST(RandomFill, MultinomialStreams) {
  std::vector<float> weights(100);
  for (int i = 0; i < 100; ++i) weights[i] = static_cast<float>(i + 1);
  const auto sample = [&](bool replacement) {
    return [&weights, replacement](auto& g, void* out, int64_t n) {
      fill_multinomial(g, c10::kFloat, weights.data(), 1, 100, n, replacement,
                       static_cast<int64_t*>(out));
    };
  };
  expect_stream(c10::kLong, 50, 0x76d49a5d99b851a6, 0x5544171a3d91501b, sample(true));
  expect_stream(c10::kLong, 50, 0xd824ef11f15051a1, 0xa8c3ccb1893ed86e, sample(false));
}

TEST(RandomFill, ThreadsChangeNothing) {
  const int saved = at::get_num_threads();
  const auto draw = [](int threads) {
    at::set_num_threads(threads);
    Mt19937 engine(1);
    std::vector<float> out(300007);
    fill_normal(engine, c10::kFloat, out.data(), 100003, 0, 1);
    fill_exponential(engine, c10::kFloat, out.data() + 100003, 200004, 1);
    return out;
  };
  EXPECT_EQ(draw(1), draw(4));
  at::set_num_threads(saved);
}

TEST(RandomFill, RoundedUpperBoundIsExcluded) {
  Mt19937 engine(0);
  std::vector<c10::BFloat16> out(20000);
  fill_uniform(engine, c10::kBFloat16, out.data(), 20000, 0, 1);
  for (c10::BFloat16 value : out) ASSERT_LT(static_cast<float>(value), 1.0f);
}

TEST(RandomFill, BoundsAndWeightsAreChecked) {
  EXPECT_THROW(int_range(c10::kLong, 5, 5), c10::Error);
  EXPECT_THROW(int_range(c10::kByte, -1, 5), c10::Error);
  EXPECT_THROW(int_range(c10::kByte, 0, 257), c10::Error);
  EXPECT_THROW(int_range(c10::kComplexFloat, 0, 5), c10::Error);
  EXPECT_EQ(int_range(c10::kBFloat16, 0, 260).range, 258u);
  Mt19937 engine(0);
  int64_t out[4];
  for (float bad : {-1.0f, 0.0f / 0.0f, 1.0f / 0.0f}) {
    const float weights[2] = {1.0f, bad};
    EXPECT_THROW(fill_multinomial(engine, c10::kFloat, weights, 1, 2, 1, false, out), c10::Error);
  }
  const float zero[2] = {0, 0};
  EXPECT_THROW(fill_multinomial(engine, c10::kFloat, zero, 1, 2, 1, true, out), c10::Error);
  EXPECT_THROW(fill_uniform(engine, c10::kLong, out, 4, 0, 1), c10::NotImplementedError);
}

} // namespace
