// Groups, states, files and learning rates of optimizers.
#include <torch/csrc/api/src/optim/old_files.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <cstdio>
#include <limits>
#include <unordered_set>

namespace torch::optim {

OptimizerParamState::~OptimizerParamState() = default;
OptimizerOptions::~OptimizerOptions() = default;
double OptimizerOptions::get_lr() const {
  TORCH_CHECK(false, "double get_lr() has not been overidden and implemented in subclass of "
                     "torch::optim::OptimizerOptions, you must override it in your subclass.");
  return 0;
}
void OptimizerOptions::set_lr(const double) {
  TORCH_CHECK(false, "double set_lr() has not been overidden and implemented in subclass of "
                     "torch::optim::OptimizerOptions, you must override it in your subclass.");
}
OptimizerOptions& OptimizerParamGroup::options() {
  TORCH_CHECK(options_ != nullptr, "the group of parameters has no options");
  return *options_;
}
const OptimizerOptions& OptimizerParamGroup::options() const {
  return const_cast<OptimizerParamGroup*>(this)->options();
}

// ---- fields
namespace detail {
void throw_not_serializable() {
  TORCH_CHECK(false, "serialize has not been implemented for this subclass of "
                     "torch::optim::OptimizerOptions or OptimizerParamState: give it `fields`, or "
                     "override serialize");
  __builtin_unreachable();
}

void FieldWriter::operator()(const char* name, const double& v) { archive_.write(name, IValue(v)); }
void FieldWriter::operator()(const char* name, const int64_t& v) {
  archive_.write(name, IValue(v));
}
void FieldWriter::operator()(const char* name, const bool& v) { archive_.write(name, IValue(v)); }
void FieldWriter::operator()(const char* name, const Tensor& v) {
  if (v.defined()) archive_.write(name, v, /*is_buffer=*/true);
}
void FieldWriter::operator()(const char* name, const std::tuple<double, double>& v) {
  archive_.write(name, IValue(std::vector<double>{std::get<0>(v), std::get<1>(v)}));
}
void FieldWriter::operator()(const char* name, const std::optional<int64_t>& v) {
  if (v) archive_.write(name, IValue(*v));
}
void FieldWriter::operator()(const char* name, const std::optional<std::string>& v) {
  if (v) archive_.write(name, IValue(*v));
}
void FieldWriter::operator()(const char* name, const std::deque<Tensor>& v) {
  archive_.write(name, IValue(std::vector<Tensor>(v.begin(), v.end())));
}
void FieldWriter::operator()(const char* name, const std::optional<std::vector<Tensor>>& v) {
  if (!v) return;
  // Entries may be missing; a list in a file has none that are.
  serialize::OutputArchive entries;
  entries.write("size", IValue(int64_t(v->size())));
  for (size_t i = 0; i < v->size(); ++i)
    if ((*v)[i].defined()) entries.write(std::to_string(i), (*v)[i], /*is_buffer=*/true);
  archive_.write(name, entries);
}

void FieldReader::operator()(const char* name, double& v) {
  IValue value;
  archive_.read(name, value);
  v = value.toDouble();
}
void FieldReader::operator()(const char* name, int64_t& v) {
  IValue value;
  archive_.read(name, value);
  v = value.toInt();
}
void FieldReader::operator()(const char* name, bool& v) {
  IValue value;
  archive_.read(name, value);
  v = value.toBool();
}
void FieldReader::operator()(const char* name, Tensor& v) {
  Tensor value;
  if (archive_.try_read(name, value, /*is_buffer=*/true)) v = value;
}
void FieldReader::operator()(const char* name, std::tuple<double, double>& v) {
  IValue value;
  archive_.read(name, value);
  const std::vector<double> both = value.toDoubleList();
  TORCH_CHECK(both.size() == 2, name, " in a file must be two numbers, got ", both.size());
  v = std::make_tuple(both[0], both[1]);
}
void FieldReader::operator()(const char* name, std::optional<int64_t>& v) {
  IValue value;
  v = archive_.try_read(name, value) ? std::optional<int64_t>(value.toInt()) : std::nullopt;
}
void FieldReader::operator()(const char* name, std::optional<std::string>& v) {
  IValue value;
  v = archive_.try_read(name, value) ? std::optional<std::string>(value.toStringRef())
                                     : std::nullopt;
}
void FieldReader::operator()(const char* name, std::deque<Tensor>& v) {
  IValue value;
  v.clear();
  if (!archive_.try_read(name, value)) return;
  const std::vector<Tensor> list = value.toTensorList();
  v.assign(list.begin(), list.end());
}
void FieldReader::operator()(const char* name, std::optional<std::vector<Tensor>>& v) {
  serialize::InputArchive entries;
  v.reset();
  if (!archive_.try_read(name, entries)) return;
  IValue size;
  entries.read("size", size);
  v.emplace(static_cast<size_t>(size.toInt()));
  for (size_t i = 0; i < v->size(); ++i)
    entries.try_read(std::to_string(i), (*v)[i], /*is_buffer=*/true);
}

bool same_field(const Tensor& a, const Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || at::equal(a, b));
}
namespace {
template <class List> bool same_list(const List& a, const List& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same_field(a[i], b[i])) return false;
  return true;
}
} // namespace
bool same_field(const std::deque<Tensor>& a, const std::deque<Tensor>& b) {
  return same_list(a, b);
}
bool same_field(const std::optional<std::vector<Tensor>>& a,
                const std::optional<std::vector<Tensor>>& b) {
  return a.has_value() == b.has_value() && (!a || same_list(*a, *b));
}
} // namespace detail

// ---- the optimizer
Optimizer::Optimizer(const std::vector<OptimizerParamGroup>& param_groups,
                     std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  for (const OptimizerParamGroup& group : param_groups) add_param_group(group);
}
Optimizer::~Optimizer() = default;

void Optimizer::add_param_group(const OptimizerParamGroup& param_group) {
  for (const Tensor& parameter : param_group.params())
    TORCH_CHECK(autograd::is_leaf(parameter), "can't optimize a non-leaf Tensor");
  OptimizerParamGroup group = param_group;
  if (!group.has_options()) group.set_options(defaults_->clone());
  std::unordered_set<void*> known;
  for (const OptimizerParamGroup& other : param_groups_)
    for (const Tensor& p : other.params()) known.insert(p.unsafeGetTensorImpl());
  for (const Tensor& p : group.params())
    TORCH_CHECK(known.insert(p.unsafeGetTensorImpl()).second,
                "some parameters appear in more than one parameter group");
  param_groups_.push_back(std::move(group));
}

Tensor Optimizer::loss_of(const LossClosure& closure) {
  if (!closure) return {};
  const AutoGradMode with_gradients(true);
  return closure();
}
void Optimizer::zero_grad(bool set_to_none) {
  for (OptimizerParamGroup& group : param_groups_)
    for (Tensor& p : group.params()) {
      Tensor& grad = p.mutable_grad();
      if (!grad.defined()) continue;
      if (set_to_none)
        grad.reset();
      else
        grad.detach_().zero_();
    }
}

// The interface of a single group, kept for programs that were written for it.
void Optimizer::add_parameters(const std::vector<Tensor>& parameters) {
  TORCH_WARN("Optimizer::add_parameters() will be removed in PyTorch 1.6");
  std::vector<Tensor>& all = param_groups_.at(0).params();
  all.insert(all.end(), parameters.begin(), parameters.end());
}
const std::vector<Tensor>& Optimizer::parameters() const noexcept {
  TORCH_WARN("Optimizer::parameters() will be removed in PyTorch 1.6");
  return param_groups_.at(0).params();
}
std::vector<Tensor>& Optimizer::parameters() noexcept {
  TORCH_WARN("Optimizer::parameters() will be removed in PyTorch 1.6");
  return param_groups_.at(0).params();
}
size_t Optimizer::size() const noexcept {
  TORCH_WARN("Optimizer::size() will be removed in PyTorch 1.6");
  size_t count = 0;
  for (const OptimizerParamGroup& group : param_groups_) count += group.params().size();
  return count;
}

// In a file parameters are numbered through all groups.
void Optimizer::save(serialize::OutputArchive& archive) const {
  serialize::OutputArchive groups, states;
  int64_t number = 0;
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    serialize::OutputArchive group, options;
    group.write("count", IValue(int64_t(param_groups_[g].params().size())));
    param_groups_[g].options().serialize(options);
    group.write("options", options);
    groups.write(std::to_string(g), group);
    for (const Tensor& p : param_groups_[g].params()) {
      const auto found = state_.find(p.unsafeGetTensorImpl());
      if (found != state_.end()) {
        serialize::OutputArchive state;
        found->second->serialize(state);
        states.write(std::to_string(number), state);
      }
      ++number;
    }
  }
  archive.write("param_groups", groups);
  archive.write("state", states);
}

namespace {

// The groups of a file, ours or PyTorch's. There a group says how many parameters it has and by
// which name each has its state; here states are numbered through all groups.
class GroupsInFile {
 public:
  explicit GroupsInFile(serialize::InputArchive& groups) : groups_(groups) {
    IValue size;
    foreign_ = groups.try_read("param_groups/size", size);
    size_ = foreign_ ? number_in(size) : static_cast<int64_t>(groups.keys().size());
  }
  size_t size() const { return static_cast<size_t>(size_); }
  serialize::InputArchive group(size_t index) const {
    serialize::InputArchive out;
    groups_.read((foreign_ ? "param_groups/" : "") + std::to_string(index), out);
    return out;
  }
  int64_t count(serialize::InputArchive& group) const {
    IValue count;
    group.read(foreign_ ? "params/size" : "count", count);
    return number_in(count);
  }
  std::string state(serialize::InputArchive& group, size_t index, int64_t number) const {
    if (!foreign_) return std::to_string(number);
    IValue name;
    group.read("params/" + std::to_string(index), name);
    return name.toStringRef();
  }

 private:
  static int64_t number_in(const IValue& value) {
    return value.isTensor() ? value.toTensor().item<int64_t>() : value.toInt();
  }
  serialize::InputArchive& groups_;
  bool foreign_ = false;
  int64_t size_ = 0;
};

} // namespace

void Optimizer::load(serialize::InputArchive& archive) {
  serialize::InputArchive groups, states;
  const std::unique_ptr<OptimizerParamState> fresh = make_state();
  if (fresh != nullptr && !archive.try_read("param_groups", groups)) {
    TORCH_WARN("The file of this optimizer has the old serialization format of LibTorch before "
               "1.5: it has states but no options. Save it again to have both.");
    state_.clear();
    TORCH_CHECK(!param_groups_.empty(), "the optimizer has no group of parameters to load into");
    const std::vector<Tensor>& params = param_groups_[0].params();
    for (size_t i = 0; i < params.size(); ++i) {
      serialize::InputArchive saved;
      if (!old_files::find_state(archive, i, *fresh, saved)) continue;
      std::unique_ptr<OptimizerParamState> state = make_state();
      state->serialize(saved);
      state_[params[i].unsafeGetTensorImpl()] = std::move(state);
    }
    return;
  }
  archive.read("param_groups", groups);
  archive.read("state", states);
  const GroupsInFile file(groups);
  TORCH_CHECK(file.size() == param_groups_.size(),
              "loaded state dict has a different number of parameter groups");
  state_.clear();
  int64_t number = 0;
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    serialize::InputArchive group = file.group(g), options;
    TORCH_CHECK(file.count(group) == int64_t(param_groups_[g].params().size()),
                "loaded state dict contains a parameter group that has a different size than the "
                "optimizer's parameter group");
    group.read("options", options);
    param_groups_[g].options().serialize(options);
    for (size_t i = 0; i < param_groups_[g].params().size(); ++i) {
      const Tensor& p = param_groups_[g].params()[i];
      serialize::InputArchive saved;
      if (states.try_read(file.state(group, i, number++), saved)) {
        std::unique_ptr<OptimizerParamState> state = make_state();
        TORCH_CHECK(state != nullptr, "the file has states, but this optimizer keeps none");
        state->serialize(saved);
        state_[p.unsafeGetTensorImpl()] = std::move(state);
      }
    }
  }
}
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const Optimizer& optimizer) {
  optimizer.save(archive);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer) {
  optimizer.load(archive);
  return archive;
}

// ---- learning rates
LRScheduler::~LRScheduler() = default;
void LRScheduler::step() {
  const std::vector<double> lrs = get_lrs();
  for (size_t i = 0; i < lrs.size(); ++i) optimizer_.param_groups()[i].options().set_lr(lrs[i]);
  ++step_count_;
}
std::vector<double> LRScheduler::get_current_lrs() const {
  std::vector<double> out;
  for (const OptimizerParamGroup& group : optimizer_.param_groups())
    out.push_back(group.options().get_lr());
  return out;
}
std::vector<double> StepLR::get_lrs() {
  std::vector<double> lrs = get_current_lrs();
  if (step_count_ != 0 && step_count_ % step_size_ == 0)
    for (double& lr : lrs) lr *= gamma_;
  return lrs;
}

ReduceLROnPlateauScheduler::ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode,
                                                       float factor, int patience, double threshold,
                                                       ThresholdMode threshold_mode, int cooldown,
                                                       const std::vector<float>& min_lr, double eps,
                                                       bool verbose)
    : optimizer_(optimizer), mode_(mode), threshold_mode_(threshold_mode), factor_(factor),
      threshold_(threshold), eps_(eps),
      best_(mode == min ? std::numeric_limits<double>::infinity()
                        : -std::numeric_limits<double>::infinity()),
      patience_(patience), cooldown_(cooldown), min_lrs_(min_lr), verbose_(verbose) {
  TORCH_CHECK(factor < 1.0, "Factor should be < 1.0.");
  const size_t groups = optimizer.param_groups().size();
  if (min_lrs_.empty()) min_lrs_.assign(groups, 0.f);
  TORCH_CHECK(min_lrs_.size() == groups,
              "Number of learning rates not equal to the number of "
              "param groups: ",
              min_lrs_.size(), " and ", groups);
}
ReduceLROnPlateauScheduler::~ReduceLROnPlateauScheduler() = default;
bool ReduceLROnPlateauScheduler::is_better(double metric) const {
  const double sign = mode_ == min ? -1 : 1;
  const double margin = threshold_mode_ == abs ? threshold_ : threshold_ * best_;
  if (best_ - best_ != 0) return sign * metric > sign * best_; // no measure yet
  return sign * metric > sign * (best_ + sign * margin);
}
void ReduceLROnPlateauScheduler::reduce() {
  for (size_t i = 0; i < optimizer_.param_groups().size(); ++i) {
    OptimizerOptions& options = optimizer_.param_groups()[i].options();
    const double before = options.get_lr();
    const double after = std::max(before * factor_, double(min_lrs_[i]));
    if (before - after <= eps_) continue;
    options.set_lr(after);
    if (verbose_) std::printf("reducing learning rate of group %zu to %g\n", i, after);
  }
}
void ReduceLROnPlateauScheduler::step(float metric) {
  if (is_better(metric)) {
    best_ = metric;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooling_ > 0) {
    --cooling_;
    bad_steps_ = 0;
  }
  if (bad_steps_ > patience_) {
    reduce();
    cooling_ = cooldown_;
    bad_steps_ = 0;
  }
}

} // namespace torch::optim
