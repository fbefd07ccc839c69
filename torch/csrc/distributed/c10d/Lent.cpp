// What extensions get of ours: backends, groups, work and stores behind the classes they know.
#include <torch/csrc/distributed/c10d/Foreign.h>

namespace c10d::engine {

// Of what an extension brought; null for ours (Foreign.cpp).
c10::intrusive_ptr<c10d::Collectives> foreign_of(const Backend& backend);
c10::intrusive_ptr<c10d::Work> foreign_of(const Work& work);

namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

class LentWork final : public c10d::Work {
 public:
  explicit LentWork(std::shared_ptr<engine::Work> own)
      : c10d::Work(-1, static_cast<c10d::OpType>(own->type())), own_(std::move(own)) {}
  bool isCompleted() override { return own_->is_completed(); }
  bool isSuccess() const override { return own_->is_success(); }
  std::exception_ptr exception() const override { return own_->exception(); }
  int sourceRank() const override { return own_->source_rank(); }
  Tensors result() override { return own_->result(); }
  void synchronize() override { own_->wait(Millis::zero()); }
  bool wait(std::chrono::milliseconds timeout) override {
    own_->wait(timeout);
    return true;
  }
  float getDuration() const override { return static_cast<float>(own_->duration_ms()); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors());
    own_->on_done([own = own_, future] {
      if (const std::exception_ptr error = own->exception()) return future->setError(error);
      future->markCompleted(at::IValue(own->result()));
    });
    return future;
  }

 private:
  const std::shared_ptr<engine::Work> own_;
};

class LentStore final : public c10d::Store {
 public:
  explicit LentStore(std::shared_ptr<engine::Store> own) : own_(std::move(own)) {}
  using c10d::Store::compareSet;
  using c10d::Store::set;
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    own_->set(key, text(value));
  }
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override {
    return bytes(own_->compare_set(key, text(expected), text(desired)));
  }
  std::vector<uint8_t> get(const std::string& key) override { return bytes(own_->get(key)); }
  int64_t add(const std::string& key, int64_t value) override { return own_->add(key, value); }
  bool deleteKey(const std::string& key) override { return own_->delete_key(key); }
  bool check(const Keys& keys) override { return own_->check(keys); }
  int64_t getNumKeys() override { return own_->num_keys(); }
  void wait(const Keys& keys) override { own_->wait(keys, own_->timeout()); }
  void wait(const Keys& keys, const std::chrono::milliseconds& timeout) override {
    own_->wait(keys, timeout);
  }
  void setTimeout(const std::chrono::milliseconds& timeout) override {
    c10d::Store::setTimeout(timeout);
    own_->set_timeout(timeout);
  }
  void append(const std::string& key, const std::vector<uint8_t>& value) override {
    own_->append(key, text(value));
  }
  bool hasExtendedApi() const override { return own_->has_extended_api(); }

 private:
  static std::string text(const std::vector<uint8_t>& b) { return {b.begin(), b.end()}; }
  static std::vector<uint8_t> bytes(const std::string& s) { return {s.begin(), s.end()}; }
  const std::shared_ptr<engine::Store> own_;
};

// The operations of a c10d::Backend or c10d::ProcessGroup by means of our backends.
template <class Base> class Lent : public Base {
 public:
  template <class... Args> explicit Lent(std::vector<GroupMember> members, Args&&... args)
      : Base(std::forward<Args>(args)...), members_(std::move(members)) {}
  const std::string getBackendName() const override { return members_[0].backend->name(); }

  WorkPtr broadcast(Tensors& tensors, const BroadcastOptions& o) override {
    return rooted(OpType::Broadcast, {}, tensors, o);
  }
  WorkPtr allreduce(Tensors& tensors, const AllreduceOptions& o) override {
    return reduced(OpType::AllReduce, {}, tensors, o);
  }
  WorkPtr allreduce_sparse(Tensors& tensors, const AllreduceOptions& o) override {
    return reduced(OpType::AllReduceSparse, {}, tensors, o);
  }
  WorkPtr allreduce_coalesced(Tensors& tensors, const AllreduceCoalescedOptions& o) override {
    return reduced(OpType::AllReduceCoalesced, {}, tensors, o);
  }
  WorkPtr reduce(Tensors& tensors, const ReduceOptions& o) override {
    Collective call = made(OpType::Reduce, {}, tensors, o);
    call.root = static_cast<int>(o.rootRank);
    call.reduce = reduction(o.reduceOp);
    return start(std::move(call));
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const AllgatherOptions& o) override {
    return start(made(OpType::AllGather, inputs, single(outputs, "allgather"), o));
  }
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const AllgatherOptions& o) override {
    return start(made(OpType::AllGatherBase, {input}, {output}, o));
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const AllgatherOptions& o) override {
    return start(made(OpType::AllGatherCoalesced, inputs, outputs, o));
  }
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs, const GatherOptions& o) override {
    return rooted(OpType::Gather, inputs, single(outputs, "gather"), o);
  }
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const ScatterOptions& o) override {
    return rooted(OpType::Scatter, single(inputs, "scatter"), outputs, o);
  }
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const ReduceScatterOptions& o) override {
    return reduced(OpType::ReduceScatter, single(inputs, "reduce_scatter"), outputs, o);
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const ReduceScatterOptions& o) override {
    return reduced(OpType::ReduceScatterBase, {input}, {output}, o);
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const ReduceScatterOptions& o) override {
    return reduced(OpType::ReduceScatterCoalesced, inputs, outputs, o);
  }
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& to,
                        std::vector<int64_t>& from, const AllToAllOptions& o) override {
    Collective call = made(OpType::AllToAllBase, {input}, {output}, o);
    call.output_splits = to;
    call.input_splits = from;
    return start(std::move(call));
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const AllToAllOptions& o) override {
    return start(made(OpType::AllToAll, inputs, outputs, o));
  }
  WorkPtr send(Tensors& tensors, int rank, int tag) override {
    return transfer(OpType::Send, tensors, {}, rank, tag);
  }
  WorkPtr recv(Tensors& tensors, int rank, int tag) override {
    return transfer(OpType::Recv, {}, tensors, rank, tag);
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return transfer(OpType::RecvAnySource, {}, tensors, 0, tag);
  }
  WorkPtr barrier(const BarrierOptions& o) override {
    return start(made(OpType::Barrier, {}, {}, o));
  }
  void monitoredBarrier(const BarrierOptions& o, bool wait_all) override {
    members_[0].backend->monitored_barrier(o.timeout, wait_all);
  }
  uint64_t getSequenceNumberForGroup() override { return members_[0].backend->sequence(); }
  void abort() override {
    for (auto& member : members_) member.backend->abort();
  }
  void shutdown() override {
    for (auto& member : members_) member.backend->shutdown();
  }

 private:
  static Tensors single(const std::vector<Tensors>& lists, const char* operation) {
    TORCH_CHECK_VALUE(lists.size() <= 1, operation, ": expected a list of one list, got ",
                      lists.size());
    return lists.empty() ? Tensors() : lists[0];
  }
  static ReduceOp reduction(const c10d::ReduceOp& op) {
    return {static_cast<ReduceOp::Kind>(op.op_), op.factor()};
  }
  template <class Options>
  static Collective made(OpType type, Tensors inputs, Tensors outputs, const Options& o) {
    Collective call;
    call.type = type;
    call.inputs = std::move(inputs);
    call.outputs = std::move(outputs);
    call.timeout = o.timeout;
    call.is_async = o.asyncOp;
    return call;
  }
  template <class Options>
  WorkPtr rooted(OpType type, Tensors inputs, Tensors outputs, const Options& o) {
    Collective call = made(type, std::move(inputs), std::move(outputs), o);
    call.root = static_cast<int>(o.rootRank);
    return start(std::move(call));
  }
  template <class Options>
  WorkPtr reduced(OpType type, Tensors inputs, Tensors outputs, const Options& o) {
    Collective call = made(type, std::move(inputs), std::move(outputs), o);
    call.reduce = reduction(o.reduceOp);
    return start(std::move(call));
  }
  WorkPtr transfer(OpType type, Tensors inputs, Tensors outputs, int rank, int tag) {
    Collective call = made(type, std::move(inputs), std::move(outputs), BarrierOptions());
    call.root = rank;
    call.tag = tag;
    return start(std::move(call));
  }
  WorkPtr start(Collective call) {
    const Tensors& tensors = call.inputs.empty() ? call.outputs : call.inputs;
    if (tensors.empty()) return lend(members_[0].backend->run(std::move(call)));
    TORCH_CHECK_VALUE(tensors[0].defined(), name_of(call.type), ": a tensor is missing");
    const c10::DeviceType kind = tensors[0].device().type();
    for (auto& member : members_)
      if (member.device == kind || members_.size() == 1)
        return lend(member.backend->run(std::move(call)));
    TORCH_CHECK(false, "No backend type associated with device type ", kind);
  }

  std::vector<GroupMember> members_;
};

} // namespace

c10::intrusive_ptr<c10d::Store> lend(std::shared_ptr<Store> store) {
  return c10::make_intrusive<LentStore>(std::move(store));
}
c10::intrusive_ptr<c10d::Work> lend(std::shared_ptr<Work> work) {
  if (auto foreign = foreign_of(*work)) return foreign;
  return c10::make_intrusive<LentWork>(std::move(work));
}
c10::intrusive_ptr<c10d::Backend> lend(std::shared_ptr<Backend> backend) {
  if (auto foreign = foreign_of(*backend))
    if (auto* as_it_was = dynamic_cast<c10d::Backend*>(foreign.get()))
      return c10::intrusive_ptr<c10d::Backend>::reclaim_copy(as_it_was);
  const int rank = backend->rank(), size = backend->size();
  std::vector<GroupMember> members{{c10::kCPU, std::move(backend)}};
  return c10::make_intrusive<Lent<c10d::Backend>>(std::move(members), rank, size);
}
c10::intrusive_ptr<c10d::ProcessGroup>
lend_group(std::vector<GroupMember> members, std::shared_ptr<Store> store, int rank, int size) {
  TORCH_CHECK(!members.empty(), "the process group has no backend in C++");
  c10::intrusive_ptr<c10d::Store> lent;
  if (store) lent = lend(std::move(store));
  return c10::make_intrusive<Lent<c10d::ProcessGroup>>(std::move(members), std::move(lent), rank,
                                                       size);
}

} // namespace c10d::engine
