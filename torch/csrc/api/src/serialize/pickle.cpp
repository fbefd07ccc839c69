// Writing and reading pickles.
#include <torch/csrc/api/src/serialize/pickle.h>

#include <ATen/core/EmptyTensor.h>
#include <torch/types.h>

#include <cstring>
#include <unordered_map>

namespace torch::serialize {
namespace {

// The class of torch that stands for a dtype in a file.
struct StorageName {
  at::ScalarType dtype;
  const char* name;
};
constexpr StorageName kStorages[] = {
    {at::kByte, "ByteStorage"},
    {at::kChar, "CharStorage"},
    {at::kShort, "ShortStorage"},
    {at::kInt, "IntStorage"},
    {at::kLong, "LongStorage"},
    {at::kHalf, "HalfStorage"},
    {at::kFloat, "FloatStorage"},
    {at::kDouble, "DoubleStorage"},
    {at::kBool, "BoolStorage"},
    {at::kBFloat16, "BFloat16Storage"},
    {at::kComplexFloat, "ComplexFloatStorage"},
    {at::kComplexDouble, "ComplexDoubleStorage"},
};

} // namespace

// ---- writing
void PickleWriter::text(std::string_view value) {
  out_ += 'X';
  for (int i = 0; i < 4; ++i) out_ += char(value.size() >> (8 * i));
  out_.append(value.data(), value.size());
}
void PickleWriter::integer(int64_t value) {
  const bool small = value >= INT32_MIN && value <= INT32_MAX;
  out_ += small ? std::string("J") : std::string("\x8a\x08");
  for (int i = 0; i < (small ? 4 : 8); ++i) out_ += char(uint64_t(value) >> (8 * i));
}
void PickleWriter::real(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  out_ += 'G';
  for (int i = 7; i >= 0; --i) out_ += char(bits >> (8 * i));
}
void PickleWriter::global(const char* module, const char* name) {
  out_ += 'c';
  out_ += module;
  out_ += '\n';
  out_ += name;
  out_ += '\n';
}
void PickleWriter::tuple_of(at::IntArrayRef values) {
  out_ += '(';
  for (const int64_t v : values) integer(v);
  out_ += 't';
}
void PickleWriter::tensor(const at::Tensor& given) {
  TORCH_CHECK(!given.key_set().has(at::DispatchKey::ZeroTensor),
              "ZeroTensor is not serializable, please file an issue if required.");
  at::Tensor tensor = given.detach();
  if (tensor.is_conj()) tensor = tensor.resolve_conj();
  if (tensor.is_neg()) tensor = tensor.resolve_neg();
  if (!tensor.is_contiguous() || tensor.storage_offset() != 0 ||
      tensor.storage()->nbytes() != tensor.nbytes())
    tensor = tensor.clone(at::MemoryFormat::Contiguous);
  const char* storage = nullptr;
  for (const StorageName& s : kStorages)
    if (s.dtype == tensor.scalar_type()) storage = s.name;
  TORCH_CHECK_NOT_IMPLEMENTED(storage, "torch::save: tensors of dtype ", tensor.scalar_type(),
                              " are not implemented");
  global("torch._utils", "_rebuild_tensor_v2");
  out_ += "((";
  text("storage");
  global("torch", storage);
  text(store_(tensor));
  text("cpu");
  integer(tensor.numel());
  out_ += "tQ";
  integer(0);
  tuple_of(tensor.sizes());
  tuple_of(tensor.strides());
  out_ += given.requires_grad() ? '\x88' : '\x89';
  global("collections", "OrderedDict");
  out_ += ")RtR";
}
size_t PickleWriter::remember() {
  const size_t place = remembered_++;
  out_ += 'r';
  for (int i = 0; i < 4; ++i) out_ += char(place >> (8 * i));
  return place;
}
void PickleWriter::recall(size_t place) {
  out_ += 'j';
  for (int i = 0; i < 4; ++i) out_ += char(place >> (8 * i));
}
void PickleWriter::value(const at::IValue& v) {
  using Tag = at::IValue::Tag;
  if (v.tag > Tag::String && other_ && other_(v)) return;
  const auto list = [&](const auto& values) {
    out_ += "](";
    for (const auto& each : values) value(at::IValue(each));
    out_ += 'e';
  };
  switch (v.tag) {
  case Tag::None:
    out_ += 'N';
    break;
  case Tag::Bool:
    out_ += v.toBool() ? '\x88' : '\x89';
    break;
  case Tag::Int:
    integer(v.toInt());
    break;
  case Tag::Double:
    real(v.toDouble());
    break;
  case Tag::String:
    text(v.toStringRef());
    break;
  case Tag::Tensor:
    tensor(v.toTensor());
    break;
  case Tag::IntList:
    list(v.toIntList());
    break;
  case Tag::DoubleList:
    list(v.toDoubleList());
    break;
  case Tag::TensorList:
    list(v.toTensorList());
    break;
  case Tag::List:
    list(v.toListRef());
    break;
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, "archives: values of kind ", v.kind(),
                                " are not implemented");
  }
}

// ---- reading
namespace {
using Kind = Pickled::Kind;

class Unpickler {
 public:
  Unpickler(std::string_view bytes, const std::function<at::Tensor(const Pickled&)>& load,
            Objects objects)
      : bytes_(bytes), load_(load), objects_(objects) {}

  PickledPtr run() {
    while (true) {
      const uint8_t op = uint8_t(take(1)[0]);
      if (op == '.') return pop();
      step(op);
    }
  }

 private:
  std::string_view take(size_t count) {
    TORCH_CHECK(count <= bytes_.size() - at_, "the pickle in the archive is cut short");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  uint64_t number(size_t count) {
    uint64_t out = 0;
    const std::string_view bytes = take(count);
    for (size_t i = 0; i < count; ++i) out |= uint64_t(uint8_t(bytes[i])) << (8 * i);
    return out;
  }
  std::string line() {
    const size_t end = bytes_.find('\n', at_);
    TORCH_CHECK(end != std::string_view::npos, "the pickle in the archive is cut short");
    const std::string out(bytes_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }
  PickledPtr make(Kind kind) {
    auto out = std::make_shared<Pickled>();
    out->kind = kind;
    return out;
  }
  void push(PickledPtr value) { stack_.push_back(std::move(value)); }
  PickledPtr pop() {
    TORCH_CHECK(!stack_.empty(), "the pickle in the archive is damaged");
    PickledPtr out = std::move(stack_.back());
    stack_.pop_back();
    return out;
  }
  Pickled& top(Kind kind) {
    TORCH_CHECK(!stack_.empty() && stack_.back()->kind == kind,
                "the pickle in the archive is damaged");
    return *stack_.back();
  }
  std::vector<PickledPtr> pop_to_mark() {
    TORCH_CHECK(!marks_.empty() && marks_.back() <= stack_.size(),
                "the pickle in the archive is damaged");
    const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickledPtr> out(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return out;
  }
  void push_integer(int64_t value) {
    PickledPtr out = make(Kind::Int);
    out->number = value;
    push(std::move(out));
  }
  void push_text(size_t size) {
    PickledPtr out = make(Kind::String);
    out->text = std::string(take(size));
    push(std::move(out));
  }
  void push_tuple(size_t count) {
    PickledPtr out = make(Kind::Tuple);
    out->items.resize(count);
    for (size_t i = count; i-- > 0;) out->items[i] = pop();
    push(std::move(out));
  }
  void push_global(std::string name) {
    PickledPtr out = make(Kind::Global);
    out->text = std::move(name);
    push(std::move(out));
  }
  void remember(uint64_t slot) {
    TORCH_CHECK(!stack_.empty(), "the pickle in the archive is damaged");
    memo_[slot] = stack_.back();
  }
  void recall(uint64_t slot) {
    const auto found = memo_.find(slot);
    TORCH_CHECK(found != memo_.end(), "the pickle in the archive is damaged");
    push(found->second);
  }

  void step(uint8_t op);
  bool container(uint8_t op);
  void storage();
  void reduce();
  bool script_value(const std::string& name, const PickledPtr& arguments);
  void instance();
  void build();
  static std::vector<int64_t> integers(const Pickled& tuple) {
    std::vector<int64_t> out;
    for (const PickledPtr& item : tuple.items) {
      TORCH_CHECK(item->kind == Kind::Int, "the archive has a tensor with a strange shape");
      out.push_back(item->number);
    }
    return out;
  }

  std::string_view bytes_;
  const std::function<at::Tensor(const Pickled&)>& load_;
  const Objects objects_;
  size_t at_ = 0;
  std::vector<PickledPtr> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickledPtr> memo_;
};

// ('storage', class, record, device, elements) -> a storage.
void Unpickler::storage() {
  const PickledPtr id = pop();
  TORCH_CHECK(id->kind == Kind::Tuple && id->items.size() == 5 &&
                  id->items[1]->kind == Kind::Global && id->items[2]->kind == Kind::String &&
                  id->items[4]->kind == Kind::Int,
              "the archive names a storage in an unknown way");
  PickledPtr out = make(Kind::Storage);
  bool known = false;
  for (const StorageName& s : kStorages)
    if (id->items[1]->text == std::string("torch.") + s.name) out->dtype = s.dtype, known = true;
  TORCH_CHECK_NOT_IMPLEMENTED(known, "archives: storages of class ", id->items[1]->text,
                              " are not implemented");
  out->text = id->items[2]->text;
  out->number = id->items[4]->number;
  push(std::move(out));
}

// What only archives of scripted code ask for. False for anything else.
bool Unpickler::script_value(const std::string& name, const PickledPtr& arguments) {
  if (objects_ == Objects::Refused) return false;
  constexpr std::string_view kMakers = "torch.jit._pickle.", kOwn = "__torch__";
  if (name.compare(0, kOwn.size(), kOwn) == 0) {
    PickledPtr out = make(Kind::Object);
    out->text = name;
    out->items.push_back(arguments);
    push(std::move(out));
    return true;
  }
  if (name.compare(0, kMakers.size(), kMakers) != 0 && name != "torch.device") return false;
  TORCH_CHECK(!arguments->items.empty(), "the archive calls ", name, " without arguments");
  push(arguments->items[0]); // a list that is typed already, or the text of a device
  return true;
}
void Unpickler::instance() {
  const PickledPtr arguments = pop(), cls = pop();
  TORCH_CHECK(objects_ == Objects::Allowed && cls->kind == Kind::Global,
              "archives hold tensors, numbers, texts, lists and dictionaries; this one makes an "
              "instance of ",
              cls->text);
  PickledPtr out = make(Kind::Object);
  out->text = cls->text;
  out->items.push_back(arguments);
  push(std::move(out));
}
// State for an instance; attributes of a dictionary (the metadata of a state_dict) are dropped.
void Unpickler::build() {
  PickledPtr state = pop();
  TORCH_CHECK(!stack_.empty(), "the pickle in the archive is damaged");
  if (stack_.back()->kind == Kind::Object) stack_.back()->items.assign(1, std::move(state));
}

void Unpickler::reduce() {
  const PickledPtr arguments = pop(), function = pop();
  TORCH_CHECK(arguments->kind == Kind::Tuple && function->kind == Kind::Global,
              "the pickle in the archive is damaged");
  const std::string& name = function->text;
  if (script_value(name, arguments)) return;
  if (name == "collections.OrderedDict") return push(make(Kind::Dict));
  if (name == "torch._utils._rebuild_parameter") {
    TORCH_CHECK(!arguments->items.empty(), "the archive has a damaged parameter");
    return push(arguments->items[0]);
  }
  TORCH_CHECK(name == "torch._utils._rebuild_tensor_v2",
              "archives hold tensors, numbers, texts, "
              "lists and dictionaries; this one asks for ",
              name);
  const auto& a = arguments->items;
  TORCH_CHECK(a.size() >= 5 && a[0]->kind == Kind::Storage && a[1]->kind == Kind::Int &&
                  a[2]->kind == Kind::Tuple && a[3]->kind == Kind::Tuple,
              "the archive has a damaged tensor");
  const at::Tensor whole = load_(*a[0]);
  PickledPtr out = make(Kind::Tensor);
  out->tensor = at::detail::checked_tensor(whole.storage(), whole.scalar_type(), integers(*a[2]),
                                           integers(*a[3]), a[1]->number);
  if (a[4]->number != 0) out->tensor.set_requires_grad(true);
  push(std::move(out));
}

// The operations that fill lists, tuples and dictionaries. False for any other.
bool Unpickler::container(uint8_t op) {
  switch (op) {
  case 't': {
    PickledPtr out = make(Kind::Tuple);
    out->items = pop_to_mark();
    push(std::move(out));
    break;
  }
  case 0x85: // TUPLE1, TUPLE2, TUPLE3
  case 0x86:
  case 0x87:
    push_tuple(op - 0x84);
    break;
  case 'a': {
    PickledPtr item = pop();
    top(Kind::List).items.push_back(std::move(item));
    break;
  }
  case 'e': {
    std::vector<PickledPtr> items = pop_to_mark();
    auto& list = top(Kind::List).items;
    list.insert(list.end(), items.begin(), items.end());
    break;
  }
  case 's': {
    PickledPtr value = pop(), key = pop();
    auto& dict = top(Kind::Dict).items;
    dict.push_back(std::move(key));
    dict.push_back(std::move(value));
    break;
  }
  case 'u': {
    std::vector<PickledPtr> items = pop_to_mark();
    TORCH_CHECK(items.size() % 2 == 0, "the pickle in the archive is damaged");
    auto& dict = top(Kind::Dict).items;
    dict.insert(dict.end(), items.begin(), items.end());
    break;
  }
  default:
    return false;
  }
  return true;
}

void Unpickler::step(uint8_t op) {
  if (container(op)) return;
  switch (op) {
  case 0x80: // PROTO
    number(1);
    break;
  case 0x95: // FRAME
    number(8);
    break;
  case '}':
    push(make(Kind::Dict));
    break;
  case ']':
    push(make(Kind::List));
    break;
  case ')':
    push(make(Kind::Tuple));
    break;
  case '(':
    marks_.push_back(stack_.size());
    break;
  case 'q':
  case 'r':
    remember(number(op == 'q' ? 1 : 4));
    break;
  case 0x94: // MEMOIZE
    remember(memo_.size());
    break;
  case 'h':
  case 'j':
    recall(number(op == 'h' ? 1 : 4));
    break;
  case 'X':
    push_text(number(4));
    break;
  case 0x8c: // SHORT_BINUNICODE
    push_text(number(1));
    break;
  case 'J':
    push_integer(int32_t(number(4)));
    break;
  case 'K':
    push_integer(int64_t(number(1)));
    break;
  case 'M':
    push_integer(int64_t(number(2)));
    break;
  case 0x8a: { // LONG1
    const size_t size = number(1);
    TORCH_CHECK(size <= 8, "the archive has an integer of more than 64 bits");
    const uint64_t bits = number(size);
    const int shift = 64 - 8 * int(size);
    push_integer(size == 0 ? 0 : int64_t(bits << shift) >> shift);
    break;
  }
  case 'G': {
    uint64_t bits = 0;
    for (const char byte : take(8)) bits = bits << 8 | uint8_t(byte);
    PickledPtr out = make(Kind::Double);
    std::memcpy(&out->real, &bits, sizeof bits);
    push(std::move(out));
    break;
  }
  case 0x88:   // NEWTRUE
  case 0x89: { // NEWFALSE
    PickledPtr out = make(Kind::Bool);
    out->number = op == 0x88;
    push(std::move(out));
    break;
  }
  case 'N':
    push(make(Kind::None));
    break;
  case 'c': {
    const std::string module = line();
    push_global(module + "." + line());
    break;
  }
  case 0x93: { // STACK_GLOBAL
    const PickledPtr name = pop(), module = pop();
    push_global(module->text + "." + name->text);
    break;
  }
  case 'Q':
    storage();
    break;
  case 'R':
    reduce();
    break;
  case 0x81: // NEWOBJ
    instance();
    break;
  case 'b':
    build();
    break;
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, "archives: the pickle has an operation (", int(op),
                                ") that tensors do not need");
  }
}
} // namespace

PickledPtr read_pickle(std::string_view bytes,
                       const std::function<at::Tensor(const Pickled& storage)>& load,
                       Objects objects) {
  return Unpickler(bytes, load, objects).run();
}

} // namespace torch::serialize
