// Between the backends of this library and those of C++ extensions, in both directions: a backend
// that an extension brought runs as one of ours, and our backends and stores are handed to
// extensions as the classes they know (the headers that end in .hpp).
#pragma once
#include <torch/csrc/distributed/c10d/Backend.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace c10d::engine {

// A backend, or a group that stands for one, of an extension. Null pointers that its functions
// return are errors.
TORCH_API std::shared_ptr<Backend> adopt(c10::intrusive_ptr<c10d::Collectives> foreign);
TORCH_API std::shared_ptr<Work> adopt(c10::intrusive_ptr<c10d::Work> foreign, Collective call);

// What extensions get. A backend and work that came from one are given back as they were.
TORCH_API c10::intrusive_ptr<c10d::Store> lend(std::shared_ptr<Store> store);
TORCH_API c10::intrusive_ptr<c10d::Work> lend(std::shared_ptr<Work> work);
TORCH_API c10::intrusive_ptr<c10d::Backend> lend(std::shared_ptr<Backend> backend);
// Each operation goes to the backend for its first tensor's kind of device; without one to the
// first.
struct GroupMember {
  c10::DeviceType device;
  std::shared_ptr<Backend> backend;
};
TORCH_API c10::intrusive_ptr<c10d::ProcessGroup>
lend_group(std::vector<GroupMember> members, std::shared_ptr<Store> store, int rank, int size);

} // namespace c10d::engine
