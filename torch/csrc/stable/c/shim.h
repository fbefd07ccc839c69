// The second part of the C interface (torch/csrc/inductor/aoti_torch/c/shim.h): values of operators
// that do not fit into 8 bytes, and what kernels need besides tensors.
#pragma once
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#ifdef __cplusplus
extern "C" {
#endif

struct StableListOpaque;
struct StringOpaque;
typedef struct StableListOpaque* StableListHandle;
typedef struct StringOpaque* StringHandle;

// ---- lists own their items; reading an item gives it to the reader, who puts nothing in its place
AOTI_TORCH_CALL torch_new_list_reserve_size(size_t size, StableListHandle* ret);
AOTI_TORCH_CALL torch_list_size(StableListHandle list, size_t* ret);
AOTI_TORCH_CALL torch_list_get_item(StableListHandle list, size_t index, StableIValue* ret);
AOTI_TORCH_CALL torch_list_set_item(StableListHandle list, size_t index, StableIValue value);
AOTI_TORCH_CALL torch_list_push_back(StableListHandle list, StableIValue value);
AOTI_TORCH_CALL torch_delete_list(StableListHandle list);

// ---- strings
AOTI_TORCH_CALL torch_new_string_handle(const char* data, size_t length, StringHandle* ret);
AOTI_TORCH_CALL torch_delete_string(StringHandle string);
AOTI_TORCH_CALL torch_string_length(StringHandle string, size_t* ret);
AOTI_TORCH_CALL torch_string_c_str(StringHandle string, const char** ret);

// ---- tensors
AOTI_TORCH_CALL torch_get_mutable_data_ptr(AtenTensorHandle tensor, void** ret);
AOTI_TORCH_CALL torch_get_const_data_ptr(AtenTensorHandle tensor, const void** ret);
AOTI_TORCH_CALL torch_set_requires_grad(AtenTensorHandle tensor, bool requires_grad);
// self - alpha * other, for operators whose numbers have no form among StableIValues.
AOTI_TORCH_CALL torch_aten_subtract(AtenTensorHandle self, AtenTensorHandle other, double alpha,
                                    AtenTensorHandle* ret);
// On memory of the caller. `deleter(data, context)` is called once, when no tensor uses the memory
// any more, or before a failure is returned.
AOTI_TORCH_CALL torch_tensor_on_memory(void* data, int64_t ndim, const int64_t* sizes,
                                       const int64_t* strides, int64_t storage_offset,
                                       int32_t dtype, int32_t device_type, int32_t device_index,
                                       void (*deleter)(void* data, void* context), void* context,
                                       AtenTensorHandle* ret);

// ---- registration
// Keeps the text of what a registration block threw; the import that loads the extension, which
// holds `address`, raises it. A weak reference, as torch_last_error_message.
AOTI_TORCH_EXPORT void torch_note_registration_failure(const char* ns, const void* address,
                                                       const char* message)
    __attribute__((__weak__));

// The forms of PyTorch 2.10, which extensions compiled with its headers ask for: the last argument
// is the version that an extension was compiled for, of which nothing here depends yet.
AOTI_TORCH_CALL torch_library_impl(TorchLibraryHandle self, const char* name,
                                   void (*kernel)(StableIValue*, uint64_t, uint64_t),
                                   uint64_t extension_build_version);
AOTI_TORCH_CALL torch_call_dispatcher(const char* name, const char* overload, StableIValue* stack,
                                      uint64_t extension_build_version);

// ---- devices
// "cuda:1" as the number of its kind and its index, -1 where the text names none.
AOTI_TORCH_CALL torch_parse_device_string(const char* text, uint32_t* ret_type, int32_t* ret_index);

// ---- threads
// Calls `body(begin, end, context)` for parts of the range, on several threads. A failure is that
// of the library; what `body` throws must not leave it.
AOTI_TORCH_CALL torch_parallel_for(int64_t begin, int64_t end, int64_t grain,
                                   void (*body)(int64_t begin, int64_t end, void* context),
                                   void* context);
AOTI_TORCH_CALL torch_get_num_threads(uint32_t* ret);
// The number of the calling thread within a torch_parallel_for, 0 outside.
AOTI_TORCH_CALL torch_get_thread_idx(uint32_t* ret);

#ifdef __cplusplus
}
#endif
