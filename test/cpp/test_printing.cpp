// What programs print with `<<`: values, options, lists of tensors.
#include <gtest/gtest.h>

#include <torch/script.h>
#include <torch/torch.h>

#include <sstream>

namespace {

template <class T> std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(Printing, PlainValuesHaveNoQuotes) {
  EXPECT_EQ(printed(c10::IValue()), "None");
  EXPECT_EQ(printed(c10::IValue(3)), "3");
  EXPECT_EQ(printed(c10::IValue(true)), "True");
  EXPECT_EQ(printed(c10::IValue("text")), "text");
  EXPECT_EQ(printed(c10::IValue(torch::Device("cuda:1"))), "cuda:1");
}

TEST(Printing, NumbersWithAPointKeepIt) {
  EXPECT_EQ(printed(c10::IValue(2.0)), "2.");
  EXPECT_EQ(printed(c10::IValue(2.5)), "2.5");
  EXPECT_EQ(printed(c10::IValue(1e20)), "1e+20");
  EXPECT_EQ(printed(c10::IValue(c10::complex<double>(1, 2))), "1.+2.j");
}

TEST(Printing, ContainersShowTheirItems) {
  EXPECT_EQ(printed(c10::IValue(std::vector<int64_t>{1, 2})), "[1, 2]");
  EXPECT_EQ(printed(c10::IValue(std::vector<double>{1, 2.5})), "[1., 2.5]");
  EXPECT_EQ(printed(c10::IValue(std::vector<int64_t>{})), "[]");
  EXPECT_EQ(printed(c10::IValue(std::make_tuple(int64_t(1), std::string("x"), 2.0))), "(1, x, 2.)");
  EXPECT_EQ(printed(c10::IValue(std::tuple<int64_t>(1))), "(1,)");
  c10::Dict<std::string, int64_t> dict;
  dict.insert("k", 5);
  dict.insert("j", 6);
  EXPECT_EQ(printed(c10::IValue(dict)), "{k: 5, j: 6}");
}

TEST(Printing, TensorsInValuesAndListsAreThoseOfTensors) {
  const torch::Tensor one = torch::ones({1});
  EXPECT_EQ(printed(c10::IValue(one)), printed(one));
  EXPECT_EQ(printed(std::vector<torch::Tensor>{one, one}), printed(one) + " " + printed(one));
  EXPECT_EQ(printed(std::vector<torch::Tensor>{}), "");
  testing::internal::CaptureStdout();
  torch::print(one);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), printed(one));
}

TEST(Printing, OptionsSayWhatWasLeftOpen) {
  EXPECT_EQ(printed(torch::TensorOptions()),
            "TensorOptions(dtype=float (default), device=cpu (default), layout=Strided (default), "
            "requires_grad=false (default), pinned_memory=false (default), "
            "memory_format=(nullopt))");
  EXPECT_EQ(printed(torch::TensorOptions(torch::kShort)
                        .device(torch::kCUDA, 1)
                        .layout(torch::kSparse)
                        .requires_grad(true)
                        .pinned_memory(true)
                        .memory_format(at::MemoryFormat::ChannelsLast)),
            "TensorOptions(dtype=short int, device=cuda:1, layout=Sparse, requires_grad=true, "
            "pinned_memory=true, memory_format=ChannelsLast)");
}

} // namespace
