// The base of backends that C++ extensions bring: derive, override the operations the backend has,
// and give a function that makes one to torch.distributed.Backend.register_backend. Operations that
// are not overridden raise NotImplementedError. Python calls them without the interpreter's lock.
#pragma once
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace c10d {

// The operations, which backends and groups share.
class TORCH_API Collectives : public c10::intrusive_ptr_target {
 public:
  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<Work>;

  Collectives(int rank, int size);
  ~Collectives() override;
  virtual int getRank() const { return rank_; }
  virtual int getSize() const { return size_; }
  virtual const std::string getBackendName() const = 0;

  virtual WorkPtr broadcast(Tensors& tensors, const BroadcastOptions& opts = BroadcastOptions());
  virtual WorkPtr allreduce(Tensors& tensors, const AllreduceOptions& opts = AllreduceOptions());
  virtual WorkPtr allreduce_sparse(Tensors& tensors,
                                   const AllreduceOptions& opts = AllreduceOptions());
  virtual WorkPtr
  allreduce_coalesced(Tensors& tensors,
                      const AllreduceCoalescedOptions& opts = AllreduceCoalescedOptions());
  virtual WorkPtr reduce(Tensors& tensors, const ReduceOptions& opts = ReduceOptions());
  virtual WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                            const AllgatherOptions& opts = AllgatherOptions());
  virtual WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                                  const AllgatherOptions& opts = AllgatherOptions());
  virtual WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                      const AllgatherOptions& opts = AllgatherOptions());
  virtual WorkPtr
  allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                  const AllgatherOptions& opts = AllgatherOptions());
  virtual WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                         const GatherOptions& opts = GatherOptions());
  virtual WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                          const ScatterOptions& opts = ScatterOptions());
  virtual WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                 const ReduceScatterOptions& opts = ReduceScatterOptions());
  virtual WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                       const ReduceScatterOptions& opts = ReduceScatterOptions());
  virtual WorkPtr
  reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                  const ReduceScatterOptions& opts = ReduceScatterOptions());
  virtual WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                                std::vector<int64_t>& outputSplits,
                                std::vector<int64_t>& inputSplits,
                                const AllToAllOptions& opts = AllToAllOptions());
  virtual WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                           const AllToAllOptions& opts = AllToAllOptions());
  virtual WorkPtr send(Tensors& tensors, int dstRank, int tag);
  virtual WorkPtr recv(Tensors& tensors, int srcRank, int tag);
  virtual WorkPtr recvAnysource(Tensors& tensors, int tag);
  virtual WorkPtr barrier(const BarrierOptions& opts = BarrierOptions());
  virtual void monitoredBarrier(const BarrierOptions& opts, bool waitAllRanks = false);

  virtual void startCoalescing();
  virtual WorkPtr endCoalescing();
  virtual void setSequenceNumberForGroup() {}
  virtual uint64_t getSequenceNumberForGroup() { return 0; }
  virtual void abort() {}
  virtual void shutdown() {}

 protected:
  const int rank_, size_;

 private:
  [[noreturn]] void lacks(const char* operation) const;
};

class TORCH_API Backend : public Collectives {
 public:
  // How a backend is made.
  struct TORCH_API Options : c10::intrusive_ptr_target {
    explicit Options(std::string backend,
                     std::chrono::milliseconds timeout = kBackendDefaultTimeout);
    ~Options() override;
    std::chrono::milliseconds timeout;
    const std::string backend;
    std::string group_name;
    std::vector<uint64_t> global_ranks_in_group;
  };

  Backend(int rank, int size) : Collectives(rank, size) {}
  ~Backend() override;
  // The name that errors and profiles show; a backend gives its own.
  const std::string getBackendName() const override;
  virtual bool supportsSplitting() const { return false; }
  virtual bool supportsCoalescing() const { return false; }
};

} // namespace c10d
