// Export and hint macros. One library (libtorch) holds c10 and ATen, so C10_API and TORCH_API are
// the same thing; both names exist because extensions written for PyTorch use both.
#pragma once

#define C10_API __attribute__((visibility("default")))
#define TORCH_API __attribute__((visibility("default")))
#define TORCH_PYTHON_API __attribute__((visibility("default")))
#define C10_EXPORT __attribute__((visibility("default")))
#define C10_HIDDEN __attribute__((visibility("hidden")))

#define C10_LIKELY(x) __builtin_expect(!!(x), 1)
#define C10_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define C10_NOINLINE __attribute__((noinline))
#define C10_COLD __attribute__((cold, noinline))
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_UNUSED __attribute__((unused))
// A thread-local variable that needs neither constructor nor destructor. `thread_local` would ask
// before each use from another file whether there is a constructor to run.
#define C10_PLAIN_THREAD_LOCAL __thread

#if defined(__CUDACC__)
#define CRESSET_HD __host__ __device__
#else
#define CRESSET_HD
#endif

#define C10_CONCATENATE_IMPL(a, b) a##b
#define C10_CONCATENATE(a, b) C10_CONCATENATE_IMPL(a, b)
#define C10_UID __COUNTER__
#define C10_ANONYMOUS_VARIABLE(name) C10_CONCATENATE(name, __COUNTER__)

// For extensions; the library itself needs none of these.
#define C10_IMPORT C10_EXPORT
#define C10_CUDA_API C10_EXPORT
#define TORCH_CUDA_CPP_API C10_EXPORT
#define TORCH_CUDA_CU_API C10_EXPORT
#define C10_NODISCARD [[nodiscard]]
#define C10_FALLTHROUGH [[fallthrough]]
#define C10_RESTRICT __restrict
#define C10_STRINGIZE_IMPL(x) #x
#define C10_STRINGIZE(x) C10_STRINGIZE_IMPL(x)
#define C10_DISABLE_COPY_AND_ASSIGN(type)                                                          \
  type(const type&) = delete;                                                                      \
  type& operator=(const type&) = delete
#if defined(__CUDACC__)
#define C10_HOST __host__
#define C10_DEVICE __device__
#else
#define C10_HOST
#define C10_DEVICE
#endif
#define C10_HOST_DEVICE C10_HOST C10_DEVICE

// Marks where a core class has members for code outside of the library: see UserMembers.h.
#if defined(CRESSET_KERNEL_TU) || defined(__CUDACC_RTC__)
#define CRESSET_USER_MEMBERS(Class)
#define CRESSET_APPEND_PART append
// What stands there in the library's files, and in programs.
#define CRESSET_VIEWS(library, program) library
#define CRESSET_IVALUE_TO_LIST                                                                     \
  const std::vector<IValue>& toList() const { return holder<std::vector<IValue>>(Tag::List); }
#else
#include <c10/macros/UserMembers.h>
#endif
