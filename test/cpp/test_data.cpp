// torch::data: samplers, datasets, transforms and the loader, against plain loops.
#include <gtest/gtest.h>

#include <torch/torch.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>

#include <c10/util/tempfile.h>

namespace {

using namespace torch::data; // NOLINT

struct Squares : datasets::Dataset<Squares, int64_t> {
  explicit Squares(size_t size) : count(size) {}
  int64_t get(size_t index) override {
    if (index == bad) throw std::invalid_argument("no such square");
    return static_cast<int64_t>(index * index);
  }
  std::optional<size_t> size() const override { return count; }
  size_t count;
  size_t bad = size_t(-1);
};

std::vector<int64_t> squares_below(int64_t n) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(i * i);
  return out;
}

template <class Loader> std::vector<int64_t> all_of(Loader& loader) {
  std::vector<int64_t> out;
  for (const std::vector<int64_t>& batch : loader)
    out.insert(out.end(), batch.begin(), batch.end());
  return out;
}

TEST(Data, LoaderWithWorkersGivesBatchesInOrderEveryEpoch) {
  for (size_t workers : {0, 1, 3}) {
    auto loader = make_data_loader<samplers::SequentialSampler>(
        Squares(50), DataLoaderOptions(7).workers(workers));
    for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(all_of(*loader), squares_below(50));
  }
}

TEST(Data, LoaderWithoutOrderGivesEveryExampleOnce) {
  auto loader = make_data_loader(
      Squares(40), DataLoaderOptions(3).workers(4).enforce_ordering(false).max_jobs(5));
  std::vector<int64_t> all = all_of(*loader);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, squares_below(40));
}

TEST(Data, LastBatchIsSmallOrDropped) {
  for (bool drop : {false, true}) {
    auto loader = make_data_loader(Squares(10), DataLoaderOptions(4).drop_last(drop).workers(2));
    std::vector<size_t> sizes;
    for (const auto& batch : *loader) sizes.push_back(batch.size());
    EXPECT_EQ(sizes, drop ? std::vector<size_t>({4, 4}) : std::vector<size_t>({4, 4, 2}));
  }
}

TEST(Data, ExceptionOfAWorkerIsRaisedWhereItsBatchIsAskedFor) {
  Squares dataset(6);
  dataset.bad = 2;
  auto loader =
      make_data_loader<samplers::SequentialSampler>(dataset, DataLoaderOptions(2).workers(2));
  auto batch = loader->begin();
  EXPECT_EQ(*batch, std::vector<int64_t>({0, 1}));
  ++batch;
  try {
    *batch;
    FAIL() << "nothing was thrown";
  } catch (const WorkerException& error) {
    EXPECT_NE(std::string(error.what()).find("no such square"), std::string::npos);
    EXPECT_THROW(std::rethrow_exception(error.original_exception), std::invalid_argument);
  }
}

TEST(Data, ExceptionWithoutWorkersIsTheDatasetsOwn) {
  Squares dataset(6);
  dataset.bad = 0;
  auto loader = make_data_loader<samplers::SequentialSampler>(dataset, 2);
  EXPECT_THROW(*loader->begin(), std::invalid_argument);
}

TEST(Data, IteratorPastTheEndIsAnError) {
  auto loader = make_data_loader(Squares(2), 2);
  auto i = loader->begin();
  ++i;
  EXPECT_EQ(i, loader->end());
  EXPECT_THROW(*i, c10::Error);
  EXPECT_THROW(++i, c10::Error);
  EXPECT_THROW(*loader->end(), c10::Error);
}

TEST(Data, SecondIterationWhileWorkersAreBusyIsAnError) {
  auto loader = make_data_loader(Squares(9), DataLoaderOptions(1).workers(1));
  auto i = loader->begin();
  EXPECT_THROW(loader->begin(), c10::Error);
}

TEST(Data, TransformsFollowEachOther) {
  auto dataset = Squares(5)
                     .map(transforms::Lambda<int64_t, double>([](int64_t x) { return x + 0.5; }))
                     .map(transforms::Collate<double>([](std::vector<double> all) {
                       return std::accumulate(all.begin(), all.end(), 0.0);
                     }));
  const size_t indices[] = {1, 3};
  EXPECT_EQ(dataset.get_batch(indices), 11.0);
}

TEST(Data, StackPutsTensorsOfABatchTogether) {
  struct Pairs : datasets::Dataset<Pairs> {
    Example<> get(size_t i) override {
      return {torch::full({2}, double(i)), torch::tensor(int64_t(i))};
    }
    std::optional<size_t> size() const override { return 4; }
  };
  auto loader = make_data_loader<samplers::SequentialSampler>(
      Pairs().map(transforms::Normalize<>(1.0, 2.0)).map(transforms::Stack<>()), 3);
  const Example<> batch = *loader->begin();
  EXPECT_TRUE(at::equal(batch.data, torch::tensor({{-0.5f, -0.5f}, {0.f, 0.f}, {0.5f, 0.5f}})));
  EXPECT_TRUE(at::equal(batch.target, torch::tensor({int64_t(0), int64_t(1), int64_t(2)})));
}

TEST(Data, RandomSamplerGivesEveryIndexOnceAndContinuesAfterAFile) {
  samplers::RandomSampler sampler(10);
  sampler.next(4);
  std::stringstream stream;
  torch::save(sampler, stream);
  samplers::RandomSampler other(10);
  torch::load(other, stream);
  const std::vector<size_t> rest = sampler.next(100).value();
  EXPECT_EQ(rest, other.next(100).value());
  EXPECT_EQ(std::set<size_t>(rest.begin(), rest.end()).size(), 6u);
  EXPECT_FALSE(sampler.next(1).has_value());
}

TEST(Data, SharesOfProcessesCoverTheDataset) {
  for (bool duplicates : {true, false}) {
    std::vector<size_t> all;
    for (size_t rank = 0; rank < 4; ++rank) {
      samplers::DistributedRandomSampler sampler(10, 4, rank, duplicates);
      sampler.set_epoch(3);
      sampler.reset();
      const std::vector<size_t> mine = sampler.next(100).value();
      EXPECT_EQ(mine.size(), duplicates ? 3u : 2u);
      all.insert(all.end(), mine.begin(), mine.end());
    }
    const size_t distinct = std::set<size_t>(all.begin(), all.end()).size();
    EXPECT_EQ(distinct, duplicates ? 10u : 8u);
  }
  EXPECT_THROW(samplers::DistributedSequentialSampler(10, 2, 2), c10::Error);
}

struct Tens : datasets::ChunkDataReader<int> {
  ChunkType read_chunk(size_t chunk) override {
    if (chunk == bad) throw std::runtime_error("unreadable chunk");
    ChunkType out(10);
    std::iota(out.begin(), out.end(), static_cast<int>(chunk) * 10);
    return out;
  }
  size_t chunk_count() override { return 4; }
  void reset() override {}
  size_t bad = size_t(-1);
};
using Chunks =
    datasets::ChunkDataset<Tens, samplers::SequentialSampler, samplers::SequentialSampler>;

TEST(Data, ChunksAreCutIntoBatchesAcrossTheirEnds) {
  for (size_t preloaders : {1, 3}) {
    auto dataset = datasets::make_shared_dataset<Chunks>(
        Tens(), samplers::SequentialSampler(0), samplers::SequentialSampler(0),
        datasets::ChunkDatasetOptions(preloaders, 8, 16));
    auto loader = make_data_loader(dataset, DataLoaderOptions(8));
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<int> all;
      for (const std::vector<int>& batch : *loader) {
        EXPECT_EQ(batch.size(), 8u);
        all.insert(all.end(), batch.begin(), batch.end());
      }
      if (preloaders > 1) std::sort(all.begin(), all.end());
      std::vector<int> expected(40);
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(all, expected);
    }
  }
}

TEST(Data, UnreadableChunkIsAnErrorOfTheBatch) {
  Tens reader;
  reader.bad = 1;
  auto dataset = datasets::make_shared_dataset<Chunks>(reader, samplers::SequentialSampler(0),
                                                       samplers::SequentialSampler(0),
                                                       datasets::ChunkDatasetOptions(1, 5));
  auto loader = make_data_loader(dataset, DataLoaderOptions(5));
  EXPECT_THROW(
      {
        for (const auto& batch : *loader) (void)batch;
      },
      WorkerException);
}

void write_idx(const std::string& path, uint8_t dims, const std::vector<uint32_t>& sizes,
               const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  const char head[4] = {0, 0, 8, static_cast<char>(dims)};
  file.write(head, 4);
  for (uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(size >> shift));
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(Data, MnistFilesAreReadAndDamagedOnesRefused) {
  const c10::TempFile place = c10::make_tempfile();
  const std::string root = place.name + "-mnist";
  ASSERT_EQ(std::system(("mkdir " + root).c_str()), 0);
  write_idx(root + "/t10k-images-idx3-ubyte", 3, {2, 1, 2}, std::string("\x00\xff\x33\x66", 4));
  write_idx(root + "/t10k-labels-idx1-ubyte", 1, {2}, std::string("\x07\x01", 2));
  datasets::MNIST digits(root, datasets::MNIST::Mode::kTest);
  EXPECT_EQ(digits.size().value(), 2u);
  EXPECT_TRUE(at::allclose(digits.get(1).data, torch::tensor({0.2f, 0.4f}).view({1, 1, 2})));
  EXPECT_EQ(digits.get(0).target.item<int64_t>(), 7);
  EXPECT_THROW(datasets::MNIST(root, datasets::MNIST::Mode::kTrain), c10::Error);
  write_idx(root + "/t10k-labels-idx1-ubyte", 1, {2}, "\x07");
  EXPECT_THROW(datasets::MNIST(root, datasets::MNIST::Mode::kTest), c10::Error);
  std::remove((root + "/t10k-images-idx3-ubyte").c_str());
  std::remove((root + "/t10k-labels-idx1-ubyte").c_str());
  std::remove(root.c_str());
}

TEST(Sequential, OfOneHolderHoldsIt) {
  torch::nn::Sequential sequential(torch::nn::MaxUnpool1d(3));
  EXPECT_EQ(sequential->size(), 1u);
  EXPECT_NE((*sequential)[0]->as<torch::nn::MaxUnpool1d>(), nullptr);
}

TEST(DataLoader, BatchesOfNoExamplesAreRefused) {
  EXPECT_THROW(make_data_loader(Squares(4), DataLoaderOptions().batch_size(0)), c10::Error);
}

} // namespace
