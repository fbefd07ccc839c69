// What an extension of Python in C++ needs of torch._c10d: its backends, groups and work as Python
// objects, and ours as what the headers that end in .hpp declare. A table in a capsule, for the
// same reasons as Bridge (bridge.h).
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <c10/util/intrusive_ptr.h>

namespace c10d {
class Backend;
class Collectives;
class ProcessGroup;
class Store;
class Work;
} // namespace c10d

namespace torch::python {

struct ForeignBridge {
  // Raised with every change of this table or of the classes it passes.
  static constexpr int kLayout = 1;
  int layout;
  // New references; null with an error of Python's.
  PyObject* (*wrap_backend)(c10::intrusive_ptr<c10d::Collectives> backend);
  PyObject* (*wrap_work)(c10::intrusive_ptr<c10d::Work> work);
  // 1: `out` was set. 0: the object is of another kind. -1: with an error of Python's.
  int (*store_of)(PyObject* o, c10::intrusive_ptr<c10d::Store>& out);
  int (*work_of)(PyObject* o, c10::intrusive_ptr<c10d::Work>& out);
  int (*backend_of)(PyObject* o, c10::intrusive_ptr<c10d::Backend>& out);
  int (*group_of)(PyObject* o, c10::intrusive_ptr<c10d::ProcessGroup>& out);
};
inline constexpr char kForeignBridgeName[] = "torch._c10d._foreign";

} // namespace torch::python
