// The bins and the segments behind them. See BlockPool.h.
#include <c10/cuda/BlockPool.h>

#include <algorithm>
#include <mutex>

namespace c10::cuda {
namespace {

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// How many blocks of the request's own bin are looked at before a larger one is cut.
constexpr int kSearch = 16;

struct SpareBlocks {
  std::mutex mutex;
  Block* head = nullptr;
};
SpareBlocks& spare_blocks() {
  static SpareBlocks* all = new SpareBlocks; // blocks are given back at any time, also at exit
  return *all;
}

CUmemAllocationProp chunk_properties(DeviceIndex device) {
  CUmemAllocationProp prop = {};
  prop.type = kMemAllocationTypePinned;
  prop.location = {kMemLocationTypeDevice, device};
  return prop;
}

} // namespace

Block* new_block() {
  SpareBlocks& spare = spare_blocks();
  std::lock_guard<std::mutex> lock(spare.mutex);
  if (spare.head == nullptr) {
    constexpr int kBatch = 64;
    Block* batch = new Block[kBatch];
    for (int i = 0; i < kBatch; ++i) {
      batch[i].bin_next = spare.head;
      spare.head = &batch[i];
    }
  }
  Block* block = spare.head;
  spare.head = block->bin_next;
  *block = Block();
  return block;
}

void delete_block(Block* block) {
  SpareBlocks& spare = spare_blocks();
  std::lock_guard<std::mutex> lock(spare.mutex);
  block->used_by.reset();
  block->bin_next = spare.head;
  spare.head = block;
}

// ---- bins ---------------------------------------------------------------------------------------

// Sizes below 32 units have a bin each; above, each doubling is divided into 32 bins.
void BlockPool::bin_of(size_t size, int* level, int* bin) const {
  const size_t units = size / kUnit;
  const int high = units < kBins ? 4 : 63 - __builtin_clzll(units);
  *level = std::min(high - 4, kLevels - 1);
  *bin = units < kBins ? static_cast<int>(units) : static_cast<int>(units >> (high - 5)) & 31;
}

void BlockPool::link(Block* block) {
  int level, bin;
  bin_of(block->size, &level, &bin);
  Block*& head = heads_[level][bin];
  block->bin_prev = nullptr;
  block->bin_next = head;
  if (head != nullptr) head->bin_prev = block;
  head = block;
  levels_ |= uint64_t(1) << level;
  bins_[level] |= uint32_t(1) << bin;
}

void BlockPool::unlink(Block* block) {
  if (block->bin_next != nullptr) block->bin_next->bin_prev = block->bin_prev;
  if (block->bin_prev != nullptr) {
    block->bin_prev->bin_next = block->bin_next;
  } else {
    int level, bin;
    bin_of(block->size, &level, &bin);
    heads_[level][bin] = block->bin_next;
    if (block->bin_next == nullptr) {
      bins_[level] &= ~(uint32_t(1) << bin);
      if (bins_[level] == 0) levels_ &= ~(uint64_t(1) << level);
    }
  }
  block->bin_prev = block->bin_next = nullptr;
}

// The best of the request's own bin, where the same size was often freed before; else any block of
// the next bin that has one, all of which are large enough.
Block* BlockPool::find(size_t size) {
  int level, bin;
  bin_of(size, &level, &bin);
  Block* best = nullptr;
  int looked = 0;
  for (Block* b = heads_[level][bin]; b != nullptr && looked < kSearch; b = b->bin_next, ++looked) {
    if (b->size == size) return b;
    if (b->size > size && (best == nullptr || b->size < best->size)) best = b;
  }
  if (best != nullptr) return best;
  const uint32_t higher = bin + 1 < kBins ? bins_[level] & (~uint32_t(0) << (bin + 1)) : 0;
  if (higher != 0) return heads_[level][__builtin_ctz(higher)];
  const uint64_t above = level + 1 < kLevels ? levels_ & (~uint64_t(0) << (level + 1)) : 0;
  if (above == 0) return nullptr;
  const int next = __builtin_ctzll(above);
  return heads_[next][__builtin_ctz(bins_[next])];
}

Block* BlockPool::cut(Block* block, size_t size) {
  Block* rest = new_block();
  rest->ptr = block->ptr + size;
  rest->size = block->size - size;
  rest->pool = this;
  rest->segment = block->segment;
  rest->device = device;
  rest->mapped = block->mapped;
  rest->prev = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->prev = rest;
  if (block->segment->last == block) block->segment->last = rest;
  block->next = rest;
  block->size = size;
  return rest;
}

void BlockPool::absorb_next(Block* block) {
  Block* gone = block->next;
  block->size += gone->size;
  block->next = gone->next;
  if (block->next != nullptr) block->next->prev = block;
  if (block->segment->last == gone) block->segment->last = block;
  delete_block(gone);
}

Block* BlockPool::take(size_t size) {
  if (size <= kQuickLimit) {
    Block*& quick = quick_[size / kUnit];
    if (Block* block = quick) {
      quick = block->bin_next;
      block->bin_next = nullptr;
      block->quick = false;
      return block;
    }
  }
  Block* block = find(size);
  if (block == nullptr && flush_quick()) block = find(size);
  if (block == nullptr) return nullptr;
  unlink(block);
  // A small rest of a large block is left with it: such splinters are seldom asked for.
  const size_t rest = block->size - size;
  if (small ? rest >= kUnit : rest > kSmallLimit) link(cut(block, size));
  block->allocated = true;
  return block;
}

void BlockPool::give(Block* block) {
  if (small && block->size <= kQuickLimit) {
    Block*& quick = quick_[block->size / kUnit];
    block->bin_next = quick;
    block->quick = true;
    block->allocated = true; // to its neighbours, which must not merge with it
    quick = block;
    return;
  }
  merge(block);
}

bool BlockPool::flush_quick() {
  bool any = false;
  for (Block*& quick : quick_) {
    while (Block* block = quick) {
      quick = block->bin_next;
      block->bin_next = nullptr;
      block->quick = false;
      merge(block);
      any = true;
    }
  }
  return any;
}

void BlockPool::merge(Block* block) {
  block->allocated = false;
  const auto free_neighbour = [](const Block* b) {
    return b != nullptr && b->mapped && !b->allocated && b->pending == 0;
  };
  if (free_neighbour(block->next)) {
    unlink(block->next);
    absorb_next(block);
  }
  if (free_neighbour(block->prev)) {
    block = block->prev;
    unlink(block);
    absorb_next(block);
  }
  link(block);
}

Block* BlockPool::append(Segment& segment, CUdeviceptr ptr, size_t size) {
  Block* block = new_block();
  block->ptr = ptr;
  block->size = size;
  block->pool = this;
  block->segment = &segment;
  block->device = device;
  block->allocated = true; // until given
  block->prev = segment.last;
  if (segment.last != nullptr) segment.last->next = block;
  if (segment.first == nullptr) segment.first = block;
  segment.last = block;
  segment.length += size;
  return block;
}

// ---- segments -----------------------------------------------------------------------------------

bool BlockPool::grow(size_t size, size_t limit, PoolChange& change) {
  return growable ? grow_range(size, limit, change) : grow_fixed(size, limit, change);
}

bool BlockPool::grow_fixed(size_t size, size_t limit, PoolChange& change) {
  size_t chunk = small ? kSmallChunk : size < kLargeChunk / 2 ? kLargeChunk : 0;
  if (chunk == 0) chunk = round_up(size, kSmallChunk);
  if (chunk > limit) return false;
  CUdeviceptr ptr = 0;
  const CUresult result = driver().cuMemAlloc(&ptr, chunk);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return false;
  check(result, "cuMemAlloc");
  segments.push_back(std::make_unique<Segment>());
  Segment& segment = *segments.back();
  segment.base = ptr;
  segment.range = chunk;
  segment.chunks.push_back({ptr, chunk, 0});
  change.bytes += static_cast<int64_t>(chunk);
  change.chunks += 1;
  merge(append(segment, ptr, chunk));
  return true;
}

CUresult BlockPool::map_chunk(Segment& segment, CUdeviceptr address, size_t size) {
  const DriverApi& api = driver();
  const CUmemAllocationProp prop = chunk_properties(device);
  CUmemGenericAllocationHandle handle = 0;
  CUresult result = api.cuMemCreate(&handle, size, &prop, 0);
  if (result != CUDA_SUCCESS) return result;
  result = api.cuMemMap(address, size, 0, handle, 0);
  if (result == CUDA_SUCCESS) {
    const CUmemAccessDesc access = {prop.location, kMemAccessReadWrite};
    result = api.cuMemSetAccess(address, size, &access, 1);
    if (result != CUDA_SUCCESS) api.cuMemUnmap(address, size);
  }
  if (result != CUDA_SUCCESS) {
    api.cuMemRelease(handle);
    return result;
  }
  segment.chunks.push_back({address, size, handle});
  return CUDA_SUCCESS;
}

bool BlockPool::fill_hole(Segment& segment, size_t size, size_t limit, PoolChange& change) {
  for (Block* hole = segment.first; hole != nullptr; hole = hole->next) {
    if (hole->mapped || hole->size < size || hole->size > limit) continue;
    const CUresult result = map_chunk(segment, hole->ptr, hole->size);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return false;
    check(result, "cuMemCreate");
    change.bytes += static_cast<int64_t>(hole->size);
    change.chunks += 1;
    hole->mapped = true;
    merge(hole);
    return true;
  }
  return false;
}

bool BlockPool::grow_range(size_t size, size_t limit, PoolChange& change) {
  if (segments.empty()) {
    const CUmemAllocationProp prop = chunk_properties(device);
    CRESSET_CUDA_CHECK(cuMemGetAllocationGranularity, &granularity_, &prop, kMemGranularityMinimum);
    auto segment = std::make_unique<Segment>();
    segment->growable = true;
    // An eighth more than the memory there is: free blocks at other places may not be usable.
    const size_t total = device_properties(device).total_memory;
    segment->range = round_up(total + total / 8, std::max(granularity_, kSmallChunk));
    CRESSET_CUDA_CHECK(cuMemAddressReserve, &segment->base, segment->range, size_t(0),
                       CUdeviceptr(0), 0ull);
    segments.push_back(std::move(segment));
  }
  Segment& segment = *segments.front();
  if (fill_hole(segment, size, limit, change)) return true;
  const Block* last = segment.last;
  const bool extends = last != nullptr && last->mapped && !last->allocated && last->pending == 0;
  const size_t unit = std::max(granularity_, kSmallChunk);
  const size_t need = round_up(size - (extends ? last->size : 0), unit);
  const size_t room = std::min(limit, segment.range - segment.length);
  const CUdeviceptr end = segment.base + segment.length;
  // The usual step first, then just what is needed.
  for (const size_t chunk : {std::max(need, round_up(small ? unit : kLargeChunk, unit)), need}) {
    if (chunk > room) continue;
    const CUresult result = map_chunk(segment, end, chunk);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) continue;
    check(result, "cuMemCreate");
    change.bytes += static_cast<int64_t>(chunk);
    change.chunks += 1;
    merge(append(segment, end, chunk));
    return true;
  }
  return false;
}

// ---- giving back --------------------------------------------------------------------------------

// Unmaps the chunks that lie inside a free block, and cuts the block so that the hole is a block of
// its own. `block` is not in a bin.
void BlockPool::release_chunks(Segment& segment, Block* block, PoolChange& change) {
  CUdeviceptr begin = 0, end = 0;
  auto& chunks = segment.chunks;
  for (size_t i = 0; i < chunks.size();) {
    const Segment::Chunk chunk = chunks[i];
    const bool inside =
        chunk.ptr >= block->ptr && chunk.ptr + chunk.size <= block->ptr + block->size;
    if (!inside) {
      ++i;
      continue;
    }
    check(driver().cuMemUnmap(chunk.ptr, chunk.size), "cuMemUnmap");
    check(driver().cuMemRelease(chunk.handle), "cuMemRelease");
    begin = begin == 0 ? chunk.ptr : std::min(begin, chunk.ptr);
    end = std::max(end, chunk.ptr + chunk.size);
    change.bytes -= static_cast<int64_t>(chunk.size);
    change.chunks -= 1;
    chunks[i] = chunks.back();
    chunks.pop_back();
  }
  if (begin == end) {
    link(block);
    return;
  }
  if (end < block->ptr + block->size) link(cut(block, end - block->ptr));
  if (begin > block->ptr) {
    Block* hole = cut(block, begin - block->ptr);
    link(block);
    block = hole;
  }
  block->mapped = false;
  if (block->next != nullptr && !block->next->mapped) absorb_next(block);
  if (block->prev != nullptr && !block->prev->mapped) absorb_next(block->prev);
}

void BlockPool::drop_trailing_hole(Segment& segment) {
  Block* last = segment.last;
  if (last == nullptr || last->mapped) return;
  segment.length -= last->size;
  segment.last = last->prev;
  if (segment.last != nullptr)
    segment.last->next = nullptr;
  else
    segment.first = nullptr;
  delete_block(last);
}

void BlockPool::shrink(PoolChange& change) {
  flush_quick();
  for (size_t i = 0; i < segments.size();) {
    Segment& segment = *segments[i];
    if (segment.growable) {
      for (Block* block = segment.first; block != nullptr;) {
        if (!block->mapped || block->allocated || block->pending > 0) {
          block = block->next;
          continue;
        }
        // The blocks around are merged and cut: walk on from the first one behind.
        const CUdeviceptr behind = block->ptr + block->size;
        unlink(block);
        release_chunks(segment, block, change);
        block = segment.first;
        while (block != nullptr && block->ptr < behind) block = block->next;
      }
      drop_trailing_hole(segment);
      ++i;
      continue;
    }
    Block* only = segment.first;
    if (only->allocated || only->pending > 0 || only->next != nullptr) {
      ++i;
      continue;
    }
    unlink(only);
    check(driver().cuMemFree(segment.base), "cuMemFree");
    change.bytes -= static_cast<int64_t>(segment.range);
    change.chunks -= 1;
    delete_block(only);
    segments[i] = std::move(segments.back());
    segments.pop_back();
  }
}

} // namespace c10::cuda
