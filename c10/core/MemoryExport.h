// Memory of a storage that something outside looks at by its address: a NumPy array, a DLPack
// capsule. They keep the storage alive, but the storage may exchange its memory while they live
// (when it grows, or moves to where other processes share it); the old block must then outlast
// them. There is rarely more than a handful, so they are counted beside the storages and not in
// them.
#pragma once

#include <c10/core/Storage.h>

namespace c10 {

/// While one exists, blocks that the storage gives up are kept. Empty for a null storage.
class C10_API MemoryExport {
 public:
  MemoryExport() = default;
  explicit MemoryExport(Storage storage);
  MemoryExport(MemoryExport&& other) noexcept : storage_(std::move(other.storage_)) {}
  MemoryExport& operator=(MemoryExport&& other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~MemoryExport();

 private:
  Storage storage_;
};

/// Frees a block that the storage had, or keeps it for as long as its memory is exported.
C10_API void retire_memory(const StorageImpl* storage, DataPtr old);

/// Declares blocks with this deleter immovable: a storage that has one cannot grow. One deleter,
/// that of memory which other processes see.
C10_API void declare_immovable(DeleterFnPtr deleter);
C10_API bool is_immovable(const DataPtr& data);

} // namespace c10
