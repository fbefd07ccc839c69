// Old files become archives of today's form, which the states read themselves: so what a field is
// called, and of which type it is, stays said in one place (`fields` of the state).
#include <torch/csrc/api/src/optim/old_files.h>

#include <set>
#include <sstream>

namespace torch::optim::old_files {
namespace {
struct List {
  const char *name, *field;
};
// Lists with one tensor per parameter.
constexpr List kLists[] = {
    {"step_buffers", "step"},
    {"sum_buffers", "sum"},
    {"momentum_buffers", "momentum_buffer"},
    {"exp_average_buffers", "exp_avg"},
    {"exp_average_sq_buffers", "exp_avg_sq"},
    {"max_exp_average_sq_buffers", "max_exp_avg_sq"},
    {"square_average_buffers", "square_avg"},
    {"grad_average_buffers", "grad_avg"},
};
// L-BFGS has one state for all parameters, kept with the first.
constexpr const char* kTensors[] = {"d", "H_diag", "prev_flat_grad"};
constexpr const char* kNumbers[] = {"t", "prev_loss"};
constexpr const char* kTensorLists[] = {"old_dirs", "old_stps"};

class State {
 public:
  explicit State(serialize::InputArchive& file) : file_(file) {}

  void take_lists(size_t index) {
    for (const List& list : kLists) {
      Tensor value;
      if (!file_.try_read(list.name + ("/" + std::to_string(index)), value, true)) continue;
      if (std::string(list.field) == "step")
        write(list.field, IValue(value.item<int64_t>()));
      else
        write(list.field, value);
    }
  }
  void take_common() {
    for (const char* name : kTensors) {
      Tensor value;
      if (file_.try_read(name, value, true)) write(name, value);
    }
    for (const char* name : kNumbers) {
      Tensor value;
      if (file_.try_read(name, value, true)) write(name, IValue(value.item<double>()));
    }
    for (const char* name : kTensorLists) {
      Tensor size;
      const std::string prefix = std::string(name) + "/";
      if (!file_.try_read(prefix + "size", size)) continue;
      std::vector<Tensor> values(static_cast<size_t>(size.item<int64_t>()));
      for (size_t i = 0; i < values.size(); ++i)
        file_.read(prefix + std::to_string(i), values[i], true);
      write(name, IValue(values));
    }
  }
  bool empty() const { return names_.empty(); }
  void fill_up(const OptimizerParamState& fresh) {
    serialize::OutputArchive written;
    fresh.serialize(written);
    serialize::InputArchive defaults = reread(written);
    for (const std::string& name : defaults.keys()) {
      IValue value;
      if (names_.count(name) == 0 && defaults.try_read(name, value)) write(name, value);
    }
  }
  serialize::InputArchive result() { return reread(archive_); }

 private:
  void write(const std::string& name, const IValue& value) {
    archive_.write(name, value);
    names_.insert(name);
  }
  void write(const std::string& name, const Tensor& value) {
    archive_.write(name, value, /*is_buffer=*/true);
    names_.insert(name);
  }
  static serialize::InputArchive reread(serialize::OutputArchive& archive) {
    std::stringstream stream;
    archive.save_to(stream);
    serialize::InputArchive again;
    again.load_from(stream);
    return again;
  }

  serialize::InputArchive& file_;
  serialize::OutputArchive archive_;
  std::set<std::string> names_;
};
} // namespace

bool find_state(serialize::InputArchive& file, size_t index, const OptimizerParamState& fresh,
                serialize::InputArchive& found) {
  State state(file);
  state.take_lists(index);
  if (index == 0) state.take_common();
  if (state.empty()) return false;
  state.fill_up(fresh);
  found = state.result();
  return true;
}

} // namespace torch::optim::old_files
