// See Observer.h.
#include "Observer.h"

#include <atomic>

#include "Emulator.h"

namespace emulator {
namespace {
std::atomic<const Observer*> installed{nullptr};
thread_local int depth = 0;
thread_local const void* call_stream = nullptr;
} // namespace

const Observer* observer() { return installed.load(); }
const void* stream_of_this_call() { return call_stream; }

ObservedCall::ObservedCall(const Observer* observer, const char* name, const void* stream)
    : observer_(depth++ == 0 ? observer : nullptr), name_(name) {
  if (depth == 1) call_stream = stream;
  if (observer_) observer_->call(name_, true);
}
ObservedCall::~ObservedCall() {
  --depth;
  if (observer_) observer_->call(name_, false);
}

} // namespace emulator

EMULATOR_API void cressetEmulatorObserve(const emulator::Observer* observer) {
  emulator::installed.store(observer);
}
EMULATOR_API const emulator::Observer* cressetEmulatorObserver() { return emulator::observer(); }
