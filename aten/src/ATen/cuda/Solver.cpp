// See Solver.h.
#include <ATen/cuda/Solver.h>

#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/VendorLibrary.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conj.h>
#include <c10/cuda/CUDADevice.h>
#include <c10/cuda/CUDAStream.h>

namespace at::cuda::solver {
namespace {

using c10::cuda::CUstream;

// ---- the libraries ------------------------------------------------------------------------------
using Status = int; // 0: success
using Handle = void*;
enum Operation : int { kPlain = 0, kTransposed = 1, kAdjoint = 2 };
enum Fill : int { kLower = 0, kUpper = 1 };
enum Side : int { kLeft = 0, kRight = 1 };
enum Vectors : int { kWithout = 0, kWith = 1 };

// The four functions of one name for float, double and their complex types. Elements are passed by
// address only, so one type serves all.
template <class Function> using ByType = Function[4];

struct Cusolver {
  Status (*cusolverDnCreate)(Handle*);
  Status (*cusolverDnSetStream)(Handle, CUstream);
  Status (*cusolverDnCreateParams)(void**);
  Status (*cusolverDnCreateGesvdjInfo)(void**);
  Status (*cusolverDnXsyevd_bufferSize)(Handle, void*, int, int, int64_t, int, const void*, int64_t,
                                        int, const void*, int, size_t*, size_t*);
  Status (*cusolverDnXsyevd)(Handle, void*, int, int, int64_t, int, void*, int64_t, int, void*, int,
                             void*, size_t, void*, size_t, int*);
  Status (*cusolverDnXsyevBatched_bufferSize)(Handle, void*, int, int, int64_t, int, const void*,
                                              int64_t, int, const void*, int, size_t*, size_t*,
                                              int64_t);
  Status (*cusolverDnXsyevBatched)(Handle, void*, int, int, int64_t, int, void*, int64_t, int,
                                   void*, int, void*, size_t, void*, size_t, int*, int64_t);
  Status (*cusolverDnXgeev_bufferSize)(Handle, void*, int, int, int64_t, int, const void*, int64_t,
                                       int, const void*, int, const void*, int64_t, int,
                                       const void*, int64_t, int, size_t*, size_t*);
  Status (*cusolverDnXgeev)(Handle, void*, int, int, int64_t, int, void*, int64_t, int, void*, int,
                            void*, int64_t, int, void*, int64_t, int, void*, size_t, void*, size_t,
                            int*);
  Status (*cusolverDnXsytrs_bufferSize)(Handle, int, int64_t, int64_t, int, const void*, int64_t,
                                        const int64_t*, int, void*, int64_t, size_t*, size_t*);
  Status (*cusolverDnXsytrs)(Handle, int, int64_t, int64_t, int, const void*, int64_t,
                             const int64_t*, int, void*, int64_t, void*, size_t, void*, size_t,
                             int*);
  ByType<Status (*)(Handle, int, int, void*, int, int*)> getrf_bufferSize;
  ByType<Status (*)(Handle, int, int, void*, int, void*, int*, int*)> getrf;
  ByType<Status (*)(Handle, int, int, int, const void*, int, const int*, void*, int, int*)> getrs;
  ByType<Status (*)(Handle, int, int, void*, int, int*)> potrf_bufferSize;
  ByType<Status (*)(Handle, int, int, void*, int, void*, int, int*)> potrf;
  ByType<Status (*)(Handle, int, int, void**, int, int*, int)> potrfBatched;
  ByType<Status (*)(Handle, int, int, void*, int, int*)> geqrf_bufferSize;
  ByType<Status (*)(Handle, int, int, void*, int, void*, void*, int, int*)> geqrf;
  ByType<Status (*)(Handle, int, int, int, const void*, int, const void*, int*)> orgqr_bufferSize;
  ByType<Status (*)(Handle, int, int, int, void*, int, const void*, void*, int, int*)> orgqr;
  ByType<Status (*)(Handle, int, int, int, int, int, const void*, int, const void*, const void*,
                    int, int*)>
      ormqr_bufferSize;
  ByType<Status (*)(Handle, int, int, int, int, int, const void*, int, const void*, void*, int,
                    void*, int, int*)>
      ormqr;
  ByType<Status (*)(Handle, int, int, int, int, const void*, int, const void*, const void*, int,
                    const void*, int, int*, void*)>
      gesvdj_bufferSize;
  ByType<Status (*)(Handle, int, int, int, int, void*, int, void*, void*, int, void*, int, void*,
                    int, int*, void*)>
      gesvdj;
  ByType<Status (*)(Handle, int, int, int, const void*, int, const void*, const void*, int,
                    const void*, int, int*, void*, int)>
      gesvdjBatched_bufferSize;
  ByType<Status (*)(Handle, int, int, int, void*, int, void*, void*, int, void*, int, void*, int,
                    int*, void*, int)>
      gesvdjBatched;
  ByType<Status (*)(Handle, int, int, int*)> gesvd_bufferSize;
  ByType<Status (*)(Handle, signed char, signed char, int, int, void*, int, void*, void*, int,
                    void*, int, void*, int, void*, int*)>
      gesvd;
  ByType<Status (*)(Handle, int, void*, int, int*)> sytrf_bufferSize;
  ByType<Status (*)(Handle, int, int, void*, int, int*, void*, int, int*)> sytrf;
};

struct Cublas {
  Status (*cublasCreate_v2)(Handle*);
  Status (*cublasSetStream_v2)(Handle, CUstream);
  ByType<Status (*)(Handle, int, int, int, int, int, int, const void*, const void*, int, void*,
                    int)>
      trsm;
  ByType<Status (*)(Handle, int, int, int, int, int, int, const void*, const void* const*, int,
                    void* const*, int, int)>
      trsmBatched;
  ByType<Status (*)(Handle, int, void* const*, int, int*, int*, int)> getrfBatched;
  ByType<Status (*)(Handle, int, int, int, const void* const*, int, const int*, void* const*, int,
                    int*, int)>
      getrsBatched;
};

// Appends the four functions `before`S`name`, ...; complex ones may have a name of their own.
class Names {
 public:
  void one(const char* name, size_t place) { functions_.push_back({keep(name), place}); }
  void four(const char* before, const char* real, const char* complex, const char* after,
            size_t place) {
    const char letters[] = "SDCZ";
    for (int i = 0; i < 4; ++i)
      functions_.push_back({keep(c10::str(before, letters[i], i < 2 ? real : complex, after)),
                            place + static_cast<size_t>(i) * sizeof(void*)});
  }
  const std::vector<VendorFunction>& functions() const { return functions_; }

 private:
  const char* keep(std::string name) {
    return names_.emplace_back(std::make_unique<std::string>(std::move(name)))->c_str();
  }
  std::vector<std::unique_ptr<std::string>> names_;
  std::vector<VendorFunction> functions_;
};

const Cusolver* try_cusolver() {
  static const Cusolver* const loaded = [] {
    Names names;
#define CRESSET_ONE(name) names.one(#name, offsetof(Cusolver, name));
#define CRESSET_FOUR(name) names.four("cusolverDn", #name, #name, "", offsetof(Cusolver, name));
#define CRESSET_PAIR(real, complex)                                                                \
  names.four("cusolverDn", #real, #complex, "", offsetof(Cusolver, real));                         \
  names.four("cusolverDn", #real, #complex, "_bufferSize", offsetof(Cusolver, real##_bufferSize));
    CRESSET_ONE(cusolverDnCreate)
    CRESSET_ONE(cusolverDnSetStream)
    CRESSET_ONE(cusolverDnCreateParams)
    CRESSET_ONE(cusolverDnCreateGesvdjInfo)
    CRESSET_ONE(cusolverDnXsyevd_bufferSize)
    CRESSET_ONE(cusolverDnXsyevd)
    CRESSET_ONE(cusolverDnXsyevBatched_bufferSize)
    CRESSET_ONE(cusolverDnXsyevBatched)
    CRESSET_ONE(cusolverDnXgeev_bufferSize)
    CRESSET_ONE(cusolverDnXgeev)
    CRESSET_ONE(cusolverDnXsytrs_bufferSize)
    CRESSET_ONE(cusolverDnXsytrs)
    CRESSET_PAIR(getrf, getrf)
    CRESSET_FOUR(getrs)
    CRESSET_PAIR(potrf, potrf)
    CRESSET_FOUR(potrfBatched)
    CRESSET_PAIR(geqrf, geqrf)
    CRESSET_PAIR(orgqr, ungqr)
    CRESSET_PAIR(ormqr, unmqr)
    CRESSET_PAIR(gesvdj, gesvdj)
    CRESSET_PAIR(gesvdjBatched, gesvdjBatched)
    CRESSET_PAIR(gesvd, gesvd)
    CRESSET_PAIR(sytrf, sytrf)
#undef CRESSET_ONE
#undef CRESSET_FOUR
#undef CRESSET_PAIR
    return vendor_table<Cusolver>({"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"},
                                  names.functions());
  }();
  return loaded;
}

const Cublas* try_cublas() {
  static const Cublas* const loaded = [] {
    Names names;
    names.one("cublasCreate_v2", offsetof(Cublas, cublasCreate_v2));
    names.one("cublasSetStream_v2", offsetof(Cublas, cublasSetStream_v2));
    names.four("cublas", "trsm_v2", "trsm_v2", "", offsetof(Cublas, trsm));
#define CRESSET_FOUR(name) names.four("cublas", #name, #name, "", offsetof(Cublas, name));
    CRESSET_FOUR(trsmBatched)
    CRESSET_FOUR(getrfBatched)
    CRESSET_FOUR(getrsBatched)
#undef CRESSET_FOUR
    return vendor_table<Cublas>({"libcublas.so.13", "libcublas.so.12", "libcublas.so"},
                                names.functions());
  }();
  return loaded;
}

void check(Status status, const char* call, const Tensor& a) {
  TORCH_CHECK(status == 0, "cuSOLVER error: status ", status, " when calling `", call,
              "` for matrices of shape ", a.sizes(), " (dtype ", a.scalar_type(), ")");
}

// ---- batches ------------------------------------------------------------------------------------
int type_slot(ScalarType dtype) {
  switch (dtype) {
  case kFloat:
    return 0;
  case kDouble:
    return 1;
  case kComplexFloat:
    return 2;
  case kComplexDouble:
    return 3;
  default:
    TORCH_CHECK_NOT_IMPLEMENTED(false, "linear algebra on cuda is not implemented for ", dtype);
  }
}
// As cudaDataType numbers them.
int data_type(ScalarType dtype) {
  constexpr int kTypes[4] = {0, 1, 4, 5};
  return kTypes[type_slot(dtype)];
}
int fill_of(bool upper) { return upper ? kUpper : kLower; }
int operation_of(char trans) {
  return trans == 'N' ? kPlain : trans == 'T' ? kTransposed : kAdjoint;
}

// One call's operands and handles. Handles serve one thread at a time.
struct Call {
  explicit Call(const Tensor& a)
      : cusolver(*try_cusolver()), cublas(*try_cublas()), slot(type_slot(a.scalar_type())),
        type(data_type(a.scalar_type())), a(a) {
    TORCH_CHECK(a.size(-2) <= INT32_MAX && a.size(-1) <= INT32_MAX,
                "matrices of more than 2^31 - 1 rows or columns are not supported");
    rows = static_cast<int>(a.size(-2));
    cols = static_cast<int>(a.size(-1));
    lead = rows > 1 ? rows : 1;
    count = 1;
    for (int64_t d = 0; d < a.dim() - 2; ++d) count *= a.size(d);
    const int device = a.device().index();
    const CUstream stream = c10::cuda::getCurrentCUDAStream(a.device().index()).stream();
    struct Handles {
      Handle solver, blas;
      void *params, *jacobi;
    };
    // On the heap: room for thread-local variables is scarce, see test_package_names.py.
    thread_local auto* handles = new Handles[c10::cuda::kMaxDevices]();
    auto& own = handles[device];
    if (own.solver == nullptr) {
      check(cusolver.cusolverDnCreate(&own.solver), "cusolverDnCreate", a);
      check(cusolver.cusolverDnCreateParams(&own.params), "cusolverDnCreateParams", a);
      check(cusolver.cusolverDnCreateGesvdjInfo(&own.jacobi), "cusolverDnCreateGesvdjInfo", a);
      check(cublas.cublasCreate_v2(&own.blas), "cublasCreate", a);
    }
    solver = own.solver;
    blas = own.blas;
    params = own.params;
    jacobi = own.jacobi;
    check(cusolver.cusolverDnSetStream(solver, stream), "cusolverDnSetStream", a);
    check(cublas.cublasSetStream_v2(blas, stream), "cublasSetStream", a);
  }

  void require(Status status, const char* call) const { check(status, call, a); }
  // Device memory for `count` elements of the matrices' type, or for bytes.
  Tensor elements(int64_t number) const {
    return detail::empty({number > 0 ? number : 1}, a.scalar_type(), a.device());
  }
  Tensor bytes(size_t number) const {
    return detail::empty({static_cast<int64_t>(number > 0 ? number : 1)}, kByte, a.device());
  }
  // The addresses of a batch's matrices, on the device.
  static Tensor addresses(const Tensor& t, int64_t count) {
    const int64_t step = t.size(-2) * t.size(-1) * static_cast<int64_t>(t.itemsize());
    const int64_t first = reinterpret_cast<int64_t>(t.const_data_ptr());
    return at::arange(first, first + count * step, step, TensorOptions(kLong).device(t.device()));
  }

  const Cusolver& cusolver;
  const Cublas& cublas;
  int slot, type;
  const Tensor& a;
  int rows, cols, lead;
  int64_t count;
  Handle solver, blas;
  void *params, *jacobi;
};

// The i-th part of a batch, `size` elements each.
void* part(const Tensor& t, int64_t i, int64_t size) {
  return static_cast<char*>(t.mutable_data_ptr()) + i * size * static_cast<int64_t>(t.itemsize());
}
int* status_of(const Tensor& info, int64_t i) {
  return static_cast<int*>(info.mutable_data_ptr()) + i;
}
void* const* pointers_in(const Tensor& addresses) {
  return static_cast<void* const*>(addresses.mutable_data_ptr());
}
bool is_nothing(const Tensor& t) { return t.numel() == 0; }

// Batches up to this order go to the batched routines, which work on all matrices at a time with a
// few threads each.
constexpr int kBatchedOrder = 512;

} // namespace

void require() {
  TORCH_CHECK_NOT_IMPLEMENTED(try_cusolver() != nullptr && try_cublas() != nullptr,
                              "linear algebra on CUDA needs libcusolver.so.12 or .11 (of CUDA 12.8 "
                              "or later) and libcublas.so, which could not be loaded");
}

// ---- LU -----------------------------------------------------------------------------------------
void lu(const Tensor& a, const Tensor& pivots, const Tensor& info) {
  if (is_nothing(a)) {
    info.zero_();
    return;
  }
  const Call c(a);
  int* const swaps = pivots.defined() ? static_cast<int*>(pivots.mutable_data_ptr()) : nullptr;
  if (c.count > 1 && c.rows == c.cols && c.rows <= kBatchedOrder) {
    const Tensor places = Call::addresses(a, c.count);
    c.require(c.cublas.getrfBatched[c.slot](c.blas, c.rows, pointers_in(places), c.lead, swaps,
                                            status_of(info, 0), static_cast<int>(c.count)),
              "cublas<t>getrfBatched");
    return;
  }
  int room = 0;
  c.require(c.cusolver.getrf_bufferSize[c.slot](c.solver, c.rows, c.cols, a.mutable_data_ptr(),
                                                c.lead, &room),
            "cusolverDn<t>getrf_bufferSize");
  const Tensor work = c.elements(room);
  const int64_t size = int64_t(c.rows) * c.cols, diagonal = c.rows < c.cols ? c.rows : c.cols;
  for (int64_t i = 0; i < c.count; ++i)
    c.require(c.cusolver.getrf[c.slot](c.solver, c.rows, c.cols, part(a, i, size), c.lead,
                                       work.mutable_data_ptr(),
                                       swaps ? swaps + i * diagonal : nullptr, status_of(info, i)),
              "cusolverDn<t>getrf");
}

void lu_solve(char trans, const Tensor& lu, const Tensor& pivots, const Tensor& x) {
  if (is_nothing(x)) return;
  const Call c(lu);
  const int* const swaps = static_cast<const int*>(pivots.const_data_ptr());
  const int sides = static_cast<int>(x.size(-1));
  if (c.count > 1 && c.rows <= kBatchedOrder) {
    const Tensor places = Call::addresses(lu, c.count), targets = Call::addresses(x, c.count);
    int status = 0; // of the arguments; on the host
    c.require(c.cublas.getrsBatched[c.slot](
                  c.blas, operation_of(trans), c.rows, sides, pointers_in(places), c.lead, swaps,
                  pointers_in(targets), c.lead, &status, static_cast<int>(c.count)),
              "cublas<t>getrsBatched");
    return;
  }
  const Tensor info = detail::empty({c.count}, kInt, lu.device());
  const int64_t size = int64_t(c.rows) * c.rows, side = int64_t(c.rows) * sides;
  for (int64_t i = 0; i < c.count; ++i)
    c.require(c.cusolver.getrs[c.slot](c.solver, operation_of(trans), c.rows, sides,
                                       part(lu, i, size), c.lead, swaps + i * c.rows,
                                       part(x, i, side), c.lead, status_of(info, i)),
              "cusolverDn<t>getrs");
}

// ---- Cholesky and triangles ---------------------------------------------------------------------
void cholesky(bool upper, const Tensor& a, const Tensor& info) {
  if (is_nothing(a)) {
    info.zero_();
    return;
  }
  const Call c(a);
  if (c.count > 1 && c.rows <= kBatchedOrder) {
    const Tensor places = Call::addresses(a, c.count);
    c.require(c.cusolver.potrfBatched[c.slot](c.solver, fill_of(upper), c.rows,
                                              const_cast<void**>(pointers_in(places)), c.lead,
                                              status_of(info, 0), static_cast<int>(c.count)),
              "cusolverDn<t>potrfBatched");
    return;
  }
  int room = 0;
  c.require(c.cusolver.potrf_bufferSize[c.slot](c.solver, fill_of(upper), c.rows,
                                                a.mutable_data_ptr(), c.lead, &room),
            "cusolverDn<t>potrf_bufferSize");
  const Tensor work = c.elements(room);
  for (int64_t i = 0; i < c.count; ++i)
    c.require(c.cusolver.potrf[c.slot](c.solver, fill_of(upper), c.rows,
                                       part(a, i, int64_t(c.rows) * c.rows), c.lead,
                                       work.mutable_data_ptr(), room, status_of(info, i)),
              "cusolverDn<t>potrf");
}

void triangular_solve(const Tensor& a, const Tensor& x, bool upper, char trans, bool left,
                      bool unit) {
  if (is_nothing(x)) return;
  const Call c(a);
  const int m = static_cast<int>(x.size(-2)), n = static_cast<int>(x.size(-1));
  const int side = left ? kLeft : kRight;
  const c10::complex<double> wide_one(1, 0);
  const c10::complex<float> one(1, 0);
  const void* const factor = c.slot % 2 == 1 ? static_cast<const void*>(&wide_one) : &one;
  if (c.count > 1) {
    const Tensor places = Call::addresses(a, c.count), targets = Call::addresses(x, c.count);
    c.require(c.cublas.trsmBatched[c.slot](c.blas, side, fill_of(upper), operation_of(trans), unit,
                                           m, n, factor, pointers_in(places), c.lead,
                                           pointers_in(targets), m, static_cast<int>(c.count)),
              "cublas<t>trsmBatched");
    return;
  }
  c.require(c.cublas.trsm[c.slot](c.blas, side, fill_of(upper), operation_of(trans), unit, m, n,
                                  factor, a.const_data_ptr(), c.lead, x.mutable_data_ptr(), m),
            "cublas<t>trsm");
}

// ---- QR -----------------------------------------------------------------------------------------
void qr(const Tensor& a, const Tensor& tau) {
  if (is_nothing(a)) return;
  const Call c(a);
  int room = 0;
  c.require(c.cusolver.geqrf_bufferSize[c.slot](c.solver, c.rows, c.cols, a.mutable_data_ptr(),
                                                c.lead, &room),
            "cusolverDn<t>geqrf_bufferSize");
  const Tensor work = c.elements(room), info = detail::empty({1}, kInt, a.device());
  for (int64_t i = 0; i < c.count; ++i)
    c.require(c.cusolver.geqrf[c.slot](
                  c.solver, c.rows, c.cols, part(a, i, int64_t(c.rows) * c.cols), c.lead,
                  part(tau, i, tau.size(-1)), work.mutable_data_ptr(), room, status_of(info, 0)),
              "cusolverDn<t>geqrf");
}

void form_q(const Tensor& a, const Tensor& tau) {
  if (is_nothing(a)) return;
  const Call c(a);
  const int k = static_cast<int>(tau.size(-1));
  int room = 0;
  c.require(c.cusolver.orgqr_bufferSize[c.slot](c.solver, c.rows, c.cols, k, a.const_data_ptr(),
                                                c.lead, tau.const_data_ptr(), &room),
            "cusolverDn<t>orgqr_bufferSize");
  const Tensor work = c.elements(room), info = detail::empty({1}, kInt, a.device());
  for (int64_t i = 0; i < c.count; ++i)
    c.require(c.cusolver.orgqr[c.slot](
                  c.solver, c.rows, c.cols, k, part(a, i, int64_t(c.rows) * c.cols), c.lead,
                  part(tau, i, k), work.mutable_data_ptr(), room, status_of(info, 0)),
              "cusolverDn<t>orgqr");
}

void apply_q(const Tensor& a, const Tensor& tau, const Tensor& x, bool left, char trans) {
  if (is_nothing(x) || tau.size(-1) == 0) return;
  const Call c(a);
  const int m = static_cast<int>(x.size(-2)), n = static_cast<int>(x.size(-1));
  const int k = static_cast<int>(tau.size(-1)), side = left ? kLeft : kRight;
  int room = 0;
  c.require(c.cusolver.ormqr_bufferSize[c.slot](c.solver, side, operation_of(trans), m, n, k,
                                                a.const_data_ptr(), c.lead, tau.const_data_ptr(),
                                                x.const_data_ptr(), m, &room),
            "cusolverDn<t>ormqr_bufferSize");
  const Tensor work = c.elements(room), info = detail::empty({1}, kInt, a.device());
  for (int64_t i = 0; i < c.count; ++i)
    c.require(c.cusolver.ormqr[c.slot](c.solver, side, operation_of(trans), m, n, k,
                                       part(a, i, int64_t(c.rows) * c.cols), c.lead,
                                       part(tau, i, k), part(x, i, int64_t(m) * n), m,
                                       work.mutable_data_ptr(), room, status_of(info, 0)),
              "cusolverDn<t>ormqr");
}

// ---- spectra ------------------------------------------------------------------------------------
void eigh(const Tensor& a, const Tensor& values, bool upper, bool vectors, const Tensor& info) {
  if (is_nothing(a)) {
    info.zero_();
    return;
  }
  const Call c(a);
  const int job = vectors ? kWith : kWithout, real = data_type(values.scalar_type());
  size_t room = 0, host_room = 0;
  if (c.count > 1 && c.rows <= kBatchedOrder) {
    c.require(c.cusolver.cusolverDnXsyevBatched_bufferSize(
                  c.solver, c.params, job, fill_of(upper), c.rows, c.type, a.const_data_ptr(),
                  c.lead, real, values.const_data_ptr(), c.type, &room, &host_room, c.count),
              "cusolverDnXsyevBatched_bufferSize");
    const Tensor work = c.bytes(room);
    std::vector<char> host(host_room);
    c.require(c.cusolver.cusolverDnXsyevBatched(
                  c.solver, c.params, job, fill_of(upper), c.rows, c.type, a.mutable_data_ptr(),
                  c.lead, real, values.mutable_data_ptr(), c.type, work.mutable_data_ptr(), room,
                  host.data(), host_room, status_of(info, 0), c.count),
              "cusolverDnXsyevBatched");
    return;
  }
  c.require(c.cusolver.cusolverDnXsyevd_bufferSize(
                c.solver, c.params, job, fill_of(upper), c.rows, c.type, a.const_data_ptr(), c.lead,
                real, values.const_data_ptr(), c.type, &room, &host_room),
            "cusolverDnXsyevd_bufferSize");
  const Tensor work = c.bytes(room);
  std::vector<char> host(host_room);
  for (int64_t i = 0; i < c.count; ++i)
    c.require(c.cusolver.cusolverDnXsyevd(c.solver, c.params, job, fill_of(upper), c.rows, c.type,
                                          part(a, i, int64_t(c.rows) * c.rows), c.lead, real,
                                          part(values, i, c.rows), c.type, work.mutable_data_ptr(),
                                          room, host.data(), host_room, status_of(info, i)),
              "cusolverDnXsyevd");
}

void eig(const Tensor& a, const Tensor& values, const Tensor& v, const Tensor& info) {
  if (is_nothing(a)) {
    info.zero_();
    return;
  }
  const Call c(a);
  const int job = v.defined() ? kWith : kWithout;
  const int64_t size = int64_t(c.rows) * c.rows;
  const auto vector = [&](int64_t i) { return v.defined() ? part(v, i, size) : nullptr; };
  size_t room = 0, host_room = 0;
  c.require(c.cusolver.cusolverDnXgeev_bufferSize(
                c.solver, c.params, kWithout, job, c.rows, c.type, a.const_data_ptr(), c.lead,
                c.type, values.const_data_ptr(), c.type, nullptr, c.lead, c.type, vector(0), c.lead,
                c.type, &room, &host_room),
            "cusolverDnXgeev_bufferSize");
  const Tensor work = c.bytes(room);
  std::vector<char> host(host_room);
  for (int64_t i = 0; i < c.count; ++i)
    c.require(c.cusolver.cusolverDnXgeev(c.solver, c.params, kWithout, job, c.rows, c.type,
                                         part(a, i, size), c.lead, c.type, part(values, i, c.rows),
                                         c.type, nullptr, c.lead, c.type, vector(i), c.lead, c.type,
                                         work.mutable_data_ptr(), room, host.data(), host_room,
                                         status_of(info, i)),
              "cusolverDnXgeev");
}

namespace {

// Jacobi rotations of many small matrices at a time; U and V come whole.
constexpr int kSmallSvd = 32;

void small_svd(const Call& c, const Tensor& s, const Tensor& u, const Tensor& v,
               const Tensor& info) {
  const int m = c.rows, n = c.cols, job = u.defined() ? kWith : kWithout;
  const Tensor whole_u = c.elements(c.count * m * m), whole_v = c.elements(c.count * n * n);
  int room = 0;
  c.require(c.cusolver.gesvdjBatched_bufferSize[c.slot](
                c.solver, job, m, n, c.a.const_data_ptr(), m, s.const_data_ptr(),
                whole_u.const_data_ptr(), m, whole_v.const_data_ptr(), n, &room, c.jacobi,
                static_cast<int>(c.count)),
            "cusolverDn<t>gesvdjBatched_bufferSize");
  const Tensor work = c.elements(room);
  c.require(c.cusolver.gesvdjBatched[c.slot](c.solver, job, m, n, c.a.mutable_data_ptr(), m,
                                             s.mutable_data_ptr(), whole_u.mutable_data_ptr(), m,
                                             whole_v.mutable_data_ptr(), n, work.mutable_data_ptr(),
                                             room, status_of(info, 0), c.jacobi,
                                             static_cast<int>(c.count)),
            "cusolverDn<t>gesvdjBatched");
  if (job == kWithout) return;
  const auto columns = [&](const Tensor& whole, int64_t order, const Tensor& like) {
    DimVector sizes(like.sizes()), strides(like.sizes().size());
    strides.back() = order;
    strides[strides.size() - 2] = 1;
    int64_t step = order * order;
    for (size_t d = sizes.size() - 2; d-- > 0; step *= sizes[d]) strides[d] = step;
    return detail::view_of(whole, sizes, strides, 0);
  };
  u.copy_(columns(whole_u, m, u));
  v.copy_(columns(whole_v, n, v));
}

void jacobi_svd(const Call& c, const Tensor& s, const Tensor& u, const Tensor& v,
                const Tensor& info) {
  const int m = c.rows, n = c.cols, job = u.defined() ? kWith : kWithout;
  const int economic = !u.defined() || u.size(-1) == n;
  // Without vectors their places are still asked for.
  const Tensor own_u = u.defined() ? u : c.elements(int64_t(m) * n);
  const Tensor own_v = v.defined() ? v : c.elements(int64_t(n) * n);
  const int64_t step_u = u.defined() ? m * u.size(-1) : 0,
                step_v = v.defined() ? int64_t(n) * n : 0;
  int room = 0;
  c.require(c.cusolver.gesvdj_bufferSize[c.slot](
                c.solver, job, economic, m, n, c.a.const_data_ptr(), m, s.const_data_ptr(),
                own_u.const_data_ptr(), m, own_v.const_data_ptr(), n, &room, c.jacobi),
            "cusolverDn<t>gesvdj_bufferSize");
  const Tensor work = c.elements(room);
  for (int64_t i = 0; i < c.count; ++i)
    c.require(c.cusolver.gesvdj[c.slot](c.solver, job, economic, m, n, part(c.a, i, int64_t(m) * n),
                                        m, part(s, i, n), part(own_u, i, step_u), m,
                                        part(own_v, i, step_v), n, work.mutable_data_ptr(), room,
                                        status_of(info, i), c.jacobi),
              "cusolverDn<t>gesvdj");
}

void careful_svd(const Call& c, const Tensor& s, const Tensor& u, const Tensor& v,
                 const Tensor& info) {
  const int m = c.rows, n = c.cols;
  const signed char job_u = !u.defined() ? 'N' : u.size(-1) == n ? 'S' : 'A';
  const signed char job_v = v.defined() ? 'A' : 'N';
  int room = 0;
  c.require(c.cusolver.gesvd_bufferSize[c.slot](c.solver, m, n, &room), "cusolverDn<t>gesvd");
  const Tensor work = c.elements(room), real_work = c.elements(n);
  const Tensor adjoint = v.defined() ? c.elements(c.count * n * n) : Tensor();
  const int64_t step_u = u.defined() ? m * u.size(-1) : 0, square = int64_t(n) * n;
  for (int64_t i = 0; i < c.count; ++i)
    c.require(c.cusolver.gesvd[c.slot](c.solver, job_u, job_v, m, n, part(c.a, i, int64_t(m) * n),
                                       m, part(s, i, n), u.defined() ? part(u, i, step_u) : nullptr,
                                       m, v.defined() ? part(adjoint, i, square) : nullptr, n,
                                       work.mutable_data_ptr(), room, real_work.mutable_data_ptr(),
                                       status_of(info, i)),
              "cusolverDn<t>gesvd");
  if (!v.defined()) return;
  const Tensor turned =
      adjoint.narrow(0, 0, v.numel()).view(v.sizes()); // V^H by rows: its transpose
  v.copy_(v.is_complex() ? at::conj(turned) : turned);
}

} // namespace

void svd(const Tensor& a, const Tensor& s, const Tensor& u, const Tensor& v, bool careful,
         const Tensor& info) {
  const Call c(a);
  if (careful)
    careful_svd(c, s, u, v, info);
  else if (c.count > 1 && c.rows <= kSmallSvd)
    small_svd(c, s, u, v, info);
  else
    jacobi_svd(c, s, u, v, info);
}

// ---- LDL ----------------------------------------------------------------------------------------
void ldl(const Tensor& a, const Tensor& pivots, const Tensor& info) {
  if (is_nothing(a)) {
    info.zero_();
    return;
  }
  const Call c(a);
  int room = 0;
  c.require(
      c.cusolver.sytrf_bufferSize[c.slot](c.solver, c.rows, a.mutable_data_ptr(), c.lead, &room),
      "cusolverDn<t>sytrf_bufferSize");
  const Tensor work = c.elements(room);
  for (int64_t i = 0; i < c.count; ++i)
    c.require(c.cusolver.sytrf[c.slot](c.solver, kLower, c.rows,
                                       part(a, i, int64_t(c.rows) * c.rows), c.lead,
                                       static_cast<int*>(part(pivots, i, c.rows)),
                                       work.mutable_data_ptr(), room, status_of(info, i)),
              "cusolverDn<t>sytrf");
}

void ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& x) {
  if (is_nothing(x)) return;
  const Call c(ld);
  const Tensor wide = pivots.to(kLong), info = detail::empty({1}, kInt, ld.device());
  const int64_t sides = x.size(-1), size = int64_t(c.rows) * c.rows;
  const auto* const swaps = static_cast<const int64_t*>(wide.const_data_ptr());
  size_t room = 0, host_room = 0;
  c.require(c.cusolver.cusolverDnXsytrs_bufferSize(c.solver, kLower, c.rows, sides, c.type,
                                                   ld.const_data_ptr(), c.lead, swaps, c.type,
                                                   x.mutable_data_ptr(), c.lead, &room, &host_room),
            "cusolverDnXsytrs_bufferSize");
  const Tensor work = c.bytes(room);
  std::vector<char> host(host_room);
  for (int64_t i = 0; i < c.count; ++i)
    c.require(c.cusolver.cusolverDnXsytrs(
                  c.solver, kLower, c.rows, sides, c.type, part(ld, i, size), c.lead,
                  swaps + i * c.rows, c.type, part(x, i, c.rows * sides), c.lead,
                  work.mutable_data_ptr(), room, host.data(), host_room, status_of(info, 0)),
              "cusolverDnXsytrs");
}

} // namespace at::cuda::solver
