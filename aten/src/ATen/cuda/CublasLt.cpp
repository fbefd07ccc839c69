// See CublasLt.h.
#include <ATen/cuda/CublasLt.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/ByteKey.h>
#include <ATen/cuda/VendorLibrary.h>
#include <ATen/ops/equal.h>
#include <c10/cuda/CUDAEvent.h>

namespace at::cuda {
namespace {

using c10::cuda::CUstream;

// ---- the library --------------------------------------------------------------------------------
using Status = int;
constexpr Status kSuccess = 0;
enum MatmulAttribute : int {
  kPointerMode = 2,
  kTransA = 3,
  kTransB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kScalePointerA = 17,
  kScalePointerB = 18,
  kFastAccumulation = 25,
};
enum LayoutAttribute : int { kBatchCount = 5, kBatchOffset = 6 };
enum PreferenceAttribute : int {
  kMaxWorkspace = 1,
  kMinAlignmentA = 5,
  kMinAlignmentB = 6,
  kMinAlignmentC = 7,
  kMinAlignmentD = 8,
};
enum DataType : int {
  kR32F = 0,
  kR64F = 1,
  kR16F = 2,
  kC32F = 4,
  kC64F = 5,
  kR16BF = 14,
  kR8E4M3 = 28,
  kR8E5M2 = 29,
};
enum ComputeType : int { kCompute32F = 68, kCompute64F = 70, kCompute32FTf32 = 77 };
enum Epilogue : uint32_t { kEpilogueDefault = 1, kEpilogueBias = 4 };

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};

struct Library {
  Status (*cublasLtCreate)(void**);
  Status (*cublasLtMatmulDescCreate)(void**, int compute, int scale);
  Status (*cublasLtMatmulDescDestroy)(void*);
  Status (*cublasLtMatmulDescSetAttribute)(void*, int, const void*, size_t);
  Status (*cublasLtMatrixLayoutCreate)(void**, int type, uint64_t rows, uint64_t cols, int64_t ld);
  Status (*cublasLtMatrixLayoutDestroy)(void*);
  Status (*cublasLtMatrixLayoutSetAttribute)(void*, int, const void*, size_t);
  Status (*cublasLtMatmulPreferenceCreate)(void**);
  Status (*cublasLtMatmulPreferenceDestroy)(void*);
  Status (*cublasLtMatmulPreferenceSetAttribute)(void*, int, const void*, size_t);
  Status (*cublasLtMatmulAlgoGetHeuristic)(void*, void*, void*, void*, void*, void*, void*, int,
                                           Heuristic*, int*);
  Status (*cublasLtMatmul)(void*, void*, const void*, const void*, void*, const void*, void*,
                           const void*, const void*, void*, void*, void*, const Algorithm*, void*,
                           size_t, CUstream);
};

const Library& library() {
#define CRESSET_FIND(name) CRESSET_VENDOR_FUNCTION(Library, name)
  static const Library* const loaded = vendor_table<Library>(
      {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
      {CRESSET_FIND(cublasLtCreate), CRESSET_FIND(cublasLtMatmulDescCreate),
       CRESSET_FIND(cublasLtMatmulDescDestroy), CRESSET_FIND(cublasLtMatmulDescSetAttribute),
       CRESSET_FIND(cublasLtMatrixLayoutCreate), CRESSET_FIND(cublasLtMatrixLayoutDestroy),
       CRESSET_FIND(cublasLtMatrixLayoutSetAttribute), CRESSET_FIND(cublasLtMatmulPreferenceCreate),
       CRESSET_FIND(cublasLtMatmulPreferenceDestroy),
       CRESSET_FIND(cublasLtMatmulPreferenceSetAttribute),
       CRESSET_FIND(cublasLtMatmulAlgoGetHeuristic), CRESSET_FIND(cublasLtMatmul)});
#undef CRESSET_FIND
  TORCH_CHECK_NOT_IMPLEMENTED(loaded != nullptr,
                              "matrix products on CUDA need libcublasLt.so.13 or .12, which could "
                              "not be loaded");
  return *loaded;
}

void check(Status status, const char* call, const Product& p) {
  TORCH_CHECK(status == kSuccess, "CUDA error: cuBLAS status ", status, " when calling `", call,
              "` for a product of ", p.m, "x", p.k, " and ", p.k, "x", p.n, " (batch ", p.batch,
              ", dtype ", static_cast<c10::ScalarType>(p.dtype), ")");
}

// One handle per device, shared by all threads: cuBLASLt keeps no state of a call in it.
void* handle_of(int device, const Product& p) {
  static std::mutex mutex;
  static void* handles[16] = {};
  std::lock_guard<std::mutex> lock(mutex);
  if (handles[device] == nullptr)
    check(library().cublasLtCreate(&handles[device]), "cublasLtCreate", p);
  return handles[device];
}

// ---- workspace: one per device and stream, kept for good ----------------------------------------
constexpr size_t kWorkspaceBytes = 32 << 20;

void* workspace_of(int device, CUstream stream) {
  struct Held {
    int device;
    CUstream stream;
    Tensor memory;
  };
  static std::mutex mutex;
  static auto* held = new std::vector<Held>;
  thread_local struct {
    int device = -1;
    CUstream stream = nullptr;
    void* memory = nullptr;
  } last;
  if (C10_LIKELY(last.device == device && last.stream == stream)) return last.memory;
  std::lock_guard<std::mutex> lock(mutex);
  void* memory = nullptr;
  for (const Held& h : *held)
    if (h.device == device && h.stream == stream) memory = h.memory.mutable_data_ptr();
  if (memory == nullptr) {
    const Device where(kCUDA, static_cast<c10::DeviceIndex>(device));
    held->push_back(
        {device, stream, at::detail::empty({static_cast<int64_t>(kWorkspaceBytes)}, kByte, where)});
    memory = held->back().memory.mutable_data_ptr();
  }
  last.device = device;
  last.stream = stream;
  last.memory = memory;
  return memory;
}

// ---- plans --------------------------------------------------------------------------------------
struct Plan {
  Product product;
  void *handle = nullptr, *matmul = nullptr, *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
  const void* bias = nullptr;                         // set in `matmul`, like the scales
  const float *scale_a = nullptr, *scale_b = nullptr; // null: not set
  Algorithm algorithm;
  size_t workspace = 0;

  ~Plan() {
    const Library& l = library();
    if (matmul) l.cublasLtMatmulDescDestroy(matmul);
    for (void* layout : {a, b, c, d})
      if (layout) l.cublasLtMatrixLayoutDestroy(layout);
  }
};

DataType data_type(c10::ScalarType dtype) {
  static constexpr std::pair<c10::ScalarType, DataType> kNumbers[] = {
      {kFloat, kR32F},
      {kDouble, kR64F},
      {kHalf, kR16F},
      {kBFloat16, kR16BF},
      {kComplexFloat, kC32F},
      {kComplexDouble, kC64F},
      {c10::ScalarType::Float8_e4m3fn, kR8E4M3},
      {c10::ScalarType::Float8_e5m2, kR8E5M2}};
  for (const auto& [ours, theirs] : kNumbers)
    if (ours == dtype) return theirs;
  throw c10::NotImplementedError(c10::str("\"addmm_cuda\" not implemented for '", dtype, "'"));
}

void* make_layout(const Product& p, int8_t dtype, int64_t rows, int64_t cols, int64_t ld,
                  int64_t stride) {
  const Library& l = library();
  void* layout = nullptr;
  const DataType type = data_type(static_cast<c10::ScalarType>(dtype));
  check(l.cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows),
                                     static_cast<uint64_t>(cols), ld),
        "cublasLtMatrixLayoutCreate", p);
  if (p.batch > 1) {
    const int32_t batch = static_cast<int32_t>(p.batch);
    l.cublasLtMatrixLayoutSetAttribute(layout, kBatchCount, &batch, sizeof batch);
    l.cublasLtMatrixLayoutSetAttribute(layout, kBatchOffset, &stride, sizeof stride);
  }
  return layout;
}

// Pointers are attributes of the descriptor.
void set_scales(Plan& plan, const ProductData& data) {
  const auto set = [&](MatmulAttribute attribute, const float* value, const float*& current) {
    if (current == value) return;
    check(library().cublasLtMatmulDescSetAttribute(plan.matmul, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute", plan.product);
    current = value;
  };
  set(kScalePointerA, data.scale_a, plan.scale_a);
  set(kScalePointerB, data.scale_b, plan.scale_b);
}

void make_matmul(Plan& plan, const ProductData& data) {
  const void* bias = data.bias;
  const Product& p = plan.product;
  const Library& l = library();
  const DataType type = data_type(static_cast<c10::ScalarType>(p.dtype));
  const bool wide = type == kR64F || type == kC64F;
  const ComputeType compute = wide ? kCompute64F : p.tf32 ? kCompute32FTf32 : kCompute32F;
  const DataType scale = type == kC32F || type == kC64F || wide ? type : kR32F;
  check(l.cublasLtMatmulDescCreate(&plan.matmul, compute, scale), "cublasLtMatmulDescCreate", p);
  const int32_t op_a = p.transpose_a ? (p.conjugate_a ? 2 : 1) : 0;
  const int32_t op_b = p.transpose_b ? (p.conjugate_b ? 2 : 1) : 0;
  const auto set = [&](MatmulAttribute attribute, const auto& value) {
    check(l.cublasLtMatmulDescSetAttribute(plan.matmul, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute", p);
  };
  set(kTransA, op_a);
  set(kTransB, op_b);
  if (p.bias) {
    set(kEpilogue, static_cast<uint32_t>(kEpilogueBias));
    set(kBiasPointer, bias);
    plan.bias = bias;
  }
  if (p.scaled) {
    set(kFastAccumulation, static_cast<int8_t>(p.fast));
    set_scales(plan, data);
  }
}

// The heuristics' choices, best first.
using Choices = c10::SmallVector<Heuristic, 8>;
Choices find_algorithms(const Plan& plan, int wanted) {
  const Product& p = plan.product;
  const Library& l = library();
  void* preference = nullptr;
  check(l.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate", p);
  const uint64_t workspace = kWorkspaceBytes;
  l.cublasLtMatmulPreferenceSetAttribute(preference, kMaxWorkspace, &workspace, sizeof workspace);
  const std::pair<PreferenceAttribute, uint8_t> alignments[] = {{kMinAlignmentA, p.align_a},
                                                                {kMinAlignmentB, p.align_b},
                                                                {kMinAlignmentC, p.align_c},
                                                                {kMinAlignmentD, p.align_d}};
  for (const auto& [attribute, log2] : alignments) {
    const uint32_t bytes = 1u << log2;
    l.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &bytes, sizeof bytes);
  }
  Choices results(static_cast<size_t>(wanted), Heuristic{});
  int found = 0;
  const Status status =
      l.cublasLtMatmulAlgoGetHeuristic(plan.handle, plan.matmul, plan.a, plan.b, plan.c, plan.d,
                                       preference, wanted, results.data(), &found);
  l.cublasLtMatmulPreferenceDestroy(preference);
  check(status, "cublasLtMatmulAlgoGetHeuristic", p);
  TORCH_CHECK(found > 0, "cuBLASLt has no algorithm for a product of ", p.m, "x", p.k, " and ", p.k,
              "x", p.n, " (batch ", p.batch, ", dtype ", static_cast<c10::ScalarType>(p.dtype),
              ")");
  results.resize(static_cast<size_t>(found));
  return results;
}

void choose(Plan& plan, const Heuristic& choice) {
  plan.algorithm = choice.algorithm;
  plan.workspace = choice.workspace;
}

// ---- choosing by time ---------------------------------------------------------------------------
// The heuristics know no timings, and their first choice for a large product may be a tenth slower
// than their third. The first time a thread meets a product that is worth it, the choices are timed
// into scratch memory. Only one that gives the very bits of the first may replace it, so that
// results do not depend on what the clock said.
constexpr double kWorthOperations = 1 << 29;
constexpr double kScratchBytes = 1 << 28;
constexpr float kLongestMilliseconds = 5, kRoundMilliseconds = 0.5f;
constexpr int kChoices = 8, kMostRepeats = 5;

Status enqueue(const Plan& plan, const ProductData& data, void* d, CUstream stream) {
  void* workspace = plan.workspace > 0 ? workspace_of(plan.product.device, stream) : nullptr;
  return library().cublasLtMatmul(plan.handle, plan.matmul, data.alpha, data.a, plan.a, data.b,
                                  plan.b, data.beta, data.c, plan.c, d, plan.d, &plan.algorithm,
                                  workspace, plan.workspace, stream);
}

// Bytes of D where it is worth choosing by time and D lies dense; otherwise zero.
int64_t scratch_bytes(const Product& p, CUstream stream) {
  const double size = static_cast<double>(p.m) * static_cast<double>(p.n),
               batch = static_cast<double>(p.batch), k = static_cast<double>(p.k);
  const auto item = static_cast<double>(c10::elementSize(static_cast<c10::ScalarType>(p.dtype_d)));
  const bool dense = p.ldd == p.m && (p.batch == 1 || p.stride_d == p.m * p.n);
  if (!dense || 2 * size * k * batch < kWorthOperations || size * batch * item > kScratchBytes)
    return 0;
  if (stream != nullptr && c10::cuda::is_capturing()) return 0;
  return static_cast<int64_t>(size * batch * item);
}

// Milliseconds of one product, negative where the algorithm fails.
float time_of(const Plan& plan, const ProductData& data, void* d, int repeats, CUstream stream) {
  c10::cuda::CUDAEvent before(c10::cuda::kEventDefault), after(c10::cuda::kEventDefault);
  before.record();
  for (int i = 0; i < repeats; ++i)
    if (enqueue(plan, data, d, stream) != kSuccess) return -1;
  after.record();
  after.synchronize();
  return before.elapsed_time(after) / static_cast<float>(repeats);
}

void choose_by_time(Plan& plan, const Choices& choices, const ProductData& data, int64_t bytes,
                    CUstream stream) {
  const Device device(kCUDA, static_cast<c10::DeviceIndex>(plan.product.device));
  const Tensor expected = at::detail::empty({bytes}, kByte, device),
               tried = at::detail::empty({bytes}, kByte, device);
  void *const first = expected.mutable_data_ptr(), *const other = tried.mutable_data_ptr();
  // The first run loads the kernel.
  if (time_of(plan, data, first, 1, stream) < 0) return;
  const float once = time_of(plan, data, first, 1, stream);
  if (once < 0 || once > kLongestMilliseconds) return;
  const int repeats =
      std::clamp(static_cast<int>(kRoundMilliseconds / std::max(once, 1e-3f)), 2, kMostRepeats);
  Heuristic fastest = choices[0];
  for (size_t i = 1; i < choices.size(); ++i) {
    choose(plan, choices[i]);
    if (choices[i].state != kSuccess || time_of(plan, data, other, 1, stream) < 0) continue;
    if (!at::equal(expected, tried)) continue;
    const float time = time_of(plan, data, other, repeats, stream);
    // Timed again beside its rival, because a GPU's clock sinks while it works; a gain within the
    // noise is none.
    choose(plan, fastest);
    if (time < 0.98f * time_of(plan, data, other, repeats, stream)) fastest = choices[i];
  }
  choose(plan, fastest);
}

// With a bias the heuristics leave out algorithms that they name for the same product without one
// and that take a bias as well: 16384 x 768 by 768 x 3072 takes 103 us with one of those, 130 us
// with the best of the others. Those that cannot are found out when they are tried.
void add_algorithms_without_bias(Plan& plan, Choices& choices) {
  const auto set_epilogue = [&](uint32_t epilogue) {
    check(library().cublasLtMatmulDescSetAttribute(plan.matmul, kEpilogue, &epilogue,
                                                   sizeof epilogue),
          "cublasLtMatmulDescSetAttribute", plan.product);
  };
  set_epilogue(kEpilogueDefault);
  Choices others;
  try {
    others = find_algorithms(plan, kChoices);
  } catch (const c10::Error&) {
    // None without a bias: there are those with one.
  }
  set_epilogue(kEpilogueBias);
  for (const Heuristic& other : others) {
    const bool known = std::any_of(choices.begin(), choices.end(), [&](const Heuristic& choice) {
      return std::memcmp(&choice.algorithm, &other.algorithm, sizeof other.algorithm) == 0;
    });
    if (!known) choices.push_back(other);
  }
}

void choose_algorithm(Plan& plan, const ProductData& data, CUstream stream) {
  const int64_t scratch = scratch_bytes(plan.product, stream);
  Choices choices = find_algorithms(plan, scratch > 0 ? kChoices : 1);
  if (plan.product.bias && scratch > 0) add_algorithms_without_bias(plan, choices);
  choose(plan, choices[0]);
  if (choices.size() == 1 || scratch == 0) return;
  try {
    choose_by_time(plan, choices, data, scratch, stream);
  } catch (const c10::OutOfMemoryError&) {
    choose(plan, choices[0]); // no memory to try in: the heuristics' word stands
  }
}

std::unique_ptr<Plan> make_plan(const Product& p, const ProductData& data, CUstream stream) {
  auto plan = std::make_unique<Plan>();
  plan->product = p;
  plan->handle = handle_of(p.device, p);
  make_matmul(*plan, data);
  plan->a = make_layout(p, p.dtype, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.lda,
                        p.stride_a);
  plan->b = make_layout(p, p.scaled ? p.dtype_b : p.dtype, p.transpose_b ? p.n : p.k,
                        p.transpose_b ? p.k : p.n, p.ldb, p.stride_b);
  plan->c = make_layout(p, p.dtype_d, p.m, p.n, p.ldc, p.stride_c);
  plan->d = make_layout(p, p.dtype_d, p.m, p.n, p.ldd, p.stride_d);
  choose_algorithm(*plan, data, stream);
  return plan;
}

// Open addressing with a short probe; a full neighbourhood forgets its first plan. Per thread,
// because a plan's descriptor is changed before each call with a bias.
Plan& plan_for(const Product& p, const ProductData& data, CUstream stream) {
  constexpr size_t kSlots = 1024, kProbes = 8;
  thread_local auto slots = std::make_unique<std::unique_ptr<Plan>[]>(kSlots);
  const size_t home = hash_bytes(p) & (kSlots - 1);
  std::unique_ptr<Plan>* free = nullptr;
  for (size_t i = 0; i < kProbes; ++i) {
    std::unique_ptr<Plan>& slot = slots[(home + i) & (kSlots - 1)];
    if (slot == nullptr) {
      free = &slot;
      break;
    }
    if (C10_LIKELY(std::memcmp(&slot->product, &p, sizeof p) == 0)) return *slot;
  }
  if (free == nullptr) free = &slots[home];
  *free = make_plan(p, data, stream);
  return **free;
}

} // namespace

void run_product(const Product& product, const ProductData& data, CUstream stream) {
  Plan& plan = plan_for(product, data, stream);
  const Library& l = library();
  if (product.bias && plan.bias != data.bias) {
    check(l.cublasLtMatmulDescSetAttribute(plan.matmul, kBiasPointer, &data.bias, sizeof data.bias),
          "cublasLtMatmulDescSetAttribute", product);
    plan.bias = data.bias;
  }
  if (product.scaled) set_scales(plan, data);
  check(enqueue(plan, data, data.d, stream), "cublasLtMatmul", product);
}

} // namespace at::cuda
