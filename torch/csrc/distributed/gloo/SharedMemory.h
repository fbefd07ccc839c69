// Collectives between processes of one machine, through memory that they share. A
// network costs two copies in the kernel per byte and direction; here a byte is copied once into a
// slot and read where it lies. Every rank has a ring of slots. An operation is a row of steps with
// one number for all ranks: in a step a rank may fill its slot and read the slots of others.
//
// Note [Steps of the shared memory]
// Two counters per rank are all the synchronisation: how many steps it has filled, and how many it
// has finished reading. A slot may be filled again when all have finished the step that used it
// last; a slot may be read when its owner has filled the step. Waiting spins for a while, then
// sleeps on the counter, and looks up now and then whether time is over or a process is gone.
#pragma once
#include <atomic>
#include <memory>

#include <torch/csrc/distributed/c10d/Store.h>
#include <torch/csrc/distributed/gloo/Reduction.h>

namespace c10d::engine::gloo_backend {

class SharedMemory {
 public:
  // Memory for the ranks of a group, if all run on one machine and can map it; null otherwise, on
  // all ranks alike. Every rank calls it.
  static std::unique_ptr<SharedMemory> open(Store& store, int rank, int size, Millis timeout);
  ~SharedMemory();

  // One operation at a time. Each throws when time is over, a process is gone, another rank runs
  // something else, or interrupt() was called; the memory is of no use after that.
  void all_reduce(void* data, size_t count, size_t element, const ReduceFunction& function,
                  Millis timeout);
  void broadcast(void* data, size_t bytes, int root, Millis timeout);
  void all_gather(void* out, const void* in, size_t bytes, Millis timeout);
  // `in` has one part of `count` elements per rank.
  void reduce_scatter(void* out, const void* in, size_t count, size_t element,
                      const ReduceFunction& function, Millis timeout);
  void interrupt() { is_interrupted_ = true; }

 private:
  struct Rank;
  struct Slot;
  SharedMemory(void* memory, size_t bytes, int rank, int size);
  Rank& control(int rank) const;
  Slot& slot(int rank, uint32_t step) const;
  // The memory of a slot that may be filled, and the end of filling it.
  char* begin_fill(Millis timeout);
  void end_fill(uint32_t kind, uint64_t bytes);
  // What another rank has filled in this step; throws where it is not `bytes` of `kind`.
  const char* filled(int other, uint32_t kind, uint64_t bytes, Millis timeout);
  void end_step();
  void wait(std::atomic<uint32_t>& counter, uint32_t at_least, int other, Millis timeout);

  char* const memory_;
  const size_t bytes_;
  const int rank_, size_;
  uint32_t step_ = 0;
  bool is_broken_ = false;
  std::atomic<bool> is_interrupted_{false};
};

} // namespace c10d::engine::gloo_backend
