// The bases of what C++ extensions derive from: operations that a backend lacks, and how stores and
// work do the rest by means of what derived classes define.
#include <torch/csrc/distributed/c10d/Error.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace c10d {

// ---- work ---------------------------------------------------------------------------------------
Work::Work(int rank, OpType opType, const char* /*profilingTitle*/,
           const std::optional<std::vector<at::Tensor>>& /*inputTensors*/)
    : rank_(rank), opType_(opType) {}
Work::~Work() = default;

bool Work::isCompleted() {
  std::lock_guard<std::mutex> lock(mutex_);
  return completed_;
}
bool Work::isSuccess() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return completed_ && !exception_;
}
std::exception_ptr Work::exception() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return exception_;
}
int Work::sourceRank() const {
  TORCH_CHECK(false, "sourceRank() may only be called on work objects that correspond to a recv "
                     "or recv-from-any call.");
}
std::vector<at::Tensor> Work::result() {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Work::result: this backend does not tell what it writes");
}
void Work::synchronize() {}

bool Work::wait(std::chrono::milliseconds timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (timeout == kNoTimeout) {
    cv_.wait(lock, [this] { return completed_; });
  } else if (!cv_.wait_for(lock, timeout, [this] { return completed_; })) {
    throw DistBackendError(
        c10::str("Operation timed out! wait() took more than ", timeout.count(), "ms"));
  }
  const std::exception_ptr error = exception_;
  lock.unlock();
  if (error) std::rethrow_exception(error);
  synchronize();
  return true;
}
void Work::abort() {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Work::abort: this backend cannot end work early");
}
c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Work::getFuture: this backend has no futures");
}
float Work::getDuration() const {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Work::getDuration: this backend does not take the time");
}
uint64_t Work::getSequencenumber() const {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Work::getSequencenumber: this backend does not count");
}

void Work::finish(std::exception_ptr exception) {
  std::lock_guard<std::mutex> lock(mutex_);
  completed_ = true;
  exception_ = std::move(exception);
  cv_.notify_all();
}
void Work::finishAndThrow(std::exception_ptr exception) {
  finish(exception);
  if (exception) std::rethrow_exception(exception);
}

namespace {
class FutureWork final : public Work {
 public:
  explicit FutureWork(c10::intrusive_ptr<c10::ivalue::Future> future)
      : future_(std::move(future)) {}
  bool isCompleted() override { return future_->completed(); }
  bool isSuccess() const override { return future_->hasValue(); }
  std::exception_ptr exception() const override { return future_->exception_ptr(); }
  bool wait(std::chrono::milliseconds) override {
    future_->waitAndThrow();
    return true;
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};
} // namespace

c10::intrusive_ptr<Work>
Work::create_from_future(const c10::intrusive_ptr<c10::ivalue::Future>& future) {
  TORCH_CHECK(future, "Work::create_from_future: the future is a null pointer");
  return c10::make_intrusive<FutureWork>(future);
}

// ---- stores -------------------------------------------------------------------------------------
namespace {
std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
} // namespace

Store::~Store() = default;

void Store::set(const std::string& key, const std::string& value) { set(key, bytes_of(value)); }
std::string Store::get_to_str(const std::string& key) { return text_of(get(key)); }
std::string Store::compareSet(const std::string& key, const std::string& expected,
                              const std::string& desired) {
  return text_of(compareSet(key, bytes_of(expected), bytes_of(desired)));
}
std::vector<uint8_t> Store::compareSet(const std::string&, const std::vector<uint8_t>&,
                                       const std::vector<uint8_t>&) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "this store does not support compareSet");
}
void Store::append(const std::string& key, const std::vector<uint8_t>& value) {
  // Tried until nobody came between.
  std::vector<uint8_t> expected, desired = value;
  for (;;) {
    const std::vector<uint8_t> now = compareSet(key, expected, desired);
    if (now == desired) return;
    expected = desired = now;
    desired.insert(desired.end(), value.begin(), value.end());
  }
}
std::vector<std::vector<uint8_t>> Store::multiGet(const std::vector<std::string>& keys) {
  std::vector<std::vector<uint8_t>> values;
  for (const std::string& key : keys) values.push_back(get(key));
  return values;
}
void Store::multiSet(const std::vector<std::string>& keys,
                     const std::vector<std::vector<uint8_t>>& values) {
  TORCH_CHECK_VALUE(keys.size() == values.size(), "multiSet: ", keys.size(), " keys and ",
                    values.size(), " values");
  for (size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i]);
}

// ---- operations ---------------------------------------------------------------------------------
Collectives::Collectives(int rank, int size) : rank_(rank), size_(size) {}
Collectives::~Collectives() = default;

void Collectives::lacks(const char* operation) const {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Backend ", getBackendName(), " does not support ", operation);
}

using WorkPtr = Collectives::WorkPtr;
using Tensors = Collectives::Tensors;

WorkPtr Collectives::broadcast(Tensors&, const BroadcastOptions&) { lacks("broadcast"); }
WorkPtr Collectives::allreduce(Tensors&, const AllreduceOptions&) { lacks("allreduce"); }
WorkPtr Collectives::allreduce_sparse(Tensors&, const AllreduceOptions&) {
  lacks("allreduce_sparse");
}
WorkPtr Collectives::allreduce_coalesced(Tensors&, const AllreduceCoalescedOptions&) {
  lacks("allreduce_coalesced");
}
WorkPtr Collectives::reduce(Tensors&, const ReduceOptions&) { lacks("reduce"); }
WorkPtr Collectives::allgather(std::vector<Tensors>&, Tensors&, const AllgatherOptions&) {
  lacks("allgather");
}
WorkPtr Collectives::_allgather_base(at::Tensor&, at::Tensor&, const AllgatherOptions&) {
  lacks("_allgather_base");
}
WorkPtr Collectives::allgather_coalesced(std::vector<Tensors>&, Tensors&, const AllgatherOptions&) {
  lacks("allgather_coalesced");
}
WorkPtr Collectives::allgather_into_tensor_coalesced(Tensors&, Tensors&, const AllgatherOptions&) {
  lacks("allgather_into_tensor_coalesced");
}
WorkPtr Collectives::gather(std::vector<Tensors>&, Tensors&, const GatherOptions&) {
  lacks("gather");
}
WorkPtr Collectives::scatter(Tensors&, std::vector<Tensors>&, const ScatterOptions&) {
  lacks("scatter");
}
WorkPtr Collectives::reduce_scatter(Tensors&, std::vector<Tensors>&, const ReduceScatterOptions&) {
  lacks("reduce_scatter");
}
WorkPtr Collectives::_reduce_scatter_base(at::Tensor&, at::Tensor&, const ReduceScatterOptions&) {
  lacks("_reduce_scatter_base");
}
WorkPtr Collectives::reduce_scatter_tensor_coalesced(Tensors&, Tensors&,
                                                     const ReduceScatterOptions&) {
  lacks("reduce_scatter_tensor_coalesced");
}
WorkPtr Collectives::alltoall_base(at::Tensor&, at::Tensor&, std::vector<int64_t>&,
                                   std::vector<int64_t>&, const AllToAllOptions&) {
  lacks("alltoall_base");
}
WorkPtr Collectives::alltoall(Tensors&, Tensors&, const AllToAllOptions&) { lacks("alltoall"); }
WorkPtr Collectives::send(Tensors&, int, int) { lacks("send"); }
WorkPtr Collectives::recv(Tensors&, int, int) { lacks("recv"); }
WorkPtr Collectives::recvAnysource(Tensors&, int) { lacks("recvAnysource"); }
WorkPtr Collectives::barrier(const BarrierOptions&) { lacks("barrier"); }
void Collectives::monitoredBarrier(const BarrierOptions&, bool) { lacks("monitoredBarrier"); }
void Collectives::startCoalescing() { lacks("startCoalescing"); }
WorkPtr Collectives::endCoalescing() { lacks("endCoalescing"); }

Backend::Options::Options(std::string name, std::chrono::milliseconds limit)
    : timeout(limit), backend(std::move(name)) {}
Backend::Options::~Options() = default;
Backend::~Backend() = default;
const std::string Backend::getBackendName() const { return "custom"; }

ProcessGroup::~ProcessGroup() = default;
const std::string ProcessGroup::getBackendName() const { return "custom"; }

} // namespace c10d
