// See NormUtil.h and NormKernel.h.
#include <ATen/native/norm/NormUtil.h>

#include <ATen/iter/CpuIsa.h>
#include <ATen/iter/IsaTable.h>
#include <ATen/native/DTypeSwitch.h>

namespace at::native {

namespace norm_loops {

CRESSET_DEFINE_ISA_TABLE(NormTable);

const NormLoops& loops_for(ScalarType dtype, const char* name) {
  const NormLoops& loops = table().loops[static_cast<int>(dtype)];
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
    parallel_for(0, count, 32768, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) p[i] = static_cast<T>(values[i]);
    });
  });
}

std::vector<double> load_values(const Tensor& t) {
  const Tensor c = t.contiguous();
  std::vector<double> values(static_cast<size_t>(c.numel()));
  dtype_switch<FloatingTypes>(c.scalar_type(), "norm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = static_cast<const T*>(c.const_data_ptr());
    parallel_for(0, c.numel(), 32768, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[i] = static_cast<double>(p[i]);
    });
  });
  return values;
}

void row_moments(const norm_loops::NormLoops& loops, const char* x, int64_t n, int64_t item,
                 norm_loops::Moments* into) {
  if (n <= kLongRow) return loops.moments(x, n, into);
  const int64_t chunk = chunk_size(n, kLongRow);
  std::vector<norm_loops::Moments> parts(static_cast<size_t>(chunk_count(n, kLongRow)));
  parallel_for(0, n, kLongRow, [&](int64_t begin, int64_t end) {
    loops.moments(x + begin * item, end - begin, &parts[static_cast<size_t>(begin / chunk)]);
  });
  for (const norm_loops::Moments& part : parts) into->merge(part);
}

double row_square_sum(const norm_loops::NormLoops& loops, const char* x, int64_t n, int64_t item) {
  return parallel_reduce(
      0, n, kLongRow, 0.0,
      [&](int64_t begin, int64_t end, double) {
        return loops.square_sum(x + begin * item, end - begin);
      },
      [](double a, double b) { return a + b; });
}

void row_grad_sums(const norm_loops::NormLoops& loops, const char* g, const char* x, int64_t n,
                   int64_t item, double mean, double* sums) {
  if (n <= kLongRow) return loops.grad_sums(g, x, n, mean, sums);
  struct Pair {
    double value[2];
  };
  const Pair total = parallel_reduce(
      0, n, kLongRow, Pair{{0, 0}},
      [&](int64_t begin, int64_t end, Pair own) {
        loops.grad_sums(g + begin * item, x + begin * item, end - begin, mean, own.value);
        return own;
      },
      [](Pair a, Pair b) {
        return Pair{{a.value[0] + b.value[0], a.value[1] + b.value[1]}};
      });
  for (int i = 0; i < 2; ++i) sums[i] += total.value[i];
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
