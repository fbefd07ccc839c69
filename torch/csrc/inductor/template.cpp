// See template.h.
#include <torch/csrc/inductor/template.h>

#include <algorithm>
#include <numeric>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/SymbolicTensor.h>
#include <c10/core/SymbolicGeometry.h>
#include <torch/csrc/inductor/symbols.h>

namespace torch::inductor {
namespace {

using at::IValue;
using at::Tensor;
using c10::sym::Expr;
using c10::sym::Value;
using Keys = std::vector<Plan::InputKey>;

// ---- inputs as a row of integers
// Whether inputs differ in nothing but integers.
bool same_form(const Keys& a, const Keys& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Plan::InputKey &x = a[i], &y = b[i];
    if (x.is_tensor != y.is_tensor || x.dtype != y.dtype || x.device != y.device ||
        x.sizes.size() != y.sizes.size())
      return false;
    if (x.is_tensor || (x.number.isInt() && y.number.isInt())) continue;
    if (!same_number(x.number, y.number)) return false;
  }
  return true;
}

std::vector<int64_t> numbers_of(const Keys& keys) {
  std::vector<int64_t> row;
  for (const Plan::InputKey& key : keys) {
    if (!key.is_tensor) {
      if (key.number.isInt()) row.push_back(key.number.toInt());
      continue;
    }
    row.insert(row.end(), key.sizes.begin(), key.sizes.end());
    row.insert(row.end(), key.strides.begin(), key.strides.end());
    row.push_back(key.offset);
  }
  return row;
}

// ---- numbers of a plan
template <class F> void each_number(IValue& value, F f) {
  if (value.isSymbol()) {
    int64_t raw = value.bits.i;
    f(raw);
    value = SymInt::from_raw(raw);
  } else if (value.isIntList()) {
    std::vector<int64_t> list = value.toIntList();
    const bool symbolic = std::any_of(list.begin(), list.end(),
                                      [](int64_t raw) { return raw < SymInt::kSymbolicBound; });
    if (!symbolic) return;
    for (int64_t& raw : list) f(raw);
    value = std::move(list);
  } else if (value.isList()) {
    std::vector<IValue> list = value.toList();
    for (IValue& item : list) each_number(item, f);
    value = std::move(list);
  }
}

template <class F> void each_number(TileProgram& program, F f) {
  for (RowAccess& access : program.rows) {
    for (RowAccess::Dim& dim : access.dims) f(dim.size), f(dim.stride);
  }
  program.find_row_length();
}

template <class F> void each_number(ChainPointer& pointer, F f) {
  f(pointer.offset);
  f(pointer.row_bytes);
}

template <class F> void each_number(Chain& chain, F f) {
  f(chain.rows), f(chain.block), f(chain.grain);
  for (int64_t& slot : chain.slots) f(slot);
  for (ChainPart& part : chain.parts) {
    f(part.length), f(part.kernel.length);
    each_number(part.program, f);
    for (ChainPointer& pointer : part.pointers) each_number(pointer, f);
    each_number(part.elements, f);
    each_number(part.result, f);
  }
}

template <class F> void each_number(Tensor& elements, F f) {
  if (!elements.defined() || !elements.unsafeGetTensorImpl()->has_symbolic_sizes()) return;
  c10::DimVector sizes = raw_list(elements.sym_sizes()), strides = raw_list(elements.sym_strides());
  for (int64_t& size : sizes) f(size);
  for (int64_t& stride : strides) f(stride);
  const auto symbols = [](const c10::DimVector& list) {
    return c10::as_symint_array(at::IntArrayRef(list.data(), list.size()));
  };
  elements = at::detail::empty_strided_symint(symbols(sizes), symbols(strides),
                                              elements.scalar_type(), at::Device(at::kMeta));
}

// Calls f(int64_t&) for whatever may be a handle, always in the same order.
template <class F> void each_number(Plan& plan, F f) {
  for (View& view : plan.views) {
    for (int64_t& size : view.sizes) f(size);
    for (int64_t& stride : view.strides) f(stride);
    f(view.offset);
  }
  for (Step& step : plan.steps) {
    f(step.numel);
    for (Pointer& pointer : step.pointers) f(pointer.offset);
    for (CallArg& arg : step.args) each_number(arg.value, f);
    each_number(step.program, f);
    if (step.chain) each_number(*step.chain, f);
    each_number(step.elements, f);
  }
  for (Plan::Output& output : plan.outputs) each_number(output.value, f);
  f(plan.bytes_read), f(plan.bytes_written);
}

std::shared_ptr<Plan> copy_of(const Plan& plan) {
  auto copy = std::make_shared<Plan>(plan);
  for (Step& step : copy->steps)
    if (step.chain) step.chain = std::make_shared<Chain>(*step.chain);
  return copy;
}

} // namespace

// A symbol for all numbers that were equal whenever the program was called.
Expr PlanTemplate::symbol_of(const std::vector<int64_t>& values, size_t position) {
  const auto found = by_values_.find(values);
  if (found != by_values_.end()) return found->second;
  if (values.front() < 2) return nullptr; // operators treat 0 and 1 in their own ways
  Value hint{};
  hint.integer = values.front();
  const Expr symbol = env_->new_symbol(c10::str("s", symbols_.size()), c10::sym::Sort::Int, hint,
                                       c10::sym::Interval{2});
  by_values_[values] = symbol;
  symbols_.push_back(symbol);
  places_.push_back(position);
  return symbol;
}

// Expressions for the numbers of the inputs, of which `rows` are examples, the one at hand first.
bool PlanTemplate::name_symbols(const std::vector<std::vector<int64_t>>& rows) {
  const auto column = [&](size_t position) {
    std::vector<int64_t> values;
    for (const std::vector<int64_t>& row : rows) values.push_back(row[position]);
    return values;
  };
  const auto name = [&](size_t position) {
    const std::vector<int64_t> values = column(position);
    const bool constant =
        std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values.front(); });
    return constant ? env_->arena().integer(values.front()) : symbol_of(values, position);
  };
  // A stride is often the length of another dimension.
  const auto stride_by_size = [&](size_t first, size_t rank, size_t d) -> Expr {
    for (size_t e = 0; e < rank; ++e) {
      const Expr known = numbers_[first + rank + e];
      if (e == d || known == nullptr) continue;
      const bool fits = std::all_of(rows.begin(), rows.end(), [&](const std::vector<int64_t>& row) {
        return row[first + rank + d] == row[first + e] * row[first + rank + e];
      });
      if (fits) return env_->arena().mul(numbers_[first + e], known);
    }
    return nullptr;
  };
  numbers_.assign(rows[0].size(), nullptr);
  size_t at = 0;
  for (const Plan::InputKey& key : keys_) {
    const size_t rank = key.sizes.size();
    if (!key.is_tensor) {
      if (key.number.isInt()) numbers_[at] = name(at), ++at;
      continue;
    }
    for (size_t d = 0; d < rank; ++d) numbers_[at + d] = name(at + d);
    std::vector<size_t> order(rank);
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return key.strides[a] < key.strides[b]; });
    for (const size_t d : order) {
      const size_t place = at + rank + d;
      const Expr found = stride_by_size(at, rank, d);
      numbers_[place] = found ? found : name(place);
    }
    numbers_[at + 2 * rank] = name(at + 2 * rank);
    at += 2 * rank + 1;
  }
  return !symbols_.empty() &&
         std::none_of(numbers_.begin(), numbers_.end(), [](Expr e) { return e == nullptr; });
}

std::vector<IValue> PlanTemplate::symbolic_inputs(c10::ArrayRef<IValue> inputs) const {
  const auto number = [&](size_t place) { return SymInt::from_raw(env_->raw_of(numbers_[place])); };
  std::vector<IValue> made;
  size_t at = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Plan::InputKey& key = keys_[i];
    if (!key.is_tensor) {
      made.push_back(key.number.isInt() ? IValue(number(at++)) : inputs[i]);
      continue;
    }
    const size_t rank = key.sizes.size();
    std::vector<SymInt> sizes, strides;
    for (size_t d = 0; d < rank; ++d) sizes.push_back(number(at + d));
    for (size_t d = 0; d < rank; ++d) strides.push_back(number(at + rank + d));
    const SymInt offset = number(at + 2 * rank);
    at += 2 * rank + 1;
    if (!c10::has_symbolic(sizes) && !c10::has_symbolic(strides) && !offset.is_symbolic()) {
      made.push_back(inputs[i]);
      continue;
    }
    Tensor meta =
        at::detail::empty_strided_symint(sizes, strides, key.dtype, at::Device(at::kMeta));
    c10::TensorImpl& impl = *meta.unsafeGetTensorImpl();
    impl.storage()->set_sym_nbytes(c10::sym_storage_bytes(sizes, strides, impl.itemsize(), offset));
    impl.set_symbolic_geometry(sizes, strides, offset);
    made.push_back(std::move(meta));
  }
  return made;
}

// Everything that a call evaluates, as programs.
void PlanTemplate::compile() {
  std::vector<Expr> results;
  std::map<int64_t, uint32_t> known; // by handle
  each_number(*copy_of(*plan_), [&](int64_t raw) {
    if (raw >= SymInt::kSymbolicBound) return;
    const auto [found, is_new] = known.emplace(raw, static_cast<uint32_t>(results.size()));
    if (is_new) results.push_back(env_->expr_of(raw));
    order_.push_back(found->second);
  });
  result_count_ = results.size();
  results_.emplace(env_->arena(), symbols_, results);
  expected_.emplace(env_->arena(), symbols_, numbers_);
  guards_.emplace(env_->guard_program(symbols_));
}

std::shared_ptr<const PlanTemplate> PlanTemplate::make(const Program& program,
                                                       const std::vector<Keys>& known,
                                                       c10::ArrayRef<IValue> inputs) {
  const std::shared_ptr<PlanTemplate> made(new PlanTemplate);
  for (const IValue& value : inputs) made->keys_.push_back(key_of(value, program.uses_offsets));
  std::vector<std::vector<int64_t>> rows = {numbers_of(made->keys_)};
  for (const Keys& keys : known)
    if (same_form(keys, made->keys_)) rows.push_back(numbers_of(keys));
  if (rows.size() < 2) return nullptr;
  made->env_ = c10::shapes::ShapeEnv::create();
  try {
    if (!made->name_symbols(rows)) return nullptr;
    made->plan_ = make_plan(program, inputs, made->symbolic_inputs(inputs));
    made->compile();
  } catch (const c10::Error&) {
    return nullptr; // plans for these sizes alone will do, or say what is wrong
  }
  return made;
}

std::shared_ptr<Plan> PlanTemplate::at(const Program& program, c10::ArrayRef<IValue> inputs) const {
  Keys keys;
  for (const IValue& value : inputs) keys.push_back(key_of(value, program.uses_offsets));
  if (!same_form(keys, keys_)) return nullptr;
  if (program.mutates && plan_->apart && !are_apart(inputs)) return nullptr;
  const std::vector<int64_t> row = numbers_of(keys);
  std::vector<Value> values(symbols_.size()), expected(row.size()), results(result_count_);
  for (size_t k = 0; k < places_.size(); ++k) {
    values[k].integer = row[places_[k]];
    if (values[k].integer < 2) return nullptr;
  }
  if (!expected_->run(values.data(), expected.data())) return nullptr;
  for (size_t k = 0; k < row.size(); ++k)
    if (expected[k].integer != row[k]) return nullptr;
  if (!guards_->holds(values.data()) || !results_->run(values.data(), results.data()))
    return nullptr;
  std::shared_ptr<Plan> plan = copy_of(*plan_);
  size_t next = 0;
  each_number(*plan, [&](int64_t& raw) {
    if (raw < SymInt::kSymbolicBound) raw = results[order_[next++]].integer;
  });
  plan->keys = std::move(keys);
  make_ready(*plan, program, inputs);
  return plan;
}

} // namespace torch::inductor
