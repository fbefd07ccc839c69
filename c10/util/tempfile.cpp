// Temporary files by mkstemp.
#include <c10/util/Exception.h>
#include <c10/util/tempfile.h>

#include <unistd.h>

#include <cstdlib>

namespace c10 {

TempFile::~TempFile() {
  if (fd >= 0) ::close(fd);
  if (!name.empty()) ::unlink(name.c_str());
}
std::optional<TempFile> try_make_tempfile(std::string name_prefix) {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder ? folder : "/tmp") + "/" + name_prefix + "XXXXXX";
  const int fd = ::mkstemp(path.data());
  if (fd < 0) return std::nullopt;
  return std::optional<TempFile>(std::in_place, std::move(path), fd);
}
TempFile make_tempfile(std::string name_prefix) {
  std::optional<TempFile> made = try_make_tempfile(std::move(name_prefix));
  TORCH_CHECK(made, "Error generating temporary file");
  return std::move(*made);
}

} // namespace c10
