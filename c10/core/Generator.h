// A source of random numbers with a device, a seed and a state that can be saved and restored.
#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

namespace c10 {

constexpr uint64_t kDefaultSeed = 67280421310721;

class C10_API GeneratorImpl : public intrusive_ptr_target {
 public:
  explicit GeneratorImpl(Device device) : device_(device) {}
  ~GeneratorImpl() override;
  Device device() const { return device_; }

  virtual void set_current_seed(uint64_t seed) = 0;
  virtual uint64_t current_seed() const = 0;
  // Seeds from the system's entropy and returns the seed.
  virtual uint64_t seed() = 0;
  // The state in the byte layout of PyTorch's state tensors.
  virtual std::vector<uint8_t> state() const CRESSET_VIEWS(= 0, );
  virtual void set_state(const uint8_t* bytes, size_t size) CRESSET_VIEWS(= 0, );
  virtual intrusive_ptr<GeneratorImpl> clone() const CRESSET_VIEWS(= 0, );

  // Held by whoever draws numbers.
  std::mutex mutex;
  void* pyobj = nullptr;

 private:
  CRESSET_USER_MEMBERS(GeneratorImpl) Device device_;
};

using Generator = intrusive_ptr<GeneratorImpl>;

} // namespace c10

namespace at {
using c10::Generator;
using c10::GeneratorImpl;
} // namespace at
