// What operations of process groups are told besides their tensors, for backends that C++
// extensions bring and for those that call a group. The names are PyTorch's.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace c10d {

// A timeout of an operation: the group's own, or as long as it takes.
constexpr auto kUnsetTimeout = std::chrono::milliseconds(-1);
constexpr auto kNoTimeout = std::chrono::milliseconds(0);
constexpr auto kProcessGroupDefaultTimeout = std::chrono::milliseconds(30 * 60 * 1000);
constexpr auto kBackendDefaultTimeout = kProcessGroupDefaultTimeout;

// Numbered as the records of work show them, those of Python included.
// clang-format off
enum class OpType : uint8_t {
  BROADCAST, ALLREDUCE, ALLREDUCE_COALESCED, REDUCE, ALLGATHER, _ALLGATHER_BASE,
  ALLGATHER_COALESCED, GATHER, SCATTER, REDUCE_SCATTER, ALLTOALL_BASE, ALLTOALL, SEND, RECV,
  RECVANYSOURCE, BARRIER, _REDUCE_SCATTER_BASE, COALESCED, _ALLREDUCE_SPARSE,
  REDUCE_SCATTER_TENSOR_COALESCED, UNKNOWN = 100,
};
// clang-format on

// How values of several ranks become one. `factor` is there with PREMUL_SUM only.
struct ReduceOp {
  enum RedOpType : uint8_t { SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM, UNUSED };
  ReduceOp() = default;
  ReduceOp(RedOpType op) : op_(op) {}
  ReduceOp(RedOpType op, at::Tensor factor) : op_(op), factor_(std::move(factor)) {}
  operator RedOpType() const { return op_; }
  const at::Tensor& factor() const { return factor_; }
  friend bool operator==(const ReduceOp& a, RedOpType b) { return a.op_ == b; }
  friend bool operator==(const ReduceOp& a, const ReduceOp& b) { return a.op_ == b.op_; }

  RedOpType op_ = SUM;

 private:
  at::Tensor factor_;
};

// What every operation may be told, those with a root and those that reduce.
struct OperationOptions {
  std::chrono::milliseconds timeout = kUnsetTimeout;
  bool asyncOp = true; // the caller will wait later, if ever
};
struct RootedOptions : OperationOptions {
  int64_t rootRank = 0;
};
struct ReducingOptions : OperationOptions {
  ReduceOp reduceOp = ReduceOp::SUM;
};

struct AllgatherOptions : OperationOptions {};
struct AllToAllOptions : OperationOptions {};
struct BarrierOptions : OperationOptions {
  std::optional<at::Device> device;
  std::vector<int64_t> device_ids;
};
struct GatherOptions : RootedOptions {};
struct ScatterOptions : RootedOptions {};
// rootTensor is from the time of several devices per process.
struct BroadcastOptions : RootedOptions {
  int64_t rootTensor = 0;
};
struct ReduceOptions : BroadcastOptions {
  ReduceOp reduceOp = ReduceOp::SUM;
};
struct ReduceScatterOptions : ReducingOptions {};
struct AllreduceOptions : ReducingOptions {
  std::optional<at::Tensor> sparseIndices;
};
struct AllreduceCoalescedOptions : AllreduceOptions {};

} // namespace c10d
