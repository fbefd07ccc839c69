// Special functions made of other operators: the multivariate gamma function and the forms of
// polygamma and round that only change how the arguments stand.
#include <cmath>

#include <ATen/core/Tensor.h>
#include <ATen/native/special/Native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/lgamma.h>
#include <ATen/ops/polygamma.h>
#include <ATen/ops/round.h>
#include <ATen/ops/sub.h>
#include <ATen/parallel/Parallel.h>
#include <c10/util/MathConstants.h>

namespace at::native {

void polygamma_check(int64_t n, const Tensor&) {
  TORCH_CHECK(n >= 0, "polygamma(n, x) does not support negative n.");
}

Tensor& polygamma_(Tensor& self, int64_t n) { return self.copy_(at::polygamma(n, self)); }

// log Gamma_p(a) = p (p - 1) / 4 log(pi) + the sum over j < p of log Gamma(a - j / 2).
Tensor mvlgamma(const Tensor& self, int64_t p) {
  TORCH_CHECK(p >= 1, "p has to be greater than or equal to 1");
  TORCH_CHECK(self.scalar_type() != kBool, "The input tensor may not be a boolean tensor.");
  TORCH_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "\"mvlgamma\" not implemented for '",
                              self.scalar_type(), "'");
  const ScalarType type =
      c10::isFloatingType(self.scalar_type()) ? self.scalar_type() : c10::get_default_dtype();
  const double constant =
      0.25 * static_cast<double>(p) * static_cast<double>(p - 1) * std::log(c10::pi<double>);
  const Tensor x = self.to(type);
  Tensor sum = at::add(at::lgamma(x), Scalar(constant));
  for (int64_t i = 1; i < p; ++i) {
    check_interrupt();
    sum = at::add(sum, at::lgamma(at::sub(x, Scalar(0.5 * static_cast<double>(i)))));
  }
  return sum;
}

Tensor special_round(const Tensor& self, int64_t decimals) {
  return decimals == 0 ? at::round(self) : at::round(self, decimals);
}

} // namespace at::native
