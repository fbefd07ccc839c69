// Everything C++ users need of the tensor library in one include. Our own sources include what they
// use instead.
#pragma once
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Device.h>
#include <ATen/DeviceGuard.h>
#include <ATen/Dispatch.h>
#include <ATen/Formatting.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/ScalarOps.h>
#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/TestOperators.h>
#include <ATen/Utils.h>
#include <ATen/core/DeprecatedTypeProperties.h>
#include <ATen/core/Dimname.h>
#include <ATen/core/Generator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/MemoryFormatUser.h>
#include <c10/core/VariableVersion.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Optional.h>
#include <c10/util/StringUtil.h>
#include <c10/util/irange.h>

namespace at {
using namespace c10; // NOLINT: what c10 has, at:: offers too

// A dimension, where `std(x, 0)` would be taken for `std(x, unbiased=false)`.
inline Tensor std(const Tensor& self, int dim) { return self.std(dim); }
inline Tensor var(const Tensor& self, int dim) { return self.var(dim); }
inline std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int dim) {
  return at::std_mean(self, OptionalIntArrayRef(int64_t(dim)), true, false);
}
inline std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int dim) {
  return at::var_mean(self, OptionalIntArrayRef(int64_t(dim)), true, false);
}
} // namespace at
