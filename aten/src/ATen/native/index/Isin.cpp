// isin: sorted test elements and a binary search per element, or a plain scan where there are few.
#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/index/IndexUtil.h>
#include <ATen/native/index/Native.h>
#include <ATen/native/index/RowLoops.h>
#include <ATen/ops/isin.h>
#include <ATen/parallel/Stretches.h>

#include <algorithm>
#include <vector>

namespace at {
namespace native {
namespace {

void check_dtype(ScalarType dtype) {
  TORCH_CHECK(dtype != kBool && !c10::isComplexType(dtype),
              "Unsupported input type encountered for isin(): ", dtype);
}

void check_isin(ScalarType elements, ScalarType tests) {
  check_dtype(elements);
  check_dtype(tests);
}

template <class T> void find(const T* elements, int64_t n,
                             const std::vector<typename Computed<T>::type>& tests, bool invert,
                             bool* out) {
  using C = typename Computed<T>::type;
  const bool scan = tests.size() <= 16;
  parallel_for(0, n, scan ? 16384 : 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const C v = load_computed(elements[i]);
      bool found = false;
      if (scan) {
        for (const C& t : tests) found |= v == t;
      } else {
        // NaN compares false with everything and is never found.
        const auto bound = std::lower_bound(tests.begin(), tests.end(), v);
        found = bound != tests.end() && *bound == v;
      }
      out[i] = found != invert;
    }
  });
}

} // namespace
} // namespace native

namespace meta {

void meta_isin(OutputBuilder& out, const Tensor& elements, const Tensor& test_elements,
               bool assume_unique, bool invert) {
  static_cast<void>(assume_unique);
  static_cast<void>(invert);
  native::check_isin(elements.scalar_type(), test_elements.scalar_type());
  out.set_on(0, elements.sizes(), kBool, elements.device());
}

} // namespace meta

namespace native {

void isin_cpu(const Tensor& elements, const Tensor& test_elements, bool assume_unique, bool invert,
              const Tensor& out) {
  static_cast<void>(assume_unique);
  const ScalarType dtype = result_type_of(elements, test_elements);
  const Tensor values = elements.to(dtype).contiguous();
  const Tensor tests = test_elements.to(dtype).contiguous();
  bool* result = out.data_ptr<bool>();
  dtype_switch<RealTypes>(dtype, "isin_default_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = typename Computed<T>::type;
    const T* first = tests.numel() > 0 ? tests.data_ptr<T>() : nullptr;
    std::vector<C> sorted;
    sorted.reserve(static_cast<size_t>(tests.numel()));
    serial_for(0, tests.numel(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const C v = load_computed(first[i]);
        if (!is_nan_value(v)) sorted.push_back(v);
      }
    });
    Steps steps;
    std::sort(sorted.begin(), sorted.end(), [&steps](const C& a, const C& b) {
      steps.add(2);
      return a < b;
    });
    if (values.numel() > 0) find(values.data_ptr<T>(), values.numel(), sorted, invert, result);
  });
}

Tensor isin_tensor_scalar(const Tensor& elements, const Scalar& test_element, bool assume_unique,
                          bool invert) {
  return at::isin(elements, detail::wrapped_number(test_element), assume_unique, invert);
}

Tensor isin_scalar_tensor(const Scalar& element, const Tensor& test_elements, bool assume_unique,
                          bool invert) {
  return at::isin(detail::wrapped_number(element), test_elements, assume_unique, invert);
}

} // namespace native
} // namespace at
