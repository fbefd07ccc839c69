// Backends: how the processes of a group reach each other. One function takes every operation as a
// Collective. BlockingBackend is the base of those whose engine blocks the calling thread: it gives
// them threads, order, timeouts and errors that name the operation and the ranks that are missing.
#pragma once
#include <deque>
#include <map>
#include <thread>

#include <torch/csrc/distributed/c10d/Store.h>
#include <torch/csrc/distributed/c10d/Work.h>

namespace c10d::engine {

struct BackendOptions {
  Millis timeout = std::chrono::minutes(30);
  std::string group_name;
  std::vector<int64_t> global_ranks; // of the group's members; empty: their own numbers
  int threads = 2;
  std::vector<std::string> interfaces; // network interfaces by name; empty: the host's address
  std::string hostname;
};

class TORCH_API Backend {
 public:
  Backend(int rank, int size, BackendOptions options);
  virtual ~Backend();
  virtual std::string name() const = 0;
  // Starts the operation. Arguments that cannot be right for any backend were refused before.
  // Throws where this backend does not have the operation.
  virtual std::shared_ptr<Work> run(Collective call) = 0;
  // Waits for everybody; rank 0 throws and names those that did not come in time.
  virtual void monitored_barrier(Millis timeout, bool wait_all_ranks);
  // Ends waiting and running work with an error; nothing runs after it.
  virtual void abort() {}
  // Lets running work end, then stops.
  virtual void shutdown() {}
  // Operations in between may be started as one: engines whose transfers wait for each other need
  // it. Their work can be waited for after the end.
  virtual void begin_batch() {}
  virtual void end_batch() {}
  // Lets the engine prepare memory that many operations will use; a collective call for those
  // that connect when first used. Throws where the engine has nothing of the kind.
  virtual void register_memory(c10::Device device, void* data, size_t bytes);
  virtual void deregister_memory(void* data);

  int rank() const { return rank_; }
  int size() const { return size_; }
  const BackendOptions& options() const { return options_; }
  void set_timeout(Millis timeout) { options_.timeout = timeout; }
  // How many operations were started.
  uint64_t sequence() const { return sequence_; }

 protected:
  // Checks the shapes, dtypes and counts of a call against the group; throws c10::ValueError and
  // others, naming what is wrong. Sets sequence and timeout.
  void prepare(Collective& call);
  const int rank_, size_;
  BackendOptions options_;
  std::atomic<uint64_t> sequence_{0};
};

class TORCH_API BlockingBackend : public Backend {
 public:
  BlockingBackend(std::shared_ptr<Store> store, int rank, int size, BackendOptions options);
  ~BlockingBackend() override;
  std::shared_ptr<Work> run(Collective call) override;
  void abort() override;
  void shutdown() override;

 protected:
  // Does the work on the calling thread. Throws.
  virtual void execute(Collective& call, Work& work) = 0;
  // Called when a collective's turn has come, before execute(), in the same order on all ranks;
  // holds a lock and must not wait.
  virtual void admit(const Collective& call) { static_cast<void>(call); }
  // Starts a send or receive, whose work waits by itself.
  virtual std::shared_ptr<Work> start_transfer(Collective call) = 0;
  // Makes execute() return soon, with an error.
  virtual void interrupt() {}
  // The error of an operation with what it was and who is missing.
  std::exception_ptr explained(std::exception_ptr error, const Collective& call);
  // Derived classes call it first in their destructors: execute() is theirs.
  void stop_threads();
  const std::shared_ptr<Store> store_;

 private:
  struct Task {
    Collective call;
    std::shared_ptr<Work> work;
  };
  struct Running {
    std::chrono::steady_clock::time_point begun;
    Millis timeout;
    std::string description;
    bool is_published = false;
  };
  void run_task(Task& task);
  void start_threads();
  void serve();
  void watch();
  void tell_others(const std::string& reason);
  bool was_told();
  std::string who_arrived(uint64_t sequence);

  std::mutex mutex_;
  std::condition_variable queued_, watched_, idle_;
  std::deque<Task> queue_;
  std::map<uint64_t, Running> running_;
  std::vector<std::thread> threads_;
  std::thread watcher_;
  bool watcher_sleeps_ = false;
  bool is_stopping_ = false;
  bool has_dumped_ = false;
  const int owner_;
};

// Does nothing and is done at once: for planning and tests of what surrounds communication.
class TORCH_API FakeBackend final : public Backend {
 public:
  FakeBackend(int rank, int size, BackendOptions options) : Backend(rank, size, options) {}
  ~FakeBackend() override;
  std::string name() const override { return "fake"; }
  std::shared_ptr<Work> run(Collective call) override;
  void monitored_barrier(Millis, bool) override {}
};

// The members of a group are threads of one process.
TORCH_API std::shared_ptr<Backend> make_threaded_backend(const std::string& group_key, int rank,
                                                         int size, BackendOptions options);

// ---- plugins: backends in libraries of their own, loaded when first asked for
using MakeBackend = Backend* (*)(std::shared_ptr<Store> store, int rank, int size,
                                 const BackendOptions& options);
// The factory in libtorch_<name>.so beside this library. Null, with `why` set, where it is missing
// or what it needs is not installed.
TORCH_API MakeBackend find_plugin(const std::string& name, std::string& why);

} // namespace c10d::engine
