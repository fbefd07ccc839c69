// Glue between the Mersenne twister and the generator interface.
#include <ATen/CPUGeneratorImpl.h>

#include <random>

namespace at {

CPUGeneratorImpl::CPUGeneratorImpl(uint64_t seed)
    : GeneratorImpl(c10::Device(c10::kCPU)), engine_(seed) {}

void CPUGeneratorImpl::set_current_seed(uint64_t seed) { engine_.seed(seed); }
uint64_t CPUGeneratorImpl::current_seed() const { return engine_.initial_seed(); }

uint64_t CPUGeneratorImpl::seed() {
  std::random_device entropy;
  const uint64_t fresh = (static_cast<uint64_t>(entropy()) << 32) | entropy();
  engine_.seed(fresh);
  return fresh;
}

std::vector<uint8_t> CPUGeneratorImpl::state() const {
  std::vector<uint8_t> bytes(native::random::Mt19937::kStateBytes);
  engine_.export_state(bytes.data());
  return bytes;
}

void CPUGeneratorImpl::set_state(const uint8_t* bytes, size_t size) {
  engine_.import_state(bytes, size);
}

c10::intrusive_ptr<c10::GeneratorImpl> CPUGeneratorImpl::clone() const {
  auto copy = c10::make_intrusive<CPUGeneratorImpl>();
  copy->engine_ = engine_;
  return copy;
}

namespace detail {

const c10::Generator& getDefaultCPUGenerator() {
  // Never destroyed: threads may draw while the process ends.
  static const c10::Generator* const generator = new c10::Generator(createCPUGenerator());
  return *generator;
}

c10::Generator createCPUGenerator(uint64_t seed) {
  return c10::make_intrusive<CPUGeneratorImpl>(seed);
}

} // namespace detail
} // namespace at
