// Whether programs written for one version of an operator's schema go on working with another.
#pragma once
#include <string>

#include <ATen/core/FunctionSchema.h>

namespace at {

// Calls written for `old_schema` mean the same with `new_schema`: arguments keep their names and
// order and may only become more lenient, new ones come last with defaults, results may only become
// stricter. Where the result is no and `why` is given, it says the reason.
TORCH_API bool is_backward_compatible(const FunctionSchema& new_schema,
                                      const FunctionSchema& old_schema, std::string* why = nullptr);

// Programs saved with `new_schema` can be run where only `old_schema` is known: what the two share
// is the same, and what only one has is left out by default.
TORCH_API bool is_forward_compatible(const FunctionSchema& new_schema,
                                     const FunctionSchema& old_schema, std::string* why = nullptr);

} // namespace at
