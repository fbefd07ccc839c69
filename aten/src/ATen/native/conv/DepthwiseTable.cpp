// The choice of the depthwise loops for this machine.
#include <ATen/iter/CpuIsa.h>
#include <ATen/native/conv/DepthwiseKernels.h>

namespace at::native::depthwise {

const Table& table() {
  static const Table* const made = [] {
    auto* t = new Table;
    CRESSET_BY_ISA(, fill)(*t);
    return t;
  }();
  return *made;
}

} // namespace at::native::depthwise
