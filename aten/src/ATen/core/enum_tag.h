// at::Tag: what an operator says about itself, for m.def(schema, {at::Tag::...}). The names are
// those of torch.Tag in Python.
#pragma once
#include <cstdint>

#include <c10/macros/Macros.h>

namespace at {

// clang-format off
#define CRESSET_FORALL_TAGS(X)                                                                     \
  X(core)                                                                                          \
  X(cudagraph_unsafe) X(data_dependent_output) X(dynamic_output_shape) X(flexible_layout)          \
      X(generated) X(inplace) X(inplace_view) X(maybe_aliasing_or_mutating)                        \
          X(needs_contiguous_strides) X(needs_exact_strides) X(needs_fixed_stride_order)           \
              X(nondeterministic_bitwise) X(nondeterministic_seeded) X(out) X(out_variant)         \
                  X(pointwise) X(pt2_compliant_tag) X(reduction) X(view_copy)
// clang-format on

enum class Tag : uint8_t {
#define X(name) name,
  CRESSET_FORALL_TAGS(X)
#undef X
};

inline const char* tag_name(Tag tag) {
  static constexpr const char* const names[] = {
#define X(name) #name,
      CRESSET_FORALL_TAGS(X)
#undef X
  };
  return names[static_cast<int>(tag)];
}

} // namespace at
