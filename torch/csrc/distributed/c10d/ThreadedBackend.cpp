// A group whose members are threads of one process. They meet at a board; the last to arrive at an
// operation does it for all, with plain copies and additions in the order of ranks: a reference for
// what the operations mean, and a way to test programs for many ranks without many processes.
#include <torch/csrc/distributed/c10d/Backend.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/bitwise_xor.h>
#include <ATen/ops/div.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/parallel/Parallel.h>

namespace c10d::engine {

namespace {

using Calls = std::vector<Collective*>; // by rank

at::Tensor combined(ReduceOp::Kind kind, const at::Tensor& a, const at::Tensor& b) {
  switch (kind) {
  case ReduceOp::Product:
    return at::mul(a, b);
  case ReduceOp::Min:
    return at::minimum(a, b);
  case ReduceOp::Max:
    return at::maximum(a, b);
  case ReduceOp::Band:
    return at::bitwise_and(a, b);
  case ReduceOp::Bor:
    return at::bitwise_or(a, b);
  case ReduceOp::Bxor:
    return at::bitwise_xor(a, b);
  default:
    return at::add(a, b);
  }
}

at::Tensor reduced(const Calls& calls, const std::function<at::Tensor(const Collective&)>& pick) {
  at::Tensor sum;
  for (const Collective* call : calls) {
    at::Tensor one = pick(*call);
    if (call->reduce.kind == ReduceOp::PremulSum) one = at::mul(one, call->reduce.factor);
    sum = sum.defined() ? combined(call->reduce.kind, sum, one) : one.clone();
  }
  if (calls[0]->reduce.kind == ReduceOp::Avg) {
    sum = at::div(sum, at::detail::wrapped_number(static_cast<int64_t>(calls.size())));
  }
  return sum;
}

void put(const at::Tensor& to, const at::Tensor& from) { to.copy_(from.reshape(to.sizes())); }

std::vector<at::Tensor> parts(const at::Tensor& whole, const std::vector<int64_t>& splits,
                              size_t count) {
  std::vector<at::Tensor> out;
  const int64_t rows = whole.dim() == 0 ? 1 : whole.size(0);
  int64_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t length = splits.empty() ? rows / static_cast<int64_t>(count) : splits[i];
    out.push_back(whole.narrow(0, at, length));
    at += length;
  }
  return out;
}

void gather_into(const Calls& calls, size_t i) {
  for (const Collective* call : calls) {
    const at::Tensor out = call->outputs[i].view({static_cast<int64_t>(calls.size()), -1});
    for (size_t r = 0; r < calls.size(); ++r) {
      put(out.select(0, static_cast<int64_t>(r)), calls[r]->inputs[i]);
    }
  }
}

void reduce_scatter_into(const Calls& calls, size_t i) {
  const at::Tensor sum = reduced(calls, [i](const Collective& c) { return c.inputs[i]; });
  const at::Tensor rows = sum.reshape({static_cast<int64_t>(calls.size()), -1});
  for (size_t r = 0; r < calls.size(); ++r) {
    put(calls[r]->outputs[i], rows.select(0, static_cast<int64_t>(r)));
  }
}

void all_reduce(const Calls& calls) {
  for (size_t i = 0; i < calls[0]->outputs.size(); ++i) {
    const at::Tensor sum = reduced(calls, [i](const Collective& c) { return c.outputs[i]; });
    for (const Collective* call : calls) put(call->outputs[i], sum);
  }
}

void all_to_all(const Calls& calls) {
  const size_t n = calls.size();
  std::vector<std::vector<at::Tensor>> from(n), to(n);
  for (size_t r = 0; r < n; ++r) {
    const Collective& call = *calls[r];
    const bool single = call.type == OpType::AllToAllBase;
    from[r] = single ? parts(call.inputs[0], call.input_splits, n) : call.inputs;
    to[r] = single ? parts(call.outputs[0], call.output_splits, n) : call.outputs;
  }
  for (size_t r = 0; r < n; ++r) {
    for (size_t s = 0; s < n; ++s) put(to[r][s], from[s][r]);
  }
}

void do_for_all(const Calls& calls) {
  const Collective& first = *calls[0];
  const auto root = static_cast<size_t>(first.root);
  switch (first.type) {
  case OpType::Broadcast:
    for (const Collective* call : calls) {
      for (size_t i = 0; i < call->outputs.size(); ++i) {
        put(call->outputs[i], calls[root]->outputs[i]);
      }
    }
    return;
  case OpType::AllReduce:
  case OpType::AllReduceCoalesced:
    return all_reduce(calls);
  case OpType::Reduce: {
    const at::Tensor sum = reduced(calls, [](const Collective& c) { return c.outputs[0]; });
    return put(calls[root]->outputs[0], sum);
  }
  case OpType::AllGather:
  case OpType::Gather:
    for (const Collective* call : calls) {
      for (size_t r = 0; r < call->outputs.size(); ++r) put(call->outputs[r], calls[r]->inputs[0]);
    }
    return;
  case OpType::AllGatherBase:
  case OpType::AllGatherCoalesced:
    for (size_t i = 0; i < first.inputs.size(); ++i) gather_into(calls, i);
    return;
  case OpType::Scatter:
    for (size_t r = 0; r < calls.size(); ++r) {
      put(calls[r]->outputs[0], calls[root]->inputs[r]);
    }
    return;
  case OpType::ReduceScatter:
    for (size_t r = 0; r < calls.size(); ++r) {
      put(calls[r]->outputs[0], reduced(calls, [r](const Collective& c) { return c.inputs[r]; }));
    }
    return;
  case OpType::ReduceScatterBase:
  case OpType::ReduceScatterCoalesced:
    for (size_t i = 0; i < first.inputs.size(); ++i) reduce_scatter_into(calls, i);
    return;
  case OpType::AllToAll:
  case OpType::AllToAllBase:
    return all_to_all(calls);
  case OpType::Barrier:
    return;
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, name_of(first.type),
                                " is not implemented by backend threaded");
  }
}

// Where the members of one group meet.
struct Board {
  struct Meeting {
    Calls calls;
    size_t arrived = 0, left = 0;
    bool is_done = false;
    std::exception_ptr error;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint64_t, Meeting> meetings;
  // Messages by sender, receiver and tag.
  std::map<std::array<int, 3>, std::deque<at::Tensor>> mail;
};

class ThreadedBackend final : public BlockingBackend {
 public:
  ThreadedBackend(std::shared_ptr<Board> board, int rank, int size, BackendOptions options)
      : BlockingBackend(nullptr, rank, size, std::move(options)), board_(std::move(board)) {}
  ~ThreadedBackend() override { stop_threads(); }
  std::string name() const override { return "threaded"; }
  void monitored_barrier(Millis timeout, bool) override {
    Collective call;
    call.type = OpType::Barrier;
    call.timeout = timeout;
    call.is_async = false;
    run(std::move(call))->wait(Millis::zero());
  }

 protected:
  void execute(Collective& call, Work& work) override;
  std::shared_ptr<Work> start_transfer(Collective call) override;

 private:
  const std::shared_ptr<Board> board_;
};

void ThreadedBackend::execute(Collective& call, Work&) {
  for (auto& t : call.inputs) t = t.detach();
  for (auto& t : call.outputs) t = t.detach();
  std::unique_lock lock(board_->mutex);
  auto& meeting = board_->meetings[call.sequence];
  meeting.calls.resize(static_cast<size_t>(size_));
  meeting.calls[static_cast<size_t>(rank_)] = &call;
  if (++meeting.arrived == static_cast<size_t>(size_)) {
    try {
      for (const Collective* other : meeting.calls) {
        TORCH_CHECK(other->type == call.type,
                    "Detected mismatch between collectives on ranks: ", call.describe(),
                    " here and ", other->describe(), " elsewhere");
      }
      do_for_all(meeting.calls);
    } catch (...) {
      meeting.error = std::current_exception();
    }
    meeting.is_done = true;
    board_->changed.notify_all();
  } else if (!board_->changed.wait_for(lock, call.timeout, [&] { return meeting.is_done; })) {
    std::string missing;
    for (size_t r = 0; r < meeting.calls.size(); ++r) {
      if (!meeting.calls[r]) missing += c10::str(missing.empty() ? "" : ", ", r);
    }
    meeting.calls[static_cast<size_t>(rank_)] = nullptr;
    --meeting.arrived;
    throw DistBackendError(c10::str("Timed out waiting ", call.timeout.count(),
                                    "ms for ranks that did not arrive: ", missing));
  }
  const auto error = meeting.error;
  if (++meeting.left == static_cast<size_t>(size_)) board_->meetings.erase(call.sequence);
  if (error) std::rethrow_exception(error);
}

// A receive that waits for its message.
class Receive final : public Work {
 public:
  Receive(const Collective& call, std::shared_ptr<Board> board, int rank, int size)
      : Work(call), call_(call), board_(std::move(board)), rank_(rank), size_(size) {}

  void wait(Millis timeout) override {
    if (timeout <= Millis::zero()) timeout = call_.timeout;
    std::unique_lock lock(board_->mutex);
    if (!is_completed()) {
      at::Tensor message;
      if (!board_->changed.wait_for(lock, timeout, [&] { return take(message); })) {
        throw DistBackendError(
            c10::str("Timed out waiting ", timeout.count(), "ms for recv of ", description()));
      }
      put(call_.outputs[0].detach(), message);
      finish();
    }
  }

 private:
  bool take(at::Tensor& message) {
    for (int from = 0; from < size_; ++from) {
      if (call_.type == OpType::Recv && from != call_.root) continue;
      auto& box = board_->mail[{from, rank_, call_.tag}];
      if (box.empty()) continue;
      message = box.front();
      box.pop_front();
      set_source_rank(from);
      return true;
    }
    return false;
  }
  const Collective call_;
  const std::shared_ptr<Board> board_;
  const int rank_, size_;
};

std::shared_ptr<Work> ThreadedBackend::start_transfer(Collective call) {
  if (call.type != OpType::Send) return std::make_shared<Receive>(call, board_, rank_, size_);
  auto work = std::make_shared<Work>(call);
  std::lock_guard lock(board_->mutex);
  board_->mail[{rank_, call.root, call.tag}].push_back(call.inputs[0].detach().clone());
  board_->changed.notify_all();
  work->finish();
  return work;
}

} // namespace

std::shared_ptr<Backend> make_threaded_backend(const std::string& group_key, int rank, int size,
                                               BackendOptions options) {
  static std::mutex mutex;
  static auto* boards = new std::map<std::string, std::weak_ptr<Board>>;
  std::lock_guard lock(mutex);
  auto board = (*boards)[group_key].lock();
  if (!board) (*boards)[group_key] = board = std::make_shared<Board>();
  return std::make_shared<ThreadedBackend>(std::move(board), rank, size, std::move(options));
}

} // namespace c10d::engine
