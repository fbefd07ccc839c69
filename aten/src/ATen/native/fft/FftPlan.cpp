// Making and keeping plans. All roots are computed in double precision from an angle reduced to an
// eighth of the circle, so that they are right to the last digit whatever the length.
#include <ATen/native/fft/FftPlan.h>

#include <ATen/parallel/Stretches.h>

#include <c10/util/MathConstants.h>
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
  const double angle = static_cast<double>(rest) / static_cast<double>(n) * (c10::pi<double> / 4);
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

// Roots for which it pays to wake a thread.
constexpr int64_t kRootGrain = 1024;

// f(i) = e^(-2 pi i k / n) into a table, two numbers each; place(i) is k.
template <class T, class Place>
RawTable<T> root_table(int64_t count, int64_t n, const Place& place) {
  RawTable<T> table(2 * count);
  parallel_for(0, count, kRootGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Complex z = root(place(i), n);
      table[2 * i] = static_cast<T>(z.re);
      table[2 * i + 1] = static_cast<T>(z.im);
    }
  });
  return table;
}

// One pass of transform_power: pairs `length / 2` apart. Few roots serve many groups, or many roots
// few.
void transform_pass(Complex* x, int64_t n, int64_t length) {
  const int64_t half = length / 2, groups = n / length;
  const auto pair = [x, half](int64_t i, const Complex& w) {
    Complex &a = x[i], &b = x[i + half];
    const Complex t{b.re * w.re - b.im * w.im, b.re * w.im + b.im * w.re};
    b = {a.re - t.re, a.im - t.im};
    a = {a.re + t.re, a.im + t.im};
  };
  if (half <= kRootGrain) {
    const RawTable<double> roots = root_table<double>(half, length, [](int64_t k) { return k; });
    parallel_for(0, groups, std::max<int64_t>(1, 8192 / half), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g)
        for (int64_t k = 0; k < half; ++k) pair(g * length + k, {roots[2 * k], roots[2 * k + 1]});
    });
    return;
  }
  parallel_for(0, half, kRootGrain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const Complex w = root(k, length);
      for (int64_t g = 0; g < groups; ++g) pair(g * length + k, w);
    }
  });
}

// A plain transform of a power of two, for the tables of Bluestein's algorithm.
void transform_power(RawTable<Complex>& x) {
  const int64_t n = x.size();
  Steps steps;
  for (int64_t i = 1, j = 0; i < n; ++i) {
    steps.add(8);
    int64_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (int64_t length = 2; length <= n; length *= 2) transform_pass(x.data(), n, length);
}

template <class T> void make_bluestein(FftPlan<T>& plan) {
  const int64_t n = plan.n, length = fft_shape(n).room;
  if (length < kLongLine) {
    plan.inner = fft_plan<T>(length);
  } else {
    const auto inner = std::make_shared<FftPlan<T>>();
    inner->n = length;
    plan.inner = inner;
  }
  const auto square = [n](int64_t k) {
    return static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * n));
  };
  plan.chirp = root_table<T>(n, 2 * n, square);
  RawTable<Complex> kernel(length);
  parallel_zero(kernel.data(), length * static_cast<int64_t>(sizeof(Complex)));
  parallel_for(0, n, kRootGrain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const Complex z = root(square(k), 2 * n);
      kernel[k] = {z.re, -z.im};
      if (k) kernel[length - k] = kernel[k];
    }
  });
  transform_power(kernel);
  plan.spectrum = RawTable<T>(2 * length);
  parallel_for(0, length, 32768, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      plan.spectrum[2 * k] = static_cast<T>(kernel[k].re / static_cast<double>(length));
      plan.spectrum[2 * k + 1] = static_cast<T>(kernel[k].im / static_cast<double>(length));
    }
  });
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

FftShape fft_shape(int64_t n) {
  if (n == 1 || !factors(n).empty()) return {false, n};
  int64_t length = 1;
  while (length < 2 * n - 1) length *= 2;
  return {true, length};
}

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
  const int64_t pitch = split->pitch;
  split->re = RawTable<T>(n1 * pitch);
  split->im = RawTable<T>(n1 * pitch);
  parallel_for(0, n1, std::max<int64_t>(1, kRootGrain / n2), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < pitch; ++j) {
        // Lanes behind the last column are read, and their results dropped.
        const Complex z = j < n2 ? root(i * j, n) : Complex{0, 0};
        split->re[i * pitch + j] = static_cast<T>(z.re);
        split->im[i * pitch + j] = static_cast<T>(z.im);
      }
    }
  });
  cache<Split>().keep(n, split, n);
  return split;
}

template <class T> std::shared_ptr<const RawTable<T>> fft_roots(int64_t n) {
  using Roots = RawTable<T>;
  if (auto found = cache<Roots>().find(n)) return found;
  const auto roots =
      std::make_shared<Roots>(root_table<T>(n / 2 + 1, n, [](int64_t k) { return k; }));
  cache<Roots>().keep(n, roots, n / 2);
  return roots;
}

template std::shared_ptr<const FftPlan<float>> fft_plan<float>(int64_t);
template std::shared_ptr<const FftPlan<double>> fft_plan<double>(int64_t);
template std::shared_ptr<const FftSplit<float>> fft_split<float>(int64_t);
template std::shared_ptr<const FftSplit<double>> fft_split<double>(int64_t);
template std::shared_ptr<const RawTable<float>> fft_roots<float>(int64_t);
template std::shared_ptr<const RawTable<double>> fft_roots<double>(int64_t);

} // namespace at::native::fft
