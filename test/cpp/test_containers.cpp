// c10::List, c10::Dict, tuples and instances of classes as IValues.
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/library.h>

namespace {

struct Counter : torch::CustomClassHolder {
  explicit Counter(int64_t start) : value(start) {}
  int64_t add(int64_t n) { return value += n; }
  int64_t value;
};
struct Unregistered : torch::CustomClassHolder {};

TORCH_LIBRARY(cpp_containers, m) {
  m.class_<Counter>("Counter")
      .def(torch::init<int64_t>())
      .def("add", &Counter::add)
      .def_pickle([](const c10::intrusive_ptr<Counter>& self) { return self->value; },
                  [](int64_t value) { return c10::make_intrusive<Counter>(value); });
  m.def("total(Dict(str, int) x) -> int", [](const c10::Dict<std::string, int64_t>& x) {
    int64_t sum = 0;
    for (const auto& entry : x) sum += entry.value();
    return sum;
  });
  m.def("joined(str[] words, (int, str) last) -> str",
        [](const std::vector<std::string>& words, const std::tuple<int64_t, std::string>& last) {
          std::string out;
          for (const std::string& word : words) out += word;
          return out + std::to_string(std::get<0>(last)) + std::get<1>(last);
        });
}

at::IValue call(const char* name, at::Stack stack) {
  at::Dispatcher::singleton().find(name, "")->call_boxed(stack);
  return stack.at(0);
}

} // namespace

TEST(List, CopyOfAListSharesItsElements) {
  c10::List<std::string> a({"x", "y"});
  c10::List<std::string> b = a;
  b.push_back("z");
  b[0] = "w";
  EXPECT_EQ(a.vec(), (std::vector<std::string>{"w", "y", "z"}));
  EXPECT_TRUE(a.is(b));
  EXPECT_FALSE(a.is(a.copy()));
  EXPECT_EQ(a, a.copy());
}

TEST(List, ElementOutOfRangeIsAnIndexError) {
  c10::List<int64_t> list({1, 2});
  EXPECT_THROW(list.get(2), c10::IndexError);
  EXPECT_THROW(list.set(5, 1), c10::IndexError);
}

TEST(List, OfTensorsIsWhatKernelsTake) {
  c10::List<at::Tensor> list({at::ones({1}), at::zeros({2})});
  const c10::IValue value(list);
  EXPECT_TRUE(value.isTensorList());
  EXPECT_EQ(value.to<std::vector<at::Tensor>>().size(), 2u);
}

TEST(Dict, KeepsInsertionOrderThroughErase) {
  c10::Dict<std::string, int64_t> dict;
  EXPECT_TRUE(dict.insert("b", 1));
  EXPECT_TRUE(dict.insert("a", 2));
  EXPECT_TRUE(dict.insert("c", 3));
  EXPECT_FALSE(dict.insert("a", 9));
  EXPECT_EQ(dict.at("a"), 2);
  dict.insert_or_assign("a", 5);
  EXPECT_EQ(dict.erase("b"), 1u);
  std::string keys;
  for (const auto& entry : dict) keys += entry.key();
  EXPECT_EQ(keys, "ac");
  EXPECT_EQ(dict.at("c"), 3);
  EXPECT_THROW(dict.at("b"), c10::IndexError);
}

TEST(Dict, IsSharedByTheValueMadeOfIt) {
  c10::Dict<int64_t, std::string> dict;
  const c10::IValue value(dict);
  dict.insert(1, "one");
  EXPECT_TRUE(value.isGenericDict());
  EXPECT_EQ((value.to<c10::Dict<int64_t, std::string>>().at(1)), "one");
}

TEST(Tuple, ReadsBackAsItsTypes) {
  const c10::IValue value(std::tuple<int64_t, std::string>(3, "x"));
  EXPECT_TRUE(value.isTuple());
  EXPECT_EQ(value.toTuple()->elements().size(), 2u);
  EXPECT_EQ((value.to<std::tuple<int64_t, std::string>>()),
            std::make_tuple(int64_t(3), std::string("x")));
  EXPECT_THROW((value.to<std::tuple<int64_t>>()), c10::Error);
  EXPECT_EQ(value, c10::IValue(std::tuple<int64_t, std::string>(3, "x")));
}

TEST(DeepCopy, KeepsWhatWasOneObjectOne) {
  const at::Tensor t = at::ones({2});
  const c10::IValue value(c10::List<at::IValue>({c10::IValue(t), c10::IValue(t)}));
  const std::vector<at::IValue> copied = value.deepcopy().toListRef();
  EXPECT_FALSE(copied[0].is(c10::IValue(t)));
  EXPECT_TRUE(copied[0].is(copied[1]));
  EXPECT_TRUE(at::equal(copied[0].toTensor(), t));
}

TEST(CustomClass, InstanceGoesThroughAValue) {
  const c10::IValue value = torch::make_custom_class<Counter>(int64_t(2));
  EXPECT_TRUE(value.isCustomClass());
  EXPECT_EQ(value.toCustomClass<Counter>()->add(3), 5);
  EXPECT_EQ(value.deepcopy().toCustomClass<Counter>()->add(1), 6);
  EXPECT_EQ(value.toCustomClass<Counter>()->value, 5);
}

TEST(CustomClass, UnregisteredTypeIsAnError) {
  const c10::IValue value(c10::make_intrusive<Counter>(1));
  EXPECT_THROW(value.toCustomClass<Unregistered>(), c10::Error);
  EXPECT_THROW(c10::IValue(3).toCustomClass<Counter>(), c10::Error);
}

TEST(CustomClass, NameAlreadyTakenIsAnError) {
  EXPECT_THROW(torch::class_<Unregistered>("cpp_containers", "Counter"), c10::Error);
  EXPECT_THROW(torch::class_<Counter>("cpp_containers", "Another"), c10::Error);
  EXPECT_THROW(torch::class_<Unregistered>("cpp containers", "X"), c10::Error);
}

TEST(Library, KernelTakesDictionariesAndTuples) {
  c10::Dict<std::string, int64_t> dict;
  dict.insert("a", 2);
  dict.insert("b", 40);
  EXPECT_EQ(call("cpp_containers::total", {c10::IValue(dict)}).toInt(), 42);
  const c10::IValue words(std::vector<std::string>{"a", "b"});
  const c10::IValue last(std::tuple<int64_t, std::string>(1, "c"));
  EXPECT_EQ(call("cpp_containers::joined", {words, last}).toStringRef(), "ab1c");
  EXPECT_THROW(call("cpp_containers::total", {c10::IValue(1)}), c10::Error);
}
