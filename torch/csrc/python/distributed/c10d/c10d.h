// The extension module torch._c10d: stores, work and backends in C++ as Python classes. It is
// imported with torch.distributed and not by `import torch`. The public classes and their many
// signatures are in Python (torch/_C/_distributed_c10d.py); here are the parts that do work.
#pragma once
#include <torch/csrc/python/distributed/bridge.h>

#include <torch/csrc/distributed/c10d/Backend.h>

namespace torch::python::distributed {

// Our own side of it; ::c10d has what extensions see.
namespace c10d = ::c10d::engine;

extern const Bridge* bridge;

bool init_store(PyObject* module);
bool init_work(PyObject* module);
bool init_backend(PyObject* module);
bool init_reducer(PyObject* module);
bool init_debug(PyObject* module);
bool init_errors(PyObject* module);
bool init_foreign(PyObject* module);

// ---- values; all throw python_error
std::string text_from(PyObject* str_or_bytes);
std::vector<std::string> texts_from(PyObject* sequence);
// Of a datetime.timedelta, or of seconds as a float.
c10d::Millis millis_from(PyObject* delta);
PyObject* delta_from(c10d::Millis time);
PyObject* bytes_from(const std::string& bytes);
int64_t integer_from(PyObject* number);
std::vector<int64_t> integers_from(PyObject* sequence);
std::vector<at::Tensor> tensors_from(PyObject* sequence);
PyObject* list_from(const std::vector<at::Tensor>& tensors);

// The C++ store of a Python one, which it keeps alive where that is written in Python.
std::shared_ptr<c10d::Store> store_from(PyObject* o);
bool is_store(PyObject* o);
// A new Python object of the class that torch.distributed registered for work.
PyObject* wrap_work(std::shared_ptr<c10d::Work> work);
// Null for backends that Python made.
std::shared_ptr<c10d::Backend> backend_from(PyObject* o);
// A new object of a Python class that derives from torch._c10d._Backend.
PyObject* wrap_backend(PyObject* type, std::shared_ptr<c10d::Backend> backend);
// Null for work that Python made.
std::shared_ptr<c10d::Work> work_from(PyObject* o);
// The Python exception of a C++ one: a new reference.
PyObject* exception_object(const std::exception_ptr& error);

// Runs `f` without the GIL.
template <class F> auto unlocked(const F& f) {
  NoGil released;
  return f();
}

} // namespace torch::python::distributed
