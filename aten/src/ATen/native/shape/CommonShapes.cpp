// Operators that bring several tensors to fitting shapes: at least n dimensions, a common shape,
// grids and products. Composites over differentiable operators.
#include <ATen/core/EmptyTensor.h>
#include <ATen/core/WarnOnce.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>

#include <algorithm>

#include <ATen/ops/atleast_1d.h>
#include <ATen/ops/atleast_2d.h>
#include <ATen/ops/atleast_3d.h>
#include <ATen/ops/meshgrid.h>
#include <ATen/ops/stack.h>

namespace at::native {
namespace {

using Tensors = std::vector<Tensor>;

template <class F> Tensors each(TensorList tensors, const F& f) {
  Tensors out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(f(t));
  return out;
}

void check_vector(const Tensor& t) {
  TORCH_CHECK(t.dim() == 1, "Expect a 1D vector, but got shape ", t.sizes());
}

} // namespace

Tensor atleast_1d(const Tensor& self) { return self.dim() == 0 ? self.reshape({1}) : self; }
Tensor atleast_2d(const Tensor& self) {
  switch (self.dim()) {
  case 0:
    return self.reshape({1, 1});
  case 1:
    return self.unsqueeze(0);
  default:
    return self;
  }
}
Tensor atleast_3d(const Tensor& self) {
  switch (self.dim()) {
  case 0:
    return self.reshape({1, 1, 1});
  case 1:
    return self.unsqueeze(0).unsqueeze(-1);
  case 2:
    return self.unsqueeze(-1);
  default:
    return self;
  }
}
Tensors atleast_1d(TensorList tensors) {
  return each(tensors, [](const Tensor& t) { return at::atleast_1d(t); });
}
Tensors atleast_2d(TensorList tensors) {
  return each(tensors, [](const Tensor& t) { return at::atleast_2d(t); });
}
Tensors atleast_3d(TensorList tensors) {
  return each(tensors, [](const Tensor& t) { return at::atleast_3d(t); });
}

Tensors broadcast_tensors(TensorList tensors) {
  if (tensors.empty()) return {};
  const DimVector shape = at::broadcast_shapes(tensors);
  return each(tensors, [&](const Tensor& t) {
    return t.sizes() == IntArrayRef(shape) ? t : t.expand(shape);
  });
}

Tensors meshgrid(TensorList tensors) {
  AT_WARN_ONCE(
      "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.");
  return at::meshgrid(tensors, "ij");
}

Tensors meshgrid(TensorList tensors, std::string_view indexing) {
  TORCH_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  TORCH_CHECK(indexing == "ij" || indexing == "xy",
              "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
  DimVector shape;
  for (const Tensor& t : tensors) {
    TORCH_CHECK(t.dim() <= 1,
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: ", t);
    TORCH_CHECK(t.scalar_type() == tensors[0].scalar_type(),
                "meshgrid expects all tensors to have the same dtype");
    TORCH_CHECK(t.device() == tensors[0].device(),
                "meshgrid expects all tensors to have the same device");
    shape.push_back(t.numel());
  }
  // "xy" is "ij" with the first two vectors, and then the first two dimensions, exchanged.
  const bool swapped = indexing == "xy" && tensors.size() >= 2;
  if (swapped) std::swap(shape[0], shape[1]);
  Tensors out;
  out.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t dim = swapped && i < 2 ? 1 - i : i;
    DimVector column(tensors.size(), 1);
    column[dim] = shape[dim];
    out.push_back(tensors[i].view(column).expand(shape));
  }
  return out;
}

Tensor cartesian_prod(TensorList tensors) {
  for (const Tensor& t : tensors) check_vector(t);
  TORCH_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  if (tensors.size() == 1) return tensors[0];
  Tensors grids = at::meshgrid(tensors, "ij");
  for (Tensor& t : grids) t = t.flatten();
  return at::stack(grids, 1);
}

Tensor block_diag(TensorList tensors) {
  if (tensors.empty()) return detail::empty({1, 0}, kFloat);
  int64_t rows = 0, columns = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    TORCH_CHECK(t.dim() <= 2,
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input ", i,
                " has ", t.dim(), " dimensions");
    TORCH_CHECK(t.device() == tensors[0].device(),
                "torch.block_diag: input tensors must all be on the same device. "
                "Input 0 is on device ",
                tensors[0].device(), " and input ", i, " is on device ", t.device());
    rows += t.dim() == 2 ? t.size(0) : 1;
    columns += t.dim() == 0 ? 1 : t.size(-1);
  }
  const Tensor out =
      detail::empty({rows, columns}, at::result_type_of(tensors), tensors[0].device());
  out.zero_();
  int64_t row = 0, column = 0;
  for (const Tensor& t : tensors) {
    const int64_t height = t.dim() == 2 ? t.size(0) : 1, width = t.dim() == 0 ? 1 : t.size(-1);
    detail::view_of(out, {height, width}, out.strides(), row * out.stride(0) + column).copy_(t);
    row += height;
    column += width;
  }
  return out;
}

} // namespace at::native
