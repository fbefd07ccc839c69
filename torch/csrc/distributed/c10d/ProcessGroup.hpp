// Groups of processes as C++ extensions see them. A function may take the group that Python made,
// or derive from ProcessGroup, as backends of old did, and hand one to Python.
#pragma once
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace c10d {

// What a function that register_backend(extended_api=True) knows would get.
struct DistributedBackendOptions {
  c10::intrusive_ptr<Store> store;
  int group_rank = 0;
  int group_size = 0;
  std::chrono::duration<float> timeout{};
  std::string group_id;
  std::vector<int64_t> global_ranks_in_group;
};

class TORCH_API ProcessGroup : public Collectives {
 public:
  enum BackendType : uint8_t { UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, CUSTOM };

  ProcessGroup(int rank, int size) : Collectives(rank, size) {}
  ProcessGroup(c10::intrusive_ptr<Store> store, int rank, int size)
      : Collectives(rank, size), store_(std::move(store)) {}
  ~ProcessGroup() override;
  const std::string getBackendName() const override;
  // Null where it was made without one.
  c10::intrusive_ptr<Store> getStore() const { return store_; }
  const std::string& getGroupName() const { return name_; }
  void setGroupName(const std::string& name) { name_ = name; }
  const std::string& getGroupDesc() const { return description_; }
  void setGroupDesc(const std::string& text) { description_ = text; }

 private:
  c10::intrusive_ptr<Store> store_;
  std::string name_, description_;
};

} // namespace c10d
