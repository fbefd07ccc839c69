// What the kernel of the key Fake has to know of an operator, worked out once from its schema, tags
// and kernels.
#pragma once
#include <ATen/fake/FakeTensorImpl.h>

namespace at::fake {

struct FakePlan {
  enum class Way : uint8_t {
    Meta,   // the Meta kernel on meta images of the arguments
    Parts,  // made of other operators: those come back to the kernel one by one
    AsIs,   // a kernel registered at run time: it gets the fake tensors themselves
    ByMode, // the mode decides (`need`)
  };
  Way way = Way::Meta;
  FakeMode::Need need = FakeMode::Need::Data;
  bool mutates = false;
  bool per_element = false;    // each element of a list of tensors has a device of its own
  bool first_decides = false;  // other arguments may be on any device
  bool reads_values = true;    // false: never run on known values (random, geometry in place)
  bool shares_version = false; // the result is no view and counts writes with the first argument
  bool by_masks = false;       // masks among the indices make the shape depend on data
  int device_argument = -1;
  int pin_argument = -1;
  // For each result: the argument that is written and returned, or -1.
  std::vector<int> returned;
  size_t arguments = 0;
  size_t kernels = 0; // registrations at run time when the plan was made
};

// Valid until the next rule or registration for an operator; of this thread.
const FakePlan& plan_of(const OperatorEntry& op);

} // namespace at::fake
