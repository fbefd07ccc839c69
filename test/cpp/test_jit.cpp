// torch::jit::load on archives that the tests write themselves: source text, a pickle of the
// module's object, constants. Nothing here has Python.
#include <gtest/gtest.h>
#include <torch/jit.h>
#include <torch/torch.h>

#include <sstream>

#include <torch/csrc/api/src/serialize/pickle.h>
#include <torch/csrc/utils/inflate.h>
#include <torch/csrc/utils/zip.h>

namespace {

using torch::serialize::PickleWriter;
using torch::serialize::ZipWriter;

// An archive with one class, __torch__.Net, whose slots have these values.
struct Archive {
  std::string code;
  std::vector<std::pair<std::string, c10::IValue>> slots;
  std::map<std::string, std::string> more;

  std::string file() const {
    std::vector<at::Tensor> stored;
    PickleWriter pickle([&](const at::Tensor& t) {
      stored.push_back(t);
      return std::to_string(stored.size() - 1);
    });
    pickle.global("__torch__", "Net");
    pickle.raw(")\x81");
    pickle.begin_dict();
    for (const auto& [name, value] : slots) {
      pickle.text(name);
      pickle.value(value);
    }
    pickle.end_dict();
    pickle.raw("b");
    ZipWriter zip;
    zip.add("net/data.pkl", pickle.finish());
    zip.add("net/code/__torch__.py", code);
    zip.add("net/constants.pkl", std::string("\x80\x02).", 4));
    for (size_t i = 0; i < stored.size(); ++i)
      zip.add("net/data/" + std::to_string(i),
              std::string_view(static_cast<const char*>(stored[i].const_data_ptr()),
                               stored[i].nbytes()));
    for (const auto& [name, text] : more) zip.add("net/" + name, text);
    return zip.finish();
  }
  torch::jit::Module load() const {
    std::istringstream in(file());
    return torch::jit::load(in);
  }
};

Archive linear() {
  Archive out;
  out.code = R"(class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = ["steps", ]
  weight : Tensor
  steps : Tensor
  training : bool
  scale : Final[float] = 2.0
  def forward(self: __torch__.Net,
    x: Tensor,
    shift: float=0.5) -> Tensor:
    weight = self.weight
    _0 = torch.mul(torch.matmul(x, weight), 2.0)
    return torch.add(_0, shift)
  def count(self: __torch__.Net) -> Tensor:
    steps = self.steps
    self.steps = torch.add(steps, 1)
    return self.steps
)";
  out.slots = {{"weight", at::ones({3, 2})}, {"steps", at::zeros({1})}, {"training", true}};
  return out;
}

Archive program(const std::string& method) {
  Archive out;
  out.code =
      "class Net(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n" + method;
  out.slots = {{"training", false}};
  return out;
}

TEST(JitLoad, ForwardUsesParametersAndDefaults) {
  const torch::jit::Module net = linear().load();
  const at::Tensor out = net.forward({at::ones({1, 3})}).toTensor();
  EXPECT_TRUE(at::equal(out, at::full({1, 2}, 6.5)));
  const at::Tensor named = net.forward({at::ones({1, 3})}, {{"shift", 1.0}}).toTensor();
  EXPECT_TRUE(at::equal(named, at::full({1, 2}, 7.0)));
}

TEST(JitLoad, MethodsWriteAttributes) {
  const torch::jit::Module net = linear().load();
  net.run_method("count");
  EXPECT_EQ(net.run_method("count").toTensor().item<float>(), 2.0f);
  EXPECT_EQ(net.attr("steps").toTensor().item<float>(), 2.0f);
  EXPECT_EQ(net.attr("scale").toDouble(), 2.0);
}

TEST(JitLoad, NamesParametersAndBuffers) {
  torch::jit::Module net = linear().load();
  ASSERT_EQ(net.named_parameters().size(), 1u);
  EXPECT_EQ(net.named_parameters()[0].name, "weight");
  EXPECT_EQ(net.named_buffers()[0].name, "steps");
  EXPECT_TRUE(net.is_training());
  net.eval();
  EXPECT_FALSE(net.is_training());
  net.to(at::kDouble);
  EXPECT_EQ(net.parameters()[0].scalar_type(), at::kDouble);
}

TEST(JitLoad, SavedModulesLoadAgainWithTheirState) {
  const torch::jit::Module net = linear().load();
  net.run_method("count");
  std::stringstream file;
  net.save(file, {{"note", "hello"}});
  torch::jit::ExtraFilesMap extra{{"note", ""}};
  const torch::jit::Module again = torch::jit::load(file, std::nullopt, extra);
  EXPECT_EQ(extra["note"], "hello");
  EXPECT_EQ(again.attr("steps").toTensor().item<float>(), 1.0f);
  EXPECT_TRUE(at::equal(again.forward({at::ones({1, 3})}).toTensor(),
                        net.forward({at::ones({1, 3})}).toTensor()));
}

TEST(JitLoad, CopiesShareOrDoNotShareTensors) {
  const torch::jit::Module net = linear().load();
  EXPECT_EQ(net.clone().attr("weight").toTensor().data_ptr(),
            net.attr("weight").toTensor().data_ptr());
  EXPECT_NE(net.deepcopy().attr("weight").toTensor().data_ptr(),
            net.attr("weight").toTensor().data_ptr());
}

TEST(JitLoad, LoopsConditionsAndContainersComputeAsWritten) {
  const torch::jit::Module net = program(R"(
  def forward(self: __torch__.Net,
    n: int) -> Tuple[int, List[int], Dict[str, int]]:
    found = annotate(List[int], [])
    total = 0
    for i in range(n):
      if torch.eq(torch.remainder(i, 2), 0):
        _0 = torch.append(found, i)
        total0 = torch.add(total, i)
      else:
        total0 = total
      total = total0
    a, b = 1, 2
    _1 = torch.lt(a, 100)
    while _1:
      a, b = b, torch.add(a, b)
      _1 = torch.lt(a, 100)
    return (total, found, {"a": a, "b": b})
)")
                                     .load();
  const c10::IValue out = net.forward({7});
  const auto& parts = out.toTupleRef().elements();
  EXPECT_EQ(parts[0].toInt(), 12);
  EXPECT_EQ(parts[1].toIntVector(), (std::vector<int64_t>{0, 2, 4, 6}));
  const auto dict = parts[2].to<c10::Dict<std::string, int64_t>>();
  EXPECT_EQ(dict.at("a"), 144);
  EXPECT_EQ(dict.at("b"), 233);
}

TEST(JitLoad, OptionalArgumentsAreRefined) {
  const torch::jit::Module net = program(R"(
  def forward(self: __torch__.Net,
    x: Tensor,
    mask: Optional[Tensor]=None) -> Tensor:
    if torch.__isnot__(mask, None):
      mask0 = unchecked_cast(Tensor, mask)
      out = torch.mul(x, mask0)
    else:
      out = x
    return out
)")
                                     .load();
  EXPECT_TRUE(at::equal(net.forward({at::ones({2})}).toTensor(), at::ones({2})));
  EXPECT_TRUE(at::equal(net.forward({at::ones({2}), at::zeros({2})}).toTensor(), at::zeros({2})));
}

TEST(JitLoad, ForkedFunctionsSeeOuterVariables) {
  const torch::jit::Module net = program(R"(
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    def __forked_function():
      return torch.neg(x)
    fut = fork(__forked_function)
    return torch.sub(torch.wait(fut), x)
)")
                                     .load();
  EXPECT_TRUE(at::equal(net.forward({at::ones({2})}).toTensor(), at::full({2}, -2.0)));
}

TEST(JitLoad, RaisedExceptionsAreErrors) {
  const torch::jit::Module net = program(R"(
  def forward(self: __torch__.Net,
    x: int) -> int:
    if torch.gt(x, 0):
      ops.prim.RaiseException("too large")
    else:
      pass
    return x
)")
                                     .load();
  EXPECT_EQ(net.forward({-1}).toInt(), -1);
  EXPECT_THROW(net.forward({1}), c10::Error);
}

// "def f" packed by zlib at level 9, and a run of 600 letters.
TEST(JitLoad, RecordsPackedByDeflateAreRead) {
  using torch::serialize::inflate;
  EXPECT_EQ(inflate(std::string_view("\x4b\x49\x4d\x53\x48\x03\x00", 7), 5), "def f");
  EXPECT_EQ(inflate(std::string_view("\x4b\x4c\x1c\x05\xa3\x80\xfa\x00\x00", 9), 600),
            std::string(600, 'a'));
  EXPECT_THROW(inflate(std::string_view("\x4b\x49\x4d\x53\x48\x03\x00", 7), 4), c10::Error);
  EXPECT_THROW(inflate(std::string_view("\x4b\x49", 2), 5), c10::Error);
  EXPECT_THROW(inflate("", 1), c10::Error);
}

TEST(JitLoad, WrongCallsAreErrors) {
  const torch::jit::Module net = linear().load();
  EXPECT_THROW(net.forward({}), c10::Error);
  EXPECT_THROW(net.forward({"text"}), c10::Error);
  EXPECT_THROW(net.forward({at::ones({1, 3})}, {{"unknown", 1}}), c10::Error);
  EXPECT_THROW(net.get_method("missing"), c10::Error);
  EXPECT_THROW(net.attr("missing"), c10::Error);
  EXPECT_THROW(torch::jit::Module().forward({}), c10::Error);
  EXPECT_THROW(torch::jit::load("/nonexistent/file.pt"), c10::Error);
}

TEST(JitLoad, CodeOutsideOfTheLanguageIsAnError) {
  for (const char* body : {"    return undefined\n", "    import os\n",
                           "    return torch.nothing(x)\n", "    return ((((\n",
                           "    x = (1, 2)\n    return x[5]\n", "    return torch.add(\"a\", x)\n"})
    EXPECT_THROW(
        program(std::string("  def forward(self: __torch__.Net,\n    x: Tensor) -> Tensor:\n") +
                body)
            .load(),
        c10::Error)
        << body;
}

// PyTorch's C++ library saves archives as modules, the parts of an optimizer among them.
TEST(JitLoad, AttributesOfAModuleAreAnArchive) {
  std::istringstream in(linear().file());
  torch::serialize::InputArchive archive;
  archive.load_from(in);
  at::Tensor weight;
  archive.read("weight", weight);
  EXPECT_TRUE(at::equal(weight, linear().load().attr("weight").toTensor()));
}

TEST(JitLoad, OptimizerInTheFormOfPyTorchGoesOn) {
  const auto parameter = [] { return at::ones({2}).requires_grad_(); };
  const auto step = [](torch::optim::Adam& adam, const at::Tensor& x) {
    adam.zero_grad();
    (x * x).sum().backward();
    adam.step();
  };
  const at::Tensor x = parameter();
  torch::optim::Adam saved({x}, torch::optim::AdamOptions(0.25));
  step(saved, x);
  torch::serialize::OutputArchive file, states, state, groups, group, options;
  saved.state().at(x.unsafeGetTensorImpl())->serialize(state);
  saved.param_groups()[0].options().serialize(options);
  states.write("940", state);
  group.write("params/size", at::tensor(int64_t(1)));
  group.write("params/0", c10::IValue("940"));
  group.write("options", options);
  groups.write("param_groups/size", at::tensor(int64_t(1)));
  groups.write("param_groups/0", group);
  file.write("pytorch_version", c10::IValue("1.5.0"));
  file.write("state", states);
  file.write("param_groups", groups);
  std::stringstream stream;
  file.save_to(stream);
  at::Tensor y = parameter();
  {
    const torch::NoGradGuard no_grad;
    y.copy_(x);
  }
  torch::optim::Adam loaded({y}, torch::optim::AdamOptions(9.0));
  torch::load(loaded, stream);
  step(saved, x);
  step(loaded, y);
  EXPECT_TRUE(at::equal(x, y));
}

TEST(JitLoad, DamagedFilesAreErrorsAndNeverCrash) {
  const std::string good = linear().file();
  uint64_t state = 12345;
  const auto next = [&](uint64_t bound) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % bound;
  };
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    const uint64_t changes = 1 + next(8);
    for (uint64_t k = 0; k < changes; ++k) bad[next(bad.size())] = static_cast<char>(next(256));
    if (next(4) == 0) bad.resize(next(bad.size()));
    std::istringstream in(bad);
    try {
      torch::jit::load(in).forward({at::ones({1, 3})});
    } catch (const std::exception&) {
      continue; // what matters is that it is an exception
    }
  }
}

} // namespace
