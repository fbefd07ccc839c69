// See aoti_model.h.
#include <torch/csrc/inductor/aoti_model.h>

#include <algorithm>

#include <ATen/core/EmptyTensor.h>
#include <ATen/from_blob.h>

namespace torch::inductor {

using at::IValue;
using at::Tensor;

struct AotiModel::Graph {
  const AotiGraph* text = nullptr;
  size_t number = 0;
  std::unique_ptr<Compiled> compiled; // null: operators are called one by one
  // By node: the values that nobody needs after it.
  std::vector<std::vector<int32_t>> dead;
};

struct AotiModel::Constants {
  std::vector<Tensor> all;                   // undefined: not given yet
  std::vector<std::vector<Tensor>> by_graph; // as their programs number them
  bool is_folded = false;
};

namespace {

void note_uses(const Arg& arg, int32_t user, std::vector<int32_t>& last) {
  if (arg.kind == Arg::Kind::Node) last[static_cast<size_t>(arg.node)] = user;
  for (const Arg& item : arg.items) note_uses(item, user, last);
}

std::vector<std::vector<int32_t>> dead_after(const Program& program) {
  const size_t count = program.nodes.size();
  std::vector<int32_t> last(count, -1);
  for (size_t i = 0; i < count; ++i)
    for (const Arg& arg : program.nodes[i].args) note_uses(arg, static_cast<int32_t>(i), last);
  for (const Arg& arg : program.outputs) note_uses(arg, -1, last);
  std::vector<std::vector<int32_t>> dead(count);
  for (size_t i = 0; i < count; ++i)
    if (last[i] >= 0) dead[static_cast<size_t>(last[i])].push_back(static_cast<int32_t>(i));
  return dead;
}

Tensor stored(const AotiConstant& constant, const AotiBytes& weights, at::Device device) {
  TORCH_CHECK(constant.begin <= weights.bytes.size() &&
                  constant.bytes <= weights.bytes.size() - constant.begin,
              "The compiled model cannot be read: the weights of ", constant.fqn, " are cut short");
  char* data = const_cast<char*>(weights.bytes.data()) + constant.begin;
  TORCH_CHECK(aoti_checksum(data, constant.bytes) == constant.checksum,
              "The compiled model cannot be read: the weights of ", constant.fqn,
              " have another checksum");
  const auto size = static_cast<int64_t>(c10::elementSize(constant.dtype));
  const std::shared_ptr<void> keeper = weights.keeper;
  const Tensor bytes = at::from_blob(
      data, {static_cast<int64_t>(constant.bytes)}, [keeper](void*) {},
      at::TensorOptions().dtype(at::kByte));
  const Tensor made = at::detail::checked_tensor(bytes.storage(), constant.dtype, constant.sizes,
                                                 constant.strides, 0);
  // Memory that fits is used where it lies.
  if (device.is_cpu() && reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(size) == 0)
    return made;
  const Tensor own =
      at::detail::empty_strided(constant.sizes, constant.strides, constant.dtype, device);
  own.copy_(made);
  return own;
}

// Results of an operator as one value.
IValue packed(at::Stack& stack) {
  if (stack.size() == 1) return std::move(stack[0]);
  return std::vector<IValue>(stack.begin(), stack.end());
}

bool is_true(const IValue& value) {
  return value.isTensor() ? value.toTensor().item().toBool() : value.toBool();
}

class BelowAutograd {
 private:
  c10::ExcludeDispatchKeyGuard guard_{c10::kAutogradKeys | c10::kAutocastKeys};
};

} // namespace

AotiModel::AotiModel(AotiFile file, const AotiBytes& weights, at::Device device)
    : file_(std::move(file)), device_(device) {
  auto constants = std::make_shared<Constants>();
  for (const AotiConstant& constant : file_.constants)
    constants->all.push_back(constant.in_file ? stored(constant, weights, device_) : Tensor());
  for (size_t i = 0; i < file_.graphs.size(); ++i) {
    const AotiGraph& text = file_.graphs[i];
    auto graph = std::make_unique<Graph>();
    graph->text = &text;
    graph->number = i;
    if (text.planned) {
      Program program = text.program;
      // Plans need to know what constants look like; their values come with each run.
      for (const int32_t c : text.constants) {
        const AotiConstant& constant = file_.constants[static_cast<size_t>(c)];
        program.constants.push_back(at::detail::empty_strided(
            constant.sizes, constant.strides, constant.dtype, at::Device(at::kMeta)));
      }
      graph->compiled = std::make_unique<Compiled>(std::move(program));
    }
    graph->dead = dead_after(text.program);
    graphs_.push_back(std::move(graph));
  }
  bind(*constants);
  active_ = std::move(constants);
}

AotiModel::~AotiModel() = default;

void AotiModel::bind(Constants& constants) const {
  constants.by_graph.clear();
  for (const auto& graph : graphs_) {
    std::vector<Tensor> own;
    for (const int32_t c : graph->text->constants)
      own.push_back(constants.all[static_cast<size_t>(c)]);
    constants.by_graph.push_back(std::move(own));
  }
}

// ---- inputs
void AotiModel::check(const std::vector<Tensor>& inputs) const {
  TORCH_CHECK(inputs.size() == file_.inputs.size(), "the compiled model takes ",
              file_.inputs.size(), " tensors and got ", inputs.size());
  std::vector<int64_t> symbols(file_.symbols.size(), -1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const AotiInput& wanted = file_.inputs[i];
    const Tensor& t = inputs[i];
    const auto refuse = [&](const auto&... what) {
      TORCH_CHECK(false, "Input ", i, " (", wanted.name, ") of the compiled model ", what...);
    };
    if (!t.defined()) refuse("is missing");
    if (wanted.kind != AotiInput::Kind::Tensor) {
      if (t.numel() != 1) refuse("must be one number");
      continue;
    }
    if (t.scalar_type() != wanted.dtype)
      refuse("must be of dtype ", wanted.dtype, " and is ", t.scalar_type());
    if (t.device() != device_) refuse("must be on ", device_, " and is on ", t.device());
    if (t.dim() != static_cast<int64_t>(wanted.sizes.size()))
      refuse("must have ", wanted.sizes.size(), " dimensions and has ", t.dim());
    for (size_t d = 0; d < wanted.sizes.size(); ++d) {
      const AotiSize& size = wanted.sizes[d];
      const int64_t found = t.sizes()[d];
      if (size.kind == AotiSize::Kind::Fixed && found != size.value)
        refuse("must be of size ", size.value, " in dimension ", d, " and is ", found);
      if (size.kind != AotiSize::Kind::Symbol) continue;
      const AotiSymbol& symbol = file_.symbols[static_cast<size_t>(size.symbol)];
      const int64_t value = (found - size.value) / size.factor;
      if (value * size.factor + size.value != found || value < symbol.least || value > symbol.most)
        refuse("has the size ", found, " in dimension ", d, ", which is not ",
               size.factor == 1 && size.value == 0 ? "" : "of the form it was compiled for ",
               "between ", size.factor * symbol.least + size.value, " and ",
               symbol.most > (int64_t(1) << 40)
                   ? std::string("any size")
                   : std::to_string(size.factor * symbol.most + size.value));
      int64_t& known = symbols[static_cast<size_t>(size.symbol)];
      if (known >= 0 && known != value)
        refuse("has the size ", found, " in dimension ", d, ", where ", symbol.name, " is ", known);
      known = value;
    }
  }
}

std::vector<Tensor> AotiModel::run(std::vector<Tensor> inputs) {
  check(inputs);
  std::shared_ptr<Constants> constants;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    active_ = folded(active_);
    constants = active_;
  }
  Values values;
  values.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    switch (file_.inputs[i].kind) {
    case AotiInput::Kind::Tensor:
      values.emplace_back(std::move(inputs[i]));
      break;
    case AotiInput::Kind::Int:
      values.emplace_back(inputs[i].item().toLong());
      break;
    case AotiInput::Kind::Float:
      values.emplace_back(inputs[i].item().toDouble());
      break;
    default:
      values.emplace_back(inputs[i].item().toBool());
    }
  }
  inputs.clear();
  Values found = call(0, std::move(values), *constants);
  std::vector<Tensor> outputs;
  for (IValue& value : found) {
    if (value.isTensor() || value.isNone())
      outputs.push_back(value.toTensor());
    else
      outputs.push_back(at::detail::scalar_tensor(value.toScalar(), value.isInt() ? at::kLong
                                                                    : value.isBool()
                                                                        ? at::kBool
                                                                        : at::kDouble));
  }
  return outputs;
}

// ---- graphs
AotiModel::Values AotiModel::call(size_t number, Values inputs, const Constants& constants) {
  const Graph& graph = *graphs_.at(number);
  TORCH_CHECK(static_cast<int64_t>(inputs.size()) == graph.text->program.inputs,
              "a graph of the compiled model takes ", graph.text->program.inputs,
              " values and got ", inputs.size());
  if (graph.compiled) {
    try {
      return graph.compiled->run(inputs, constants.by_graph[number]);
    } catch (const NotLowered&) {
      // What no plan can be made of is called operator by operator. `inputs` are as they were.
    }
  }
  return interpret(graph, std::move(inputs), constants);
}

AotiModel::Values AotiModel::interpret(const Graph& graph, Values inputs,
                                       const Constants& constants) {
  BelowAutograd below;
  const Program& program = graph.text->program;
  Values env(program.nodes.size());
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    if (node.kind == Node::Kind::Input)
      env[i] = std::move(inputs[static_cast<size_t>(node.index)]);
    else if (node.kind == Node::Kind::Constant)
      env[i] = constants.by_graph[graph.number][static_cast<size_t>(node.index)];
    else
      env[i] = call_node(node, env, constants);
    for (const int32_t d : graph.dead[i]) env[static_cast<size_t>(d)] = IValue();
  }
  return values_of(program.outputs, env);
}

IValue AotiModel::call_node(const Node& node, const Values& env, const Constants& constants) {
  if (node.kind == Node::Kind::Call) {
    at::Stack stack = stack_of(node, env);
    node.op->call_boxed(stack);
    return packed(stack);
  }
  Values args = values_of(node.args, env);
  switch (node.kind) {
  case Node::Kind::Item:
    return item_of(args[0], node.index);
  case Node::Kind::Number:
    return number_result(node.number, args);
  case Node::Kind::Graph:
    return call(static_cast<size_t>(node.graphs[0]), std::move(args), constants);
  case Node::Kind::Branch: {
    const bool taken = is_true(args[0]);
    args.erase(args.begin());
    return call(static_cast<size_t>(node.graphs[taken ? 0 : 1]), std::move(args), constants);
  }
  default:
    return loop(node, std::move(args), constants);
  }
}

// node.index values go from step to step, the rest stay.
IValue AotiModel::loop(const Node& node, Values values, const Constants& constants) {
  const auto carried = static_cast<size_t>(node.index);
  TORCH_CHECK(carried <= values.size(), "a loop of the compiled model has too few values");
  while (true) {
    const Values goes_on = call(static_cast<size_t>(node.graphs[0]), values, constants);
    TORCH_CHECK(goes_on.size() == 1, "a loop of the compiled model has no condition");
    if (!is_true(goes_on[0])) break;
    Values next = call(static_cast<size_t>(node.graphs[1]), values, constants);
    TORCH_CHECK(next.size() == carried, "a step of a loop gives another number of values");
    std::move(next.begin(), next.end(), values.begin());
  }
  values.resize(carried);
  return values;
}

// ---- constants
std::shared_ptr<AotiModel::Constants> AotiModel::folded(std::shared_ptr<Constants> constants) {
  if (constants->is_folded) return constants;
  for (size_t i = 0; i < constants->all.size(); ++i)
    TORCH_CHECK(constants->all[i].defined() || file_.constants[i].folded, "the constant ",
                file_.constants[i].fqn,
                " of the compiled model has no value: it was packaged without; give one by "
                "load_constants");
  auto made = std::make_shared<Constants>(*constants);
  made->is_folded = true;
  if (file_.fold >= 0) {
    const Values found = call(static_cast<size_t>(file_.fold), {}, *made);
    size_t next = 0;
    for (size_t i = 0; i < made->all.size(); ++i) {
      if (!file_.constants[i].folded) continue;
      const Tensor value = found[next++].toTensor();
      TORCH_CHECK(value.defined() && value.sizes() == at::IntArrayRef(file_.constants[i].sizes),
                  "a folded constant of the compiled model has another shape");
      made->all[i] = value;
    }
    bind(*made);
  }
  return made;
}

size_t AotiModel::find_constant(const std::string& name) const {
  for (size_t i = 0; i < file_.constants.size(); ++i) {
    const AotiConstant& constant = file_.constants[i];
    if (!constant.folded && (constant.fqn == name || constant.name == name)) return i;
  }
  TORCH_CHECK(false, "the compiled model has no constant ", name);
}

Tensor AotiModel::laid_out(const Tensor& value, const AotiConstant& constant, bool shared) const {
  TORCH_CHECK(value.defined() && value.scalar_type() == constant.dtype &&
                  value.sizes() == at::IntArrayRef(constant.sizes),
              "the constant ", constant.fqn, " of the compiled model is of dtype ", constant.dtype,
              " and shape ", at::IntArrayRef(constant.sizes), "; the value given is not");
  if (shared) {
    TORCH_CHECK(value.device() == device_ && value.strides() == at::IntArrayRef(constant.strides),
                "the constant ", constant.fqn, " is to stay the caller's memory, so it must be on ",
                device_, " with strides ", at::IntArrayRef(constant.strides));
    return value.detach();
  }
  BelowAutograd below;
  const Tensor own =
      at::detail::empty_strided(constant.sizes, constant.strides, constant.dtype, device_);
  own.copy_(value);
  return own;
}

void AotiModel::update(const std::unordered_map<std::string, Tensor>& values, bool inactive,
                       bool full, bool user_managed) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<Constants>& base = inactive && inactive_ ? inactive_ : active_;
  auto made = std::make_shared<Constants>(*base);
  made->is_folded = false;
  std::vector<bool> given(made->all.size());
  for (const auto& [name, value] : values) {
    const size_t i = find_constant(name);
    made->all[i] = laid_out(value, file_.constants[i], user_managed);
    given[i] = true;
  }
  for (size_t i = 0; full && i < given.size(); ++i)
    TORCH_CHECK(given[i] || file_.constants[i].folded,
                "a full update of the compiled model lacks the constant ", file_.constants[i].fqn);
  bind(*made);
  chosen(inactive) = std::move(made);
}

void AotiModel::swap() {
  std::lock_guard<std::mutex> lock(mutex_);
  TORCH_CHECK(inactive_, "there is no second set of constants to swap in");
  std::swap(active_, inactive_);
}

void AotiModel::free_inactive() {
  std::lock_guard<std::mutex> lock(mutex_);
  inactive_ = nullptr;
}

void AotiModel::fold(bool inactive) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Constants>& set = chosen(inactive);
  TORCH_CHECK(set, "there is no second set of constants");
  set = folded(set);
}

std::unordered_map<std::string, Tensor> AotiModel::constants(bool inactive) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<Constants>& set = inactive ? inactive_ : active_;
  std::unordered_map<std::string, Tensor> found;
  for (size_t i = 0; set && i < set->all.size(); ++i)
    if (!file_.constants[i].folded && set->all[i].defined())
      found[file_.constants[i].fqn] = set->all[i];
  return found;
}

} // namespace torch::inductor
