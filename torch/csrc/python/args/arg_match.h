// The matcher: which signature of a function a call fits. Internal to the parser (arg_parser.cpp
// does the matching, arg_errors.cpp explains a failure).
#pragma once
#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/dispatch/torch_function.h>

namespace torch::python {

// Outcome of fitting a call to a signature; the first problem found.
struct Mismatch {
  enum Kind : uint8_t {
    None,
    TooMany,    // more positional arguments than the signature takes
    Unexpected, // keyword unknown
    Duplicate,  // given by position and by keyword
    Missing,    // a required argument was not given
    Type        // the argument's type does not fit
  };
  Kind kind = None;
  int param = -1;            // Duplicate, Missing, Type
  PyObject* value = nullptr; // Type: the argument; Unexpected: the keyword; borrowed
  Py_ssize_t position = -1;  // Type: zero-based among the given arguments, -1 for keywords
};

class Matcher {
 public:
  Matcher(const Function& function, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
          PyObject* kwnames, ArgValues& values)
      : function_(function), self_(self), args_(args), nargs_(nargs), kwnames_(kwnames),
        values_(values) {}

  // The first signature that fits, with `values` filled in; nullptr when none does.
  const Signature* find();
  // The same for numbers that stand for tensors.
  const Signature* find_with_numbers();
  // Fits one signature. `numbers` lets Python numbers pass for tensors.
  Mismatch fit(const Signature& signature, bool numbers);
  // Sets the Python error for a call that fits nothing.
  void fail() noexcept;
  // Says once in a process that the signature that fits is one of old, and what to use instead.
  void warn_deprecated() const;
  // Runs __torch_function__ when some argument or mode asks for it.
  bool run_override(PyObject** result) noexcept;
  // Note [Stand-ins]
  // An object with a __torch_function__ that is no tensor, a proxy of a trace for instance, may
  // stand for an argument of any type: a size, a flag, a dtype. Calls that fit without it never
  // look. When nothing fits, signatures are tried again with stand-ins accepted everywhere, and
  // the stand-ins' __torch_function__ gets the call.
  bool run_stand_ins(PyObject** result) noexcept;

 private:
  bool seen_by_handlers(const Signature& s) const;
  bool accepts(const Param& param, PyObject* o);
  bool accepts_tensor(PyObject* o);
  bool accepts_tensors(PyObject* o, bool none_too);
  bool accepts_stand_in(PyObject* o) const;
  void ask(const Overloads& overloads, PyObject** result) noexcept;
  bool spreads(const Signature& signature) const;
  Mismatch fit_keywords(const Signature& signature);
  int find_param(const Signature& signature, PyObject* keyword) const;
  Py_ssize_t keyword_count() const { return kwnames_ ? PyTuple_GET_SIZE(kwnames_) : 0; }
  int first() const { return self_ ? 1 : 0; }

  // arg_errors.cpp
  bool visible(const Signature& signature) const;
  bool plausible(const Signature& signature) const;
  std::string explain(const Signature& signature, const Mismatch& mismatch) const;
  std::string reason(const Signature& signature, const Mismatch& mismatch) const;
  std::string given_types() const;
  std::string signature_text(const Signature& signature) const;
  std::string combination_message();

  const Function& function_;
  PyObject* self_;
  PyObject* const* args_;
  Py_ssize_t nargs_;
  PyObject* kwnames_;
  ArgValues& values_;
  bool numbers_ = false;
  bool stand_ins_ = false; // accepted in place of anything
};

// add, sub, mul, div, ...: the functions that take Python numbers where they name tensors.
bool takes_numbers_as_tensors(const char* name);
// "Tensor", "tuple of ints", ...: what messages call a parameter type.
const char* param_type_name(P type);

} // namespace torch::python
