// Backends of extensions as ours: each operation as a call of the virtual function for it.
#include <torch/csrc/distributed/c10d/Foreign.h>

namespace c10d::engine {

namespace {

using Tensors = std::vector<at::Tensor>;
using ForeignPtr = c10::intrusive_ptr<c10d::Work>;

// Work of an extension. It is done when the extension says so, which nobody tells us: whoever asks
// finds out, and callbacks go through its future where it has one.
class AdoptedWork final : public Work {
 public:
  AdoptedWork(ForeignPtr foreign, const Collective& call)
      : Work(call), foreign_(std::move(foreign)) {}
  void wait(Millis timeout) override {
    try {
      const bool is_done = foreign_->wait(timeout <= Millis::zero() ? kNoTimeout : timeout);
      TORCH_CHECK(is_done, description(), ": wait() of the backend returned false");
    } catch (...) {
      if (foreign_->isCompleted()) finish(std::current_exception());
      throw;
    }
    finish();
  }
  bool is_completed() override { return foreign_->isCompleted(); }
  bool is_success() override { return foreign_->isSuccess(); }
  std::exception_ptr exception() override { return foreign_->exception(); }
  int source_rank() const override { return foreign_->sourceRank(); }
  void on_done(std::function<void()> callback) override {
    c10::intrusive_ptr<c10::ivalue::Future> future;
    try {
      future = foreign_->getFuture();
    } catch (const c10::NotImplementedError&) {
      // Nobody would call back: wait here.
      try {
        wait(Millis::zero());
      } catch (...) { // which exception() tells
      }
    }
    if (!future) return callback();
    future->addCallback([callback](c10::ivalue::Future&) { callback(); });
  }
  const ForeignPtr& foreign() const { return foreign_; }

 private:
  const ForeignPtr foreign_;
};

class AdoptedBackend final : public Backend {
 public:
  explicit AdoptedBackend(c10::intrusive_ptr<c10d::Collectives> foreign)
      : Backend(foreign->getRank(), foreign->getSize(), {}), foreign_(std::move(foreign)) {}
  ~AdoptedBackend() override = default;
  std::string name() const override { return foreign_->getBackendName(); }
  std::shared_ptr<Work> run(Collective call) override {
    if (!call.is_point_to_point()) call.sequence = ++sequence_;
    ForeignPtr work = call.is_point_to_point() ? transfer(call) : collective(call);
    TORCH_CHECK(work, "Backend ", name(), " returned a null pointer for the work of ",
                call.describe());
    return adopt(std::move(work), std::move(call));
  }
  void monitored_barrier(Millis timeout, bool wait_all_ranks) override {
    c10d::BarrierOptions options;
    options.timeout = timeout;
    foreign_->monitoredBarrier(options, wait_all_ranks);
  }
  void abort() override { foreign_->abort(); }
  void shutdown() override { foreign_->shutdown(); }
  const c10::intrusive_ptr<c10d::Collectives>& foreign() const { return foreign_; }

 private:
  template <class Options> static Options with(const Collective& call) {
    Options options;
    options.timeout = call.timeout;
    options.asyncOp = call.is_async;
    return options;
  }
  template <class Options> static Options with_root(const Collective& call) {
    auto options = with<Options>(call);
    options.rootRank = call.root;
    return options;
  }
  template <class Options> static Options with_reduction(const Collective& call) {
    auto options = with<Options>(call);
    options.reduceOp = c10d::ReduceOp(static_cast<c10d::ReduceOp::RedOpType>(call.reduce.kind),
                                      call.reduce.factor);
    return options;
  }
  static c10d::ReduceOptions of_reduce(const Collective& call) {
    auto options = with_reduction<c10d::ReduceOptions>(call);
    options.rootRank = call.root;
    return options;
  }
  // Lists of lists are from the time of several devices per process.
  static std::vector<Tensors> nested(const Tensors& list) {
    return list.empty() ? std::vector<Tensors>() : std::vector<Tensors>{list};
  }
  // The one tensor of a list; operations of single tensors are called with one.
  static at::Tensor& only(Tensors& list, const Collective& call) {
    TORCH_CHECK_VALUE(list.size() == 1, call.describe(), ": expected one tensor, got ",
                      list.size());
    return list[0];
  }

  ForeignPtr transfer(Collective& call) {
    if (call.type == OpType::Send) return foreign_->send(call.inputs, call.root, call.tag);
    if (call.type == OpType::Recv) return foreign_->recv(call.outputs, call.root, call.tag);
    return foreign_->recvAnysource(call.outputs, call.tag);
  }

  ForeignPtr collective(Collective& call) {
    auto &in = call.inputs, &out = call.outputs;
    auto& to = *foreign_;
    switch (call.type) {
    case OpType::Broadcast:
      return to.broadcast(out, with_root<c10d::BroadcastOptions>(call));
    case OpType::AllReduce:
      return to.allreduce(out, with_reduction<c10d::AllreduceOptions>(call));
    case OpType::AllReduceSparse:
      return to.allreduce_sparse(out, with_reduction<c10d::AllreduceOptions>(call));
    case OpType::AllReduceCoalesced:
      return to.allreduce_coalesced(out, with_reduction<c10d::AllreduceCoalescedOptions>(call));
    case OpType::Reduce:
      return to.reduce(out, of_reduce(call));
    case OpType::AllGather:
    case OpType::Gather:
    case OpType::Scatter:
    case OpType::ReduceScatter:
      return of_lists(call);
    case OpType::AllGatherBase:
      return of_one_tensor(call);
    case OpType::AllGatherCoalesced:
      return to.allgather_into_tensor_coalesced(out, in, with<c10d::AllgatherOptions>(call));
    case OpType::ReduceScatterBase:
      return to._reduce_scatter_base(only(out, call), only(in, call),
                                     with_reduction<c10d::ReduceScatterOptions>(call));
    case OpType::ReduceScatterCoalesced:
      return to.reduce_scatter_tensor_coalesced(out, in,
                                                with_reduction<c10d::ReduceScatterOptions>(call));
    case OpType::AllToAllBase:
      return to.alltoall_base(only(out, call), only(in, call), call.output_splits,
                              call.input_splits, with<c10d::AllToAllOptions>(call));
    case OpType::AllToAll:
      return to.alltoall(out, in, with<c10d::AllToAllOptions>(call));
    case OpType::Barrier:
      return to.barrier(with<c10d::BarrierOptions>(call));
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "Backend ", name(), " does not support ",
                                  name_of(call.type));
    }
  }

  ForeignPtr of_lists(Collective& call) {
    if (call.type == OpType::AllGather || call.type == OpType::Gather) {
      std::vector<Tensors> outputs = nested(call.outputs);
      if (call.type == OpType::Gather)
        return foreign_->gather(outputs, call.inputs, with_root<c10d::GatherOptions>(call));
      return foreign_->allgather(outputs, call.inputs, with<c10d::AllgatherOptions>(call));
    }
    std::vector<Tensors> inputs = nested(call.inputs);
    if (call.type == OpType::Scatter)
      return foreign_->scatter(call.outputs, inputs, with_root<c10d::ScatterOptions>(call));
    return foreign_->reduce_scatter(call.outputs, inputs,
                                    with_reduction<c10d::ReduceScatterOptions>(call));
  }

  // Much of the package gathers into one tensor; a backend that has lists only gets parts of it.
  ForeignPtr of_one_tensor(Collective& call) {
    at::Tensor &output = only(call.outputs, call), &input = only(call.inputs, call);
    const auto options = with<c10d::AllgatherOptions>(call);
    try {
      return foreign_->_allgather_base(output, input, options);
    } catch (const c10::NotImplementedError&) {
      if (!output.is_contiguous() || output.numel() != input.numel() * size()) throw;
    }
    std::vector<Tensors> parts(1);
    const at::Tensor rows = output.view({size(), input.numel()});
    for (int rank = 0; rank < size(); ++rank)
      parts[0].push_back(rows.select(0, rank).view(input.sizes()));
    return foreign_->allgather(parts, call.inputs, options);
  }

  const c10::intrusive_ptr<c10d::Collectives> foreign_;
};

} // namespace

std::shared_ptr<Backend> adopt(c10::intrusive_ptr<c10d::Collectives> foreign) {
  TORCH_CHECK(foreign, "a function that makes a backend returned a null pointer");
  return std::make_shared<AdoptedBackend>(std::move(foreign));
}
std::shared_ptr<Work> adopt(c10::intrusive_ptr<c10d::Work> foreign, Collective call) {
  TORCH_CHECK(foreign, "work of a backend is a null pointer");
  return std::make_shared<AdoptedWork>(std::move(foreign), call);
}

c10::intrusive_ptr<c10d::Collectives> foreign_of(const Backend& backend) {
  const auto* adopted = dynamic_cast<const AdoptedBackend*>(&backend);
  return adopted ? adopted->foreign() : c10::intrusive_ptr<c10d::Collectives>();
}
c10::intrusive_ptr<c10d::Work> foreign_of(const Work& work) {
  const auto* adopted = dynamic_cast<const AdoptedWork*>(&work);
  return adopted ? adopted->foreign() : c10::intrusive_ptr<c10d::Work>();
}

} // namespace c10d::engine
