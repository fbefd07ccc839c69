// What a backward pass consists of, for capture as a graph (torch/_dynamo/compiled_autograd.py):
// its nodes in the order in which they run, what they saved, a key that tells equal passes, and
// nodes run one by one on stand-ins for what they saved.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <torch/csrc/autograd/engine.h>

namespace torch::python {

// autograd::run_backward, or what this thread's runner (torch._C._set_backward_runner) does in its
// place.
autograd::TensorVec run_pass(c10::ArrayRef<autograd::Edge> roots, autograd::TensorVec grads,
                             c10::ArrayRef<autograd::Edge> inputs,
                             const autograd::BackwardOptions& options);

bool init_compiled_backward(PyObject* module);

} // namespace torch::python
