// See CPUGeneratorImpl.h.
#undef CRESSET_KERNEL_TU // all functions of a generator are in its table
#include <ATen/CPUGeneratorImpl.h>

#include <random>

namespace at {

CPUGeneratorImpl::CPUGeneratorImpl(uint64_t seed) : GeneratorImpl(Device(kCPU)), engine(seed) {}

CPUGeneratorImpl::CPUGeneratorImpl(c10::Device device)
    : GeneratorImpl(device), engine(c10::kDefaultSeed) {}

void CPUGeneratorImpl::set_current_seed(uint64_t seed) { engine.seed(seed); }
uint64_t CPUGeneratorImpl::current_seed() const { return engine.initial_seed(); }

uint64_t CPUGeneratorImpl::seed() {
  std::random_device entropy;
  // 53 bits, so that the number survives a trip through a double.
  const uint64_t fresh = ((uint64_t(entropy()) << 32) | entropy()) & 0x1FFFFFFFFFFFFF;
  engine.seed(fresh);
  return fresh;
}

std::vector<uint8_t> CPUGeneratorImpl::state() const {
  std::vector<uint8_t> bytes(native::random::Mt19937::kStateBytes);
  engine.export_state(bytes.data());
  return bytes;
}
void CPUGeneratorImpl::set_state(const uint8_t* bytes, size_t size) {
  engine.import_state(bytes, size);
}

c10::intrusive_ptr<c10::GeneratorImpl> CPUGeneratorImpl::clone() const {
  auto out = c10::make_intrusive<CPUGeneratorImpl>();
  out->engine = engine;
  return out;
}

namespace detail {
const Generator& getDefaultCPUGenerator() {
  static const Generator* generator = new Generator(c10::make_intrusive<CPUGeneratorImpl>());
  return *generator;
}
Generator createCPUGenerator(uint64_t seed) { return c10::make_intrusive<CPUGeneratorImpl>(seed); }
} // namespace detail

CPUGeneratorImpl& cpu_generator(const std::optional<Generator>& generator) {
  const Generator& g = generator && *generator ? *generator : detail::getDefaultCPUGenerator();
  TORCH_CHECK(g->device().is_cpu(), "Expected a 'cpu' device type for generator but found '",
              g->device().type(), "'");
  auto* own = dynamic_cast<CPUGeneratorImpl*>(g.get());
  TORCH_CHECK(own != nullptr, "a generator of another package draws numbers with kernels of that ",
              "package only");
  return *own;
}

} // namespace at
