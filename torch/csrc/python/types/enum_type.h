// Enumerations of torch._C (DispatchKey, _TorchFunctionState, ...): int subclasses with named
// members, made from a table at import. Python's enum module would do, but importing it costs more
// than all of torch._C.
#pragma once
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

struct EnumMember {
  const char* name;
  long value;
};

// Creates the type `full_name` ("torch._C.DispatchKey"), adds it to `module`, and returns a
// borrowed reference, or nullptr with the error set. Members are attributes of the type and listed
// in
// `__members__`.
PyObject* add_enum(PyObject* module, const char* full_name, const EnumMember* members,
                   size_t count);
// The member with that value, a new reference; ValueError when there is none.
PyObject* enum_member(PyObject* type, long value);

} // namespace torch::python
