// NCCL as a backend. Work is put on a stream and the caller's stream waits for it, never the
// caller: a call that is not asynchronous goes on the caller's own stream, so that it can be
// captured into a graph; others go on a stream of this group. A thread looks whether work takes
// longer than allowed or NCCL reports an error; then the communicator is aborted, which ends what
// hangs on the device, and whoever waits gets the reason.
#include <torch/csrc/distributed/c10d/Backend.h>
#include <torch/csrc/distributed/c10d/FlightRecorder.h>
#include <torch/csrc/distributed/nccl/NcclTable.h>

#include <cstring>
#include <list>
#include <optional>

#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>
#include <ATen/parallel/Parallel.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/Driver.h>

namespace c10d::engine::nccl {

namespace {

using Clock = std::chrono::steady_clock;
using c10::cuda::CUDAEvent;
using c10::cuda::CUDAStream;

constexpr Millis kLook = Millis(100);

int type_of(const Collective& call, at::ScalarType type) {
  switch (type) {
  case at::kByte:
  case at::kBool:
    return Uint8;
  case at::kChar:
    return Int8;
  case at::kInt:
    return Int32;
  case at::kLong:
    return Int64;
  case at::kHalf:
    return Float16;
  case at::kFloat:
    return Float32;
  case at::kDouble:
    return Float64;
  case at::kBFloat16:
    return Bfloat16;
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, name_of(call.type),
                                " is not implemented by backend nccl for dtype ", type);
  }
}

// How many numbers of type_of() a tensor has; complex numbers are two.
at::Tensor as_real(const at::Tensor& t) { return t.is_complex() ? at::view_as_real(t) : t; }

int op_of(const Collective& call, at::ScalarType type) {
  const bool is_bool = type == at::kBool;
  switch (call.reduce.kind) {
  case ReduceOp::Sum:
    return is_bool ? Max : Sum; // bytes that are 0 or 1 stay so
  case ReduceOp::Product:
    return is_bool ? Min : Prod;
  case ReduceOp::Min:
    return Min;
  case ReduceOp::Max:
    return Max;
  case ReduceOp::Avg:
    TORCH_CHECK_TYPE(!is_bool, "Cannot use ReduceOp.AVG with boolean inputs");
    return Avg;
  case ReduceOp::Band:
    TORCH_CHECK_VALUE(is_bool, "Cannot use ReduceOp.BAND with NCCL");
    return Min;
  case ReduceOp::Bor:
    TORCH_CHECK_VALUE(is_bool, "Cannot use ReduceOp.BOR with NCCL");
    return Max;
  default:
    TORCH_CHECK_VALUE(call.reduce.kind != ReduceOp::Bxor, "Cannot use ReduceOp.BXOR with NCCL");
    return Sum;
  }
}

// ---- work
class NcclWork final : public Work {
 public:
  NcclWork(const Collective& call, std::vector<at::Tensor> kept)
      : Work(call), timeout_(call.timeout), begun_(Clock::now()), kept_(std::move(kept)) {}

  // Of the stream that the work is on; without one the work is done.
  void record(CUDAStream stream) {
    event_ = std::make_unique<CUDAEvent>();
    event_->record(stream);
  }
  bool is_completed() override {
    if (event_ && !Work::is_completed()) {
      try {
        const c10::cuda::CUDAGuard guard(event_->device_index()); // the watcher has no device yet
        if (event_->query()) finish();
      } catch (const c10::Error& error) { // of the device: the thread that looks must live
        finish(std::make_exception_ptr(
            DistBackendError(c10::str(description(), " failed: ", error.what()))));
      }
    }
    return Work::is_completed();
  }
  // The caller waits too. The watcher ends it where it takes too long.
  void wait_on_host() {
    while (!is_completed()) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      at::check_interrupt();
    }
    if (auto error = exception()) std::rethrow_exception(error);
  }
  // The caller's stream waits; the caller only where a timeout is given.
  void wait(Millis timeout) override {
    if (auto error = exception()) std::rethrow_exception(error);
    if (event_) event_->block(c10::cuda::getCurrentCUDAStream(event_->device_index()));
    if (timeout <= Millis::zero() || !event_) return;
    const auto deadline = Clock::now() + timeout;
    while (!is_completed()) {
      if (Clock::now() >= deadline) {
        throw DistBackendError(c10::str("Operation timed out! wait() of ", description(),
                                        " took more than ", timeout.count(), "ms"));
      }
      std::this_thread::sleep_for(Millis(1));
    }
    if (auto error = exception()) std::rethrow_exception(error);
  }
  bool is_late() const { return Clock::now() - begun_ > timeout_; }
  Millis timeout() const { return timeout_; }
  void release() { kept_.clear(); }

 private:
  const Millis timeout_;
  const Clock::time_point begun_;
  std::unique_ptr<CUDAEvent> event_;
  // Memory that the stream of the group uses.
  std::vector<at::Tensor> kept_;
};

} // namespace

class NcclBackend final : public Backend {
 public:
  NcclBackend(std::shared_ptr<Store> store, int rank, int size, const BackendOptions& options)
      : Backend(rank, size, options), store_(std::move(store)) {
    std::string why;
    nccl_ = table(why);
    TORCH_CHECK(nccl_, "Distributed package doesn't have NCCL built in: ", why);
  }
  ~NcclBackend() override { end(false); }
  std::string name() const override { return "nccl"; }
  std::shared_ptr<Work> run(Collective call) override;
  void abort() override { end(true); }
  void shutdown() override { end(false); }
  void begin_batch() override;
  void end_batch() override;
  void register_memory(c10::Device device, void* data, size_t bytes) override;
  void deregister_memory(void* data) override;

 private:
  void check(int result, const char* function, Comm comm = nullptr) const;
  // Calls in between become one.
  template <class F> void grouped(Comm comm, const F& calls) const {
    check(nccl_->ncclGroupStart(), "ncclGroupStart", comm);
    try {
      calls();
    } catch (...) {
      nccl_->ncclGroupEnd();
      throw;
    }
    check(nccl_->ncclGroupEnd(), "ncclGroupEnd", comm);
  }
  Comm communicator(c10::Device device);
  c10::Device device_of(const Collective& call) const;
  // Puts the operation on the stream. Returns memory that must live until it is done.
  std::vector<at::Tensor> enqueue(const Collective& call, Comm comm, void* stream);
  void listed(const Collective& call, Comm comm, void* stream, int type, int op);
  void exchange(const Collective& call, Comm comm, void* stream);
  void rooted(const Collective& call, Comm comm, void* stream);
  void watch();
  void end(bool aborts);
  void fail(const std::string& reason);

  // What was started since begin_batch(): NCCL gets it as one group.
  struct Batch {
    bool has_begun = false;
    std::optional<CUDAStream> stream;
    std::vector<std::shared_ptr<NcclWork>> works;
  };
  void leave(const std::shared_ptr<NcclWork>& work, CUDAStream stream);

  struct Registered {
    int device;
    void* handle;
  };
  const std::shared_ptr<Store> store_;
  const Table* nccl_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Comm> comms_; // by device
  std::map<int, CUDAStream> streams_;
  std::map<void*, Registered> registered_;
  std::optional<Batch> batch_;
  std::list<std::shared_ptr<NcclWork>> pending_;
  std::thread watcher_;
  std::string failure_;
  bool is_ended_ = false;
};

void NcclBackend::check(int result, const char* function, Comm comm) const {
  if (result == Success || result == InProgress) return;
  const char* last = nccl_->ncclGetLastError(comm);
  throw DistBackendError(c10::str("NCCL error in ", function, ": ",
                                  nccl_->ncclGetErrorString(result), last && *last ? ": " : "",
                                  last ? last : ""));
}

c10::Device NcclBackend::device_of(const Collective& call) const {
  const auto& tensors = call.outputs.empty() ? call.inputs : call.outputs;
  if (tensors.empty()) {
    return nccl_->is_emulated
               ? c10::Device(c10::kCPU)
               : c10::Device(c10::kCUDA, c10::cuda::getCurrentCUDAStream().device_index());
  }
  const c10::Device device = tensors[0].device();
  for (const auto* list : {&call.inputs, &call.outputs}) {
    for (const auto& t : *list) {
      TORCH_CHECK_VALUE(t.device() == device, name_of(call.type),
                        ": tensors must be on one device, got ", device, " and ", t.device());
      TORCH_CHECK_VALUE(t.is_cuda() != nccl_->is_emulated && t.layout() == at::kStrided,
                        "Tensors must be CUDA and dense, got ", t.layout(), " on ", t.device());
      TORCH_CHECK_VALUE(t.is_contiguous(), "Tensors must be contiguous");
    }
  }
  return device;
}

// The first rank makes an id for the device and tells the others through the store. Every rank
// makes its communicators in the same order, because it makes them for its operations.
Comm NcclBackend::communicator(c10::Device device) {
  const int index = device.is_cuda() ? device.index() : -1;
  if (const auto found = comms_.find(index); found != comms_.end()) return found->second;
  const std::string key = c10::str("cresset/nccl/", comms_.size());
  UniqueId id;
  if (rank_ == 0) {
    check(nccl_->ncclGetUniqueId(&id), "ncclGetUniqueId");
    store_->set(key, Bytes(id.bytes, sizeof id.bytes));
  } else {
    const Bytes text = store_->get(key);
    TORCH_CHECK(text.size() == sizeof id.bytes, "the store has no NCCL id under ", key);
    std::memcpy(id.bytes, text.data(), sizeof id.bytes);
  }
  Comm comm = nullptr;
  check(nccl_->ncclCommInitRank(&comm, size_, id, rank_), "ncclCommInitRank");
  comms_[index] = comm;
  if (device.is_cuda()) {
    streams_.emplace(index, c10::cuda::getStreamFromPool(-1, device.index()));
  }
  return comm;
}

std::shared_ptr<Work> NcclBackend::run(Collective call) {
  prepare(call);
  TORCH_CHECK_NOT_IMPLEMENTED(call.type != OpType::RecvAnySource,
                              "ProcessGroupNCCL does not support recvAnysource");
  for (auto* list : {&call.inputs, &call.outputs}) {
    for (auto& t : *list) t = as_real(t.detach());
  }
  const c10::Device device = device_of(call);
  std::unique_lock lock(mutex_);
  TORCH_CHECK(!is_ended_, call.describe(), ": the process group was shut down");
  if (!failure_.empty()) throw DistBackendError(failure_);
  if (!device.is_cuda()) {
    const Comm comm = communicator(device);
    if (batch_ && !std::exchange(batch_->has_begun, true)) {
      check(nccl_->ncclGroupStart(), "ncclGroupStart", comm);
    }
    enqueue(call, comm, nullptr);
    auto work = std::make_shared<NcclWork>(call, std::vector<at::Tensor>());
    work->finish();
    return work;
  }
  const c10::cuda::CUDAGuard guard(device);
  const Comm comm = communicator(device);
  const CUDAStream current = c10::cuda::getCurrentCUDAStream(device.index());
  // A barrier is for the host: it waits.
  const bool is_barrier = call.type == OpType::Barrier;
  const CUDAStream stream = call.is_async ? streams_.at(device.index()) : current;
  if (call.reduce.kind == ReduceOp::PremulSum) { // before the other stream waits for this one
    const auto& first = call.inputs.empty() ? call.outputs[0] : call.inputs[0];
    call.reduce.factor = call.reduce.factor.to(device, first.scalar_type());
  }
  if (stream != current) c10::cuda::wait_stream(stream, current);
  const bool captured = c10::cuda::is_capturing();
  if (batch_ && !std::exchange(batch_->has_begun, true)) {
    check(nccl_->ncclGroupStart(), "ncclGroupStart", comm);
    batch_->stream = stream;
  }
  TORCH_CHECK(!batch_ || *batch_->stream == stream, call.describe(),
              ": the operations of a batch must be on one device and stream");
  FlightRecorder::get().start(call.record);
  auto kept = enqueue(call, comm, stream.stream());
  kept.insert(kept.end(), call.inputs.begin(), call.inputs.end());
  kept.insert(kept.end(), call.outputs.begin(), call.outputs.end());
  if (stream != current) {
    for (const auto& t : kept)
      c10::cuda::CUDACachingAllocator::recordStream(t.storage().data_ptr(), stream);
  }
  auto work = std::make_shared<NcclWork>(call, captured ? std::vector<at::Tensor>() : kept);
  if (batch_) {
    batch_->works.push_back(work);
    return work;
  }
  leave(work, stream);
  lock.unlock();
  if (is_barrier && !captured) work->wait_on_host();
  return work;
}

// Marks the place of the work on its stream, and has it watched unless it is only recorded.
void NcclBackend::leave(const std::shared_ptr<NcclWork>& work, CUDAStream stream) {
  work->record(stream);
  if (c10::cuda::is_capturing()) return;
  if (!watcher_.joinable()) watcher_ = std::thread([this] { watch(); });
  pending_.push_back(work);
  changed_.notify_one();
}

void NcclBackend::begin_batch() {
  std::lock_guard lock(mutex_);
  TORCH_CHECK(!batch_, "a batch of operations was begun already");
  batch_.emplace();
}
void NcclBackend::end_batch() {
  std::lock_guard lock(mutex_);
  TORCH_CHECK(batch_, "no batch of operations was begun");
  const auto batch = std::exchange(batch_, std::nullopt);
  if (!batch->has_begun) return;
  check(nccl_->ncclGroupEnd(), "ncclGroupEnd");
  for (const auto& work : batch->works) leave(work, *batch->stream);
}

// ---- operations
std::vector<at::Tensor> NcclBackend::enqueue(const Collective& call, Comm comm, void* stream) {
  std::vector<at::Tensor> kept;
  const auto each = [&](const char* name, const auto& one) {
    const size_t count = std::max(call.inputs.size(), call.outputs.size());
    if (count == 1) return check(one(0), name, comm);
    grouped(comm, [&] {
      for (size_t i = 0; i < count; ++i) check(one(i), name, comm);
    });
  };
  const auto count = [](const at::Tensor& t) { return static_cast<size_t>(t.numel()); };
  const auto& first = call.inputs.empty() ? call.outputs : call.inputs;
  const int type = first.empty() ? Int32 : type_of(call, first[0].scalar_type());
  int op = first.empty() ? Sum : op_of(call, first[0].scalar_type());
  const bool scales = call.reduce.kind == ReduceOp::PremulSum;
  if (scales) {
    const at::Tensor factor = call.reduce.factor.to(first[0].device(), first[0].scalar_type());
    kept.push_back(factor);
    const int where = nccl_->is_emulated ? HostImmediate : OnDevice;
    check(nccl_->ncclRedOpCreatePreMulSum(&op, factor.data_ptr(), type, where, comm),
          "ncclRedOpCreatePreMulSum", comm);
  }
  switch (call.type) {
  case OpType::AllReduce:
  case OpType::AllReduceCoalesced:
    each("ncclAllReduce", [&](size_t i) {
      const auto& t = call.outputs[i];
      return nccl_->ncclAllReduce(t.data_ptr(), t.data_ptr(), count(t),
                                  type_of(call, t.scalar_type()), op, comm, stream);
    });
    break;
  case OpType::Broadcast:
    each("ncclBroadcast", [&](size_t i) {
      const auto& t = call.outputs[i];
      return nccl_->ncclBroadcast(t.data_ptr(), t.data_ptr(), count(t),
                                  type_of(call, t.scalar_type()), call.root, comm, stream);
    });
    break;
  case OpType::Reduce: {
    const auto& t = call.outputs[0];
    check(
        nccl_->ncclReduce(t.data_ptr(), t.data_ptr(), count(t), type, op, call.root, comm, stream),
        "ncclReduce", comm);
    break;
  }
  case OpType::AllGatherBase:
  case OpType::AllGatherCoalesced:
    each("ncclAllGather", [&](size_t i) {
      const auto& in = call.inputs[i];
      return nccl_->ncclAllGather(in.data_ptr(), call.outputs[i].data_ptr(), count(in),
                                  type_of(call, in.scalar_type()), comm, stream);
    });
    break;
  case OpType::ReduceScatterBase:
  case OpType::ReduceScatterCoalesced:
    each("ncclReduceScatter", [&](size_t i) {
      const auto& out = call.outputs[i];
      return nccl_->ncclReduceScatter(call.inputs[i].data_ptr(), out.data_ptr(), count(out),
                                      type_of(call, out.scalar_type()), op, comm, stream);
    });
    break;
  case OpType::ReduceScatter:
  case OpType::AllGather:
    listed(call, comm, stream, type, op);
    break;
  case OpType::AllToAll:
  case OpType::AllToAllBase:
    exchange(call, comm, stream);
    break;
  case OpType::Gather:
  case OpType::Scatter:
    rooted(call, comm, stream);
    break;
  case OpType::Send:
    check(nccl_->ncclSend(first[0].data_ptr(), count(first[0]), type, call.root, comm, stream),
          "ncclSend", comm);
    break;
  case OpType::Recv:
    check(nccl_->ncclRecv(first[0].data_ptr(), count(first[0]), type, call.root, comm, stream),
          "ncclRecv", comm);
    break;
  case OpType::Barrier: {
    const at::Tensor one =
        at::zeros({1}, at::TensorOptions().dtype(at::kInt).device(device_of(call)));
    kept.push_back(one);
    check(nccl_->ncclAllReduce(one.data_ptr(), one.data_ptr(), 1, Int32, Sum, comm, stream),
          "ncclAllReduce", comm);
    break;
  }
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, name_of(call.type), " is not implemented by backend nccl");
  }
  if (scales) check(nccl_->ncclRedOpDestroy(op, comm), "ncclRedOpDestroy", comm);
  return kept;
}

// One tensor for each rank: as many reductions, or broadcasts, as there are ranks, run as one.
void NcclBackend::listed(const Collective& call, Comm comm, void* stream, int type, int op) {
  const bool reduces = call.type == OpType::ReduceScatter;
  grouped(comm, [&] {
    for (int i = 0; i < size_; ++i) {
      const auto& one = (reduces ? call.inputs : call.outputs)[static_cast<size_t>(i)];
      const auto count = static_cast<size_t>(one.numel());
      const bool mine = i == rank_;
      if (reduces) {
        void* out = mine ? call.outputs[0].data_ptr() : one.data_ptr();
        check(nccl_->ncclReduce(one.data_ptr(), out, count, type, op, i, comm, stream),
              "ncclReduce", comm);
      } else {
        const void* in = mine ? call.inputs[0].data_ptr() : one.data_ptr();
        check(nccl_->ncclBroadcast(in, one.data_ptr(), count, type, i, comm, stream),
              "ncclBroadcast", comm);
      }
    }
  });
}

// Every rank sends a part to each and receives one from each.
void NcclBackend::exchange(const Collective& call, Comm comm, void* stream) {
  struct Part {
    char* at;
    size_t count;
  };
  const bool listed = call.type == OpType::AllToAll;
  const auto parts = [&](const std::vector<at::Tensor>& tensors,
                         const std::vector<int64_t>& splits) {
    std::vector<Part> out;
    if (listed) {
      for (const auto& t : tensors) {
        out.push_back({static_cast<char*>(t.data_ptr()), static_cast<size_t>(t.numel())});
      }
      return out;
    }
    const auto& whole = tensors[0];
    const int64_t rows = whole.dim() == 0 ? 1 : whole.size(0);
    const int64_t row = rows ? whole.numel() / rows : 0;
    auto* at = static_cast<char*>(whole.data_ptr());
    for (int i = 0; i < size_; ++i) {
      const int64_t mine = (splits.empty() ? rows / size_ : splits[static_cast<size_t>(i)]) * row;
      out.push_back({at, static_cast<size_t>(mine)});
      at += mine * static_cast<int64_t>(whole.element_size());
    }
    return out;
  };
  const auto sends = parts(call.inputs, call.input_splits);
  const auto receives = parts(call.outputs, call.output_splits);
  const int type = type_of(call, call.inputs[0].scalar_type());
  grouped(comm, [&] {
    for (int i = 0; i < size_; ++i) {
      const auto& out = sends[static_cast<size_t>(i)];
      const auto& in = receives[static_cast<size_t>(i)];
      if (out.count) {
        check(nccl_->ncclSend(out.at, out.count, type, i, comm, stream), "ncclSend", comm);
      }
      if (in.count) {
        check(nccl_->ncclRecv(in.at, in.count, type, i, comm, stream), "ncclRecv", comm);
      }
    }
  });
}

// Gather: everybody sends to the root. Scatter: the root sends to everybody.
void NcclBackend::rooted(const Collective& call, Comm comm, void* stream) {
  const bool gathers = call.type == OpType::Gather;
  const auto& at_root = gathers ? call.outputs : call.inputs;
  const at::Tensor& own = gathers ? call.inputs[0] : call.outputs[0];
  const int type = type_of(call, own.scalar_type());
  const auto move = [&](bool sends, const at::Tensor& t, int peer) {
    const auto count = static_cast<size_t>(t.numel());
    if (sends) {
      check(nccl_->ncclSend(t.data_ptr(), count, type, peer, comm, stream), "ncclSend", comm);
    } else {
      check(nccl_->ncclRecv(t.data_ptr(), count, type, peer, comm, stream), "ncclRecv", comm);
    }
  };
  grouped(comm, [&] {
    move(gathers, own, call.root);
    if (rank_ != call.root) return;
    for (int i = 0; i < size_; ++i) move(!gathers, at_root[static_cast<size_t>(i)], i);
  });
}

// ---- registered memory
void NcclBackend::register_memory(c10::Device device, void* data, size_t bytes) {
  std::lock_guard lock(mutex_);
  TORCH_CHECK(!is_ended_, "register_memory: the process group was shut down");
  if (!failure_.empty()) throw DistBackendError(failure_);
  TORCH_CHECK_VALUE(device.is_cuda() != nccl_->is_emulated, "register_memory: ", device,
                    " is no device of NCCL");
  TORCH_CHECK(!registered_.count(data), "register_memory: the memory at ", data,
              " is registered already");
  std::optional<c10::cuda::CUDAGuard> guard;
  if (device.is_cuda()) guard.emplace(device);
  const Comm comm = communicator(device);
  void* handle = nullptr;
  check(nccl_->ncclCommRegister(comm, data, bytes, &handle), "ncclCommRegister", comm);
  registered_[data] = {device.is_cuda() ? device.index() : -1, handle};
}

void NcclBackend::deregister_memory(void* data) {
  std::lock_guard lock(mutex_);
  const auto found = registered_.find(data);
  TORCH_CHECK(found != registered_.end(), "deregister_memory: the memory at ", data,
              " is not registered");
  const auto [device, handle] = found->second;
  registered_.erase(found);
  if (const auto comm = comms_.find(device); comm != comms_.end()) {
    check(nccl_->ncclCommDeregister(comm->second, handle), "ncclCommDeregister", comm->second);
  }
}

// ---- watching and the end
void NcclBackend::watch() {
  // Asking an event would end a recording of another thread.
  auto mode = c10::cuda::CU_STREAM_CAPTURE_MODE_RELAXED;
  if (c10::cuda::driver().cuThreadExchangeStreamCaptureMode) {
    c10::cuda::driver().cuThreadExchangeStreamCaptureMode(&mode);
  }
  std::unique_lock lock(mutex_);
  while (!is_ended_) {
    changed_.wait_for(lock, pending_.empty() ? Millis(1000) : kLook);
    for (auto it = pending_.begin(); it != pending_.end();) {
      auto& work = *it;
      if (work->is_completed()) {
        work->release();
        it = pending_.erase(it);
      } else if (work->is_late()) {
        fail(c10::str("Timed out waiting ", work->timeout().count(), "ms for ", work->description(),
                      " of rank ", rank_, " of ", size_));
        return;
      } else {
        ++it;
      }
    }
    for (const auto& [device, comm] : comms_) {
      int status = Success;
      nccl_->ncclCommGetAsyncError(comm, &status);
      if (status == Success || status == InProgress) continue;
      const char* last = nccl_->ncclGetLastError(comm);
      fail(c10::str("NCCL reports ", nccl_->ncclGetErrorString(status), ": ", last ? last : ""));
      return;
    }
  }
}

void NcclBackend::fail(const std::string& reason) {
  failure_ = reason;
  FlightRecorder::get().dump(reason);
  for (const auto& [device, comm] : comms_) nccl_->ncclCommAbort(comm);
  comms_.clear();
  registered_.clear();
  for (const auto& work : pending_) {
    work->finish(std::make_exception_ptr(
        DistBackendError(c10::str(reason, "\n  in ", work->description()))));
  }
  pending_.clear();
}

void NcclBackend::end(bool aborts) {
  {
    std::lock_guard lock(mutex_);
    is_ended_ = true;
    changed_.notify_all();
  }
  if (watcher_.joinable()) watcher_.join();
  std::lock_guard lock(mutex_);
  for (const auto& [data, one] : registered_) {
    const auto comm = comms_.find(one.device);
    if (!aborts && comm != comms_.end()) nccl_->ncclCommDeregister(comm->second, one.handle);
  }
  registered_.clear();
  for (const auto& [device, comm] : comms_) {
    if (aborts) {
      nccl_->ncclCommAbort(comm);
    } else {
      nccl_->ncclCommFinalize(comm);
      nccl_->ncclCommDestroy(comm);
    }
  }
  comms_.clear();
  for (const auto& work : pending_) {
    if (!aborts || work->is_completed()) continue;
    work->finish(std::make_exception_ptr(
        DistBackendError(c10::str(work->description(), ": its group was aborted"))));
  }
  pending_.clear();
}

} // namespace c10d::engine::nccl

extern "C" {
__attribute__((visibility("default"))) c10d::engine::Backend*
cresset_make_backend(std::shared_ptr<c10d::engine::Store> store, int rank, int size,
                     const c10d::engine::BackendOptions& options) {
  return new c10d::engine::nccl::NcclBackend(std::move(store), rank, size, options);
}

// Null where NCCL can be used, else why not.
__attribute__((visibility("default"))) const char* cresset_backend_missing() {
  static auto* why = new std::string;
  return c10d::engine::nccl::table(*why) ? nullptr : why->c_str();
}
}
