// Grid sampling by the operators it is made of, for second derivatives (see second_order.h):
// weights are polynomials in the coordinates, elements come by gather. Where the padding rule bends
// a coordinate, its value and slope are computed without history and applied as a straight line,
// which has the derivatives of the bent one everywhere but at the corners.
#include <torch/csrc/autograd/second_order.h>

#include <ATen/ops/abs.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/fmod.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/reshape.h>
#include <ATen/ops/round.h>
#include <ATen/ops/select.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace torch::autograd::generated {
namespace {

enum class Mode { Linear, Nearest, Cubic };
enum class Padding { Zeros, Border, Reflection };

struct Rules {
  Mode mode;
  Padding padding;
  bool align_corners;
};

// Values without history and the slope by the coordinate.
struct Bent {
  Tensor position, slope;
};

void clip(Bent& p, int64_t size) {
  const double most = static_cast<double>(size - 1);
  const Tensor inside = at::logical_and(at::gt(p.position, 0), at::lt(p.position, most));
  p.slope = at::where(inside, p.slope, at::zeros_like(p.slope));
  p.position = at::clamp(p.position, Scalar(0.0), Scalar(most));
}

// Mirrored at low / 2 and high / 2 until it lies between.
void reflect(Bent& p, int64_t low, int64_t high) {
  if (low == high) {
    p = {at::zeros_like(p.position), at::zeros_like(p.position)};
    return;
  }
  const double least = static_cast<double>(low) / 2;
  const double span = static_cast<double>(high - low) / 2;
  const Tensor shifted = p.position - least;
  p.slope = at::where(at::lt(shifted, 0), -p.slope, p.slope);
  const Tensor x = at::abs(shifted);
  const Tensor rest = at::fmod(x, Scalar(span));
  const Tensor even = at::lt(at::fmod(at::floor(x / span), Scalar(2.0)), 0.5);
  p.position = at::where(even, rest + least, (rest * -1.0) + (span + least));
  p.slope = at::where(even, p.slope, -p.slope);
}

Bent padded(Bent p, const Rules& rules, int64_t size) {
  if (rules.padding == Padding::Border) clip(p, size);
  if (rules.padding == Padding::Reflection) {
    if (rules.align_corners) {
      reflect(p, 0, 2 * (size - 1));
    } else {
      reflect(p, -1, 2 * size - 1);
    }
    clip(p, size);
  }
  // What no integer holds lies outside.
  p.position =
      at::where(at::lt(at::abs(p.position), 1e9), p.position, at::full_like(p.position, -100));
  return p;
}

struct Tap {
  Tensor index;  // whole numbers, as floating point
  Tensor weight; // with history
};

std::vector<Tap> cubic_taps(const Tensor& p, const Rules& rules, int64_t size) {
  const Tensor known = detach(p);
  const Tensor position = at::where(at::lt(at::abs(known), 1e9), known, at::full_like(known, -100));
  const Tensor whole = at::floor(position);
  const Tensor rest = (p - known) + (position - whole);
  const Tensor distance[] = {rest + 1.0, rest, rest * -1.0 + 1.0, rest * -1.0 + 2.0};
  std::vector<Tap> taps;
  for (int t = 0; t < 4; ++t) {
    const Tensor& d = distance[t];
    const bool near = t == 1 || t == 2;
    const Tensor weight =
        near ? (d * 1.25 - 2.25) * d * d + 1.0 : ((d * -0.75 + 3.75) * d - 6.0) * d + 3.0;
    const Tensor place = whole + static_cast<double>(t - 1);
    taps.push_back({padded({place, at::zeros_like(place)}, rules, size).position, weight});
  }
  return taps;
}

// The neighbours of a coordinate along an axis of `size` elements.
std::vector<Tap> axis_taps(const Tensor& x, const Rules& rules, int64_t size) {
  const double factor = static_cast<double>(rules.align_corners ? size - 1 : size) / 2;
  const Tensor p = (x + 1.0) * factor - (rules.align_corners ? 0.0 : 0.5);
  if (rules.mode == Mode::Cubic) return cubic_taps(p, rules, size);
  const Tensor known = detach(p);
  const Bent bent = padded({known, at::ones_like(known)}, rules, size);
  if (rules.mode == Mode::Nearest) return {{at::round(bent.position), at::ones_like(known)}};
  const Tensor whole = at::floor(bent.position);
  const Tensor rest = bent.slope * (p - known) + (bent.position - whole);
  return {{whole, rest * -1.0 + 1.0}, {whole + 1.0, rest}};
}

// The sum over all combinations of taps, axis by axis from the outermost.
struct Sum {
  const Tensor& elements; // (N, C, number of elements)
  const std::vector<std::vector<Tap>>& axes;
  const std::vector<int64_t>& sizes;
  IntArrayRef shape; // (N, C, number of places)
  Tensor total;

  void add(size_t axis, const Tensor& index, const Tensor& weight) {
    if (axis == axes.size()) {
      const int64_t n = shape[0], places = shape[2];
      const Tensor where = at::reshape(index, {n, 1, places});
      const Tensor taken = at::gather(elements, 2, where.expand(shape));
      const Tensor term = taken * at::reshape(weight, {n, 1, places});
      total = total.defined() ? total + term : term;
      return;
    }
    const double most = static_cast<double>(sizes[axis] - 1);
    for (const Tap& tap : axes[axis]) {
      const Tensor inside = at::logical_and(at::ge(tap.index, 0), at::lt(tap.index, most + 0.5));
      const Tensor held = at::where(inside, tap.weight, at::zeros_like(tap.weight));
      const Tensor place =
          at::clamp(tap.index, Scalar(0.0), Scalar(most)).to(c10::ScalarType::Long);
      add(axis + 1, index.defined() ? index * Scalar(sizes[axis]) + place : place,
          weight.defined() ? weight * held : held);
    }
  }
};

} // namespace

Forward grid_sample_forward(int64_t mode, int64_t padding, bool align_corners) {
  const Rules rules{static_cast<Mode>(mode), static_cast<Padding>(padding), align_corners};
  return [rules](const Tensors& in) {
    const Tensor &input = in[0], &grid = in[1];
    const int64_t dims = grid.sizes().back();
    std::vector<std::vector<Tap>> axes;
    std::vector<int64_t> sizes;
    for (int64_t axis = 0; axis < dims; ++axis) {
      // The last coordinate belongs to the outermost axis.
      const int64_t size = input.sizes()[static_cast<size_t>(2 + axis)];
      axes.push_back(axis_taps(at::select(grid, -1, dims - 1 - axis), rules, size));
      sizes.push_back(size);
    }
    const int64_t n = input.sizes()[0], channels = input.sizes()[1];
    int64_t places = 1, elements = 1;
    c10::DimVector out{n, channels};
    for (int64_t axis = 0; axis < dims; ++axis) {
      out.push_back(grid.sizes()[static_cast<size_t>(1 + axis)]);
      places *= out.back();
      elements *= sizes[static_cast<size_t>(axis)];
    }
    const c10::DimVector shape{n, channels, places};
    const Tensor flat = at::reshape(input, {n, channels, elements});
    Sum sum{flat, axes, sizes, shape, Tensor()};
    sum.add(0, Tensor(), Tensor());
    return at::reshape(sum.total, out);
  };
}

} // namespace torch::autograd::generated
