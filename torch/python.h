// Converters of pybind11 between Python objects and the types of at:: and c10::. They use what
// torch._C does itself for arguments of operators, through the table it publishes; one converter
// serves every type that an operator may take (ATen/core/TypeTraits.h). Without pybind11 on the
// include path only CPython's interface is there, which is enough for TORCH_LIBRARY.
#pragma once
#include <torch/csrc/python/distributed/bridge.h>

#include <ATen/core/ivalue.h>
#include <c10/core/Stream.h>
#include <c10/core/SymNumbers.h>
#include <torch/custom_class.h>
#include <torch/python_distributed.h>
#include <torch/types.h>
#include <torch/version.h>

#if __has_include(<pybind11/pybind11.h>)
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace py = pybind11;

namespace torch::python {

C10_HIDDEN const Bridge& bridge();

// An error of this library on its way out of a function of an extension is the Python exception
// that the library's own functions raise.
inline void translate_error(std::exception_ptr error) {
  // The function's guards are gone by now: it gave the interpreter's lock up for good, and the
  // thread could not even raise. Take it back.
  if (!PyGILState_Check()) PyGILState_Ensure();
  try {
    if (error) std::rethrow_exception(error);
  } catch (const c10::Error&) {
    bridge().set_error();
  }
}

// The table of torch._C, which is imported at the first use. Throws when this extension was
// compiled for another version of it, and without the interpreter's lock, where any use of an
// object would end the process. Hidden, because each extension registers a translator of its
// own: what one of them remembers must not be the others'.
C10_HIDDEN inline const Bridge& bridge() {
  TORCH_CHECK(
      PyGILState_Check(),
      "a value was converted from or to Python without the interpreter's lock; hold it there "
      "(py::gil_scoped_acquire), and take back what PyEval_SaveThread gave up");
  static const Bridge* const table = [] {
    const py::object capsule = py::module_::import("torch._C").attr("_bridge");
    const auto* found =
        static_cast<const Bridge*>(PyCapsule_GetPointer(capsule.ptr(), kBridgeName));
    if (found == nullptr) throw py::error_already_set();
    if (found->layout != Bridge::kLayout)
      throw py::import_error(
          "this extension was compiled for another version of torch; build it again");
    py::register_local_exception_translator(&translate_error);
    return found;
  }();
  return *table;
}

// Makes what the body of PYBIND11_MODULE threw an ImportError. Called where it was caught.
inline void fail_import() noexcept {
  try {
    throw;
  } catch (py::error_already_set& error) {
    py::raise_from(error, PyExc_ImportError, "initialization failed");
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_ImportError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_ImportError, "the module threw an object that is no std::exception");
  }
}

// Reads an argument as T; false where the object does not fit.
template <class T> bool load_value(py::handle source, at::types::Kept<T>& value) {
  at::IValue read;
  if (!bridge().to_value(source.ptr(), at::types::Type<T>::schema(), read)) return false;
  value = at::types::Type<T>::read(read);
  return true;
}

// A caster for a T that values hold as they are.
template <class T> struct ValueCaster {
  bool load(py::handle source, bool) {
    at::types::Kept<T> read{};
    if (!load_value<T>(source, read)) return false;
    value = std::move(read);
    return true;
  }
  static py::handle cast(const T& source, py::return_value_policy, py::handle) {
    return bridge().from_value(at::types::write<T>(source));
  }
  template <class U> using cast_op_type = py::detail::movable_cast_op_type<U>;
  operator T*() { return &*value; }
  operator T&() { return *value; }
  operator T&&() && { return std::move(*value); }
  std::optional<T> value;
};

} // namespace torch::python

// pybind11 lets other objects than exceptions through, which ends the process.
#if PYBIND11_VERSION_MAJOR >= 3
#undef PYBIND11_CATCH_INIT_EXCEPTIONS
#define PYBIND11_CATCH_INIT_EXCEPTIONS                                                             \
  catch (...) {                                                                                    \
    ::torch::python::fail_import();                                                                \
  }
#endif

namespace pybind11::detail {

template <> struct type_caster<at::Tensor> {
  PYBIND11_TYPE_CASTER(at::Tensor, const_name("torch.Tensor"));
  bool load(handle source, bool) {
    const torch::python::Bridge& bridge = torch::python::bridge();
    if (source.is_none()) return false;
    if (!bridge.is_tensor(source.ptr())) return false;
    value = bridge.tensor_of(source.ptr());
    return true;
  }
  static handle cast(const at::Tensor& source, return_value_policy, handle) {
    if (!source.defined()) return none().release();
    return torch::python::bridge().wrap_tensor(source);
  }
};

#define CRESSET_CASTER(T, NAME)                                                                    \
  template <> struct type_caster<T> : torch::python::ValueCaster<T> {                              \
    static constexpr auto name = const_name(NAME);                                                 \
  }
CRESSET_CASTER(at::Scalar, "Number");
CRESSET_CASTER(at::Device, "torch.device");
CRESSET_CASTER(at::ScalarType, "torch.dtype");
CRESSET_CASTER(at::Layout, "torch.layout");
CRESSET_CASTER(at::MemoryFormat, "torch.memory_format");
CRESSET_CASTER(c10::Generator, "torch.Generator");
CRESSET_CASTER(c10::Storage, "torch.UntypedStorage");
CRESSET_CASTER(c10::SymInt, "int");
CRESSET_CASTER(c10::complex<double>, "complex");
CRESSET_CASTER(at::IValue, "object");
#undef CRESSET_CASTER

// Floats and truth values that may be symbolic become plain ones here: a symbol is guarded.
template <> struct type_caster<c10::SymFloat> {
  PYBIND11_TYPE_CASTER(c10::SymFloat, const_name("float"));
  type_caster() : value(0.0) {}
  bool load(handle source, bool) {
    const object symbol = module_::import("torch").attr("SymFloat");
    const bool plain = PyFloat_Check(source.ptr()) || PyLong_Check(source.ptr());
    if (!plain && !isinstance(source, symbol)) return false;
    value = c10::SymFloat(float_(reinterpret_borrow<object>(source)).cast<double>());
    return true;
  }
  static handle cast(const c10::SymFloat& source, return_value_policy, handle) {
    return float_(source.guard_float()).release();
  }
};
template <> struct type_caster<c10::SymBool> {
  PYBIND11_TYPE_CASTER(c10::SymBool, const_name("bool"));
  bool load(handle source, bool) {
    const object symbol = module_::import("torch").attr("SymBool");
    if (!PyBool_Check(source.ptr()) && !isinstance(source, symbol)) return false;
    value = c10::SymBool(bool_(reinterpret_borrow<object>(source)).cast<bool>());
    return true;
  }
  static handle cast(const c10::SymBool& source, return_value_policy, handle) {
    return bool_(source.guard_bool()).release();
  }
};

// A stream of any device; Python's object and ours name the same three numbers.
template <> struct type_caster<c10::Stream> {
  static constexpr auto name = const_name("torch.Stream");
  template <class U> using cast_op_type = movable_cast_op_type<U>;
  bool load(handle source, bool) {
    if (!isinstance(source, module_::import("torch").attr("Stream"))) return false;
    value_ =
        c10::Stream::unpack3(source.attr("stream_id").cast<int64_t>(),
                             static_cast<c10::DeviceIndex>(source.attr("device_index").cast<int>()),
                             static_cast<c10::DeviceType>(source.attr("device_type").cast<int>()));
    return true;
  }
  static handle cast(const c10::Stream& source, return_value_policy, handle) {
    const object type = module_::import("torch").attr("Stream");
    if (source.device().is_cpu()) return type(arg("device") = "cpu").release();
    return type(arg("stream_id") = source.id(),
                arg("device_index") = static_cast<int>(source.device_index()),
                arg("device_type") = static_cast<int>(source.device_type()))
        .release();
  }
  operator c10::Stream*() { return &*value_; }
  operator c10::Stream&() { return *value_; }
  operator c10::Stream&&() && { return std::move(*value_); }

 private:
  std::optional<c10::Stream> value_;
};

// A view of a list: the caster keeps the elements for the call.
template <class T> struct type_caster<c10::ArrayRef<T>> {
  static constexpr auto name = const_name("Sequence[") + make_caster<T>::name + const_name("]");
  template <class U> using cast_op_type = c10::ArrayRef<T>;
  bool load(handle source, bool) {
    if (!torch::python::load_value<c10::ArrayRef<T>>(source, kept_)) return false;
    return true;
  }
  static handle cast(c10::ArrayRef<T> source, return_value_policy, handle) {
    return torch::python::bridge().from_value(at::types::write(source));
  }
  operator c10::ArrayRef<T>() { return kept_; }

 private:
  std::vector<T> kept_;
};

// The same, or nothing.
template <class T> struct type_caster<c10::OptionalArrayRef<T>> {
  static constexpr auto name =
      const_name("Optional[") + make_caster<c10::ArrayRef<T>>::name + const_name("]");
  template <class U> using cast_op_type = c10::OptionalArrayRef<T>;
  bool load(handle source, bool convert) {
    given_ = !source.is_none();
    return !given_ || list_.load(source, convert);
  }
  static handle cast(c10::OptionalArrayRef<T> source, return_value_policy policy, handle parent) {
    if (!source.has_value()) return none().release();
    return make_caster<c10::ArrayRef<T>>::cast(*source, policy, parent);
  }
  operator c10::OptionalArrayRef<T>() {
    if (!given_) return std::nullopt;
    return static_cast<c10::ArrayRef<T>>(list_);
  }

 private:
  make_caster<c10::ArrayRef<T>> list_;
  bool given_ = false;
};

// Counted pointers to instances of registered classes.
template <class T>
struct type_caster<c10::intrusive_ptr<T>,
                   std::enable_if_t<std::is_base_of_v<torch::CustomClassHolder, T>>>
    : torch::python::ValueCaster<c10::intrusive_ptr<T>> {
  static constexpr auto name = const_name("torch.ScriptObject");
};

} // namespace pybind11::detail
#endif
