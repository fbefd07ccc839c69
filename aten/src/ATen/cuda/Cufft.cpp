// See Cufft.h.
#include <ATen/cuda/Cufft.h>

#include <unordered_map>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/ByteKey.h>
#include <ATen/cuda/VendorLibrary.h>

namespace at::cuda {
namespace {

using c10::cuda::CUstream;

using Status = int;
constexpr Status kSuccess = 0;
constexpr int kForward = -1, kInverse = 1;
enum TransformType : int {
  kC2C = 0x29,
  kR2C = 0x2a,
  kC2R = 0x2c,
  kZ2Z = 0x69,
  kD2Z = 0x6a,
  kZ2D = 0x6c,
};

struct Library {
  Status (*cufftCreate)(int*);
  Status (*cufftDestroy)(int);
  Status (*cufftSetAutoAllocation)(int, int);
  Status (*cufftMakePlanMany64)(int, int rank, long long* n, long long* inembed, long long istride,
                                long long idist, long long* onembed, long long ostride,
                                long long odist, int type, long long batch, size_t* work);
  Status (*cufftSetWorkArea)(int, void*);
  Status (*cufftSetStream)(int, CUstream);
  Status (*cufftExecC2C)(int, void*, void*, int);
  Status (*cufftExecZ2Z)(int, void*, void*, int);
  Status (*cufftExecR2C)(int, void*, void*);
  Status (*cufftExecD2Z)(int, void*, void*);
  Status (*cufftExecC2R)(int, void*, void*);
  Status (*cufftExecZ2D)(int, void*, void*);
};

const Library& library() {
#define CRESSET_FIND(name) CRESSET_VENDOR_FUNCTION(Library, name)
  static const Library* const loaded = vendor_table<Library>(
      {"libcufft.so.12", "libcufft.so.11", "libcufft.so"},
      {CRESSET_FIND(cufftCreate), CRESSET_FIND(cufftDestroy), CRESSET_FIND(cufftSetAutoAllocation),
       CRESSET_FIND(cufftMakePlanMany64), CRESSET_FIND(cufftSetWorkArea),
       CRESSET_FIND(cufftSetStream), CRESSET_FIND(cufftExecC2C), CRESSET_FIND(cufftExecZ2Z),
       CRESSET_FIND(cufftExecR2C), CRESSET_FIND(cufftExecD2Z), CRESSET_FIND(cufftExecC2R),
       CRESSET_FIND(cufftExecZ2D)});
#undef CRESSET_FIND
  TORCH_CHECK_NOT_IMPLEMENTED(loaded != nullptr,
                              "Fourier transforms on CUDA need libcufft.so.12 or .11, which could "
                              "not be loaded");
  return *loaded;
}

void check(Status status, const char* call, const FourierTransform& t) {
  TORCH_CHECK(status == kSuccess, "cuFFT error: status ", status, " when calling `", call, "` for ",
              t.batch, " transforms of size ", IntArrayRef(t.size, static_cast<size_t>(t.rank)));
}

// ---- plans --------------------------------------------------------------------------------------

struct Plan {
  int handle = -1;
  size_t work = 0;
};
int type_of(const FourierTransform& t) {
  switch (t.kind) {
  case FourierKind::ComplexToComplex:
    return t.wide ? kZ2Z : kC2C;
  case FourierKind::RealToComplex:
    return t.wide ? kD2Z : kR2C;
  default:
    return t.wide ? kZ2D : kC2R;
  }
}

Plan make_plan(const FourierTransform& t) {
  const Library& l = library();
  Plan plan;
  check(l.cufftCreate(&plan.handle), "cufftCreate", t);
  long long n[3], rows[3], points = 1, room = 1;
  for (int i = 0; i < t.rank; ++i) {
    n[i] = t.size[i];
    rows[i] = i + 1 < t.rank ? t.size[i] : t.row;
    points *= n[i];
    room *= rows[i];
  }
  Status status = l.cufftSetAutoAllocation(plan.handle, 0);
  // Where no layouts are given, data are dense.
  const bool dense = t.row == 0;
  if (status == kSuccess)
    status =
        l.cufftMakePlanMany64(plan.handle, t.rank, n, dense ? nullptr : n, 1, points,
                              dense ? nullptr : rows, 1, room, type_of(t), t.batch, &plan.work);
  if (status != kSuccess) l.cufftDestroy(plan.handle);
  check(status, "cufftMakePlanMany64", t);
  return plan;
}

const Plan& plan_of(const FourierTransform& t) {
  constexpr size_t kMostPlans = 1024;
  // Plans live as long as the process: a destructor at a thread's end might run after the
  // library's own.
  thread_local auto* plans = new std::unordered_map<FourierTransform, Plan, ByteHash, SameBytes>;
  const auto found = plans->find(t);
  if (found != plans->end()) return found->second;
  if (plans->size() >= kMostPlans) {
    for (const auto& [key, plan] : *plans) library().cufftDestroy(plan.handle);
    plans->clear();
  }
  return plans->emplace(t, make_plan(t)).first->second;
}

} // namespace

void run_fourier(const FourierTransform& t, void* in, void* out, CUstream stream) {
  const Library& l = library();
  const Plan& plan = plan_of(t);
  const Device device(kCUDA, static_cast<c10::DeviceIndex>(t.device));
  // Freed memory is used again in the stream's order, so the tensor may go when the call returns.
  const Tensor scratch = plan.work > 0
                             ? at::detail::empty({static_cast<int64_t>(plan.work)}, kByte, device)
                             : Tensor();
  check(l.cufftSetStream(plan.handle, stream), "cufftSetStream", t);
  if (scratch.defined())
    check(l.cufftSetWorkArea(plan.handle, scratch.mutable_data_ptr()), "cufftSetWorkArea", t);
  const int direction = t.inverse ? kInverse : kForward;
  switch (t.kind) {
  case FourierKind::ComplexToComplex:
    check((t.wide ? l.cufftExecZ2Z : l.cufftExecC2C)(plan.handle, in, out, direction),
          "cufftExecC2C", t);
    break;
  case FourierKind::RealToComplex:
    check((t.wide ? l.cufftExecD2Z : l.cufftExecR2C)(plan.handle, in, out), "cufftExecR2C", t);
    break;
  default:
    check((t.wide ? l.cufftExecZ2D : l.cufftExecC2R)(plan.handle, in, out), "cufftExecC2R", t);
  }
}

} // namespace at::cuda
