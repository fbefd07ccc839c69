// The rules are applied to three lists of a schema: ordinary arguments, out arguments, results.
#include <ATen/core/SchemaCompatibility.h>

#include <algorithm>

#include <c10/util/Exception.h>

namespace at {
namespace {

using Arguments = std::vector<const SchemaArgument*>;

Arguments select(const FunctionSchema& schema, bool out) {
  Arguments found;
  for (const SchemaArgument& argument : schema.arguments) {
    if (argument.is_out == out) found.push_back(&argument);
  }
  return found;
}

bool no(std::string* why, std::string reason) {
  if (why) *why = std::move(reason);
  return false;
}

// Whether every value of `part` is one of `whole`.
bool is_subtype(SchemaType part, const SchemaType& whole) {
  if (whole.optional) part.optional = true;
  return part.str() == whole.str();
}
bool same_alias(const SchemaArgument& a, const SchemaArgument& b) {
  if (!a.alias || !b.alias) return !a.alias == !b.alias;
  return a.alias->before == b.alias->before && a.alias->after == b.alias->after &&
         a.alias->is_write == b.alias->is_write;
}
bool same_default(const SchemaArgument& a, const SchemaArgument& b) {
  return a.has_default == b.has_default && a.default_text == b.default_text;
}

bool same_shape(const FunctionSchema& a, const FunctionSchema& b, std::string* why) {
  if (a.name != b.name || a.overload != b.overload) return no(why, "the names differ");
  if (a.is_vararg != b.is_vararg || a.is_varret != b.is_varret) {
    return no(why, "only one of the schemas has ...");
  }
  if (a.returns.size() != b.returns.size()) return no(why, "the numbers of results differ");
  return true;
}

bool accepts(const SchemaArgument& now, const SchemaArgument& before) {
  const bool still_by_position = before.kwarg_only || !now.kwarg_only;
  const bool keeps_default = !before.has_default || same_default(now, before);
  return now.name == before.name && is_subtype(before.type, now.type) && still_by_position &&
         keeps_default && same_alias(now, before);
}

bool is_same(const SchemaArgument& now, const SchemaArgument& before) {
  return now.name == before.name && now.type.str() == before.type.str() &&
         now.kwarg_only == before.kwarg_only && same_default(now, before) &&
         same_alias(now, before);
}

} // namespace

bool is_backward_compatible(const FunctionSchema& new_schema, const FunctionSchema& old_schema,
                            std::string* why) {
  if (!same_shape(new_schema, old_schema, why)) return false;
  for (size_t i = 0; i < old_schema.returns.size(); ++i) {
    const SchemaArgument &now = new_schema.returns[i], &before = old_schema.returns[i];
    if (now.name != before.name || !is_subtype(now.type, before.type) || !same_alias(now, before)) {
      return no(why, c10::str("result ", i, " is not what it was"));
    }
  }
  for (const bool out : {false, true}) {
    const Arguments now = select(new_schema, out), before = select(old_schema, out);
    if (now.size() < before.size()) return no(why, "arguments are missing");
    for (size_t i = 0; i < before.size(); ++i) {
      if (!accepts(*now[i], *before[i])) {
        return no(why, c10::str("'", now[i]->name, "' does not accept what it did"));
      }
    }
    for (size_t i = before.size(); i < now.size() && !out; ++i) {
      if (!now[i]->has_default) return no(why, c10::str("'", now[i]->name, "' has no default"));
    }
  }
  return true;
}

bool is_forward_compatible(const FunctionSchema& new_schema, const FunctionSchema& old_schema,
                           std::string* why) {
  if (!same_shape(new_schema, old_schema, why)) return false;
  for (size_t i = 0; i < old_schema.returns.size(); ++i) {
    const SchemaArgument &now = new_schema.returns[i], &before = old_schema.returns[i];
    if (now.name != before.name || now.type.str() != before.type.str() ||
        !same_alias(now, before)) {
      return no(why, c10::str("result ", i, " is not what it was"));
    }
  }
  const Arguments outs = select(new_schema, true), old_outs = select(old_schema, true);
  if (outs.size() != old_outs.size()) {
    return no(why, "Function schema should have the same number of out arguments");
  }
  const Arguments now = select(new_schema, false), before = select(old_schema, false);
  const auto differs = [&](const SchemaArgument& argument) {
    return no(why, c10::str("'", argument.name,
                            "' is not forward compatible with the older version of the schema"));
  };
  const size_t common = std::min(now.size(), before.size());
  for (size_t i = 0; i < common; ++i) {
    if (!is_same(*now[i], *before[i])) return differs(*now[i]);
  }
  for (size_t i = common; i < before.size(); ++i) {
    if (!before[i]->has_default) return differs(*before[i]);
  }
  for (size_t i = common; i < now.size(); ++i) {
    SchemaType type = now[i]->type;
    type.list_size = -1;
    const std::string which = c10::str("Function schema is not forward compatible since the new "
                                       "argument '",
                                       now[i]->name, "' of type ", type.str());
    if (!now[i]->has_default) return no(why, which + " did not provide a default value.");
    if (type.is_list) return no(why, which + " has a container type as its default value.");
  }
  for (size_t i = 0; i < outs.size(); ++i) {
    if (!is_same(*outs[i], *old_outs[i])) return differs(*outs[i]);
  }
  return true;
}

} // namespace at
