// A call of a backend as a value: which operation, on which tensors, with which arguments. Every
// backend gets its work in this one form, so that sequence numbers, descriptions, checks across
// ranks and recordings are written once and not per operation.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace c10d::engine {

using Millis = std::chrono::milliseconds;

// Numbered as in PyTorch: programs see the numbers in the records of work.
enum class OpType : uint8_t {
  Broadcast = 0,          // outputs: what is sent from or received; root
  AllReduce = 1,          // outputs, in place
  AllReduceCoalesced = 2, // outputs, in place
  Reduce = 3,             // outputs, in place at root
  AllGather = 4,          // inputs: one; outputs: one per rank
  AllGatherBase = 5,      // inputs: one; outputs: one, the ranks' after each other
  AllGatherCoalesced = 6, // inputs: n; outputs: n, each as in AllGatherBase
  Gather = 7,             // inputs: one; outputs at root: one per rank
  Scatter = 8,            // inputs at root: one per rank; outputs: one
  ReduceScatter = 9,      // inputs: one per rank; outputs: one
  AllToAllBase = 10,      // inputs: one; outputs: one; splits of the first dimension
  AllToAll = 11,          // inputs and outputs: one per rank
  Send = 12,              // inputs: one; root is the receiver; tag
  Recv = 13,              // outputs: one; root is the sender; tag
  RecvAnySource = 14,     // outputs: one; tag
  Barrier = 15,
  ReduceScatterBase = 16, // inputs: one; outputs: one
  Coalesced = 17,
  AllReduceSparse = 18,
  ReduceScatterCoalesced = 19, // inputs: n; outputs: n, each as in ReduceScatterBase
  Unknown = 100,
};
TORCH_API const char* name_of(OpType type);
// As PyTorch writes it: "ALLREDUCE".
TORCH_API const char* code_of(OpType type);

struct ReduceOp {
  enum Kind : uint8_t { Sum, Avg, Product, Min, Max, Band, Bor, Bxor, PremulSum };
  Kind kind = Sum;
  at::Tensor factor; // of PremulSum, one element
};
TORCH_API const char* name_of(ReduceOp::Kind kind);

constexpr Millis kUnsetTimeout{-1};

struct TORCH_API Collective {
  OpType type = OpType::Unknown;
  std::vector<at::Tensor> inputs, outputs;
  std::vector<int64_t> input_splits, output_splits;
  int root = 0;
  int tag = 0;
  ReduceOp reduce;
  Millis timeout = kUnsetTimeout;
  bool is_async = true;           // the caller will wait later, if ever
  uint64_t sequence = 0;          // set by the backend
  uint64_t record = ~uint64_t{0}; // of the flight recorder; set by the backend

  bool is_point_to_point() const {
    return type == OpType::Send || type == OpType::Recv || type == OpType::RecvAnySource;
  }
  // "all_reduce(float32[4, 4], op=SUM) number 7"
  std::string describe() const;
};

} // namespace c10d::engine
