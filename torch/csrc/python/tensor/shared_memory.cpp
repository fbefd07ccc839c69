// Memory that processes share travels as the descriptor of a memory file (memfd_create): the kernel
// counts its users, so there is no manager process, no name to unlink and nothing to leak when a
// process is killed. The watch over the parent lives here too: it has to work while the interpreter
// lock is held by code that hangs.
#include <torch/csrc/python/tensor/shared_memory.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include <torch/csrc/python/args/keyword_args.h>
#include <torch/csrc/python/tensor/storage.h>

#include <ATen/parallel/Stretches.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/MemoryExport.h>
#include <c10/util/NestedRelease.h>

namespace torch::python {

namespace {

struct Mapping {
  void* address;
  size_t bytes;
  std::string filename; // empty: no name
  int file;             // a memory file's descriptor, -1 for none
};

void unmap(void* context) {
  auto* mapping = static_cast<Mapping*>(context);
  if (mapping->bytes > 0) munmap(mapping->address, mapping->bytes);
  if (mapping->file >= 0) close(mapping->file);
  delete mapping;
}

// What a part of a storage keeps: the whole, and its memory should the whole exchange it.
struct Part {
  explicit Part(const c10::Storage& of) : whole(of), memory(of) {}
  c10::Storage whole;
  c10::MemoryExport memory;
};
void drop_part(void* context) {
  c10::release_nested([](void* part) { delete static_cast<Part*>(part); }, context);
}
const c10::Storage& whole_of(const c10::Storage& storage) {
  const c10::DataPtr& data = storage->data_ptr();
  const bool is_part = data.get_deleter() == drop_part;
  return is_part ? static_cast<const Part*>(data.get_context())->whole : storage;
}

const Mapping* mapping_of(const c10::Storage& storage) {
  const c10::DataPtr& data = whole_of(storage)->data_ptr();
  return data.get_deleter() == unmap ? static_cast<const Mapping*>(data.get_context()) : nullptr;
}

struct Descriptor {
  int file = -1;
  ~Descriptor() {
    if (file >= 0) close(file);
  }
  int release() {
    const int kept = file;
    file = -1;
    return kept;
  }
};

// Takes over `kept`, which may be -1.
c10::DataPtr map_memory(int file, size_t bytes, bool shared, std::string filename, int kept) {
  Descriptor owned{kept};
  void* address = nullptr;
  if (bytes > 0) {
    const int flags = shared ? MAP_SHARED : MAP_PRIVATE;
    address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    TORCH_CHECK(address != MAP_FAILED, "unable to mmap ", uint64_t(bytes), " bytes from file <",
                filename, ">: ", std::strerror(errno));
  }
  auto* mapping = new Mapping{address, bytes, std::move(filename), -1};
  mapping->file = owned.release();
  return c10::DataPtr(address, mapping, unmap, c10::Device(c10::kCPU));
}

c10::Storage mapped_storage(size_t bytes, c10::DataPtr data) {
  return c10::make_intrusive<c10::StorageImpl>(bytes, std::move(data), nullptr, false);
}

// Writes past the end of what a memory file can grow to must fail here, not as a signal in whoever
// touches the page, so that the pages are reserved at once.
int new_memory_file(int64_t bytes) {
  Descriptor file{static_cast<int>(memfd_create("torch", MFD_CLOEXEC))};
  TORCH_CHECK(file.file >= 0, "unable to create shared memory of ", bytes,
              " bytes: ", std::strerror(errno),
              errno == EMFILE ? " (each shared storage keeps a file descriptor open: raise the "
                                "limit with `ulimit -n`)"
                              : "");
  int status = 0;
  while (bytes > 0 && (status = posix_fallocate(file.file, 0, bytes)) == EINTR) {
  }
  CRESSET_THROW_IF_NOT(OutOfMemoryError, status == 0, "unable to reserve ", bytes,
                       " bytes of shared memory: ", std::strerror(status));
  return file.release();
}

int64_t file_length(int file) {
  struct stat info;
  TORCH_CHECK(fstat(file, &info) == 0, "unable to stat the file descriptor ", int64_t(file), ": ",
              std::strerror(errno));
  return info.st_size;
}

const c10::Storage& cpu_storage(PyObject* o, const char* name) {
  if (!PyObject_TypeCheck(o, &StorageBaseType)) {
    raise_type_error(c10::str(name, "(): expected a storage, got ", type_name(o)));
  }
  const c10::Storage& storage = reinterpret_cast<PyStorage*>(o)->storage;
  TORCH_CHECK_NOT_IMPLEMENTED(storage->device().is_cpu(), name,
                              "() is not implemented for storages on ", storage->device().str());
  return storage;
}

// torch._C._storage_share(storage) -> (descriptor, bytes, offset)
PyObject* py_storage_share(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const c10::Storage& storage = cpu_storage(o, "_storage_share");
    const SharedBytes shared = share_storage(storage);
    return Py_BuildValue("(iLL)", shared.file, static_cast<long long>(storage->nbytes()),
                         static_cast<long long>(shared.offset));
  });
}

// torch._C._storage_from_descriptor(descriptor, bytes, offset=0, keep=True): the caller still owns
// the descriptor; with keep=False the storage holds none and cannot be passed on by descriptor.
PyObject* py_storage_from_descriptor(PyObject*, PyObject* const* args, Py_ssize_t nargs,
                                     PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    KeywordArgs a("_storage_from_descriptor", {"descriptor", "bytes", "offset", "keep"}, 4, 2, args,
                  nargs, kwnames);
    const int64_t number = a.integer(0, -1), bytes = a.integer(1, 0), offset = a.integer(2, 0);
    TORCH_CHECK(number >= 0 && number <= INT32_MAX, "_storage_from_descriptor(): not a descriptor");
    const int file = static_cast<int>(number);
    const int64_t length = file_length(file);
    TORCH_CHECK(bytes >= 0 && offset >= 0 && offset <= length && bytes <= length - offset,
                "_storage_from_descriptor(): ", bytes, " bytes at ", offset, " of a file of ",
                length);
    Descriptor kept;
    if (a.boolean(3, true)) {
      kept.file = fcntl(file, F_DUPFD_CLOEXEC, 0);
      TORCH_CHECK(kept.file >= 0, "unable to duplicate a descriptor: ", std::strerror(errno));
    }
    // Mappings start at page boundaries: the whole is mapped and a part of it handed out.
    const auto mapped = static_cast<size_t>(offset + bytes);
    c10::Storage whole = mapped_storage(mapped, map_memory(file, mapped, true, "", kept.release()));
    return wrap_storage(offset == 0 ? whole : storage_part(whole, offset, bytes));
  });
}

// torch._C._storage_write(storage, start, bytes, descriptor, position): by the kernel, which need
// not clear pages it fills, as writing through a mapping would have to.
PyObject* py_storage_write(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* object;
    long long start, bytes, position;
    int file;
    if (!PyArg_ParseTuple(args, "OLLiL", &object, &start, &bytes, &file, &position)) {
      throw python_error();
    }
    const c10::Storage storage = cpu_storage(object, "_storage_write");
    const auto size = static_cast<long long>(storage->nbytes());
    TORCH_CHECK(start >= 0 && bytes >= 0 && start <= size && bytes <= size - start && position >= 0,
                "_storage_write(): ", int64_t(bytes), " bytes at ", int64_t(start),
                " of a storage of ", int64_t(size));
    check_memory(storage);
    const char* from = static_cast<const char*>(storage->data()) + start;
    int error = 0;
    {
      const NoGil unlocked;
      while (bytes > 0 && error == 0) {
        const ssize_t written = pwrite(file, from, static_cast<size_t>(bytes), position);
        if (written > 0) {
          from += written, position += written, bytes -= written;
        } else if (errno != EINTR) {
          error = written == 0 ? ENOSPC : errno;
        }
      }
    }
    CRESSET_THROW_IF_NOT(OutOfMemoryError, error == 0, "unable to write ", int64_t(bytes),
                         " bytes to shared memory: ", std::strerror(error));
    return new_none();
  });
}

bool parent_is_gone(int pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

void wait_for_end(int pid, int handle) {
  if (handle >= 0) {
    pollfd watched{handle, POLLIN, 0};
    while (poll(&watched, 1, -1) < 0 && errno == EINTR) {
    }
    return;
  }
  // Kernels without process descriptors: ask.
  while (!parent_is_gone(pid)) usleep(200000);
}

// A thread that cannot be started is an exception: the mask is put back in any case.
struct SignalsBlocked {
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  sigset_t before;
};

// torch._C._die_with(pid, signal): this process gets the signal when that one ends. A thread of its
// own, since the kernel's parent-death signal follows the thread that forked, not the process.
PyObject* py_die_with(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    int pid, signal_number;
    if (!PyArg_ParseTuple(args, "ii", &pid, &signal_number)) throw python_error();
    TORCH_CHECK_VALUE(pid > 0 && signal_number > 0, "_die_with(): pid and signal are positive");
    const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (handle < 0 && errno == ESRCH) {
      kill(getpid(), signal_number);
      return new_none();
    }
    // The watching thread takes no signals: handlers belong to the interpreter's threads.
    const SignalsBlocked blocked;
    std::thread([pid, handle, signal_number] {
      wait_for_end(pid, handle);
      kill(getpid(), signal_number);
    }).detach();
    return new_none();
  });
}

PyMethodDef functions[] = {
    {"_storage_share", py_storage_share, METH_O, nullptr},
    {"_storage_from_descriptor",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(py_storage_from_descriptor)),
     METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_storage_write", py_storage_write, METH_VARARGS, nullptr},
    {"_die_with", py_die_with, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool is_mapped(const c10::Storage& storage) { return mapping_of(storage) != nullptr; }

std::string mapped_filename(const c10::Storage& storage) {
  const Mapping* mapping = mapping_of(storage);
  return mapping ? mapping->filename : std::string();
}

c10::Storage map_file(const std::string& filename, bool shared, int64_t bytes) {
  const Descriptor file{
      open(filename.c_str(), shared ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0600)};
  TORCH_CHECK(file.file >= 0, "unable to open file <", filename, "> in ",
              shared ? "read-write" : "read-only", " mode: ", std::strerror(errno));
  const int64_t length = file_length(file.file);
  if (bytes <= 0) bytes = length;
  if (bytes > length) {
    TORCH_CHECK(shared, "file <", filename, "> has only ", length, " bytes of the ", bytes,
                " asked for; it grows only with shared=True");
    TORCH_CHECK(ftruncate(file.file, bytes) == 0, "unable to resize file <", filename,
                ">: ", std::strerror(errno));
  }
  const auto size = static_cast<size_t>(bytes);
  // A private copy is no longer that of the file.
  const std::string kept = shared ? filename : std::string();
  return mapped_storage(size, map_memory(file.file, size, shared, kept, -1));
}

c10::Storage storage_part(const c10::Storage& whole, int64_t start, int64_t bytes) {
  char* data = static_cast<char*>(whole->data());
  // A part of a part is a part of the same whole: chains stay one link long.
  c10::DataPtr part(data ? data + start : nullptr, new Part(whole_of(whole)), drop_part,
                    whole->device());
  return mapped_storage(static_cast<size_t>(bytes), std::move(part));
}

SharedBytes share_storage(const c10::Storage& storage) {
  const Mapping* mapping = mapping_of(storage);
  if (mapping && mapping->file >= 0) {
    return {mapping->file,
            static_cast<char*>(storage->data()) - static_cast<char*>(mapping->address)};
  }
  check_memory(storage);
  // Views made before the storage shrank reach further than it does now.
  const size_t length = storage->nbytes();
  const size_t bytes = std::max(length, c10::cpu_block_bytes(storage->data_ptr()));
  const int file = new_memory_file(static_cast<int64_t>(bytes));
  c10::DataPtr shared = map_memory(file, bytes, true, "", file);
  at::parallel_copy(shared.get(), storage->data(), static_cast<int64_t>(bytes));
  c10::retire_memory(storage.get(), storage->set_data(std::move(shared), length));
  return {file, 0};
}

bool init_shared_memory(PyObject* module) {
  c10::declare_immovable(unmap);
  return PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
