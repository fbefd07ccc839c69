// Archives: a tree of values in memory, a pickle of nested dictionaries in a zip file.
#include <torch/ordered_dict.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

#include <fstream>
#include <istream>
#include <ostream>

#include <torch/csrc/api/src/serialize/pickle.h>

namespace torch::serialize {

// A level of the tree: values and further levels, in the order they were written.
struct ArchiveNode {
  struct Entry {
    IValue value;
    std::shared_ptr<ArchiveNode> below;
  };
  OrderedDict<std::string, Entry> entries{"Key"};
};

namespace {

// ---- writing
void pickle_node(PickleWriter& pickle, const ArchiveNode& node) {
  pickle.begin_dict();
  for (const auto& item : node.entries) {
    pickle.text(item.key());
    if (item.value().below)
      pickle_node(pickle, *item.value().below);
    else
      pickle.value(item.value().value);
  }
  pickle.end_dict();
}
std::string file_of(const ArchiveNode& node) {
  return write_file([&](PickleWriter& pickle) { pickle_node(pickle, node); });
}

// ---- reading
IValue value_of(const Pickled& p) {
  using Kind = Pickled::Kind;
  switch (p.kind) {
  case Kind::Bool:
    return IValue(p.number != 0);
  case Kind::Int:
    return IValue(p.number);
  case Kind::Double:
    return IValue(p.real);
  case Kind::String:
    return IValue(p.text);
  case Kind::Tensor:
    return IValue(p.tensor);
  case Kind::List:
  case Kind::Tuple:
    if (p.items.empty()) return IValue(std::vector<Tensor>());
    return list_of(p.items, value_of);
  default:
    return IValue();
  }
}

// Puts a value at a path: a state_dict of Python has "layer.0.weight" where a module here has three
// levels.
void place(ArchiveNode& root, const std::string& path, ArchiveNode::Entry entry) {
  ArchiveNode* node = &root;
  size_t from = 0;
  for (size_t dot; (dot = path.find('.', from)) != std::string::npos; from = dot + 1) {
    const std::string name = path.substr(from, dot - from);
    if (!node->entries.contains(name))
      node->entries.insert(name, ArchiveNode::Entry{IValue(), std::make_shared<ArchiveNode>()});
    ArchiveNode::Entry& level = node->entries[name];
    if (!level.below) level.below = std::make_shared<ArchiveNode>();
    node = level.below.get();
  }
  const std::string name = path.substr(from);
  if (node->entries.contains(name))
    node->entries[name] = std::move(entry);
  else
    node->entries.insert(name, std::move(entry));
}

// A dictionary, or an object with a dictionary of attributes: PyTorch's C++ archives are modules.
bool is_level(const Pickled& p) {
  return p.kind == Pickled::Kind::Dict ||
         (p.kind == Pickled::Kind::Object && p.items[0]->kind == Pickled::Kind::Dict);
}
std::shared_ptr<ArchiveNode> node_of(const Pickled& level, int depth) {
  const Pickled& dict =
      is_level(level) && level.kind == Pickled::Kind::Object ? *level.items[0] : level;
  TORCH_CHECK(dict.kind == Pickled::Kind::Dict, "the archive does not hold a dictionary");
  TORCH_CHECK(depth < 500, "the archive is nested too deep");
  auto node = std::make_shared<ArchiveNode>();
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const Pickled& key = *dict.items[i];
    const std::string name = key.kind == Pickled::Kind::Int ? std::to_string(key.number) : key.text;
    const Pickled& value = *dict.items[i + 1];
    ArchiveNode::Entry entry;
    if (is_level(value))
      entry.below = node_of(value, depth + 1);
    else
      entry.value = value_of(value);
    place(*node, name, std::move(entry));
  }
  return node;
}

std::shared_ptr<ArchiveNode> parse(std::string_view file, std::optional<at::Device> device) {
  return node_of(*read_file(file, device), 0);
}

} // namespace

OutputArchive::OutputArchive() : node_(std::make_shared<ArchiveNode>()) {}
OutputArchive::OutputArchive(OutputArchive&&) noexcept = default;
OutputArchive& OutputArchive::operator=(OutputArchive&&) noexcept = default;
OutputArchive::~OutputArchive() = default;

void OutputArchive::write(const std::string& key, const Tensor& tensor, bool) {
  // A tensor that is not defined has nothing to save.
  if (tensor.defined()) node_->entries.insert(key, ArchiveNode::Entry{IValue(tensor), nullptr});
}
void OutputArchive::write(const std::string& key, const IValue& value) {
  node_->entries.insert(key, ArchiveNode::Entry{value, nullptr});
}
void OutputArchive::write(const std::string& key, OutputArchive& nested_archive) {
  node_->entries.insert(key, ArchiveNode::Entry{IValue(), nested_archive.node_});
}
void OutputArchive::save_to(const std::function<size_t(const void*, size_t)>& writer) {
  const std::string file = file_of(*node_);
  const size_t written = writer(file.data(), file.size());
  TORCH_CHECK(written == file.size(), "torch::save: only ", written, " of ", file.size(),
              " bytes were written");
}
void OutputArchive::save_to(std::ostream& stream) {
  save_to([&](const void* data, size_t size) {
    stream.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    return stream ? size : size_t(0);
  });
}
void OutputArchive::save_to(const std::string& filename) {
  std::ofstream stream(filename, std::ios::binary);
  TORCH_CHECK(stream, "torch::save: cannot open ", filename, " for writing");
  save_to(stream);
}

InputArchive::InputArchive() : node_(std::make_shared<ArchiveNode>()) {}
InputArchive::InputArchive(InputArchive&&) noexcept = default;
InputArchive& InputArchive::operator=(InputArchive&&) noexcept = default;
InputArchive::~InputArchive() = default;

bool InputArchive::try_read(const std::string& key, IValue& value) {
  const ArchiveNode::Entry* entry = node_->entries.find(key);
  if (!entry || entry->below) return false;
  value = entry->value;
  return true;
}
void InputArchive::read(const std::string& key, IValue& value) {
  TORCH_CHECK(try_read(key, value), "the archive", path_.empty() ? "" : " '" + path_ + "'",
              " does not have a field with name '", key, "'");
}
bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool) {
  IValue value;
  if (!try_read(key, value) || !value.isTensor()) return false;
  const Tensor read = value.toTensor();
  if (!tensor.defined()) {
    tensor = read;
    return true;
  }
  const NoGradGuard no_grad;
  if (tensor.device() != read.device() && !tensor.is_meta())
    tensor.set_data(read.to(tensor.device()));
  else
    tensor.set_data(read.detach());
  return true;
}
void InputArchive::read(const std::string& key, Tensor& tensor, bool is_buffer) {
  // What was not defined when it was saved is not in the file, and may be missing here too.
  if (try_read(key, tensor, is_buffer)) return;
  TORCH_CHECK(!tensor.defined(), "No such serialized tensor '",
              path_.empty() ? key : path_ + "." + key, "'");
}
bool InputArchive::try_read(const std::string& key, InputArchive& archive) {
  const ArchiveNode::Entry* entry = node_->entries.find(key);
  if (!entry || !entry->below) return false;
  archive.node_ = entry->below;
  archive.path_ = path_.empty() ? key : path_ + "." + key;
  return true;
}
void InputArchive::read(const std::string& key, InputArchive& archive) {
  TORCH_CHECK(try_read(key, archive), "No such serialized submodule: '",
              path_.empty() ? key : path_ + "." + key, "'");
}
std::vector<std::string> InputArchive::keys() { return node_->entries.keys(); }

void InputArchive::load_from(const char* data, size_t size, std::optional<at::Device> device) {
  node_ = parse(std::string_view(data, size), device);
  path_.clear();
}
void InputArchive::load_from(std::istream& stream, std::optional<at::Device> device) {
  std::string file;
  char buffer[65536];
  while (stream.read(buffer, sizeof buffer) || stream.gcount() > 0)
    file.append(buffer, static_cast<size_t>(stream.gcount()));
  // The end of the stream is expected, and the stream stays usable.
  stream.clear(stream.rdstate() & ~(std::ios::eofbit | std::ios::failbit));
  load_from(file.data(), file.size(), device);
}
void InputArchive::load_from(const std::string& filename, std::optional<at::Device> device) {
  std::ifstream stream(filename, std::ios::binary);
  TORCH_CHECK(stream, "torch::load: cannot open ", filename);
  load_from(stream, device);
}
void InputArchive::load_from(const std::function<size_t(uint64_t, void*, size_t)>& read_func,
                             const std::function<size_t()>& size_func,
                             std::optional<at::Device> device) {
  std::string file(size_func(), '\0');
  size_t at = 0;
  while (at < file.size()) {
    const size_t got = read_func(at, file.data() + at, file.size() - at);
    TORCH_CHECK(got > 0 && got <= file.size() - at, "torch::load: the source ended after ", at,
                " of ", file.size(), " bytes");
    at += got;
  }
  load_from(file.data(), file.size(), device);
}

} // namespace torch::serialize
