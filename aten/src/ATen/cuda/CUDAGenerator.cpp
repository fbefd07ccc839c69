// The host's half of the CUDA generator. See CUDAGenerator.h.
#undef CRESSET_KERNEL_TU // all functions of a generator are in its table
#include <ATen/cuda/CUDAGenerator.h>

#include <cstring>
#include <random>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDADevice.h>
#include <c10/cuda/CUDAGraph.h>

namespace at {

CUDAGeneratorImpl::CUDAGeneratorImpl(c10::DeviceIndex device, uint64_t seed)
    : c10::GeneratorImpl(c10::Device(c10::kCUDA, device)), seed_(seed) {}

void CUDAGeneratorImpl::set_current_seed(uint64_t seed) {
  seed_ = seed;
  offset_ = 0;
}

uint64_t CUDAGeneratorImpl::seed() {
  std::random_device entropy;
  const uint64_t high = entropy();
  // 53 bits, so that the number survives a visit to a double.
  set_current_seed((high << 32 | entropy()) & ((uint64_t(1) << 53) - 1));
  return seed_;
}

std::vector<uint8_t> CUDAGeneratorImpl::state() const {
  std::vector<uint8_t> out(kStateBytes);
  std::memcpy(out.data(), &seed_, sizeof seed_);
  std::memcpy(out.data() + sizeof seed_, &offset_, sizeof offset_);
  return out;
}

void CUDAGeneratorImpl::set_state(const uint8_t* bytes, size_t size) {
  // Older files have the seed alone.
  TORCH_CHECK(size == kStateBytes || size == sizeof seed_, "RNG state is wrong size");
  uint64_t seed = 0, offset = 0;
  std::memcpy(&seed, bytes, sizeof seed);
  if (size == kStateBytes) std::memcpy(&offset, bytes + sizeof seed, sizeof offset);
  set_current_seed(seed);
  set_offset(offset);
}

c10::intrusive_ptr<c10::GeneratorImpl> CUDAGeneratorImpl::clone() const {
  auto copy = c10::make_intrusive<CUDAGeneratorImpl>(device().index(), seed_);
  copy->offset_ = offset_;
  return copy;
}

void CUDAGeneratorImpl::set_offset(uint64_t offset) {
  TORCH_CHECK(offset % 4 == 0, "offset must be a multiple of 4");
  offset_ = offset;
}

PhiloxState CUDAGeneratorImpl::take(uint64_t increment) {
  const PhiloxState out = {seed_, offset_, nullptr};
  offset_ += (increment + 3) / 4 * 4;
  return out;
}

namespace cuda {
namespace {

struct Defaults {
  std::mutex mutex;
  uint64_t seed = c10::kDefaultSeed; // of generators made from now on
  c10::Generator generators[c10::cuda::kMaxDevices];
};
Defaults& defaults() {
  static Defaults* all = new Defaults;
  return *all;
}

CUDAGeneratorImpl& impl_of(const c10::Generator& generator) {
  auto* impl = dynamic_cast<CUDAGeneratorImpl*>(generator.get());
  TORCH_CHECK(impl != nullptr, "Expected a 'cuda' device type for generator but found '",
              generator->device().type(), "'");
  return *impl;
}

// The numbers that a graph draws from one generator. A replay finds the generator's seed and offset
// on the device and moves the generator on by all that the graph draws.
class GraphDraws final : public c10::cuda::GraphInput {
 public:
  GraphDraws(CUDAGeneratorImpl& generator)
      : generator_(c10::intrusive_ptr<CUDAGeneratorImpl>::unsafe_retain(&generator)),
        memory_(c10::cuda::CUDACachingAllocator::allocate(2 * sizeof(uint64_t),
                                                          generator.device().index())) {}
  bool draws_from(const CUDAGeneratorImpl& generator) const {
    return generator_.get() == &generator;
  }
  PhiloxState take(uint64_t increment) {
    const PhiloxState out = {0, used_, static_cast<const uint64_t*>(memory_.get())};
    used_ += (increment + 3) / 4 * 4;
    return out;
  }
  void write(c10::cuda::CUDAStream stream) override {
    PhiloxState state;
    {
      std::lock_guard<std::mutex> lock(generator_->mutex);
      state = generator_->take(used_);
    }
    // As fills, which read nothing of the host's: a copy would wait for the stream.
    const uint32_t words[] = {
        static_cast<uint32_t>(state.seed), static_cast<uint32_t>(state.seed >> 32),
        static_cast<uint32_t>(state.offset), static_cast<uint32_t>(state.offset >> 32)};
    auto address = reinterpret_cast<c10::cuda::CUdeviceptr>(memory_.get());
    for (const uint32_t word : words) {
      CRESSET_CUDA_CHECK(cuMemsetD32Async, address, word, size_t{1}, stream);
      address += sizeof(word);
    }
  }

 private:
  c10::intrusive_ptr<CUDAGeneratorImpl> generator_;
  c10::DataPtr memory_;
  uint64_t used_ = 0;
};

PhiloxState take_for_graph(c10::cuda::CUDAGraph& graph, CUDAGeneratorImpl& generator,
                           uint64_t increment) {
  for (const auto& input : graph.inputs()) {
    auto* draws = dynamic_cast<GraphDraws*>(input.get());
    if (draws != nullptr && draws->draws_from(generator)) return draws->take(increment);
  }
  auto draws = std::make_unique<GraphDraws>(generator);
  const PhiloxState out = draws->take(increment);
  graph.add_input(std::move(draws));
  return out;
}

} // namespace

const c10::Generator& default_generator(c10::DeviceIndex device) {
  const int index = device < 0 ? c10::cuda::current_device() : device;
  TORCH_CHECK_VALUE(index < c10::cuda::kMaxDevices, "no such CUDA device: ", index);
  Defaults& all = defaults();
  std::lock_guard<std::mutex> lock(all.mutex);
  c10::Generator& generator = all.generators[index];
  if (!generator) {
    generator =
        c10::make_intrusive<CUDAGeneratorImpl>(static_cast<c10::DeviceIndex>(index), all.seed);
  }
  return generator;
}

void seed_all(uint64_t seed) {
  Defaults& all = defaults();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.seed = seed;
  for (const c10::Generator& generator : all.generators) {
    if (!generator) continue;
    std::lock_guard<std::mutex> inner(generator->mutex);
    generator->set_current_seed(seed);
  }
}

PhiloxState take_philox(const std::optional<c10::Generator>& generator, c10::Device device,
                        uint64_t increment) {
  const bool given = generator && generator->defined();
  CUDAGeneratorImpl& impl = impl_of(given ? *generator : default_generator(device.index()));
  TORCH_CHECK(impl.device() == device, "Expected a generator on ", device, " but found one on ",
              impl.device());
  if (c10::cuda::CUDAGraph* graph = c10::cuda::CUDAGraph::recording())
    return take_for_graph(*graph, impl, increment);
  std::lock_guard<std::mutex> lock(impl.mutex);
  return impl.take(increment);
}

} // namespace cuda
} // namespace at
