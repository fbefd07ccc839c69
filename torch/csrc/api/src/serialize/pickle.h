// The part of Python's pickle language that files of tensors use: dictionaries, lists, tuples,
// numbers, texts and tensors. Nothing else is called or built while reading.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/IValue.h>

namespace torch::serialize {

// An object in a pickle.
struct Pickled {
  enum class Kind { None, Bool, Int, Double, String, List, Tuple, Dict, Global, Storage, Tensor };
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
  explicit PickleWriter(std::function<std::string(const at::Tensor&)> store)
      : store_(std::move(store)) {
    out_ = "\x80\x02";
  }
  void begin_dict() { out_ += "}("; }
  void end_dict() { out_ += "u"; }
  void text(std::string_view value);
  void value(const at::IValue& value);
  std::string finish() {
    out_ += '.';
    return std::move(out_);
  }

 private:
  void integer(int64_t value);
  void real(double value);
  void global(const char* module, const char* name);
  void tuple_of(at::IntArrayRef values);
  void tensor(const at::Tensor& tensor);
  std::function<std::string(const at::Tensor&)> store_;
  std::string out_;
};

// `load` gives the tensor of a whole storage by the name of its record.
PickledPtr read_pickle(std::string_view bytes,
                       const std::function<at::Tensor(const Pickled& storage)>& load);

} // namespace torch::serialize
