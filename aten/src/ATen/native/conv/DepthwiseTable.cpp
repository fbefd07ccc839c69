// The choice of the depthwise loops for this machine.
#include <ATen/iter/IsaTable.h>
#include <ATen/native/conv/DepthwiseKernels.h>

namespace at::native::depthwise {

CRESSET_DEFINE_ISA_TABLE(Table);

} // namespace at::native::depthwise
