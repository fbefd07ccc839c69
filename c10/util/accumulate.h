// Sums and products of sizes.
#pragma once
#include <cstdint>
#include <iterator>

namespace c10 {

template <class Iterator> int64_t sum_integers(Iterator begin, Iterator end) {
  int64_t sum = 0;
  for (; begin != end; ++begin) sum += static_cast<int64_t>(*begin);
  return sum;
}
template <class Container> int64_t sum_integers(const Container& container) {
  return sum_integers(std::begin(container), std::end(container));
}

template <class Iterator> int64_t multiply_integers(Iterator begin, Iterator end) {
  int64_t product = 1;
  for (; begin != end; ++begin) product *= static_cast<int64_t>(*begin);
  return product;
}
template <class Container> int64_t multiply_integers(const Container& container) {
  return multiply_integers(std::begin(container), std::end(container));
}

// The number of elements from dimension k on, and before it.
template <class Dims> int64_t numelements_from_dim(int k, const Dims& dims) {
  return k > static_cast<int>(dims.size()) ? 1 : multiply_integers(dims.begin() + k, dims.end());
}
template <class Dims> int64_t numelements_to_dim(int k, const Dims& dims) {
  return multiply_integers(dims.begin(), dims.begin() + k);
}

} // namespace c10
