// Random operators under vmap. What they do is the user's choice: refuse, draw the same numbers for
// every sample, or draw for each.
#include <ATen/functorch/BatchRule.h>

namespace at::functorch {
namespace {

struct LimitScope {
  explicit LimitScope(uint64_t limit) : before(random_limit()) { random_limit() = limit; }
  ~LimitScope() { random_limit() = before; }
  uint64_t before;
};

bool is_size_argument(const SchemaArgument& a) {
  return a.name == "size" && a.type.is_list &&
         (a.type.kind == SchemaType::Kind::SymInt || a.type.kind == SchemaType::Kind::Int);
}

// The values of the argument do not matter, only its shape (rand_like, uniform_).
bool only_shape_matters(const OperatorEntry& op) {
  const std::string name = op.name;
  if (name == "aten::bernoulli") return op.overload[0] == 'p';
  return name != "aten::normal" && name != "aten::multinomial" && name != "aten::native_dropout" &&
         name != "aten::rrelu_with_noise";
}

// One draw for all: the operator on one sample, seen by every other.
void run_same(Call& call, bool any_batched) {
  if (!any_batched) {
    Stack stack = call.args;
    call.op.call_boxed(stack);
    call.results = std::move(stack);
    return;
  }
  bool shape_only = only_shape_matters(call.op);
  for (size_t i = 1; i < call.args.size(); ++i)
    each_tensor(call.args[i],
                [&](const Tensor& t) { shape_only = shape_only && !call.batched(t); });
  TORCH_CHECK(shape_only,
              "Vmap does not currently support same randomness with a batched tensor input: ",
              call.op.full_name());
  const Tensor self = call.tensor(0);
  const bool mutates = (call.op.flags & kOpMutates) != 0;
  Stack stack = call.args;
  const Tensor sample = call.front(self).select(0, 0);
  stack[0] = IValue(mutates ? sample.clone() : sample);
  call.op.call_boxed(stack);
  if (!mutates) {
    call.results = std::move(stack);
    return;
  }
  call.front(self).copy_(stack[0].toTensor());
  call.results.push_back(call.args[0]);
}

// Samples one after the other, where an operator has no form for all at once.
void run_each(Call& call) {
  std::vector<Stack> all;
  for (int64_t b = 0; b < call.batch(); ++b) {
    Stack stack = call.args;
    for (IValue& v : stack) {
      map_tensors(
          v, [&](const Tensor& t) { return call.batched(t) ? call.front(t).select(0, b) : t; });
    }
    call.op.call_boxed(stack);
    all.push_back(std::move(stack));
  }
  for (size_t i = 0; !all.empty() && i < all[0].size(); ++i) {
    std::vector<Tensor> samples;
    for (Stack& s : all) samples.push_back(s[i].toTensor().unsqueeze(0));
    Tensor out = samples[0];
    if (samples.size() > 1) {
      Stack cat{IValue(samples), IValue(int64_t(0))};
      Dispatcher::singleton().find("aten::cat", "")->call_boxed(cat);
      out = cat[0].toTensor();
    }
    call.give(out);
  }
}

void run_different(Call& call, bool any_batched) {
  const std::string name = call.op.name;
  const bool mutates = (call.op.flags & kOpMutates) != 0;
  const bool noise = name == "aten::rrelu_with_noise";
  if (mutates && !noise) {
    TORCH_CHECK(call.batched(call.tensor(0)),
                "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This "
                "will appear like same randomness.");
  }
  if (name == "aten::randperm" || noise || (name == "aten::multinomial" && !any_batched)) {
    run_each(call);
    return;
  }
  const int64_t rank = call.max_rank();
  Stack stack = call.args;
  bool grown = false;
  for (size_t i = 0; i < stack.size(); ++i) {
    map_tensors(stack[i], [&](const Tensor& t) {
      // The first tensor gives the result its shape; the others broadcast.
      const bool shape = !grown;
      grown = true;
      return shape && !call.batched(t) ? call.expanded(t) : call.padded(t, rank);
    });
    if (is_size_argument(call.schema.arguments[i])) {
      std::vector<int64_t> size = stack[i].toIntList();
      size.insert(size.begin(), call.batch());
      stack[i] = IValue(std::move(size));
    }
    if (call.schema.arguments[i].type.kind == SchemaType::Kind::MemoryFormat && !stack[i].isNone())
      stack[i] = IValue(MemoryFormat::Contiguous);
  }
  if (name == "aten::multinomial" && rank > 1) {
    const Tensor weights = stack[0].toTensor();
    const int64_t rows = weights.sizes()[1];
    stack[0] = IValue(weights.flatten(0, 1));
    call.op.call_boxed(stack);
    const Tensor drawn = stack[0].toTensor();
    call.give(drawn.reshape({call.batch(), rows, drawn.sizes()[1]}));
    return;
  }
  if (mutates) {
    call.op.call_boxed(stack);
    call.results.push_back(call.args[0]);
    return;
  }
  call.run(std::move(stack));
}
} // namespace

void run_random(const OperatorEntry& op, Stack& stack, size_t from, const LevelPtr& level) {
  TORCH_CHECK(level->randomness != Randomness::Error,
              "vmap: called random operation while in randomness error mode. Please either use the "
              "'same' or 'different' randomness flags on vmap or perform the randomness operation "
              "out of vmap");
  Call call{
      op,    op.schema(), Stack(stack.begin() + static_cast<std::ptrdiff_t>(from), stack.end()),
      level, 0,           {}};
  bool any_batched = false;
  for (const IValue& v : call.args)
    each_tensor(v, [&](const Tensor& t) { any_batched = any_batched || call.batched(t); });
  // Outer levels still have their say about the call made here; this one has had it.
  LimitScope limit(level->id);
  if (level->randomness == Randomness::Same) {
    run_same(call, any_batched);
  } else {
    run_different(call, any_batched);
  }
  stack.resize(from);
  for (IValue& v : call.results) stack.push_back(std::move(v));
}

} // namespace at::functorch
