// Running operators on functional tensors. See Engine.h.
#include <ATen/functional/Engine.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include <ATen/functional/ViewInverse.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/_to_copy.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/detach.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/new_empty_strided.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/view.h>

namespace at::functional {
namespace {

bool writes(const FunctionSchema& schema, size_t i) {
  return schema.arguments[i].alias && schema.arguments[i].alias->is_write;
}

std::vector<Tensor> tensors_of(const Stack& stack) {
  std::vector<Tensor> out;
  for (const IValue& v : stack) each_tensor(v, [&](const Tensor& t) { out.push_back(t); });
  return out;
}

bool is_symbolic(const Tensor& t) { return t.unsafeGetTensorImpl()->has_symbolic_sizes(); }
bool has_memory(const Tensor& t) { return t.layout() == Layout::Strided; }

size_t bytes_of(const Tensor& t) {
  if (!has_memory(t) || is_symbolic(t)) return 0;
  const Storage& storage = t.unsafeGetTensorImpl()->storage();
  return storage ? storage->nbytes() : static_cast<size_t>(t.numel() * t.itemsize());
}

// as_strided speaks of memory: the base lies in it as it did before it was first written.
Tensor base_in_layout(Alias& alias) {
  if (!alias.is_strided_memory || is_symbolic(alias.base)) return alias.base;
  if (alias.base.sizes() != IntArrayRef(alias.sizes)) return alias.base;
  if (alias.base.strides() == IntArrayRef(alias.strides)) return alias.base;
  Stack made{
      alias.base, IValue(IntArrayRef(alias.sizes)), IValue(IntArrayRef(alias.strides)), {}, {}, {},
      {}};
  _ops::new_empty_strided::entry.call_boxed(made);
  alias.base = at::copy(made[0].toTensor(), alias.base);
  return alias.base;
}

Tensor start_of(Alias& alias, const std::vector<ViewStep>& steps) {
  const bool by_memory = std::any_of(steps.begin(), steps.end(), [](const ViewStep& step) {
    return step.view == &_ops::as_strided::entry;
  });
  return by_memory ? base_in_layout(alias) : alias.base;
}

// The base after a write: each view of the chain undone, the last first.
void carry_back(Alias& alias, const PendingWrite& write) {
  const size_t n = write.steps.size();
  if (n == 0) {
    alias.base = write.value;
    return;
  }
  std::vector<Tensor> before{start_of(alias, write.steps)};
  for (size_t k = 0; k + 1 < n; ++k) before.push_back(apply(write.steps[k], before.back()));
  Tensor now = write.value;
  for (size_t k = n; k-- > 0;) {
    const ViewStep& step = write.steps[k];
    const Inverse inverse = inverse_of(*step.view);
    TORCH_CHECK_NOT_IMPLEMENTED(inverse != nullptr, "functionalize: a write to the result of ",
                                step.view->full_name(), " is not implemented");
    now = inverse({step.args, step.output, before[k], now, step.run != step.view});
  }
  alias.base = now;
}

void settle_writes(Alias& alias) {
  if (alias.pending.empty()) return;
  std::vector<PendingWrite> pending;
  pending.swap(alias.pending);
  for (const PendingWrite& write : pending) carry_back(alias, write);
  ++alias.generation;
}

// A new tensor that lies in memory as `like` does.
Tensor wrap_like(const Tensor& value, const Tensor& like, const Space& space) {
  Cell cell;
  cell.value = value;
  cell.alias = std::make_shared<Alias>(value);
  if (cell.alias->is_strided_memory && !value.is_same(like))
    cell.alias->strides.assign(like.strides().begin(), like.strides().end());
  return space.make(std::move(cell), like);
}

// ---- one call
struct Call {
  const OperatorEntry& op;
  const FunctionSchema& schema;
  Stack args;
  const Space& space;

  // The arguments with values in place of tensors of the space.
  Stack values() const {
    Stack out = args;
    for (IValue& v : out) {
      map_tensors(v, [&](const Tensor& t) {
        const Cell* cell = sync(t, space);
        return cell != nullptr ? cell->value : t;
      });
    }
    return out;
  }
};

// The value as the tensor that is written has it.
Tensor fitting(const Tensor& target, const Tensor& value, bool out_argument) {
  Tensor fit = value;
  if (value.scalar_type() != target.scalar_type()) fit = at::_to_copy(value, target.scalar_type());
  if (out_argument || is_symbolic(fit) || is_symbolic(target) || fit.sizes() == target.sizes())
    return fit;
  TORCH_CHECK(fit.dim() <= target.dim() && fit.numel() <= target.numel(), "output with shape ",
              target.sizes(), " doesn't match the broadcast shape ", fit.sizes());
  return fit.expand(target.sizes());
}

void check_writable(const Call& call, const std::vector<size_t>& places) {
  for (const size_t i : places) {
    each_tensor(call.args[i], [&](const Tensor& t) {
      const Cell* cell = call.space.cell(t);
      TORCH_CHECK(
          cell != nullptr,
          "mutating a non-functional tensor with a functional tensor is not allowed. Please "
          "ensure that all of your inputs are wrapped inside of a functionalize() call.");
      TORCH_CHECK(!cell->alias->frozen, call.op.full_name(),
                  ": attempted to write to a functional tensor that is frozen");
    });
  }
}

// What a writing operator computes: its own new results, then the values of what it writes.
struct Written {
  std::vector<IValue> results;
  std::vector<Tensor> values;
};

bool is_new(const SchemaArgument& result) { return !result.alias || !result.alias->is_write; }

// Through the functional form: it has the same arguments but for outputs.
Written through(const OperatorEntry& functional, const Call& call, Stack stack) {
  Stack arguments;
  for (size_t i = 0; i < stack.size(); ++i)
    if (!call.schema.arguments[i].is_out) arguments.push_back(std::move(stack[i]));
  functional.call_boxed(arguments);
  Written out;
  size_t k = 0;
  for (const SchemaArgument& result : call.schema.returns)
    if (is_new(result) && functional.schema().returns.size() > call.schema.returns.size())
      out.results.push_back(arguments.at(k++));
  for (; k < arguments.size(); ++k)
    each_tensor(arguments[k], [&](const Tensor& t) { out.values.push_back(t); });
  return out;
}

// Without such a form: copies are written, and nobody else sees them.
Written on_copies(const Call& call, const std::vector<size_t>& places, Stack stack) {
  for (const size_t i : places) map_tensors(stack[i], [](const Tensor& t) { return t.clone(); });
  const Stack copies = stack;
  call.op.call_boxed(stack);
  Written out;
  for (size_t k = 0; k < call.schema.returns.size() && k < stack.size(); ++k)
    if (is_new(call.schema.returns[k])) out.results.push_back(stack[k]);
  for (const size_t i : places)
    each_tensor(copies[i], [&](const Tensor& t) { out.values.push_back(t); });
  return out;
}

void write(const Tensor& t, const Tensor& value, bool out_argument, const Space& space) {
  const Tensor fit = fitting(t, value, out_argument);
  replace(t, fit, space);
  commit(t, space);
  sync(t, space);
  t.unsafeGetTensorImpl()->bump_version();
}

void run_write(const Call& call, Stack& results) {
  std::vector<size_t> places;
  for (size_t i = 0; i < call.args.size(); ++i)
    if (writes(call.schema, i) && !call.args[i].isNone()) places.push_back(i);
  check_writable(call, places);
  Stack stack = call.values();
  const OperatorEntry* functional = functional_of(call.op);
  Written made = functional ? through(*functional, call, std::move(stack))
                            : on_copies(call, places, std::move(stack));
  size_t k = 0;
  for (const size_t i : places) {
    each_tensor(call.args[i], [&](const Tensor& t) {
      if (k < made.values.size())
        write(t, made.values[k], call.schema.arguments[i].is_out, call.space);
      ++k;
    });
  }
  size_t fresh = 0, place = 0;
  for (const SchemaArgument& result : call.schema.returns) {
    if (!is_new(result)) {
      results.push_back(call.args[places.at(place++)]);
    } else if (fresh < made.results.size()) {
      IValue value = made.results[fresh++];
      map_tensors(value, [&](const Tensor& t) { return wrap(t, call.space); });
      results.push_back(std::move(value));
    }
  }
}

// ---- views
// A tensor without data that lies in memory so.
Tensor shape_of(IntArrayRef sizes, IntArrayRef strides, int64_t offset, ScalarType dtype) {
  Tensor out = at::empty_strided(sizes, strides, dtype, Layout::Strided, Device(DeviceType::Meta),
                                 std::nullopt);
  out.unsafeGetTensorImpl()->set_storage_offset(offset);
  return out;
}

// What the results of the view look like to the program, which has real views.
std::vector<Tensor> shapes_of_views(const Call& call, const std::vector<Tensor>& values,
                                    const Tensor& source) {
  const Tensor of = call.args[0].toTensor();
  const bool known = !has_memory(of) || is_symbolic(of) || is_symbolic(source);
  if (known || (!call.space.copies_views() && of.strides() == source.strides() &&
                of.storage_offset() == source.storage_offset()))
    return values;
  c10::ExcludeDispatchKeyGuard plain(call.space.keys_off() |
                                     DispatchKeySet{DispatchKey::Python, DispatchKey::Fake});
  Stack stack = call.args;
  if (&call.op == &_ops::as_strided::entry) {
    const int64_t offset = stack[3].isNone() ? of.storage_offset() : stack[3].toInt();
    return {shape_of(stack[1].toIntList(), stack[2].toIntList(), offset, of.scalar_type())};
  }
  stack[0] = IValue(shape_of(of.sizes(), of.strides(), of.storage_offset(), of.scalar_type()));
  call.op.call_boxed(stack);
  return tensors_of(stack);
}

// Whether a value lies in memory otherwise than the program believes: it is a copy where the
// program has a view, or was computed from one.
bool lies_elsewhere(const Tensor& t, const Cell& cell) {
  return has_memory(t) && has_memory(cell.value) && !is_symbolic(t) && !is_symbolic(cell.value) &&
         t.sizes() == cell.value.sizes() && t.strides() != cell.value.strides();
}

// What new tensors look like to the program, whose arguments lie in memory otherwise than their
// values: later views of them depend on it.
std::vector<Tensor> shapes_of_results(const Call& call, const Stack& results) {
  bool elsewhere = false;
  for (const IValue& v : call.args) {
    each_tensor(v, [&](const Tensor& t) {
      const Cell* cell = call.space.cell(t);
      elsewhere = elsewhere || (cell != nullptr && lies_elsewhere(t, *cell));
    });
  }
  std::vector<Tensor> values = tensors_of(results);
  const bool by_data = std::strstr(call.op.tags_text, "dynamic_output_shape") != nullptr ||
                       std::strstr(call.op.tags_text, "data_dependent_output") != nullptr;
  if (!elsewhere || by_data || !call.op.has_kernel_for(DispatchKey::Meta)) return values;
  c10::ExcludeDispatchKeyGuard plain(call.space.keys_off() |
                                     DispatchKeySet{DispatchKey::Python, DispatchKey::Fake});
  bool possible = true;
  Stack stack = call.args;
  const std::vector<SchemaArgument>& arguments = call.op.schema().arguments;
  for (size_t i = 0; i < stack.size() && i < arguments.size(); ++i) {
    const bool place = arguments[i].type.kind == SchemaType::Kind::Device;
    if (place && !stack[i].isNone()) stack[i] = IValue(Device(DeviceType::Meta));
  }
  for (IValue& v : stack) {
    map_tensors(v, [&](const Tensor& t) {
      possible = possible && has_memory(t) && !is_symbolic(t);
      return possible ? shape_of(t.sizes(), t.strides(), 0, t.scalar_type()) : t;
    });
  }
  if (!possible) return values;
  call.op.call_boxed(stack);
  const std::vector<Tensor> shapes = tensors_of(stack);
  for (size_t i = 0; i < values.size() && i < shapes.size(); ++i)
    if (has_memory(values[i]) && shapes[i].sizes() == values[i].sizes()) values[i] = shapes[i];
  return values;
}

// as_strided is a view of the memory, whatever view of it the tensor is, but for how the tensor
// reads an element: its dtype, conjugation and sign.
void from_memory(Cell& from, const Tensor& of, ViewStep& step, const Space& space) {
  if (!from.steps.empty() && step.args[3].isNone()) step.args[3] = IValue(of.storage_offset());
  const Tensor before = from.value;
  from.steps.clear();
  from.value = base_in_layout(*from.alias);
  const auto read_as = [&](const OperatorEntry& view, std::optional<ScalarType> dtype) {
    ViewStep reading{&view, space.copies_views() ? copying_form(view) : &view, {IValue()}, 0};
    if (dtype) reading.args.emplace_back(*dtype);
    from.value = apply(reading, from.value);
    from.steps.push_back(std::move(reading));
  };
  if (before.scalar_type() != from.value.scalar_type())
    read_as(_ops::view_dtype::entry, before.scalar_type());
  if (before.is_conj() != from.value.is_conj()) read_as(_ops::_conj::entry, std::nullopt);
  if (before.is_neg() != from.value.is_neg()) read_as(_ops::_neg_view::entry, std::nullopt);
}

void run_view(const Call& call, Stack& results) {
  // The tensor itself is not brought up to date: its view is, when it is used after a write.
  const Tensor of = call.args[0].toTensor();
  Cell from = *call.space.cell(of);
  ViewStep step{&call.op, call.space.copies_views() ? copying_form(call.op) : &call.op, call.args,
                0};
  step.args[0] = IValue();
  if (&call.op == &_ops::as_strided::entry) {
    from = *sync(of, call.space);
    from_memory(from, of, step, call.space);
  }
  Stack stack = step.args;
  stack[0] = IValue(from.value);
  const bool any_layout = step.run == &_ops::view::entry && of.is_contiguous();
  (any_layout && !from.value.is_contiguous() ? _ops::reshape::entry : *step.run).call_boxed(stack);
  const std::vector<Tensor> shapes = shapes_of_views(call, tensors_of(stack), from.value);
  size_t k = 0;
  for (IValue& v : stack) {
    const bool many = v.isTensorList();
    map_tensors(v, [&](const Tensor& t) {
      Cell cell{t, from.alias, from.steps, 0};
      cell.one_of_many = many || from.one_of_many;
      step.output = k;
      cell.steps.push_back(step);
      Tensor out = call.space.make(std::move(cell), shapes[k++]);
      if (&call.op == &_ops::detach::entry) {
        call.space.detached(of, out);
      } else {
        call.space.viewed(of, out, many);
      }
      return out;
    });
    results.push_back(std::move(v));
  }
}

// unsqueeze_ and the like: the tensor becomes a view of what it was.
void run_inplace_view(const Call& call, Stack& results) {
  std::string name = call.op.name;
  name.pop_back();
  Dispatcher& all = Dispatcher::singleton();
  const OperatorEntry* view = all.find(name, call.op.overload);
  if (view == nullptr) view = all.find(name, "int");
  TORCH_CHECK_NOT_IMPLEMENTED(view != nullptr, "functionalize: ", call.op.full_name(),
                              " is not implemented");
  const Tensor self = call.args[0].toTensor();
  TORCH_CHECK(!call.space.cell(self)->alias->frozen, call.op.full_name(),
              ": attempted to change a functional tensor that is frozen");
  Stack out;
  if (is_composite(*view)) {
    out = call.args;
    view->call_boxed(out);
  } else {
    const Call made{*view, view->schema(), call.args, call.space};
    c10::ExcludeDispatchKeyGuard guard(call.space.keys_off());
    run_view(made, out);
  }
  const Tensor result = out.at(0).toTensor();
  Cell& mine = *call.space.cell(self);
  mine = *call.space.cell(result);
  mine.metadata_written = true;
  call.space.changed(self, mine, &result);
  self.unsafeGetTensorImpl()->bump_version();
  results.push_back(call.args[0]);
}
} // namespace

Alias::Alias(const Tensor& first) : base(first), first_nbytes(bytes_of(first)) {
  is_strided_memory = has_memory(first) && !is_symbolic(first);
  if (is_strided_memory) {
    sizes.assign(first.sizes().begin(), first.sizes().end());
    strides.assign(first.strides().begin(), first.strides().end());
  }
  storage = c10::make_intrusive<c10::StorageImpl>(
      first_nbytes, c10::DataPtr(nullptr, first.device()), nullptr, false);
}

void Space::viewed(const Tensor&, const Tensor&, bool) const {}
void Space::detached(const Tensor&, const Tensor&) const {}

bool is_composite(const OperatorEntry& op) {
  if ((op.flags & kOpComposite) != 0) return true;
  using K = DispatchKey;
  if (!op.has_kernel(K::CompositeImplicitAutograd)) return false;
  for (const K key : {K::CompositeExplicitAutograd, K::CPU, K::CUDA, K::Meta})
    if (op.has_kernel(key)) return false;
  return true;
}

const OperatorEntry* copying_form(const OperatorEntry& op) {
  const OperatorEntry* copy =
      Dispatcher::singleton().find(std::string(op.name) + "_copy", op.overload);
  return copy != nullptr ? copy : &op;
}

namespace {
// Whether `candidate` takes the arguments of `schema` but its outputs.
bool takes_arguments_of(const FunctionSchema& schema, const OperatorEntry& candidate) {
  if ((candidate.flags & kOpMutates) != 0) return false;
  const auto& theirs = candidate.schema().arguments;
  size_t k = 0;
  for (const SchemaArgument& a : schema.arguments) {
    if (a.is_out) continue;
    if (k >= theirs.size() || theirs[k].name != a.name || theirs[k].type.str() != a.type.str())
      return false;
    ++k;
  }
  return k == theirs.size();
}
} // namespace

const OperatorEntry* functional_of(const OperatorEntry& op) {
  std::string name = op.name;
  if (!name.empty() && name.back() == '_') name.pop_back();
  Dispatcher& all = Dispatcher::singleton();
  for (const std::string& candidate : {name, name + "_functional"})
    for (const OperatorEntry* form : all.overloads(candidate))
      if (takes_arguments_of(op.schema(), *form)) return form;
  return nullptr;
}

Tensor apply(const ViewStep& step, const Tensor& t) {
  Stack stack = step.args;
  stack[0] = IValue(t);
  // A base that was written may lie in memory otherwise than the program's.
  const bool any_layout = step.run == &_ops::view::entry && !t.is_contiguous();
  (any_layout ? _ops::reshape::entry : *step.run).call_boxed(stack);
  return tensors_of(stack).at(step.output);
}

Tensor wrap(const Tensor& value, const Space& space) { return wrap_like(value, value, space); }

Cell* sync(const Tensor& t, const Space& space) {
  Cell* cell = space.cell(t);
  if (cell == nullptr) return nullptr;
  Alias& alias = *cell->alias;
  if (alias.pending.empty() && cell->seen == alias.generation) return cell;
  c10::ExcludeDispatchKeyGuard below(space.keys_off());
  settle_writes(alias);
  Tensor value = start_of(alias, cell->steps);
  for (const ViewStep& step : cell->steps) value = apply(step, value);
  cell->value = std::move(value);
  cell->seen = alias.generation;
  space.changed(t, *cell, nullptr);
  return cell;
}

void replace(const Tensor& t, const Tensor& value, const Space& space) {
  Cell* cell = space.cell(t);
  TORCH_CHECK(cell != nullptr, "expected a functional tensor");
  cell->value = value;
  const bool fixed = is_symbolic(value) || is_symbolic(t) || t.sizes() == value.sizes();
  space.changed(t, *cell, fixed ? nullptr : &value);
}

void commit(const Tensor& t, const Space& space) {
  Cell* cell = space.cell(t);
  TORCH_CHECK(cell != nullptr, "expected a functional tensor");
  Alias& alias = *cell->alias;
  TORCH_CHECK(!alias.frozen, "attempted to write to a functional tensor that is frozen");
  alias.pending.push_back({cell->value, cell->steps});
  ++alias.writes;
  if (!c10::tls_autograd_state.grad_mode) ++alias.writes_without_grad;
}

void run(const OperatorEntry& op, Stack& stack, size_t from, const Space& space) {
  const Call call{op, op.schema(),
                  Stack(stack.begin() + static_cast<std::ptrdiff_t>(from), stack.end()), space};
  bool any = false, tensors = false;
  for (const IValue& v : call.args) {
    each_tensor(v, [&](const Tensor& t) {
      tensors = true;
      any = any || space.cell(t) != nullptr;
    });
  }
  const bool of_space = any && call.args[0].isTensor() && space.cell(call.args[0].toTensor());
  Stack results;
  if ((op.flags & kOpMutates) != 0 && any && of_space &&
      std::strstr(op.tags_text, "inplace_view") != nullptr) {
    run_inplace_view(call, results);
    stack.resize(from);
    for (IValue& v : results) stack.push_back(std::move(v));
    return;
  }
  // What is below knows nothing of this space: its own temporaries are plain.
  c10::ExcludeDispatchKeyGuard guard(space.keys_off());
  if ((op.flags & kOpMutates) != 0 && any) {
    run_write(call, results);
  } else if ((op.flags & kOpView) != 0 && of_space) {
    run_view(call, results);
  } else {
    results = call.values();
    op.call_boxed(results);
    // A tensor made of nothing belongs to the program; one made of tensors from outside does not.
    if ((op.flags & kOpMutates) == 0 && space.wraps_results(any, tensors)) {
      const std::vector<Tensor> shapes = shapes_of_results(call, results);
      size_t k = 0;
      for (IValue& v : results)
        map_tensors(v, [&](const Tensor& t) { return wrap_like(t, shapes[k++], space); });
    }
  }
  stack.resize(from);
  for (IValue& v : results) stack.push_back(std::move(v));
}

} // namespace at::functional
