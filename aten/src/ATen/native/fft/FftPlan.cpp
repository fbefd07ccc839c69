// Making and keeping plans. All roots are computed in double precision from an angle reduced to an
// eighth of the circle, so that they are right to the last digit whatever the length.
#include <ATen/native/fft/FftPlan.h>

#include <cmath>
#include <mutex>
#include <unordered_map>

namespace at::native::fft {
namespace {

struct Complex {
  double re, im;
};

// e^(-2 pi i k / n) for 0 <= k < n.
Complex root(int64_t k, int64_t n) {
  // Eighths of the circle: 8 k = octant * n + rest.
  const __int128 scaled = static_cast<__int128>(k) * 8;
  const int octant = static_cast<int>(scaled / n);
  __int128 rest = scaled - static_cast<__int128>(octant) * n;
  if (octant % 2 == 1) rest = n - rest;
  constexpr double kPi = 3.14159265358979323846;
  const double angle = static_cast<double>(rest) / static_cast<double>(n) * (kPi / 4);
  const double c = std::cos(angle), s = std::sin(angle);
  switch (octant) {
  case 0:
    return {c, -s};
  case 1:
    return {s, -c};
  case 2:
    return {-s, -c};
  case 3:
    return {-c, -s};
  case 4:
    return {-c, s};
  case 5:
    return {-s, c};
  case 6:
    return {s, c};
  default:
    return {c, s};
  }
}

template <class T> void append(std::vector<T>& to, Complex z) {
  to.push_back(static_cast<T>(z.re));
  to.push_back(static_cast<T>(z.im));
}

// Radices in the order of the passes, or nothing when a prime factor is too large.
std::vector<int> factors(int64_t n) {
  std::vector<int> out;
  int twos = 0;
  while (n % 2 == 0) n /= 2, ++twos;
  // Eights are cheapest per digit, then fours.
  const int fours = twos % 3 == 0 ? 0 : twos % 3 == 2 ? 1 : twos >= 4 ? 2 : 0;
  const int eights = (twos - 2 * fours) / 3;
  out.insert(out.end(), eights, 8);
  out.insert(out.end(), fours, 4);
  if (twos - 2 * fours - 3 * eights == 1) out.push_back(2);
  for (int p = 3; p <= kLargestRadix; p += 2)
    while (n % p == 0) n /= p, out.push_back(p);
  return n == 1 ? out : std::vector<int>();
}

template <class T> void make_steps(FftPlan<T>& plan, const std::vector<int>& radices) {
  int64_t length = plan.n, stride = 1;
  for (const int radix : radices) {
    FftStep<T> step;
    step.radix = radix;
    step.m = length / radix;
    step.s = stride;
    step.twiddles.reserve(static_cast<size_t>(step.m) * (radix - 1) * 2);
    for (int64_t p = 0; p < step.m; ++p)
      for (int k = 1; k < radix; ++k) append(step.twiddles, root(p * k % length, length));
    if (radix % 2 == 1)
      for (int k = 0; k < radix; ++k) append(step.roots, root(k, radix));
    plan.steps.push_back(std::move(step));
    length /= radix;
    stride *= radix;
  }
}

// A plain transform of a power of two, for the tables of Bluestein's algorithm.
void transform_power(std::vector<Complex>& x) {
  const int64_t n = static_cast<int64_t>(x.size());
  for (int64_t i = 1, j = 0; i < n; ++i) {
    int64_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (int64_t length = 2; length <= n; length *= 2) {
    for (int64_t k = 0; k < length / 2; ++k) {
      const Complex w = root(k, length);
      for (int64_t i = k; i < n; i += length) {
        Complex &a = x[i], &b = x[i + length / 2];
        const Complex t{b.re * w.re - b.im * w.im, b.re * w.im + b.im * w.re};
        b = {a.re - t.re, a.im - t.im};
        a = {a.re + t.re, a.im + t.im};
      }
    }
  }
}

template <class T> void make_bluestein(FftPlan<T>& plan) {
  const int64_t n = plan.n;
  int64_t length = 1;
  while (length < 2 * n - 1) length *= 2;
  plan.inner = fft_plan<T>(length);
  std::vector<Complex> kernel(static_cast<size_t>(length), Complex{0, 0});
  for (int64_t k = 0; k < n; ++k) {
    const Complex z = root(static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * n)), 2 * n);
    append(plan.chirp, z);
    kernel[k] = {z.re, -z.im};
    if (k) kernel[length - k] = kernel[k];
  }
  transform_power(kernel);
  for (const Complex& z : kernel)
    append(plan.spectrum,
           Complex{z.re / static_cast<double>(length), z.im / static_cast<double>(length)});
}

// Plans by length. The cache is emptied when it holds more than a fixed amount: programs use few
// lengths, and what is dropped is made again.
constexpr int64_t kCachedElements = int64_t(1) << 24;
template <class Plan> struct Cache {
  std::mutex mutex;
  std::unordered_map<int64_t, std::shared_ptr<const Plan>> plans;
  int64_t elements = 0;

  std::shared_ptr<const Plan> find(int64_t n) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto it = plans.find(n);
    return it == plans.end() ? nullptr : it->second;
  }
  void keep(int64_t n, const std::shared_ptr<const Plan>& plan, int64_t weight) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (elements + weight > kCachedElements) plans.clear(), elements = 0;
    if (plans.emplace(n, plan).second) elements += weight;
  }
};
template <class Plan> Cache<Plan>& cache() {
  // Never destroyed: threads may still transform while the process ends.
  static Cache<Plan>* const kept = new Cache<Plan>;
  return *kept;
}

} // namespace

template <class T> std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n) {
  using Plan = FftPlan<T>;
  if (auto found = cache<Plan>().find(n)) return found;
  const auto plan = std::make_shared<Plan>();
  plan->n = n;
  const std::vector<int> radices = factors(n);
  if (n > 1 && radices.empty()) {
    make_bluestein(*plan);
  } else {
    make_steps(*plan, radices);
  }
  cache<Plan>().keep(n, plan, n + plan->room());
  return plan;
}

template <class T> std::shared_ptr<const FftSplit<T>> fft_split(int64_t n) {
  using Split = FftSplit<T>;
  if (auto found = cache<Split>().find(n)) return found;
  if (factors(n).empty()) return nullptr;
  int64_t n1 = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n1 > 1 && n % n1 != 0) --n1;
  const int64_t n2 = n / n1;
  if (n1 < 4 || n2 > 64 * n1) return nullptr;
  const auto split = std::make_shared<Split>();
  split->n1 = n1;
  split->n2 = n2;
  split->pitch = (n2 + 15) / 16 * 16;
  split->columns = fft_plan<T>(n1);
  split->rows = fft_plan<T>(n2);
  split->re.resize(static_cast<size_t>(n1 * split->pitch));
  split->im.resize(static_cast<size_t>(n1 * split->pitch));
  for (int64_t i = 0; i < n1; ++i) {
    for (int64_t j = 0; j < n2; ++j) {
      const Complex z = root(i * j, n);
      split->re[i * split->pitch + j] = static_cast<T>(z.re);
      split->im[i * split->pitch + j] = static_cast<T>(z.im);
    }
  }
  cache<Split>().keep(n, split, n);
  return split;
}

template <class T> std::shared_ptr<const std::vector<T>> fft_roots(int64_t n) {
  using Roots = std::vector<T>;
  if (auto found = cache<Roots>().find(n)) return found;
  const auto roots = std::make_shared<Roots>();
  for (int64_t k = 0; k <= n / 2; ++k) append(*roots, root(k, n));
  cache<Roots>().keep(n, roots, n / 2);
  return roots;
}

template std::shared_ptr<const FftPlan<float>> fft_plan<float>(int64_t);
template std::shared_ptr<const FftPlan<double>> fft_plan<double>(int64_t);
template std::shared_ptr<const FftSplit<float>> fft_split<float>(int64_t);
template std::shared_ptr<const FftSplit<double>> fft_split<double>(int64_t);
template std::shared_ptr<const std::vector<float>> fft_roots<float>(int64_t);
template std::shared_ptr<const std::vector<double>> fft_roots<double>(int64_t);

} // namespace at::native::fft
