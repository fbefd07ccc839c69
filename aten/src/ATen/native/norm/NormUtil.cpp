// See NormUtil.h and NormKernel.h.
#include <ATen/native/norm/NormUtil.h>

#include <ATen/iter/CpuIsa.h>
#include <ATen/native/DTypeSwitch.h>

namespace at::native {

namespace norm_loops {
const NormLoops& loops_for(ScalarType dtype, const char* name) {
  static const NormTable* const table = [] {
    auto* t = new NormTable();
    CRESSET_BY_ISA(, fill)(*t);
    return t;
  }();
  const NormLoops& loops = table->loops[static_cast<int>(dtype)];
  TORCH_CHECK_NOT_IMPLEMENTED(loops.moments, "\"", name, "\" not implemented for '", dtype, "'");
  return loops;
}
} // namespace norm_loops

Tensor parameter_values(const std::optional<Tensor>& t, ScalarType compute) {
  if (!has(t)) return Tensor();
  if (t->scalar_type() == compute && t->is_contiguous()) return *t;
  return t->to(compute).contiguous();
}

void store_values(const Tensor& out, const double* values, int64_t count) {
  TORCH_INTERNAL_ASSERT(out.numel() == count && out.is_contiguous());
  dtype_switch<FloatingTypes>(out.scalar_type(), "norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* p = static_cast<T*>(out.mutable_data_ptr());
    for (int64_t i = 0; i < count; ++i) p[i] = static_cast<T>(values[i]);
  });
}

std::vector<double> load_values(const Tensor& t) {
  const Tensor c = t.contiguous();
  std::vector<double> values(static_cast<size_t>(c.numel()));
  dtype_switch<FloatingTypes>(c.scalar_type(), "norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = static_cast<const T*>(c.const_data_ptr());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(p[i]);
  });
  return values;
}

ScalarType statistics_type(const Tensor& input,
                           std::initializer_list<const std::optional<Tensor>*> parameters) {
  const ScalarType dtype = input.scalar_type();
  ScalarType result = dtype;
  for (const std::optional<Tensor>* p : parameters) {
    if (!has(*p) || (*p)->scalar_type() == dtype) continue;
    TORCH_CHECK((*p)->scalar_type() == kFloat,
                "mixed dtype (CPU): expect parameter to have scalar type of Float");
    TORCH_CHECK(dtype == kHalf || dtype == kBFloat16,
                "mixed dtype (CPU): all inputs must share same datatype.");
    result = kFloat;
  }
  if (result == dtype) return result;
  for (const std::optional<Tensor>* p : parameters)
    TORCH_CHECK(!has(*p) || (*p)->scalar_type() == kFloat,
                "mixed dtype (CPU): expect parameter to have scalar type of Float");
  return result;
}

} // namespace at::native
