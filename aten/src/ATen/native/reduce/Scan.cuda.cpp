// Running reductions on CUDA: see device/Scan.cuh. The tensor is seen as [outer, n, inner]. Few
// long lines that lie side by side are turned into rows first, where a block can work on one
// together.
#include <ATen/native/reduce/Native.h>

#include <algorithm>
#include <string>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/Launch.h>
#include <ATen/cuda/PointwiseLaunch.h>
#include <ATen/cuda/Program.h>
#include <ATen/cuda/device/Arguments.h>
#include <ATen/native/shape/Geometry.h>
#include <c10/cuda/CUDAGuard.h>

namespace at::native {
namespace {

using at::cuda::CUfunction;

constexpr int kThreads = at::device::kScanThreads;
constexpr int64_t kPiece = 16384; // elements of a line that are worth a block of their own

using Args = at::device::ScanArgs;

enum ScanOp { kSum, kProd, kLogSumExp, kMax, kMin, kOps };
constexpr const char* kOpNames[] = {"Sum", "Prod", "LogSumExp", "Max", "Min"};
enum Form { kRow, kTotal, kCarry, kColumn, kForms };
constexpr const char* kFormNames[] = {"row", "total", "carry", "column"};

CUfunction load_kernel(ScanOp op, ScalarType dtype, int device, Form form) {
  const char* type = at::cuda::device_type_name(dtype);
  TORCH_CHECK_NOT_IMPLEMENTED(type != nullptr, "\"scan_cuda\" not implemented for '", dtype, "'");
  const std::string image = std::string("scan_") + kOpNames[op];
  const std::string name = image + "_" + kFormNames[form] + "_" + type;
  const std::string text = std::string("#include <ATen/cuda/device/Scan.cuh>\nCRESSET_SCAN(") +
                           kOpNames[op] + ", " + type + ")\n";
  return at::cuda::load_generated(device, image.c_str(), text, {}, name.c_str());
}

CUfunction find_function(ScanOp op, ScalarType dtype, int device, Form form) {
  struct Slots {
    std::atomic<CUfunction> loaded[kOps][c10::NumScalarTypes][kForms] = {};
  };
  static std::atomic<Slots*> devices[c10::cuda::kMaxDevices] = {};
  Slots* slots = devices[device].load(std::memory_order_acquire);
  if (slots == nullptr) {
    Slots* made = new Slots; // kept for the life of the process
    slots = devices[device].compare_exchange_strong(slots, made) ? made : slots;
  }
  std::atomic<CUfunction>& slot = slots->loaded[op][static_cast<int>(dtype)][form];
  CUfunction function = slot.load(std::memory_order_acquire);
  if (function == nullptr) {
    function = load_kernel(op, dtype, device, form);
    slot.store(function, std::memory_order_release);
  }
  return function;
}

void launch(ScanOp op, ScalarType dtype, Form form, int64_t blocks, Args& args, int device) {
  TORCH_CHECK(blocks < (int64_t(1) << 31), "the tensor is too large to be scanned on cuda");
  void* pointers[] = {&args};
  at::cuda::launch_function(find_function(op, dtype, device, form), static_cast<unsigned>(blocks),
                            kThreads, 0, c10::cuda::getCurrentCUDAStream(), pointers);
}

void scan_rows(ScanOp op, ScalarType dtype, Args& args, int device) {
  args.pieces = static_cast<int32_t>(std::min<int64_t>((args.n + kPiece - 1) / kPiece, 8192));
  args.chunk = (args.n + args.pieces - 1) / args.pieces;
  args.chunk = (args.chunk + 1023) / 1024 * 1024;
  args.pieces = static_cast<int32_t>((args.n + args.chunk - 1) / args.chunk);
  Tensor totals;
  if (args.pieces > 1) {
    totals = detail::empty({args.lines * args.pieces * 16}, kByte,
                           Device(kCUDA, static_cast<c10::DeviceIndex>(device)));
    args.totals = totals.data_ptr();
    launch(op, dtype, kTotal, args.lines * args.pieces, args, device);
    launch(op, dtype, kCarry, args.lines, args, device);
  }
  launch(op, dtype, kRow, args.lines * args.pieces, args, device);
}

// `out` (and `where`) are contiguous; `self` has out's dtype.
void scan(ScanOp op, const Tensor& self, int64_t dim, const Tensor& out, const Tensor& where) {
  if (out.numel() == 0) return;
  const c10::cuda::CUDAGuard guard(out.device());
  const int device = out.device().index();
  const int64_t d = out.dim() == 0 ? 0 : wrap_dim(dim, out.dim());
  Args args = {};
  args.n = out.dim() == 0 ? 1 : out.sizes()[d];
  args.inner = 1;
  for (int64_t i = d + 1; i < out.dim(); ++i) args.inner *= out.sizes()[i];
  args.lines = out.numel() / args.n;
  if (args.inner > 1 && args.lines < 8192 && args.n >= 1024) {
    const Tensor turned = out.transpose(d, -1);
    const Tensor rows = detail::empty(turned.sizes(), out.scalar_type(), out.device());
    const Tensor positions =
        where.defined() ? detail::empty(turned.sizes(), kLong, out.device()) : Tensor();
    scan(op, self.transpose(d, -1), -1, rows, positions);
    turned.copy_(rows);
    if (where.defined()) where.transpose(d, -1).copy_(positions);
    return;
  }
  const Tensor in = self.contiguous();
  args.in = in.data_ptr();
  args.out = out.data_ptr();
  args.where = where.defined() ? static_cast<int64_t*>(where.data_ptr()) : nullptr;
  const ScalarType dtype = out.scalar_type();
  if (args.inner == 1)
    scan_rows(op, dtype, args, device);
  else
    launch(op, dtype, kColumn, (args.lines + kThreads - 1) / kThreads, args, device);
}

} // namespace

void cumsum_cuda(const Tensor& self, int64_t dim, std::optional<ScalarType>, const Tensor& out) {
  scan(kSum, self.to(out.scalar_type()), dim, out, Tensor());
}
void cumprod_cuda(const Tensor& self, int64_t dim, std::optional<ScalarType>, const Tensor& out) {
  scan(kProd, self.to(out.scalar_type()), dim, out, Tensor());
}
void logcumsumexp_cuda(const Tensor& self, int64_t dim, const Tensor& out) {
  scan(kLogSumExp, self.to(out.scalar_type()), dim, out, Tensor());
}
void cummax_cuda(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  scan(kMax, self, dim, values, indices);
}
void cummin_cuda(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
  scan(kMin, self, dim, values, indices);
}

} // namespace at::native
