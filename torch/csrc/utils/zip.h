// Zip files without compression, as torch.save writes them: each record's data starts on a multiple
// of 64 bytes, so that a reader may map it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <c10/macros/Macros.h>

namespace torch::serialize {

class TORCH_API ZipWriter {
 public:
  void add(const std::string& name, std::string_view data);
  // The whole file; the writer is empty afterwards.
  std::string finish();

 private:
  struct Record {
    std::string name;
    uint32_t crc;
    uint64_t size, offset;
  };
  std::string bytes_;
  std::vector<Record> records_;
};

// Reads the records of a file in memory: stored ones, and those packed by deflate. Throws Error
// where the file is not whole. One thread at a time may read.
class TORCH_API ZipReader {
 public:
  explicit ZipReader(std::string_view file);
  // The record whose name ends with "/`name`" (files have one folder at their top).
  std::string_view get(const std::string& name) const;
  bool has(const std::string& name) const { return records_.count(name) != 0; }
  std::vector<std::string> names() const;

 private:
  struct Record {
    std::string_view data;
    uint64_t size;
    bool packed;
  };
  std::map<std::string, Record> records_;
  mutable std::map<std::string, std::string> unpacked_;
};

} // namespace torch::serialize
