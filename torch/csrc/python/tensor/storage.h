// torch._C.StorageBase, the base of torch.UntypedStorage: a Python handle on a c10::Storage.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>

namespace torch::python {

struct PyStorage {
  PyObject_HEAD c10::Storage storage;
  PyObject* weakrefs;
};

extern PyTypeObject StorageBaseType;

// An UntypedStorage, or a TypedStorage around one.
bool is_storage(PyObject* o);
// The C++ storage of an object that is_storage accepted. Throws.
c10::Storage storage_of(PyObject* o);
// Throws where a TypedStorage has elements of another dtype than the tensor that is to use it.
void check_storage_dtype(PyObject* o, c10::ScalarType dtype);
// Throws where a storage of the CPU has no memory: that of a wrapper subclass.
inline void check_memory(const c10::Storage& storage) {
  TORCH_CHECK(storage->data() || storage->nbytes() == 0,
              "The tensor has a non-zero number of elements, but its data is not allocated: a "
              "storage of ",
              storage->nbytes(), " bytes without memory");
}
// The UntypedStorage object of a storage: the one it has, or a new one.
PyObject* wrap_storage(const c10::Storage& storage);

bool init_storage(PyObject* module);
bool init_storage_weak(PyObject* module);

} // namespace torch::python
