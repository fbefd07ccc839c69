// Blocks of device memory for one stream: segments obtained from the driver, cut into blocks, with
// free blocks merged with their neighbours and kept in bins by size (two-level segregated fit:
// finding, splitting and merging take constant time and allocate nothing).
//
// Note [Growable segments]
// Where the driver manages virtual memory a pool has one segment: a range of addresses as long as
// the GPU's memory, to whose end physical chunks are mapped as needed. Free neighbours merge
// across chunks, so that memory freed by small tensors serves large ones, which is what classic
// segments of fixed length cannot do. A chunk that is wholly free can be unmapped and leaves a hole
// in the range, which later growth fills first. Without virtual memory a pool has many segments of
// fixed length.
//
// Nothing here locks: the allocator of the device does.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <c10/cuda/CUDAEvent.h>

namespace c10::cuda {

struct BlockPool;
struct Segment;

struct Block {
  CUdeviceptr ptr = 0;
  size_t size = 0;
  size_t requested = 0;
  Block* prev = nullptr; // neighbours in the segment, by address
  Block* next = nullptr;
  Block* bin_prev = nullptr;
  Block* bin_next = nullptr; // also chains unused Block objects
  BlockPool* pool = nullptr; // null: obtained from the driver for itself alone
  Segment* segment = nullptr;
  DeviceIndex device = 0;
  bool allocated = false;
  bool mapped = true;
  bool quick = false; // free, but kept whole for the next request of its size
  int pending = 0;    // events to be reached before the block is free
  std::unique_ptr<std::vector<CUstream>> used_by; // other streams (record_stream)
};

struct Segment {
  struct Chunk {
    CUdeviceptr ptr;
    size_t size;
    CUmemGenericAllocationHandle handle; // of virtual memory
  };
  CUdeviceptr base = 0;
  size_t range = 0;  // addresses reserved
  size_t length = 0; // of which blocks cover this much
  bool growable = false;
  Block* first = nullptr;
  Block* last = nullptr;
  std::vector<Chunk> chunks;
};

// What growing and shrinking did, for the statistics.
struct PoolChange {
  int64_t bytes = 0;
  int64_t chunks = 0;
};

struct BlockPool {
  static constexpr size_t kUnit = 512;           // sizes and addresses are multiples of it
  static constexpr size_t kSmallLimit = 1 << 20; // requests up to here go to small pools
  static constexpr size_t kSmallChunk = 2 << 20; // growth steps
  static constexpr size_t kLargeChunk = 20 << 20;

  BlockPool(DeviceIndex device, CUstream stream, uint64_t graph, bool small, bool growable)
      : device(device), stream(stream), graph(graph), small(small), growable(growable) {}

  // A free block of at least `size` (a multiple of kUnit), cut to it where worthwhile; null when
  // none is there.
  Block* take(size_t size);
  // Makes a block free. A small one is kept as it is for the next request of its size, others are
  // merged with their neighbours.
  void give(Block* block);
  // Asks the driver for memory for a block of `size`. At most `limit` bytes more. False when there
  // is none. Throws for failures other than lack of memory.
  bool grow(size_t size, size_t limit, PoolChange& change);
  // Gives wholly free chunks back to the driver. The device must have finished using them.
  void shrink(PoolChange& change);

  template <class F> void for_each_segment(F&& visit) const {
    for (const auto& segment : segments) visit(*segment);
  }

  const DeviceIndex device;
  const CUstream stream;
  const uint64_t graph; // the number of the pool it belongs to
  const bool small;
  const bool growable;
  std::vector<std::unique_ptr<Segment>> segments;

 private:
  static constexpr size_t kQuickLimit = 64 * kUnit;
  static constexpr int kLevels = 40;
  static constexpr int kBins = 32;

  void bin_of(size_t size, int* level, int* bin) const;
  void merge(Block* block);
  bool flush_quick(); // whether there was anything
  void link(Block* block);
  void unlink(Block* block);
  Block* find(size_t size);
  Block* cut(Block* block, size_t size); // the remainder behind `size`
  void absorb_next(Block* block);
  Block* append(Segment& segment, CUdeviceptr ptr, size_t size);

  bool grow_range(size_t size, size_t limit, PoolChange& change);
  bool grow_fixed(size_t size, size_t limit, PoolChange& change);
  bool fill_hole(Segment& segment, size_t size, size_t limit, PoolChange& change);
  CUresult map_chunk(Segment& segment, CUdeviceptr address, size_t size);
  void release_chunks(Segment& segment, Block* block, PoolChange& change);
  void drop_trailing_hole(Segment& segment);

  uint64_t levels_ = 0;
  uint32_t bins_[kLevels] = {};
  Block* heads_[kLevels][kBins] = {};
  Block* quick_[kQuickLimit / kUnit + 1] = {};
  size_t granularity_ = 0;
};

// Block objects are recycled, never freed.
Block* new_block();
void delete_block(Block* block);

} // namespace c10::cuda
