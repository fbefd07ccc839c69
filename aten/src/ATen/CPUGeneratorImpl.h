// The generator of the CPU: MT19937 with PyTorch's streams.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/native/random/engine/Mt19937.h>

namespace at {

// Not final: generators of other devices whose memory the host can reach derive from it.
class TORCH_API CPUGeneratorImpl : public c10::GeneratorImpl {
 public:
  explicit CPUGeneratorImpl(uint64_t seed = c10::kDefaultSeed);
  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  std::vector<uint8_t> state() const override;
  void set_state(const uint8_t* bytes, size_t size) override;
  c10::intrusive_ptr<c10::GeneratorImpl> clone() const override;

  native::random::Mt19937 engine;

 protected:
  // For generators of another device whose memory the host can reach.
  explicit CPUGeneratorImpl(c10::Device device);
};

namespace detail {
// The generator used where none is given; seeded with the default seed at start.
TORCH_API const Generator& getDefaultCPUGenerator();
TORCH_API Generator createCPUGenerator(uint64_t seed = c10::kDefaultSeed);
} // namespace detail

// The given generator, or the default one; Error when it belongs to another device.
TORCH_API CPUGeneratorImpl& cpu_generator(const std::optional<Generator>& generator);

} // namespace at
