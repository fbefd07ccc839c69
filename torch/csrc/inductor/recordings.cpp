// See recordings.h.
#include <torch/csrc/inductor/recordings.h>

#include <algorithm>
#include <unordered_set>

#include <ATen/core/EmptyTensor.h>
#include <c10/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/inductor/plan.h>

namespace torch::inductor {
namespace {

using at::IValue;
using at::Tensor;
using c10::cuda::CUDAStream;

constexpr size_t kMostRecordings = 4; // of a plan, whose outputs may all be in use
constexpr int kMostAttempts = 16;     // after which a plan is run as it is

char* address_of(const IValue& value) {
  if (!value.isTensor()) return nullptr;
  const Tensor& t = value.toTensor();
  return static_cast<char*>(t.storage()->data()) + t.storage_offset() * t.itemsize();
}

std::vector<char*> addresses_of(const std::vector<IValue>& inputs) {
  std::vector<char*> found;
  found.reserve(inputs.size());
  for (const IValue& value : inputs) found.push_back(address_of(value));
  return found;
}

// Storages that belong to recordings: they lie where they are as long as the recording lives.
struct Owned {
  std::mutex mutex;
  std::unordered_set<const c10::StorageImpl*> storages;
};
Owned& owned() {
  static Owned* const all = new Owned;
  return *all;
}
bool is_owned(const Tensor& t) {
  const std::lock_guard<std::mutex> lock(owned().mutex);
  return owned().storages.count(t.storage().get()) != 0;
}

// Whether no two elements of such a tensor share memory, so that a copy can be laid out like it.
bool is_apart(const Tensor& t) {
  for (size_t d = 0; d < t.sizes().size(); ++d)
    if (t.sizes()[d] > 1 && t.strides()[d] == 0) return false;
  return true;
}

} // namespace

// One graph with its memory.
class Recording {
 public:
  Recording(const Plan& plan, const std::vector<IValue>& inputs, std::vector<bool> copied,
            const std::vector<Tensor>& constants);
  ~Recording();

  bool fits(const std::vector<char*>& addresses, CUDAStream stream) const;
  std::vector<IValue> replay(std::vector<IValue>& inputs);

 private:
  // A result: the one before it, a value, a view of an input, or of memory of the recording.
  struct Result {
    enum class Kind : uint8_t { Same, Value, Input, Memory };
    Kind kind = Kind::Value;
    IValue value;
    size_t place = 0; // Same: of the result. Input: of the input. Memory: in memory_
    at::ScalarType dtype = at::ScalarType::Undefined;
    at::DimVector sizes, strides;
    int64_t offset = 0; // in elements; of a view of an input from where the input begins
  };
  struct Memory {
    c10::Storage storage;
    void* address;
  };
  Result result_of(const std::vector<IValue>& outputs, size_t place,
                   const std::vector<IValue>& given);
  size_t memory_of(const Tensor& t);
  Tensor made(const Result& result, const std::vector<IValue>& inputs) const;

  c10::cuda::CUDAGraph graph_;
  CUDAStream stream_;            // on which it is replayed
  std::vector<char*> addresses_; // by input; null where it is copied or no tensor
  std::vector<Tensor> copies_;   // by input; undefined where it is read where it lies
  std::vector<Result> results_;
  std::vector<Memory> memory_; // each storage once
};

Recording::Recording(const Plan& plan, const std::vector<IValue>& inputs, std::vector<bool> copied,
                     const std::vector<Tensor>& constants)
    : stream_(c10::cuda::getCurrentCUDAStream(plan.device.index())), copies_(inputs.size()) {
  std::vector<IValue> given = inputs;
  addresses_ = addresses_of(inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!copied[i]) continue;
    const Tensor& t = inputs[i].toTensor();
    addresses_[i] = nullptr;
    copies_[i] = at::detail::empty_strided(t.sizes(), t.strides(), t.scalar_type(), t.device());
    given[i] = copies_[i];
  }
  std::vector<IValue> taken = given;
  std::vector<IValue> outputs;
  {
    const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool(0, plan.device.index()));
    // Other threads may go on with what they do on the device.
    graph_.capture_begin(0, c10::cuda::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    outputs = plan.run_steps(taken, constants);
    graph_.capture_end();
  }
  for (size_t k = 0; k < outputs.size(); ++k) results_.push_back(result_of(outputs, k, given));
}

Recording::~Recording() {
  const std::lock_guard<std::mutex> lock(owned().mutex);
  for (const Memory& memory : memory_) owned().storages.erase(memory.storage.get());
}

size_t Recording::memory_of(const Tensor& t) {
  const auto same = [&](const Memory& m) { return m.storage == t.storage(); };
  const auto found = std::find_if(memory_.begin(), memory_.end(), same);
  if (found != memory_.end()) return static_cast<size_t>(found - memory_.begin());
  memory_.push_back({t.storage(), t.storage()->data()});
  const std::lock_guard<std::mutex> lock(owned().mutex);
  owned().storages.insert(t.storage().get());
  return memory_.size() - 1;
}

Recording::Result Recording::result_of(const std::vector<IValue>& outputs, size_t place,
                                       const std::vector<IValue>& given) {
  using Kind = Result::Kind;
  Result result;
  const IValue& value = outputs[place];
  if (!value.isTensor() || !value.toTensor().defined()) {
    result.value = value;
    return result;
  }
  const Tensor t = value.toTensor();
  for (size_t k = 0; k < place; ++k) {
    if (!outputs[k].isTensor() || !outputs[k].toTensor().is_same(t)) continue;
    result.kind = Kind::Same;
    result.place = k;
    return result;
  }
  result.dtype = t.scalar_type();
  result.sizes = at::DimVector(t.sizes());
  result.strides = at::DimVector(t.strides());
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].isTensor() || !given[i].toTensor().is_alias_of(t)) continue;
    const Tensor input = given[i].toTensor();
    TORCH_CHECK_NOT_IMPLEMENTED(input.scalar_type() == t.scalar_type(), "result ", place,
                                " is input ", i, " as another dtype");
    result.kind = Kind::Input;
    result.place = i;
    result.offset = t.storage_offset() - input.storage_offset();
    return result;
  }
  result.kind = Kind::Memory;
  result.place = memory_of(t);
  result.offset = t.storage_offset();
  return result;
}

bool Recording::fits(const std::vector<char*>& addresses, CUDAStream stream) const {
  if (stream != stream_) return false;
  for (size_t i = 0; i < addresses.size(); ++i)
    if (addresses_[i] != nullptr && addresses_[i] != addresses[i]) return false;
  for (const Memory& memory : memory_)
    if (memory.storage.use_count() > 1 || memory.storage->data() != memory.address) return false;
  return true;
}

Tensor Recording::made(const Result& result, const std::vector<IValue>& inputs) const {
  if (result.kind == Result::Kind::Memory)
    return at::detail::checked_tensor(memory_[result.place].storage, result.dtype, result.sizes,
                                      result.strides, result.offset);
  const Tensor input = inputs[result.place].toTensor();
  const bool whole = result.offset == 0 && input.sizes() == at::IntArrayRef(result.sizes) &&
                     input.strides() == at::IntArrayRef(result.strides);
  return whole ? input
               : at::detail::view_of(input, result.sizes, result.strides,
                                     input.storage_offset() + result.offset);
}

std::vector<IValue> Recording::replay(std::vector<IValue>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (copies_[i].defined()) copies_[i].copy_(inputs[i].toTensor());
  graph_.replay();
  std::vector<IValue> outputs;
  outputs.reserve(results_.size());
  for (const Result& result : results_) {
    if (result.kind == Result::Kind::Same)
      outputs.push_back(outputs[result.place]);
    else if (result.kind == Result::Kind::Value)
      outputs.push_back(result.value);
    else
      outputs.push_back(made(result, inputs));
  }
  inputs.clear();
  return outputs;
}

Recordings::Recordings(std::vector<bool> writes, std::string refusal)
    : writes_(std::move(writes)), refusal_(std::move(refusal)) {}
Recordings::~Recordings() = default;

std::pair<size_t, std::string> Recordings::state() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {made_.size(), refusal_};
}

Recording* Recordings::fitting(const std::vector<char*>& addresses) {
  const CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  for (size_t i = 0; i < made_.size(); ++i) {
    if (!made_[i]->fits(addresses, stream)) continue;
    if (i > 0)
      std::rotate(made_.begin(), made_.begin() + static_cast<long>(i),
                  made_.begin() + static_cast<long>(i) + 1);
    return made_.front().get();
  }
  return nullptr;
}

void Recordings::note_moves(const std::vector<char*>& addresses) {
  moves_.resize(addresses.size(), false);
  for (size_t i = 0; i < addresses.size(); ++i)
    if (calls_ > 0 && seen_[i] != addresses[i]) moves_[i] = true;
  seen_ = addresses;
  ++calls_;
}

std::unique_ptr<Recording> Recordings::record(const Plan& plan, const std::vector<IValue>& inputs,
                                              const std::vector<Tensor>& constants) {
  std::vector<bool> copied(inputs.size(), false);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].isTensor()) continue;
    const Tensor& t = inputs[i].toTensor();
    copied[i] = moves_[i] && !is_owned(t) && t.numel() > 0;
    if (!copied[i]) continue;
    TORCH_CHECK_NOT_IMPLEMENTED(!writes_[i], "input ", i, " is written and lies elsewhere in turn");
    TORCH_CHECK_NOT_IMPLEMENTED(is_apart(t), "input ", i, " overlaps itself");
  }
  return std::make_unique<Recording>(plan, inputs, std::move(copied), constants);
}

std::vector<IValue> Recordings::run(const Plan& plan, std::vector<IValue>& inputs,
                                    const std::vector<Tensor>& constants) {
  // Inside of somebody's recording the steps become a part of that.
  if (c10::cuda::is_capturing()) return plan.run_steps(inputs, constants);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!refusal_.empty()) return plan.run_steps(inputs, constants);
  const std::vector<char*> addresses = addresses_of(inputs);
  if (Recording* found = fitting(addresses)) return found->replay(inputs);
  note_moves(addresses);
  // The first call loads what the steps need, which a recording cannot.
  if (calls_ < 2 || made_.size() >= kMostRecordings) return plan.run_steps(inputs, constants);
  try {
    TORCH_CHECK_NOT_IMPLEMENTED(++attempts_ <= kMostAttempts, "its inputs lie elsewhere each time");
    made_.insert(made_.begin(), record(plan, inputs, constants));
  } catch (const c10::Error& error) {
    refusal_ = error.what();
    return plan.run_steps(inputs, constants);
  }
  return made_.front()->replay(inputs);
}

namespace {
// By input of the program: whether an operator may write to its memory.
std::vector<bool> written_inputs(const Program& program) {
  // By node: the inputs whose memory it may be a view of.
  std::vector<std::vector<int64_t>> roots(program.nodes.size());
  std::vector<bool> written(static_cast<size_t>(program.inputs), false);
  const auto add = [&](const Arg& arg, std::vector<int64_t>& to, const auto& self) -> void {
    if (arg.kind == Arg::Kind::Node) {
      const auto& from = roots[static_cast<size_t>(arg.node)];
      to.insert(to.end(), from.begin(), from.end());
    }
    for (const Arg& item : arg.items) self(item, to, self);
  };
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    const Node& node = program.nodes[n];
    if (node.kind == Node::Kind::Input) roots[n] = {node.index};
    if (node.kind == Node::Kind::Item) add(node.args[0], roots[n], add);
    if (node.op == nullptr) continue;
    const auto& arguments = node.op->schema().arguments;
    for (size_t i = 0; i < node.args.size(); ++i) {
      if (!arguments[i].alias) continue;
      add(node.args[i], roots[n], add);
      if (!arguments[i].alias->is_write) continue;
      std::vector<int64_t> reached;
      add(node.args[i], reached, add);
      for (const int64_t input : reached) written[static_cast<size_t>(input)] = true;
    }
  }
  return written;
}

bool is_launch_bound(const Plan& plan) {
  // A kernel on 4 MB takes about as long as its launch.
  constexpr int64_t kBytesOfStep = 4 << 20;
  constexpr size_t kFewestSteps = 4;
  int64_t bytes = 0;
  for (const View& view : plan.views) {
    int64_t numel = 1;
    for (const int64_t size : view.sizes) numel *= size;
    bytes += numel * static_cast<int64_t>(c10::elementSize(view.dtype));
  }
  return plan.steps.size() >= kFewestSteps &&
         bytes / static_cast<int64_t>(plan.steps.size()) < kBytesOfStep;
}

// What operators of other libraries do beside their kernels would happen at a recording only.
std::string foreign_operator(const Plan& plan) {
  for (const Step& step : plan.steps) {
    if (step.op == nullptr) continue;
    const std::string& name = step.op->schema().name;
    if (name.rfind("aten::", 0) != 0) return name + " is an operator of another library";
  }
  return {};
}
} // namespace

std::shared_ptr<Recordings> make_recordings(const Program& program, const Plan& plan) {
  using Record = Program::Record;
  const bool wanted = program.record == Record::Always ||
                      (program.record == Record::LaunchBound && is_launch_bound(plan));
  return wanted ? std::make_shared<Recordings>(written_inputs(program), foreign_operator(plan))
                : nullptr;
}

} // namespace torch::inductor
