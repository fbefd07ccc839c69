// The key PythonDispatcher: while a thread includes it (torch._C._EnablePythonDispatcher), kernels
// that op.py_impl(key) registered in Python come before those of C++.
#pragma once

namespace torch::python {

// Installs the kernel of the key; calls pay nothing for it before, and nothing outside of a guard.
void enable_python_dispatcher();

} // namespace torch::python
