// See LongCall.h. Calls that were left are counted: the library that they run in must not be taken
// down under them when the process ends.
#include <ATen/native/linalg/lapack/LongCall.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <ATen/parallel/Parallel.h>
#include <unistd.h>

namespace at::native::lapack {
namespace {

std::atomic<int> g_running{0};
thread_local bool inside = false;

// The routine's memory is freed by its library's own exit handler, which runs after this one: a
// process that ends while a call is left ends here.
void end_without_handlers(int status, void*) {
  if (g_running.load() == 0) return;
  std::fflush(nullptr);
  _exit(status);
}

struct LongCall {
  std::function<int(void* const*)> run;
  int result = 0;
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<void*> pointers;
  std::exception_ptr error;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;

  void work() {
    inside = true;
    try {
      result = run(pointers.data());
    } catch (const std::exception&) {
      error = std::current_exception();
    }
    inside = false;
    const std::lock_guard<std::mutex> lock(mutex);
    done = true;
    ended.notify_one();
  }
};

std::thread start(const std::shared_ptr<LongCall>& call) {
  sigset_t all, before;
  sigfillset(&all);
  // Handlers belong to the program's own threads.
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread([call] {
      call->work();
      g_running.fetch_sub(1);
    });
  } catch (const std::system_error&) {
    g_running.fetch_sub(1); // no thread: the caller does it, and cannot be interrupted
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

} // namespace

bool is_long(double multiplications) { return multiplications >= 1e9 && !inside; }

int long_call(c10::ArrayRef<CallArray> arrays, std::function<int(void* const*)> run) {
  static const int registered = on_exit(end_without_handlers, nullptr);
  static_cast<void>(registered);
  auto call = std::make_shared<LongCall>();
  call->run = std::move(run);
  for (const CallArray& array : arrays) {
    call->memory.emplace_back(new char[array.bytes + 64]);
    const auto address = reinterpret_cast<uintptr_t>(call->memory.back().get());
    void* aligned = reinterpret_cast<void*>((address + 63) / 64 * 64);
    if (array.in) std::memcpy(aligned, array.data, array.bytes);
    call->pointers.push_back(aligned);
  }
  g_running.fetch_add(1);
  std::thread thread = start(call);
  if (thread.joinable()) {
    thread.detach();
    std::unique_lock<std::mutex> lock(call->mutex);
    while (!call->ended.wait_for(lock, std::chrono::milliseconds(20), [&] { return call->done; })) {
      lock.unlock();
      check_interrupt();
      lock.lock();
    }
  } else {
    call->work();
  }
  if (call->error) std::rethrow_exception(call->error);
  for (size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i].out) std::memcpy(arrays[i].data, call->pointers[i], arrays[i].bytes);
  return call->result;
}

} // namespace at::native::lapack
