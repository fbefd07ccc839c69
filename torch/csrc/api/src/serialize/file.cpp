// Files of pickled values: a zip archive with a pickle and the bytes of each storage. Also values
// alone: torch::pickle_save and the pickles of torch::jit.
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/serialize.h>

#include <cstring>
#include <unordered_map>

#include <ATen/core/ivalue.h>
#include <torch/csrc/api/src/serialize/pickle.h>
#include <torch/csrc/utils/zip.h>

namespace torch::serialize {

std::string write_file(const std::function<void(PickleWriter&)>& write) {
  ZipWriter zip;
  std::vector<Tensor> stored;
  PickleWriter pickle(
      [&](const Tensor& tensor) {
        stored.push_back(tensor.cpu());
        return std::to_string(stored.size() - 1);
      },
      [&](const IValue& value) { return write_container(pickle, value); });
  write(pickle);
  zip.add("archive/data.pkl", pickle.finish());
  zip.add("archive/byteorder", "little");
  for (size_t i = 0; i < stored.size(); ++i) {
    const Tensor& t = stored[i];
    const char* data = t.numel() == 0 ? "" : static_cast<const char*>(t.const_data_ptr());
    zip.add("archive/data/" + std::to_string(i), std::string_view(data, t.nbytes()));
  }
  zip.add("archive/version", "3\n");
  return zip.finish();
}

PickledPtr read_record(const ZipReader& zip, const std::string& record, const std::string& folder,
                       std::optional<at::Device> device, Objects objects) {
  std::unordered_map<std::string, Tensor> loaded;
  return read_pickle(
      zip.get(record),
      [&](const Pickled& storage) -> Tensor {
        Tensor& whole = loaded[storage.text];
        if (whole.defined()) return whole;
        const std::string_view bytes = zip.get(folder + "/" + storage.text);
        const int64_t itemsize = c10::elementSize(storage.dtype);
        TORCH_CHECK(storage.number >= 0 && uint64_t(storage.number) <= bytes.size() / itemsize,
                    "the archive says that a storage has ", storage.number, " elements, but holds ",
                    bytes.size(), " bytes of it");
        whole = at::empty({storage.number}, storage.dtype);
        if (storage.number != 0)
          std::memcpy(whole.data_ptr(), bytes.data(), size_t(storage.number * itemsize));
        if (device) whole = whole.to(*device);
        return whole;
      },
      objects);
}

PickledPtr read_file(std::string_view file, std::optional<at::Device> device) {
  const ZipReader zip(file);
  TORCH_CHECK(!zip.has("byteorder") || zip.get("byteorder") == "little",
              "archives of machines with another byte order are not supported");
  const bool is_module = zip.has("constants.pkl");
  return read_record(zip, "data.pkl", "data", device,
                     is_module ? Objects::Allowed : Objects::Refused);
}

// Tuples and dictionaries of C++ programs. False for any other value.
bool write_container(PickleWriter& pickle, const IValue& value) {
  if (const auto* tuple = at::ivalue::opaque<at::TupleValue>(value)) {
    pickle.raw("(");
    for (const IValue& item : tuple->items) pickle.value(item);
    pickle.raw("t");
  } else if (const auto* dict = at::ivalue::opaque<at::DictValue>(value)) {
    pickle.begin_dict();
    for (const auto& [key, item] : dict->entries) {
      pickle.value(key);
      pickle.value(item);
    }
    pickle.end_dict();
  } else {
    return false;
  }
  return true;
}

namespace {

using Kind = Pickled::Kind;

template <class T, class Read>
IValue list_with(const std::vector<PickledPtr>& items, const Read& read) {
  std::vector<T> list;
  list.reserve(items.size());
  for (const PickledPtr& item : items) list.push_back(read(*item));
  return IValue(std::move(list));
}

} // namespace

IValue list_of(const std::vector<PickledPtr>& items,
               const std::function<IValue(const Pickled&)>& read) {
  const auto all = [&](Kind kind) {
    for (const PickledPtr& item : items)
      if (item->kind != kind) return false;
    return !items.empty();
  };
  if (all(Kind::Tensor)) return list_with<Tensor>(items, [](const Pickled& p) { return p.tensor; });
  if (all(Kind::Int)) return list_with<int64_t>(items, [](const Pickled& p) { return p.number; });
  if (all(Kind::Double)) return list_with<double>(items, [](const Pickled& p) { return p.real; });
  return list_with<IValue>(items, read);
}

namespace {

IValue ivalue_of(const Pickled& p, int depth = 0) {
  TORCH_CHECK(depth < 500, "the pickled value is nested too deep");
  switch (p.kind) {
  case Kind::None:
    return IValue();
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
  case Kind::Tuple: {
    std::vector<IValue> items;
    for (const PickledPtr& item : p.items) items.push_back(ivalue_of(*item, depth + 1));
    return at::ivalue::make_tuple(std::move(items));
  }
  case Kind::Dict: {
    auto out = c10::make_intrusive<at::DictValue>();
    for (size_t i = 0; i + 1 < p.items.size(); i += 2)
      out->insert(ivalue_of(*p.items[i], depth + 1), ivalue_of(*p.items[i + 1], depth + 1), true);
    return IValue::opaque(std::move(out));
  }
  case Kind::List:
    return list_of(p.items, [&](const Pickled& q) { return ivalue_of(q, depth + 1); });
  default:
    throw c10::Error("pickle_load: the file has a value that a C++ program cannot hold; numbers, "
                     "texts, tensors, lists, tuples and dictionaries can be read");
  }
}

} // namespace
} // namespace torch::serialize

namespace torch {

std::vector<char> pickle_save(const IValue& value) {
  const std::string file =
      serialize::write_file([&](serialize::PickleWriter& pickle) { pickle.value(value); });
  return {file.begin(), file.end()};
}
IValue pickle_load(const std::vector<char>& data) {
  return serialize::ivalue_of(
      *serialize::read_file(std::string_view(data.data(), data.size()), std::nullopt));
}

namespace jit {

std::vector<char> pickle(const IValue& value, std::vector<at::Tensor>* tensor_table) {
  serialize::PickleWriter pickle(
      [&](const at::Tensor& tensor) {
        TORCH_CHECK(tensor_table != nullptr,
                    "pickle: a value with tensors needs a table to put them in");
        tensor_table->push_back(tensor);
        return std::to_string(tensor_table->size() - 1);
      },
      [&](const IValue& each) { return serialize::write_container(pickle, each); });
  pickle.value(value);
  const std::string bytes = pickle.finish();
  return {bytes.begin(), bytes.end()};
}
IValue unpickle(const char* data, size_t size, at::ArrayRef<at::Tensor> tensor_table) {
  const auto storage_of = [&](const serialize::Pickled& storage) -> at::Tensor {
    const size_t place = std::strtoull(storage.text.c_str(), nullptr, 10);
    TORCH_CHECK(place < tensor_table.size(), "unpickle: the table has no tensor ", storage.text);
    return tensor_table[place].reshape({-1});
  };
  return serialize::ivalue_of(*serialize::read_pickle(std::string_view(data, size), storage_of));
}

} // namespace jit
} // namespace torch
