// See Foreach.h.
#include <ATen/iter/Foreach.h>

#include <algorithm>

#include <ATen/iter/PointwiseJob.h>
#include <ATen/parallel/Parallel.h>

namespace at::iter {

void check_foreach_lists(std::initializer_list<size_t> tensors) {
  const size_t first = *tensors.begin();
  TORCH_CHECK(first > 0, "Tensor list must have at least one tensor.");
  // An empty second list may as well have been meant for numbers.
  if (tensors.size() == 2 && tensors.begin()[1] == 0) check_foreach_scalars(first, 0);
  for (const size_t other : tensors)
    TORCH_CHECK(other == first, "Tensor lists must have the same number of tensors, got ", first,
                " and ", other);
}
void check_foreach_scalars(size_t tensors, size_t scalars) {
  TORCH_CHECK(tensors == scalars,
              "Tensor list must have same number of elements as scalar list. Got ", tensors,
              " and ", scalars);
}
void check_foreach_number(const Tensor& scalar) {
  TORCH_CHECK(scalar.dim() == 0 && scalar.numel() == 1,
              "scalar tensor expected to be 0 dim but it has ", scalar.dim(), " dimensions and ",
              scalar.numel(), " elements.");
}

void foreach_step(size_t done) {
  if (done % 256 == 0) check_interrupt();
}

PointwiseBatch::PointwiseBatch(const PointwiseSpec& spec, size_t count, TensorList self)
    : spec_(spec), self_(self), jobs_(new PointwiseJob[count]) {
  if (self.empty()) results_.resize(count);
}
PointwiseBatch::~PointwiseBatch() = default;

void PointwiseBatch::add(Operands operands, Params params) {
  const size_t i = next_++;
  foreach_step(next_);
  if (self_.empty()) {
    if (plan_pointwise(spec_, &results_[i], nullptr, operands, params, jobs_[pending_]))
      ++pending_;
    else
      results_[i] = pointwise(spec_, operands, params);
    return;
  }
  Tensor& self = const_cast<Tensor&>(self_[i]);
  if (plan_pointwise(spec_, nullptr, &self, operands, params, jobs_[pending_])) {
    self.unsafeGetTensorImpl()->bump_version();
    ++pending_;
    return;
  }
  run_pending(); // in case it reads or writes what they write
  pointwise_(spec_, self, operands, params);
}

// Whether a job writes what another one reads or writes: then their order counts.
bool PointwiseBatch::is_entangled(size_t count) const {
  if (self_.empty()) return false;
  struct Span {
    const char *begin, *end;
    size_t job;
    bool written;
  };
  std::vector<Span> spans;
  for (size_t j = 0; j < count; ++j) {
    const PointwiseJob& job = jobs_[j];
    for (int k = 0; k < job.count; ++k) {
      // What is used as a number is one element, in the job itself or in a tensor.
      const int64_t bytes = job.strides[k] == 0 ? job.strides[0] : job.numel * job.strides[k];
      spans.push_back({job.data[k], job.data[k] + bytes, j, k == 0});
    }
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  for (size_t i = 0; i < spans.size(); ++i) {
    for (size_t k = i + 1; k < spans.size() && spans[k].begin < spans[i].end; ++k) {
      if (spans[i].job != spans[k].job && (spans[i].written || spans[k].written)) return true;
    }
  }
  return false;
}

void PointwiseBatch::run_pending() {
  std::vector<int64_t> starts;
  int64_t total = 0;
  for (size_t j = 0; j < pending_; ++j) {
    starts.push_back(total);
    total += jobs_[j].numel;
  }
  const size_t count = pending_;
  pending_ = 0;
  if (total == 0) return;
  if (total <= TensorIterator::kGrain) {
    for (size_t j = 0; j < count; ++j) jobs_[j].run(0, jobs_[j].numel);
    return;
  }
  const bool in_order = is_entangled(count);
  BlockingRegion unlocked;
  if (in_order) {
    for (size_t j = 0; j < count; ++j)
      parallel_for(0, jobs_[j].numel, TensorIterator::kGrain,
                   [&](int64_t begin, int64_t end) { jobs_[j].run(begin, end); });
    return;
  }
  parallel_for(0, total, TensorIterator::kGrain, [&](int64_t begin, int64_t end) {
    size_t j = static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), begin) -
                                   starts.begin() - 1);
    for (; j < count && starts[j] < end; ++j) {
      const int64_t from = std::max(begin, starts[j]) - starts[j];
      const int64_t to = std::min(end - starts[j], jobs_[j].numel);
      if (from < to) jobs_[j].run(from, to);
    }
  });
}

std::vector<Tensor> PointwiseBatch::finish() {
  run_pending();
  return std::move(results_);
}

} // namespace at::iter
