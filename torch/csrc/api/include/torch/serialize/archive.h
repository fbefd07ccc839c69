// Archives: trees of named tensors and values that modules and optimizers save themselves into.
//
// A file is a zip file as Python's torch.save writes it, holding nested dictionaries: torch.load
// reads it in Python, and a state_dict saved in Python loads into a module here.
#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace torch {
using at::IValue;
using at::Tensor;

namespace serialize {

struct ArchiveNode;

class TORCH_API OutputArchive {
 public:
  OutputArchive();
  OutputArchive(OutputArchive&&) noexcept;
  OutputArchive& operator=(OutputArchive&&) noexcept;
  ~OutputArchive();

  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  void write(const std::string& key, const IValue& value);
  void write(const std::string& key, OutputArchive& nested_archive);
  void save_to(const std::string& filename);
  void save_to(std::ostream& stream);
  void save_to(const std::function<size_t(const void*, size_t)>& writer);
  template <class... Args> void operator()(Args&&... args) { write(std::forward<Args>(args)...); }

 private:
  std::shared_ptr<ArchiveNode> node_;
};

class TORCH_API InputArchive {
 public:
  InputArchive();
  InputArchive(InputArchive&&) noexcept;
  InputArchive& operator=(InputArchive&&) noexcept;
  ~InputArchive();

  // read() raises for a key that is not there, try_read() returns false. A tensor that has memory
  // already keeps it and takes the values; one that has none takes the tensor read.
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  void read(const std::string& key, IValue& value);
  bool try_read(const std::string& key, IValue& value);
  void read(const std::string& key, InputArchive& archive);
  bool try_read(const std::string& key, InputArchive& archive);
  void load_from(const std::string& filename, std::optional<at::Device> device = std::nullopt);
  void load_from(std::istream& stream, std::optional<at::Device> device = std::nullopt);
  void load_from(const char* data, size_t size, std::optional<at::Device> device = std::nullopt);
  // `read_func(position, buffer, count)` returns how many bytes it gave.
  void load_from(const std::function<size_t(uint64_t, void*, size_t)>& read_func,
                 const std::function<size_t()>& size_func,
                 std::optional<at::Device> device = std::nullopt);
  std::vector<std::string> keys();
  template <class... Args> void operator()(Args&&... args) { read(std::forward<Args>(args)...); }

 private:
  std::shared_ptr<ArchiveNode> node_;
  std::string path_; // of this archive in the file, for messages
};

} // namespace serialize
} // namespace torch
