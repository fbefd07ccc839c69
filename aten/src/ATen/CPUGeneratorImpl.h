// The CPU's random generator as the library sees it: the engine behind the GeneratorImpl interface,
// and the default one that operators use when none is given.
#pragma once
#include <ATen/native/random/engine/Mt19937.h>
#include <c10/core/Generator.h>

namespace at {

class TORCH_API CPUGeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit CPUGeneratorImpl(uint64_t seed = c10::kDefaultSeed);

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  std::vector<uint8_t> state() const override;
  void set_state(const uint8_t* bytes, size_t size) override;
  c10::intrusive_ptr<c10::GeneratorImpl> clone() const override;

  // Whoever draws holds `mutex`.
  native::random::Mt19937& engine() { return engine_; }

 private:
  native::random::Mt19937 engine_;
};

namespace detail {
// The generator of operators that are given none.
TORCH_API const c10::Generator& getDefaultCPUGenerator();
TORCH_API c10::Generator createCPUGenerator(uint64_t seed = c10::kDefaultSeed);
} // namespace detail

} // namespace at
