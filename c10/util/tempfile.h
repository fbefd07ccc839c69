// Temporary files that go when their object goes.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include <c10/macros/Macros.h>

namespace c10 {

struct C10_API TempFile {
  TempFile(std::string path, int descriptor) : name(std::move(path)), fd(descriptor) {}
  TempFile(TempFile&& o) noexcept : name(std::move(o.name)), fd(std::exchange(o.fd, -1)) {
    o.name.clear();
  }
  TempFile& operator=(TempFile&&) = delete;
  ~TempFile();
  std::string name;
  int fd;
};

// In the folder the environment names for such files; throws Error where none can be made.
C10_API TempFile make_tempfile(std::string name_prefix = "torch-file-");
C10_API std::optional<TempFile> try_make_tempfile(std::string name_prefix = "torch-file-");

} // namespace c10
