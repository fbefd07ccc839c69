// The part of Python's pickle language that files of tensors use: dictionaries, lists, tuples,
// numbers, texts and tensors. Nothing else is called or built while reading.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/IValue.h>

namespace torch::serialize {

class ZipReader; // see torch/csrc/utils/zip.h

// An object in a pickle.
struct Pickled {
  enum class Kind {
    None,
    Bool,
    Int,
    Double,
    String,
    List,
    Tuple,
    Dict,
    Global,
    Storage,
    Tensor,
    Object, // of the class `text`; its state is the only item
  };
  Kind kind = Kind::None;
  int64_t number = 0; // Int and Bool; elements of a Storage
  double real = 0;
  std::string text; // String; the name of a Global; the record of a Storage
  std::vector<std::shared_ptr<Pickled>> items; // of a Dict: key, value, key, value, ...
  at::Tensor tensor;
  at::ScalarType dtype = at::kFloat; // of a Storage
};
using PickledPtr = std::shared_ptr<Pickled>;

class PickleWriter {
 public:
  // `store` keeps a storage's bytes and returns the name of its record.
  // `other` is asked first about every value that is not a number, text or tensor.
  explicit PickleWriter(std::function<std::string(const at::Tensor&)> store,
                        std::function<bool(const at::IValue&)> other = nullptr)
      : store_(std::move(store)), other_(std::move(other)) {
    out_ = "\x80\x02";
  }
  void begin_dict() { out_ += "}("; }
  void end_dict() { out_ += "u"; }
  void text(std::string_view value);
  void value(const at::IValue& value);
  void global(const char* module, const char* name);
  void raw(std::string_view operations) { out_ += operations; }
  // Notes the value written last; recall() writes a reference to it.
  size_t remember();
  void recall(size_t place);
  std::string finish() {
    out_ += '.';
    return std::move(out_);
  }

 private:
  void integer(int64_t value);
  void real(double value);
  void tuple_of(at::IntArrayRef values);
  void tensor(const at::Tensor& tensor);
  std::function<std::string(const at::Tensor&)> store_;
  std::function<bool(const at::IValue&)> other_;
  std::string out_;
  size_t remembered_ = 0;
};

// Whether a pickle may hold instances of an archive's own classes. They are data: nothing is
// called.
enum class Objects { Refused, Allowed };

// `load` gives the tensor of a whole storage by the name of its record.
PickledPtr read_pickle(std::string_view bytes,
                       const std::function<at::Tensor(const Pickled& storage)>& load,
                       Objects objects = Objects::Refused);

// Writes tuples and dictionaries of C++ programs. False for any other value.
bool write_container(PickleWriter& pickle, const at::IValue& value);
// A list of one kind of numbers or of tensors where the items are that, else of what `read` gives.
at::IValue list_of(const std::vector<PickledPtr>& items,
                   const std::function<at::IValue(const Pickled&)>& read);
// What a pickle of a zip archive holds; the bytes of its storages are records of a folder.
PickledPtr read_record(const ZipReader& zip, const std::string& record, const std::string& folder,
                       std::optional<at::Device> device, Objects objects);
// A file as torch.save writes it, of what `write` puts into its pickle.
std::string write_file(const std::function<void(PickleWriter&)>& write);
// What such a file holds, or one that a C++ program of PyTorch saved: there it is an Object with
// attributes, whose class is of no interest.
PickledPtr read_file(std::string_view file, std::optional<at::Device> device);

} // namespace torch::serialize
