// What packages that bring an allocator of their own use besides Allocator.h: its registration
// before main, memory that an arbitrary callable frees, and comparisons of owning pointers.
#pragma once
#include <cstddef>
#include <utility>

#include <c10/core/Allocator.h>

namespace c10 {

inline bool operator==(const DataPtr& data, std::nullptr_t) { return data.get() == nullptr; }
inline bool operator==(std::nullptr_t, const DataPtr& data) { return data.get() == nullptr; }
inline bool operator!=(const DataPtr& data, std::nullptr_t) { return data.get() != nullptr; }
inline bool operator!=(std::nullptr_t, const DataPtr& data) { return data.get() != nullptr; }

// Memory that `deleter(data)` frees. The callable lives on the heap until then.
struct InefficientStdFunctionContext {
  template <class F> static DataPtr makeDataPtr(void* data, F deleter, Device device) {
    struct Owner {
      void* data;
      F deleter;
    };
    const DeleterFnPtr release = [](void* context) {
      Owner* owner = static_cast<Owner*>(context);
      owner->deleter(owner->data);
      delete owner;
    };
    return DataPtr(data, new Owner{data, std::move(deleter)}, release, device);
  }
};

template <DeviceType type> struct AllocatorRegisterer {
  explicit AllocatorRegisterer(Allocator* allocator) { SetAllocator(type, allocator); }
};

} // namespace c10

namespace at {
using c10::Allocator;
using c10::DataPtr;
using c10::DeleterFnPtr;
} // namespace at

#define REGISTER_ALLOCATOR(type, allocator)                                                        \
  static const ::c10::AllocatorRegisterer<type> C10_CONCATENATE(cresset_allocator_,                \
                                                                __LINE__)(allocator)
