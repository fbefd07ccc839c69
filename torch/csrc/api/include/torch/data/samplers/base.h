// The interface of samplers, and archives for them.
#pragma once
#include <optional>
#include <type_traits>
#include <vector>

#include <torch/serialize.h>

namespace torch::data::samplers {

template <class BatchRequest = std::vector<size_t>> class Sampler {
 public:
  using BatchRequestType = BatchRequest;
  virtual ~Sampler() = default;
  // Starts a new epoch, of `new_size` examples where it is given.
  virtual void reset(std::optional<size_t> new_size) = 0;
  // At most `batch_size` examples; nothing when the epoch is over.
  virtual std::optional<BatchRequest> next(size_t batch_size) = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

template <class BatchRequest> serialize::OutputArchive&
operator<<(serialize::OutputArchive& archive, const Sampler<BatchRequest>& sampler) {
  sampler.save(archive);
  return archive;
}
template <class BatchRequest> serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                                                  Sampler<BatchRequest>& sampler) {
  sampler.load(archive);
  return archive;
}

} // namespace torch::data::samplers
