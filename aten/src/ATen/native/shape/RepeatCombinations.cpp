// Composites that pick elements by computed positions: repeat_interleave by a tensor of counts, and
// combinations. Both make the list of positions and leave the rest, gradients included, to
// index_select.
#include <ATen/core/EmptyTensor.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/native/shape/Native.h>

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/lift_fresh.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/parallel/Stretches.h>

namespace at::native {

Tensor repeat_interleave(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  const Tensor input = dim ? self : self.flatten();
  const int64_t d = wrap_dim(dim.value_or(0), input.dim());
  TORCH_CHECK(repeats.dim() <= 1, "repeats must be 0-dim or 1-dim tensor");
  const int64_t size = input.dim() == 0 ? 1 : input.size(d);
  Tensor counts = repeats;
  if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats.size(0) == 1)) {
    counts = repeats.reshape({1}).expand({size});
  } else {
    TORCH_CHECK(repeats.size(0) == size,
                "repeats must have the same size as input along dim, but got repeats.size(0) = ",
                repeats.size(0), " and input.size(", d, ") = ", size);
  }
  return at::index_select(input, d, at::repeat_interleave(counts, output_size));
}

namespace {

// How many selections there are; Error when the list of them would not fit into memory anyway.
int64_t combination_count(int64_t n, int64_t r, bool with_replacement) {
  const __int128 pool = static_cast<__int128>(n) + (with_replacement ? r - 1 : 0);
  if (n == 0 || pool < r) return 0;
  constexpr __int128 limit = INT64_MAX;
  __int128 count = 1;
  const int64_t smaller = static_cast<int64_t>(std::min<__int128>(r, pool - r));
  for (int64_t i = 1; i <= smaller && count <= limit; ++i) count = count * (pool - smaller + i) / i;
  TORCH_CHECK(count <= limit / r, "combinations: there are too many combinations of ", r,
              " out of ", n, " elements");
  return static_cast<int64_t>(count);
}

// Writes each sorted selection of r out of n positions, in lexicographic order.
void write_combinations(int64_t n, int64_t r, bool with_replacement, int64_t count, int64_t* out) {
  if (count == 0) return;
  std::vector<int64_t> chosen(static_cast<size_t>(r));
  for (int64_t i = 0; i < r; ++i) chosen[i] = with_replacement ? 0 : i;
  for (Steps steps;; steps.add(2 * r)) {
    out = std::copy(chosen.begin(), chosen.end(), out);
    int64_t i = r - 1;
    while (i >= 0 && chosen[i] == (with_replacement ? n - 1 : n - r + i)) --i;
    if (i < 0) return;
    ++chosen[i];
    for (int64_t j = i + 1; j < r; ++j)
      chosen[j] = with_replacement ? chosen[i] : chosen[j - 1] + 1;
  }
}

} // namespace

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  TORCH_CHECK(self.dim() == 1, "Expect a 1D vector, but got shape ", self.sizes());
  TORCH_CHECK(r >= 0, "Expect a non-negative number, but got ", r);
  if (r == 0) return at::empty({0}, self.options());
  const int64_t n = self.numel(), rows = combination_count(n, r, with_replacement);
  Tensor index = detail::empty({rows * r}, kLong);
  write_combinations(n, r, with_replacement, rows, index.data_ptr<int64_t>());
  // A trace sees numbers that were not made by operators as a constant.
  index = at::lift_fresh(index);
  if (index.device() != self.device())
    index = at::empty(index.sizes(), self.options().dtype(kLong)).copy_(index);
  return at::index_select(self, 0, index).view({rows, r});
}

} // namespace at::native
