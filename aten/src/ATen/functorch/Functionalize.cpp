// The functionalize level: programs without writes. An in-place or out= operator becomes its
// functional form, whose result takes the place of the tensor's value. Views remember how they were
// made from the tensor they alias; a write to one is carried back to that tensor, view by view, and
// the others are made anew when next used.
#include <ATen/functorch/Interpret.h>

#include <ATen/ops/_conj.h>
#include <ATen/ops/as_strided_scatter.h>
#include <ATen/ops/diagonal_scatter.h>
#include <ATen/ops/select_scatter.h>
#include <ATen/ops/slice_scatter.h>
#include <ATen/ops/view_as_complex.h>

namespace at::functorch {

// One view operator with its arguments but the tensor.
struct ViewStep {
  const OperatorEntry* op; // what is run: the view, or its copying form
  std::string name;        // of the view
  Stack args;
  size_t output = 0; // which result, of an operator with several
};

// A tensor that views alias.
struct Aliased {
  Tensor base;
  uint64_t writes = 0;
};

struct FunctionalState {
  std::shared_ptr<Aliased> aliased;
  std::vector<ViewStep> steps; // from the base to this tensor
  uint64_t seen = 0;           // writes that the value accounts for
};

const OperatorEntry* functional_of(const OperatorEntry& op) {
  std::string name = op.name;
  if (!name.empty() && name.back() == '_') name.pop_back();
  const FunctionSchema& schema = op.schema();
  for (const OperatorEntry* candidate : Dispatcher::singleton().overloads(name)) {
    if ((candidate->flags & kOpMutates) != 0) continue;
    const auto& theirs = candidate->schema().arguments;
    size_t k = 0;
    bool same = true;
    for (const SchemaArgument& a : schema.arguments) {
      if (a.is_out) continue;
      same = same && k < theirs.size() && theirs[k].name == a.name &&
             theirs[k].type.str() == a.type.str();
      ++k;
    }
    if (same && k == theirs.size()) return candidate;
  }
  return nullptr;
}

namespace {

std::vector<Tensor> tensors_of(const Stack& stack) {
  std::vector<Tensor> out;
  for (const IValue& v : stack) each_tensor(v, [&](const Tensor& t) { out.push_back(t); });
  return out;
}

Tensor apply(const ViewStep& step, const Tensor& t) {
  Stack stack = step.args;
  stack[0] = IValue(t);
  step.op->call_boxed(stack);
  return tensors_of(stack).at(step.output);
}

std::vector<int64_t> list_at(const ViewStep& step, size_t i) {
  return step.args[i].isInt() ? std::vector<int64_t>{step.args[i].toInt()}
                              : step.args[i].toIntList();
}
std::optional<int64_t> optional_at(const ViewStep& step, size_t i) {
  return step.args[i].isNone() ? std::nullopt : std::optional<int64_t>(step.args[i].toInt());
}

// The part of `before` that one of several results covers, replaced.
Tensor replace_part(const ViewStep& step, const Tensor& before, const Tensor& now) {
  const int64_t dim = step.args.back().toInt();
  const int64_t d = dim < 0 ? dim + before.dim() : dim;
  if (step.name == "aten::unbind.int")
    return at::select_scatter(before, now, d, static_cast<int64_t>(step.output));
  int64_t start = 0;
  if (step.name == "aten::split.Tensor") {
    start = step.args[1].toInt() * static_cast<int64_t>(step.output);
  } else {
    const std::vector<int64_t> sizes = list_at(step, 1);
    for (size_t i = 0; i < step.output; ++i) start += sizes[i];
  }
  return at::slice_scatter(before, now, d, start, start + now.sizes()[d], 1);
}

// The tensor a view was made of, with `now` where the view is.
Tensor undo(const ViewStep& step, const Tensor& before, const Tensor& now) {
  const std::string& name = step.name;
  auto integer = [&](size_t i) { return step.args[i].toInt(); };
  if (name == "aten::select.int") return at::select_scatter(before, now, integer(1), integer(2));
  if (name == "aten::slice.Tensor")
    return at::slice_scatter(before, now, integer(1), optional_at(step, 2), optional_at(step, 3),
                             integer(4));
  if (name == "aten::diagonal")
    return at::diagonal_scatter(before, now, integer(1), integer(2), integer(3));
  if (name == "aten::transpose.int") return now.transpose(integer(1), integer(2));
  if (name == "aten::t") return now.dim() < 2 ? now : now.transpose(0, 1);
  if (name == "aten::permute") {
    const std::vector<int64_t> order = list_at(step, 1);
    std::vector<int64_t> back(order.size());
    for (size_t d = 0; d < order.size(); ++d)
      back[order[d] < 0 ? order[d] + before.dim() : order[d]] = static_cast<int64_t>(d);
    return now.permute(back);
  }
  if (name == "aten::unbind.int" || name == "aten::split.Tensor" ||
      name == "aten::split_with_sizes")
    return replace_part(step, before, now);
  if (name == "aten::as_strided")
    return at::as_strided_scatter(before, now, list_at(step, 1), list_at(step, 2),
                                  optional_at(step, 3));
  if (name == "aten::view_as_real") return at::view_as_complex(now.contiguous());
  if (name == "aten::_conj") return at::_conj(now);
  const bool same_elements =
      before.numel() == now.numel() && before.scalar_type() == now.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(same_elements && name != "aten::unfold",
                              "functionalize: a write to "
                              "the result of ",
                              name, " is not implemented");
  return now.reshape(before.sizes());
}

WrapperImpl* synced(const Tensor& t, const Level& level) {
  WrapperImpl* w = wrapper_at(t, level);
  if (w == nullptr) return nullptr;
  FunctionalState& state = *w->functional;
  if (state.seen == state.aliased->writes) return w;
  Tensor value = state.aliased->base;
  for (const ViewStep& step : state.steps) value = apply(step, value);
  w->value = std::move(value);
  w->refresh();
  state.seen = state.aliased->writes;
  return w;
}

void write(const Tensor& t, const Tensor& value, const Level& level) {
  WrapperImpl* w = synced(t, level);
  FunctionalState& state = *w->functional;
  std::vector<Tensor> before{state.aliased->base};
  for (const ViewStep& step : state.steps) before.push_back(apply(step, before.back()));
  Tensor now = value;
  for (size_t k = state.steps.size(); k-- > 0;) now = undo(state.steps[k], before[k], now);
  // Views were possible on the base as it lies in memory, and must be on the new one.
  if (state.aliased->base.is_contiguous() && now.sizes() == state.aliased->base.sizes())
    now = now.contiguous();
  state.aliased->base = now;
  state.seen = ++state.aliased->writes;
  w->value = value;
  w->refresh();
  w->bump_version();
}

struct FunctionalCall {
  const OperatorEntry& op;
  const FunctionSchema& schema;
  Stack args;
  LevelPtr level;

  Stack values() const {
    Stack out = args;
    for (IValue& v : out) {
      map_tensors(v, [&](const Tensor& t) {
        const WrapperImpl* w = synced(t, *level);
        return w != nullptr ? w->value : t;
      });
    }
    return out;
  }
};

// The value as the tensor that is written has it.
Tensor fitting(const Tensor& target, const Tensor& value, bool out_argument) {
  Tensor fit = value.scalar_type() == target.scalar_type() ? value : value.to(target.scalar_type());
  if (out_argument || fit.sizes() == target.sizes()) return fit;
  TORCH_CHECK(static_cast<size_t>(fit.dim()) <= target.sizes().size(), "output with shape ",
              target.sizes(), " doesn't match the broadcast shape ", fit.sizes());
  return fit.expand(target.sizes());
}

void run_write(const FunctionalCall& call, Stack& results) {
  std::vector<size_t> places;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!writes(call.schema, i)) continue;
    places.push_back(i);
    each_tensor(call.args[i], [&](const Tensor& t) {
      TORCH_CHECK(
          wrapper_at(t, *call.level) != nullptr,
          "mutating a non-functional tensor with a functional tensor is not allowed. Please "
          "ensure that all of your inputs are wrapped inside of a functionalize() call.");
    });
  }
  Stack stack = call.values();
  const OperatorEntry* functional = functional_of(call.op);
  if (functional != nullptr) {
    Stack arguments;
    for (size_t i = 0; i < stack.size(); ++i)
      if (!call.schema.arguments[i].is_out) arguments.push_back(stack[i]);
    functional->call_boxed(arguments);
    stack = std::move(arguments);
  } else {
    // No such form: a copy is written, and nobody else sees it.
    for (const size_t i : places) map_tensors(stack[i], [](const Tensor& t) { return t.clone(); });
    const Stack copies = stack;
    call.op.call_boxed(stack);
    stack.clear();
    for (const size_t i : places) stack.push_back(copies[i]);
  }
  const std::vector<Tensor> values = tensors_of(stack);
  size_t k = 0;
  for (const size_t i : places) {
    each_tensor(call.args[i], [&](const Tensor& t) {
      if (k < values.size())
        write(t, fitting(t, values[k], call.schema.arguments[i].is_out), *call.level);
      ++k;
    });
    if (results.size() < call.schema.returns.size()) results.push_back(call.args[i]);
  }
}

Tensor wrap_view(const FunctionalCall& call, const Tensor& of, const Tensor& value, ViewStep step) {
  Tensor out = wrap_functional(value, call.level);
  const FunctionalState& from = *wrapper_at(of, *call.level)->functional;
  FunctionalState& state = *wrapper_at(out, *call.level)->functional;
  state = from;
  state.steps.push_back(std::move(step));
  return out;
}

const OperatorEntry* view_operator(const FunctionalCall& call) {
  if (!call.level->removes_views) return &call.op;
  const OperatorEntry* copy =
      Dispatcher::singleton().find(std::string(call.op.name) + "_copy", call.op.overload);
  return copy != nullptr ? copy : &call.op;
}

void run_view(const FunctionalCall& call, Stack& results) {
  const OperatorEntry* op = view_operator(call);
  Stack stack = call.values();
  ViewStep step{op, call.op.full_name(), call.values(), 0};
  step.args[0] = IValue();
  op->call_boxed(stack);
  const Tensor of = call.args[0].toTensor();
  size_t k = 0;
  for (IValue& v : stack) {
    map_tensors(v, [&](const Tensor& t) {
      step.output = k++;
      return wrap_view(call, of, t, step);
    });
    results.push_back(std::move(v));
  }
}

// unsqueeze_ and the like: the tensor becomes a view of what it was.
void run_inplace_view(const FunctionalCall& call, Stack& results) {
  std::string name = call.op.name;
  name.pop_back();
  Dispatcher& all = Dispatcher::singleton();
  const OperatorEntry* view = all.find(name, call.op.overload);
  if (view == nullptr) view = all.find(name, "int");
  TORCH_CHECK_NOT_IMPLEMENTED(view != nullptr, "functionalize: ", call.op.full_name(),
                              " is not implemented");
  const FunctionalCall made{*view, view->schema(), call.args, call.level};
  Stack out;
  run_view(made, out);
  const Tensor self = call.args[0].toTensor(), result = out[0].toTensor();
  WrapperImpl *mine = wrapper_at(self, *call.level), *theirs = wrapper_at(result, *call.level);
  mine->value = theirs->value;
  *mine->functional = *theirs->functional;
  mine->refresh();
  results.push_back(call.args[0]);
}
} // namespace

Tensor wrap_functional(const Tensor& value, const LevelPtr& level) {
  Tensor out = make_tensor<WrapperImpl>(value, level, -1);
  auto state = std::make_shared<FunctionalState>();
  state->aliased = std::make_shared<Aliased>();
  state->aliased->base = value;
  wrapper_at(out, *level)->functional = std::move(state);
  return out;
}
Tensor functional_value(const Tensor& t, const Level& level) {
  const WrapperImpl* w = synced(t, level);
  return w != nullptr ? w->value : t;
}
bool was_written(const Tensor& t, const Level& level) {
  const WrapperImpl* w = wrapper_at(t, level);
  return w != nullptr && w->functional->aliased->writes != 0;
}

void run_functional(const OperatorEntry& op, Stack& stack, size_t from, const LevelPtr& level) {
  const FunctionalCall call{op, op.schema(),
                            Stack(stack.begin() + static_cast<std::ptrdiff_t>(from), stack.end()),
                            level};
  Stack results;
  // What is below knows nothing of this level: its own temporaries are plain.
  c10::ExcludeDispatchKeyGuard guard(kFunctionalizeMode);
  const bool of_level = !call.args.empty() && call.args[0].isTensor() &&
                        wrapper_at(call.args[0].toTensor(), *level) != nullptr;
  bool any = false;
  for (const IValue& v : call.args)
    each_tensor(v, [&](const Tensor& t) { any = any || wrapper_at(t, *level) != nullptr; });
  if ((op.flags & kOpMutates) != 0 && !any) {
    // A tensor made outside of the dispatcher, written by others of its kind.
    results = call.args;
    op.call_boxed(results);
  } else if ((op.flags & kOpMutates) != 0) {
    const bool geometry = std::string(op.tags_text).find("inplace_view") != std::string::npos;
    if (geometry && of_level) {
      run_inplace_view(call, results);
    } else {
      run_write(call, results);
    }
  } else if ((op.flags & kOpView) != 0 && of_level) {
    run_view(call, results);
  } else {
    results = call.values();
    op.call_boxed(results);
    for (IValue& v : results)
      map_tensors(v, [&](const Tensor& t) { return wrap_functional(t, level); });
  }
  stack.resize(from);
  for (IValue& v : results) stack.push_back(std::move(v));
}

} // namespace at::functorch
