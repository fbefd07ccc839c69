// Automatic mixed precision: while autocast is on for a device, chosen operators run in a lower
// precision (matrix products, convolutions), others in float32 (losses, norms, exponentials) or in
// the widest type among their arguments. It is a layer above autograd, so that the casts it makes
// are differentiated like any other operator. The lists stand in OpLists.cpp.
//
// Note [Autocast costs nothing while off]
// No tensor carries an autocast key. Switching autocast on puts the device's key into the thread's
// included set; operators outside the lists mask it away. The kernels are registered when autocast
// is first switched on in the process.
#pragma once
#include <ATen/core/Tensor.h>

namespace at::autocast {

// How an operator treats its floating point arguments on the autocast device.
enum class Policy : uint8_t {
  Lower,   // cast to the autocast dtype
  Float32, // cast to float32, unless the call names a dtype itself
  Widest,  // cast to float32 if any argument is float32
  Banned,  // raises: the operator is unsafe in low precision
};

// The state of this thread. ValueError for devices that have no autocast.
TORCH_API bool is_available(DeviceType device);
TORCH_API bool is_enabled(DeviceType device);
TORCH_API void set_enabled(DeviceType device, bool enabled);
TORCH_API ScalarType dtype(DeviceType device);
TORCH_API void set_dtype(DeviceType device, ScalarType dtype);

// Casts of leaves that require grad are kept until the outermost region ends, so that a weight used
// in many places is cast once and gets one gradient edge.
TORCH_API bool is_cache_enabled();
TORCH_API void set_cache_enabled(bool enabled);
TORCH_API void clear_cache();
TORCH_API int nesting();           // how many regions this thread is in
TORCH_API int increment_nesting(); // the new depth
TORCH_API int decrement_nesting();

// The casts of the policies for one argument: `tensor` itself where nothing is to do.
TORCH_API Tensor cast_argument(const Tensor& tensor, DeviceType device, ScalarType wanted);

struct OpPolicy {
  const char* name; // of the operator, with all its overloads: "mm"
  Policy policy;
};
ArrayRef<OpPolicy> op_policies(DeviceType device);

} // namespace at::autocast
