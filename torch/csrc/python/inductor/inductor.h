// torch._C._inductor: traced graphs as compiled functions of a list of arguments.
#pragma once

#include <Python.h>

#include <vector>

#include <ATen/core/IValue.h>

namespace torch::inductor {
class Compiled;
}

namespace torch::python {

bool init_inductor(PyObject* module);
bool init_aoti(PyObject* module); // torch._C._aoti

bool add_flex_functions(PyObject* module); // to torch._C._inductor
// What a Python object holds; null for objects of other types.
inductor::Compiled* compiled_of(PyObject* o);
// Calls one that compiled_of() knows. Takes the tensors out of `inputs`, so that they are freed
// after their last use.
std::vector<at::IValue> run_compiled_graph(PyObject* graph, std::vector<at::IValue>& inputs);
// An argument or result of a graph: a tensor, a number or None.
at::IValue graph_value(PyObject* object);
// The arguments in a list, which gives its references up, so that tensors are freed after their
// last use.
std::vector<at::IValue> graph_values(PyObject* list);
// After kernels ran: the compiler hears of those that wait for it.
void tell_of_waiting_kernels();

} // namespace torch::python
