// Grids of affine maps: the places theta sends the pixels of an image to, for grid sampling.
#include <ATen/core/Tensor.h>
#include <ATen/native/interpolate/Native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/select.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/transpose.h>
#include <ATen/ops/zeros.h>

#include <vector>

namespace at::native {
namespace {

// Coordinates of `steps` pixels from -1 to 1: of the outer ones' centres when corners are aligned,
// else of their edges.
Tensor coordinates(int64_t steps, bool align_corners, const Tensor& like) {
  if (steps <= 1)
    return at::zeros({steps}, like.scalar_type(), std::nullopt, like.device(), std::nullopt);
  const Tensor x = at::linspace(Scalar(-1.0), Scalar(1.0), steps, like.scalar_type(), std::nullopt,
                                like.device(), std::nullopt);
  if (align_corners) return x;
  return at::mul(x, Scalar(static_cast<double>(steps - 1) / static_cast<double>(steps)));
}

// Homogeneous coordinates (x, y[, z], 1) of all pixels: [N, pixels, dims + 1].
Tensor base_grid(const Tensor& like, IntArrayRef size, bool align_corners) {
  const size_t dims = size.size() - 2;
  DimVector shape(size.slice(2, dims));
  std::vector<Tensor> parts;
  for (size_t i = 0; i < dims; ++i) {
    // x runs along the last dimension.
    const size_t d = dims - 1 - i;
    DimVector along(dims, 1);
    along[d] = shape[d];
    parts.push_back(coordinates(shape[d], align_corners, like).view(along).expand(shape));
  }
  parts.push_back(at::ones(shape, like.scalar_type(), std::nullopt, like.device(), std::nullopt));
  const int64_t columns = static_cast<int64_t>(dims) + 1;
  const Tensor base = at::stack(parts, static_cast<int64_t>(dims)).reshape({1, -1, columns});
  return base.expand({size[0], base.size(1), columns});
}

void check_size(IntArrayRef size) {
  TORCH_CHECK(size.size() == 4 || size.size() == 5,
              "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  for (const int64_t s : size)
    TORCH_CHECK(s > 0, "Expected non-zero, positive output size. Got ", size);
}

} // namespace

Tensor affine_grid_generator(const Tensor& theta, IntArrayRef size, bool align_corners) {
  check_size(size);
  const int64_t dims = static_cast<int64_t>(size.size()) - 2;
  TORCH_CHECK(theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == dims &&
                  theta.size(2) == dims + 1,
              "Expected a batch of ", dims, "D affine matrices of shape ", size[0], "x", dims, "x",
              dims + 1, " for size ", size, ". Got ", theta.sizes(), ".");
  // Every coordinate has its own axis: the sum over them is spread over the pixels one axis after
  // the other, from the outermost, and only the last of the sums has the size of the grid.
  const auto column = [&](int64_t k) {
    DimVector shape(static_cast<size_t>(dims) + 2, 1);
    shape.front() = size[0];
    shape.back() = dims;
    return at::select(theta, 2, k).reshape(shape);
  };
  Tensor grid = column(dims);
  for (int64_t d = 0; d < dims; ++d) {
    DimVector along(static_cast<size_t>(dims) + 2, 1);
    along[1 + d] = size[2 + d];
    const Tensor places = coordinates(size[2 + d], align_corners, theta).view(along);
    grid = at::add(grid, at::mul(places, column(dims - 1 - d))); // x runs along the last
  }
  return grid;
}

Tensor affine_grid_generator_backward(const Tensor& grad, IntArrayRef size, bool align_corners) {
  check_size(size);
  const int64_t dims = static_cast<int64_t>(size.size()) - 2;
  const Tensor base = base_grid(grad, size, align_corners);
  const Tensor flat = grad.reshape({size[0], -1, dims});
  return at::bmm(at::transpose(flat, 1, 2), base);
}

} // namespace at::native
