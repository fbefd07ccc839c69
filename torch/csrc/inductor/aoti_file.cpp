// See aoti_file.h. Numbers are little-endian; texts and lists begin with their length.
#include <torch/csrc/inductor/aoti_file.h>

#include <algorithm>
#include <cstring>

#include <ATen/core/EmptyTensor.h>

namespace torch::inductor {
namespace {

using at::IValue;
using Tag = IValue::Tag;

constexpr std::string_view kMagic = "CRAOTI\x01\n";
constexpr int kMostNested = 16; // lists in lists
constexpr int kMostRank = 64;

[[noreturn]] void damaged(const std::string& what) {
  TORCH_CHECK(false, "The compiled model cannot be read: ", what);
}

class Writer {
 public:
  template <class T> void number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out.append(bytes, sizeof(T));
  }
  void byte(uint8_t value) { out.push_back(static_cast<char>(value)); }
  void length(size_t n) { number(static_cast<uint32_t>(n)); }
  void text(std::string_view value) {
    length(value.size());
    out.append(value);
  }
  template <class L, class F> void list(const L& items, const F& write) {
    length(items.size());
    for (const auto& item : items) write(item);
  }
  void value(const IValue& v);
  void arg(const Arg& a);
  void node(const Node& n);
  std::string out;
};

void Writer::value(const IValue& v) {
  byte(static_cast<uint8_t>(v.tag));
  switch (v.tag) {
  case Tag::None:
    return;
  case Tag::Int:
  case Tag::Bool:
  case Tag::Device:
  case Tag::ScalarType:
  case Tag::Layout:
  case Tag::MemoryFormat:
    return number(v.bits.i);
  case Tag::Double:
    return number(v.bits.d[0]);
  case Tag::Complex:
    number(v.bits.d[0]);
    return number(v.bits.d[1]);
  case Tag::String:
    return text(v.toStringRef());
  case Tag::IntList:
    return list(v.toIntList(), [&](int64_t i) { number(i); });
  case Tag::DoubleList:
    return list(v.toDoubleList(), [&](double d) { number(d); });
  case Tag::BoolList:
    return list(v.toBoolList(), [&](bool b) { byte(b); });
  case Tag::ScalarList:
    return list(v.toScalarList(), [&](const at::Scalar& s) { value(s); });
  case Tag::List:
    return list(v.toList(), [&](const IValue& item) { value(item); });
  case Tag::Tensor:
    // A number that passes for a tensor; stack_of makes it one again.
    if (v.toTensor().unsafeGetTensorImpl()->is_wrapped_number()) {
      out.pop_back();
      return value(v.toTensor().item());
    }
    break;
  case Tag::TensorList:
    if (v.toTensorList().empty()) return length(0);
    break;
  case Tag::OptionalTensorList:
    if (v.toOptionalTensorList().empty()) return length(0);
    break;
  default:
    break;
  }
  throw NotLowered(c10::str("a value of kind ", v.kind(), " in a compiled model"));
}

void Writer::arg(const Arg& a) {
  byte(static_cast<uint8_t>(a.kind));
  if (a.kind == Arg::Kind::Value) return value(a.value);
  if (a.kind == Arg::Kind::Node) return number(a.node);
  list(a.items, [&](const Arg& item) { arg(item); });
}

void Writer::node(const Node& n) {
  byte(static_cast<uint8_t>(n.kind));
  text(n.name);
  if (n.kind == Node::Kind::Call) {
    text(n.op->name);
    text(n.op->overload);
  }
  number(n.index);
  byte(static_cast<uint8_t>(n.number));
  list(n.graphs, [&](int32_t g) { number(g); });
  list(n.args, [&](const Arg& a) { arg(a); });
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T> T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  template <class E> E one_of(uint8_t count) {
    const auto value = number<uint8_t>();
    if (value >= count) damaged("an unknown kind");
    return static_cast<E>(value);
  }
  bool flag() { return one_of<uint8_t>(2) != 0; }
  // No item is smaller than `least` bytes, so that a wrong length is found before memory is asked
  // for.
  size_t length(size_t least = 1) {
    const auto n = number<uint32_t>();
    if (n > rest_.size() / least) damaged("it is cut short");
    return n;
  }
  std::string text() { return std::string(take(length())); }
  template <class T, class F> std::vector<T> list(size_t least, const F& read) {
    std::vector<T> items(length(least));
    for (size_t i = 0; i < items.size(); ++i) items[i] = read();
    return items;
  }
  std::vector<int64_t> ints() {
    return list<int64_t>(8, [&] { return number<int64_t>(); });
  }
  at::ScalarType dtype() {
    const auto value = number<int8_t>();
    if (value < 0 || value >= c10::NumScalarTypes) damaged("an unknown dtype");
    return static_cast<at::ScalarType>(value);
  }
  bool ends() const { return rest_.empty(); }
  IValue value(int depth = 0);
  Arg arg(int32_t before, int depth = 0);
  Node node(int32_t place, int32_t graph);
  Program program(int32_t graph);

 private:
  std::string_view take(size_t n) {
    if (n > rest_.size()) damaged("it is cut short");
    const std::string_view found = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return found;
  }
  IValue enumerator(Tag tag);
  std::string_view rest_;
};

IValue Reader::enumerator(Tag tag) {
  const auto bits = number<int64_t>();
  const auto below = [&](int64_t count) {
    if (bits < 0 || bits >= count) damaged("an unknown kind of tensor");
  };
  if (tag == Tag::ScalarType) {
    below(c10::NumScalarTypes);
    return static_cast<at::ScalarType>(bits);
  }
  if (tag == Tag::Layout) {
    below(static_cast<int64_t>(at::Layout::NumOptions));
    return static_cast<at::Layout>(bits);
  }
  if (tag == Tag::MemoryFormat) {
    below(static_cast<int64_t>(at::MemoryFormat::NumOptions));
    return static_cast<at::MemoryFormat>(bits);
  }
  const int64_t type = bits & 0xff, index = bits >> 8;
  if (type >= c10::kNumDeviceTypes || index < -1 || index > 127) damaged("an unknown device");
  return at::Device(static_cast<c10::DeviceType>(type), static_cast<c10::DeviceIndex>(index));
}

IValue Reader::value(int depth) {
  if (depth > kMostNested) damaged("lists too deep");
  const auto tag = static_cast<Tag>(number<uint8_t>());
  switch (tag) {
  case Tag::None:
    return {};
  case Tag::Int:
    return number<int64_t>();
  case Tag::Bool:
    return number<int64_t>() != 0;
  case Tag::Double:
    return number<double>();
  case Tag::Complex: {
    const auto real = number<double>();
    return c10::complex<double>(real, number<double>());
  }
  case Tag::String:
    return text();
  case Tag::Device:
  case Tag::ScalarType:
  case Tag::Layout:
  case Tag::MemoryFormat:
    return enumerator(tag);
  case Tag::IntList:
    return ints();
  case Tag::DoubleList:
    return list<double>(8, [&] { return number<double>(); });
  case Tag::BoolList: {
    std::vector<bool> items(length());
    for (size_t i = 0; i < items.size(); ++i) items[i] = flag();
    return items;
  }
  case Tag::ScalarList:
    return list<at::Scalar>(1, [&] { return value(depth + 1).toScalar(); });
  case Tag::List:
    return list<IValue>(1, [&] { return value(depth + 1); });
  case Tag::TensorList:
    if (length() == 0) return std::vector<at::Tensor>();
    break;
  case Tag::OptionalTensorList:
    if (length() == 0) return std::vector<std::optional<at::Tensor>>();
    break;
  default:
    break;
  }
  damaged("an unknown value");
}

Arg Reader::arg(int32_t before, int depth) {
  if (depth > kMostNested) damaged("lists too deep");
  Arg found;
  found.kind = one_of<Arg::Kind>(3);
  if (found.kind == Arg::Kind::Value) {
    found.value = value();
  } else if (found.kind == Arg::Kind::Node) {
    found.node = number<int32_t>();
    if (found.node < 0 || found.node >= before) damaged("a value is used before it is computed");
  } else {
    found.items = list<Arg>(1, [&] { return arg(before, depth + 1); });
  }
  return found;
}

// Operators that reach for something else than tensors.
bool is_refused(std::string_view name) { return name == "aten::from_file"; }

Node Reader::node(int32_t place, int32_t graph) {
  Node found;
  found.kind = one_of<Node::Kind>(static_cast<uint8_t>(Node::Kind::Loop) + 1);
  found.name = text();
  if (found.kind == Node::Kind::Call) {
    const std::string name = text(), overload = text();
    found.op = at::Dispatcher::singleton().find(name, overload);
    const std::string full = overload.empty() ? name : name + "." + overload;
    if (is_refused(name)) damaged("the operator " + full + " is not for compiled models");
    if (!found.op) damaged("there is no operator " + full + "; is its library loaded?");
  }
  found.index = number<int64_t>();
  found.number = one_of<NumberOp>(static_cast<uint8_t>(NumberOp::Last) + 1);
  found.graphs = list<int32_t>(4, [&] { return number<int32_t>(); });
  for (const int32_t g : found.graphs)
    if (g <= graph) damaged("a graph that calls itself");
  found.args = list<Arg>(1, [&] { return arg(place); });
  if (found.op && found.args.size() != found.op->schema().arguments.size())
    damaged(found.op->full_name() + " has another number of arguments here");
  const bool needs_one = found.kind == Node::Kind::Item || found.kind == Node::Kind::Branch;
  if (needs_one && found.args.empty()) damaged("a node without its argument");
  const size_t graphs = found.kind == Node::Kind::Graph                                      ? 1
                        : found.kind == Node::Kind::Branch || found.kind == Node::Kind::Loop ? 2
                                                                                             : 0;
  if (found.graphs.size() != graphs) damaged("a node with another number of graphs");
  return found;
}

Program Reader::program(int32_t graph) {
  Program found;
  found.inputs = number<uint32_t>();
  const size_t count = length(8);
  int64_t inputs = 0;
  for (size_t i = 0; i < count; ++i) {
    found.nodes.push_back(node(static_cast<int32_t>(i), graph));
    const Node& made = found.nodes.back();
    if (made.kind == Node::Kind::Input && made.index != inputs++) damaged("inputs out of order");
    if (made.op) found.note(*made.op);
  }
  if (inputs != found.inputs) damaged("a graph with another number of inputs");
  found.outputs = list<Arg>(1, [&] { return arg(static_cast<int32_t>(count)); });
  return found;
}

AotiSize read_size(Reader& in, size_t symbols) {
  AotiSize size;
  size.kind = in.one_of<AotiSize::Kind>(3);
  if (size.kind == AotiSize::Kind::Any) return size;
  size.value = in.number<int64_t>();
  if (size.kind == AotiSize::Kind::Fixed) return size;
  size.factor = in.number<int64_t>();
  size.symbol = in.number<int32_t>();
  if (size.symbol < 0 || static_cast<size_t>(size.symbol) >= symbols || size.factor == 0)
    damaged("a size of an unknown symbol");
  return size;
}

AotiInput read_input(Reader& in, size_t symbols) {
  AotiInput input;
  input.kind = in.one_of<AotiInput::Kind>(4);
  input.name = in.text();
  if (input.kind != AotiInput::Kind::Tensor) return input;
  input.dtype = in.dtype();
  input.sizes = in.list<AotiSize>(1, [&] { return read_size(in, symbols); });
  if (input.sizes.size() > kMostRank) damaged("an input of too many dimensions");
  return input;
}

AotiConstant read_constant(Reader& in) {
  AotiConstant constant;
  constant.name = in.text();
  constant.fqn = in.text();
  constant.dtype = in.dtype();
  constant.sizes = in.ints();
  constant.strides = in.ints();
  constant.folded = in.flag();
  constant.in_file = in.flag();
  constant.begin = in.number<uint64_t>();
  constant.bytes = in.number<uint64_t>();
  constant.checksum = in.number<uint64_t>();
  if (constant.sizes.size() != constant.strides.size() || constant.sizes.size() > kMostRank)
    damaged("a constant of an impossible shape");
  if (!constant.folded)
    at::detail::check_in_bounds(constant.sizes, constant.strides, 0,
                                static_cast<int64_t>(c10::elementSize(constant.dtype)),
                                constant.bytes);
  return constant;
}

AotiGraph read_graph(Reader& in, int32_t number, const AotiFile& file) {
  AotiGraph graph;
  graph.planned = in.flag();
  graph.constants = in.list<int32_t>(4, [&] { return in.number<int32_t>(); });
  for (const int32_t c : graph.constants)
    if (c < 0 || static_cast<size_t>(c) >= file.constants.size())
      damaged("a constant that is not there");
  graph.program = in.program(number);
  for (const Node& node : graph.program.nodes) {
    if (node.kind != Node::Kind::Constant) continue;
    if (node.index < 0 || static_cast<size_t>(node.index) >= graph.constants.size())
      damaged("a constant that is not there");
  }
  return graph;
}

void check_graphs(const AotiFile& file) {
  const auto count = static_cast<int32_t>(file.graphs.size());
  if (count == 0 || file.graphs[0].program.inputs != static_cast<int64_t>(file.inputs.size()))
    damaged("it has another number of inputs");
  for (const AotiGraph& graph : file.graphs)
    for (const Node& node : graph.program.nodes)
      for (const int32_t g : node.graphs)
        if (g >= count || graph.planned) damaged("a graph that is not there");
  size_t folded = 0;
  for (const AotiConstant& constant : file.constants) folded += constant.folded;
  if (file.fold < -1 || file.fold >= count || (file.fold < 0 && folded > 0))
    damaged("a graph that is not there");
  if (file.fold < 0) return;
  const AotiGraph& fold = file.graphs[static_cast<size_t>(file.fold)];
  if (fold.program.inputs != 0 || fold.program.outputs.size() != folded)
    damaged("constants that nothing computes");
  for (const int32_t c : fold.constants)
    if (file.constants[static_cast<size_t>(c)].folded) damaged("a constant made of itself");
}

} // namespace

uint64_t aoti_checksum(const void* data, size_t size) {
  // Four lanes, each of which a word enters by steps that can be undone: one changed word changes
  // its lane for good.
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15u;
  uint64_t lanes[4] = {1, 2, 3, 4};
  const char* at = static_cast<const char*>(data);
  const auto word = [&](uint64_t& lane, const char* from, size_t bytes) {
    uint64_t w = 0;
    std::memcpy(&w, from, bytes);
    lane = (lane ^ w) * kFactor;
    lane ^= lane >> 29;
  };
  size_t left = size;
  for (; left >= 32; left -= 32, at += 32)
    for (size_t k = 0; k < 4; ++k) word(lanes[k], at + 8 * k, 8);
  for (size_t k = 0; left > 0; k = (k + 1) % 4) {
    const size_t bytes = std::min<size_t>(left, 8);
    word(lanes[k], at, bytes);
    left -= bytes;
    at += bytes;
  }
  uint64_t all = size * kFactor;
  for (const uint64_t lane : lanes) {
    all = (all ^ lane) * kFactor;
    all ^= all >> 32;
  }
  return all;
}

std::string encode_program(const Program& program) {
  Writer out;
  out.number(static_cast<uint32_t>(program.inputs));
  out.list(program.nodes, [&](const Node& n) { out.node(n); });
  out.list(program.outputs, [&](const Arg& a) { out.arg(a); });
  return std::move(out.out);
}

AotiFile read_aoti(std::string_view bytes) {
  constexpr size_t kHead = kMagic.size() + sizeof(uint64_t);
  if (bytes.size() < kHead || bytes.substr(0, kMagic.size()) != kMagic)
    damaged("it is not one, or of another version of the library");
  const std::string_view body = bytes.substr(kHead);
  if (Reader(bytes.substr(kMagic.size())).number<uint64_t>() !=
      aoti_checksum(body.data(), body.size()))
    damaged("its checksum does not fit");
  Reader in(body);
  AotiFile file;
  for (size_t i = 0, n = in.length(8); i < n; ++i) {
    const std::string key = in.text();
    file.metadata[key] = in.text();
  }
  file.in_spec = in.text();
  file.out_spec = in.text();
  file.device = at::Device(in.flag() ? at::kCUDA : at::kCPU);
  file.symbols = in.list<AotiSymbol>(20, [&] {
    AotiSymbol symbol;
    symbol.name = in.text();
    symbol.least = in.number<int64_t>();
    symbol.most = in.number<int64_t>();
    return symbol;
  });
  file.inputs = in.list<AotiInput>(5, [&] { return read_input(in, file.symbols.size()); });
  file.constants = in.list<AotiConstant>(40, [&] { return read_constant(in); });
  file.fold = in.number<int32_t>();
  const size_t graphs = in.length(8);
  for (size_t i = 0; i < graphs; ++i)
    file.graphs.push_back(read_graph(in, static_cast<int32_t>(i), file));
  if (!in.ends()) damaged("something follows its end");
  check_graphs(file);
  return file;
}

} // namespace torch::inductor
