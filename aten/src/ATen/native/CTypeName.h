#pragma once
// The C++ name of a dtype's element, for the messages in which programs expect to find it ("float
// != double", "Input type (c10::Half)"): one table, so that every operator spells them alike.
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <string>

namespace at::native {

/// "float" for kFloat, "long int" for kLong, "c10::Half" for kHalf; the dtype's own name where the
/// element has no C++ type of ours. Never null, lives forever.
inline const char* c_type_name(c10::ScalarType dtype) {
  switch (dtype) {
  case c10::kByte:
    return "unsigned char";
  case c10::kChar:
    return "signed char";
  case c10::kShort:
    return "short int";
  case c10::kInt:
    return "int";
  case c10::kLong:
    return "long int";
  case c10::kUInt16:
    return "short unsigned int";
  case c10::kUInt32:
    return "unsigned int";
  case c10::kUInt64:
    return "long unsigned int";
  case c10::kHalf:
    return "c10::Half";
  case c10::kBFloat16:
    return "c10::BFloat16";
  case c10::kFloat:
    return "float";
  case c10::kDouble:
    return "double";
  case c10::kBool:
    return "bool";
  case c10::kComplexHalf:
    return "c10::complex<c10::Half>";
  case c10::kComplexFloat:
    return "c10::complex<float>";
  case c10::kComplexDouble:
    return "c10::complex<double>";
  case c10::ScalarType::Float8_e4m3fn:
    return "c10::Float8_e4m3fn";
  case c10::ScalarType::Float8_e5m2:
    return "c10::Float8_e5m2";
  default:
    return c10::toString(dtype);
  }
}

/// "torch.FloatTensor", "torch.cuda.LongTensor"; "CPUBoolType" where no such class has existed.
inline std::string tensor_type_name(c10::ScalarType dtype, const c10::Device& device) {
  const bool classic = dtype == c10::kByte || dtype == c10::kChar || dtype == c10::kShort ||
                       dtype == c10::kInt || dtype == c10::kLong || dtype == c10::kHalf ||
                       dtype == c10::kFloat || dtype == c10::kDouble;
  if (classic && (device.is_cpu() || device.is_cuda()))
    return c10::str(device.is_cpu() ? "torch." : "torch.cuda.", dtype, "Tensor");
  const char* kind = device.is_cpu() ? "CPU" : device.is_cuda() ? "CUDA" : "Meta";
  return c10::str(kind, dtype, "Type");
}

} // namespace at::native
