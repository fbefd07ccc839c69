// Batching rules of indexing, gather and scatter.
//
// Note [Batched indices]
// An index that differs between samples is completed by one for the batch: sample b of x[i] is
// x[b, i[b]]. Advanced indices side by side leave their dimensions where they stand; with the batch
// index in front they may come to stand first, and the result is permuted back.
#include <ATen/functorch/BatchRule.h>

#include <ATen/iter/TensorIterator.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/scatter_reduce.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/unbind.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace at::functorch {
namespace {

using Indices = std::vector<std::optional<Tensor>>;

Tensor batch_numbers(const Call& call, const Tensor& like, int64_t rank) {
  std::vector<int64_t> shape{call.batch()};
  for (int64_t d = 0; d < rank; ++d) shape.push_back(1);
  return at::arange(call.batch(), TensorOptions(kLong).device(like.device())).reshape(shape);
}

// Masks as the indices of their true elements. A batched mask would select another number of
// elements for each sample.
Indices without_masks(const Call& call, const Indices& indices) {
  Indices out;
  for (const auto& index : indices) {
    if (!index || !index->defined() ||
        (index->scalar_type() != kBool && index->scalar_type() != kByte)) {
      out.push_back(index && index->defined() ? index : std::nullopt);
      continue;
    }
    TORCH_CHECK(!call.batched(*index),
                "vmap: We do not support batching operators that can support dynamic shape. "
                "Attempting to batch over indexing with a boolean mask.");
    for (Tensor& t : at::unbind(at::nonzero(*index), 1)) out.emplace_back(std::move(t));
  }
  return out;
}

// Indices on a value with the batch in front, and where the dimensions of the result stand.
struct IndexPlan {
  Indices indices;
  std::vector<int64_t> order; // of the result's dimensions in the operator's result; empty: as is
  DimVector index_shape;      // of one sample
  int64_t before = 0;         // dimensions of self in front of the indices
};

IndexPlan plan_indices(const Call& call, const Tensor& self, const Indices& given) {
  IndexPlan plan;
  int64_t rank = 0;
  std::vector<int64_t> places;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) continue;
    places.push_back(static_cast<int64_t>(i));
    rank = std::max(rank, given[i]->dim());
    plan.index_shape = broadcast_shapes(plan.index_shape, given[i]->sizes());
  }
  plan.indices.emplace_back(batch_numbers(call, self, rank));
  for (const auto& index : given)
    plan.indices.emplace_back(index ? std::optional<Tensor>(call.padded(*index, rank))
                                    : std::nullopt);
  const bool adjacent =
      places.empty() || places.back() - places.front() + 1 == static_cast<int64_t>(places.size());
  const int64_t count = static_cast<int64_t>(places.size());
  plan.before = !places.empty() && adjacent ? places.front() : 0;
  if (plan.before == 0) return plan;
  // The result has [batch, index, before, rest]; wanted is [batch, before, index, rest].
  plan.order.push_back(0);
  for (int64_t d = 0; d < plan.before; ++d) plan.order.push_back(1 + rank + d);
  for (int64_t d = 0; d < rank; ++d) plan.order.push_back(1 + d);
  const int64_t total = 1 + rank + self.dim() - count;
  for (int64_t d = static_cast<int64_t>(plan.order.size()); d < total; ++d) plan.order.push_back(d);
  return plan;
}

Indices indices_of(const IValue& v) { return v.toOptionalTensorList(); }
bool any_batched(const Call& call, const Indices& indices) {
  for (const auto& index : indices)
    if (index && call.batched(*index)) return true;
  return false;
}

void index_rule(Call& call) {
  const Tensor self = call.tensor(0);
  const Indices given = without_masks(call, indices_of(call.args[1]));
  TORCH_CHECK_INDEX(static_cast<int64_t>(given.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ", given.size(),
                    ")");
  const IndexPlan plan = plan_indices(call, self, given);
  if (any_batched(call, given)) {
    const Tensor out = at::index(call.expanded(self), plan.indices);
    call.give(plan.order.empty() ? out : out.permute(plan.order));
    return;
  }
  // The same index for all: the batch is one more dimension in front that is left alone.
  Indices all{std::nullopt};
  all.insert(all.end(), given.begin(), given.end());
  size_t first = all.size(), last = 0, count = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) continue;
    first = std::min(first, i);
    last = i;
    ++count;
  }
  const bool adjacent = count == 0 || last - first + 1 == count;
  call.give(at::index(call.front(self), all),
            adjacent ? 0 : static_cast<int64_t>(plan.index_shape.size()));
}

// The values in the shape that index_put wants with the batch index in front.
Tensor values_for(const Call& call, const IndexPlan& plan, const Tensor& self,
                  const Tensor& values) {
  DimVector shape{call.batch()};
  for (int64_t d = 0; d < plan.before; ++d) shape.push_back(self.sizes()[d]);
  for (const int64_t s : plan.index_shape) shape.push_back(s);
  for (int64_t d = plan.before; d < self.dim(); ++d) {
    const size_t at = static_cast<size_t>(d) + 1;
    if (at >= plan.indices.size() || !plan.indices[at]) shape.push_back(self.sizes()[d]);
  }
  const Tensor full = call.padded(values, static_cast<int64_t>(shape.size()) - 1).expand(shape);
  if (plan.order.empty()) return full;
  std::vector<int64_t> back(plan.order.size());
  for (size_t d = 0; d < back.size(); ++d) back[plan.order[d]] = static_cast<int64_t>(d);
  return full.permute(back);
}

void index_put_rule(Call& call) {
  const Tensor self = call.tensor(0), values = call.tensor(2);
  const bool accumulate = call.args[3].toBool(), mutates = (call.op.flags & kOpMutates) != 0;
  if (mutates && !call.batched(self)) throw_inplace(call.op);
  const Indices given = without_masks(call, indices_of(call.args[1]));
  TORCH_CHECK_INDEX(static_cast<int64_t>(given.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ", given.size(),
                    ")");
  const IndexPlan plan = plan_indices(call, self, given);
  const Tensor put = values_for(call, plan, self, values);
  if (!mutates) {
    call.give(at::index_put(call.expanded(self), plan.indices, put, accumulate));
    return;
  }
  Tensor target = call.front(self);
  at::_ops::index_put_::call(target, OptionalTensorList(plan.indices), put, accumulate);
  call.results.push_back(call.args[0]);
}

// index_select, index_add, ...: a vector of positions along a dimension.
int64_t dim_of(const Call& call) {
  const int64_t rank = std::max<int64_t>(call.tensor(0).dim(), 1);
  return call.shifted(call.args[call.find("dim")].toInt(), rank) - 1;
}
// The vector as an index of the shape of a sample, as gather and scatter want it.
Tensor spread(const Tensor& index, int64_t dim, IntArrayRef like) {
  std::vector<int64_t> shape(like.size(), 1), full(like.begin(), like.end());
  shape[dim] = full[dim] = index.numel();
  return index.reshape(shape).expand(full);
}

void index_select_rule(Call& call) {
  const int at = call.find("index");
  const Tensor index = call.tensor(at), self = call.tensor(0);
  if (!call.batched(index)) {
    Stack stack = call.args;
    const Tensor value = call.front(self);
    stack[0] = IValue(self.dim() == 0 ? value.unsqueeze(1) : value);
    stack[1] = IValue(dim_of(call) + 1);
    call.op.call_boxed(stack);
    const Tensor out = stack[0].toTensor();
    call.give(self.dim() == 0 ? out.squeeze(1) : out);
    return;
  }
  const Tensor whole = self.dim() == 0 ? self.unsqueeze(0) : self;
  const Tensor out = at::gather(whole, dim_of(call), spread(index, dim_of(call), whole.sizes()));
  call.give_batched(self.dim() == 0 ? out.squeeze(0) : out);
}

// index_add and the like as the scatter they are.
Tensor written(const Call& call, const Tensor& self, const Tensor& index, int source) {
  const std::string name = call.op.name;
  const int64_t dim = dim_of(call);
  if (source < 0) {
    const Tensor places = spread(index, dim, self.sizes());
    if (!call.args[3].isTensor()) return at::scatter(self, dim, places, call.args[3].toScalar());
    // By a mask: a value counts once for a position that is named twice.
    const Tensor none =
        at::zeros_like(self, kBool, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
    return at::where(at::scatter(none, dim, places, Scalar(true)),
                     call.tensor(3).to(self.scalar_type()), self);
  }
  Tensor from = call.tensor(source);
  if (from.dim() == 0) from = from.unsqueeze(0);
  const Tensor places = spread(index, dim, from.sizes());
  if (name == "aten::index_add")
    return at::scatter_add(self, dim, places, at::mul(from, call.args[4].toScalar()));
  if (name == "aten::index_reduce")
    return at::scatter_reduce(self, dim, places, from, call.args[4].toStringRef(),
                              call.args[5].toBool());
  return at::scatter(self, dim, places, from);
}

// Positions that are the same for all samples: dimensions move by one. Else as a scatter.
void index_write_rule(Call& call) {
  const Tensor self = call.tensor(0), index = call.tensor(2);
  const int source = call.find("source");
  if (!call.batched(index) && self.dim() > 0) {
    Stack stack = call.args;
    stack[0] = IValue(call.expanded(self));
    stack[1] = IValue(dim_of(call) + 1);
    if (source >= 0) stack[source] = IValue(call.expanded(call.tensor(source)));
    if (source < 0 && stack[3].isTensor() && call.batched(call.tensor(3))) {
      call.give_batched(written(call, self, index, source));
      return;
    }
    call.run(std::move(stack));
    return;
  }
  const Tensor whole = self.dim() == 0 ? self.unsqueeze(0) : self;
  const Tensor out = written(call, whole, index, source);
  call.give_batched(self.dim() == 0 ? out.squeeze(0) : out);
}

// gather and scatter: all tensors have the dimensions of self.
void along_rule(Call& call) {
  Stack stack = call.args;
  const Tensor self = call.tensor(0);
  bool scalar = self.dim() == 0;
  for (IValue& v : stack) {
    map_tensors(v, [&](const Tensor& t) {
      const Tensor out = call.expanded(t);
      return t.dim() == 0 ? out.unsqueeze(1) : out;
    });
  }
  stack[1] = IValue(dim_of(call) + 1);
  const bool point = call.find("src") < 0 && call.tensor(2).dim() == 0;
  call.op.call_boxed(stack);
  const Tensor out = stack[0].toTensor();
  scalar = std::string(call.op.name) == "aten::gather" ? point : scalar;
  call.give(scalar ? out.squeeze(1) : out);
}

void take_rule(Call& call) {
  const Tensor self = call.tensor(0), index = call.tensor(1);
  const Tensor flat = self.reshape({self.numel()}), at = index.reshape({index.numel()});
  call.give_batched(at::index(flat, {at}).reshape(index.sizes()));
}

void put_rule(Call& call) {
  const Tensor self = call.tensor(0), index = call.tensor(1), source = call.tensor(2);
  const Tensor flat = self.reshape({self.numel()}), at = index.reshape({index.numel()});
  const Tensor out =
      at::index_put(flat, {at}, source.reshape({source.numel()}), call.args[3].toBool());
  call.give_batched(out.reshape(self.sizes()));
}

// The number of elements is known when the mask is the same for all.
void masked_select_rule(Call& call) {
  const Tensor self = call.tensor(0), mask = call.tensor(1);
  TORCH_CHECK(!call.batched(mask),
              "vmap: We do not support batching operators that can output dynamic shape. Attempted "
              "to vmap over aten::masked_select with a batched mask.");
  const DimVector shape = broadcast_shapes(self.sizes(), mask.sizes());
  call.give_batched(at::index(self.expand(shape), {mask.expand(shape)}));
}

// The k-th true element of the mask takes the k-th of the source.
void masked_scatter_rule(Call& call) {
  const DimVector shape = broadcast_shapes(call.tensor(0).sizes(), call.tensor(1).sizes());
  const Tensor self = call.tensor(0).expand(shape), mask = call.tensor(1).expand(shape);
  const Tensor source = call.tensor(2);
  const Tensor flat = mask.reshape({mask.numel()});
  const Tensor count = at::sub(at::cumsum(flat, 0), Scalar(1));
  const Tensor place =
      at::clamp(count, Scalar(0), Scalar(std::max<int64_t>(source.numel() - 1, 0)));
  const Tensor picked = at::index(source.reshape({source.numel()}), {place}).reshape(self.sizes());
  call.give_batched(at::where(mask, picked, self));
}

// A value for each sample is more than a number: the choice is made element by element.
void masked_fill_rule(Call& call) {
  const Tensor self = call.tensor(0), value = call.tensor(2);
  if (!call.batched(value)) {
    pointwise_rule(call);
    return;
  }
  const Tensor out = at::where(call.tensor(1), value.to(self.scalar_type()), self);
  if ((call.op.flags & kOpMutates) == 0) {
    call.give_batched(out);
    return;
  }
  call.check_inplace();
  self.copy_(out);
  call.results.push_back(call.args[0]);
}

void one_hot_rule(Call& call) {
  const int64_t classes = call.args[1].toInt();
  TORCH_CHECK(classes > 0,
              "vmap: one_hot needs the number of classes, which depends on the values of a tensor "
              "being vmapped over");
  const Tensor self = call.tensor(0);
  const Tensor all = at::arange(classes, TensorOptions(kLong).device(self.device()));
  call.give_batched(at::eq(self.unsqueeze(-1), all).to(kLong));
}

// ---- embedding ----------------------------------------------------------------------------------
void embedding_rule(Call& call) {
  const Tensor weight = call.tensor(0), indices = call.tensor(1);
  const int64_t padding = call.args[2].toInt();
  if (!call.batched(weight)) {
    Stack stack = call.args;
    stack[1] = IValue(call.front(indices));
    call.run(std::move(stack));
    return;
  }
  const bool plain = !call.args[3].toBool() && !call.args[4].toBool();
  if (!plain || weight.dim() != 2) {
    run_per_sample(call);
    return;
  }
  // Rows of all samples side by side for one index, or under each other for different ones.
  const int64_t rows = weight.sizes()[0], width = weight.sizes()[1], b = call.batch();
  if (!call.batched(indices)) {
    const Tensor wide = call.front(weight).permute({1, 0, 2}).reshape({rows, b * width});
    const Tensor out = at::embedding(wide, indices, padding);
    std::vector<int64_t> shape(indices.sizes().begin(), indices.sizes().end());
    shape.push_back(b);
    shape.push_back(width);
    call.give(out.reshape(shape), indices.dim());
    return;
  }
  const Tensor tall = call.front(weight).reshape({b * rows, width});
  const Tensor offset = at::mul(batch_numbers(call, weight, indices.dim()), Scalar(rows));
  const Tensor ids = call.front(indices);
  const Tensor out = at::embedding(tall, at::add(ids, offset));
  // The row for padding has no gradient.
  const Tensor skip = at::eq(ids, Scalar(padding)).unsqueeze(-1);
  call.give(padding >= 0 ? at::where(skip, out.detach(), out) : out);
}

void embedding_backward_rule(Call& call) {
  const Tensor grad = call.tensor(0), indices = call.tensor(1);
  const int64_t rows = call.args[2].toInt(), padding = call.args[3].toInt(), b = call.batch();
  if (call.args[4].toBool()) {
    run_per_sample(call);
    return;
  }
  Tensor grads = call.expanded(grad);
  const Tensor ids = call.expanded(indices);
  if (padding >= 0) grads = at::masked_fill(grads, at::eq(ids, Scalar(padding)).unsqueeze(-1), 0);
  const Tensor offset = at::mul(batch_numbers(call, grad, indices.dim()), Scalar(rows));
  const Tensor out = at::embedding_dense_backward(grads, at::add(ids, offset), b * rows, -1, false);
  call.give(out.reshape({b, rows, grad.sizes().back()}));
}
} // namespace

ArrayRef<RuleEntry> index_rules() {
  static const RuleEntry entries[] = {
      {"index.Tensor", index_rule, 0},
      {"index_put index_put_ _index_put_impl_", index_put_rule, 0},
      {"index_select", index_select_rule, 0},
      {"index_add index_copy index_fill.int_Scalar index_fill.int_Tensor index_reduce",
       index_write_rule, 0},
      {"gather scatter.reduce scatter.src scatter.value scatter.value_reduce scatter_add "
       "scatter_reduce.two",
       along_rule, 0},
      {"take", take_rule, 0},
      {"put", put_rule, 0},
      {"masked_scatter", masked_scatter_rule, 0},
      {"masked_select", masked_select_rule, 0},
      {"masked_fill.Tensor masked_fill_.Tensor", masked_fill_rule, 0},
      {"one_hot", one_hot_rule, 0},
      {"embedding", embedding_rule, 0},
      {"embedding_dense_backward", embedding_backward_rule, 0},
  };
  return entries;
}

} // namespace at::functorch
