// Non-maximum suppression: boxes in the order of their scores, each kept unless it overlaps one
// kept before by more than the threshold. The outer loop is sequential by nature; the comparisons
// of one kept box with all that follow are independent of each other and run in parallel.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/vision/Vision.h>
#include <ATen/parallel/Parallel.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace at::native::vision {
namespace {

// The boxes in the order of their scores, one array per coordinate so that the loop over them
// becomes vector code.
template <class A> struct Boxes {
  explicit Boxes(size_t n) : x1(n), y1(n), x2(n), y2(n), area(n), dropped(n, 0) {}
  std::vector<A> x1, y1, x2, y2, area;
  std::vector<uint8_t> dropped;

  void drop_overlaps(size_t i, int64_t begin, int64_t end, A threshold) {
    const A left = x1[i], top = y1[i], right = x2[i], bottom = y2[i], own = area[i];
    for (int64_t j = begin; j < end; ++j) {
      const A w = std::max(std::min(right, x2[j]) - std::max(left, x1[j]), A(0));
      const A h = std::max(std::min(bottom, y2[j]) - std::max(top, y1[j]), A(0));
      const A shared = w * h;
      dropped[j] |= static_cast<uint8_t>(shared / (own + area[j] - shared) > threshold);
    }
  }
};

template <class T>
std::vector<int64_t> keep(const T* dets, const T* scores, int64_t n, double threshold) {
  using A = wide_t<T>;
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  // NaN counts as the largest score, as everywhere in sorting, which keeps the order total.
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const A x = static_cast<A>(scores[a]), y = static_cast<A>(scores[b]);
    return x > y || (x != x && y == y);
  });
  Boxes<A> boxes(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const T* box = dets + order[i] * 4;
    boxes.x1[i] = static_cast<A>(box[0]);
    boxes.y1[i] = static_cast<A>(box[1]);
    boxes.x2[i] = static_cast<A>(box[2]);
    boxes.y2[i] = static_cast<A>(box[3]);
    boxes.area[i] = (boxes.x2[i] - boxes.x1[i]) * (boxes.y2[i] - boxes.y1[i]);
  }
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < n; ++i) {
    if (boxes.dropped[i]) continue;
    kept.push_back(order[i]);
    parallel_for(i + 1, n, 16384, [&](int64_t begin, int64_t end) {
      boxes.drop_overlaps(i, begin, end, static_cast<A>(threshold));
    });
    check_interrupt();
  }
  return kept;
}

void check_boxes(const Tensor& dets, const Tensor& scores) {
  TORCH_CHECK(dets.dim() == 2, "boxes should be a 2d tensor, got ", dets.dim(), "D");
  TORCH_CHECK(dets.size(1) == 4, "boxes should have 4 elements in dimension 1, got ", dets.size(1));
  TORCH_CHECK(scores.dim() == 1, "scores should be a 1d tensor, got ", scores.dim(), "D");
  TORCH_CHECK(dets.size(0) == scores.size(0),
              "boxes and scores should have same number of elements in dimension 0, got ",
              dets.size(0), " and ", scores.size(0));
  TORCH_CHECK(dets.scalar_type() == scores.scalar_type(),
              "dets should have the same type as scores, got ", dets.scalar_type(), " and ",
              scores.scalar_type());
}

} // namespace

Tensor nms_shape(const Tensor& dets, const Tensor& scores, double) {
  check_boxes(dets, scores);
  // How many boxes stay depends on their values: the meta device returns the largest case.
  return detail::empty({dets.size(0)}, kLong, dets.device());
}

Tensor nms_cpu(const Tensor& dets, const Tensor& scores, double iou_threshold) {
  check_boxes(dets, scores);
  const Tensor boxes = dets.contiguous(), values = scores.contiguous();
  std::vector<int64_t> kept;
  dtype_switch<FloatingTypes>(dets.scalar_type(), "nms_kernel", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const BlockingRegion unlocked;
    kept = keep(boxes.data_ptr<T>(), values.data_ptr<T>(), boxes.size(0), iou_threshold);
  });
  Tensor out = detail::empty({static_cast<int64_t>(kept.size())}, kLong);
  std::copy(kept.begin(), kept.end(), out.data_ptr<int64_t>());
  return out;
}

} // namespace at::native::vision
