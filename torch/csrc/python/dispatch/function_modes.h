// The thread's state for __torch_function__: whether overrides are switched off, and the stack of
// active modes.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <vector>

namespace torch::python {

enum class FunctionState { Enabled = 0, SubclassesDisabled = 1, AllDisabled = 2 };
FunctionState function_state() noexcept;
void set_function_state(FunctionState state) noexcept;
size_t function_mode_count() noexcept;

// Takes the innermost mode off the stack for the scope.
class FunctionModeOff {
 public:
  FunctionModeOff();
  ~FunctionModeOff();
  FunctionModeOff(const FunctionModeOff&) = delete;
  FunctionModeOff& operator=(const FunctionModeOff&) = delete;
  const PyRef& mode() const { return mode_; }

 private:
  PyRef mode_;
};

// The modes of this thread, to be put back later.
class FunctionModes {
 public:
  static FunctionModes now();
  void put_back() const;

 private:
  std::vector<PyRef> modes_;
};

bool init_function_modes(PyObject* module);

} // namespace torch::python
