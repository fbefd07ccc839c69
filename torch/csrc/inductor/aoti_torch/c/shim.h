// The library as a C interface whose functions, once published, keep their names and signatures:
// what ahead-of-time compiled models and extensions with a stable ABI link against, and all they
// link against. A handle is an address that only the library looks behind.
//
// Functions that can fail return AOTI_TORCH_SUCCESS or AOTI_TORCH_FAILURE and throw nothing; after
// a failure torch_last_error_message() is its text, for the calling thread. Handles that a function
// returns belong to the caller, who gives them to the delete function of their kind; handles that
// it takes are borrowed, except on the stack of aoti_torch_call_dispatcher.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <torch/csrc/inductor/aoti_torch/c/lists.h>

#ifdef __cplusplus
extern "C" {
#endif

struct AtenTensorOpaque;
struct DeviceGuardOpaque;
struct StreamOpaque;
struct TorchLibraryOpaque;
typedef struct AtenTensorOpaque* AtenTensorHandle;
typedef struct DeviceGuardOpaque* DeviceGuardHandle;
typedef struct StreamOpaque* StreamHandle;
typedef struct TorchLibraryOpaque* TorchLibraryHandle;
typedef int32_t AOTITorchError;
#define AOTI_TORCH_SUCCESS 0
#define AOTI_TORCH_FAILURE 1
// An argument or a result of an operator, 8 bytes of which the schema says what they are:
//   Tensor           an AtenTensorHandle, owned
//   int, SymInt      int64_t              float         double          bool     bool
//   ScalarType, Layout, MemoryFormat      int32_t, as the functions below number them
//   Device           its index in the lower half, its kind (int32_t) in the upper
//   str              a StringHandle, owned          T[]  a StableListHandle, owned
//   T?               null, or the address of a StableIValue with the T
typedef uint64_t StableIValue;

#define AOTI_TORCH_EXPORT __attribute__((__visibility__("default")))
#define AOTI_TORCH_CALL AOTI_TORCH_EXPORT AOTITorchError

// Why the last failing call of this thread failed; never null. A weak reference, so that an
// extension also loads where there is no such function: it is null there.
AOTI_TORCH_EXPORT const char* torch_last_error_message() __attribute__((__weak__));
// Major, minor and patch version in the upper three bytes.
AOTI_TORCH_EXPORT uint64_t aoti_torch_abi_version();

// ---- numbers of devices, dtypes, layouts and memory formats: aoti_torch_dtype_float32(), ...
#define CRESSET_SHIM_NUMBER(kind, name, value)                                                     \
  AOTI_TORCH_EXPORT int32_t aoti_torch_##kind##_##name();
#define X(name, value) CRESSET_SHIM_NUMBER(device_type, name, value)
CRESSET_FORALL_SHIM_DEVICES(X)
#undef X
#define X(name, value, type) CRESSET_SHIM_NUMBER(dtype, name, value)
CRESSET_FORALL_SHIM_DTYPES(X)
#undef X
#define X(name, value) CRESSET_SHIM_NUMBER(layout, name, value)
CRESSET_FORALL_SHIM_LAYOUTS(X)
#undef X
#define X(name, value) CRESSET_SHIM_NUMBER(memory_format, name, value)
CRESSET_FORALL_SHIM_MEMORY_FORMATS(X)
#undef X
#undef CRESSET_SHIM_NUMBER
AOTI_TORCH_EXPORT size_t aoti_torch_dtype_element_size(int32_t dtype);

// ---- modes
AOTI_TORCH_EXPORT bool aoti_torch_grad_mode_is_enabled();
AOTI_TORCH_EXPORT void aoti_torch_grad_mode_set_enabled(bool enabled);

// ---- tensors
AOTI_TORCH_CALL aoti_torch_delete_tensor_object(AtenTensorHandle tensor);
// Another handle of the same tensor.
AOTI_TORCH_CALL aoti_torch_new_tensor_handle(AtenTensorHandle tensor, AtenTensorHandle* ret);
// A handle of no tensor, for functions that assign.
AOTI_TORCH_CALL aoti_torch_new_uninitialized_tensor(AtenTensorHandle* ret);
AOTI_TORCH_CALL aoti_torch_is_defined(AtenTensorHandle tensor, bool* ret);
AOTI_TORCH_CALL aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** ret);
AOTI_TORCH_CALL aoti_torch_get_storage_size(AtenTensorHandle tensor, int64_t* ret);
AOTI_TORCH_CALL aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* ret);
AOTI_TORCH_CALL aoti_torch_get_numel(AtenTensorHandle tensor, int64_t* ret);
AOTI_TORCH_CALL aoti_torch_get_storage_numel(AtenTensorHandle tensor, int64_t* ret);
// Owned by the tensor.
AOTI_TORCH_CALL aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** ret);
AOTI_TORCH_CALL aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** ret);
AOTI_TORCH_CALL aoti_torch_get_size(AtenTensorHandle tensor, int64_t d, int64_t* ret);
AOTI_TORCH_CALL aoti_torch_get_stride(AtenTensorHandle tensor, int64_t d, int64_t* ret);
AOTI_TORCH_CALL aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* ret);
AOTI_TORCH_CALL aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t* ret);
AOTI_TORCH_CALL aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t* ret);
AOTI_TORCH_CALL aoti_torch_get_layout(AtenTensorHandle tensor, int32_t* ret);
AOTI_TORCH_CALL aoti_torch_get_storage_offset(AtenTensorHandle tensor, int64_t* ret);
AOTI_TORCH_CALL aoti_torch_is_contiguous(AtenTensorHandle tensor, bool* ret);

// ---- making tensors
AOTI_TORCH_CALL aoti_torch_empty_strided(int64_t ndim, const int64_t* sizes, const int64_t* strides,
                                         int32_t dtype, int32_t device_type, int32_t device_index,
                                         AtenTensorHandle* ret);
// On memory of the caller, which must outlive the tensor.
AOTI_TORCH_CALL aoti_torch_create_tensor_from_blob(void* data, int64_t ndim, const int64_t* sizes,
                                                   const int64_t* strides, int64_t storage_offset,
                                                   int32_t dtype, int32_t device_type,
                                                   int32_t device_index, AtenTensorHandle* ret);
AOTI_TORCH_CALL aoti_torch_create_tensor_from_blob_v2(
    void* data, int64_t ndim, const int64_t* sizes, const int64_t* strides, int64_t storage_offset,
    int32_t dtype, int32_t device_type, int32_t device_index, AtenTensorHandle* ret, int32_t layout,
    const uint8_t* opaque_metadata, int64_t opaque_metadata_size);
// A view with this geometry, `offset_increment` elements behind the tensor's first.
AOTI_TORCH_CALL aoti_torch__reinterpret_tensor(AtenTensorHandle self, int64_t ndim,
                                               const int64_t* sizes, const int64_t* strides,
                                               int64_t offset_increment, AtenTensorHandle* ret);
// A part of `self`'s memory as a tensor, from `offset` bytes on.
AOTI_TORCH_CALL aoti_torch__alloc_from_pool(AtenTensorHandle self, int64_t offset, int32_t dtype,
                                            int64_t ndim, const int64_t* sizes,
                                            const int64_t* strides, AtenTensorHandle* ret);
AOTI_TORCH_CALL aoti_torch_as_strided(AtenTensorHandle self, const int64_t* sizes,
                                      const int64_t* strides, AtenTensorHandle* ret);
AOTI_TORCH_CALL aoti_torch_clone(AtenTensorHandle self, AtenTensorHandle* ret);
AOTI_TORCH_CALL aoti_torch_clone_preserve_strides(AtenTensorHandle self, AtenTensorHandle* ret);

// ---- writing
// `dst` becomes another handle of the tensor of `src`.
AOTI_TORCH_CALL aoti_torch_assign_tensors(AtenTensorHandle src, AtenTensorHandle dst);
AOTI_TORCH_CALL aoti_torch_assign_tensors_out(AtenTensorHandle src, AtenTensorHandle* ret);
AOTI_TORCH_CALL aoti_torch_copy_(AtenTensorHandle self, AtenTensorHandle src, int32_t non_blocking);
AOTI_TORCH_CALL aoti_torch_tensor_copy_(AtenTensorHandle src, AtenTensorHandle dst);
AOTI_TORCH_CALL aoti_torch_zero_(AtenTensorHandle self);
AOTI_TORCH_CALL aoti_torch_aten_fill__Scalar(AtenTensorHandle self, double value);

// ---- one element: aoti_torch_item_float32(tensor, float*), aoti_torch_scalar_to_tensor_...
#define X(name, value, type)                                                                       \
  AOTI_TORCH_CALL aoti_torch_item_##name(AtenTensorHandle tensor, type* ret);                      \
  AOTI_TORCH_CALL aoti_torch_scalar_to_tensor_##name(type number, AtenTensorHandle* ret);
CRESSET_FORALL_SHIM_NUMBERS(X)
#undef X

// ---- checks
AOTI_TORCH_CALL aoti_torch_check_inf_and_nan(const char* name, AtenTensorHandle tensor);
// Failure with `message` unless `condition`.
AOTI_TORCH_EXPORT void aoti_torch_check(bool condition, const char* function, const char* file,
                                        uint32_t line, const char* message);
AOTI_TORCH_EXPORT void aoti_torch_warn(const char* function, const char* file, uint32_t line,
                                       const char* message);
AOTI_TORCH_EXPORT void aoti_torch_print_tensor_handle(AtenTensorHandle tensor, const char* message);

// ---- devices and streams of the accelerator
AOTI_TORCH_CALL aoti_torch_get_current_device_index(int32_t* ret);
AOTI_TORCH_CALL aoti_torch_create_device_guard(int32_t device_index, DeviceGuardHandle* ret);
AOTI_TORCH_CALL aoti_torch_delete_device_guard(DeviceGuardHandle guard);
AOTI_TORCH_CALL aoti_torch_device_guard_set_index(DeviceGuardHandle guard, int32_t device_index);
AOTI_TORCH_CALL aoti_torch_get_current_stream(int32_t device_index, StreamHandle* ret);
AOTI_TORCH_CALL aoti_torch_delete_stream(StreamHandle stream);
AOTI_TORCH_CALL aoti_torch_stream_id(StreamHandle stream, int64_t* ret);

// ---- operators
AOTI_TORCH_CALL aoti_torch_library_init_impl(const char* ns, const char* key, const char* file,
                                             uint32_t line, TorchLibraryHandle* ret);
AOTI_TORCH_CALL aoti_torch_library_init_def(const char* ns, const char* file, uint32_t line,
                                            TorchLibraryHandle* ret);
AOTI_TORCH_CALL aoti_torch_library_init_fragment(const char* ns, const char* file, uint32_t line,
                                                 TorchLibraryHandle* ret);
AOTI_TORCH_CALL aoti_torch_library_def(TorchLibraryHandle self, const char* schema);
// A kernel takes its arguments from the stack, which it owns then, and leaves its results there.
AOTI_TORCH_CALL aoti_torch_library_impl(TorchLibraryHandle self, const char* name,
                                        void (*kernel)(StableIValue* stack, uint64_t num_args,
                                                       uint64_t num_outputs));
AOTI_TORCH_CALL aoti_torch_delete_library_object(TorchLibraryHandle self);
// Calls an operator. The stack holds the arguments, owned by the call, and then the results, owned
// by the caller; it has room for whichever is more.
AOTI_TORCH_CALL aoti_torch_call_dispatcher(const char* name, const char* overload,
                                           StableIValue* stack);

#ifdef __cplusplus
}
#endif
