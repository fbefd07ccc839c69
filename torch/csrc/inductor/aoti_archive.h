// The archive that compiled models are kept in: a zip file with a folder for each of them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/inductor/aoti_model.h>

namespace torch::serialize {
class ZipReader;
}

namespace torch::inductor {

class TORCH_API AotiArchive {
 public:
  // Reads the whole file: what was checked is what is run, whatever becomes of the file.
  explicit AotiArchive(const std::string& path);
  ~AotiArchive();

  std::vector<std::string> models() const;
  AotiFile model(const std::string& name) const;
  AotiBytes weights(const std::string& name) const;

 private:
  std::shared_ptr<void> keeper_;
  std::unique_ptr<serialize::ZipReader> zip_;
};

} // namespace torch::inductor
