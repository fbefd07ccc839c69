// Threads, order, timeouts and explanations for engines that block. A call that the caller waits
// for runs on its own thread when nothing else is under way, which saves two hand-overs; others go
// through a queue that threads serve in order. Each operation has a number that engines use as tag,
// so that operations of one group may run side by side.
#include <torch/csrc/distributed/c10d/Backend.h>
#include <torch/csrc/distributed/c10d/FlightRecorder.h>

#include <algorithm>

#include <dlfcn.h>
#include <unistd.h>

namespace c10d::engine {

using Clock = std::chrono::steady_clock;

namespace {

// Note [Who arrived]
// An engine tells that time has passed, not who is to blame. So every rank whose operation takes
// suspiciously long writes its number into the store, and who runs into the timeout reads what the
// others wrote: a rank that wrote this number or a later one has arrived, any other has not. In the
// usual case nothing is written.
constexpr Millis kSuspicious = std::chrono::seconds(5);
constexpr Millis kLook = Millis(50);

// Note [Dumps of everybody]
// The ring of one rank does not tell who is to blame, and the rank that is need not notice
// anything. So whoever writes a dump says so in the store, and where dumps are wanted every rank
// looks there once a second, whatever it is doing.
constexpr Millis kListen = std::chrono::seconds(1);
constexpr const char* kDumpKey = "cresset/dump";

std::string arrival_key(int rank) { return c10::str("cresset/arrived/", rank); }

} // namespace

BlockingBackend::BlockingBackend(std::shared_ptr<Store> store, int rank, int size,
                                 BackendOptions options)
    : Backend(rank, size, std::move(options)), store_(std::move(store)), owner_(::getpid()) {}

BlockingBackend::~BlockingBackend() { stop_threads(); }

void BlockingBackend::stop_threads() {
  if (owner_ != ::getpid()) {
    // A forked child has no such threads.
    for (auto& thread : threads_) thread.detach();
    if (watcher_.joinable()) watcher_.detach();
    threads_.clear();
    return;
  }
  std::vector<std::thread> threads;
  std::thread watcher;
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
    threads.swap(threads_);
    watcher.swap(watcher_);
    queued_.notify_all();
    watched_.notify_all();
  }
  for (auto& thread : threads) thread.join();
  if (watcher.joinable()) watcher.join();
}

void BlockingBackend::shutdown() { stop_threads(); }

void BlockingBackend::abort() {
  std::deque<Task> dropped;
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
    dropped.swap(queue_);
  }
  interrupt();
  for (auto& task : dropped) {
    task.work->finish(std::make_exception_ptr(DistBackendError(
        c10::str(task.work->description(), " was not started: its group was aborted"))));
  }
  stop_threads();
}

std::shared_ptr<Work> BlockingBackend::run(Collective call) {
  prepare(call);
  if (call.is_point_to_point()) return start_transfer(std::move(call));
  auto work = std::make_shared<Work>(call);
  Task task{std::move(call), work};
  {
    std::lock_guard lock(mutex_);
    TORCH_CHECK(!is_stopping_, work->description(), ": the process group was shut down");
    const bool runs_here = !task.call.is_async && queue_.empty() && running_.empty();
    if (watcher_.get_id() == std::thread::id()) watcher_ = std::thread([this] { watch(); });
    if (runs_here) {
      running_[task.call.sequence] = {Clock::now(), task.call.timeout, work->description()};
      admit(task.call);
      if (watcher_sleeps_) watched_.notify_one();
    } else {
      if (threads_.empty()) start_threads();
      queue_.push_back(std::move(task));
      queued_.notify_one();
      return work;
    }
  }
  run_task(task);
  return work;
}

void BlockingBackend::start_threads() {
  for (int i = 0; i < std::max(1, options_.threads); ++i) {
    threads_.emplace_back([this] { serve(); });
  }
}

void BlockingBackend::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    queued_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    running_[task.call.sequence] = {Clock::now(), task.call.timeout, task.work->description()};
    admit(task.call);
    if (watcher_sleeps_) watched_.notify_one();
    lock.unlock();
    run_task(task);
    lock.lock();
  }
}

void BlockingBackend::run_task(Task& task) {
  std::exception_ptr error;
  FlightRecorder::get().start(task.call.record);
  try {
    execute(task.call, *task.work);
  } catch (...) {
    error = explained(std::current_exception(), task.call);
  }
  {
    std::lock_guard lock(mutex_);
    running_.erase(task.call.sequence);
  }
  task.work->finish(error);
}

// Note [Who arrived]
void BlockingBackend::watch() {
  const bool listens = store_ && !FlightRecorder::get().dump_path().empty();
  auto heard = Clock::now();
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    if (listens && !has_dumped_ && Clock::now() - heard >= kListen) {
      lock.unlock();
      const bool told = was_told();
      lock.lock();
      has_dumped_ = has_dumped_ || told;
      heard = Clock::now();
      continue;
    }
    if (running_.empty()) {
      watcher_sleeps_ = true;
      if (listens) {
        watched_.wait_for(lock, kListen);
      } else {
        watched_.wait(lock);
      }
      watcher_sleeps_ = false;
      continue;
    }
    watched_.wait_for(lock, kLook);
    uint64_t latest = 0;
    std::string what;
    for (auto& [sequence, running] : running_) {
      const auto limit = std::min<Millis>(kSuspicious, running.timeout / 2);
      if (running.is_published || Clock::now() - running.begun < limit) continue;
      running.is_published = true;
      latest = sequence;
      what = running.description;
    }
    if (latest == 0 || !store_) continue;
    lock.unlock();
    try {
      store_->set(arrival_key(rank_), c10::str(latest, " ", what));
    } catch (const std::exception&) {
      // Without a store there is nobody to tell; the operation's own error says what matters.
    }
    lock.lock();
  }
}

// Note [Dumps of everybody]
void BlockingBackend::tell_others(const std::string& reason) {
  auto& recorder = FlightRecorder::get();
  if (recorder.dump_path().empty()) return;
  recorder.dump(reason);
  {
    std::lock_guard lock(mutex_);
    has_dumped_ = true;
  }
  try {
    if (store_) store_->set(kDumpKey, c10::str("rank ", rank_, ": ", reason));
  } catch (const std::exception&) {
    // A store that is gone is one of the reasons for dumps.
  }
}

bool BlockingBackend::was_told() {
  try {
    if (!store_->check({kDumpKey})) return false;
    FlightRecorder::get().dump(store_->get(kDumpKey));
  } catch (const std::exception& error) {
    FlightRecorder::get().dump(c10::str("the store is gone: ", error.what()));
  }
  return true;
}

std::string BlockingBackend::who_arrived(uint64_t sequence) {
  std::string there, missing;
  if (!store_ || size_ > 1024) return {};
  try {
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) continue;
      std::string what = "nothing heard of it";
      bool is_there = false;
      if (store_->check({arrival_key(rank)})) {
        const std::string text = store_->get(arrival_key(rank));
        is_there = std::stoull(text) >= sequence;
        what = "last waiting in " + text.substr(text.find(' ') + 1);
      }
      auto& list = is_there ? there : missing;
      if (!list.empty()) list += ", ";
      list += is_there ? c10::str(rank) : c10::str(rank, " (", what, ")");
    }
  } catch (const std::exception& error) {
    return c10::str("\n  the store could not be asked who arrived: ", error.what());
  }
  return c10::str("\n  ranks that arrived: ", rank_, there.empty() ? "" : ", ", there,
                  "; ranks that did not: ", missing.empty() ? "none" : missing);
}

std::exception_ptr BlockingBackend::explained(std::exception_ptr error, const Collective& call) {
  std::string text;
  try {
    std::rethrow_exception(error);
  } catch (const c10::NotImplementedError&) {
    return error;
  } catch (const c10::ValueError&) {
    return error;
  } catch (const std::exception& failure) {
    text = failure.what();
  }
  const bool timed_out = text.find("imed out") != std::string::npos;
  text += c10::str("\n  in ", call.describe(), " of rank ", rank_, " of ", size_,
                   options_.group_name.empty() ? "" : ", group ", options_.group_name, ", timeout ",
                   call.timeout.count(), "ms");
  if (timed_out && !call.is_point_to_point()) text += who_arrived(call.sequence);
  FlightRecorder::get().end(call.record, false);
  tell_others(text);
  return std::make_exception_ptr(DistBackendError(std::move(text)));
}

// ---- plugins ------------------------------------------------------------------------------------
MakeBackend find_plugin(const std::string& name, std::string& why) {
  static std::mutex mutex;
  static auto* known = new std::map<std::string, MakeBackend>;
  std::lock_guard lock(mutex);
  if (const auto found = known->find(name); found != known->end()) return found->second;
  Dl_info here;
  std::string folder;
  if (::dladdr(reinterpret_cast<void*>(&find_plugin), &here) && here.dli_fname) {
    folder = here.dli_fname;
    folder.resize(folder.rfind('/') + 1);
  }
  const std::string file = folder + "libtorch_" + name + ".so";
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto make =
      library ? reinterpret_cast<MakeBackend>(::dlsym(library, "cresset_make_backend")) : nullptr;
  if (!make) {
    const char* reason = ::dlerror();
    why = reason ? reason : "no reason given";
    return nullptr;
  }
  // A plugin may need a library of its own, for which it looks when it is asked.
  using Missing = const char* (*)();
  const auto missing = reinterpret_cast<Missing>(::dlsym(library, "cresset_backend_missing"));
  if (const char* reason = missing ? missing() : nullptr) {
    why = reason;
    return nullptr;
  }
  (*known)[name] = make;
  return make;
}

} // namespace c10d::engine
