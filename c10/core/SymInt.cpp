// The table of symbolic nodes. See Note [Symbolic integers are handles]. Nodes lie in chunks that
// belong to one environment, so that ending one frees its chunks; a lookup takes no lock.
#include <c10/core/SymInt.h>

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <c10/core/SymNumbers.h>
#include <c10/util/Exception.h>

namespace c10 {

SymNodeImpl::~SymNodeImpl() = default;
DataDependentError::~DataDependentError() = default;

namespace {
constexpr int64_t kFirst = INT64_MIN;
constexpr uint64_t kChunkNodes = 256, kPageChunks = 4096, kPages = 4096;

struct Chunk {
  std::atomic<SymNodeImpl*> nodes[kChunkNodes] = {};
  uint64_t used = 0;
  ~Chunk() {
    for (auto& node : nodes) delete node.load(std::memory_order_relaxed);
  }
};
struct Page {
  std::atomic<Chunk*> chunks[kPageChunks] = {};
};
struct Table {
  std::mutex mutex; // of everything but `pages` and what hangs on it
  std::atomic<Page*> pages[kPages] = {};
  uint64_t chunks = 0;
  uint32_t environments = 0;
  std::unordered_map<uint32_t, std::vector<uint64_t>> owned; // chunks by environment
};
Table& table() {
  static Table* t = new Table; // outlives every thread on purpose
  return *t;
}

std::atomic<Chunk*>* place_of(Table& t, uint64_t chunk) {
  if (chunk / kPageChunks >= kPages) return nullptr;
  Page* page = t.pages[chunk / kPageChunks].load(std::memory_order_acquire);
  return page == nullptr ? nullptr : &page->chunks[chunk % kPageChunks];
}

uint64_t new_chunk(Table& t, uint32_t environment) {
  TORCH_CHECK(t.chunks < kPages * kPageChunks, "the table of symbolic numbers is full");
  auto& page = t.pages[t.chunks / kPageChunks];
  if (page.load(std::memory_order_relaxed) == nullptr)
    page.store(new Page, std::memory_order_release);
  place_of(t, t.chunks)->store(new Chunk, std::memory_order_release);
  t.owned[environment].push_back(t.chunks);
  return t.chunks++;
}
} // namespace

uint32_t new_symbolic_environment() {
  Table& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  return ++t.environments;
}

int64_t make_symbolic(uint32_t environment, std::unique_ptr<SymNodeImpl> node) {
  Table& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  const std::vector<uint64_t>& owned = t.owned[environment];
  uint64_t number = owned.empty() ? new_chunk(t, environment) : owned.back();
  Chunk* chunk = place_of(t, number)->load(std::memory_order_relaxed);
  if (chunk->used == kChunkNodes) {
    number = new_chunk(t, environment);
    chunk = place_of(t, number)->load(std::memory_order_relaxed);
  }
  const uint64_t place = chunk->used++;
  chunk->nodes[place].store(node.release(), std::memory_order_release);
  return kFirst + static_cast<int64_t>(number * kChunkNodes + place);
}

void release_symbolic_nodes(uint32_t environment) {
  Table& t = table();
  std::vector<Chunk*> ended;
  {
    std::lock_guard<std::mutex> lock(t.mutex);
    for (uint64_t number : t.owned[environment])
      ended.push_back(place_of(t, number)->exchange(nullptr, std::memory_order_acq_rel));
    t.owned.erase(environment);
  }
  for (Chunk* chunk : ended) delete chunk;
}

SymNodeImpl* symbolic_node(int64_t raw) {
  const uint64_t index = static_cast<uint64_t>(raw) - static_cast<uint64_t>(kFirst);
  std::atomic<Chunk*>* place = place_of(table(), index / kChunkNodes);
  Chunk* chunk = place == nullptr ? nullptr : place->load(std::memory_order_acquire);
  SymNodeImpl* node = chunk == nullptr
                          ? nullptr
                          : chunk->nodes[index % kChunkNodes].load(std::memory_order_acquire);
  TORCH_CHECK(node != nullptr,
              "a symbolic number was used after the shape environment that made it ended");
  return node;
}

namespace {
SymNodeImpl* node_of_either(int64_t a, int64_t b) {
  return symbolic_node(a < SymInt::kSymbolicBound ? a : b);
}
} // namespace

SymInt SymInt::apply(SymOp op, SymInt a, SymInt b) {
  if (plain(a, b)) return apply_plain(op, a.data_, b.data_);
  return from_raw(node_of_either(a.data_, b.data_)->apply(op, a.data_, b.data_));
}
bool SymInt::compare(SymOp op, SymInt a, SymInt b) {
  return SymBool::from_raw(node_of_either(a.data_, b.data_)->apply(op, a.data_, b.data_))
      .guard_bool();
}
int64_t SymInt::guard_slow(const char* file, int line) const {
  return symbolic_node(data_)->guard_int(file, line);
}
std::optional<int64_t> SymInt::hint_slow() const { return symbolic_node(data_)->hint(); }
void SymInt::throw_too_negative() {
  throw Error("integers below -2**62 cannot be used as sizes, strides or offsets");
}
std::string SymInt::str() const {
  return is_symbolic() ? symbolic_node(data_)->str() : std::to_string(data_);
}

IntArrayRef guarded_ints(SymIntArrayRef list) {
  std::vector<int64_t> plain;
  SymNodeImpl* node = nullptr;
  for (SymInt s : list) {
    plain.push_back(s.guard_int("an argument of plain integers"));
    if (s.is_symbolic()) node = symbolic_node(s.raw());
  }
  return {node->keep(plain), plain.size()};
}

int64_t apply_plain(SymOp op, int64_t a, int64_t b) {
  switch (op) {
  case SymOp::Add:
    return a + b;
  case SymOp::Sub:
    return a - b;
  case SymOp::Mul:
    return a * b;
  case SymOp::Min:
    return a < b ? a : b;
  case SymOp::Max:
    return a < b ? b : a;
  case SymOp::Eq:
    return a == b;
  case SymOp::Ne:
    return a != b;
  case SymOp::Lt:
    return a < b;
  case SymOp::Le:
    return a <= b;
  case SymOp::Gt:
    return a > b;
  case SymOp::Ge:
    return a >= b;
  case SymOp::And:
    return a != 0 && b != 0;
  case SymOp::Or:
    return a != 0 || b != 0;
  case SymOp::Not:
    return a == 0;
  case SymOp::Neg:
    return -a;
  default:
    throw InternalError("an operation of symbolic numbers that plain ones never ask for");
  }
}

SymBool SymBool::apply(SymOp op, int64_t a, int64_t b) {
  const bool symbolic = a < SymInt::kSymbolicBound || b < SymInt::kSymbolicBound;
  return from_raw(symbolic ? node_of_either(a, b)->apply(op, a, b) : apply_plain(op, a, b));
}

} // namespace c10
