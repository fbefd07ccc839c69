// The builtins of scripted code by subject; builtins() puts them together.
#pragma once
#include <torch/csrc/jit/program.h>

namespace torch::jit {

using Builtins = std::vector<Builtin>;
// A line of a constant table.
struct Entry {
  const char* schema;
  BuiltinFn fn;
};
template <size_t N> void add_entries(Builtins& out, const Entry (&table)[N]) {
  for (const Entry& entry : table) out.push_back({entry.schema, entry.fn});
}
// Builtins that have short forms (see fast.h).
IValue list_item(const IValue* a, size_t count);     // list[i]
IValue list_set_item(const IValue* a, size_t count); // list[i] = v
IValue list_append(const IValue* a, size_t count);
IValue list_length(const IValue* a, size_t count);
IValue dict_item(const IValue* a, size_t count);     // dict[key]
IValue dict_set_item(const IValue* a, size_t count); // dict[key] = v
IValue dict_contains(const IValue* a, size_t count);
IValue not_of(const IValue* a, size_t count);
// The elements of n that a slice of Python chooses; start, end and step may be None.
struct SliceRange {
  int64_t start, step, count;
};
SliceRange slice_range(int64_t n, const IValue& start, const IValue& end, const IValue& by);
void add_number_builtins(Builtins& out);
void add_container_builtins(Builtins& out);
void add_string_builtins(Builtins& out);
void add_tensor_builtins(Builtins& out);

} // namespace torch::jit
