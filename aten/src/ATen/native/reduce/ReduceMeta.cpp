// Shape functions of reductions: which dimensions go, which dtype comes out, and what is refused.
#include <ATen/native/OutDtype.h>
#include <ATen/native/reduce/Native.h>
#include <ATen/native/reduce/ReduceDims.h>

#include <ATen/native/shape/Geometry.h>
#include <c10/core/TensorOptions.h>

namespace at::native::reduce {

DimMask all_dims(int64_t ndim) {
  TORCH_CHECK(ndim <= 64, "only tensors with up to 64 dims are supported");
  return ndim == 64 ? ~DimMask(0) : (DimMask(1) << ndim) - 1;
}

DimMask dims_mask(OptionalIntArrayRef dims, int64_t ndim, bool empty_is_all) {
  const DimMask all = all_dims(ndim);
  if (!dims || (dims->empty() && empty_is_all)) return all;
  DimMask mask = 0;
  for (int64_t dim : *dims) {
    const int64_t d = wrap_dim(dim, ndim);
    TORCH_CHECK(!(mask >> d & 1), "dim ", d, " appears multiple times in the list of dims");
    mask |= DimMask(1) << d;
  }
  return mask & all;
}

namespace {
template <class Int> Ints<Int> without_dims(ArrayRef<Int> sizes, DimMask mask, bool keepdim) {
  Ints<Int> shape;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!(mask >> d & 1))
      shape.push_back(sizes[d]);
    else if (keepdim)
      shape.push_back(1);
  }
  return shape;
}
} // namespace
DimVector reduced_shape(IntArrayRef sizes, DimMask mask, bool keepdim) {
  return without_dims(sizes, mask, keepdim);
}

void check_not_empty(const Tensor& self, OptionalIntArrayRef dims, const char* fn) {
  if (!c10::guard_or_false(c10::sym_eq(self.sym_numel(), 0))) return;
  TORCH_CHECK(dims && !dims->empty(), fn,
              ": Expected reduction dim to be specified for input.numel() == 0. "
              "Specify the reduction dim with the 'dim' argument.");
  for (int64_t dim : *dims) {
    const int64_t d = wrap_dim(dim, self.dim());
    TORCH_CHECK_INDEX(self.dim() == 0 || self.sizes()[d] != 0, fn, ": Expected reduction dim ", dim,
                      " to have non-zero size.");
  }
}

namespace {

bool is_countable(ScalarType t) { return c10::isIntegralType(t, true); }

// The dtype of sum-like results: what was asked for, the out tensor's, or the input's with integers
// widened to int64.
ScalarType sum_dtype(const OutputBuilder& out, const Tensor& self,
                     std::optional<ScalarType> dtype) {
  if (dtype) {
    native::check_out_dtype(out, 0, *dtype);
    return *dtype;
  }
  if (out.is_out_variant()) return out.given(0).scalar_type();
  return is_countable(self.scalar_type()) ? kLong : self.scalar_type();
}

void set_reduced(OutputBuilder& out, const Tensor& self, DimMask mask, bool keepdim,
                 ScalarType dtype, int index = 0) {
  if (is_symbolic(self))
    out.set_symint(index, without_dims(self.sym_sizes(), mask, keepdim), dtype);
  else
    out.set(index, reduced_shape(self.sizes(), mask, keepdim), dtype);
}

void set_sum(OutputBuilder& out, const Tensor& self, DimMask mask, bool keepdim,
             std::optional<ScalarType> dtype) {
  set_reduced(out, self, mask, keepdim, sum_dtype(out, self, dtype));
}

void set_mean(OutputBuilder& out, const Tensor& self, DimMask mask, bool keepdim,
              std::optional<ScalarType> dtype) {
  const ScalarType input = dtype.value_or(self.scalar_type());
  TORCH_CHECK(c10::isFloatingType(input) || c10::isComplexType(input),
              "mean(): could not infer output dtype. ", dtype ? "Optional" : "Input",
              " dtype must be either a floating point or complex dtype. Got: ", input);
  set_reduced(out, self, mask, keepdim, sum_dtype(out, self, dtype));
}

void set_extremum(OutputBuilder& out, const Tensor& self, IntArrayRef dim, bool keepdim,
                  const char* fn) {
  if (out.is_out_variant())
    TORCH_CHECK(out.given(0).scalar_type() == self.scalar_type(),
                "Expected the dtype for input and out to match, but got ", self.scalar_type(),
                " for input's dtype and ", out.given(0).scalar_type(), " for out's dtype.");
  const DimMask mask = dims_mask(dim, self.dim());
  check_not_empty(self, dim, fn);
  set_reduced(out, self, mask, keepdim, self.scalar_type());
}

void set_full_extremum(OutputBuilder& out, const Tensor& self, const char* fn) {
  check_not_empty(self, std::nullopt, fn);
  out.set(0, {}, self.scalar_type());
}

void set_indexed(OutputBuilder& out, const Tensor& self, int64_t dim, bool keepdim,
                 const char* fn) {
  TORCH_CHECK(!self.is_complex(), fn, ": does not support complex input");
  const DimMask mask = dim_mask(dim, self.dim());
  check_not_empty(self, IntArrayRef(&dim, 1), fn);
  native::check_out_dtype(out, 0, self.scalar_type());
  native::check_out_dtype(out, 1, kLong);
  set_reduced(out, self, mask, keepdim, self.scalar_type());
  set_reduced(out, self, mask, keepdim, kLong, 1);
}

void set_arg(OutputBuilder& out, const Tensor& self, std::optional<int64_t> dim, bool keepdim,
             const char* fn) {
  TORCH_CHECK(!self.is_complex(), fn, ": does not support complex input");
  TORCH_CHECK(self.scalar_type() != kBool, fn, ": does not support bool input");
  const DimMask mask = dim_mask(dim, self.dim());
  TORCH_CHECK_INDEX(dim || !c10::guard_or_false(c10::sym_eq(self.sym_numel(), 0)), fn,
                    ": Expected reduction dim to be specified for input.numel() == 0.");
  if (dim) check_not_empty(self, IntArrayRef(&*dim, 1), fn);
  native::check_out_dtype(out, 0, kLong);
  set_reduced(out, self, mask, keepdim, kLong);
}

void set_truth(OutputBuilder& out, const Tensor& self, DimMask mask, bool keepdim, const char* fn) {
  ScalarType dtype = self.scalar_type() == kByte ? kByte : kBool;
  if (out.is_out_variant()) {
    dtype = out.given(0).scalar_type();
    TORCH_CHECK(dtype == kBool || dtype == kByte, fn,
                " only supports bool tensor for result, got: ", dtype);
  }
  set_reduced(out, self, mask, keepdim, dtype);
}

void check_var_input(const Tensor& self, const char* fn) {
  TORCH_CHECK(self.is_floating_point() || self.is_complex(), fn,
              " only support floating point and complex dtypes");
}

void set_var(OutputBuilder& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  check_var_input(self, "std and var");
  set_reduced(out, self, dims_mask(dim, self.dim()), keepdim,
              c10::toRealValueType(self.scalar_type()));
}

void set_var_mean(OutputBuilder& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                  const char* fn) {
  check_var_input(self, fn);
  const DimMask mask = dims_mask(dim, self.dim());
  set_reduced(out, self, mask, keepdim, c10::toRealValueType(self.scalar_type()));
  set_reduced(out, self, mask, keepdim, self.scalar_type(), 1);
}

} // namespace
} // namespace at::native::reduce

namespace at::meta {

using namespace at::native::reduce;

void meta_sum(OutputBuilder& out, const Tensor& self, std::optional<ScalarType> dtype) {
  set_sum(out, self, all_dims(self.dim()), false, dtype);
}
void meta_sum_dim(OutputBuilder& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                  std::optional<ScalarType> dtype) {
  set_sum(out, self, dims_mask(dim, self.dim()), keepdim, dtype);
}
void meta_nansum(OutputBuilder& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                 std::optional<ScalarType> dtype) {
  TORCH_CHECK(!self.is_complex(), "nansum on CPU does not support complex inputs");
  set_sum(out, self, dims_mask(dim, self.dim()), keepdim, dtype);
}
void meta_mean(OutputBuilder& out, const Tensor& self, std::optional<ScalarType> dtype) {
  set_mean(out, self, all_dims(self.dim()), false, dtype);
}
void meta_mean_dim(OutputBuilder& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  set_mean(out, self, dims_mask(dim, self.dim()), keepdim, dtype);
}
void meta_prod(OutputBuilder& out, const Tensor& self, std::optional<ScalarType> dtype) {
  set_sum(out, self, all_dims(self.dim()), false, dtype);
}
void meta_prod_dim(OutputBuilder& out, const Tensor& self, int64_t dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  set_sum(out, self, dim_mask(dim, self.dim()), keepdim, dtype);
}

void meta_amax(OutputBuilder& out, const Tensor& self, IntArrayRef dim, bool keepdim) {
  set_extremum(out, self, dim, keepdim, "amax()");
}
void meta_amin(OutputBuilder& out, const Tensor& self, IntArrayRef dim, bool keepdim) {
  set_extremum(out, self, dim, keepdim, "amin()");
}
void meta_aminmax(OutputBuilder& out, const Tensor& self, std::optional<int64_t> dim,
                  bool keepdim) {
  const DimMask mask = dim_mask(dim, self.dim());
  if (dim) check_not_empty(self, IntArrayRef(&*dim, 1), "aminmax");
  TORCH_CHECK(dim || !c10::guard_or_false(c10::sym_eq(self.sym_numel(), 0)),
              "aminmax(): cannot compute aminmax over an empty dimension "
              "as the operation has no identity.");
  native::check_out_dtype(out, 0, self.scalar_type());
  native::check_out_dtype(out, 1, self.scalar_type());
  set_reduced(out, self, mask, keepdim, self.scalar_type());
  set_reduced(out, self, mask, keepdim, self.scalar_type(), 1);
}
void meta_max(OutputBuilder& out, const Tensor& self) { set_full_extremum(out, self, "max()"); }
void meta_min(OutputBuilder& out, const Tensor& self) { set_full_extremum(out, self, "min()"); }
void meta_max_dim(OutputBuilder& out, const Tensor& self, int64_t dim, bool keepdim) {
  set_indexed(out, self, dim, keepdim, "max()");
}
void meta_min_dim(OutputBuilder& out, const Tensor& self, int64_t dim, bool keepdim) {
  set_indexed(out, self, dim, keepdim, "min()");
}
void meta_argmax(OutputBuilder& out, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  set_arg(out, self, dim, keepdim, "argmax()");
}
void meta_argmin(OutputBuilder& out, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  set_arg(out, self, dim, keepdim, "argmin()");
}

void meta_all(OutputBuilder& out, const Tensor& self) {
  set_truth(out, self, all_dims(self.dim()), false, "all");
}
void meta_all_dim(OutputBuilder& out, const Tensor& self, int64_t dim, bool keepdim) {
  set_truth(out, self, dim_mask(dim, self.dim()), keepdim, "all");
}
void meta_all_dims(OutputBuilder& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  set_truth(out, self, dims_mask(dim, self.dim(), false), keepdim, "all");
}
void meta_any(OutputBuilder& out, const Tensor& self) {
  set_truth(out, self, all_dims(self.dim()), false, "any");
}
void meta_any_dim(OutputBuilder& out, const Tensor& self, int64_t dim, bool keepdim) {
  set_truth(out, self, dim_mask(dim, self.dim()), keepdim, "any");
}
void meta_any_dims(OutputBuilder& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  set_truth(out, self, dims_mask(dim, self.dim(), false), keepdim, "any");
}

void meta_std_correction(OutputBuilder& out, const Tensor& self, OptionalIntArrayRef dim,
                         const std::optional<Scalar>&, bool keepdim) {
  set_var(out, self, dim, keepdim);
}
void meta_var_correction(OutputBuilder& out, const Tensor& self, OptionalIntArrayRef dim,
                         const std::optional<Scalar>&, bool keepdim) {
  set_var(out, self, dim, keepdim);
}
void meta_std_mean_correction(OutputBuilder& out, const Tensor& self, OptionalIntArrayRef dim,
                              const std::optional<Scalar>&, bool keepdim) {
  set_var_mean(out, self, dim, keepdim, "std_mean");
}
void meta_var_mean_correction(OutputBuilder& out, const Tensor& self, OptionalIntArrayRef dim,
                              const std::optional<Scalar>&, bool keepdim) {
  set_var_mean(out, self, dim, keepdim, "var_mean");
}

void meta_logsumexp(OutputBuilder& out, const Tensor& self, IntArrayRef dim, bool keepdim) {
  if (out.is_out_variant()) {
    const ScalarType given = out.given(0).scalar_type();
    TORCH_CHECK(c10::isFloatingType(given) || c10::isComplexType(given),
                "logsumexp(): Expected floating point type for result tensor, but got: ", given);
  }
  const ScalarType dtype =
      c10::isIntegralType(self.scalar_type(), true) ? c10::get_default_dtype() : self.scalar_type();
  set_reduced(out, self, dims_mask(dim, self.dim()), keepdim, dtype);
}

void meta_linalg_vector_norm(OutputBuilder& out, const Tensor& self, const Scalar& ord,
                             OptionalIntArrayRef dim, bool keepdim,
                             std::optional<ScalarType> dtype) {
  const ScalarType input = self.scalar_type();
  TORCH_CHECK(c10::isFloatingType(input) || c10::isComplexType(input),
              "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
              input);
  TORCH_CHECK(!ord.isComplex(),
              "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
  if (dtype) {
    TORCH_CHECK(c10::isFloatingType(*dtype) || c10::isComplexType(*dtype),
                "linalg.vector_norm: dtype should be floating point or complex, but got ", *dtype);
    TORCH_CHECK(c10::isComplexType(input) == c10::isComplexType(*dtype),
                "linalg.vector_norm: dtype should be ",
                c10::isComplexType(input) ? "complex" : "real", " for ",
                c10::isComplexType(input) ? "complex" : "real", " inputs, but got ", *dtype);
    TORCH_CHECK(c10::promoteTypes(input, *dtype) == *dtype,
                "linalg.vector_norm: the dtype of the input (", input,
                ") should be convertible without narrowing to the specified dtype (", *dtype, ")");
  }
  const DimMask mask = dims_mask(dim, self.dim());
  const double p = ord.toDouble();
  if ((p < 0 || p > 1.7e308) && c10::guard_or_false(c10::sym_eq(self.sym_numel(), 0))) {
    TORCH_CHECK(dim && !dim->empty(), "linalg.vector_norm cannot compute the ", ord,
                " norm on an empty tensor because the operation does not have an identity");
    for (int64_t d = 0; d < self.dim(); ++d)
      TORCH_CHECK(!(mask >> d & 1) || self.sizes()[d] != 0,
                  "linalg.vector_norm cannot compute the ", ord, " norm on the dimension ", d,
                  "because this dimension is empty and the operation does not have an identity");
  }
  const ScalarType result = c10::toRealValueType(dtype.value_or(input));
  native::check_out_dtype(out, 0, result);
  set_reduced(out, self, mask, keepdim, result);
}

void meta_count_nonzero(OutputBuilder& out, const Tensor& self, IntArrayRef dim) {
  set_reduced(out, self, dims_mask(dim, self.dim()), false, kLong);
}

void meta_hash_tensor(OutputBuilder& out, const Tensor& self, IntArrayRef dim, bool keepdim,
                      int64_t mode) {
  TORCH_CHECK(mode == 0, "Unknown hash_tensor mode: ", mode);
  const DimMask mask = dims_mask(dim, self.dim());
  check_not_empty(self, dim, "hash_tensor");
  set_reduced(out, self, mask, keepdim, kUInt64);
}

void meta_trace(OutputBuilder& out, const Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  out.set(0, {}, c10::isIntegralType(self.scalar_type(), true) ? kLong : self.scalar_type());
}

} // namespace at::meta
