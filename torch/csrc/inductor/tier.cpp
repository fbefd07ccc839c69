// See tier.h.
#include <torch/csrc/inductor/tier.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <tuple>

#include <ATen/cuda/PointwiseProgram.h>
#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/Pointwise.h>
#include <ATen/native/pointwise/HostFunctor.h>

namespace torch::inductor {
namespace {

using at::ScalarType;
using PK = Place::Kind;
using Form = TileStep::Form;

const char* type_name(ScalarType dtype) {
  switch (dtype) {
  case ScalarType::Float:
    return "float";
  case ScalarType::Double:
    return "double";
  case ScalarType::Half:
    return "c10::Half";
  case ScalarType::BFloat16:
    return "c10::BFloat16";
  case ScalarType::Bool:
    return "bool";
  default:
    return nullptr;
  }
}

// Raised where a program has no text.
struct NoText {};

class Writer {
 public:
  explicit Writer(const TileProgram& program) : program_(program) {}

  KernelText write() {
    find_compute();
    for (const TileStep& step : program_.steps) add(step);
    KernelText result;
    result.operands = std::move(operands_);
    result.text = assembled(result.operands);
    return result;
  }

 private:
  // float for float and half types, double for double; not both.
  void find_compute() {
    bool wide = false, narrow = false;
    const auto note = [&](ScalarType dtype) {
      if (!type_name(dtype)) throw NoText{};
      wide = wide || dtype == ScalarType::Double;
      narrow = narrow || (dtype != ScalarType::Double && dtype != ScalarType::Bool);
    };
    for (const TileStep& step : program_.steps) {
      if (step.form == Form::Other) throw NoText{};
      if (step.form == Form::Functor && step.from == ScalarType::Bool) throw NoText{};
      if (!step.lone) note(step.from);
      note(step.to);
    }
    if (wide == narrow) throw NoText{};
    compute_ = wide ? "double" : "float";
  }

  std::string operand(const Place& place, ScalarType dtype, bool is_output) {
    for (size_t k = 0; k < operands_.size(); ++k) {
      const TierOperand& known = operands_[k];
      if (known.place.kind == place.kind && known.place.index == place.index &&
          known.place.rows == place.rows && known.dtype == dtype && known.is_output == is_output)
        return std::to_string(k);
    }
    operands_.push_back({place, dtype, is_output});
    return std::to_string(operands_.size() - 1);
  }

  // The name of a value that a step reads.
  std::string value(const Place& place, ScalarType dtype) {
    const char* type = type_name(dtype);
    if (!type) throw NoText{};
    if (place.kind == PK::Register) {
      const auto found = registers_.find(place.index);
      if (found == registers_.end()) throw NoText{};
      return found->second;
    }
    if (place.kind == PK::LoneTemp) return "l" + std::to_string(place.index);
    if (place.kind == PK::Constant) {
      const std::string name = c10::str("k", place.index, "_", static_cast<int>(dtype));
      if (names_.insert(name).second)
        head_ << "  const auto " << name << " = number<" << type << ", " << type << ", C>(pool + "
              << 16 * int64_t(place.index) << ");\n";
      return name;
    }
    if (place.kind == PK::Memory) {
      const auto stored = stored_.find(place.index);
      if (stored != stored_.end()) return stored->second;
    }
    const std::string name = "m" + operand(place, dtype, false);
    if (names_.insert(name).second)
      body_ << "    const auto " << name << " = load<" << type << ", C>(p" << name.substr(1)
            << ");\n";
    return name;
  }

  void add(const TileStep& step) {
    if (step.lone) {
      add_lone(step);
      return;
    }
    std::vector<std::string> in;
    for (int k = 0; k < step.inputs; ++k) {
      const bool is_mask = step.form == Form::Where && k == 0;
      in.push_back(value(step.in[static_cast<size_t>(k)], is_mask ? ScalarType::Bool : step.from));
    }
    const std::string name = "v" + std::to_string(count_++);
    body_ << "    const auto " << name << " = ";
    if (step.form == Form::Functor) {
      const at::cuda::PointwiseProgram* functor = step.spec->cuda;
      if (!functor) throw NoText{};
      headers_.insert(functor->header);
      for (int k = 0; k < step.spec->params; ++k) in.push_back(parameter(step, k));
      body_ << "apply<at::native::fn::" << at::native::host_functor(*step.spec) << ", "
            << type_name(step.from)
            << (functor->out == at::native::OutKind::Bool ? ", at::native::OutKind::Bool"
                                                          : ", at::native::OutKind::Same")
            << ", C>(";
      for (size_t k = 0; k < in.size(); ++k) body_ << (k ? ", " : "") << in[k];
      body_ << ");\n";
    } else if (step.form == Form::Where) {
      body_ << "at::vec::select(" << in[0] << ", " << in[1] << ", " << in[2] << ");\n";
    } else {
      body_ << "cast<" << type_name(step.from) << ", " << type_name(step.to) << ", C>(" << in[0]
            << ");\n";
    }
    if (step.out.kind == PK::Register) {
      registers_[step.out.index] = name;
      return;
    }
    if (step.out.kind != PK::Memory) throw NoText{};
    stored_[step.out.index] = name;
    body_ << "    store<" << type_name(step.to) << ", C>(p" << operand(step.out, step.to, true)
          << ", " << name << ");\n";
  }

  std::string parameter(const TileStep& step, int k) {
    const std::string name = c10::str("a", step.params, "_", k);
    if (names_.insert(name).second)
      head_ << "  const auto " << name << " = number<C, C, C>(pool + "
            << step.params + k * (compute_ == "double" ? 8 : 4) << ");\n";
    return name;
  }

  // A conversion of one element for all, before the loop.
  void add_lone(const TileStep& step) {
    const char *from = type_name(step.from), *to = type_name(step.to);
    const Place& place = step.in[0];
    if (step.form != Form::Cast || !from || !to || step.from == ScalarType::Bool ||
        step.to == ScalarType::Bool)
      throw NoText{};
    head_ << "  const auto l" << step.out.index << " = number<" << from << ", " << to << ", C>(";
    if (place.kind == PK::Constant)
      head_ << "pool + " << 16 * int64_t(place.index);
    else if (place.kind == PK::Lone)
      head_ << "data[" << operand(place, step.from, false) << "]";
    else
      throw NoText{};
    head_ << ");\n";
  }

  std::string assembled(const std::vector<TierOperand>& operands) const {
    std::ostringstream out;
    for (const std::string& header : headers_) out << "#include <" << header << ">\n";
    out << "#include <torch/csrc/inductor/fused_kernel.h>\n\n"
        << "using namespace torch::inductor::fused;\n"
        << "using C = " << compute_ << ";\n\n"
        << "extern \"C\" void CPP_FUSED(char* const* data, const int64_t* strides, int64_t n,\n"
        << "                          const char* pool) {\n"
        << head_.str();
    std::ostringstream parameters, whole, next, tails, last, ends;
    for (size_t k = 0; k < operands.size(); ++k) {
      const char *type = type_name(operands[k].dtype), *comma = k ? ", " : "";
      if (operands[k].is_output) {
        parameters << comma << "char* p" << k;
        out << "  char* o" << k << " = data[" << k << "];\n";
        whole << comma << "o" << k;
        next << "    o" << k << " += kLanes * sizeof(" << type << ");\n";
        tails << "    alignas(64) char r" << k << "[kBytes];\n";
        last << comma << "r" << k;
        ends << "    std::memcpy(o" << k << ", r" << k << ", n * sizeof(" << type << "));\n";
      } else {
        parameters << comma << "[[maybe_unused]] const char* p" << k;
        out << "  In<" << type << ", C> i" << k << "(data[" << k << "], strides[" << k << "]);\n";
        whole << comma << "i" << k << ".p";
        next << "    i" << k << ".p += i" << k << ".step;\n";
        tails << "    Tail<" << type << ", C> t" << k << "(i" << k << ", n);\n";
        last << comma << "t" << k << ".p";
      }
    }
    out << "  constexpr int64_t kLanes = Vec<C>::kLanes;\n"
        << "  const auto once = [&](" << parameters.str() << ") __attribute__((always_inline)) {\n"
        << body_.str() << "  };\n"
        << "  for (; n >= kLanes; n -= kLanes) {\n    once(" << whole.str() << ");\n"
        << next.str() << "  }\n"
        << "  if (n > 0) {\n"
        << tails.str() << "    once(" << last.str() << ");\n"
        << ends.str() << "  }\n}\n";
    return out.str();
  }

  const TileProgram& program_;
  std::string compute_;
  std::vector<TierOperand> operands_;
  std::map<int16_t, std::string> registers_, stored_;
  std::set<std::string> names_, headers_;
  std::ostringstream head_, body_;
  int count_ = 0;
};

// ---- kernels that wait
struct Waiting {
  std::mutex mutex;
  std::vector<std::shared_ptr<Tier>> tiers;
};
Waiting& waiting() {
  static Waiting* const kept = new Waiting; // threads may outlive the end of the program
  return *kept;
}
std::atomic<bool> any_waiting{false}, always_tried{false};
std::atomic<int64_t> hot_after{0}, rejected{0};

} // namespace

std::optional<KernelText> kernel_text(const TileProgram& program) {
  try {
    return Writer(program).write();
  } catch (const NoText&) {
    return std::nullopt;
  }
}

void Tier::heat_more(const TileProgram& program, int64_t elements) {
  const int64_t wanted = hot_after.load(std::memory_order_relaxed);
  if (wanted <= 0) return;
  const int64_t before = heat_.fetch_add(elements, std::memory_order_relaxed);
  if (before + elements < wanted || is_hot_.exchange(true)) return;
  // One loop gains nothing.
  if (program.steps.size() < 2) return;
  std::optional<KernelText> made = kernel_text(program);
  if (!made) return;
  std::lock_guard<std::mutex> lock(waiting().mutex);
  text_ = std::move(made->text);
  operands_ = std::move(made->operands);
  waiting().tiers.push_back(program.tier);
  any_waiting.store(true, std::memory_order_release);
}

void Tier::agreed() {
  if (!always_tried.load(std::memory_order_relaxed))
    trials_.fetch_add(1, std::memory_order_relaxed);
}

void Tier::reject() {
  function_.store(nullptr, std::memory_order_release);
  rejected.fetch_add(1);
}

bool kernels_wait() { return any_waiting.load(std::memory_order_relaxed); }
std::vector<std::shared_ptr<Tier>> take_waiting() {
  std::lock_guard<std::mutex> lock(waiting().mutex);
  any_waiting.store(false, std::memory_order_relaxed);
  return std::move(waiting().tiers);
}
void set_hot_after(int64_t elements) { hot_after.store(elements); }
void set_always_tried(bool value) { always_tried.store(value); }
int64_t rejected_kernels() { return rejected.load(); }
const char* isa_namespace() {
  switch (at::cpu_isa()) {
  case at::Isa::Avx512:
    return "avx512";
  case at::Isa::Avx2:
    return "avx2";
  default:
    return "base";
  }
}

} // namespace torch::inductor
