// Checks of a function's arguments whose messages name function and argument.
#pragma once
#include <vector>

#include <ATen/core/DeprecatedTypeProperties.h>
#include <ATen/core/Tensor.h>

namespace at {

// A tensor that a function was called with: its name and place, counted from 1, for messages.
struct TensorArg {
  const Tensor& tensor;
  const char* name;
  int pos;
  TensorArg(const Tensor& tensor, const char* name, int pos)
      : tensor(tensor), name(name), pos(pos) {}
  // The tensor is kept by reference: it has to live longer than this.
  TensorArg(Tensor&& tensor, const char* name, int pos) = delete;
  const Tensor* operator->() const { return &tensor; }
  const Tensor& operator*() const { return tensor; }
};

using CheckedFrom = const char*;

namespace detail {
inline std::string place_of(const TensorArg& arg) {
  const std::string text = c10::str("argument #", arg.pos, " '", arg.name, "'");
  return arg.pos == 0 ? c10::str("'", arg.name, "'") : text;
}
} // namespace detail

inline void checkDefined(CheckedFrom c, const TensorArg& t) {
  TORCH_CHECK(t->defined(), "Expected tensor for ", detail::place_of(t),
              " to be non-null, but it was undefined (while checking arguments for ", c, ")");
}
inline void checkDim(CheckedFrom c, const TensorArg& t, int64_t dim) {
  TORCH_CHECK(t->dim() == dim, "Expected ", dim, "-dimensional tensor, but got ", t->dim(),
              "-dimensional tensor for ", detail::place_of(t), " (while checking arguments for ", c,
              ")");
}
inline void checkDimRange(CheckedFrom c, const TensorArg& t, int64_t first, int64_t end) {
  TORCH_CHECK(t->dim() >= first && t->dim() < end, "Expected ", first, " to ", end - 1,
              " dimensions, but got ", t->dim(), "-dimensional tensor for ", detail::place_of(t),
              " (while checking arguments for ", c, ")");
}
inline void checkContiguous(CheckedFrom c, const TensorArg& t) {
  TORCH_CHECK(t->is_contiguous(), "Expected contiguous tensor, but got non-contiguous tensor for ",
              detail::place_of(t), " (while checking arguments for ", c, ")");
}
inline void checkSize(CheckedFrom c, const TensorArg& t, IntArrayRef size) {
  TORCH_CHECK(t->sizes() == size, "Expected tensor of size ", size, ", but got tensor of size ",
              t->sizes(), " for ", detail::place_of(t), " (while checking arguments for ", c, ")");
}
inline void checkSize(CheckedFrom c, const TensorArg& t, int64_t dim, int64_t size) {
  TORCH_CHECK(t->size(dim) == size, "Expected tensor to have size ", size, " at dimension ", dim,
              ", but got size ", t->size(dim), " for ", detail::place_of(t),
              " (while checking arguments for ", c, ")");
}
inline void checkNumel(CheckedFrom c, const TensorArg& t, int64_t numel) {
  TORCH_CHECK(t->numel() == numel, "Expected tensor for ", detail::place_of(t), " to have ", numel,
              " elements; but it actually has ", t->numel(),
              " elements (while checking arguments"
              " for ",
              c, ")");
}
inline void checkScalarType(CheckedFrom c, const TensorArg& t, ScalarType type) {
  TORCH_CHECK(t->scalar_type() == type, "Expected tensor for ", detail::place_of(t),
              " to have scalar type ", type, "; but got ", t->scalar_type(),
              " instead (while checking arguments for ", c, ")");
}
inline void checkSameSize(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  TORCH_CHECK(a->sizes() == b->sizes(), "Expected tensor for ", detail::place_of(a),
              " to have same size as tensor for ", detail::place_of(b), "; but ", a->sizes(),
              " does not equal ", b->sizes(), " (while checking arguments for ", c, ")");
}
inline void checkSameType(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  TORCH_CHECK(a->scalar_type() == b->scalar_type(), "Expected tensor for ", detail::place_of(a),
              " to have the same type as tensor for ", detail::place_of(b), "; but type ",
              a->scalar_type(), " does not equal ", b->scalar_type(),
              " (while checking arguments for ", c, ")");
}
inline void checkSameGPU(CheckedFrom c, const TensorArg& a, const TensorArg& b) {
  for (const TensorArg* t : {&a, &b})
    TORCH_CHECK((*t)->is_cuda(), "Tensor for ", detail::place_of(*t), " is on ", (*t)->device(),
                ", but expected it to be on GPU (while checking arguments for ", c, ")");
  TORCH_CHECK(a->device() == b->device(), "Expected tensor for ", detail::place_of(a),
              " to have the same device as tensor for ", detail::place_of(b), "; but device ",
              a->device(), " does not equal ", b->device(), " (while checking arguments for ", c,
              ")");
}

// The same question of all neighbours in a list; undefined tensors are left out.
template <class Check> void checkAllSame(CheckedFrom c, ArrayRef<TensorArg> tensors, Check check) {
  const TensorArg* first = nullptr;
  for (const TensorArg& t : tensors) {
    if (!t->defined()) continue;
    if (first != nullptr) check(c, *first, t);
    if (first == nullptr) first = &t;
  }
}
inline void checkAllSameGPU(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  checkAllSame(c, tensors, checkSameGPU);
}
inline void checkAllSameType(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  checkAllSame(c, tensors, checkSameType);
}
inline void checkAllSameSize(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  checkAllSame(c, tensors, checkSameSize);
}
inline void checkAllContiguous(CheckedFrom c, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& t : tensors)
    if (t->defined()) checkContiguous(c, t);
}
inline void checkDeviceType(CheckedFrom c, const Tensor& tensor, DeviceType type) {
  TORCH_CHECK(!tensor.defined() || tensor.device().type() == type, "Expected tensor to have ",
              Device(type), " DeviceType, but got tensor with ", tensor.device(),
              " (while checking arguments for ", c, ")");
}
// The backend is the kind of device and the layout.
inline void checkBackend(CheckedFrom c, const Tensor& tensor, Backend backend) {
  if (!tensor.defined()) return;
  const auto& found =
      DeprecatedTypeProperties::of(tensor.device().type(), tensor.layout(), tensor.scalar_type());
  TORCH_CHECK(found.backend() == backend, "Expected tensor of another backend, but got ",
              found.toString(), " on ", tensor.device(), " (while checking arguments for ", c, ")");
}
inline void checkBackend(CheckedFrom c, ArrayRef<Tensor> tensors, Backend backend) {
  for (const Tensor& tensor : tensors) checkBackend(c, tensor, backend);
}

} // namespace at
