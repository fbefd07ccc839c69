// The check of an out= tensor whose dtype must be exactly that of the result.
#pragma once
#include <ATen/native/CTypeName.h>
#include <ATen/native/OutputBuilder.h>

namespace at::native {

inline void check_out_dtype(const OutputBuilder& out, int i, ScalarType dtype) {
  if (!out.is_out_variant()) return;
  TORCH_CHECK(out.given(i).scalar_type() == dtype, "Expected out tensor to have dtype ",
              c_type_name(dtype), ", but got ", c_type_name(out.given(i).scalar_type()),
              " instead");
}

} // namespace at::native
