// What can be asked of the size of a ragged dimension. See NestedInt.h.
#include <c10/core/NestedInt.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <c10/util/SafeArithmetic.h>

namespace c10 {
namespace {

constexpr int64_t kLeastLength = 2;

// Ragged sizes and the lists kept on their behalf; outlives every thread on purpose.
struct Registry {
  std::mutex mutex;
  uint32_t environment = new_symbolic_environment();
  std::map<std::pair<int64_t, int64_t>, int64_t> handles; // by number and factor
  std::set<std::vector<int64_t>> lists;
};
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

class NestedInt final : public SymNodeImpl {
 public:
  NestedInt(int64_t number, int64_t factor) : number_(number), factor_(factor) {}

  SymSort sort() const override { return SymSort::Int; }
  int64_t apply(SymOp op, int64_t left, int64_t right) override {
    switch (op) {
    case SymOp::Eq:
      return left == right; // a handle is the same where the size is
    case SymOp::Ne:
      return left != right;
    case SymOp::Ge:
      return at_least(left, right);
    case SymOp::Lt:
      return !at_least(left, right);
    case SymOp::Le:
      return at_least(right, left);
    case SymOp::Gt:
      return !at_least(right, left);
    case SymOp::Mul:
      return times(left, right);
    default:
      refuse();
    }
  }
  int64_t guard_int(const char*, int) override { refuse(); }
  double guard_float(const char*, int) override { refuse(); }
  bool guard_bool(const char*, int) override { refuse(); }
  bool guard_or(bool, const char*, int) override { refuse(); }
  std::optional<bool> known() override { return std::nullopt; }
  bool expect_true(const char*, int) override { refuse(); }
  std::optional<int64_t> hint() override { return std::nullopt; }
  std::string str() override {
    const std::string name = c10::str("j", number_);
    return factor_ == 1 ? name : c10::str(factor_, "*", name);
  }
  std::shared_ptr<void> owner() override { return nullptr; }
  const int64_t* keep(ArrayRef<int64_t> list) override {
    Registry& all = registry();
    std::lock_guard<std::mutex> lock(all.mutex);
    return all.lists.insert(list.vec()).first->data();
  }

 private:
  static NestedInt* node_of(int64_t raw) {
    return raw < SymInt::kSymbolicBound ? dynamic_cast<NestedInt*>(symbolic_node(raw)) : nullptr;
  }
  bool at_least(int64_t left, int64_t right) {
    const NestedInt* a = node_of(left);
    const NestedInt* b = node_of(right);
    if (a != nullptr && b != nullptr && a->number_ == b->number_) return a->factor_ >= b->factor_;
    const int64_t least = kLeastLength * factor_;
    if (b == nullptr && right >= SymInt::kSymbolicBound && right <= least) return true;
    if (a == nullptr && left >= SymInt::kSymbolicBound && left < least) return false;
    throw ValueError(c10::str("ge: relation is indeterminate: ", SymInt::from_raw(left), " and ",
                              SymInt::from_raw(right),
                              " have no order that holds for all lengths"));
  }
  int64_t times(int64_t left, int64_t right) {
    const int64_t number = node_of(left) == this ? right : left;
    if (number < SymInt::kSymbolicBound) refuse();
    int64_t factor = 0;
    TORCH_CHECK(number > 0 && !mul_overflows(factor_, number, &factor), "the ragged size ", str(),
                " can be multiplied by a positive integer, got ", number);
    return nested_int(number_, factor).raw();
  }
  [[noreturn]] void refuse() {
    throw NotImplementedError(c10::str(
        "not supported by NestedIntSymNode: the size ", str(),
        " of a nested tensor's ragged dimension stands for several lengths; it can be compared for "
        "equality and multiplied by an int"));
  }

  const int64_t number_, factor_;
};

} // namespace

SymInt nested_int(int64_t number, int64_t factor) {
  TORCH_CHECK(factor > 0 && factor <= INT64_MAX / kLeastLength,
              "the factor of a ragged size must be positive and below 2**62, got ", factor);
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  int64_t& handle = all.handles[{number, factor}];
  if (handle == 0)
    handle = make_symbolic(all.environment, std::make_unique<NestedInt>(number, factor));
  return SymInt::from_raw(handle);
}

} // namespace c10
