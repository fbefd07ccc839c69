// Reductions on CUDA. The dimensions are sorted and merged into those that stay and those that go;
// what is innermost decides between three kernels (device/Reduce.cuh): rows, where reduced elements
// are neighbours, columns, where results are, and single elements for everything else. A result
// with many elements, or few results, is cut into pieces whose partial accumulators the last block
// to finish combines. All cuts depend on the sizes and strides alone, never on the GPU, so a sum
// has the same bits on every GPU.
#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/Launch.h>
#include <ATen/cuda/Pointwise.h>
#include <ATen/cuda/PointwiseLaunch.h>
#include <ATen/cuda/Program.h>
#include <ATen/cuda/device/Arguments.h>
#include <ATen/native/reduce/ReduceDriver.h>
#include <c10/cuda/CUDAGuard.h>

namespace at::native::reduce {
namespace {

using at::cuda::CUfunction;
using at::device::Divider;

constexpr int kThreads = at::device::kReduceThreads;
constexpr int kDims = at::device::kReduceDims;
// Blocks that keep the largest GPU busy, and the least work that is worth a block of its own.
constexpr int64_t kManyBlocks = 4096;
constexpr int64_t kBlockBytes = 32768;
// Blocks of kThreads that a multiprocessor runs at a time.
constexpr int64_t kWaveBlocks = 6;
constexpr int64_t kColumnWaveBlocks = 3; // of the kernel of columns, which takes more registers
constexpr int64_t kCombineThreads = 262144;
// Threads that fill the largest GPU about twice.
constexpr int64_t kFullGpu = 524288;

using Args = at::device::ReduceArgs;

struct Dim {
  int64_t size, stride, out_stride;
};
using Dims = c10::SmallVector<Dim, 6>;

// Innermost first; dimensions that lie flush become one.
void sort_and_merge(Dims& dims, bool keep_order) {
  if (!keep_order)
    std::stable_sort(dims.begin(), dims.end(),
                     [](const Dim& a, const Dim& b) { return a.stride < b.stride; });
  size_t used = 0;
  for (size_t i = 1; i < dims.size(); ++i) {
    Dim& last = dims[used];
    const Dim& next = dims[i];
    if (next.stride == last.stride * last.size && next.out_stride == last.out_stride * last.size) {
      last.size *= next.size;
    } else {
      dims[++used] = next;
    }
  }
  if (!dims.empty()) dims.resize(used + 1, Dim{1, 0, 0});
}

int64_t product(const Dims& dims) {
  int64_t n = 1;
  for (const Dim& d : dims) n *= d.size;
  return n;
}

// ---- functions ----------------------------------------------------------------------------------
enum Form { kRow, kColumn, kStrided, kCombine, kForms };
constexpr const char* kFormNames[] = {"row", "column", "strided", "combine"};
constexpr const char* kOpNames[] = {"Sum",          "NanSum", "Prod",   "Max",       "Min",
                                    "MinMax",       "ArgMax", "ArgMin", "All",       "Any",
                                    "CountNonzero", "XorSum", "AbsSum", "SquareSum", "AbsPowSum",
                                    "AbsMax",       "AbsMin", "Var",    "LogSumExp"};
static_assert(sizeof(kOpNames) / sizeof(kOpNames[0]) == kReduceOps);

CUfunction load_kernel(const ReduceKernel& kernel, int device, Form form) {
  const char* type = at::cuda::device_type_name(kernel.dtype);
  const std::string op = kOpNames[static_cast<int>(kernel.op)];
  TORCH_CHECK_NOT_IMPLEMENTED(type != nullptr, "\"", op, "\" not implemented for '", kernel.dtype,
                              "' on cuda");
  const std::string image = "reduce_" + op;
  const std::string name = image + "_" + kFormNames[form] + "_" + type;
  const std::string text =
      "#include <ATen/cuda/device/Reduce.cuh>\nCRESSET_REDUCE(" + op + ", " + type + ")\n";
  return at::cuda::load_generated(device, image.c_str(), text, {}, name.c_str());
}

CUfunction find_function(const ReduceKernel& kernel, int device, Form form) {
  using Slots = std::atomic<CUfunction>[kReduceOps][c10::NumScalarTypes][kForms];
  static std::atomic<Slots*> devices[c10::cuda::kMaxDevices] = {};
  Slots* slots = devices[device].load(std::memory_order_acquire);
  if (C10_UNLIKELY(slots == nullptr)) {
    struct Holder {
      Slots slots;
    };
    Slots* made = &(new Holder())->slots; // kept for the life of the process
    slots = devices[device].compare_exchange_strong(slots, made) ? made : slots;
  }
  std::atomic<CUfunction>& slot =
      (*slots)[static_cast<int>(kernel.op)][static_cast<int>(kernel.dtype)][form];
  CUfunction function = slot.load(std::memory_order_acquire);
  if (C10_UNLIKELY(function == nullptr)) {
    function = load_kernel(kernel, device, form);
    slot.store(function, std::memory_order_release);
  }
  return function;
}

// Zeroes for the kernels to count finished blocks with. Launches on one stream follow each other,
// so a stream needs one set; while a stream is captured there is none (null), because the graph may
// run beside other work of the stream.
uint32_t* tickets_of(Device device, c10::cuda::CUstream stream) {
  if (stream != nullptr && c10::cuda::is_capturing()) return nullptr;
  struct Set {
    c10::DeviceIndex device;
    c10::cuda::CUstream stream;
    Tensor zeroes;
  };
  static std::mutex mutex;
  static auto* const sets = new std::vector<Set>; // kept for the life of the process
  const std::lock_guard<std::mutex> lock(mutex);
  for (const Set& set : *sets)
    if (set.stream == stream && set.device == device.index())
      return static_cast<uint32_t*>(set.zeroes.data_ptr());
  const Tensor zeroes = detail::empty({kManyBlocks}, kInt, device);
  zeroes.zero_();
  sets->push_back({device.index(), stream, zeroes});
  return static_cast<uint32_t*>(zeroes.data_ptr());
}

// Bytes of an accumulator on the device.
int64_t accumulator_bytes(const ReduceKernel& kernel) {
  const int64_t value = c10::elementSize(kernel.value_dtype[0]);
  switch (kernel.op) {
  case ReduceOp::Var:
    return c10::isComplexType(kernel.dtype) ? 48 : 32;
  case ReduceOp::ArgMax:
  case ReduceOp::ArgMin:
    return 16;
  case ReduceOp::MinMax:
  case ReduceOp::LogSumExp:
    return 2 * value;
  default:
    return value;
  }
}

// ---- geometry -----------------------------------------------------------------------------------
struct Geometry {
  Dims kept, reduced; // innermost first
  int64_t outputs, count;
};

Geometry geometry_of(const Tensor& self, DimMask mask, bool keep_order) {
  Geometry g;
  int64_t out_stride = 1;
  const int64_t itemsize = self.itemsize();
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    const Dim dim{self.sizes()[d], self.strides()[d] * itemsize, out_stride};
    if (mask >> d & 1) {
      g.reduced.push_back({dim.size, dim.stride, 0});
    } else {
      g.kept.push_back(dim);
      out_stride *= dim.size;
    }
  }
  g.outputs = product(g.kept);
  g.count = product(g.reduced);
  const auto drop_ones = [](Dims& dims) {
    size_t used = 0;
    for (const Dim& d : dims)
      if (d.size != 1) dims[used++] = d;
    dims.resize(used, Dim{1, 0, 0});
  };
  drop_ones(g.kept);
  drop_ones(g.reduced);
  // Kept dimensions stay in the order of the output; merging them is enough.
  sort_and_merge(g.kept, true);
  sort_and_merge(g.reduced, keep_order);
  return g;
}

int64_t power_of_two_above(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

void set_kept(Args& a, const Dims& kept, size_t first) {
  a.kept_ndim = static_cast<int32_t>(kept.size() - first);
  for (size_t d = first; d < kept.size(); ++d) {
    a.kept_size[d - first] = Divider(static_cast<uint32_t>(kept[d].size));
    a.kept_stride[d - first] = kept[d].stride;
  }
}
void set_reduced(Args& a, const Dims& reduced, size_t first) {
  a.reduced_ndim = static_cast<int32_t>(reduced.size() - std::min(first, reduced.size()));
  for (size_t d = first; d < reduced.size(); ++d) {
    a.reduced_size[d - first] = Divider(static_cast<uint32_t>(reduced[d].size));
    a.reduced_stride[d - first] = reduced[d].stride;
  }
}

bool multiples_of_16(const Dims& dims, size_t first) {
  for (size_t d = first; d < dims.size(); ++d)
    if (dims[d].stride % 16 != 0) return false;
  return true;
}

// Pieces of `total` units so that about `many` blocks run, none with fewer than `least` units;
// sets chunk and splits.
void split(Args& a, int64_t blocks, int64_t total, int64_t least, int64_t many = kManyBlocks) {
  int64_t splits = std::max<int64_t>(1, std::min(many / blocks, total / least));
  a.chunk = (total + splits - 1) / splits;
  // Rounded so that a piece of an aligned row starts aligned.
  if (a.chunk > 64) a.chunk = (a.chunk + 63) / 64 * 64;
  a.splits = static_cast<int32_t>(
      a.chunk == 0 ? 1 : std::max<int64_t>(1, (total + a.chunk - 1) / a.chunk));
}

struct Launch {
  Form form;
  int64_t blocks;
};

Launch plan_rows(Args& a, const Geometry& g, int64_t itemsize) {
  const int64_t pack = 16 / itemsize;
  a.run = g.reduced.empty() ? 1 : g.reduced[0].size;
  a.runs = g.count / a.run;
  set_kept(a, g.kept, 0);
  set_reduced(a, g.reduced, 1);
  a.aligned = reinterpret_cast<uintptr_t>(a.in) % 16 == 0 && multiples_of_16(g.kept, 0) &&
              multiples_of_16(g.reduced, 1);
  // About four packs for a thread.
  const int64_t packs = std::max<int64_t>(1, a.run / pack);
  a.lanes = static_cast<int32_t>(std::min<int64_t>(kThreads, power_of_two_above((packs + 3) / 4)));
  // Where there are many rows a warp for each is enough to fill the GPU, and its threads meet less
  // often than those of a block.
  while (a.lanes > 32 && g.outputs * a.lanes >= 2 * kFullGpu) a.lanes /= 2;
  const int64_t rows = kThreads / a.lanes;
  const int64_t row_blocks = (g.outputs + rows - 1) / rows;
  if (a.runs > 1)
    split(a, row_blocks, a.runs, std::max<int64_t>(1, kBlockBytes / (a.run * itemsize)));
  else if (g.outputs == 1)
    // One wave of blocks: a second would wait for the first's slowest.
    split(a, 1, a.run, kBlockBytes / itemsize, kWaveBlocks * at::cuda::multiprocessors());
  else
    split(a, row_blocks, a.run, kBlockBytes / itemsize);
  return {kRow, row_blocks * a.splits};
}

// The columns of one thread are ReduceKernels::kColumns.
Launch plan_columns(Args& a, const Geometry& g, int64_t itemsize, int64_t accumulator) {
  const int64_t most = accumulator > 32 ? 2 : accumulator > 8 ? 4 : 8;
  const int64_t pack = std::min<int64_t>(most, 16 / itemsize);
  const int64_t bytes = pack * itemsize;
  a.columns = g.kept[0].size;
  set_kept(a, g.kept, 1);
  set_reduced(a, g.reduced, 0);
  const auto divides = [&](const Dims& dims, size_t first) {
    for (size_t d = first; d < dims.size(); ++d)
      if (dims[d].stride % bytes != 0) return false;
    return true;
  };
  a.aligned = reinterpret_cast<uintptr_t>(a.in) % static_cast<uintptr_t>(bytes) == 0 &&
              a.columns % pack == 0 && divides(g.kept, 1) && divides(g.reduced, 0);
  const int64_t units = a.aligned ? a.columns / pack : a.columns;
  // A block reads 128 bytes of a row. Wider blocks would be cut into more pieces, which few of them
  // combine at the end while the rest of the GPU waits. With few rows it is wide, so that threads
  // above each other have some rows each.
  constexpr int64_t kRowsOfThread = 8;
  int64_t lanes = a.aligned ? 8 : 32;
  while (lanes < kThreads && g.count < kRowsOfThread * (kThreads / lanes)) lanes *= 2;
  a.lanes = static_cast<int32_t>(std::min<int64_t>(lanes, power_of_two_above(units)));
  const int64_t column_blocks = (units + a.lanes - 1) / a.lanes;
  const int64_t blocks = column_blocks * (g.outputs / a.columns);
  // As many blocks as run side by side: the last ones of a second wave would run alone.
  split(a, blocks, g.count, std::max<int64_t>(1, 4 * kThreads / a.lanes),
        kColumnWaveBlocks * at::cuda::multiprocessors());
  return {kColumn, blocks * a.splits};
}

// Neighbouring threads take what is nearer in memory: results or elements.
Launch plan_strided(Args& a, const Geometry& g) {
  set_kept(a, g.kept, 0);
  set_reduced(a, g.reduced, 0);
  const bool kept_inside =
      !g.kept.empty() && (g.reduced.empty() || g.kept[0].stride < g.reduced[0].stride);
  a.lanes = kept_inside ? 1
                        : static_cast<int32_t>(
                              std::min<int64_t>(kThreads, power_of_two_above((g.count + 3) / 4)));
  const int64_t rows = kThreads / a.lanes;
  const int64_t blocks = (g.outputs + rows - 1) / rows;
  split(a, blocks, g.count, 8 * a.lanes);
  return {kStrided, blocks * a.splits};
}

// Nothing to fold: every result is the identity.
Launch plan_empty(Args& a, const Geometry& g) {
  a.runs = a.splits = a.lanes = 1;
  return {kRow, (g.outputs + kThreads - 1) / kThreads};
}

Launch plan_launch(Args& a, const Geometry& g, int64_t itemsize, int64_t accumulator) {
  if (g.count == 0) return plan_empty(a, g);
  const bool rows = g.reduced.empty() || g.reduced[0].stride == itemsize;
  if (rows) return plan_rows(a, g, itemsize);
  if (!g.kept.empty() && g.kept[0].stride == itemsize) {
    return plan_columns(a, g, itemsize, accumulator);
  }
  return plan_strided(a, g);
}

void launch(CUfunction function, int64_t blocks, Args& args, c10::cuda::CUstream stream) {
  TORCH_CHECK(blocks < (int64_t(1) << 31), "the tensor is too large to be reduced on cuda");
  void* pointers[] = {&args};
  at::cuda::launch_function(function, static_cast<unsigned>(blocks), kThreads, 0, stream, pointers);
}

// Whether value k can be written as `dtype` by the kernel itself; sets the bit of a narrow store.
bool stores_as(const ReduceKernel& kernel, int k, ScalarType dtype, uint32_t& narrow) {
  const ScalarType value = kernel.value_dtype[k];
  if (dtype == value || (value == kByte && dtype == kBool)) return true;
  const bool index = k == 1 && (kernel.op == ReduceOp::ArgMax || kernel.op == ReduceOp::ArgMin);
  const ScalarType own =
      c10::isComplexType(value) ? kernel.dtype : c10::toRealValueType(kernel.dtype);
  if (index || dtype != own) return false;
  narrow |= 1u << k;
  return true;
}

bool fits_dividers(const Geometry& g) {
  constexpr int64_t kLimit = int64_t(1) << 31;
  if (g.kept.size() > kDims || g.reduced.size() > kDims) return false;
  // With one dimension nothing is divided.
  return (g.kept.size() <= 1 || g.outputs < kLimit) && (g.reduced.size() <= 1 || g.count < kLimit);
}

} // namespace

void reduce_cuda(const ReduceCall& call, const Tensor& self, DimMask mask, ArrayRef<Tensor> outs) {
  const ReduceKernel& kernel = *call.kernel;
  const c10::cuda::CUDAGuard guard(self.device());
  const c10::DeviceIndex device = self.device().index();
  const c10::cuda::CUstream stream = c10::cuda::getCurrentCUDAStream(device);
  const bool indexed = kernel.op == ReduceOp::ArgMax || kernel.op == ReduceOp::ArgMin;
  Tensor source = self;
  Geometry g = geometry_of(source, mask, indexed);
  if (g.outputs == 0) return;
  if (!fits_dividers(g)) {
    source = self.contiguous();
    g = geometry_of(source, mask, indexed);
    TORCH_CHECK(fits_dividers(g), "the tensor is too large to be reduced on cuda");
  }

  Args args = {};
  args.in = source.numel() == 0 ? nullptr : source.data_ptr();
  args.outputs = g.outputs;
  args.count = g.count;
  args.post = static_cast<int32_t>(call.post);
  args.param = call.param;
  Tensor staged[2];
  for (int k = 0; k < kernel.values; ++k) {
    const Tensor& out = outs[static_cast<size_t>(k)];
    if (!out.defined()) continue;
    const bool direct = stores_as(kernel, k, out.scalar_type(), args.narrow);
    staged[k] = direct ? out : detail::empty(out.sizes(), kernel.value_dtype[k], out.device());
    args.out[k] = staged[k].data_ptr();
  }
  const Launch first = plan_launch(args, g, source.itemsize(), accumulator_bytes(kernel));
  Tensor partial;
  if (args.splits > 1) {
    partial =
        detail::empty({args.splits * g.outputs * accumulator_bytes(kernel)}, kByte, self.device());
    args.partial = partial.data_ptr();
    args.tickets = tickets_of(self.device(), stream);
  }
  launch(find_function(kernel, device, first.form), first.blocks, args, stream);
  if (args.splits > 1 && args.tickets == nullptr) {
    // The fewer results, the more threads for each.
    const int64_t share = power_of_two_above(kCombineThreads / g.outputs);
    args.lanes =
        static_cast<int32_t>(std::min({int64_t(kThreads), share, power_of_two_above(args.splits)}));
    const int64_t rows = kThreads / args.lanes;
    launch(find_function(kernel, device, kCombine), (g.outputs + rows - 1) / rows, args, stream);
  }
  for (int k = 0; k < kernel.values; ++k) {
    const Tensor& out = outs[static_cast<size_t>(k)];
    if (out.defined() && !staged[k].is_same(out)) at::cuda::copy_on_device(out, staged[k]);
  }
}

} // namespace at::native::reduce
