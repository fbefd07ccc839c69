// See tile.h.
#include <torch/csrc/inductor/tile.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include <ATen/iter/Cast.h>
#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/Spread.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/parallel/Parallel.h>
#include <torch/csrc/inductor/tier.h>

namespace torch::inductor {
namespace {

// Scratch that a tile may fill: with its inputs and outputs it should stay in the first-level
// cache.
constexpr int64_t kScratchBytes = 24 * 1024;
constexpr int64_t kMinTile = 256, kMaxTile = 2048;
// Rows from this length on are passed to loops as they lie; shorter ones are copied together.
constexpr int64_t kLongRow = 128;
// A row of at most this length that repeats is copied behind itself.
constexpr int64_t kLongestPeriod = 2048;
// Elements a thread should have at least, if each were computed by one loop.
constexpr int64_t kLeastWork = 4096;

struct Wide {
  uint64_t a, b;
};

template <class U> void copy_run(char* to, const char* from, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(to + i * static_cast<int64_t>(sizeof(U)), from + i * stride, sizeof(U));
}

void copy_row(char* to, const char* from, int64_t stride, int64_t n, int size) {
  if (stride == size) {
    std::memcpy(to, from, static_cast<size_t>(n * size));
    return;
  }
  switch (size) {
  case 1:
    return copy_run<uint8_t>(to, from, stride, n);
  case 2:
    return copy_run<uint16_t>(to, from, stride, n);
  case 4:
    return copy_run<uint32_t>(to, from, stride, n);
  case 8:
    return copy_run<uint64_t>(to, from, stride, n);
  default:
    return copy_run<Wide>(to, from, stride, n);
  }
}

// The byte offset of an element, and how many elements follow in its innermost row.
int64_t locate(const RowAccess& rows, int64_t element, int64_t* left) {
  int64_t offset = 0;
  *left = rows.dims[0].size - element % rows.dims[0].size;
  for (const RowAccess::Dim& dim : rows.dims) {
    offset += element % dim.size * dim.stride;
    element /= dim.size;
  }
  return offset;
}

at::native::SpreadFn spread_function() {
  using namespace at::native;
  static const SpreadFn found = CRESSET_BY_ISA(, spread);
  return found;
}

// A place in an access that moves on row by row: one division per dimension where it begins, none
// afterwards.
class RowCursor {
 public:
  RowCursor(const RowAccess& rows, int64_t element) : rows_(rows), at_(rows.dims.size()) {
    for (size_t d = 0; d < at_.size(); ++d) {
      at_[d] = element % rows.dims[d].size;
      element /= rows.dims[d].size;
      offset_ += at_[d] * rows.dims[d].stride;
    }
  }
  int64_t offset() const { return offset_; }
  int64_t at(size_t d) const { return at_[d]; }
  // `n` steps in dimension `d`, at most to its end.
  void advance(size_t d, int64_t n) {
    at_[d] += n;
    offset_ += n * rows_.dims[d].stride;
    while (at_[d] == rows_.dims[d].size && d + 1 < at_.size()) {
      offset_ += rows_.dims[d + 1].stride - at_[d] * rows_.dims[d].stride;
      at_[d] = 0;
      ++at_[++d];
    }
  }

 private:
  const RowAccess& rows_;
  c10::SmallVector<int64_t, 4> at_;
  int64_t offset_ = 0;
};

// `to` has room for kSpreadSlack bytes more where an element is repeated.
void gather(const RowAccess& rows, const char* base, char* to, int size, int64_t begin,
            int64_t end) {
  const RowAccess::Dim inner = rows.dims[0];
  RowCursor cursor(rows, begin);
  while (begin < end) {
    int64_t n = std::min(inner.size - cursor.at(0), end - begin);
    const char* from = base + cursor.offset();
    if (inner.stride != 0) {
      copy_row(to, from, inner.stride, n, size);
      cursor.advance(0, n);
    } else if (cursor.at(0) == 0 && rows.dims.size() > 1 && end - begin >= inner.size) {
      const RowAccess::Dim outer = rows.dims[1];
      const int64_t many = std::min((end - begin) / inner.size, outer.size - cursor.at(1));
      spread_function()(to, inner.size, from, outer.stride, many, size);
      n = many * inner.size;
      cursor.advance(1, many);
    } else {
      spread_function()(to, n, from, 0, 1, size);
      cursor.advance(0, n);
    }
    to += n * size;
    begin += n;
  }
}

// Scratch of a thread, kept for its next kernel.
char* thread_scratch(size_t bytes) {
  struct Kept {
    std::unique_ptr<char[]> memory;
    size_t size = 0;
  };
  static thread_local Kept kept;
  if (kept.size < bytes) {
    kept.memory.reset(new char[bytes + 64]);
    kept.size = bytes;
  }
  char* base = kept.memory.get();
  return base + (64 - reinterpret_cast<uintptr_t>(base) % 64) % 64;
}

// One thread's pass over a range.
class Pass {
 public:
  Pass(const TileProgram& program, char* const* pointers, int64_t elements)
      : program_(program), pointers_(pointers) {
    width_ = program.tile * program.register_size + at::native::kSpreadSlack;
    longest_ = std::min(program.tile, elements);
    const int64_t lone = int64_t(16) * program.lone_registers;
    int64_t patterns = 0;
    direct_.resize(program.rows.size());
    for (size_t r = 0; r < direct_.size(); ++r) {
      const RowAccess& access = program.rows[r];
      direct_[r].pattern = nullptr;
      if (!access.is_periodic()) continue;
      direct_[r].place = patterns;
      patterns += (longest_ + access.dims[0].size) * program.register_size + 64;
    }
    function_ = program.tier ? program.tier->function() : nullptr;
    // A compiled kernel reads all rows at once: they share no registers.
    const int64_t apart = function_ ? width_ * static_cast<int64_t>(direct_.size()) : 0;
    scratch_ =
        thread_scratch(static_cast<size_t>(width_ * program.registers + lone + patterns + apart));
    lone_ = scratch_ + width_ * program.registers;
    patterns_ = lone_ + lone;
    apart_ = patterns_ + patterns;
  }

  void tile(int64_t begin, int64_t n) {
    if (C10_LIKELY(function_ == nullptr))
      loops(begin, n);
    else if (!program_.tier->is_trusted())
      trial(begin, n);
    else if (!compiled(begin, n, nullptr))
      loops(begin, n);
  }

 private:
  void loops(int64_t begin, int64_t n) {
    forget_rows(false);
    for (const TileStep& step : program_.steps) {
      if (is_plain_copy(step)) {
        const Place& from = step.in[0];
        gather(program_.rows[static_cast<size_t>(from.rows)], pointers_[from.index],
               pointers_[step.out.index] + begin * step.out.size, step.out.size, begin, begin + n);
        continue;
      }
      char* data[5];
      int64_t strides[5];
      data[0] = find(step.out, begin, n, &strides[0]);
      for (int k = 0; k < step.inputs; ++k)
        data[k + 1] = find(step.in[k], begin, n, &strides[k + 1]);
      const void* params = step.params < 0 ? nullptr : program_.pool.data() + step.params;
      step.loop(data, strides, step.lone ? 1 : n, params);
    }
  }

  // Rows that go to memory as they are, and that no other step has put together.
  bool is_plain_copy(const TileStep& step) const {
    if (step.form != TileStep::Form::Cast || step.from != step.to || step.lone) return false;
    const Place& from = step.in[0];
    if (from.kind != Place::Kind::Rows || step.out.kind != Place::Kind::Memory) return false;
    // A repeated element is written with slack behind it, for which an output has no room.
    const auto r = static_cast<size_t>(from.rows);
    return program_.rows[r].dims[0].stride != 0 && !direct_[r].known;
  }

  void forget_rows(bool apart) {
    for (size_t r = 0; r < direct_.size(); ++r) direct_[r].known = false;
    is_apart_ = apart;
  }

  // The compiled kernel, with outputs at `outputs` if given. False for strides that it does not
  // take.
  bool compiled(int64_t begin, int64_t n, char* const* outputs) {
    const std::vector<TierOperand>& operands = program_.tier->operands();
    forget_rows(true);
    c10::SmallVector<char*, 16> data;
    c10::SmallVector<int64_t, 16> strides;
    for (const TierOperand& operand : operands) {
      int64_t stride = 0;
      char* found = find(operand.place, begin, n, &stride);
      if (stride != 0 && stride != operand.place.size) return false;
      data.push_back(operand.is_output && outputs ? *outputs++ : found);
      strides.push_back(stride);
    }
    function_(data.data(), strides.data(), n, program_.pool.data());
    return true;
  }

  // Both ways; the loops' results stay.
  void trial(int64_t begin, int64_t n) {
    Tier& tier = *program_.tier;
    std::vector<std::unique_ptr<char[]>> memory;
    c10::SmallVector<char*, 8> outputs;
    for (const TierOperand& operand : tier.operands()) {
      if (!operand.is_output) continue;
      memory.emplace_back(new char[static_cast<size_t>(n * operand.place.size)]);
      outputs.push_back(memory.back().get());
    }
    const bool ran = compiled(begin, n, outputs.data());
    loops(begin, n);
    if (!ran) return;
    bool same = true;
    size_t k = 0;
    for (const TierOperand& operand : tier.operands()) {
      if (!operand.is_output) continue;
      int64_t stride = 0;
      same = same && same_values(outputs[k++], find(operand.place, begin, n, &stride), n, operand);
    }
    if (same) {
      tier.agreed();
      return;
    }
    function_ = nullptr;
    tier.reject();
  }
  // Equal bits, or NaNs, whose sign and payload are up to the processor.
  static bool same_values(const char* a, const char* b, int64_t n, const TierOperand& operand) {
    const int64_t size = operand.place.size;
    if (std::memcmp(a, b, static_cast<size_t>(n * size)) == 0) return true;
    for (int64_t i = 0; i < n; ++i) {
      if (std::memcmp(a + i * size, b + i * size, static_cast<size_t>(size)) == 0) continue;
      if (!is_nan(a + i * size, operand.dtype) || !is_nan(b + i * size, operand.dtype))
        return false;
    }
    return true;
  }
  static bool is_nan(const char* p, at::ScalarType dtype) {
    double value = 0;
    const int64_t strides[2] = {0, 0};
    char* const data[2] = {reinterpret_cast<char*>(&value), const_cast<char*>(p)};
    at::cast_loop(at::kDouble, dtype)(data, strides, 1, nullptr);
    return value != value;
  }

  struct Direct {
    char* data = nullptr;
    int64_t stride = 0;
    bool known = false;
    char* pattern = nullptr; // of periodic rows, once it is filled
    int64_t place = 0;
  };

  char* find(const Place& place, int64_t begin, int64_t n, int64_t* stride) {
    switch (place.kind) {
    case Place::Kind::Register:
      *stride = place.size;
      return scratch_ + place.index * width_;
    case Place::Kind::Memory:
      *stride = place.size;
      return pointers_[place.index] + begin * place.size;
    case Place::Kind::Lone:
      *stride = 0;
      return pointers_[place.index];
    case Place::Kind::Constant:
      *stride = 0;
      return const_cast<char*>(program_.pool.data()) + 16 * int64_t(place.index);
    case Place::Kind::LoneTemp:
      *stride = 0;
      return lone_ + int64_t(16) * place.index;
    default:
      return rows(place, begin, n, stride);
    }
  }

  char* rows(const Place& place, int64_t begin, int64_t n, int64_t* stride) {
    Direct& direct = direct_[static_cast<size_t>(place.rows)];
    if (!direct.known) {
      const RowAccess& access = program_.rows[static_cast<size_t>(place.rows)];
      char* base = pointers_[place.index];
      int64_t left = 0;
      const int64_t offset = locate(access, begin, &left);
      direct.known = true;
      if (left >= n) {
        direct.data = base + offset;
        direct.stride = access.dims[0].stride;
      } else if (access.is_periodic()) {
        const int64_t period = access.dims[0].size;
        if (!direct.pattern) {
          direct.pattern = patterns_ + direct.place;
          repeat(access, base, direct.pattern, place.size, longest_ + period);
        }
        direct.data = direct.pattern + begin % period * place.size;
        direct.stride = place.size;
      } else {
        direct.data = is_apart_ ? apart_ + place.rows * width_ : scratch_ + access.scratch * width_;
        direct.stride = place.size;
        gather(access, base, direct.data, place.size, begin, begin + n);
      }
    }
    *stride = direct.stride;
    return direct.data;
  }

  // The first row, and then what is there behind itself, ever longer.
  static void repeat(const RowAccess& access, const char* base, char* to, int size, int64_t n) {
    int64_t have = std::min(access.dims[0].size, n);
    copy_row(to, base, access.dims[0].stride, have, size);
    while (have < n) {
      const int64_t more = std::min(have, n - have);
      std::memcpy(to + have * size, to, static_cast<size_t>(more * size));
      have += more;
    }
  }

  const TileProgram& program_;
  char* const* pointers_;
  char *scratch_, *lone_, *patterns_, *apart_;
  bool is_apart_ = false;
  int64_t width_, longest_;
  CompiledTile function_ = nullptr;
  c10::SmallVector<Direct, 8> direct_;
};

} // namespace

bool RowAccess::is_periodic() const {
  // A size that is a symbol may become any.
  return dims.size() == 2 && dims[1].stride == 0 && dims[0].stride != 0 && dims[0].size > 0 &&
         dims[0].size <= kLongestPeriod;
}

void TileProgram::finish() {
  tier = std::make_shared<Tier>();
  register_size = std::max(register_size, 1);
  const int64_t fitting = kScratchBytes / (std::max(registers, 1) * register_size);
  tile = std::clamp<int64_t>(fitting / 64 * 64, kMinTile, kMaxTile);
  find_row_length();
}

void TileProgram::find_row_length() {
  row_length = 0;
  for (const RowAccess& access : rows) {
    const int64_t length = access.dims[0].size;
    if (length < kLongRow || access.is_periodic()) continue;
    row_length = row_length == 0 ? length : std::min(row_length, length);
  }
  for (const RowAccess& access : rows) {
    if (row_length > 0 && !access.is_periodic() && access.dims[0].size % row_length != 0)
      row_length = 0;
  }
}

void TileProgram::run(char* const* pointers, int64_t begin, int64_t end) const {
  if (tier) tier->count(*this, end - begin);
  Pass pass(*this, pointers, end - begin);
  while (begin < end) {
    int64_t n = std::min(tile, end - begin);
    if (row_length > 0) n = std::min(n, row_length - begin % row_length);
    pass.tile(begin, n);
    begin += n;
  }
}

void TileProgram::run_all(char* const* pointers, int64_t numel) const {
  const int64_t grain = std::max<int64_t>(
      kLeastWork, at::TensorIterator::kGrain / std::max<int64_t>(1, int64_t(steps.size())));
  if (numel <= grain) {
    run(pointers, 0, numel);
    return;
  }
  at::BlockingRegion unlocked;
  at::parallel_for(0, numel, grain, [&](int64_t begin, int64_t end) { run(pointers, begin, end); });
}

} // namespace torch::inductor
