// See ZeroDivision.h; out of line so that the loops carry no exception-raising code.
#include <ATen/native/pointwise/ZeroDivision.h>

#include <c10/util/Exception.h>

namespace at::native::fn {

C10_COLD void throw_zero_division() { TORCH_CHECK(false, "ZeroDivisionError"); }

} // namespace at::native::fn
