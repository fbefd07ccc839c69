// See RowWalk.h. Threads: independent positions are cut by position. Ordered writes are cut by the
// outer dimensions where there are enough of them, else by destination: each part picks, in order,
// the positions whose offset lies in its range, so no two threads ever write the same slice.
#include <ATen/native/index/RowWalk.h>

#include <ATen/parallel/Stretches.h>

#include <algorithm>
#include <vector>

namespace at::native {

void WalkDims::add(int64_t size, int64_t indexed_stride, int64_t linear_stride) {
  numel *= size;
  if (size == 1) return;
  if (!sizes.empty() && indexed.back() == size * indexed_stride &&
      linear.back() == size * linear_stride) {
    sizes.back() *= size;
    indexed.back() = indexed_stride;
    linear.back() = linear_stride;
    return;
  }
  sizes.push_back(size);
  indexed.push_back(indexed_stride);
  linear.push_back(linear_stride);
}

namespace {

// Bytes of work below which another thread does not pay.
constexpr int64_t kGrainBytes = 64 * 1024;

// Counts through the dimensions in front of the last `skip` ones.
struct Odometer {
  const WalkDims& dims;
  int64_t rank;
  DimVector coordinates;
  int64_t indexed = 0;
  int64_t linear = 0;

  Odometer(const WalkDims& d, int64_t skip, int64_t start)
      : dims(d), rank(std::max<int64_t>(static_cast<int64_t>(d.sizes.size()) - skip, 0)) {
    coordinates.resize(static_cast<size_t>(rank));
    for (int64_t i = rank - 1; i >= 0; --i) {
      coordinates[i] = start % dims.sizes[i];
      start /= dims.sizes[i];
      indexed += coordinates[i] * dims.indexed[i];
      linear += coordinates[i] * dims.linear[i];
    }
  }
  // False after the last one.
  bool next() {
    for (int64_t i = rank - 1; i >= 0; --i) {
      indexed += dims.indexed[i];
      linear += dims.linear[i];
      if (++coordinates[i] < dims.sizes[i]) return true;
      indexed -= dims.sizes[i] * dims.indexed[i];
      linear -= dims.sizes[i] * dims.linear[i];
      coordinates[i] = 0;
    }
    return false;
  }
};

void run_slice(const WalkDims& after, char* indexed, char* linear, const RowLoops& loops,
               const void* context) {
  const size_t rank = after.sizes.size();
  const int64_t n = after.sizes[rank - 1];
  const int64_t si = after.indexed[rank - 1], sl = after.linear[rank - 1];
  if (rank == 1) {
    loops.row(indexed, linear, n, si, sl, context);
    return;
  }
  Odometer rows(after, 1, 0);
  do {
    loops.row(indexed + rows.indexed, linear + rows.linear, n, si, sl, context);
  } while (rows.next());
}

// Positions [first, last) for one place of the outer dimensions.
void run_positions(const RowWalk& w, char* indexed, char* linear, int64_t first, int64_t last,
                   const RowLoops& loops, const void* context) {
  const int64_t* linear_offsets = w.linear_offsets ? w.linear_offsets + first : nullptr;
  if (w.after.sizes.empty()) {
    serial_for(first, last, 8, [&](int64_t b, int64_t e) {
      char* start = linear_offsets ? linear : linear + b * w.linear_stride;
      loops.points(indexed, w.offsets + b, start, linear_offsets ? w.linear_offsets + b : nullptr,
                   w.linear_stride, e - b, context);
    });
    return;
  }
  Steps steps;
  for (int64_t i = first; i < last; ++i) {
    steps.add(8 + w.after.numel);
    const int64_t offset = w.linear_offsets ? w.linear_offsets[i] : i * w.linear_stride;
    run_slice(w.after, indexed + w.offsets[i], linear + offset, loops, context);
  }
}

// Range [begin, end) of before x count.
void run_range(const RowWalk& w, char* indexed, char* linear, int64_t begin, int64_t end,
               const RowLoops& loops, const void* context) {
  if (w.before.sizes.empty()) {
    run_positions(w, indexed, linear, begin, end, loops, context);
    return;
  }
  Odometer outer(w.before, 0, begin / w.count);
  int64_t first = begin % w.count;
  while (begin < end) {
    const int64_t last = std::min(w.count, first + (end - begin));
    run_positions(w, indexed + outer.indexed, linear + outer.linear, first, last, loops, context);
    begin += last - first;
    first = 0;
    outer.next();
  }
}

// The positions whose offsets lie in [low, high), in order.
struct Part {
  std::vector<int64_t> offsets;
  std::vector<int64_t> linear;
};

void pick(const RowWalk& w, int64_t low, int64_t high, int parts, Part& part) {
  part.offsets.reserve(static_cast<size_t>(w.count / parts + w.count / (4 * parts)));
  part.linear.reserve(part.offsets.capacity());
  serial_for(0, w.count, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (w.offsets[i] < low || w.offsets[i] >= high) continue;
      part.offsets.push_back(w.offsets[i]);
      part.linear.push_back(w.linear_offsets ? w.linear_offsets[i] : i * w.linear_stride);
    }
  });
}

void run_by_destination(const RowWalk& w, char* indexed, char* linear, int parts,
                        const RowLoops& loops, const void* context) {
  const auto [low, high] = std::minmax_element(w.offsets, w.offsets + w.count);
  const int64_t first = *low, step = (*high - *low) / parts + 1;
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      Part part;
      pick(w, first + p * step, first + (p + 1) * step, parts, part);
      if (part.offsets.empty()) continue;
      RowWalk own = w;
      own.count = static_cast<int64_t>(part.offsets.size());
      own.offsets = part.offsets.data();
      own.linear_offsets = part.linear.data();
      run_range(own, indexed, linear, 0, own.before.numel * own.count, loops, context);
    }
  });
}

} // namespace

void run_independent(const RowWalk& w, char* indexed, char* linear, const RowLoops& loops,
                     const void* context) {
  const int64_t total = w.before.numel * w.count;
  if (total == 0 || w.after.numel == 0) return;
  const int64_t slice_bytes = w.after.numel * w.itemsize;
  // An indexed element costs about as much as moving this many bytes.
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(slice_bytes, 8));
  if (total <= grain) {
    run_range(w, indexed, linear, 0, total, loops, context);
    return;
  }
  const BlockingRegion region;
  parallel_for(0, total, grain, [&](int64_t begin, int64_t end) {
    run_range(w, indexed, linear, begin, end, loops, context);
  });
}

void run_ordered(const RowWalk& w, char* indexed, char* linear, const RowLoops& loops,
                 const void* context) {
  const int64_t total = w.before.numel * w.count;
  if (total == 0 || w.after.numel == 0) return;
  const int64_t slice_bytes = std::max<int64_t>(w.after.numel * w.itemsize, 8);
  const int threads = get_num_threads();
  if (!w.disjoint || threads == 1 || total * slice_bytes <= 2 * kGrainBytes || w.count == 1) {
    run_range(w, indexed, linear, 0, total, loops, context);
    return;
  }
  const BlockingRegion region;
  // Every part looks at all offsets, which for short slices costs as much as a quarter of the
  // writes.
  const bool worth_picking = slice_bytes >= 64 || threads >= 8;
  if (w.before.numel >= 4 * threads) {
    const int64_t grain = std::max<int64_t>(1, kGrainBytes / (w.count * slice_bytes));
    parallel_for(0, w.before.numel, grain, [&](int64_t begin, int64_t end) {
      run_range(w, indexed, linear, begin * w.count, end * w.count, loops, context);
    });
  } else if (worth_picking) {
    run_by_destination(w, indexed, linear, threads, loops, context);
  } else {
    run_range(w, indexed, linear, 0, total, loops, context);
  }
}

} // namespace at::native
