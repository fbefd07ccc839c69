// Operators for extensions with a stable ABI: each is a call of the operator of the same name
// through the dispatcher of the library that runs, so that autograd, devices and modes work as in
// any other call. Failures throw std::runtime_error.
#pragma once
#include <array>
#include <cmath>

#include <torch/csrc/stable/library.h>

namespace torch::stable {

using torch::headeronly::MemoryFormat;

namespace detail {

// Calls `name.overload`; `Results` are the types of what it returns.
template <class Result, class... Args>
Result call(const char* name, const char* overload, const Args&... args) {
  // Room for one result where there is no argument.
  std::array<StableIValue, sizeof...(Args) + 1> stack{from(args)...};
  TORCH_ERROR_CODE_CHECK(aoti_torch_call_dispatcher(name, overload, stack.data()));
  if constexpr (!std::is_void_v<Result>) return to<Result>(stack[0]);
}

using SizeList = std::vector<int64_t>;
inline SizeList owned(IntHeaderOnlyArrayRef sizes) { return sizes.vec(); }

} // namespace detail

// ---- making tensors
inline Tensor empty(IntHeaderOnlyArrayRef size, std::optional<ScalarType> dtype = std::nullopt,
                    std::optional<Layout> layout = std::nullopt,
                    std::optional<Device> device = std::nullopt,
                    std::optional<bool> pin_memory = std::nullopt,
                    std::optional<MemoryFormat> memory_format = std::nullopt) {
  return detail::call<Tensor>("aten::empty", "memory_format", detail::owned(size), dtype, layout,
                              device, pin_memory, memory_format);
}
inline Tensor empty_like(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt,
                         std::optional<Layout> layout = std::nullopt,
                         std::optional<Device> device = std::nullopt,
                         std::optional<bool> pin_memory = std::nullopt,
                         std::optional<MemoryFormat> memory_format = std::nullopt) {
  return detail::call<Tensor>("aten::empty_like", "", self, dtype, layout, device, pin_memory,
                              memory_format);
}
inline Tensor new_empty(const Tensor& self, IntHeaderOnlyArrayRef size,
                        std::optional<ScalarType> dtype = std::nullopt,
                        std::optional<Layout> layout = std::nullopt,
                        std::optional<Device> device = std::nullopt,
                        std::optional<bool> pin_memory = std::nullopt) {
  return detail::call<Tensor>("aten::new_empty", "", self, detail::owned(size), dtype, layout,
                              device, pin_memory);
}
inline Tensor new_zeros(const Tensor& self, IntHeaderOnlyArrayRef size,
                        std::optional<ScalarType> dtype = std::nullopt,
                        std::optional<Layout> layout = std::nullopt,
                        std::optional<Device> device = std::nullopt,
                        std::optional<bool> pin_memory = std::nullopt) {
  return detail::call<Tensor>("aten::new_zeros", "", self, detail::owned(size), dtype, layout,
                              device, pin_memory);
}
inline Tensor clone(const Tensor& self) {
  return detail::call<Tensor>("aten::clone", "", self, std::optional<MemoryFormat>());
}

namespace detail {
inline Tensor on_memory(void* data, IntHeaderOnlyArrayRef sizes, IntHeaderOnlyArrayRef strides,
                        const Device& device, ScalarType dtype, int64_t storage_offset,
                        Layout layout, void (*deleter)(void*, void*), void* context) {
  const bool fits = layout == Layout::Strided && sizes.size() == strides.size();
  if (!fits) deleter(data, context);
  STD_TORCH_CHECK(layout == Layout::Strided, "from_blob: only strided tensors lie in memory that "
                                             "another program can give");
  STD_TORCH_CHECK(sizes.size() == strides.size(), "from_blob: ", sizes.size(), " sizes and ",
                  strides.size(), " strides");
  AtenTensorHandle handle = nullptr;
  TORCH_ERROR_CODE_CHECK(torch_tensor_on_memory(
      data, static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(), storage_offset,
      number_of(dtype), number_of(device.type()), device.index(), deleter, context, &handle));
  return Tensor(handle);
}
} // namespace detail

// A tensor on memory of the caller, which must outlive it.
inline Tensor from_blob(void* data, IntHeaderOnlyArrayRef sizes, IntHeaderOnlyArrayRef strides,
                        const Device& device, ScalarType dtype, int64_t storage_offset = 0,
                        Layout layout = Layout::Strided) {
  return detail::on_memory(
      data, sizes, strides, device, dtype, storage_offset, layout, [](void*, void*) {}, nullptr);
}
// `deleter(data)` is called when no tensor uses the memory any more, also where this call throws.
template <class F, class = std::enable_if_t<std::is_invocable_v<F&, void*>>>
Tensor from_blob(void* data, IntHeaderOnlyArrayRef sizes, IntHeaderOnlyArrayRef strides,
                 const Device& device, ScalarType dtype, F deleter, int64_t storage_offset = 0,
                 Layout layout = Layout::Strided) {
  const auto release = [](void* memory, void* context) {
    const std::unique_ptr<F> owned(static_cast<F*>(context));
    (*owned)(memory);
  };
  return detail::on_memory(data, sizes, strides, device, dtype, storage_offset, layout, release,
                           new F(std::move(deleter)));
}

// ---- writing
inline Tensor zero_(Tensor& self) { return detail::call<Tensor>("aten::zero_", "", self); }
inline Tensor copy_(Tensor& self, const Tensor& src,
                    std::optional<bool> non_blocking = std::nullopt) {
  return detail::call<Tensor>("aten::copy_", "", self, src, non_blocking.value_or(false));
}
// Numbers of any kind have no form among StableIValues, hence a function of their own.
inline Tensor fill_(const Tensor& self, double value) {
  TORCH_ERROR_CODE_CHECK(aoti_torch_aten_fill__Scalar(self.get(), value));
  return self;
}
inline Tensor full(IntHeaderOnlyArrayRef size, double value,
                   std::optional<ScalarType> dtype = std::nullopt,
                   std::optional<Layout> layout = std::nullopt,
                   std::optional<Device> device = std::nullopt,
                   std::optional<bool> pin_memory = std::nullopt) {
  return fill_(empty(size, dtype, layout, device, pin_memory), value);
}

// ---- shapes
inline Tensor reshape(const Tensor& self, IntHeaderOnlyArrayRef shape) {
  return detail::call<Tensor>("aten::reshape", "", self, detail::owned(shape));
}
inline Tensor view(const Tensor& self, IntHeaderOnlyArrayRef shape) {
  return detail::call<Tensor>("aten::view", "", self, detail::owned(shape));
}
inline Tensor flatten(const Tensor& self, int64_t start_dim = 0, int64_t end_dim = -1) {
  return detail::call<Tensor>("aten::flatten", "using_ints", self, start_dim, end_dim);
}
inline Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  return detail::call<Tensor>("aten::transpose", "int", self, dim0, dim1);
}
inline Tensor unsqueeze(const Tensor& self, int64_t dim) {
  return detail::call<Tensor>("aten::unsqueeze", "", self, dim);
}
inline Tensor squeeze(const Tensor& self, int64_t dim) {
  return detail::call<Tensor>("aten::squeeze", "dim", self, dim);
}
inline Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  return detail::call<Tensor>("aten::select", "int", self, dim, index);
}
inline Tensor narrow(Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return detail::call<Tensor>("aten::narrow", "", self, dim, start, length);
}
inline Tensor contiguous(const Tensor& self, MemoryFormat format = MemoryFormat::Contiguous) {
  return detail::call<Tensor>("aten::contiguous", "", self, format);
}
inline Tensor pad(const Tensor& self, IntHeaderOnlyArrayRef pad,
                  const std::string& mode = "constant", double value = 0.0) {
  return detail::call<Tensor>("aten::pad", "", self, detail::owned(pad), mode,
                              std::optional<double>(value));
}

// ---- arithmetic
inline Tensor matmul(const Tensor& self, const Tensor& other) {
  return detail::call<Tensor>("aten::matmul", "", self, other);
}
inline Tensor amax(const Tensor& self, IntHeaderOnlyArrayRef dim, bool keepdim = false) {
  return detail::call<Tensor>("aten::amax", "", self, detail::owned(dim), keepdim);
}
inline Tensor amax(const Tensor& self, int64_t dim, bool keepdim = false) {
  return amax(self, IntHeaderOnlyArrayRef(&dim, size_t(1)), keepdim);
}
inline Tensor sum(const Tensor& self, IntHeaderOnlyArrayRef dim, bool keepdim = false,
                  std::optional<ScalarType> dtype = std::nullopt) {
  return detail::call<Tensor>("aten::sum", "dim_IntList", self,
                              std::optional<detail::SizeList>(detail::owned(dim)), keepdim, dtype);
}
// Into a tensor that is there, which gets the shape of the result.
inline Tensor& sum_out(Tensor& out, const Tensor& self, std::optional<IntHeaderOnlyArrayRef> dim,
                       bool keepdim = false, std::optional<ScalarType> dtype = std::nullopt) {
  detail::call<Tensor>("aten::sum", "IntList_out", self,
                       dim ? std::optional<detail::SizeList>(detail::owned(*dim)) : std::nullopt,
                       keepdim, dtype, out);
  return out;
}
inline Tensor subtract(const Tensor& self, const Tensor& other, double alpha = 1.0) {
  AtenTensorHandle handle = nullptr;
  TORCH_ERROR_CODE_CHECK(torch_aten_subtract(self.get(), other.get(), alpha, &handle));
  return Tensor(handle);
}
inline Tensor to(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt,
                 std::optional<Layout> layout = std::nullopt,
                 std::optional<Device> device = std::nullopt,
                 std::optional<bool> pin_memory = std::nullopt, bool non_blocking = false,
                 bool copy = false, std::optional<MemoryFormat> memory_format = std::nullopt) {
  return detail::call<Tensor>("aten::to", "dtype_layout", self, dtype, layout, device, pin_memory,
                              non_blocking, copy, memory_format);
}
inline Tensor to(const Tensor& self, const Device& device, bool non_blocking = false,
                 bool copy = false) {
  return to(self, std::nullopt, std::nullopt, device, std::nullopt, non_blocking, copy);
}

// ---- threads
inline uint32_t get_num_threads() {
  uint32_t count = 0;
  TORCH_ERROR_CODE_CHECK(torch_get_num_threads(&count));
  return count;
}
// Calls f(begin, end) for parts of the range, on several threads. The first exception of a part is
// thrown again here.
template <class F> void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  struct Call {
    const F& f;
    std::exception_ptr thrown;
    bool taken = false;
  } call{f, nullptr};
  const auto body = [](int64_t first, int64_t last, void* context) {
    auto* own = static_cast<Call*>(context);
    try {
      own->f(first, last);
    } catch (...) { // NOLINT: goes on in the caller's thread
      if (!__atomic_exchange_n(&own->taken, true, __ATOMIC_ACQ_REL))
        own->thrown = std::current_exception();
    }
  };
  TORCH_ERROR_CODE_CHECK(torch_parallel_for(begin, end, grain, body, &call));
  if (call.thrown) std::rethrow_exception(call.thrown);
}

} // namespace torch::stable
