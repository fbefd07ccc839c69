// Storages over mapped memory: files, and anonymous memory files that processes share by
// descriptor. Nothing here has a name in a file system, so that a process that dies leaves nothing
// behind, and the size of /dev/shm does not matter.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include <torch/csrc/python/runtime/support.h>

#include <c10/core/Storage.h>

namespace torch::python {

// Bytes of a memory file: what another process needs to map the same memory. The descriptor
// belongs to the storage.
struct SharedBytes {
  int file = -1; // -1: not in a memory file
  int64_t offset = 0;
};

// Whether other processes can see the memory.
bool is_mapped(const c10::Storage& storage);
// The mapped file's name; empty where there is none.
std::string mapped_filename(const c10::Storage& storage);
// Maps a file; bytes <= 0 means its length. Throws.
c10::Storage map_file(const std::string& filename, bool shared, int64_t bytes);
// A part of a storage that shares its memory and keeps the whole alive.
c10::Storage storage_part(const c10::Storage& whole, int64_t start, int64_t bytes);
// Moves a CPU storage's memory into a memory file unless it is in one; views see the new place.
SharedBytes share_storage(const c10::Storage& storage);

bool init_shared_memory(PyObject* module);

} // namespace torch::python
