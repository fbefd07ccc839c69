// Indexing operators on CUDA: each is a plan (IndexPlan.h) and one of read, write and combine.
// Shapes and messages are those of the CPU's files.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/index/DenseIndex.h>
#include <ATen/native/index/IndexPlan.h>
#include <ATen/native/index/Native.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/ops/add.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/masked_fill.h>

namespace at::native {
namespace {
using namespace cuda_index;
using cuda::blocks_for;

const cuda::Kernel kRows("native/index/Indexing.cuh", "index_rows");

// One value on the device, seen at every position of the index.
Tensor spread(const Scalar& value, const Tensor& self, IntArrayRef sizes) {
  const Tensor one = detail::empty({}, self.scalar_type(), self.device());
  one.fill_(value);
  return detail::view_of(one, sizes, DimVector(sizes.size(), 0), 0);
}

// A CPU operand that may accompany CUDA ones, on the device of those.
Tensor on_device(const Tensor& t, const Tensor& self) {
  if (t.device() == self.device()) return t;
  const Tensor copy = detail::empty(t.sizes(), t.scalar_type(), self.device());
  copy.copy_(t);
  return copy;
}

// Whole rows that consist of 16-byte pieces: embedding's lookup, and x[i] with one index tensor,
// which may count from the end.
bool select_rows(const char* op, const Tensor& self, const Tensor& index, const Tensor& out,
                 bool wraps) {
  if (!self.is_contiguous() || !out.is_contiguous()) return false;
  if (index.dim() > 0 && !index.is_contiguous()) return false;
  int64_t row = self.itemsize();
  for (int64_t d = 1; d < self.dim(); ++d) row *= self.size(d);
  if (row % 16 != 0 || !cuda::is_aligned16(self.const_data_ptr()) ||
      !cuda::is_aligned16(out.const_data_ptr()))
    return false;
  const int64_t rows = index.numel(), units = row / 16;
  cuda::launch(kRows, blocks_for(rows * units, 256), 256, 0, cuda::current_stream(),
               self.const_data_ptr(), index.const_data_ptr(),
               static_cast<int>(index.scalar_type() == kInt), out.mutable_data_ptr(), rows, units,
               self.size(0), static_cast<int>(wraps), cuda::index_check(op));
  return true;
}

// ---- gather and scatter
int64_t dim_of(const Tensor& self, int64_t dim) { return wrap_dim(dim, self.dim()); }

void scatter(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
             const Tensor& src, const Tensor& out, const CombineOptions* options) {
  if (!out.is_same(self)) out.copy_(self);
  if (index.numel() == 0) return;
  const Tensor target = as_vector_if_scalar(out), i = as_vector_if_scalar(index),
               from = as_vector_if_scalar(src);
  const bool adds = options && options->how == Reduction::Sum && options->include_self;
  if (adds && scatter_add_dense(target, dim_of(self, dim), i, from, op)) return;
  const IndexPlan plan = plan_elements(op, target, from, dim_of(self, dim), i);
  if (options)
    combine(plan, target, from, *options, op);
  else
    write(plan, target, from);
}

CombineOptions old_reduction(std::string_view reduce) {
  CombineOptions options;
  options.how = reduce == "add" ? Reduction::Sum : Reduction::Prod;
  return options;
}

// ---- advanced indexing
// The plan of self[indices] against a tensor of the result's shape. `held` keeps device copies.
IndexPlan plan_advanced(const char* op, const AdvancedIndex& advanced, const Tensor& linear,
                        c10::SmallVector<Tensor, 4>& held) {
  IndexPlan plan = plan_for(op);
  plan.wraps = 1;
  const Tensor& self = advanced.self;
  const int64_t index_dims = static_cast<int64_t>(advanced.shape.size()),
                indexed = static_cast<int64_t>(advanced.indices.size());
  TORCH_CHECK_NOT_IMPLEMENTED(index_dims <= kDims && indexed <= kDims, op,
                              " on CUDA with more than ", kDims, " index dimensions");
  plan.positions.ndim = static_cast<int32_t>(index_dims);
  for (int64_t d = 0; d < index_dims; ++d) {
    plan.positions.count *= advanced.shape[d];
    plan.positions.sizes[d] = advanced.shape[d];
    plan.positions.b[d] = linear.stride(advanced.first + d);
  }
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d >= advanced.first && d < advanced.first + indexed) continue;
    const int64_t linear_dim = d < advanced.first ? d : d - indexed + index_dims;
    add_dimension(plan.slices, self.size(d), self.stride(d), linear.stride(linear_dim));
  }
  for (int64_t k = 0; k < indexed; ++k) {
    held.push_back(on_device(advanced.indices[k], self).expand(advanced.shape));
    const Tensor& t = held.back();
    IndexOperand& operand = plan.index[k];
    operand.data = t.const_data_ptr();
    for (int64_t d = 0; d < index_dims; ++d) operand.strides[d] = t.stride(d);
    operand.bound = self.size(advanced.first + k);
    operand.stride = self.stride(advanced.first + k);
    operand.dim = static_cast<int32_t>(k);
    operand.narrow = t.scalar_type() == kInt;
  }
  plan.indices = static_cast<int32_t>(indexed);
  return plan;
}

void put_values(const AdvancedIndex& advanced, const Tensor& values, bool accumulate) {
  const Tensor fitted = fit_values(values, advanced.result_sizes());
  check_put_dtypes(advanced.self, values);
  if (fitted.numel() == 0) return;
  c10::SmallVector<Tensor, 4> held;
  const IndexPlan plan = plan_advanced("index_put", advanced, fitted, held);
  if (accumulate)
    combine(plan, advanced.self, fitted, CombineOptions(), "index_put");
  else
    write(plan, advanced.self, fitted);
}

Tensor flat(const Tensor& t) { return t.reshape({t.numel()}); }

} // namespace

// ---- one index vector along a dimension
namespace {
void select(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
            const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t d = dim_of(self, dim);
  if (d == 0 && self.dim() > 0 && select_rows(op, self, index, out, false)) return;
  const Tensor source = as_vector_if_scalar(self), target = as_vector_if_scalar(out);
  read(plan_along(op, source, target, d, index, false), source, target);
}
} // namespace

void index_select_cuda(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  select("index_select", self, dim, index, out);
}

void index_copy_cuda(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                     const Tensor& out) {
  if (!out.is_same(self)) out.copy_(self);
  if (source.numel() == 0) return;
  const Tensor target = as_vector_if_scalar(out), from = as_vector_if_scalar(source);
  write(plan_along("index_copy_", target, from, dim_of(self, dim), index, false), target, from);
}

void index_add_cuda(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    const Scalar& alpha, const Tensor& out) {
  if (!out.is_same(self)) out.copy_(self);
  if (source.numel() == 0) return;
  const Tensor target = as_vector_if_scalar(out), from = as_vector_if_scalar(source);
  CombineOptions options;
  options.scale = alpha.to<double>();
  combine(plan_along("index_add_", target, from, dim_of(self, dim), index, false), target, from,
          options, "index_add");
}

void index_reduce_cuda(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                       std::string_view reduce, bool include_self, const Tensor& out) {
  CombineOptions options;
  options.how = parse_reduction(reduce);
  options.include_self = include_self;
  if (!out.is_same(self)) out.copy_(self);
  if (source.numel() == 0) return;
  const Tensor target = as_vector_if_scalar(out), from = as_vector_if_scalar(source);
  combine(plan_along("index_reduce_", target, from, dim_of(self, dim), index, false), target, from,
          options, "index_reduce");
}

Tensor& index_fill_scalar_cuda_(Tensor& self, int64_t dim, const Tensor& index,
                                const Scalar& value) {
  index_fill_scalar_meta_(self, dim, index, value); // checks, and bumps the version
  const int64_t d = dim_of(self, dim);
  const Tensor target = as_vector_if_scalar(self);
  DimVector sizes(target.sizes());
  sizes[d] = index.numel();
  if (c10::checked_numel(sizes) == 0) return self;
  const Tensor values = spread(value, self, sizes);
  write(plan_along("index_fill_", target, values, d, index, true), target, values);
  return self;
}

// ---- an index for every element
void gather_cuda(const Tensor& self, int64_t dim, const Tensor& index, bool, const Tensor& out) {
  if (index.numel() == 0) return;
  const Tensor source = as_vector_if_scalar(self), i = as_vector_if_scalar(index),
               target = as_vector_if_scalar(out);
  if (gather_dense(source, dim_of(self, dim), i, target)) return;
  read(plan_elements("gather", source, target, dim_of(self, dim), i), source, target);
}
void scatter_src_cuda(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      const Tensor& out) {
  scatter("scatter", self, dim, index, src, out, nullptr);
}
void scatter_value_cuda(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                        const Tensor& out) {
  scatter("scatter", self, dim, index, spread(value, self, index.sizes()), out, nullptr);
}
void scatter_src_reduce_cuda(const Tensor& self, int64_t dim, const Tensor& index,
                             const Tensor& src, std::string_view reduce, const Tensor& out) {
  const CombineOptions options = old_reduction(reduce);
  scatter("scatter", self, dim, index, src, out, &options);
}
void scatter_value_reduce_cuda(const Tensor& self, int64_t dim, const Tensor& index,
                               const Scalar& value, std::string_view reduce, const Tensor& out) {
  const CombineOptions options = old_reduction(reduce);
  scatter("scatter", self, dim, index, spread(value, self, index.sizes()), out, &options);
}
void scatter_add_cuda(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      const Tensor& out) {
  const CombineOptions options;
  scatter("scatter_add", self, dim, index, src, out, &options);
}
void scatter_reduce_cuda(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                         std::string_view reduce, bool include_self, const Tensor& out) {
  CombineOptions options;
  options.how = parse_reduction(reduce);
  options.include_self = include_self;
  scatter("scatter_reduce", self, dim, index, src, out, &options);
}

// ---- positions in row-major order
void take_cuda(const Tensor& self, const Tensor& index, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor source = flat(self), i = flat(index);
  const Tensor target =
      out.is_contiguous() ? out : detail::empty(out.sizes(), out.scalar_type(), out.device());
  IndexPlan plan = plan_elements("take", source, flat(target), 0, i);
  plan.wraps = 1;
  read(plan, source, flat(target));
  if (!target.is_same(out)) out.copy_(target);
}
Tensor& put_cuda_(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  put_meta_(self, index, source, accumulate); // checks, and bumps the version
  if (index.numel() == 0) return self;
  const Tensor target = flat(self), from = flat(source), i = flat(index);
  IndexPlan plan = plan_elements("put_", target, from, 0, i);
  plan.wraps = 1;
  if (accumulate)
    combine(plan, target, from, CombineOptions(), "put_");
  else
    write(plan, target, from);
  if (!target.is_alias_of(self)) self.copy_(target.view(self.sizes()));
  return self;
}

// ---- advanced indexing
Tensor index_cuda(const Tensor& self, OptionalTensorList indices) {
  if (const Tensor* mask = full_mask(self, indices)) return masked_select_cuda(self, *mask);
  const AdvancedIndex advanced(self, indices);
  if (advanced.indices.empty()) return self.clone();
  Tensor result = allocate_result(advanced);
  if (result.numel() == 0) return result;
  if (advanced.indices.size() == 1 && advanced.first == 0 &&
      select_rows("index", advanced.self, on_device(advanced.indices[0], self), result, true))
    return result;
  c10::SmallVector<Tensor, 4> held;
  const IndexPlan plan = plan_advanced("index", advanced, result, held);
  read(plan, advanced.self, result);
  return result;
}

Tensor& index_put_impl_cuda_(Tensor& self, OptionalTensorList indices, const Tensor& given,
                             bool accumulate, bool) {
  const Tensor values = put_source(self, indices, given, accumulate);
  check_put(self, values, indices);
  const Tensor source = on_device(values, self);
  const Tensor* mask = accumulate || values.dim() != 0 ? nullptr : full_mask(self, indices);
  if (mask != nullptr) return at::_ops::masked_fill__Tensor::call(self, *mask, values);
  const AdvancedIndex advanced(self, indices);
  if (advanced.indices.empty()) {
    const Tensor fitted = fit_values(source, self.sizes());
    check_put_dtypes(self, source);
    self.copy_(accumulate ? at::add(self, fitted) : fitted);
  } else {
    put_values(advanced, source, accumulate);
  }
  self.unsafeGetTensorImpl()->bump_version();
  return self;
}
Tensor& index_put_cuda_(Tensor& self, OptionalTensorList indices, const Tensor& values,
                        bool accumulate) {
  return index_put_impl_cuda_(self, indices, values, accumulate, false);
}

// ---- embedding
Tensor embedding_cuda(const Tensor& weight, const Tensor& indices, int64_t /*padding_idx*/,
                      bool /*scale_grad_by_freq*/, bool /*sparse*/) {
  check_embedding(weight, indices);
  cuda::check_same_device({&weight, &indices});
  DimVector sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  const Tensor out = detail::empty(sizes, weight.scalar_type(), weight.device());
  select("embedding", weight, 0, flat(indices), out.view({indices.numel(), weight.size(1)}));
  return out;
}

Tensor embedding_dense_backward_cuda(const Tensor& grad_output, const Tensor& indices,
                                     int64_t num_weights, int64_t padding_idx,
                                     bool scale_grad_by_freq) {
  TORCH_CHECK(indices.scalar_type() == kLong || indices.scalar_type() == kInt,
              "embedding_dense_backward: indices must be Long or Int, got ", indices.scalar_type());
  TORCH_CHECK(num_weights >= 0 && grad_output.dim() > 0,
              "embedding_dense_backward: the gradient needs a dimension and num_weights must not "
              "be negative");
  cuda::check_same_device({&grad_output, &indices});
  const int64_t width = grad_output.size(-1), n = indices.numel();
  TORCH_CHECK(grad_output.numel() == n * width, "embedding_dense_backward: gradient of shape ",
              grad_output.sizes(), " does not fit indices of shape ", indices.sizes());
  const Tensor grad = grad_output.reshape({n, width}).contiguous(), i = flat(indices);
  const Tensor result =
      detail::empty({num_weights, width}, grad.scalar_type(), grad_output.device());
  result.zero_();
  if (n == 0 || result.numel() == 0) return result;
  CombineOptions options;
  options.include_self = false;
  options.by_count = scale_grad_by_freq;
  options.skipped = padding_idx >= 0 ? padding_idx * width : -1;
  combine(plan_along("embedding", result, grad, 0, i, false), result, grad, options,
          "embedding_backward");
  return result;
}

} // namespace at::native
