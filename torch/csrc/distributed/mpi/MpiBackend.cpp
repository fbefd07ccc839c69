// MPI as a backend: a library of its own, for Open MPI and programs that mpirun starts. The numbers
// of the ranks are MPI's. Collectives are MPI's nonblocking ones, which a thread follows one after
// the other: MPI itself knows no timeouts, and an operation that others do not join would never
// return. What travels without being added up travels as bytes.
#include <torch/csrc/distributed/c10d/Backend.h>

#include <cstring>
#include <limits>

#include <mpi.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>

namespace c10d::engine::mpi_backend {

namespace {

using Clock = std::chrono::steady_clock;

void check(int result, const char* function) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw DistBackendError(c10::str("MPI error in ", function, ": ", std::string(text, length)));
}

int count_of(int64_t count) {
  TORCH_CHECK_NOT_IMPLEMENTED(count <= std::numeric_limits<int>::max(),
                              "backend mpi: messages of more than 2147483647 elements, got ",
                              count);
  return static_cast<int>(count);
}
int bytes_in(const at::Tensor& t) {
  return count_of(t.numel() * static_cast<int64_t>(t.element_size()));
}

MPI_Datatype type_of(const Collective& call, at::ScalarType type) {
  switch (type) {
  case at::kByte:
  case at::kBool:
    return MPI_UINT8_T;
  case at::kChar:
    return MPI_INT8_T;
  case at::kShort:
    return MPI_INT16_T;
  case at::kInt:
    return MPI_INT32_T;
  case at::kLong:
    return MPI_INT64_T;
  case at::kFloat:
    return MPI_FLOAT;
  case at::kDouble:
    return MPI_DOUBLE;
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, name_of(call.type),
                                " is not implemented by backend mpi for dtype ", type);
  }
}

MPI_Op op_of(const Collective& call) {
  switch (call.reduce.kind) {
  case ReduceOp::Product:
    return MPI_PROD;
  case ReduceOp::Min:
    return MPI_MIN;
  case ReduceOp::Max:
    return MPI_MAX;
  case ReduceOp::Band:
    return MPI_BAND;
  case ReduceOp::Bor:
    return MPI_BOR;
  case ReduceOp::Bxor:
    return MPI_BXOR;
  default:
    return MPI_SUM;
  }
}

// MPI is started once in a process and ended with it.
void start_mpi() {
  static std::once_flag once;
  std::call_once(once, [] {
    int is_there = 0;
    check(MPI_Initialized(&is_there), "MPI_Initialized");
    int level = 0;
    if (is_there) {
      check(MPI_Query_thread(&level), "MPI_Query_thread");
    } else {
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
      std::atexit([] {
        int is_over = 0;
        if (MPI_Finalized(&is_over) == MPI_SUCCESS && !is_over) MPI_Finalize();
      });
    }
    TORCH_CHECK(level >= MPI_THREAD_MULTIPLE,
                "backend mpi needs an MPI library that several threads may call");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  });
}

// Waits in short sleeps that grow: a message of a few bytes is there at once.
void finish_request(MPI_Request& request, Millis timeout, const std::atomic<bool>& is_aborted,
                    MPI_Status* status = MPI_STATUS_IGNORE) {
  const auto deadline = Clock::now() + timeout;
  int done = 0;
  for (int turn = 0;; ++turn) {
    check(MPI_Test(&request, &done, status), "MPI_Test");
    if (done) return;
    TORCH_CHECK(!is_aborted, "the operation was aborted");
    TORCH_CHECK(Clock::now() < deadline, "Timed out waiting ", timeout.count(), "ms");
    if (turn > 1000) {
      std::this_thread::sleep_for(std::chrono::microseconds(turn > 2000 ? 200 : 10));
    }
  }
}

class Transfer final : public Work {
 public:
  Transfer(const Collective& call, MPI_Comm comm, std::string where,
           const std::atomic<bool>& is_aborted)
      : Work(call), timeout_(call.timeout), where_(std::move(where)), is_aborted_(is_aborted),
        original_(call.type == OpType::Send ? call.inputs[0] : call.outputs[0]),
        memory_(original_.contiguous()) {
    void* data = memory_.data_ptr();
    const int bytes = bytes_in(memory_);
    if (call.type == OpType::Send) {
      check(MPI_Isend(data, bytes, MPI_BYTE, call.root, call.tag, comm, &request_), "MPI_Isend");
    } else {
      const int from = call.type == OpType::Recv ? call.root : MPI_ANY_SOURCE;
      check(MPI_Irecv(data, bytes, MPI_BYTE, from, call.tag, comm, &request_), "MPI_Irecv");
    }
  }
  void wait(Millis timeout) override {
    std::lock_guard once(waiting_);
    if (!Work::is_completed()) finish(outcome(timeout > Millis::zero() ? timeout : timeout_));
    if (auto error = exception()) std::rethrow_exception(error);
  }

 private:
  std::exception_ptr outcome(Millis timeout) {
    try {
      MPI_Status status;
      finish_request(request_, timeout, is_aborted_, &status);
      if (type() != OpType::Send) {
        set_source_rank(status.MPI_SOURCE);
        if (!memory_.is_same(original_)) original_.copy_(memory_);
      }
      return nullptr;
    } catch (const std::exception& error) {
      return std::make_exception_ptr(DistBackendError(c10::str(
          error.what(), "\n  in ", description(), where_, ", timeout ", timeout.count(), "ms")));
    }
  }

  const Millis timeout_;
  const std::string where_;
  const std::atomic<bool>& is_aborted_;
  const at::Tensor original_, memory_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::mutex waiting_;
};

} // namespace

class MpiBackend final : public BlockingBackend {
 public:
  MpiBackend(std::shared_ptr<Store> store, int rank, int size, const BackendOptions& options)
      : BlockingBackend(std::move(store), rank, size, options) {
    std::vector<int> members(options.global_ranks.begin(), options.global_ranks.end());
    if (members.empty() || size == world_size()) {
      check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
    } else {
      MPI_Group world, mine;
      check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
      check(MPI_Group_incl(world, size, members.data(), &mine), "MPI_Group_incl");
      check(MPI_Comm_create_group(MPI_COMM_WORLD, mine, 0, &comm_), "MPI_Comm_create_group");
      MPI_Group_free(&mine);
      MPI_Group_free(&world);
    }
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    options_.threads = 1;
  }
  ~MpiBackend() override { stop_threads(); }
  std::string name() const override { return "mpi"; }

  static int world_size() {
    start_mpi();
    int size = 0;
    check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
    return size;
  }
  static int world_rank() {
    start_mpi();
    int rank = 0;
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    return rank;
  }

  // One thread calls MPI's collectives, so that all ranks call them in the same order.
  std::shared_ptr<Work> run(Collective call) override {
    call.is_async = true;
    return BlockingBackend::run(std::move(call));
  }

 protected:
  void execute(Collective& call, Work&) override;
  std::shared_ptr<Work> start_transfer(Collective call) override {
    for (auto* list : {&call.inputs, &call.outputs}) {
      for (auto& t : *list) t = t.detach();
    }
    return std::make_shared<Transfer>(call, comm_, c10::str(" of rank ", rank_, " of ", size_),
                                      is_aborted_);
  }
  void interrupt() override { is_aborted_ = true; }

 private:
  template <class F> void follow(const Collective& call, const char* function, const F& start) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(start(&request), function);
    finish_request(request, call.timeout, is_aborted_);
  }
  void all_reduce(const Collective& call, const at::Tensor& t);
  void reduce(const Collective& call);
  void all_gather(const Collective& call, const at::Tensor& in, const at::Tensor& flat);
  void reduce_scatter(const Collective& call, const at::Tensor& flat, const at::Tensor& out);
  void rooted(const Collective& call);
  void all_to_all(const Collective& call);
  at::Tensor scaled(const Collective& call, const at::Tensor& t) const {
    return call.reduce.kind == ReduceOp::PremulSum ? at::mul(t, call.reduce.factor) : t;
  }
  void store_result(const Collective& call, const at::Tensor& to, const at::Tensor& from) const {
    const bool averages = call.reduce.kind == ReduceOp::Avg;
    to.copy_(
        (averages ? at::div(from, at::detail::wrapped_number(static_cast<int64_t>(size_))) : from)
            .view(to.sizes()));
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  std::atomic<bool> is_aborted_{false};
};

namespace {

at::Tensor joined(const std::vector<at::Tensor>& tensors) {
  int64_t count = 0;
  for (const auto& t : tensors) count += t.numel();
  at::Tensor flat = at::detail::empty({count}, tensors[0].scalar_type());
  int64_t at = 0;
  for (const auto& t : tensors) {
    flat.narrow(0, at, t.numel()).copy_(t.reshape({t.numel()}));
    at += t.numel();
  }
  return flat;
}

void divide(const at::Tensor& flat, const std::vector<at::Tensor>& tensors) {
  int64_t at = 0;
  for (const auto& t : tensors) {
    t.copy_(flat.narrow(0, at, t.numel()).view(t.sizes()));
    at += t.numel();
  }
}

} // namespace

void MpiBackend::execute(Collective& call, Work&) {
  for (auto* list : {&call.inputs, &call.outputs}) {
    for (auto& t : *list) {
      t = t.detach();
      TORCH_CHECK_NOT_IMPLEMENTED(t.device().is_cpu() && t.layout() == at::kStrided,
                                  name_of(call.type), " is not implemented by backend mpi for a ",
                                  t.layout(), " tensor on device ", t.device());
    }
  }
  switch (call.type) {
  case OpType::AllReduce:
  case OpType::AllReduceCoalesced:
    for (const auto& t : call.outputs) all_reduce(call, t);
    return;
  case OpType::Reduce:
    return reduce(call);
  case OpType::Broadcast:
    for (const auto& t : call.outputs) {
      const at::Tensor memory = t.contiguous();
      follow(call, "MPI_Ibcast", [&](MPI_Request* request) {
        return MPI_Ibcast(memory.data_ptr(), bytes_in(memory), MPI_BYTE, call.root, comm_, request);
      });
      if (!memory.is_same(t)) t.copy_(memory);
    }
    return;
  case OpType::AllGather: {
    const at::Tensor flat =
        at::detail::empty({call.inputs[0].numel() * size_}, call.inputs[0].scalar_type());
    all_gather(call, call.inputs[0], flat);
    return divide(flat, call.outputs);
  }
  case OpType::AllGatherBase:
  case OpType::AllGatherCoalesced:
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const at::Tensor memory = call.outputs[i].contiguous();
      all_gather(call, call.inputs[i], memory);
      if (!memory.is_same(call.outputs[i])) call.outputs[i].copy_(memory);
    }
    return;
  case OpType::ReduceScatter:
    return reduce_scatter(call, joined(call.inputs), call.outputs[0]);
  case OpType::ReduceScatterBase:
  case OpType::ReduceScatterCoalesced:
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      reduce_scatter(call, call.inputs[i].contiguous(), call.outputs[i]);
    }
    return;
  case OpType::Gather:
  case OpType::Scatter:
    return rooted(call);
  case OpType::AllToAll:
  case OpType::AllToAllBase:
    return all_to_all(call);
  case OpType::Barrier:
    return follow(call, "MPI_Ibarrier",
                  [&](MPI_Request* request) { return MPI_Ibarrier(comm_, request); });
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, name_of(call.type), " is not implemented by backend mpi");
  }
}

void MpiBackend::all_reduce(const Collective& call, const at::Tensor& t) {
  const at::Tensor memory = scaled(call, t).clone(at::MemoryFormat::Contiguous);
  follow(call, "MPI_Iallreduce", [&](MPI_Request* request) {
    return MPI_Iallreduce(MPI_IN_PLACE, memory.data_ptr(), count_of(memory.numel()),
                          type_of(call, memory.scalar_type()), op_of(call), comm_, request);
  });
  store_result(call, t, memory);
}

void MpiBackend::reduce(const Collective& call) {
  const at::Tensor& t = call.outputs[0];
  const at::Tensor in = scaled(call, t).contiguous();
  const at::Tensor out = at::detail::empty(t.sizes(), t.scalar_type());
  follow(call, "MPI_Ireduce", [&](MPI_Request* request) {
    return MPI_Ireduce(in.data_ptr(), out.data_ptr(), count_of(in.numel()),
                       type_of(call, in.scalar_type()), op_of(call), call.root, comm_, request);
  });
  if (rank_ == call.root) store_result(call, t, out);
}

void MpiBackend::all_gather(const Collective& call, const at::Tensor& in, const at::Tensor& flat) {
  const at::Tensor mine = in.contiguous();
  follow(call, "MPI_Iallgather", [&](MPI_Request* request) {
    return MPI_Iallgather(mine.data_ptr(), bytes_in(mine), MPI_BYTE, flat.data_ptr(),
                          bytes_in(mine), MPI_BYTE, comm_, request);
  });
}

void MpiBackend::reduce_scatter(const Collective& call, const at::Tensor& flat,
                                const at::Tensor& out) {
  const at::Tensor in = scaled(call, flat);
  const at::Tensor mine = at::detail::empty({out.numel()}, out.scalar_type());
  follow(call, "MPI_Ireduce_scatter_block", [&](MPI_Request* request) {
    return MPI_Ireduce_scatter_block(in.data_ptr(), mine.data_ptr(), count_of(out.numel()),
                                     type_of(call, in.scalar_type()), op_of(call), comm_, request);
  });
  store_result(call, out, mine);
}

void MpiBackend::rooted(const Collective& call) {
  const bool here = rank_ == call.root;
  if (call.type == OpType::Gather) {
    const at::Tensor mine = call.inputs[0].contiguous();
    at::Tensor flat = at::detail::empty({here ? mine.numel() * size_ : 0}, mine.scalar_type());
    follow(call, "MPI_Igather", [&](MPI_Request* request) {
      return MPI_Igather(mine.data_ptr(), bytes_in(mine), MPI_BYTE, flat.data_ptr(), bytes_in(mine),
                         MPI_BYTE, call.root, comm_, request);
    });
    if (here) divide(flat, call.outputs);
    return;
  }
  const at::Tensor& out = call.outputs[0];
  const at::Tensor mine = at::detail::empty(out.sizes(), out.scalar_type());
  const at::Tensor flat =
      here ? joined(call.inputs) : at::detail::empty({int64_t{0}}, out.scalar_type());
  follow(call, "MPI_Iscatter", [&](MPI_Request* request) {
    return MPI_Iscatter(flat.data_ptr(), bytes_in(mine), MPI_BYTE, mine.data_ptr(), bytes_in(mine),
                        MPI_BYTE, call.root, comm_, request);
  });
  out.copy_(mine);
}

void MpiBackend::all_to_all(const Collective& call) {
  const bool listed = call.type == OpType::AllToAll;
  const at::Tensor in = listed ? joined(call.inputs) : call.inputs[0].contiguous();
  const at::Tensor out = listed ? joined(call.outputs) : call.outputs[0].contiguous();
  struct Parts {
    std::vector<int> bytes, places;
  };
  const auto parts = [&](const at::Tensor& whole, const std::vector<at::Tensor>& tensors,
                         const std::vector<int64_t>& splits) {
    Parts made;
    const int64_t rows = whole.dim() == 0 ? 1 : whole.size(0);
    const int64_t row = rows ? bytes_in(whole) / rows : 0;
    int64_t at = 0;
    for (size_t i = 0; i < static_cast<size_t>(size_); ++i) {
      const int64_t mine =
          listed ? bytes_in(tensors[i]) : (splits.empty() ? rows / size_ : splits[i]) * row;
      made.bytes.push_back(count_of(mine));
      made.places.push_back(count_of(at));
      at += mine;
    }
    return made;
  };
  const Parts sent = parts(in, call.inputs, call.input_splits);
  const Parts received = parts(out, call.outputs, call.output_splits);
  follow(call, "MPI_Ialltoallv", [&](MPI_Request* request) {
    return MPI_Ialltoallv(in.data_ptr(), sent.bytes.data(), sent.places.data(), MPI_BYTE,
                          out.data_ptr(), received.bytes.data(), received.places.data(), MPI_BYTE,
                          comm_, request);
  });
  if (listed) {
    divide(out, call.outputs);
  } else if (!out.is_same(call.outputs[0])) {
    call.outputs[0].copy_(out);
  }
}

} // namespace c10d::engine::mpi_backend

extern "C" {
// A rank below zero asks for the world as MPI numbers it.
__attribute__((visibility("default"))) c10d::engine::Backend*
cresset_make_backend(std::shared_ptr<c10d::engine::Store> store, int rank, int size,
                     const c10d::engine::BackendOptions& options) {
  using c10d::engine::mpi_backend::MpiBackend;
  const int world = MpiBackend::world_size();
  if (rank < 0) return new MpiBackend(nullptr, MpiBackend::world_rank(), world, options);
  TORCH_CHECK_VALUE(size <= world, "a group of ", size, " ranks in an MPI world of ", world);
  return new MpiBackend(std::move(store), rank, size, options);
}
}
