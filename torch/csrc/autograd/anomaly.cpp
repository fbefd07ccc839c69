// Where a node was made, for programs without Python: the frames of the stack, which become text
// only when a backward pass went wrong. With Python its own record takes the place of this one.
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/native_anomaly.h>

#include <dlfcn.h>
#include <execinfo.h>

#include <array>

#include <c10/util/Type.h>

namespace torch::autograd {
namespace {

std::string text_of(void* frame) {
  Dl_info info;
  if (dladdr(frame, &info) == 0) return "  (unknown)\n";
  const std::string function = info.dli_sname ? c10::demangle(info.dli_sname) : "(unknown)";
  return c10::str("  ", function, " in ", info.dli_fname ? info.dli_fname : "?", "\n");
}

class NativeRecord final : public AnomalyRecord {
 public:
  NativeRecord() : count_(backtrace(frames_.data(), static_cast<int>(frames_.size()))) {
    if (Node* node = current_node()) parent_ = c10::intrusive_ptr<Node>::unsafe_retain(node);
  }
  ~NativeRecord() override { release_node(std::move(parent_)); }
  NativeRecord(const NativeRecord&) = delete;
  NativeRecord& operator=(const NativeRecord&) = delete;

  std::string where() override {
    std::string out;
    for (int i = 1; i < count_; ++i) out += text_of(frames_[static_cast<size_t>(i)]);
    return out;
  }
  void print(const std::string& node_name) override {
    TORCH_WARN("Error detected in ", node_name,
               ". Traceback of forward call that caused the error:\n", where());
    const Node* induced = parent_.get();
    while (induced != nullptr) {
      auto* record = dynamic_cast<NativeRecord*>(induced->anomaly());
      TORCH_WARN("Previous calculation was induced by ", induced->name(),
                 ". Traceback of forward call that induced the previous calculation:\n",
                 record ? record->where() : "(none: anomaly mode was off)");
      induced = record ? record->parent_.get() : nullptr;
    }
  }

 private:
  std::array<void*, 64> frames_;
  int count_;
  c10::intrusive_ptr<Node> parent_; // in whose backward this one was made
};

} // namespace

std::unique_ptr<AnomalyRecord> make_native_anomaly_record() {
  return std::make_unique<NativeRecord>();
}

} // namespace torch::autograd
