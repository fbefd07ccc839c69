// Chooses a path by shape and layout and spreads it over the pool: the smallest products on the
// stack, a few rows against a transposed matrix by inner products, everything else by packing what
// must be packed and computing tiles of C.
//
// Note [Order of a sum over k]: within a k block a sum runs step by step in one accumulator; blocks
// are added in order. Block boundaries are constants (kBlockSteps, of which kOuterSteps is a
// multiple) or follow from the shape (split_slices), so tile sizes, packing decisions and threads
// may be chosen freely without changing a bit.
#include <ATen/native/matmul/gemm/Driver.h>

#include <ATen/iter/CpuIsa.h>
#include <ATen/native/matmul/gemm/Scratch.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <cstring>

namespace at::native::gemm {
namespace {

constexpr int64_t kOuterSteps = 4 * kBlockSteps;
constexpr int64_t kPackBytes = int64_t{8} << 20; // largest packed part of A or B
// Below this many multiply-adds a second thread costs more than it brings.
constexpr int64_t kParallelWork = int64_t{1} << 20;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// m*n*k as a measure of work; a double cannot overflow.
double work_of(const Problem& p) {
  return static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

// ---- kernel tables ---------------------------------------------------------------------------

struct SetTable {
  const KernelSet* of[static_cast<int>(Elem::Count)];
  const KernelSet* bf16_dot; // nullptr where the machine has no such instruction
};

template <class Real, class Reduced, class Integer>
SetTable make_table(Real real, Reduced reduced, Integer integer) {
  SetTable table{};
  for (int i = 0; i < static_cast<int>(Elem::Count); ++i) {
    const Elem elem = static_cast<Elem>(i);
    const KernelSet* set = real(elem);
    set = set != nullptr ? set : reduced(elem);
    table.of[i] = set != nullptr ? set : integer(elem);
  }
  return table;
}

SetTable choose_table() {
#if defined(__x86_64__)
  if (cpu_isa() == Isa::Avx512) {
    SetTable table = make_table(avx512::real_set, avx512::reduced_set, avx512::integer_set);
    table.bf16_dot = cpu_has_avx512_bf16() ? avx512_bf16::bf16_dot_set() : nullptr;
    return table;
  }
  if (cpu_isa() == Isa::Avx2) {
    return make_table(avx2::real_set, avx2::reduced_set, avx2::integer_set);
  }
#endif
  return make_table(base::real_set, base::reduced_set, base::integer_set);
}

const KernelSet& kernel_set(Elem elem, const Problem& p) {
  static const SetTable table = choose_table();
  // The dot-product instruction pays for its pairwise packing where B is used often enough.
  if (elem == Elem::BF16 && table.bf16_dot != nullptr && p.m > kSkinnyRows && p.n > kSkinnyRows &&
      p.k > 16) {
    return *table.bf16_dot;
  }
  return *table.of[static_cast<int>(elem)];
}

Tile tile_of(const Problem& p) {
  Tile t{};
  t.m = p.m;
  t.n = p.n;
  t.c = p.c;
  t.c_rs = p.c_rs;
  t.c_cs = p.c_cs;
  t.alpha = p.alpha;
  t.beta = p.beta;
  t.beta_zero = p.beta_zero;
  t.beta_one = p.beta_one;
  t.bias = p.bias;
  t.first = true;
  t.last = true;
  return t;
}

bool a_in_place(const KernelSet& set, const Problem& p) {
  return set.a_in_place && (p.a.cs == 1 || p.k == 1) && p.k % set.k_per_step == 0;
}

// ---- nothing to add up, and the smallest products --------------------------------------------

// k == 0: C = beta * C + bias. Accumulators of zero give that for any finite alpha; alpha is
// replaced by zero so that an infinite one does as well.
void run_empty(const KernelSet& set, const Problem& p) {
  static const double zero[2] = {0, 0};
  const int64_t row = set.acc_row_bytes(p.n);
  Scratch acc(static_cast<size_t>(row));
  std::memset(acc.get(), 0, static_cast<size_t>(row));
  Tile t = tile_of(p);
  t.acc = acc.get();
  t.acc_row = 0; // every row reads the same zeros
  t.alpha = zero;
  set.finish(t);
}

constexpr int64_t kTinyA = 4096;
constexpr int64_t kTinyB = 8192;
constexpr int64_t kTinyAcc = 8192;

bool is_tiny(const KernelSet& set, const Problem& p) {
  return p.m <= 32 && p.n <= set.nr && p.k <= 64 &&
         set.panel_row_bytes(p.n) * set.steps(p.k) <= kTinyB &&
         set.steps(p.k) * set.a_step * p.m <= kTinyA && set.acc_row_bytes(p.n) * p.m <= kTinyAcc;
}

void run_tiny(const KernelSet& set, const Problem& p) {
  alignas(64) char a[kTinyA];
  alignas(64) char b[kTinyB];
  alignas(64) char acc[kTinyAcc];
  Tile t = tile_of(p);
  t.steps = set.steps(p.k);
  if (a_in_place(set, p)) {
    t.a = p.a.data;
    t.a_row = p.a.rs * set.elem_size;
  } else {
    t.a = a;
    t.a_row = t.steps * set.a_step;
    set.pack_a(p.m, p.k, p.a.data, p.a.rs, p.a.cs, a, t.a_row);
  }
  if (set.b_in_place && p.b.cs == 1 && p.b.rs != 0 && p.n % set.vl == 0) {
    t.b = p.b.data;
    t.b_step = p.b.rs * set.elem_size;
  } else {
    t.b = b;
    set.pack_b(p.k, p.n, p.b.data, p.b.rs, p.b.cs, b);
  }
  if (!(set.c_in_place && p.c_cs == 1)) {
    t.acc = acc;
    t.acc_row = set.acc_row_bytes(p.n);
  }
  set.tile(t);
}

// ---- few rows ----------------------------------------------------------------------------------

bool along_k(const Problem& p) { return (p.b.rs == 1 || p.k == 1) && (p.b.cs != 1 || p.n == 1); }

bool is_skinny(const KernelSet& set, const Problem& p) {
  return set.dot != nullptr && p.m <= kSkinnyRows && (along_k(p) || p.b.cs == 1);
}

// Into `acc` (rows of acc_row bytes) if given, else into C.
void run_skinny(const KernelSet& set, const Problem& p, char* acc, int64_t acc_row,
                Threads threads) {
  constexpr int64_t chunk = 1024; // columns whose accumulators fit the first-level cache
  const bool dot = along_k(p);
  const int64_t a_row = round_up(p.k, set.vl) * set.acc_size;
  Scratch packed(static_cast<size_t>(a_row * p.m));
  std::memset(packed.get(), 0, static_cast<size_t>(a_row * p.m));
  set.pack_a(p.m, p.k, p.a.data, p.a.rs, p.a.cs, packed.get(), a_row);
  const auto columns = [&](int64_t begin, int64_t end) {
    alignas(64) char local[kSkinnyRows * chunk * sizeof(double)];
    for (int64_t j = begin; j < end; j += chunk) {
      check_interrupt(); // expanded operands can be larger than memory
      SkinnyTile d{};
      d.m = p.m;
      d.n = std::min(chunk, end - j);
      d.k = p.k;
      d.a = packed.get();
      d.a_row = a_row;
      d.b = p.b.data + j * p.b.cs * set.elem_size;
      d.b_line = (dot ? p.b.cs : p.b.rs) * set.elem_size;
      d.acc = acc != nullptr ? acc + j * set.acc_size : local;
      d.acc_row = acc != nullptr ? acc_row : chunk * set.acc_size;
      (dot ? set.dot : set.rows)(d);
      if (acc == nullptr) {
        Tile t = tile_of(p);
        t.n = d.n;
        t.acc = local;
        t.acc_row = d.acc_row;
        t.c = p.c + j * p.c_cs * set.elem_size;
        t.bias = p.bias == nullptr ? nullptr : p.bias + j * set.elem_size;
        set.finish(t);
      }
    }
  };
  if (threads == Threads::Caller) {
    columns(0, p.n);
    return;
  }
  // Whole vectors, and enough work to be worth a thread.
  const int64_t grain = std::max<int64_t>(dot ? 16 : 256, (int64_t{1} << 17) / (p.k * p.m));
  parallel_for(0, p.n, round_up(grain, 64), columns);
}

// ---- packed products -------------------------------------------------------------------------

// One packed product: the decisions, and the part being worked on.
class Packed {
 public:
  // acc: accumulators for all of C that are left as they are, or nullptr to write C.
  Packed(const KernelSet& set, const Problem& p, char* acc, int64_t acc_row, Threads threads)
      : set_(set), p_(p), acc_(acc), acc_row_(acc_row), pool_(threads == Threads::Pool) {
    pack_a_ = !a_in_place(set, p);
    pack_b_ = !b_in_place();
    to_c_ = acc == nullptr;
    use_acc_ = !(to_c_ && set.c_in_place && p.c_cs == 1);
    outer_k_ = std::min(p.k, kOuterSteps * set.k_per_step / set.steps_per_k);
    const int64_t steps = set.steps(outer_k_);
    const int64_t panel_row = set.panel_row_bytes(set.nr);
    outer_n_ = pack_b_ ? std::max<int64_t>(1, kPackBytes / (steps * panel_row)) * set.nr : p.n;
    outer_n_ = std::min(outer_n_, p.n);
    // An odd number of cache lines, so that rows do not fall on the same cache sets.
    a_row_ = pack_a_ ? (round_up(steps * set.a_step, 64) | 64) : p.a.rs * set.elem_size;
    outer_m_ = p.m;
    if (pack_a_) {
      outer_m_ = std::min(outer_m_, std::max<int64_t>(kPackBytes / a_row_, 4 * set.mr));
    }
    // Accumulators that outlive a tile: only where k has several outer blocks.
    keep_acc_ = to_c_ && use_acc_ && outer_k_ < p.k;
    if (keep_acc_) {
      outer_n_ = std::min<int64_t>(outer_n_, 8 * set.nr);
      outer_m_ = std::min<int64_t>(outer_m_, 1536);
    }
  }

  void run() {
    Scratch a(pack_a_ ? static_cast<size_t>(outer_m_ * a_row_) : 0);
    Scratch b(static_cast<size_t>(b_bytes()));
    const int64_t kept_row = set_.acc_row_bytes(outer_n_);
    Scratch kept(keep_acc_ ? static_cast<size_t>(outer_m_ * kept_row) : 0);
    a_packed_ = a.get();
    b_packed_ = b.get();
    for (j0_ = 0; j0_ < p_.n; j0_ += outer_n_) {
      n_ = std::min(outer_n_, p_.n - j0_);
      for (i0_ = 0; i0_ < p_.m; i0_ += outer_m_) {
        m_ = std::min(outer_m_, p_.m - i0_);
        for (k0_ = 0; k0_ < p_.k; k0_ += outer_k_) {
          k_ = std::min(outer_k_, p_.k - k0_);
          pack_operands();
          tiles(kept.get(), kept_row);
        }
      }
    }
  }

 private:
  // B where it lies, if rows are contiguous and are not read often enough to repay packing, or
  // all of it stays close anyway, or rows are as narrow as panels. Wide rows of a large matrix
  // fall on the same cache sets: there a copy is faster. A step of 0 between rows (an expanded B)
  // says "packed" to the tiles, so such a B is packed.
  bool b_in_place() const {
    if (!set_.b_in_place || (p_.b.cs != 1 && p_.n != 1) || p_.b.rs == 0) {
      return false;
    }
    const int64_t row = p_.b.rs * set_.elem_size;
    return p_.m <= 4 * set_.mr || p_.k * p_.n * set_.elem_size <= (int64_t{256} << 10) ||
           (row >= 0 && row <= 512);
  }

  bool has_edge() const { return !pack_b_ && p_.n % set_.vl != 0; }
  int64_t edge_begin() const { return (p_.n - 1) / set_.nr * set_.nr; }

  int64_t b_bytes() const {
    const int64_t panel = set_.steps(outer_k_) * set_.panel_row_bytes(set_.nr);
    return pack_b_ ? ceil_div(outer_n_, set_.nr) * panel : (has_edge() ? panel : 0);
  }
  int64_t panel_bytes() const { return set_.steps(outer_k_) * set_.panel_row_bytes(set_.nr); }

  template <class F> void for_each(int64_t count, int64_t grain, const F& f) const {
    if (pool_) {
      parallel_for(0, count, grain, f);
    } else {
      f(0, count);
    }
  }

  const char* a_at(int64_t i, int64_t k) const {
    return p_.a.data + (i * p_.a.rs + k * p_.a.cs) * set_.elem_size;
  }
  const char* b_at(int64_t k, int64_t j) const {
    return p_.b.data + (k * p_.b.rs + j * p_.b.cs) * set_.elem_size;
  }

  void pack_panel(int64_t column, int64_t columns, char* dst) const {
    set_.pack_b(k_, columns, b_at(k0_, column), p_.b.rs, p_.b.cs, dst);
  }

  // A and B in one region, so that threads meet once.
  void pack_operands() {
    constexpr int64_t rows = 64;
    const bool b_stays = i0_ > 0 && outer_k_ >= p_.k;
    const int64_t b_tasks = pack_b_ && !b_stays ? ceil_div(n_, set_.nr) : 0;
    const int64_t a_tasks = pack_a_ ? ceil_div(m_, rows) : 0;
    if (has_edge() && !b_stays) {
      pack_panel(edge_begin(), p_.n - edge_begin(), b_packed_);
    }
    const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 15) / (k_ * set_.nr));
    for_each(b_tasks + a_tasks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        check_interrupt();
        if (t < b_tasks) {
          const int64_t j = t * set_.nr;
          pack_panel(j0_ + j, std::min<int64_t>(set_.nr, n_ - j), b_packed_ + t * panel_bytes());
        } else {
          const int64_t i = (t - b_tasks) * rows;
          set_.pack_a(std::min(rows, m_ - i), k_, a_at(i0_ + i, k0_), p_.a.rs, p_.a.cs,
                      a_packed_ + i * a_row_, a_row_);
        }
      }
    });
  }

  // Large tiles reuse B best; halve them until every thread has a few.
  void choose_tile(int64_t* tile_m, int64_t* tile_n) const {
    int64_t tm = std::min<int64_t>(round_up(m_, set_.mr), 32 * set_.mr);
    int64_t tn = std::min<int64_t>(round_up(n_, set_.nr), 4 * set_.nr);
    const int64_t wanted = pool_ ? 4 * int64_t{get_num_threads()} : 1;
    while (ceil_div(m_, tm) * ceil_div(n_, tn) < wanted) {
      if (tm > 4 * set_.mr) {
        tm = round_up(tm / 2, set_.mr);
      } else if (tn > set_.nr) {
        tn = round_up(tn / 2, set_.nr);
      } else {
        break;
      }
    }
    *tile_m = round_up(ceil_div(m_, ceil_div(m_, tm)), set_.mr);
    *tile_n = tn;
  }

  void tiles(char* kept, int64_t kept_row) const {
    int64_t tm = 0;
    int64_t tn = 0;
    choose_tile(&tm, &tn);
    const int64_t down = ceil_div(m_, tm);
    const int64_t across = ceil_div(n_, tn);
    for_each(down * across, 1, [&](int64_t begin, int64_t end) {
      const int64_t local_row = set_.acc_row_bytes(tn);
      const bool local = to_c_ && use_acc_ && !keep_acc_;
      Scratch acc(local ? static_cast<size_t>(tm * local_row) : 0);
      for (int64_t t = begin; t < end; ++t) {
        check_interrupt();
        const int64_t i = t % down * tm;
        const int64_t j = t / down * tn;
        Tile tile = part(i, j, std::min(tm, m_ - i), std::min(tn, n_ - j));
        if (local) {
          tile.acc = acc.get();
          tile.acc_row = local_row;
        } else if (keep_acc_) {
          tile.acc = kept + i * kept_row + j * set_.acc_size;
          tile.acc_row = kept_row;
        }
        set_.tile(tile);
      }
    });
  }

  // The tile at (i, j) of the current part, accumulators apart.
  Tile part(int64_t i, int64_t j, int64_t m, int64_t n) const {
    Tile t = tile_of(p_);
    t.m = m;
    t.n = n;
    t.steps = set_.steps(k_);
    t.a_row = a_row_;
    t.a = pack_a_ ? a_packed_ + i * a_row_ : a_at(i0_ + i, k0_);
    if (pack_b_) {
      t.b = b_packed_ + j / set_.nr * panel_bytes();
      t.b_panel = panel_bytes();
    } else {
      t.b = b_at(k0_, j0_ + j);
      t.b_step = p_.b.rs * set_.elem_size;
      t.b_edge = has_edge() && j0_ + j + n > edge_begin() ? b_packed_ : nullptr;
    }
    const int64_t row = i0_ + i;
    const int64_t column = j0_ + j;
    if (to_c_) {
      t.c = p_.c + (row * p_.c_rs + column * p_.c_cs) * set_.elem_size;
      t.bias = p_.bias == nullptr ? nullptr : p_.bias + column * set_.elem_size;
    } else {
      t.acc = acc_ + row * acc_row_ + column * set_.acc_size;
      t.acc_row = acc_row_;
    }
    t.first = k0_ == 0;
    t.last = to_c_ && k0_ + k_ == p_.k;
    return t;
  }

  const KernelSet& set_;
  const Problem& p_;
  char* acc_;
  int64_t acc_row_;
  bool pool_;
  bool pack_a_, pack_b_, to_c_, use_acc_, keep_acc_;
  int64_t outer_m_, outer_n_, outer_k_, a_row_;
  char* a_packed_ = nullptr;
  char* b_packed_ = nullptr;
  int64_t i0_ = 0, j0_ = 0, k0_ = 0, m_ = 0, n_ = 0, k_ = 0;
};

void run_plain(const KernelSet& set, const Problem& p, char* acc, int64_t acc_row,
               Threads threads) {
  if (is_skinny(set, p)) {
    run_skinny(set, p, acc, acc_row, threads);
  } else {
    Packed(set, p, acc, acc_row, threads).run();
  }
}

// ---- long k, small C: slices of k with their own accumulators ----------------------------------

// By shape alone; 1 means no slicing. Without it a gradient of a small weight over a large batch
// would run on one thread.
int64_t split_slices(const Problem& p) {
  constexpr int64_t shortest = 4096;
  if (p.k < 2 * shortest || static_cast<double>(p.m) * static_cast<double>(p.n) > 128.0 * 128.0) {
    return 1;
  }
  return std::min<int64_t>(32, p.k / shortest);
}

void run_split(const KernelSet& set, const Problem& p, int64_t slices, Threads threads) {
  const int64_t row = set.acc_row_bytes(p.n);
  const int64_t bytes = round_up(row * p.m, 64);
  const int64_t length = round_up(ceil_div(p.k, slices), 64);
  Scratch acc(static_cast<size_t>(bytes * slices));
  std::memset(acc.get(), 0, static_cast<size_t>(bytes * slices));
  const auto slice = [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end && s * length < p.k; ++s) {
      Problem q = p;
      q.k = std::min(length, p.k - s * length);
      q.a.data += s * length * p.a.cs * set.elem_size;
      q.b.data += s * length * p.b.rs * set.elem_size;
      run_plain(set, q, acc.get() + s * bytes, row, Threads::Caller);
    }
  };
  if (threads == Threads::Pool) {
    parallel_for(0, slices, 1, slice);
  } else {
    slice(0, slices);
  }
  for (int64_t s = 1; s < slices; ++s) {
    set.add(acc.get(), acc.get() + s * bytes, bytes);
  }
  Tile t = tile_of(p);
  t.acc = acc.get();
  t.acc_row = row;
  set.finish(t);
}

// C^T = B^T A^T where that makes C's rows contiguous, or turns few columns into few rows.
Problem oriented(const KernelSet& set, const Problem& p) {
  const bool by_columns = p.c_rs == 1 && p.c_cs != 1 && p.n > 1;
  const bool narrow = set.dot != nullptr && p.n <= kSkinnyRows && p.m > p.n;
  if (p.bias != nullptr || !(by_columns || narrow)) {
    return p;
  }
  Problem q = p;
  std::swap(q.m, q.n);
  q.a = {p.b.data, p.b.cs, p.b.rs};
  q.b = {p.a.data, p.a.cs, p.a.rs};
  std::swap(q.c_rs, q.c_cs);
  return q;
}

} // namespace

void run(Elem elem, const Problem& given, Threads threads) {
  if (given.m <= 0 || given.n <= 0) {
    return;
  }
  const KernelSet& set = kernel_set(elem, given);
  if (given.k <= 0) {
    run_empty(set, given);
    return;
  }
  if (is_tiny(set, given)) {
    run_tiny(set, given);
    return;
  }
  const Problem p = oriented(set, given);
  if (threads == Threads::Pool && (work_of(p) < static_cast<double>(kParallelWork))) {
    threads = Threads::Caller;
  }
  const int64_t slices = split_slices(p);
  if (slices > 1) {
    run_split(set, p, slices, threads);
  } else {
    run_plain(set, p, nullptr, 0, threads);
  }
}

void run_batched(Elem elem, const Problem& p, const Batch& batch) {
  if (batch.count <= 0 || p.m <= 0 || p.n <= 0) {
    return;
  }
  // One matrix B for all: its rows are those of one tall product.
  if (batch.count > 1 && batch.b == 0 && batch.a == p.m * p.a.rs && batch.c == p.m * p.c_rs) {
    Problem tall = p;
    tall.m = p.m * batch.count;
    run(elem, tall, Threads::Pool);
    return;
  }
  const int64_t size = kernel_set(elem, p).elem_size;
  const auto matrices = [&](int64_t begin, int64_t end, Threads threads) {
    for (int64_t x = begin; x < end; ++x) {
      if ((x & 63) == 63) check_interrupt();
      Problem q = p;
      q.a.data += x * batch.a * size;
      q.b.data += x * batch.b * size;
      q.c += x * batch.c * size;
      run(elem, q, threads);
    }
  };
  const double work = work_of(p);
  if (work >= static_cast<double>(kParallelWork) * 16 && batch.count < 4 * get_num_threads()) {
    matrices(0, batch.count, Threads::Pool);
    return;
  }
  const double per_chunk = static_cast<double>(kParallelWork) / 4;
  const int64_t grain = static_cast<int64_t>(std::max(1.0, per_chunk / std::max(work, 1.0)));
  parallel_for(0, batch.count, grain,
               [&](int64_t begin, int64_t end) { matrices(begin, end, Threads::Caller); });
}

} // namespace at::native::gemm
