// Hooks on tensors saved for the backward pass.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/python/runtime/support.h>

namespace torch::python {

// Puts this thread's stack of hooks back at the end: what hooks push and pop while a backward pass
// runs is not for the code after it.
class SavedHooksScope {
 public:
  SavedHooksScope();
  ~SavedHooksScope();
  SavedHooksScope(const SavedHooksScope&) = delete;
  SavedHooksScope& operator=(const SavedHooksScope&) = delete;

 private:
  std::vector<std::shared_ptr<autograd::SavedTensorHooks>> before_;
};

// Why this thread allows no hooks; empty where it does.
const std::string& saved_hooks_disabled_because();
void set_saved_hooks_disabled(const std::string& because);

// Hooks that call two Python functions.
std::shared_ptr<autograd::SavedTensorHooks> make_saved_tensor_hooks(PyObject* pack,
                                                                    PyObject* unpack);

bool init_autograd_saved(PyObject* module);

} // namespace torch::python
