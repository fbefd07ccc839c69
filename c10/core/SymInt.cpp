// The table of symbolic nodes. See Note [Symbolic integers are handles].
#include <c10/core/SymInt.h>

#include <memory>
#include <mutex>

namespace c10 {

SymNodeImpl::~SymNodeImpl() = default;

namespace {
struct Slot {
  std::unique_ptr<SymNodeImpl> node;
  uint32_t environment = 0;
};
struct Table {
  std::mutex mutex;
  std::vector<Slot> slots;
  uint32_t environments = 0;
};
Table& table() {
  static Table* t = new Table; // outlives every thread on purpose
  return *t;
}
constexpr int64_t kFirst = INT64_MIN;
} // namespace

uint32_t new_symbolic_environment() {
  Table& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  return ++t.environments;
}

int64_t make_symbolic(uint32_t environment, SymNodeImpl* node) {
  Table& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  t.slots.push_back({std::unique_ptr<SymNodeImpl>(node), environment});
  return kFirst + static_cast<int64_t>(t.slots.size() - 1);
}

void release_symbolic_nodes(uint32_t environment) {
  Table& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  for (Slot& slot : t.slots)
    if (slot.environment == environment) slot.node.reset();
}

SymNodeImpl* symbolic_node(int64_t raw) {
  Table& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  const uint64_t index = static_cast<uint64_t>(raw) - static_cast<uint64_t>(kFirst);
  TORCH_CHECK(index < t.slots.size() && t.slots[index].node,
              "a symbolic integer was used after the shape environment that made it ended");
  return t.slots[index].node.get();
}

SymInt SymInt::binary(const char* op, SymInt a, SymInt b) {
  return from_raw(symbolic_node(a.is_symbolic() ? a.data_ : b.data_)->binary(op, a.data_, b.data_));
}
bool SymInt::compare(const char* op, SymInt a, SymInt b) {
  return symbolic_node(a.is_symbolic() ? a.data_ : b.data_)->compare(op, a.data_, b.data_);
}
int64_t SymInt::guard_slow(const char* file, int line) const {
  return symbolic_node(data_)->guard_int(file, line);
}
void SymInt::throw_too_negative() {
  throw Error("integers below -2**62 cannot be used as sizes, strides or offsets");
}
std::string SymInt::str() const {
  return is_symbolic() ? symbolic_node(data_)->str() : std::to_string(data_);
}
void throw_symbolic_list() {
  throw Error("Cannot call sizes() on tensor with symbolic sizes/strides: this operator needs "
              "concrete integers");
}

} // namespace c10
