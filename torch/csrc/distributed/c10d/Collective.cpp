// Names and descriptions of operations, and the checks of their arguments.
#include <torch/csrc/distributed/c10d/Backend.h>
#include <torch/csrc/distributed/c10d/FlightRecorder.h>

namespace c10d::engine {

const char* name_of(OpType type) {
  switch (type) {
  case OpType::Broadcast:
    return "broadcast";
  case OpType::AllReduce:
    return "all_reduce";
  case OpType::AllReduceCoalesced:
    return "all_reduce_coalesced";
  case OpType::Reduce:
    return "reduce";
  case OpType::AllGather:
    return "all_gather";
  case OpType::AllGatherBase:
    return "all_gather_into_tensor";
  case OpType::AllGatherCoalesced:
    return "all_gather_coalesced";
  case OpType::Gather:
    return "gather";
  case OpType::Scatter:
    return "scatter";
  case OpType::ReduceScatter:
    return "reduce_scatter";
  case OpType::AllToAllBase:
    return "all_to_all_single";
  case OpType::AllToAll:
    return "all_to_all";
  case OpType::Send:
    return "send";
  case OpType::Recv:
    return "recv";
  case OpType::RecvAnySource:
    return "recv_anysource";
  case OpType::Barrier:
    return "barrier";
  case OpType::ReduceScatterBase:
    return "reduce_scatter_tensor";
  case OpType::Coalesced:
    return "coalesced";
  case OpType::AllReduceSparse:
    return "all_reduce (sparse)";
  case OpType::ReduceScatterCoalesced:
    return "reduce_scatter_tensor_coalesced";
  default:
    return "unknown";
  }
}

const char* code_of(OpType type) {
  static constexpr const char* codes[] = {"BROADCAST",
                                          "ALLREDUCE",
                                          "ALLREDUCE_COALESCED",
                                          "REDUCE",
                                          "ALLGATHER",
                                          "_ALLGATHER_BASE",
                                          "ALLGATHER_COALESCED",
                                          "GATHER",
                                          "SCATTER",
                                          "REDUCE_SCATTER",
                                          "ALLTOALL_BASE",
                                          "ALLTOALL",
                                          "SEND",
                                          "RECV",
                                          "RECVANYSOURCE",
                                          "BARRIER",
                                          "_REDUCE_SCATTER_BASE",
                                          "COALESCED",
                                          "_ALLREDUCE_SPARSE",
                                          "REDUCE_SCATTER_TENSOR_COALESCED"};
  const auto number = static_cast<size_t>(type);
  return number < std::size(codes) ? codes[number] : "UNKNOWN";
}

const char* name_of(ReduceOp::Kind kind) {
  static constexpr const char* names[] = {"SUM",  "AVG", "PRODUCT", "MIN",       "MAX",
                                          "BAND", "BOR", "BXOR",    "PREMUL_SUM"};
  return kind <= ReduceOp::PremulSum ? names[kind] : "?";
}

namespace {

void append_tensors(std::string& out, const char* label, const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return;
  if (out.back() != '(') out += ", ";
  out += label;
  if (tensors.size() > 1) out += "[";
  for (size_t i = 0; i < tensors.size() && i < 4; ++i) {
    if (i) out += ", ";
    const auto& t = tensors[i];
    if (!t.defined()) {
      out += "undefined";
      continue;
    }
    c10::append(out, c10::str(t.scalar_type(), "["));
    for (int64_t d = 0; d < t.dim(); ++d) c10::append(out, c10::str(d ? ", " : "", t.size(d)));
    out += "]";
  }
  if (tensors.size() > 4) out += c10::str(", ... ", tensors.size(), " in all");
  if (tensors.size() > 1) out += "]";
}

bool reduces(OpType type) {
  switch (type) {
  case OpType::AllReduce:
  case OpType::AllReduceCoalesced:
  case OpType::AllReduceSparse:
  case OpType::Reduce:
  case OpType::ReduceScatter:
  case OpType::ReduceScatterBase:
  case OpType::ReduceScatterCoalesced:
    return true;
  default:
    return false;
  }
}

bool has_root(OpType type) {
  return type == OpType::Broadcast || type == OpType::Reduce || type == OpType::Gather ||
         type == OpType::Scatter;
}

} // namespace

std::string Collective::describe() const {
  std::string out = c10::str(name_of(type), "(");
  append_tensors(out, "input=", inputs);
  append_tensors(out, inputs.empty() ? "" : "output=", outputs);
  if (reduces(type)) out += c10::str(", op=", name_of(reduce.kind));
  if (has_root(type)) out += c10::str(out.back() == '(' ? "" : ", ", "root=", root);
  if (type == OpType::Send) out += c10::str(", to rank ", root, ", tag=", tag);
  if (type == OpType::Recv) out += c10::str(", from rank ", root, ", tag=", tag);
  out += ")";
  if (!is_point_to_point()) out += c10::str(" number ", sequence);
  return out;
}

// ---- checks -------------------------------------------------------------------------------------
namespace {

void check_count(const Collective& call, const char* what, size_t got, size_t expected) {
  TORCH_CHECK_VALUE(got == expected, name_of(call.type), ": invalid number of ", what,
                    " tensors: expected ", expected, ", got ", got);
}

void check_same(const Collective& call, const at::Tensor& first, const at::Tensor& other) {
  TORCH_CHECK_VALUE(first.scalar_type() == other.scalar_type(), name_of(call.type),
                    ": invalid tensor type: expected ", first.scalar_type(), ", got ",
                    other.scalar_type());
}

void check_divided(const Collective& call, int64_t whole, int64_t part, int size) {
  TORCH_CHECK_VALUE(whole == part * size, name_of(call.type), ": a tensor of ", whole,
                    " elements cannot hold the ", part, " elements of each of ", size, " ranks");
}

void check_counts(const Collective& call, int rank, int size) {
  const auto n = static_cast<size_t>(size);
  const bool at_root = call.root == rank;
  switch (call.type) {
  case OpType::AllGather:
    check_count(call, "input", call.inputs.size(), 1);
    return check_count(call, "output", call.outputs.size(), n);
  case OpType::Gather:
    check_count(call, "input", call.inputs.size(), 1);
    return check_count(call, "output", call.outputs.size(), at_root ? n : 0);
  case OpType::Scatter:
    check_count(call, "output", call.outputs.size(), 1);
    return check_count(call, "input", call.inputs.size(), at_root ? n : 0);
  case OpType::ReduceScatter:
    check_count(call, "output", call.outputs.size(), 1);
    return check_count(call, "input", call.inputs.size(), n);
  case OpType::AllToAll:
    check_count(call, "input", call.inputs.size(), n);
    return check_count(call, "output", call.outputs.size(), n);
  case OpType::AllGatherBase:
  case OpType::ReduceScatterBase:
  case OpType::AllToAllBase:
    check_count(call, "input", call.inputs.size(), 1);
    return check_count(call, "output", call.outputs.size(), 1);
  case OpType::AllGatherCoalesced:
  case OpType::ReduceScatterCoalesced:
    return check_count(call, "output", call.outputs.size(), call.inputs.size());
  case OpType::Send:
    return check_count(call, "input", call.inputs.size(), 1);
  case OpType::Barrier:
    return;
  default:
    TORCH_CHECK_VALUE(!call.outputs.empty(), name_of(call.type),
                      ": requires non-empty tensor list");
  }
}

void check_sizes(const Collective& call, int size) {
  const auto pairs = std::min(call.inputs.size(), call.outputs.size());
  for (size_t i = 0; i < pairs; ++i) {
    const int64_t in = call.inputs[i].numel(), out = call.outputs[i].numel();
    if (call.type == OpType::AllGatherBase || call.type == OpType::AllGatherCoalesced) {
      check_divided(call, out, in, size);
    } else if (call.type == OpType::ReduceScatterBase ||
               call.type == OpType::ReduceScatterCoalesced) {
      check_divided(call, in, out, size);
    }
  }
}

void check_splits(const Collective& call, const std::vector<int64_t>& splits,
                  const at::Tensor& tensor, int size) {
  const int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  if (splits.empty()) {
    TORCH_CHECK(rows % size == 0, name_of(call.type),
                ": Tensor's dim 0 does not divide equally across group size: ", rows, " rows for ",
                size, " ranks");
    return;
  }
  TORCH_CHECK(splits.size() == static_cast<size_t>(size), name_of(call.type),
              ": Number of tensor splits not equal to group size: ", splits.size(), " for ", size);
  int64_t sum = 0;
  for (const int64_t one : splits) {
    TORCH_CHECK(one >= 0, name_of(call.type), ": a split size is negative");
    sum += one;
  }
  TORCH_CHECK(sum == rows, name_of(call.type),
              ": Split sizes doesn't match total dim 0 size: ", sum, " for ", rows, " rows");
}

} // namespace

Backend::Backend(int rank, int size, BackendOptions options)
    : rank_(rank), size_(size), options_(std::move(options)) {
  TORCH_CHECK_VALUE(size > 0 && rank >= 0 && rank < size, "rank ", rank,
                    " is not in a group of size ", size);
}
Backend::~Backend() = default;

void Backend::monitored_barrier(Millis, bool) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Backend ", name(), " does not support monitoredBarrier");
}

void Backend::register_memory(c10::Device, void*, size_t) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Backend ", name(), " does not register memory");
}
void Backend::deregister_memory(void*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Backend ", name(), " does not register memory");
}

void Backend::prepare(Collective& call) {
  for (const auto* list : {&call.inputs, &call.outputs}) {
    for (const auto& tensor : *list) {
      TORCH_CHECK_VALUE(tensor.defined(), name_of(call.type), ": a tensor is missing");
    }
  }
  check_counts(call, rank_, size_);
  if (has_root(call.type) || call.type == OpType::Send || call.type == OpType::Recv) {
    TORCH_CHECK_VALUE(call.root >= 0 && call.root < size_, name_of(call.type),
                      ": invalid root rank: ", call.root, " in a group of ", size_);
  }
  const auto& first = call.inputs.empty() ? call.outputs : call.inputs;
  const bool mixed = call.type == OpType::AllReduceCoalesced || call.type == OpType::Broadcast ||
                     call.type == OpType::AllGatherCoalesced ||
                     call.type == OpType::ReduceScatterCoalesced;
  for (const auto& tensor : call.inputs) {
    if (!mixed) check_same(call, first[0], tensor);
  }
  for (const auto& tensor : call.outputs) {
    if (!mixed) check_same(call, first[0], tensor);
  }
  check_sizes(call, size_);
  if (call.type == OpType::AllToAllBase) {
    check_splits(call, call.input_splits, call.inputs[0], size_);
    check_splits(call, call.output_splits, call.outputs[0], size_);
  }
  call.sequence = call.is_point_to_point() ? sequence_.load() : ++sequence_;
  if (call.timeout < Millis::zero()) call.timeout = options_.timeout;
  call.record = FlightRecorder::get().begin(*this, call);
}

FakeBackend::~FakeBackend() = default;

std::shared_ptr<Work> FakeBackend::run(Collective call) {
  prepare(call);
  auto work = std::make_shared<Work>(call);
  work->finish();
  return work;
}

} // namespace c10d::engine
