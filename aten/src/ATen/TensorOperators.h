// Arithmetic and comparison of tensors by operators, for C++ users. Kernels call the functions by
// name, which keeps these out of the headers that everything includes.
#pragma once
#include <ATen/ops/add.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/bitwise_xor.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/le.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/sub.h>

namespace at {

inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator!(const Tensor& a) { return logical_not(a); }

#define CRESSET_TENSOR_OPERATOR(symbol, function)                                                  \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return function(a, b); }       \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { return function(a, b); }
CRESSET_TENSOR_OPERATOR(+, add)
CRESSET_TENSOR_OPERATOR(-, sub)
CRESSET_TENSOR_OPERATOR(*, mul)
CRESSET_TENSOR_OPERATOR(/, div)
CRESSET_TENSOR_OPERATOR(<, lt)
CRESSET_TENSOR_OPERATOR(<=, le)
CRESSET_TENSOR_OPERATOR(>, gt)
CRESSET_TENSOR_OPERATOR(>=, ge)
CRESSET_TENSOR_OPERATOR(==, eq)
CRESSET_TENSOR_OPERATOR(!=, ne)
CRESSET_TENSOR_OPERATOR(&, bitwise_and)
CRESSET_TENSOR_OPERATOR(|, bitwise_or)
CRESSET_TENSOR_OPERATOR(^, bitwise_xor)
CRESSET_TENSOR_OPERATOR(%, remainder)
#undef CRESSET_TENSOR_OPERATOR

inline Tensor operator+(const Scalar& a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return mul(reciprocal(b), a); }

} // namespace at
