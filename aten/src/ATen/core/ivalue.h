// What C++ programs include for c10::IValue, with everything its members need.
#pragma once
#include <iosfwd>

#include <ATen/core/Dict.h>
#include <ATen/core/IValue.h>
#include <ATen/core/List.h>
#include <ATen/core/TypeTraits.h>

namespace c10 {
using at::IValue;
using at::Stack;
namespace ivalue {
using Tuple = at::TupleValue;
} // namespace ivalue
} // namespace c10

namespace at::ivalue {
// What members of IValue ask (see c10/macros/UserMembers.h).
struct Queries {
  static bool is_custom(const IValue& v) { return opaque<torch::CustomClassHolder>(v) != nullptr; }
  static bool is_tuple(const IValue& v) { return opaque<TupleValue>(v) != nullptr; }
  static bool is_dict(const IValue& v) { return opaque<DictValue>(v) != nullptr; }
  static const TupleValue& tuple_ref(const IValue& v) {
    tuple_items(v);
    return *opaque<TupleValue>(v);
  }
  static c10::intrusive_ptr<TupleValue> tuple(const IValue& v) {
    tuple_items(v);
    return c10::intrusive_ptr<TupleValue>::unsafe_retain(opaque<TupleValue>(v));
  }
  static bool is(const IValue& a, const IValue& b) { return is_same(a, b); }
  static bool is_alias(const IValue& a, const IValue& b) { return is_alias_of(a, b); }
  static IValue deepcopy(const IValue& v) { return ivalue::deepcopy(v); }
};
} // namespace at::ivalue

namespace at {
inline bool operator==(const IValue& a, const IValue& b) { return ivalue::equal(a, b); }
inline bool operator!=(const IValue& a, const IValue& b) { return !ivalue::equal(a, b); }
// As PyTorch prints it: text without quotes, containers with their items.
TORCH_API std::ostream& operator<<(std::ostream& out, const IValue& value);
} // namespace at
