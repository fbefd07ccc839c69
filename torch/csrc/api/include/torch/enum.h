// Options whose value is one of a few names: `.mode(torch::kBilinear)`. Each name is a type of its
// own, so that an option's std::variant lists what it accepts.
#pragma once
#include <string>
#include <variant>

#include <c10/macros/Macros.h>

// X(name) for kname.
// clang-format off
#define CRESSET_FORALL_ENUM_NAMES(X)                                                               \
  X(Linear) X(Conv1D) X(Conv2D) X(Conv3D) X(ConvTranspose1D) X(ConvTranspose2D)                    \
  X(ConvTranspose3D) X(Sigmoid) X(Tanh) X(ReLU) X(GELU) X(SiLU) X(Mish) X(LeakyReLU) X(FanIn)      \
  X(FanOut) X(Constant) X(Reflect) X(Replicate) X(Circular) X(Nearest) X(Bilinear) X(Bicubic)      \
  X(Trilinear) X(Area) X(NearestExact) X(Sum) X(Mean) X(Max) X(None) X(BatchMean) X(Zeros)         \
  X(Border) X(Reflection) X(RNN_TANH) X(RNN_RELU) X(LSTM) X(GRU) X(Valid) X(Same)
// clang-format on

namespace torch {
namespace enumtype {

#define CRESSET_DECLARE_ENUM(name)                                                                 \
  struct k##name {                                                                                 \
    static constexpr const char* text = "k" #name;                                                 \
  };
CRESSET_FORALL_ENUM_NAMES(CRESSET_DECLARE_ENUM)
#undef CRESSET_DECLARE_ENUM

// "kBilinear"
template <class V> std::string get_enum_name(const V& value) {
  return std::visit([](const auto& name) { return std::string(name.text); }, value);
}
// The number operators know a reduction by.
template <class V> int64_t reduction_get_enum(const V& value) {
  const std::string name = get_enum_name(value);
  return name == "kNone" ? 0 : name == "kSum" ? 2 : 1;
}

} // namespace enumtype

#define CRESSET_DECLARE_ENUM(name) inline constexpr enumtype::k##name k##name{};
CRESSET_FORALL_ENUM_NAMES(CRESSET_DECLARE_ENUM)
#undef CRESSET_DECLARE_ENUM

} // namespace torch
