// What every binding file needs from CPython: an owning reference, the C++ exception that stands
// for "a Python error is set", and the wrapper that turns C++ exceptions into Python ones at the
// edge. Everything here needs the GIL unless it says otherwise.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <c10/macros/Macros.h>

namespace torch::python {

// Note [Threads at interpreter exit]
// A closing interpreter gives the GIL to no other thread. CPython up to 3.13 ends a thread that
// asks for it by pthread_exit(), which unwinds our frames: their destructors need the GIL, and the
// process aborts at the first function that is noexcept or catches everything. So whoever cannot
// have the GIL any more (take_gil, restore_thread, the end of a PyRef or a WithGil, a handler that
// meets the unwinding) stops for good, as later versions of CPython do themselves.

// Whether this thread holds the GIL. Any thread, at any time.
bool holds_gil() noexcept;
// Whether there is an interpreter, running or closing. Where there is none objects are left alone.
inline bool python_exists() noexcept { return PyInterpreterState_Head() != nullptr; }
// Stops this thread until the process ends.
[[noreturn]] void park_thread() noexcept;
// PyGILState_Ensure and PyEval_RestoreThread; they stop a thread that comes too late.
PyGILState_STATE take_gil() noexcept;
void restore_thread(PyThreadState* state) noexcept;
// Set when the interpreter begins to close; false in all of a program's ordinary life.
extern bool interpreter_closes;
// Drops a reference while interpreter_closes is set.
void drop_at_exit(PyObject* p) noexcept;
// Asks to be told when the interpreter closes; false with the error set.
bool watch_interpreter_exit();

// Owns one reference. `PyRef(p)` takes over a new reference, `PyRef::borrow(p)` adds one.
class PyRef {
 public:
  PyRef() noexcept = default;
  explicit PyRef(PyObject* owned) noexcept : p_(owned) {}
  static PyRef borrow(PyObject* p) noexcept {
    Py_XINCREF(p);
    return PyRef(p);
  }
  PyRef(const PyRef& o) noexcept : p_(o.p_) { Py_XINCREF(p_); }
  PyRef(PyRef&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  ~PyRef() {
    if (C10_UNLIKELY(interpreter_closes)) {
      drop_at_exit(p_);
    } else {
      Py_XDECREF(p_);
    }
  }
  PyRef& operator=(PyRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  PyObject* get() const noexcept { return p_; }
  PyObject* release() noexcept { return std::exchange(p_, nullptr); }
  explicit operator bool() const noexcept { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

// Thrown by C++ code when the Python error indicator is set; carries nothing else.
class python_error : public std::exception {
 public:
  const char* what() const noexcept override { return "a Python error is set"; }
};

// Sets a Python error and throws python_error.
[[noreturn]] void raise(PyObject* type, const std::string& message);
[[noreturn]] inline void raise_type_error(const std::string& message) {
  raise(PyExc_TypeError, message);
}

// A new reference or python_error.
inline PyRef checked(PyObject* p) {
  if (C10_UNLIKELY(!p)) throw python_error();
  return PyRef(p);
}
inline void check_status(int status) {
  if (C10_UNLIKELY(status < 0)) throw python_error();
}

// Called inside catch (...): sets the Python error for the exception in flight. `context` is
// appended to messages of this library's own errors ("\n  in torch.add(...)").
void set_error_from_exception(std::string_view context = {}) noexcept;

// Runs `f` (returning a pointer or an int) and maps exceptions to nullptr or -1 with the error set.
template <class F> auto guarded(F&& f) noexcept -> decltype(f()) {
  using R = decltype(f());
  try {
    return f();
  } catch (...) {
    set_error_from_exception();
  }
  if constexpr (std::is_pointer_v<R>) {
    return nullptr;
  } else {
    return static_cast<R>(-1);
  }
}

inline PyObject* new_none() noexcept {
  Py_INCREF(Py_None);
  return Py_None;
}
inline PyObject* new_bool(bool value) noexcept {
  PyObject* p = value ? Py_True : Py_False;
  Py_INCREF(p);
  return p;
}

// The name under which messages speak of an object's type: "str", "torch.dtype", "numpy.ndarray".
inline const char* type_name(PyObject* o) noexcept { return Py_TYPE(o)->tp_name; }

// The UTF-8 text of a str, valid while it lives; throws python_error for lone surrogates.
std::string_view utf8(PyObject* unicode);
// str(o) and repr(o) as C++ strings; throw python_error.
std::string text_of(PyObject* o);
std::string repr_of(PyObject* o);

// A static type object with a name and nothing else, to be filled before PyType_Ready.
PyTypeObject type_object(const char* name);
// Adds `value` (a new reference, consumed) to `module` as `name`; false with the error set.
bool add_object(PyObject* module, const char* name, PyObject* value);
// PyType_Ready and add under the last part of tp_name.
bool add_type(PyObject* module, PyTypeObject* type);
// A function with another signature than PyCFunction's, as tables of methods hold it.
template <class F> PyCFunction as_method(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
// A descriptor of a method of `type`; every method we add to a type is made here or by add_type.
PyObject* new_method(PyTypeObject* type, PyMethodDef* def);

// The attribute of an imported module, looked up once and kept for the life of the process; nullptr
// with the error set when it does not exist.
PyObject* cached_attribute(PyObject*& slot, const char* module, const char* name);

// Releases the GIL for the scope.
class NoGil {
 public:
  NoGil() : state_(PyEval_SaveThread()) {}
  ~NoGil() { restore_thread(state_); }
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

 private:
  PyThreadState* state_;
};
// Takes the GIL for the scope, from any thread; needs python_exists().
class WithGil {
 public:
  WithGil() : state_(take_gil()) {}
  ~WithGil() {
    if (C10_UNLIKELY(interpreter_closes) && !holds_gil()) park_thread();
    PyGILState_Release(state_);
  }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

} // namespace torch::python
