// The random numbers of a CUDA device: Philox, a function of (seed, offset, element), so that
// results depend neither on the GPU's size nor on the launch. The generator on the host is just
// the seed and the offset; kernels compute the rest.
#pragma once
#include <optional>

#include <ATen/cuda/device/Arguments.h>
#include <c10/core/Generator.h>

namespace at {

using device::PhiloxState;

class TORCH_API CUDAGeneratorImpl final : public c10::GeneratorImpl {
 public:
  static constexpr size_t kStateBytes = 16; // seed, then offset, as PyTorch has them

  explicit CUDAGeneratorImpl(c10::DeviceIndex device, uint64_t seed = c10::kDefaultSeed);
  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override;
  std::vector<uint8_t> state() const override;
  void set_state(const uint8_t* bytes, size_t size) override;
  c10::intrusive_ptr<c10::GeneratorImpl> clone() const override;

  uint64_t offset() const { return offset_; }
  void set_offset(uint64_t offset); // a multiple of 4
  // Sets `increment` numbers per element aside, rounded up to the four that Philox makes at a time,
  // and returns where they begin. The caller holds `mutex`.
  PhiloxState take(uint64_t increment);

 private:
  uint64_t seed_;
  uint64_t offset_ = 0;
};

namespace cuda {

// Of a device, or of the current one where the index is negative.
TORCH_API const c10::Generator& default_generator(c10::DeviceIndex device = -1);
// Seeds the default generators of all devices, also of those not used yet. Loads nothing.
TORCH_API void seed_all(uint64_t seed);
// Locks `generator`, or the default one of `device` where there is none, and takes from it. Error
// when the generator belongs to another device.
TORCH_API PhiloxState take_philox(const std::optional<c10::Generator>& generator,
                                  c10::Device device, uint64_t increment);

} // namespace cuda
} // namespace at
