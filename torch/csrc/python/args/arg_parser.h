// The argument parser behind every operator binding. A binding is constant data (Param, Signature
// and Function tables) plus an `invoke` function that reads the parsed values; one out-of-line
// matcher serves all of them. The common call, positional tensors and numbers, allocates nothing:
// values stay borrowed Python objects until `invoke` asks for them as C++ values.
//
// Contract: tables live for the whole process. ArgValues is alive during `invoke` only, and so is
// every reference, list or text view it hands out. All functions need the GIL. Accessors throw.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>
#include <torch/csrc/python/types/types.h>

#include <ATen/core/Tensor.h>
#include <c10/core/Generator.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymInt.h>

namespace torch::python {

enum class P : uint8_t {
  Tensor,
  Scalar,
  Int,
  SymInt,
  Float,
  Bool,
  Str,
  IntList,
  SymIntList,
  FloatList,
  ScalarList,
  TensorList,
  OptTensorList,
  BoolList,
  ScalarType,
  Layout,
  MemoryFormat,
  Device,
  Generator,
  Storage,
  Stream,
  Dimname,
  Complex,
  Qscheme,
  Object // any Python object, for hand-written functions
};

enum ParamFlag : uint8_t {
  kOptional = 1,    // None is a value: the schema type ends with '?'
  kKwOnly = 2,      // after the '*'
  kHasDefault = 4,  // may be left out
  kOut = 8,         // the out= argument; None means not given
  kNoneIsEmpty = 16 // a list whose default is []; None means not given
};

enum SignatureFlag : uint8_t {
  kHidden = 1,     // not shown in messages
  kDeprecated = 2, // accepted, not shown
  kVarargs = 4,    // the leading list may be spread out: zeros(2, 3)
  kNoOverride = 8  // __torch_function__ is not asked (constructors)
};

struct Param {
  const char* name;
  P type;
  uint8_t flags;
  int8_t size; // N of int[N]: a single number is accepted for it; 0 otherwise
  const char* default_text;
};

class ArgValues;

struct Signature {
  const Param* params; // methods: params[0] is self
  uint8_t count;
  uint8_t positional; // how many may be given by position, self included
  uint8_t flags;
  PyObject* (*invoke)(ArgValues&);
  const char* text;
};

struct Function {
  const char* name;
  const char* module; // "torch", "torch.Tensor", "torch.nn.functional", ...
  const Signature* signatures;
  uint16_t count;
};

// Parses and runs. `self` is the tensor for methods, nullptr for functions. Handles
// __torch_function__ and translates C++ exceptions.
PyObject* call(const Function& function, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
               PyObject* kwnames) noexcept;

// The same for a classic (args tuple, kwargs dict) call.
PyObject* call_tuple(const Function& function, PyObject* self, PyObject* args,
                     PyObject* kwargs) noexcept;

// The parsed values of one call. Indices are positions in Signature::params. A value that was not
// given (`!given(i)`) may not be read through the non-optional accessors.
class ArgValues {
 public:
  static constexpr int kMaxParams = 48;

  ArgValues() noexcept {}
  ~ArgValues() {
    if (C10_UNLIKELY(kept_ != nullptr)) free_kept();
  }
  ArgValues(const ArgValues&) = delete;
  ArgValues& operator=(const ArgValues&) = delete;

  bool given(int i) const noexcept { return values_[i] != nullptr || i == varargs_index_; }
  // The borrowed Python object, nullptr when not given (or given as varargs).
  PyObject* object(int i) const noexcept { return values_[i]; }
  // The index-th parameter was given and is not None.
  bool present(int i) const noexcept {
    return (values_[i] != nullptr && values_[i] != Py_None) || i == varargs_index_;
  }

  // None and absent arguments read as the undefined tensor.
  const at::Tensor& tensor(int i) {
    PyObject* o = values_[i];
    return C10_LIKELY(is_plain_tensor(o)) ? tensor_of(o) : tensor_slow(i);
  }
  std::optional<at::Tensor> opt_tensor(int i) {
    return present(i) ? std::optional<at::Tensor>(tensor(i)) : std::nullopt;
  }
  c10::Scalar scalar(int i) const;
  std::optional<c10::Scalar> opt_scalar(int i) const {
    return present(i) ? std::optional<c10::Scalar>(scalar(i)) : std::nullopt;
  }
  int64_t integer(int i) const;
  std::optional<int64_t> opt_integer(int i) const {
    return present(i) ? std::optional<int64_t>(integer(i)) : std::nullopt;
  }
  c10::SymInt symint(int i) const;
  std::optional<c10::SymInt> opt_symint(int i) const {
    return present(i) ? std::optional<c10::SymInt>(symint(i)) : std::nullopt;
  }
  double floating(int i) const;
  std::optional<double> opt_floating(int i) const {
    return present(i) ? std::optional<double>(floating(i)) : std::nullopt;
  }
  bool boolean(int i) const;
  std::optional<bool> opt_boolean(int i) const {
    return present(i) ? std::optional<bool>(boolean(i)) : std::nullopt;
  }
  std::string_view string(int i) const;
  std::optional<std::string_view> opt_string(int i) const {
    return present(i) ? std::optional<std::string_view>(string(i)) : std::nullopt;
  }

  c10::IntArrayRef int_list(int i);
  c10::OptionalIntArrayRef opt_int_list(int i) {
    return present(i) ? c10::OptionalIntArrayRef(int_list(i)) : c10::OptionalIntArrayRef();
  }
  c10::SymIntArrayRef symint_list(int i);
  template <bool symbolic> c10::IntArrayRef read_ints(int i);
  c10::OptionalSymIntArrayRef opt_symint_list(int i) {
    return present(i) ? c10::OptionalSymIntArrayRef(symint_list(i)) : c10::OptionalSymIntArrayRef();
  }
  c10::ArrayRef<double> float_list(int i);
  std::optional<c10::ArrayRef<double>> opt_float_list(int i) {
    return present(i) ? std::optional<c10::ArrayRef<double>>(float_list(i)) : std::nullopt;
  }
  c10::ArrayRef<c10::Scalar> scalar_list(int i);
  at::TensorList tensor_list(int i);
  // Tensor?[]: None items are nullopt.
  c10::ArrayRef<std::optional<at::Tensor>> opt_tensor_list_items(int i);
  template <size_t N> std::array<bool, N> bool_array(int i) {
    std::array<bool, N> out;
    read_bools(i, out.data(), N);
    return out;
  }

  c10::ScalarType scalar_type(int i) const;
  std::optional<c10::ScalarType> opt_scalar_type(int i) const {
    return present(i) ? std::optional<c10::ScalarType>(scalar_type(i)) : std::nullopt;
  }
  c10::Layout layout(int i) const;
  std::optional<c10::Layout> opt_layout(int i) const {
    return present(i) ? std::optional<c10::Layout>(layout(i)) : std::nullopt;
  }
  c10::MemoryFormat memory_format(int i) const;
  std::optional<c10::MemoryFormat> opt_memory_format(int i) const {
    return present(i) ? std::optional<c10::MemoryFormat>(memory_format(i)) : std::nullopt;
  }
  c10::Device device(int i) const;
  std::optional<c10::Device> opt_device(int i) const {
    return present(i) ? std::optional<c10::Device>(device(i)) : std::nullopt;
  }
  std::optional<at::Generator> generator(int i) const;
  c10::Storage storage(int i) const;

  const Function& function() const noexcept { return *function_; }
  const Signature& signature() const noexcept { return *signature_; }

 private:
  friend class Matcher;
  friend std::string call_context(const ArgValues& values);
  friend PyObject* call(const Function&, PyObject*, PyObject* const*, Py_ssize_t,
                        PyObject*) noexcept;
  struct Kept; // what outlives its accessor: converted tensors and long lists

  const at::Tensor& tensor_slow(int i);
  void read_bools(int i, bool* out, size_t n);
  int64_t* take_ints(size_t n);
  Kept& kept();
  void free_kept() noexcept;
  [[noreturn]] void fail_item(int i, Py_ssize_t position, PyObject* item, const char* wanted) const;

  static constexpr int kInlineInts = 24;
  const Function* function_;
  const Signature* signature_;
  Kept* kept_ = nullptr;
  PyObject* const* varargs_; // the spread-out list, when varargs_index_ >= 0
  Py_ssize_t varargs_count_;
  int varargs_index_ = -1;
  int ints_used_ = 0;
  bool overrides_ = false; // some argument has a __torch_function__ of its own
  PyObject* values_[kMaxParams];
  int64_t ints_[kInlineInts];
};

// "\n  in torch.add(input: float32[8, 64] cpu, other: ..., alpha: 1)".
std::string call_context(const ArgValues& values);
// "float32[8, 64] cpu".
std::string describe_tensor(const at::Tensor& tensor);

// Conversions shared with hand-written bindings. The `is_` tests accept what the parser accepts.
bool is_integer_like(PyObject* o);  // int, __index__, 0-d integral tensor; not bool
bool is_number_like(PyObject* o);   // bool, int, float, complex, NumPy scalar, 0-d tensor
int64_t to_int64(PyObject* o);      // throws TypeError / OverflowError
c10::Scalar to_scalar(PyObject* o); // throws TypeError / OverflowError
double to_double(PyObject* o);      // throws TypeError

// Finishes a factory function: sets requires_grad when asked and wraps.
PyObject* finish_factory(at::Tensor tensor, bool requires_grad);
// For in-place operators: argument 0's own object when the result is that tensor.
PyObject* wrap_self(ArgValues& values);
// For out= operators: argument `index`'s own object.
PyObject* wrap_given(ArgValues& values, int index);

// Defined by the generated table: the function `name` of `module`, or nullptr.
const Function* find_function(const char* module, const char* name);

} // namespace torch::python
