// Gloo as a backend: a library of its own, so that programs without it neither need nor load it.
// Tensors that are not contiguous travel through contiguous copies. Reductions scattered over ranks
// are ours, because this Gloo has none that keeps its arguments: every rank sends each part to its
// owner, who adds them in the order of ranks. Ranks on one machine exchange data through
// memory that they share (SharedMemory.h); what has no form there goes through Gloo.
#include <torch/csrc/distributed/c10d/Backend.h>
#include <torch/csrc/distributed/gloo/Reduction.h>
#include <torch/csrc/distributed/gloo/SharedMemory.h>

#include <cstring>

#include <unistd.h>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/ops/copy.h>

namespace c10d::engine::gloo_backend {

namespace {

using ::gloo::transport::UnboundBuffer;

// ---- memory -------------------------------------------------------------------------------------
char* bytes_of(const at::Tensor& t) { return static_cast<char*>(t.data_ptr()); }

size_t size_of(const at::Tensor& t) { return static_cast<size_t>(t.numel()) * t.element_size(); }

at::Tensor flat_like(const at::Tensor& t, int64_t count) {
  return at::detail::empty({count}, t.scalar_type());
}

// A tensor's values in contiguous memory that an engine reads and writes; put_back() brings what
// was written to where it belongs.
class Contiguous {
 public:
  explicit Contiguous(const at::Tensor& t) : original_(t), memory_(t.contiguous()) {}
  const at::Tensor& get() const { return memory_; }
  void put_back() {
    if (!memory_.is_same(original_)) original_.copy_(memory_.view(original_.sizes()));
  }

 private:
  at::Tensor original_, memory_;
};

at::Tensor joined(const std::vector<at::Tensor>& tensors) {
  int64_t count = 0;
  for (const auto& t : tensors) count += t.numel();
  at::Tensor flat = flat_like(tensors[0], count);
  char* to = bytes_of(flat);
  for (const auto& t : tensors) {
    const at::Tensor c = t.contiguous();
    if (size_of(c)) std::memcpy(to, bytes_of(c), size_of(c));
    to += size_of(c);
  }
  return flat;
}

void divide(const at::Tensor& flat, const std::vector<at::Tensor>& tensors) {
  const char* from = bytes_of(flat);
  for (const auto& t : tensors) {
    if (t.is_contiguous()) {
      if (size_of(t)) std::memcpy(bytes_of(t), from, size_of(t));
    } else {
      at::Tensor part = at::detail::empty(t.sizes(), t.scalar_type());
      std::memcpy(bytes_of(part), from, size_of(part));
      t.copy_(part);
    }
    from += size_of(t);
  }
}

// ---- the store and the network as Gloo wants them -----------------------------------------------
class GlooStore final : public ::gloo::rendezvous::Store {
 public:
  explicit GlooStore(std::shared_ptr<c10d::engine::Store> store) : store_(std::move(store)) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(key, Bytes(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const Bytes value = store_->get(key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { store_->wait(keys); }
  void wait(const std::vector<std::string>& keys, const Millis& timeout) override {
    store_->wait(keys, timeout);
  }

 private:
  const std::shared_ptr<c10d::engine::Store> store_;
};

using Device = std::shared_ptr<::gloo::transport::Device>;

Device make_device(const BackendOptions& options) {
  ::gloo::transport::tcp::attr attr;
  const char* interface = ::getenv("GLOO_SOCKET_IFNAME");
  if (!options.interfaces.empty()) {
    attr.iface = options.interfaces[0];
  } else if (!options.hostname.empty()) {
    attr.hostname = options.hostname;
  } else if (interface && *interface) {
    attr.iface = std::string(interface).substr(0, std::strcspn(interface, ","));
  } else {
    char name[256] = "localhost";
    ::gethostname(name, sizeof name - 1);
    attr.hostname = name;
    try {
      return ::gloo::transport::tcp::CreateDevice(attr);
    } catch (const std::exception&) {
      // The host's name is not an address of it: then only its own processes can reach it.
      attr.hostname = "127.0.0.1";
    }
  }
  return ::gloo::transport::tcp::CreateDevice(attr);
}

// Groups of one process share the device and its thread.
Device shared_device(const BackendOptions& options) {
  static std::mutex mutex;
  static auto* known = new std::map<std::string, std::weak_ptr<::gloo::transport::Device>>;
  std::string key = c10::str(::getpid(), "/", options.hostname);
  for (const auto& name : options.interfaces) key += "/" + name;
  std::lock_guard lock(mutex);
  if (auto device = (*known)[key].lock()) return device;
  Device device = make_device(options);
  (*known)[key] = device;
  return device;
}

// Slots of our own messages, apart from those of Gloo's collectives (below 2^48).
constexpr uint64_t kTransferSlots = uint64_t{1} << 62, kScatterSlots = uint64_t{1} << 61;
constexpr uint64_t kExchangeSlots = uint64_t{1} << 60;
// Up to so many bytes from all ranks together one exchange of everything is faster than a ring.
constexpr size_t kExchangeBytes = size_t{1} << 18;
// With more ranks than that every one of them reading all the others is slower than a ring.
constexpr int kMemoryRanks = 8;

// Whether an operation goes through shared memory, where there is some.
bool is_local(const Collective& call) {
  switch (call.type) {
  case OpType::AllReduce:
  case OpType::AllReduceCoalesced:
  case OpType::Broadcast:
  case OpType::AllGather:
  case OpType::AllGatherBase:
  case OpType::AllGatherCoalesced:
  case OpType::ReduceScatter:
  case OpType::ReduceScatterBase:
  case OpType::ReduceScatterCoalesced:
    break;
  default:
    return false;
  }
  // Outputs have the same sizes on all ranks, which inputs of a broadcast or gather need not.
  size_t bytes = 0;
  for (const auto& t : call.outputs) bytes = std::max(bytes, size_of(t));
  return bytes > 0;
}

// ---- sends and receives -------------------------------------------------------------------------
class Transfer final : public Work {
 public:
  Transfer(const Collective& call, std::shared_ptr<::gloo::Context> context, std::string where)
      : Work(call), context_(std::move(context)), timeout_(call.timeout), where_(std::move(where)),
        tensor_(call.type == OpType::Send ? call.inputs[0] : call.outputs[0]) {
    const uint64_t slot = kTransferSlots | static_cast<uint32_t>(call.tag);
    // An empty message still has to arrive.
    void* memory = size_of(tensor_.get()) ? bytes_of(tensor_.get()) : &nothing_;
    buffer_ = context_->createUnboundBuffer(memory, size_of(tensor_.get()));
    if (call.type == OpType::Send) {
      buffer_->send(call.root, slot);
    } else if (call.type == OpType::Recv) {
      buffer_->recv(call.root, slot);
      set_source_rank(call.root);
    } else {
      std::vector<int> anyone;
      for (int i = 0; i < context_->size; ++i) {
        if (i != context_->rank) anyone.push_back(i);
      }
      buffer_->recv(anyone, slot);
    }
  }

  void wait(Millis timeout) override {
    std::lock_guard once(waiting_);
    if (!is_completed()) finish(outcome(timeout > Millis::zero() ? timeout : timeout_));
    if (auto error = exception()) std::rethrow_exception(error);
  }

 private:
  std::exception_ptr outcome(Millis timeout) {
    try {
      int source = -1;
      const bool ended =
          type() == OpType::Send ? buffer_->waitSend(timeout) : buffer_->waitRecv(&source, timeout);
      TORCH_CHECK(ended, description(), " was aborted");
      if (type() != OpType::Send) {
        set_source_rank(source);
        tensor_.put_back();
      }
      return nullptr;
    } catch (const std::exception& error) {
      return std::make_exception_ptr(DistBackendError(c10::str(
          error.what(), "\n  in ", description(), where_, ", timeout ", timeout.count(), "ms")));
    }
  }

  const std::shared_ptr<::gloo::Context> context_;
  const Millis timeout_;
  const std::string where_;
  Contiguous tensor_;
  char nothing_ = 0;
  std::unique_ptr<UnboundBuffer> buffer_;
  std::mutex waiting_;
};

} // namespace

// Gloo divides by the number of bytes: an operation on tensors without elements ends before it.
class GlooBackend final : public BlockingBackend {
 public:
  GlooBackend(std::shared_ptr<Store> store, int rank, int size, const BackendOptions& options)
      : BlockingBackend(std::move(store), rank, size, options) {
    auto context = std::make_shared<::gloo::rendezvous::Context>(rank, size);
    context->setTimeout(options_.timeout);
    device_ = shared_device(options_);
    GlooStore gloo_store(store_);
    context->connectFullMesh(gloo_store, device_);
    context_ = std::move(context);
    // A rank that ends at once must not cut off one that is still connecting.
    ::gloo::BarrierOptions meet(context_);
    meet.setTag(0);
    meet.setTimeout(options_.timeout);
    ::gloo::barrier(meet);
    if (size > 1 && size <= kMemoryRanks) {
      memory_ = SharedMemory::open(*store_, rank, size, options_.timeout);
    }
  }
  ~GlooBackend() override { stop_threads(); }
  std::string name() const override { return "gloo"; }

  // Through the store and not through Gloo: a rank that is late must not cost the connections.
  void monitored_barrier(Millis timeout, bool wait_all_ranks) override;

 protected:
  void execute(Collective& call, Work& work) override;
  std::shared_ptr<Work> start_transfer(Collective call) override {
    detach(call);
    return std::make_shared<Transfer>(call, context_, c10::str(" of rank ", rank_, " of ", size_));
  }
  void interrupt() override {
    is_aborted_ = true;
    if (memory_) memory_->interrupt();
    turn_.notify_all();
    context_->closeConnections();
  }
  void admit(const Collective& call) override {
    if (!memory_ || !is_local(call)) return;
    std::lock_guard lock(turn_mutex_);
    turns_.push_back(call.sequence);
  }

 private:
  static void detach(Collective& call) {
    for (auto& t : call.inputs) t = t.detach();
    for (auto& t : call.outputs) t = t.detach();
  }
  // Gloo's tags have 32 bits; a call may use 16 of them.
  uint32_t tag(const Collective& call, uint32_t part = 0) const {
    return static_cast<uint32_t>(call.sequence << 4) | (part & 15);
  }
  template <class Options> void fill(Options& options, const Collective& call, uint32_t part = 0) {
    options.setTag(tag(call, part));
    options.setTimeout(call.timeout);
  }

  void all_reduce(const Collective& call, const at::Tensor& t, uint32_t part);
  void exchange_whole(const Collective& call, const at::Tensor& t, const ReduceFunction& function,
                      uint32_t part);
  void all_reduce_coalesced(const Collective& call);
  void reduce(const Collective& call);
  void broadcast(const Collective& call, const at::Tensor& t, uint32_t part);
  void all_gather(const Collective& call, const at::Tensor& in, const at::Tensor& flat,
                  uint32_t part);
  void gather(const Collective& call);
  void scatter(const Collective& call);
  void reduce_scatter(const Collective& call, const at::Tensor& flat, const at::Tensor& out,
                      uint32_t part);
  void all_to_all(const Collective& call, const at::Tensor& in, const at::Tensor& out,
                  std::vector<int64_t> in_bytes, std::vector<int64_t> out_bytes);
  void all_to_all_base(const Collective& call);
  void all_to_all_lists(const Collective& call);

  // The memory that this group shares is used by one operation at a time, in the order of
  // admission.
  class Turn;
  bool has_turn(const Collective& call);

  Device device_;
  std::shared_ptr<::gloo::Context> context_;
  uint64_t barriers_ = 0;
  std::mutex turn_mutex_;
  std::condition_variable turn_;
  std::deque<uint64_t> turns_;
  std::unique_ptr<SharedMemory> memory_; // null where the ranks have none
  std::atomic<bool> is_aborted_{false};
};

bool GlooBackend::has_turn(const Collective& call) {
  return !turns_.empty() && turns_.front() == call.sequence;
}

// While it lives no other operation uses the memory.
class GlooBackend::Turn {
 public:
  Turn(GlooBackend& backend, const Collective& call) : backend_(backend) {
    std::unique_lock lock(backend.turn_mutex_);
    const auto& turns = backend.turns_;
    is_local_ = std::find(turns.begin(), turns.end(), call.sequence) != turns.end();
    if (!is_local_) return;
    backend.turn_.wait(lock, [&] { return backend.is_aborted_ || backend.has_turn(call); });
    if (!backend.has_turn(call)) {
      is_local_ = false;
      TORCH_CHECK(false, "the operation was aborted");
    }
  }
  ~Turn() {
    if (!is_local_) return;
    {
      std::lock_guard lock(backend_.turn_mutex_);
      backend_.turns_.pop_front();
    }
    backend_.turn_.notify_all();
  }

 private:
  GlooBackend& backend_;
  bool is_local_ = false;
};

void GlooBackend::execute(Collective& call, Work& work) {
  detach(call);
  for (const auto* list : {&call.inputs, &call.outputs}) {
    for (const auto& t : *list) {
      TORCH_CHECK_NOT_IMPLEMENTED(t.device().is_cpu() && t.layout() == at::kStrided,
                                  name_of(call.type), " is not implemented by backend gloo for a ",
                                  t.layout(), " tensor of dtype ", t.scalar_type(), " on device ",
                                  t.device());
    }
  }
  const Turn turn(*this, call);
  switch (call.type) {
  case OpType::AllReduce:
    if (call.outputs.size() == 1) return all_reduce(call, call.outputs[0], 0);
    return all_reduce_coalesced(call);
  case OpType::AllReduceCoalesced:
    return all_reduce_coalesced(call);
  case OpType::Reduce:
    return reduce(call);
  case OpType::Broadcast:
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      broadcast(call, call.outputs[i], static_cast<uint32_t>(i));
    }
    return;
  case OpType::AllGather: {
    const at::Tensor flat = flat_like(call.inputs[0], call.inputs[0].numel() * size_);
    all_gather(call, call.inputs[0], flat, 0);
    return divide(flat, call.outputs);
  }
  case OpType::AllGatherBase:
  case OpType::AllGatherCoalesced:
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      Contiguous out(call.outputs[i]);
      all_gather(call, call.inputs[i], out.get(), static_cast<uint32_t>(i));
      out.put_back();
    }
    return;
  case OpType::Gather:
    return gather(call);
  case OpType::Scatter:
    return scatter(call);
  case OpType::ReduceScatter:
    return reduce_scatter(call, joined(call.inputs), call.outputs[0], 0);
  case OpType::ReduceScatterBase:
  case OpType::ReduceScatterCoalesced:
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      reduce_scatter(call, call.inputs[i].contiguous(), call.outputs[i], static_cast<uint32_t>(i));
    }
    return;
  case OpType::AllToAllBase:
    return all_to_all_base(call);
  case OpType::AllToAll:
    return all_to_all_lists(call);
  case OpType::Barrier: {
    ::gloo::BarrierOptions options(context_);
    fill(options, call);
    return ::gloo::barrier(options);
  }
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, name_of(call.type), " is not implemented by backend gloo");
  }
}

// Gloo's options know the size of an element from a template argument alone.
template <class F> void with_element(size_t size, const F& f) {
  switch (size) {
  case 1:
    return f(static_cast<uint8_t*>(nullptr));
  case 2:
    return f(static_cast<uint16_t*>(nullptr));
  case 4:
    return f(static_cast<uint32_t*>(nullptr));
  case 8:
    return f(static_cast<uint64_t*>(nullptr));
  default:
    return f(static_cast<std::array<uint64_t, 2>*>(nullptr));
  }
}

void GlooBackend::all_reduce(const Collective& call, const at::Tensor& t, uint32_t part) {
  const auto function = reduce_function(call.reduce.kind, t.scalar_type());
  if (size_of(t) == 0) return;
  Contiguous memory(t);
  scale_before(call.reduce, memory.get());
  if (memory_ && is_local(call)) {
    memory_->all_reduce(bytes_of(memory.get()), static_cast<size_t>(t.numel()), t.element_size(),
                        function, call.timeout);
  } else if (size_ > 1 && size_of(t) <= kExchangeBytes / static_cast<size_t>(size_)) {
    exchange_whole(call, memory.get(), function, part);
  } else if (size_ > 1) {
    with_element(static_cast<size_t>(t.element_size()), [&](auto* element) {
      using T = std::remove_pointer_t<decltype(element)>;
      ::gloo::AllreduceOptions options(context_);
      options.setOutput(reinterpret_cast<T*>(bytes_of(memory.get())),
                        static_cast<size_t>(t.numel()));
      options.setReduceFunction(function);
      fill(options, call, part);
      ::gloo::allreduce(options);
    });
  }
  scale_after(call.reduce, memory.get(), size_);
  memory.put_back();
}

// Every rank sends all it has to each other and adds up by itself, in the order of ranks: one step
// where a ring takes two per rank.
void GlooBackend::exchange_whole(const Collective& call, const at::Tensor& t,
                                 const ReduceFunction& function, uint32_t part) {
  const size_t bytes = size_of(t);
  if (bytes == 0) return;
  const at::Tensor all = flat_like(t, t.numel() * size_);
  const auto place = [&](int rank) { return bytes_of(all) + static_cast<size_t>(rank) * bytes; };
  std::memcpy(place(rank_), bytes_of(t), bytes);
  const uint64_t slot = kExchangeSlots | tag(call, part);
  auto sends = context_->createUnboundBuffer(place(rank_), bytes);
  auto receives = context_->createUnboundBuffer(bytes_of(all), size_of(all));
  for (int i = 1; i < size_; ++i) {
    const int other = (rank_ + i) % size_;
    receives->recv(other, slot, static_cast<size_t>(other) * bytes, bytes);
    sends->send(other, slot);
  }
  for (int i = 1; i < size_; ++i) {
    TORCH_CHECK(receives->waitRecv(call.timeout), "the receiver was aborted");
  }
  const auto count = static_cast<size_t>(t.numel());
  function(bytes_of(t), place(0), place(1), count);
  for (int rank = 2; rank < size_; ++rank) function(bytes_of(t), bytes_of(t), place(rank), count);
  for (int i = 1; i < size_; ++i) {
    TORCH_CHECK(sends->waitSend(call.timeout), "the sender was aborted");
  }
}

void GlooBackend::all_reduce_coalesced(const Collective& call) {
  // One message per dtype.
  std::map<at::ScalarType, std::vector<at::Tensor>> groups;
  for (const auto& t : call.outputs) groups[t.scalar_type()].push_back(t);
  uint32_t part = 0;
  for (const auto& [dtype, tensors] : groups) {
    const at::Tensor flat = joined(tensors);
    all_reduce(call, flat, part++);
    divide(flat, tensors);
  }
}

void GlooBackend::reduce(const Collective& call) {
  const at::Tensor& t = call.outputs[0];
  const auto function = reduce_function(call.reduce.kind, t.scalar_type());
  if (size_of(t) == 0) return;
  Contiguous memory(t);
  // Elsewhere than at the root the argument stays as it is.
  const bool here = call.root == rank_;
  at::Tensor in = flat_like(t, t.numel());
  if (size_of(t)) std::memcpy(bytes_of(in), bytes_of(memory.get()), size_of(t));
  const at::Tensor out = here ? memory.get() : flat_like(t, t.numel());
  scale_before(call.reduce, in);
  with_element(static_cast<size_t>(t.element_size()), [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    ::gloo::ReduceOptions options(context_);
    options.setInput(reinterpret_cast<T*>(bytes_of(in)), static_cast<size_t>(t.numel()));
    options.setOutput(reinterpret_cast<T*>(bytes_of(out)), static_cast<size_t>(t.numel()));
    options.setRoot(call.root);
    options.setReduceFunction(function);
    fill(options, call);
    ::gloo::reduce(options);
  });
  if (!here) return;
  scale_after(call.reduce, out, size_);
  memory.put_back();
}

void GlooBackend::broadcast(const Collective& call, const at::Tensor& t, uint32_t part) {
  if (size_of(t) == 0) return;
  Contiguous memory(t);
  if (memory_ && is_local(call)) {
    memory_->broadcast(bytes_of(memory.get()), size_of(memory.get()), call.root, call.timeout);
  } else {
    ::gloo::BroadcastOptions options(context_);
    options.setOutput(bytes_of(memory.get()), size_of(memory.get()));
    options.setRoot(call.root);
    fill(options, call, part);
    ::gloo::broadcast(options);
  }
  if (call.root != rank_) memory.put_back();
}

void GlooBackend::all_gather(const Collective& call, const at::Tensor& in, const at::Tensor& flat,
                             uint32_t part) {
  const at::Tensor c = in.contiguous();
  if (size_of(flat) == 0) return;
  if (memory_ && is_local(call)) {
    memory_->all_gather(bytes_of(flat), bytes_of(c), size_of(c), call.timeout);
    return;
  }
  ::gloo::AllgatherOptions options(context_);
  options.setInput(bytes_of(c), size_of(c));
  options.setOutput(bytes_of(flat), size_of(flat));
  fill(options, call, part);
  ::gloo::allgather(options);
}

void GlooBackend::gather(const Collective& call) {
  const at::Tensor c = call.inputs[0].contiguous();
  if (size_of(c) == 0) return;
  const bool here = call.root == rank_;
  at::Tensor flat = here ? flat_like(c, c.numel() * size_) : at::Tensor();
  ::gloo::GatherOptions options(context_);
  options.setInput(bytes_of(c), size_of(c));
  if (here) options.setOutput(bytes_of(flat), size_of(flat));
  options.setRoot(call.root);
  fill(options, call);
  ::gloo::gather(options);
  if (here) divide(flat, call.outputs);
}

void GlooBackend::scatter(const Collective& call) {
  if (size_of(call.outputs[0]) == 0) return;
  Contiguous out(call.outputs[0]);
  std::vector<at::Tensor> kept;
  std::vector<char*> parts;
  for (const auto& t : call.inputs) {
    kept.push_back(t.contiguous());
    parts.push_back(bytes_of(kept.back()));
  }
  ::gloo::ScatterOptions options(context_);
  if (call.root == rank_) options.setInputs(parts, size_of(out.get()));
  options.setOutput(bytes_of(out.get()), size_of(out.get()));
  options.setRoot(call.root);
  fill(options, call);
  ::gloo::scatter(options);
  out.put_back();
}

void GlooBackend::reduce_scatter(const Collective& call, const at::Tensor& flat,
                                 const at::Tensor& out, uint32_t part) {
  const auto function = reduce_function(call.reduce.kind, out.scalar_type());
  const auto count = static_cast<size_t>(out.numel());
  const size_t bytes = size_of(out);
  at::Tensor values = flat;
  if (call.reduce.kind == ReduceOp::PremulSum) {
    values = flat.clone();
    scale_before(call.reduce, values);
  }
  Contiguous memory(out);
  if (memory_ && is_local(call)) {
    // The result may be a part of the input, which is read to the end.
    const at::Tensor mine = flat_like(out, out.numel());
    memory_->reduce_scatter(bytes_of(mine), bytes_of(values), count, out.element_size(), function,
                            call.timeout);
    scale_after(call.reduce, mine, size_);
    if (bytes) std::memcpy(bytes_of(memory.get()), bytes_of(mine), bytes);
    memory.put_back();
    return;
  }
  const uint64_t slot = kScatterSlots | tag(call, part);
  const at::Tensor received = flat_like(out, out.numel() * size_);
  auto sends = context_->createUnboundBuffer(bytes_of(values), size_of(values));
  auto receives = context_->createUnboundBuffer(bytes_of(received), size_of(received));
  const auto at = [&](int rank) { return static_cast<size_t>(rank) * bytes; };
  for (int i = 1; i < size_ && bytes; ++i) {
    const int other = (rank_ + i) % size_;
    receives->recv(other, slot, at(other), bytes);
    sends->send(other, slot, at(other), bytes);
  }
  for (int i = 1; i < size_ && bytes; ++i) {
    TORCH_CHECK(receives->waitRecv(call.timeout), "the receiver was aborted");
  }
  const auto part_of = [&](int rank) {
    return rank == rank_ ? bytes_of(values) + at(rank) : bytes_of(received) + at(rank);
  };
  char* sum = bytes_of(memory.get());
  if (size_ == 1 && bytes) std::memmove(sum, part_of(0), bytes);
  // The first two parts go straight into the result; out may be a part of the input.
  if (size_ > 1 && bytes) {
    const at::Tensor mine = flat_like(out, out.numel());
    function(bytes_of(mine), part_of(0), part_of(1), count);
    for (int i = 2; i < size_; ++i) function(bytes_of(mine), bytes_of(mine), part_of(i), count);
    for (int i = 1; i < size_; ++i) {
      TORCH_CHECK(sends->waitSend(call.timeout), "the sender was aborted");
    }
    std::memcpy(sum, bytes_of(mine), bytes);
  }
  scale_after(call.reduce, memory.get(), size_);
  memory.put_back();
}

void GlooBackend::all_to_all(const Collective& call, const at::Tensor& in, const at::Tensor& out,
                             std::vector<int64_t> in_bytes, std::vector<int64_t> out_bytes) {
  ::gloo::AlltoallvOptions options(context_);
  options.setInput(bytes_of(in), std::move(in_bytes));
  options.setOutput(bytes_of(out), std::move(out_bytes));
  fill(options, call);
  ::gloo::alltoallv(options);
}

void GlooBackend::all_to_all_base(const Collective& call) {
  const at::Tensor in = call.inputs[0].contiguous();
  Contiguous out(call.outputs[0]);
  const auto bytes = [this](const at::Tensor& t, const std::vector<int64_t>& splits) {
    const int64_t rows = t.dim() == 0 ? 1 : t.size(0);
    const auto row = rows ? static_cast<int64_t>(size_of(t)) / rows : 0;
    std::vector<int64_t> sizes(static_cast<size_t>(size_), rows / size_ * row);
    for (size_t i = 0; i < splits.size(); ++i) sizes[i] = splits[i] * row;
    return sizes;
  };
  all_to_all(call, in, out.get(), bytes(in, call.input_splits),
             bytes(out.get(), call.output_splits));
  out.put_back();
}

void GlooBackend::all_to_all_lists(const Collective& call) {
  const auto bytes = [](const std::vector<at::Tensor>& tensors) {
    std::vector<int64_t> sizes;
    for (const auto& t : tensors) sizes.push_back(static_cast<int64_t>(size_of(t)));
    return sizes;
  };
  const at::Tensor in = joined(call.inputs), out = joined(call.outputs);
  all_to_all(call, in, out, bytes(call.inputs), bytes(call.outputs));
  divide(out, call.outputs);
}

void GlooBackend::monitored_barrier(Millis timeout, bool wait_all_ranks) {
  if (timeout < Millis::zero()) timeout = options_.timeout;
  const std::string prefix = c10::str("cresset/monitored/", ++barriers_, "/");
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto left = [&] {
    const auto rest = std::chrono::ceil<Millis>(deadline - std::chrono::steady_clock::now());
    return std::max(rest, Millis::zero());
  };
  if (rank_ != 0) {
    store_->set(prefix + std::to_string(rank_), "here");
    try {
      store_->wait({prefix + "done"}, timeout);
    } catch (const DistStoreError&) {
      throw DistBackendError(
          c10::str("Rank ", rank_,
                   " successfully reached monitoredBarrier, but received errors while "
                   "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.\n "
                   " timeout ",
                   timeout.count(), "ms"));
    }
    TORCH_CHECK(store_->get(prefix + "done") == "passed", "Rank ", rank_,
                " successfully reached monitoredBarrier, but rank 0 reported that not all ranks "
                "did. Please check rank 0 logs for faulty rank.");
    return;
  }
  std::string missing;
  int count = 0;
  for (int rank = 1; rank < size_; ++rank) {
    try {
      store_->wait({prefix + std::to_string(rank)}, left());
    } catch (const DistStoreError&) {
      missing += c10::str(count++ ? ", " : "", rank);
      if (!wait_all_ranks) break;
    }
  }
  store_->set(prefix + "done", count ? "failed" : "passed");
  if (count == 0) return;
  throw DistBackendError(c10::str("[Rank 0]: Rank", count > 1 ? "s " : " ", missing,
                                  " failed to pass monitoredBarrier in ", timeout.count(), " ms"));
}

} // namespace c10d::engine::gloo_backend

extern "C" __attribute__((visibility("default"))) c10d::engine::Backend*
cresset_make_backend(std::shared_ptr<c10d::engine::Store> store, int rank, int size,
                     const c10d::engine::BackendOptions& options) {
  return new c10d::engine::gloo_backend::GlooBackend(std::move(store), rank, size, options);
}
