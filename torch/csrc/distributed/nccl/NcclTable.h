// NCCL as a table of functions: the library is looked for when first asked (CRESSET_NCCL_LIBRARY,
// the system's own, then the vendor's Python package beside this one), so that neither building
// nor importing needs it. The declarations are those of NCCL's documented interface.
#pragma once
#include <cstddef>
#include <string>

namespace c10d::engine::nccl {

using Comm = struct ncclComm*;
struct UniqueId {
  char bytes[128];
};
enum Result : int { Success = 0, InProgress = 7 };
// clang-format off
enum DataType : int {
  Int8 = 0, Uint8 = 1, Int32 = 2, Uint32 = 3, Int64 = 4, Uint64 = 5, Float16 = 6, Float32 = 7,
  Float64 = 8, Bfloat16 = 9,
}; // clang-format on
enum RedOp : int { Sum = 0, Prod = 1, Max = 2, Min = 3, Avg = 4 };
enum ScalarResidence : int { OnDevice = 0, HostImmediate = 1 };

struct Table {
  int (*ncclGetVersion)(int*);
  int (*ncclGetUniqueId)(UniqueId*);
  int (*ncclCommInitRank)(Comm*, int size, UniqueId, int rank);
  int (*ncclCommFinalize)(Comm);
  int (*ncclCommDestroy)(Comm);
  int (*ncclCommAbort)(Comm);
  int (*ncclCommGetAsyncError)(Comm, int*);
  const char* (*ncclGetErrorString)(int);
  const char* (*ncclGetLastError)(Comm);
  int (*ncclRedOpCreatePreMulSum)(int*, void* scalar, int type, int residence, Comm);
  int (*ncclRedOpDestroy)(int, Comm);
  int (*ncclAllReduce)(const void*, void*, size_t, int type, int op, Comm, void* stream);
  int (*ncclReduce)(const void*, void*, size_t, int type, int op, int root, Comm, void* stream);
  int (*ncclBroadcast)(const void*, void*, size_t, int type, int root, Comm, void* stream);
  int (*ncclAllGather)(const void*, void*, size_t, int type, Comm, void* stream);
  int (*ncclReduceScatter)(const void*, void*, size_t, int type, int op, Comm, void* stream);
  int (*ncclSend)(const void*, size_t, int type, int peer, Comm, void* stream);
  int (*ncclRecv)(void*, size_t, int type, int peer, Comm, void* stream);
  int (*ncclGroupStart)();
  int (*ncclGroupEnd)();
  int (*ncclCommRegister)(Comm, void*, size_t, void** handle);
  int (*ncclCommDeregister)(Comm, void* handle);
  // A library that stands for NCCL in tests: its memory is that of the CPU, its calls are done when
  // they return.
  bool is_emulated = false;
};

// Null, with `why` set, where the library or a function of it is missing.
const Table* table(std::string& why);

} // namespace c10d::engine::nccl
