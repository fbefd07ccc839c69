// The emulated cuBLASLt: matrix products by plain loops in double, for the layouts, types and
// epilogues that the library asks for. Whatever a real cuBLASLt would refuse for its shape (a short
// leading dimension, operands outside live device memory) is refused here.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "Observer.h"

#define EMULATOR_API extern "C" __attribute__((visibility("default")))

namespace {

enum : int { kSuccess = 0, kInvalidValue = 7, kNotSupported = 15 };
enum : int {
  kR32F = 0,
  kR64F = 1,
  kR16F = 2,
  kC32F = 4,
  kC64F = 5,
  kR16BF = 14,
  kE4M3 = 28,
  kE5M2 = 29
};
enum : int { kCompute32F = 68, kCompute64F = 70, kCompute32FTf32 = 77 };

struct MatmulDesc {
  int compute = kCompute32F, scale = kR32F, pointer_mode = 0, trans_a = 0, trans_b = 0;
  uint32_t epilogue = 1;
  const void* bias = nullptr;
  int64_t bias_stride = 0;
  int bias_type = -1;
  const float *scale_a = nullptr, *scale_b = nullptr; // in device memory; null: one
  int8_t fast = 0;
};

struct Layout {
  int type = kR32F, order = 0, batch = 1;
  uint64_t rows = 0, cols = 0;
  int64_t ld = 0, stride = 0;
  bool narrow() const { return type == kE4M3 || type == kE5M2; }
  size_t item() const {
    if (narrow()) return 1;
    return type == kR16F || type == kR16BF ? 2 : type == kR32F ? 4 : type == kC64F ? 16 : 8;
  }
  bool complex() const { return type == kC32F || type == kC64F; }
};

struct Preference {
  uint64_t workspace = 0;
};

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

struct Value {
  double re = 0, im = 0;
};

float half_to_float(uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  const float magnitude = exponent == 31  ? (mantissa ? NAN : INFINITY)
                          : exponent == 0 ? std::ldexp(float(mantissa), -24)
                                          : std::ldexp(float(mantissa + 1024), exponent - 25);
  return h >> 15 ? -magnitude : magnitude;
}

uint16_t float_to_half(double x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  x = std::fabs(x);
  if (std::isnan(x)) return 0x7e00;
  if (x == 0) return sign;
  if (x >= 65520) return sign | 0x7c00;
  int exponent;
  std::frexp(x, &exponent);
  const int unit = std::max(exponent - 11, -24);
  const double scaled = std::nearbyint(std::ldexp(x, -unit)); // ties to even
  const int rounded = static_cast<int>(scaled);
  if (unit == -24) return sign | static_cast<uint16_t>(rounded);
  return rounded == 2048 ? sign | static_cast<uint16_t>((unit + 26) << 10)
                         : sign | static_cast<uint16_t>(((unit + 25) << 10) + (rounded - 1024));
}

// Four bits of exponent; the largest pattern is no number, and nothing is infinite.
float e4m3_to_float(uint8_t b) {
  const int exponent = b >> 3 & 15, mantissa = b & 7;
  const float magnitude = (b & 127) == 127 ? NAN
                          : exponent == 0  ? std::ldexp(float(mantissa), -9)
                                           : std::ldexp(float(mantissa + 8), exponent - 10);
  return b >> 7 ? -magnitude : magnitude;
}

float bfloat_to_float(uint16_t h) {
  const uint32_t bits = static_cast<uint32_t>(h) << 16;
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

uint16_t float_to_bfloat(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if (x != x) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T> T element(const void* base, int64_t i) { return static_cast<const T*>(base)[i]; }

Value load(const void* base, int type, int64_t i) {
  switch (type) {
  case kR16F:
    return {half_to_float(element<uint16_t>(base, i)), 0};
  case kR16BF:
    return {bfloat_to_float(element<uint16_t>(base, i)), 0};
  case kE4M3:
    return {e4m3_to_float(element<uint8_t>(base, i)), 0};
  case kE5M2: // the upper half of a half
    return {half_to_float(static_cast<uint16_t>(element<uint8_t>(base, i) << 8)), 0};
  case kR32F:
    return {element<float>(base, i), 0};
  case kR64F:
    return {element<double>(base, i), 0};
  case kC32F:
    return {element<float>(base, 2 * i), element<float>(base, 2 * i + 1)};
  default:
    return {element<double>(base, 2 * i), element<double>(base, 2 * i + 1)};
  }
}

void store(void* base, int type, int64_t i, Value v) {
  switch (type) {
  case kR16F:
    static_cast<uint16_t*>(base)[i] = float_to_half(v.re);
    break;
  case kR16BF:
    static_cast<uint16_t*>(base)[i] = float_to_bfloat(static_cast<float>(v.re));
    break;
  case kR32F:
    static_cast<float*>(base)[i] = static_cast<float>(v.re);
    break;
  case kR64F:
    static_cast<double*>(base)[i] = v.re;
    break;
  case kC32F:
    static_cast<float*>(base)[2 * i] = static_cast<float>(v.re);
    static_cast<float*>(base)[2 * i + 1] = static_cast<float>(v.im);
    break;
  default:
    static_cast<double*>(base)[2 * i] = v.re;
    static_cast<double*>(base)[2 * i + 1] = v.im;
  }
}

Value times(Value a, Value b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

struct DriverHooks {
  void (*open)(int) = nullptr;
  int (*valid)(unsigned long long, size_t) = nullptr;
  int (*is_recording)(void*) = nullptr;
  void (*record)(void*, int (*)(void*), void*, void (*)(void*)) = nullptr;
  const emulator::Observer* (*observer)() = nullptr;
  int (*device_of)(unsigned long long) = nullptr;
  DriverHooks() {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver) {
      find(driver, "cressetEmulatorOpen", open);
      find(driver, "cressetEmulatorValid", valid);
      find(driver, "cressetEmulatorIsRecording", is_recording);
      find(driver, "cressetEmulatorRecord", record);
      find(driver, "cressetEmulatorObserver", observer);
      find(driver, "cressetEmulatorDeviceOf", device_of);
    }
  }

 private:
  template <class F> static void find(void* driver, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(driver, name));
  }
};
DriverHooks& hooks() {
  static DriverHooks h;
  return h;
}

// Column-major element (r, c) of matrix `b` of a batch.
int64_t index(const Layout& m, int b, int64_t r, int64_t c) {
  return b * m.stride + (m.order == 1 ? r * m.ld + c : c * m.ld + r);
}

bool valid(const void* p, const Layout& m) {
  if (m.ld < static_cast<int64_t>(m.order == 1 ? m.cols : m.rows) || m.batch < 1) {
    std::fprintf(stderr, "cuda emulator: leading dimension %lld of a %llu x %llu matrix\n",
                 static_cast<long long>(m.ld), static_cast<unsigned long long>(m.rows),
                 static_cast<unsigned long long>(m.cols));
    return false;
  }
  const int64_t last = index(m, m.batch - 1, m.rows - 1, m.cols - 1);
  return hooks().valid(reinterpret_cast<uintptr_t>(p), (last + 1) * m.item()) != 0;
}

// An operand as a dense matrix of values, transposed and conjugated as asked.
std::vector<Value> gather(const void* p, const Layout& m, int op, int b) {
  std::vector<Value> out(m.rows * m.cols);
  const int64_t rows = op ? m.cols : m.rows, cols = op ? m.rows : m.cols;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      Value v = load(p, m.type, index(m, b, op ? c : r, op ? r : c));
      if (op == 2) {
        v.im = -v.im;
      }
      out[r * cols + c] = v;
    }
  }
  return out;
}

double activation(uint32_t epilogue, double x) {
  if (epilogue & 2) {
    return x > 0 ? x : 0;
  }
  if (epilogue & 32) { // the tanh form, as cuBLASLt has it
    return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  }
  return x;
}

} // namespace

EMULATOR_API int cublasLtCreate(void** handle) {
  *handle = new char;
  return kSuccess;
}
EMULATOR_API int cublasLtDestroy(void* handle) {
  delete static_cast<char*>(handle);
  return kSuccess;
}
EMULATOR_API size_t cublasLtGetVersion() { return 130000; }
EMULATOR_API const char* cublasLtGetStatusString(int status) {
  return status == 0 ? "success" : status == kInvalidValue ? "invalid value" : "not supported";
}

EMULATOR_API int cublasLtMatmulDescCreate(MatmulDesc** desc, int compute, int scale) {
  *desc = new MatmulDesc;
  (*desc)->compute = compute;
  (*desc)->scale = scale;
  return kSuccess;
}
EMULATOR_API int cublasLtMatmulDescDestroy(MatmulDesc* desc) {
  delete desc;
  return kSuccess;
}
EMULATOR_API int cublasLtMatmulDescSetAttribute(MatmulDesc* d, int attribute, const void* value,
                                                size_t bytes) {
  const auto set = [&](auto& field) {
    if (bytes != sizeof field) {
      return static_cast<int>(kInvalidValue);
    }
    std::memcpy(&field, value, bytes);
    return static_cast<int>(kSuccess);
  };
  switch (attribute) {
  case 0:
    return set(d->compute);
  case 1:
    return set(d->scale);
  case 2:
    return set(d->pointer_mode);
  case 3:
    return set(d->trans_a);
  case 4:
    return set(d->trans_b);
  case 7:
    return set(d->epilogue);
  case 8:
    return set(d->bias);
  case 10:
    return set(d->bias_stride);
  case 17:
    return set(d->scale_a);
  case 18:
    return set(d->scale_b);
  case 25:
    return set(d->fast);
  case 26:
    return set(d->bias_type);
  default:
    return kNotSupported;
  }
}

EMULATOR_API int cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t cols,
                                            int64_t ld) {
  *layout = new Layout;
  (*layout)->type = type;
  (*layout)->rows = rows;
  (*layout)->cols = cols;
  (*layout)->ld = ld;
  return kSuccess;
}
EMULATOR_API int cublasLtMatrixLayoutDestroy(Layout* layout) {
  delete layout;
  return kSuccess;
}
EMULATOR_API int cublasLtMatrixLayoutSetAttribute(Layout* m, int attribute, const void* value,
                                                  size_t bytes) {
  const auto set = [&](auto& field) {
    if (bytes != sizeof field) {
      return static_cast<int>(kInvalidValue);
    }
    std::memcpy(&field, value, bytes);
    return static_cast<int>(kSuccess);
  };
  switch (attribute) {
  case 0:
    return set(m->type);
  case 1:
    return set(m->order);
  case 2:
    return set(m->rows);
  case 3:
    return set(m->cols);
  case 4:
    return set(m->ld);
  case 5:
    return set(m->batch);
  case 6:
    return set(m->stride);
  default:
    return kNotSupported;
  }
}

EMULATOR_API int cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = new Preference;
  return kSuccess;
}
EMULATOR_API int cublasLtMatmulPreferenceDestroy(Preference* preference) {
  delete preference;
  return kSuccess;
}
EMULATOR_API int cublasLtMatmulPreferenceSetAttribute(Preference* p, int attribute,
                                                      const void* value, size_t bytes) {
  if (attribute == 1 && bytes == sizeof p->workspace) {
    std::memcpy(&p->workspace, value, bytes);
  }
  return kSuccess;
}

namespace {
// 8-bit numbers are taken by one layout only, in whole packs of 16, and not twice with five bits of
// exponent.
bool types_fit(const MatmulDesc& d, const Layout& a, const Layout& b, const Layout& out) {
  if (!a.narrow() && !b.narrow()) return a.type == b.type && !d.scale_a && !d.scale_b;
  const bool packs = a.rows % 16 == 0 && b.rows % 16 == 0 && out.rows % 16 == 0 && a.ld % 16 == 0 &&
                     b.ld % 16 == 0;
  return a.narrow() && b.narrow() && !(a.type == kE5M2 && b.type == kE5M2) && d.trans_a == 1 &&
         d.trans_b == 0 && packs;
}
} // namespace

EMULATOR_API int cublasLtMatmulAlgoGetHeuristic(void*, MatmulDesc* d, Layout* a, Layout* b, Layout*,
                                                Layout* out, Preference*, int wanted,
                                                Heuristic* results, int* found) {
  *found = 0;
  const uint64_t k = d->trans_a ? a->rows : a->cols;
  const bool fits = (d->trans_b ? b->cols : b->rows) == k &&
                    (d->trans_a ? a->cols : a->rows) == out->rows &&
                    (d->trans_b ? b->rows : b->cols) == out->cols && types_fit(*d, *a, *b, *out);
  const bool wide = a->type == kR64F || a->type == kC64F;
  if (!fits || wide != (d->compute == kCompute64F)) {
    return kInvalidValue;
  }
  if (wanted < 1) {
    return kInvalidValue;
  }
  // More than one, so that the library's choosing among them is exercised.
  *found = std::min(wanted, 2);
  for (int i = 0; i < *found; ++i) {
    results[i] = Heuristic{};
    results[i].waves = 1;
  }
  return kSuccess;
}

namespace {
// A product with all that it depends on, so that it can be run when a graph is launched.
struct Product {
  MatmulDesc d;
  Layout a, b, c, out;
  const void *pa, *pb, *pc;
  void* pout;
  Value scale_product, scale_old;
  const void* stream;

  bool is_valid() const {
    return valid(pa, a) && valid(pb, b) && valid(pout, out) && (!adds() || valid(pc, c));
  }
  bool adds() const { return scale_old.re != 0 || scale_old.im != 0; }
  void run() const {
    emulator::Work work;
    work.name = "emulated_gemm";
    work.stream = stream;
    work.device = hooks().device_of(reinterpret_cast<uintptr_t>(pout));
    const emulator::ObservedWork observed(hooks().observer(), work);
    hooks().open(1);
    for (int batch = 0; batch < out.batch; ++batch) one(batch);
    hooks().open(0);
  }

 private:
  void one(int batch) const {
    const int64_t m = out.rows, n = out.cols, k = d.trans_a ? a.rows : a.cols;
    const std::vector<Value> left = gather(pa, a, d.trans_a, batch);
    const std::vector<Value> right = gather(pb, b, d.trans_b, batch);
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t col = 0; col < n; ++col) {
        Value sum;
        for (int64_t i = 0; i < k; ++i) {
          const Value p = times(left[r * k + i], right[i * n + col]);
          sum.re += p.re;
          sum.im += p.im;
        }
        store(pout, out.type, index(out, batch, r, col), finished(sum, batch, r, col));
      }
    }
  }
  Value finished(Value product, int batch, int64_t r, int64_t col) const {
    Value sum = times(product, scale_product);
    for (const float* scale : {d.scale_a, d.scale_b})
      if (scale) sum = {sum.re * *scale, sum.im * *scale};
    const auto add = [&](Value v) {
      sum.re += v.re;
      sum.im += v.im;
    };
    if (adds()) add(times(load(pc, c.type, index(c, batch, r, col)), scale_old));
    if (d.epilogue & 4) {
      const int type = d.bias_type < 0 ? out.type : d.bias_type;
      add(load(d.bias, type, batch * d.bias_stride + r));
    }
    if (!out.complex()) sum.re = activation(d.epilogue, sum.re);
    return sum;
  }
};

int run_product(void* product) {
  static_cast<Product*>(product)->run();
  return kSuccess;
}
void free_product(void* product) { delete static_cast<Product*>(product); }
} // namespace

EMULATOR_API int cublasLtMatmul(void*, MatmulDesc* d, const void* alpha, const void* pa, Layout* la,
                                const void* pb, Layout* lb, const void* beta, const void* pc,
                                Layout* lc, void* pd, Layout* ld, const Algorithm*, void*, size_t,
                                void* stream) {
  static const bool dry = std::getenv("CRESSET_EMULATOR_DRY") != nullptr;
  if (dry) {
    return kSuccess;
  }
  const Product product{
      *d,    *la, *lb, *lc, *ld, pa, pb, pc, pd, load(alpha, d->scale, 0), load(beta, d->scale, 0),
      stream};
  if (!hooks().open || !product.is_valid()) {
    return kInvalidValue;
  }
  if (hooks().is_recording(stream)) {
    hooks().record(stream, run_product, new Product(product), free_product);
  } else {
    // The real library launches through its own copy of the runtime.
    const emulator::Observer* const observer = hooks().observer();
    if (observer) observer->call("cudaLaunchKernel_v7000", true);
    product.run();
    if (observer) observer->call("cudaLaunchKernel_v7000", false);
  }
  return kSuccess;
}
