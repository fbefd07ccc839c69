// Batching rules of views, shapes, copies and factories: sizes gain the batch in front, dimensions
// move by one.
#include <ATen/functorch/BatchRule.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/squeeze.h>

namespace at::functorch {
namespace {

std::vector<int64_t> with_batch(const Call& call, IntArrayRef sizes) {
  std::vector<int64_t> out{call.batch()};
  out.insert(out.end(), sizes.begin(), sizes.end());
  return out;
}
std::vector<int64_t> list_of(const IValue& v) {
  return v.isInt() ? std::vector<int64_t>{v.toInt()} : v.toIntList();
}

// view, new_zeros, ...: the size is that of a sample.
void sized(Call& call) {
  Stack stack = call.args;
  stack[0] = IValue(call.expanded(call.tensor(0)));
  const int at = call.find("size");
  std::vector<int64_t> size = list_of(stack[at]);
  // An inferred size cannot be worked out beside a batch of nothing.
  stack[at] = IValue(with_batch(call, size));
  call.run(std::move(stack));
}

// The stride of the batch: beyond the extent of one sample.
void sized_strided(Call& call) {
  Stack stack = call.args;
  stack[0] = IValue(call.expanded(call.tensor(0)));
  const std::vector<int64_t> size = list_of(stack[1]), stride = list_of(stack[2]);
  TORCH_CHECK(size.size() == stride.size(), call.op.full_name(),
              ": sizes and strides must be of the same length, got ", IntArrayRef(size), " and ",
              IntArrayRef(stride));
  int64_t extent = 1;
  for (size_t d = 0; d < size.size(); ++d)
    extent = size[d] == 0 ? 0 : extent + (size[d] - 1) * stride[d];
  stack[1] = IValue(with_batch(call, size));
  std::vector<int64_t> strides{std::max<int64_t>(extent, 1)};
  strides.insert(strides.end(), stride.begin(), stride.end());
  stack[2] = IValue(std::move(strides));
  call.run(std::move(stack));
}

// _reshape_alias: the strides are those the view has anyway.
void reshape_alias(Call& call) {
  const std::vector<int64_t> size = list_of(call.args[1]);
  call.give(call.front(call.tensor(0)).view(with_batch(call, size)));
}

void expand_rule(Call& call) {
  const Tensor self = call.tensor(0);
  const std::vector<int64_t> size = list_of(call.args[1]);
  TORCH_CHECK(static_cast<int64_t>(size.size()) >= self.dim(),
              "expand: the number of sizes provided (", size.size(),
              ") must be greater or equal to the number of dimensions in the tensor (", self.dim(),
              ")");
  Stack stack = call.args;
  stack[0] = IValue(call.padded(self, static_cast<int64_t>(size.size())));
  stack[1] = IValue(with_batch(call, size));
  call.run(std::move(stack));
}

void repeat_rule(Call& call) {
  const Tensor self = call.tensor(0);
  std::vector<int64_t> repeats = list_of(call.args[1]);
  TORCH_CHECK(static_cast<int64_t>(repeats.size()) >= self.dim(),
              "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
              "tensor");
  Stack stack = call.args;
  stack[0] = IValue(call.padded(self, static_cast<int64_t>(repeats.size())));
  repeats.insert(repeats.begin(), 1);
  stack[1] = IValue(std::move(repeats));
  call.run(std::move(stack));
}

void permute_rule(Call& call) {
  const int64_t rank = call.tensor(0).dim();
  std::vector<int64_t> dims = list_of(call.args[1]);
  TORCH_CHECK(static_cast<int64_t>(dims.size()) == rank,
              "permute(sparse_coo): number of dimensions in the tensor input does not match the "
              "length of the desired ordering of dimensions i.e. input.dim() = ",
              rank, " is not equal to len(dims) = ", dims.size());
  for (int64_t& d : dims) d = call.shifted(d, rank);
  dims.insert(dims.begin(), 0);
  Stack stack = call.args;
  stack[0] = IValue(call.front(call.tensor(0)));
  stack[1] = IValue(std::move(dims));
  call.run(std::move(stack));
}

void t_rule(Call& call) {
  const Tensor self = call.tensor(0);
  TORCH_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ",
              self.dim(), "D");
  call.give_batched(self.dim() < 2 ? self : self.transpose(0, 1));
}

void squeeze_rule(Call& call) {
  const Tensor self = call.tensor(0);
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.sizes()[d] == 1) dims.push_back(d);
  call.give_batched(at::squeeze(self, dims));
}

// Dimension numbers may be given for a tensor without dimensions.
void squeeze_dim_rule(Call& call) {
  const Tensor self = call.tensor(0);
  if (self.dim() == 0) {
    call.give_batched(self);
    return;
  }
  dims_rule(call);
}

void as_strided_rule(Call& call) {
  const Tensor self = call.tensor(0);
  const WrapperImpl* w = wrapper_at(self, *call.level);
  const std::vector<int64_t> size = list_of(call.args[1]);
  std::vector<int64_t> strides{w->value.strides()[w->bdim]};
  for (const int64_t s : list_of(call.args[2])) strides.push_back(s);
  const Tensor value = call.front(self);
  Stack stack = call.args;
  stack[0] = IValue(value);
  stack[1] = IValue(with_batch(call, size));
  stack[2] = IValue(std::move(strides));
  call.run(std::move(stack));
}

void as_strided_scatter_rule(Call& call) {
  const Tensor self = call.expanded(call.tensor(0)).contiguous();
  const std::vector<int64_t> size = list_of(call.args[2]);
  std::vector<int64_t> strides{self.strides()[0]};
  for (const int64_t s : list_of(call.args[3])) strides.push_back(s);
  Stack stack = call.args;
  stack[0] = IValue(self);
  stack[1] = IValue(call.expanded(call.tensor(1)));
  stack[2] = IValue(with_batch(call, size));
  stack[3] = IValue(std::move(strides));
  call.run(std::move(stack));
}

// One element counts as a vector of one.
void unfold_rule(Call& call) {
  const Tensor self = call.tensor(0);
  if (self.dim() > 0) {
    dims_rule(call);
    return;
  }
  Stack stack = call.args;
  stack[0] = IValue(self.unsqueeze(0));
  call.op.call_boxed(stack);
  call.give_batched(stack[0].toTensor().squeeze(0));
}

// Rows of blocks, each with zeros on both sides.
void block_diag_rule(Call& call) {
  std::vector<Tensor> rows;
  int64_t width = 0;
  std::vector<Tensor> blocks = call.args[0].toTensorList();
  for (Tensor& t : blocks) {
    TORCH_CHECK(t.dim() <= 2,
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                "Input has ",
                t.dim(), " dimensions");
    while (t.dim() < 2) t = t.unsqueeze(0);
    width += t.sizes()[1];
  }
  int64_t before = 0;
  for (const Tensor& t : blocks) {
    const int64_t after = width - before - t.sizes()[1];
    rows.push_back(at::constant_pad_nd(t, {before, after}, 0));
    before += t.sizes()[1];
  }
  call.give_batched(at::cat(rows, 0));
}

// cat, stack: tensors of a list along a dimension. Empty ones of the old kind take no part.
void join(Call& call) {
  std::vector<Tensor> list = call.args[0].toTensorList();
  const bool cat = call.op.full_name() == "aten::cat";
  std::vector<Tensor> kept;
  int64_t rank = 0;
  for (const Tensor& t : list) {
    if (cat && t.dim() == 1 && t.numel() == 0 && list.size() > 1) continue;
    rank = std::max(rank, t.dim());
    kept.push_back(t);
  }
  if (kept.empty()) kept = list;
  for (Tensor& t : kept) t = call.expanded(t);
  Stack stack = call.args;
  stack[1] =
      IValue(call.shifted(call.args[1].toInt(), cat ? std::max<int64_t>(rank, 1) : rank + 1));
  stack[0] = IValue(std::move(kept));
  call.run(std::move(stack));
}

void roll_rule(Call& call) {
  const std::vector<int64_t> shifts = list_of(call.args[1]), dims = list_of(call.args[2]);
  if (!dims.empty()) {
    dims_rule(call);
    return;
  }
  const Tensor value = call.front(call.tensor(0));
  const Tensor flat = value.reshape({call.batch(), call.tensor(0).numel()});
  call.give(at::roll(flat, shifts, {1}).reshape(value.sizes()));
}

// select_backward and the like: the dimensions are those of the input, given by its sizes.
void into_sizes(Call& call) {
  Stack stack = call.args;
  const std::vector<int64_t> sizes = list_of(stack[1]);
  if (sizes.empty()) {
    stack[0] = IValue(call.tensor(0).unsqueeze(0));
    stack[1] = IValue(std::vector<int64_t>{1});
    call.op.call_boxed(stack);
    call.give_batched(stack[0].toTensor().squeeze(0));
    return;
  }
  stack[0] = IValue(call.expanded(call.tensor(0)));
  stack[1] = IValue(with_batch(call, sizes));
  for (const char* name : {"dim", "dim1", "dim2"}) {
    const int at = call.find(name);
    if (at >= 0)
      stack[at] = IValue(call.shifted(stack[at].toInt(), static_cast<int64_t>(sizes.size())));
  }
  call.run(std::move(stack));
}

// Writing one tensor into another of any broadcastable shape.
void copy_rule(Call& call) {
  const Tensor self = call.tensor(0), source = call.tensor(1);
  if ((call.op.flags & kOpMutates) == 0) {
    call.give(call.padded(source, self.dim())
                  .to(self.scalar_type())
                  .expand(call.expanded(self).sizes())
                  .clone());
    return;
  }
  if (!call.batched(self)) throw_inplace(call.op);
  call.front(self).copy_(call.padded(source, self.dim()));
  call.results.push_back(call.args[0]);
}

void view_dtype_rule(Call& call) {
  TORCH_CHECK(call.tensor(0).dim() > 0 ||
                  c10::elementSize(call.args[1].toScalarType()) == call.tensor(0).itemsize(),
              "self.dim() cannot be 0 to view ", call.tensor(0).scalar_type(),
              " as a type of another size");
  unary_rule(call);
}

void is_same_size_rule(Call& call) {
  call.results.emplace_back(call.tensor(0).sizes() == call.tensor(1).sizes());
}
} // namespace

ArrayRef<RuleEntry> shape_rules() {
  static const RuleEntry entries[] = {
      {"alias detach lift lift_fresh lift_fresh_copy clone _to_copy _conj _neg_view _conj_copy "
       "_neg_view_copy alias_copy detach_copy view_as_real view_as_complex view_as_real_copy "
       "view_as_complex_copy zeros_like ones_like full_like empty_like zero_ zero fill_.Scalar "
       "fill.Scalar tril triu pixel_shuffle pixel_unshuffle log_sigmoid_forward celu",
       unary_rule, 0},
      // Pairs of paddings start at the last dimension, so that the batch in front is not reached.
      {"constant_pad_nd", unary_rule, 0},
      {"_prelu_kernel_backward rrelu_with_noise_backward", pointwise_rule, 0},
      {"copy_ copy fill_.Tensor fill.Tensor", copy_rule, 0},
      {"view.dtype view_copy.dtype", view_dtype_rule, 0},
      {"view _unsafe_view view_copy _reshape_copy new_empty new_zeros new_ones new_full", sized, 0},
      {"new_empty_strided", sized_strided, 0},
      {"_reshape_alias _reshape_alias_copy", reshape_alias, 0},
      {"expand expand_copy", expand_rule, 0},
      {"repeat", repeat_rule, 0},
      {"permute permute_copy", permute_rule, 0},
      {"t t_copy", t_rule, 0},
      {"squeeze squeeze_copy", squeeze_rule, 0},
      {"squeeze.dim squeeze.dims squeeze_copy.dim squeeze_copy.dims", squeeze_dim_rule, 0},
      {"unsqueeze unsqueeze_copy diag_embed", dims_rule, kGrows},
      {"transpose.int transpose_copy.int flip", dims_rule, kScalarOk},
      {"as_strided_scatter", as_strided_scatter_rule, 0},
      {"unfold unfold_copy", unfold_rule, 0},
      {"block_diag", block_diag_rule, 0},
      {"select.int slice.Tensor diagonal unbind.int split.Tensor split_with_sizes "
       "unsafe_split.Tensor unsafe_split_with_sizes select_copy.int slice_copy.Tensor "
       "diagonal_copy narrow_copy split_copy.Tensor split_with_sizes_copy unbind_copy.int "
       "rot90 select_scatter slice_scatter diagonal_scatter slice_inverse",
       dims_rule, 0},
      {"roll", roll_rule, 0},
      {"as_strided as_strided_copy", as_strided_rule, 0},
      {"cat stack _stack", join, 0},
      {"select_backward slice_backward diagonal_backward unfold_backward", into_sizes, 0},
      {"is_same_size", is_same_size_rule, 0},
  };
  return entries;
}

} // namespace at::functorch
