// What the emulated libraries tell an emulated libcupti of: calls, and the work done during them.
// Without an observer this is one test of a pointer.
#pragma once

#include <cstddef>

namespace emulator {

enum class WorkKind { kKernel, kCopy, kFill, kPeerCopy };

struct Work {
  WorkKind kind = WorkKind::kKernel;
  const char* name = "";
  int device = 0;
  const void* stream = nullptr;
  size_t bytes = 0;
  int from_side = 0, to_side = 0; // of a copy: -1 host, 1 device
  const unsigned* grid = nullptr;
  const unsigned* block = nullptr;
  unsigned shared_bytes = 0;
};

struct Observer {
  void (*call)(const char* name, bool begins); // names of the runtime begin with cuda
  void (*work)(const Work& work, bool begins);
};

// One of these in scope is what is told.
class ObservedCall {
 public:
  ObservedCall(const Observer* observer, const char* name, const void* stream);
  ~ObservedCall();
  ObservedCall(const ObservedCall&) = delete;

 private:
  const Observer* observer_; // null: not observed, or inside another call
  const char* name_;
};

class ObservedWork {
 public:
  ObservedWork(const Observer* observer, const Work& work) : observer_(observer), work_(work) {
    if (observer_) observer_->work(work_, true);
  }
  ~ObservedWork() {
    if (observer_) observer_->work(work_, false);
  }
  ObservedWork(const ObservedWork&) = delete;

 private:
  const Observer* observer_;
  Work work_;
};

const Observer* observer();        // null: nobody observes
const void* stream_of_this_call(); // of the call that this thread is in

} // namespace emulator
