// Chains: steps whose rows know nothing of each other (loops over elements, reductions of rows,
// softmax, norms) are run one after the other on a few rows at a time. What lies between them stays
// in the cache and gets no memory of its own, and threads meet once for all of them.
//
// Rows are stretches of memory: a buffer that a chain makes is dense, and each of its parts reads
// of it only the rows that it computes.
#include <torch/csrc/inductor/ir.h>

#include <algorithm>
#include <map>
#include <memory>

#include <ATen/iter/TensorIterator.h>
#include <ATen/parallel/Parallel.h>

namespace torch::inductor {
namespace {

using PK = Place::Kind;
using StepKind = Step::Kind;

constexpr size_t kMostParts = 16;
// Scratch of a chain: it should stay in the second-level cache with what is read and written.
constexpr int64_t kScratchBytes = 96 * 1024, kMostRowBytes = 256 * 1024;
// With fewer rows than this, long ones are better shared between threads part by part.
constexpr int64_t kEnoughRows = 32, kFewElements = 65536;
// What a row of a kernel or of a reduction costs, in loops over its elements.
constexpr int64_t kCallCost = 12, kReduceCost = 2;

struct Access {
  int32_t buffer = -1;
  SymInt row_bytes = 0; // 0: not row by row
  bool is_write = false;
  bool is_dense = false; // rows fill the memory from the first byte on
  size_t part = 0;       // of the chain
};

// Bytes from one row to the next where rows of `length` elements are read row by row, else 0.
SymInt row_step(const RowAccess& access, SymInt length, SymInt rows, int64_t size) {
  const auto size_of = [&](size_t d) { return SymInt::from_raw(access.dims[d].size); };
  const auto stride_of = [&](size_t d) { return SymInt::from_raw(access.dims[d].stride); };
  SymInt inner = 1, reach = size;
  size_t d = 0;
  for (; d < access.dims.size() && !same(inner, length); ++d) {
    inner *= size_of(d);
    if (stride_of(d) < 0) return 0;
    reach += (size_of(d) - 1) * stride_of(d);
  }
  if (!same(inner, length) || d + 1 != access.dims.size() || !same(size_of(d), rows)) return 0;
  return reach <= stride_of(d) ? stride_of(d) : SymInt(0);
}

class Chains {
 public:
  explicit Chains(Plan& plan) : plan_(plan) {}

  void run() {
    std::vector<Step> made;
    for (size_t i = 0; i < plan_.steps.size();) {
      SymInt rows = 0;
      const size_t end = extent(i, rows);
      if (end < i + 2) {
        made.push_back(std::move(plan_.steps[i++]));
        continue;
      }
      made.push_back(merged(i, end, rows));
      i = end;
    }
    plan_.steps = std::move(made);
  }

 private:
  const View& view(int32_t v) const { return plan_.views[static_cast<size_t>(v)]; }
  static SymInt numel(const View& v) {
    SymInt n = 1;
    for (const int64_t size : v.sizes) n *= SymInt::from_raw(size);
    return n;
  }
  static SymInt numel(const Step& step) { return SymInt::from_raw(step.numel); }

  // ---- which steps
  // The rows that a step asks for; 0: any, -1: it has none.
  SymInt own_rows(const Step& step) const {
    if (step.kind == StepKind::Fused) return numel(step) > 1 ? 0 : -1;
    if (step.kind == StepKind::Call)
      return step.row.kernel.run ? SymInt::from_raw(step.row.count) : SymInt(-1);
    if (step.kind != StepKind::Reduce || !step.elements.is_contiguous()) return -1;
    SymInt length = 1, rows = 1;
    for (int64_t d = 0; d < step.elements.dim(); ++d) {
      const SymInt size = step.elements.sym_sizes()[d];
      if (step.mask >> d & 1)
        length *= size;
      else if (length > 1 && size > 1)
        return -1; // a reduced dimension outside of a kept one
      else
        rows *= size;
    }
    return at::native::reduce::can_reduce_rows(*step.reduction.kernel, length) ? rows : SymInt(-1);
  }

  void program_accesses(const Step& step, SymInt length, SymInt rows,
                        std::vector<Access>& found) const {
    for (const TileStep& tile : step.program.steps) {
      for (int k = 0; k < tile.inputs; ++k) {
        const Place& p = tile.in[static_cast<size_t>(k)];
        if (p.kind != PK::Memory && p.kind != PK::Lone && p.kind != PK::Rows) continue;
        const Pointer& pointer = step.pointers[static_cast<size_t>(p.index)];
        if (pointer.buffer < 0) continue;
        const bool is_dense = pointer.offset == 0 && p.kind == PK::Memory;
        SymInt bytes = is_dense ? length * p.size : SymInt(0);
        if (pointer.offset == 0 && p.kind == PK::Rows)
          bytes = row_step(step.program.rows[static_cast<size_t>(p.rows)], length, rows, p.size);
        found.push_back({pointer.buffer, bytes, false, is_dense});
      }
    }
  }

  // What a step reads and writes as a part of a chain of so many rows; false where it cannot be.
  bool accesses(const Step& step, SymInt rows, std::vector<Access>& found) const {
    const SymInt own = own_rows(step);
    if (!same(own, rows) && (!same(own, 0) || !same(numel(step) % rows, 0))) return false;
    const auto write = [&](int32_t v) {
      const SymInt bytes = numel(view(v)) * static_cast<int64_t>(c10::elementSize(view(v).dtype));
      found.push_back({view(v).buffer, bytes / rows, true, true});
    };
    if (step.kind == StepKind::Call) {
      const RowForm& row = step.row;
      for (size_t k = 0; k < row.in.size(); ++k) {
        if (row.in[k] < 0) continue;
        const bool by_row = static_cast<int32_t>(k) < row.by_row;
        const int64_t size = c10::elementSize(view(row.in[k]).dtype);
        const SymInt bytes = SymInt::from_raw(row.kernel.length) * size;
        found.push_back({view(row.in[k]).buffer, by_row ? bytes : SymInt(0), false, by_row});
      }
      for (const int32_t v : row.out) write(v);
      return true;
    }
    const SymInt length = elements_of(step) / rows;
    if (step.program.steps.empty())
      found.push_back({step.pointers[0].buffer, length * step.element_size, false, true});
    else
      program_accesses(step, length, rows, found);
    for (const FusedOutput& out : step.outputs) write(out.view);
    return true;
  }

  static SymInt elements_of(const Step& step) {
    return step.kind == StepKind::Reduce ? step.elements.sym_numel() : numel(step);
  }

  using RowBytes = std::map<int32_t, SymInt>; // by buffer

  bool is_connected(const Step& step, const RowBytes& made) const {
    if (step.kind == StepKind::Call) {
      for (const int32_t v : step.row.in)
        if (v >= 0 && made.count(view(v).buffer)) return true;
      return false;
    }
    for (const Pointer& pointer : step.pointers)
      if (made.count(pointer.buffer)) return true;
    return false;
  }
  void add_made(const Step& step, RowBytes& made) const {
    if (step.kind == StepKind::Call)
      for (const int32_t v : step.row.out) made[view(v).buffer] = 0;
    for (const FusedOutput& out : step.outputs) made[view(out.view).buffer] = 0;
  }

  // The rows that the first step after `i` with rows of its own has.
  SymInt rows_from(size_t i) const {
    RowBytes made;
    for (size_t k = i; k < plan_.steps.size() && k < i + kMostParts; ++k) {
      const Step& step = plan_.steps[k];
      const SymInt own = own_rows(step);
      if (!same(own, 0)) return own;
      if (k > i && !is_connected(step, made)) return -1;
      add_made(step, made);
    }
    return -1;
  }

  // The end of the chain that begins with step `i`.
  size_t extent(size_t i, SymInt& rows) {
    rows = rows_from(i);
    if (rows < 2) return i;
    RowBytes made;
    int64_t bytes = 0, longest = 0; // as they are now: whether a chain is worth it
    size_t k = i;
    for (; k < plan_.steps.size() && k < i + kMostParts; ++k) {
      const Step& step = plan_.steps[k];
      std::vector<Access> found;
      if ((k > i && !is_connected(step, made)) || !accesses(step, rows, found)) break;
      bool fits = true;
      int64_t more = 0;
      for (const Access& access : found) {
        if (access.is_write) more += hinted(access.row_bytes);
        const auto known = made.find(access.buffer);
        if (!access.is_write && known != made.end())
          fits = fits && same(known->second, access.row_bytes);
      }
      if (!fits || bytes + more > kMostRowBytes) break;
      bytes += more;
      for (const Access& access : found) {
        if (!access.is_write) continue;
        made[access.buffer] = access.row_bytes;
        longest = std::max(longest, hinted(access.row_bytes));
      }
    }
    const int64_t now = hinted(rows);
    return now < kEnoughRows && now * longest > 4 * kFewElements ? i : k;
  }

  // ---- making one
  struct Making {
    Chain* chain;
    RowBytes row_bytes;              // of buffers that the chain makes
    std::map<int32_t, int32_t> slot; // of those that nobody sees
    std::vector<SymInt> slot_bytes;  // per row
    std::vector<bool> read;          // by slot
  };

  Step merged(size_t begin, size_t end, SymInt rows) {
    Step step;
    step.kind = StepKind::Chain;
    step.chain = std::make_shared<Chain>();
    step.chain->rows = rows.raw();
    step.name = "rows";
    Making making{step.chain.get(), {}, {}, {}, {}};
    std::vector<Access> found;
    std::vector<int32_t> frees;
    for (size_t k = begin; k < end; ++k) {
      const size_t before = found.size();
      accesses(plan_.steps[k], rows, found);
      for (size_t i = before; i < found.size(); ++i) found[i].part = k - begin;
      frees.insert(frees.end(), plan_.steps[k].frees.begin(), plan_.steps[k].frees.end());
    }
    for (const Access& access : found)
      if (access.is_write) making.row_bytes[access.buffer] = access.row_bytes;
    for (const int32_t b : frees) {
      if (making.row_bytes.count(b))
        making.slot[b] = -1; // given below
      else
        step.frees.push_back(b);
    }
    keep_donors(begin, end, found, making);
    give_slots(begin, end, making);
    SymInt cost = 0;
    for (size_t k = begin; k < end; ++k) {
      Step& part = plan_.steps[k];
      step.name += "_" + part.name;
      add_part(part, rows, making, step);
      const ChainPart& last = step.chain->parts.back();
      const auto loops = static_cast<int64_t>(last.program.steps.size());
      cost += SymInt::from_raw(last.length) * (last.kind == ChainPart::Kind::Call ? kCallCost
                                               : last.kind == ChainPart::Kind::Reduce
                                                   ? kReduceCost + loops
                                                   : loops);
    }
    lend(found, step);
    finish(making, found, cost, step);
    return step;
  }

  // A result may also take memory that dies in the chain when no part reads it any more: a block of
  // rows is written after all of its reads, and other blocks lie elsewhere.
  void lend(const std::vector<Access>& found, Step& step) const {
    const std::vector<int32_t>& spare = step.frees;
    const auto is_taken = [&](int32_t b) {
      return std::any_of(step.outputs.begin(), step.outputs.end(),
                         [&](const FusedOutput& out) { return out.donor == b; });
    };
    for (FusedOutput& out : step.outputs) {
      if (out.donor >= 0) continue;
      const int32_t made = view(out.view).buffer;
      const auto written = std::find_if(found.begin(), found.end(), [&](const Access& access) {
        return access.is_write && access.buffer == made;
      });
      const auto fits = [&](int32_t b) {
        if (plan_.outer[static_cast<size_t>(b)] || is_taken(b)) return false;
        return std::all_of(found.begin(), found.end(), [&](const Access& access) {
          return access.buffer != b || (access.is_dense && access.part < written->part &&
                                        same(access.row_bytes, written->row_bytes));
        });
      };
      const auto donor = std::find_if(spare.begin(), spare.end(), fits);
      if (donor != spare.end()) out.donor = *donor;
    }
  }

  // A result may take memory from outside only if all of the chain reads that row by row.
  void keep_donors(size_t begin, size_t end, const std::vector<Access>& found, Making& making) {
    for (size_t k = begin; k < end; ++k) {
      for (FusedOutput& out : plan_.steps[k].outputs) {
        const SymInt bytes = making.row_bytes.at(view(out.view).buffer);
        const bool hidden = making.slot.count(view(out.view).buffer) > 0;
        bool keep = out.donor >= 0 && hidden == (making.row_bytes.count(out.donor) > 0);
        for (const Access& access : found)
          if (access.buffer == out.donor && !same(access.row_bytes, bytes)) keep = false;
        if (!keep) out.donor = -1;
      }
    }
  }
  void give_slots(size_t begin, size_t end, Making& making) {
    const auto give = [&](int32_t buffer, int32_t donor) {
      const auto found = making.slot.find(buffer);
      if (found == making.slot.end()) return;
      const auto lent = making.slot.find(donor);
      if (lent != making.slot.end()) {
        found->second = lent->second;
        return;
      }
      found->second = new_slot(making, making.row_bytes.at(buffer));
    };
    for (size_t k = begin; k < end; ++k) {
      const Step& step = plan_.steps[k];
      if (step.kind == StepKind::Call)
        for (const int32_t v : step.row.out) give(view(v).buffer, -1);
      for (const FusedOutput& out : step.outputs) give(view(out.view).buffer, out.donor);
    }
  }
  static int32_t new_slot(Making& making, SymInt bytes) {
    making.slot_bytes.push_back(bytes);
    making.read.push_back(false);
    return static_cast<int32_t>(making.slot_bytes.size()) - 1;
  }

  ChainPointer pointer_to(Making& making, int32_t buffer, int64_t offset, SymInt row_bytes,
                          bool is_read) {
    ChainPointer p;
    p.buffer = buffer;
    p.offset = offset;
    p.row_bytes = row_bytes.raw();
    const auto slot = making.slot.find(buffer);
    if (slot == making.slot.end()) return p;
    p.slot = slot->second;
    p.row_bytes = making.row_bytes.at(buffer).raw();
    if (is_read) making.read[static_cast<size_t>(p.slot)] = true;
    return p;
  }

  void add_part(Step& step, SymInt rows, Making& making, Step& whole) {
    ChainPart part;
    if (step.kind == StepKind::Call) {
      part.kind = ChainPart::Kind::Call;
      part.kernel = step.row.kernel;
      part.length = step.row.kernel.length;
      part.arguments = step.row.in.size();
      for (size_t k = 0; k < step.row.in.size(); ++k) {
        const int32_t v = step.row.in[k];
        if (v < 0) {
          part.pointers.emplace_back();
          continue;
        }
        const bool by_row = static_cast<int32_t>(k) < step.row.by_row;
        const int64_t size = c10::elementSize(view(v).dtype);
        const SymInt offset = SymInt::from_raw(view(v).offset) * size;
        const SymInt bytes = SymInt::from_raw(part.length) * size;
        part.pointers.push_back(
            pointer_to(making, view(v).buffer, offset.raw(), by_row ? bytes : SymInt(0), true));
      }
      for (const int32_t v : step.row.out) {
        const int32_t b = view(v).buffer;
        part.pointers.push_back(pointer_to(making, b, 0, making.row_bytes.at(b), false));
        if (!making.slot.count(b)) whole.outputs.push_back({v, -1});
      }
      whole.chain->parts.push_back(std::move(part));
      return;
    }
    const bool reduces = step.kind == StepKind::Reduce;
    part.kind = reduces ? ChainPart::Kind::Reduce : ChainPart::Kind::Fused;
    const SymInt length = elements_of(step) / rows;
    part.length = length.raw();
    for (const FusedOutput& out : step.outputs)
      if (!making.slot.count(view(out.view).buffer)) whole.outputs.push_back(out);
    for (const Pointer& pointer : step.pointers) {
      if (pointer.buffer >= 0)
        part.pointers.push_back(pointer_to(making, pointer.buffer, pointer.offset, 0, true));
    }
    if (reduces) {
      const View& result = view(step.outputs[0].view);
      part.reduction = step.reduction;
      part.result_dtype = result.dtype;
      part.result = pointer_to(making, result.buffer, 0, making.row_bytes.at(result.buffer), false);
      const SymInt bytes = length * step.element_size;
      if (step.program.steps.empty()) {
        part.elements = part.pointers[0];
        part.elements.row_bytes = bytes.raw();
      } else {
        part.elements.slot = new_slot(making, bytes);
        part.elements.row_bytes = bytes.raw();
        making.read[static_cast<size_t>(part.elements.slot)] = true;
        part.pointers.push_back(part.elements); // the last, as the program has it
      }
    }
    part.program = std::move(step.program);
    whole.chain->parts.push_back(std::move(part));
  }

  void finish(Making& making, const std::vector<Access>& found, SymInt cost, Step& step) {
    Chain& chain = *making.chain;
    SymInt bytes = 0;
    for (const SymInt b : making.slot_bytes) bytes += b;
    const SymInt block = smaller(larger(SymInt(kScratchBytes) / larger(bytes, 1), 1), 64);
    chain.block = block.raw();
    chain.grain = larger(SymInt(at::TensorIterator::kGrain) / larger(cost, 1), 1).raw();
    SymInt place = 0;
    for (const SymInt b : making.slot_bytes) {
      chain.slots.push_back(place.raw());
      place += (b * block + 127) / 64 * 64;
    }
    chain.slots.push_back(place.raw());
    // Results of kernels that nobody looks at, such as the statistics of a norm.
    for (ChainPart& part : chain.parts) {
      if (part.kind != ChainPart::Kind::Call) continue;
      for (size_t k = part.arguments + 1; k < part.pointers.size(); ++k) {
        ChainPointer& p = part.pointers[k];
        p.wanted = p.slot < 0 || making.read[static_cast<size_t>(p.slot)];
      }
    }
    std::map<int32_t, bool> outside;
    for (const Access& access : found)
      if (!making.slot.count(access.buffer)) outside[access.buffer] = true;
    for (const auto& [buffer, unused] : outside) step.pointers.push_back({buffer, 0});
    for (const Access& access : found) {
      const auto hidden = making.slot.find(access.buffer);
      if (hidden == making.slot.end() || same(access.row_bytes, 0)) continue;
      int64_t& count = access.is_write ? plan_.bytes_written : plan_.bytes_read;
      count = (SymInt::from_raw(count) - access.row_bytes * SymInt::from_raw(chain.rows)).raw();
    }
  }

  Plan& plan_;
};

// Scratch of a thread, kept for its next chain.
char* chain_scratch(int64_t bytes) {
  struct Kept {
    std::unique_ptr<char[]> memory;
    int64_t size = 0;
  };
  static thread_local Kept kept;
  if (kept.size < bytes) {
    kept.memory.reset(new char[static_cast<size_t>(bytes) + 64]);
    kept.size = bytes;
  }
  char* base = kept.memory.get();
  return base + (64 - reinterpret_cast<uintptr_t>(base) % 64) % 64;
}

// The rows [begin, end) of a chain.
class Rows {
 public:
  Rows(const Chain& chain, const std::vector<char*>& addresses)
      : chain_(chain), addresses_(addresses), scratch_(chain_scratch(chain.slots.back())) {}

  void run(int64_t begin, int64_t end) {
    for (const ChainPart& part : chain_.parts) {
      if (part.kind == ChainPart::Kind::Call) {
        call(part, begin, end);
        continue;
      }
      if (!part.program.steps.empty()) {
        c10::SmallVector<char*, 16> where;
        for (const ChainPointer& p : part.pointers) where.push_back(first(p, begin));
        part.program.run(where.data(), begin * part.length, end * part.length);
      }
      if (part.kind != ChainPart::Kind::Reduce) continue;
      at::native::reduce::reduce_rows(part.reduction, here(part.elements, begin), end - begin,
                                      part.length, here(part.result, begin), part.result_dtype);
    }
  }

 private:
  char* memory(const ChainPointer& p) const {
    if (p.slot >= 0) return scratch_ + chain_.slots[static_cast<size_t>(p.slot)];
    return p.buffer < 0 ? nullptr : addresses_[static_cast<size_t>(p.buffer)] + p.offset;
  }
  // Where the first row of all would be.
  char* first(const ChainPointer& p, int64_t begin) const {
    return p.slot >= 0 ? memory(p) - begin * p.row_bytes : memory(p);
  }
  // Where row `begin` is.
  char* here(const ChainPointer& p, int64_t begin) const {
    char* base = memory(p);
    return p.slot >= 0 || !base ? base : base + begin * p.row_bytes;
  }
  void call(const ChainPart& part, int64_t begin, int64_t end) const {
    const char* in[4] = {};
    char* out[4] = {};
    for (size_t k = 0; k < part.pointers.size(); ++k) {
      const ChainPointer& p = part.pointers[k];
      if (k < part.arguments)
        in[k] = here(p, begin);
      else if (p.wanted)
        out[k - part.arguments] = here(p, begin);
    }
    part.kernel.run(part.kernel, in, out, end - begin);
  }

  const Chain& chain_;
  const std::vector<char*>& addresses_;
  char* scratch_;
};

} // namespace

void Chain::run(const std::vector<char*>& addresses) const {
  const auto some = [&](int64_t begin, int64_t end) {
    Rows part(*this, addresses);
    for (int64_t r = begin; r < end; r += block) part.run(r, std::min(end, r + block));
  };
  if (rows <= grain) {
    some(0, rows);
    return;
  }
  at::BlockingRegion unlocked;
  at::parallel_for(0, rows, grain, some);
}

void build_chains(Plan& plan) { Chains(plan).run(); }

} // namespace torch::inductor
