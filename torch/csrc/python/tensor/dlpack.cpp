// DLPack: tensors exchanged with other libraries as capsules, in both directions and in both forms
// of the standard (the original DLManagedTensor and the versioned one with flags). The structures
// below restate the published C ABI.
#include <torch/csrc/python/tensor/interop.h>

#include <memory>

#include <torch/csrc/python/args/keyword_args.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>

#include <ATen/core/EmptyTensor.h>
#include <c10/core/MemoryExport.h>
#include <c10/util/NestedRelease.h>

namespace torch::python {
namespace {

using at::Tensor;
using c10::ScalarType;

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor dl_tensor;
};

constexpr uint64_t kCopied = 2;
constexpr uint32_t kMajor = 1;
enum DeviceCode : int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 };
enum TypeCode : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e4m3fnuz = 11,
  kDLFloat8_e5m2 = 12,
  kDLFloat8_e5m2fnuz = 13
};

struct TypeEntry {
  ScalarType type;
  uint8_t code;
  uint8_t bits;
};
constexpr TypeEntry kTypes[] = {
    {at::kFloat, kDLFloat, 32},
    {at::kDouble, kDLFloat, 64},
    {at::kHalf, kDLFloat, 16},
    {at::kBFloat16, kDLBfloat, 16},
    {at::kLong, kDLInt, 64},
    {at::kInt, kDLInt, 32},
    {at::kShort, kDLInt, 16},
    {at::kChar, kDLInt, 8},
    {at::kByte, kDLUInt, 8},
    {at::kUInt16, kDLUInt, 16},
    {at::kUInt32, kDLUInt, 32},
    {at::kUInt64, kDLUInt, 64},
    {at::kBool, kDLBool, 8},
    {at::kComplexFloat, kDLComplex, 64},
    {at::kComplexDouble, kDLComplex, 128},
    {at::kComplexHalf, kDLComplex, 32},
    {ScalarType::Float8_e4m3fn, kDLFloat8_e4m3fn, 8},
    {ScalarType::Float8_e4m3fnuz, kDLFloat8_e4m3fnuz, 8},
    {ScalarType::Float8_e5m2, kDLFloat8_e5m2, 8},
    {ScalarType::Float8_e5m2fnuz, kDLFloat8_e5m2fnuz, 8},
};

// ---- export ------------------------------------------------------------------------------------

DLDataType type_code(ScalarType type) {
  for (const TypeEntry& entry : kTypes) {
    if (entry.type == type) return {entry.code, entry.bits, 1};
  }
  throw c10::BufferError(c10::str("torch.", c10::info(type).name, " has no DLPack type"));
}

DLDevice device_code(c10::Device device) {
  if (device.is_cpu()) return {kDLCPU, 0};
  if (device.is_cuda()) return {kDLCUDA, device.has_index() ? device.index() : 0};
  throw c10::BufferError(c10::str("tensors on ", device, " cannot be exported through DLPack"));
}

// Keeps the tensor and its geometry while the consumer holds the capsule's contents.
template <class Managed> struct Exported {
  Managed managed{};
  Tensor tensor;
  c10::MemoryExport memory;
  c10::DimVector sizes, strides;
};

template <class Managed> void delete_exported(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->manager_ctx);
}

void check_exportable(const Tensor& tensor) {
  if (tensor.requires_grad()) {
    throw c10::BufferError(
        "Can't export tensors that require gradient, use tensor.detach() before calling this");
  }
  if (tensor.is_conj()) {
    throw c10::BufferError("Can't export tensors with the conjugate bit set");
  }
  if (tensor.is_neg()) {
    throw c10::BufferError("Can't export tensors with the negative bit set, use "
                           "tensor.resolve_neg() before calling this");
  }
  if (tensor.layout() != at::kStrided) {
    throw c10::BufferError("Can't export tensors with layout other than torch.strided");
  }
}

template <class Managed> Managed* export_tensor(const Tensor& tensor) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->tensor = tensor;
  exported->memory = c10::MemoryExport(tensor.storage());
  exported->sizes = tensor.sizes();
  exported->strides = tensor.strides();
  // Consumers that compare strides expect 1 where a length of 1 or less makes the stride
  // meaningless.
  for (size_t d = 0; d < exported->sizes.size(); ++d) {
    if (exported->sizes[d] < 2) exported->strides[d] = 1;
  }
  DLTensor& out = exported->managed.dl_tensor;
  out.data = tensor.data_ptr();
  out.device = device_code(tensor.device());
  out.ndim = static_cast<int32_t>(tensor.dim());
  out.dtype = type_code(tensor.scalar_type());
  out.shape = exported->sizes.data();
  out.strides = exported->strides.data();
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = delete_exported<Managed>;
  return &exported.release()->managed;
}

template <class Managed> void delete_capsule(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  constexpr const char* kName =
      std::is_same_v<Managed, DLManagedTensor> ? "dltensor" : "dltensor_versioned";
  // A consumer renames the capsule when it takes the contents over.
  if (!name || std::string_view(name) != kName) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName));
  if (managed && managed->deleter) managed->deleter(managed);
}

PyObject* to_capsule(const Tensor& tensor, bool versioned, bool copied) {
  check_exportable(tensor);
  if (!versioned) {
    auto* managed = export_tensor<DLManagedTensor>(tensor);
    PyObject* capsule = PyCapsule_New(managed, "dltensor", delete_capsule<DLManagedTensor>);
    if (!capsule) managed->deleter(managed);
    return capsule;
  }
  auto* managed = export_tensor<DLManagedTensorVersioned>(tensor);
  managed->version = {kMajor, 0};
  managed->flags = copied ? kCopied : 0;
  PyObject* capsule =
      PyCapsule_New(managed, "dltensor_versioned", delete_capsule<DLManagedTensorVersioned>);
  if (!capsule) managed->deleter(managed);
  return capsule;
}

// ---- import ------------------------------------------------------------------------------------

ScalarType scalar_type_of_code(const DLDataType& dtype) {
  TORCH_CHECK(dtype.lanes == 1, "DLPack: vectors of ", int(dtype.lanes),
              " lanes are not supported");
  for (const TypeEntry& entry : kTypes) {
    if (entry.code == dtype.code && entry.bits == dtype.bits) return entry.type;
  }
  throw c10::BufferError(
      c10::str("Unsupported DLPack type: code ", int(dtype.code), ", ", int(dtype.bits), " bits"));
}

c10::Device device_of_code(const DLDevice& device) {
  switch (device.device_type) {
  case kDLCPU:
  case kDLCUDAHost:
    return c10::Device(at::kCPU);
  case kDLCUDA:
    TORCH_CHECK(device.device_id >= 0 && device.device_id <= INT8_MAX, "DLPack: no device number ",
                int(device.device_id));
    return c10::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device.device_id));
  default:
    throw c10::BufferError(c10::str("Unsupported DLPack device type ", device.device_type));
  }
}

template <class Managed> void release_managed(void* context) {
  auto* managed = static_cast<Managed*>(context);
  if (!managed->deleter || !python_exists()) return;
  // The producer may be Python code, and hold memory that came by DLPack itself.
  c10::release_nested(
      [](void* object) {
        WithGil gil;
        static_cast<Managed*>(object)->deleter(static_cast<Managed*>(object));
      },
      managed);
}

// Takes the contents over at once: they are released exactly once whether the import succeeds or
// not.
template <class Managed> Tensor import_managed(Managed* managed) {
  c10::DataPtr owner(nullptr, managed, release_managed<Managed>, c10::Device(at::kCPU));
  const DLTensor& in = managed->dl_tensor;
  const ScalarType type = scalar_type_of_code(in.dtype);
  const c10::Device device = device_of_code(in.device);
  TORCH_CHECK(in.ndim >= 0 && in.ndim <= 64, "DLPack: a tensor of ", int(in.ndim), " dimensions");
  TORCH_CHECK(in.ndim == 0 || in.shape != nullptr, "DLPack: a tensor of ", int(in.ndim),
              " dimensions without a shape");
  const c10::DimVector sizes(in.shape, in.shape + in.ndim);
  for (const int64_t size : sizes) TORCH_CHECK(size >= 0, "DLPack: negative size ", size);
  c10::DimVector strides = in.strides ? c10::DimVector(in.strides, in.strides + in.ndim)
                                      : c10::contiguous_strides(sizes);
  for (int d = 0; d < in.ndim; ++d) {
    if (sizes[d] < 2) strides[d] = std::max<int64_t>(strides[d], 0);
    TORCH_CHECK_VALUE(strides[d] >= 0, "DLPack: tensors with negative strides are not supported");
  }
  const int64_t bytes = c10::checked_storage_bytes(sizes, strides, c10::elementSize(type), 0);
  void* data = in.data ? static_cast<char*>(in.data) + in.byte_offset : nullptr;
  TORCH_CHECK(data || bytes == 0, "DLPack: no memory behind a tensor of ", bytes, " bytes");
  c10::DataPtr pointer(data, owner.release_context(), release_managed<Managed>, device);
  auto storage = c10::make_intrusive<c10::StorageImpl>(static_cast<size_t>(bytes),
                                                       std::move(pointer), nullptr, false);
  return at::detail::checked_tensor(storage, type, sizes, strides, 0);
}

template <class Managed>
Tensor take_capsule(PyObject* capsule, const char* name, const char* used_name) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (!managed) throw python_error();
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    if (managed->version.major > kMajor) {
      throw c10::BufferError(
          c10::str("DLPack version ", managed->version.major, " is newer than ", kMajor));
    }
  }
  check_status(PyCapsule_SetName(capsule, used_name));
  check_status(PyCapsule_SetDestructor(capsule, nullptr));
  return import_managed(managed);
}

PyObject* py_to_dlpack(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    KeywordArgs a("_to_dlpack", {"tensor", "versioned", "copied"}, 1, 1, args, nargs, kwnames);
    if (!is_tensor(a[0])) a.wrong_type(0, "Tensor");
    return to_capsule(tensor_of(a[0]), a.boolean(1, false), a.boolean(2, false));
  });
}

PyObject* py_from_dlpack(PyObject*, PyObject* capsule) {
  return guarded([&] { return wrap(tensor_from_dlpack_capsule(capsule)); });
}

PyMethodDef functions[] = {{"_to_dlpack", as_method(py_to_dlpack), METH_FASTCALL | METH_KEYWORDS,
                            "A DLPack capsule that shares the memory of a tensor."},
                           {"_from_dlpack", py_from_dlpack, METH_O,
                            "A tensor that shares the memory of a DLPack capsule."},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

Tensor tensor_from_dlpack_capsule(PyObject* capsule) {
  if (!PyCapsule_CheckExact(capsule)) {
    raise_type_error(c10::str("from_dlpack() expects a DLPack capsule, got ", type_name(capsule)));
  }
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    return take_capsule<DLManagedTensorVersioned>(capsule, "dltensor_versioned",
                                                  "used_dltensor_versioned");
  }
  TORCH_CHECK(
      PyCapsule_IsValid(capsule, "dltensor"),
      "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
      "once, so you might have already constructed a tensor from it once.");
  return take_capsule<DLManagedTensor>(capsule, "dltensor", "used_dltensor");
}

bool init_dlpack(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

} // namespace torch::python
