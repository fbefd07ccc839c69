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

// ---- registration
// Keeps the text of what a registration block threw; the import that loads the extension, which
// holds `address`, raises it. A weak reference, as torch_last_error_message.
AOTI_TORCH_EXPORT void torch_note_registration_failure(const char* ns, const void* address,
                                                       const char* message)
    __attribute__((__weak__));

// ---- threads
// Calls `body(begin, end, context)` for parts of the range, on several threads. A failure is that
// of the library; what `body` throws must not leave it.
AOTI_TORCH_CALL torch_parallel_for(int64_t begin, int64_t end, int64_t grain,
                                   void (*body)(int64_t begin, int64_t end, void* context),
                                   void* context);
AOTI_TORCH_CALL torch_get_num_threads(uint32_t* ret);

#ifdef __cplusplus
}
#endif
