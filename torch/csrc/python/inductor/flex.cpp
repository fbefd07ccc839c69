// torch._C._inductor.flex_*: attention with compiled functions of scores. torch._inductor.flex
// traces the functions.
#include <torch/csrc/python/inductor/inductor.h>

#include <torch/csrc/inductor/flex.h>
#include <torch/csrc/inductor/tier.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {
namespace {

using at::Tensor;
using at::native::flex::Operands;

Tensor tensor_or_none(PyObject* o, const char* what) {
  if (o == Py_None) return Tensor();
  if (!is_tensor(o)) raise_type_error(c10::str("flex_attention: ", what, " is no tensor"));
  return tensor_of(o);
}
Tensor a_tensor(PyObject* o, const char* what) {
  const Tensor found = tensor_or_none(o, what);
  if (!found.defined()) raise_type_error(c10::str("flex_attention: ", what, " is no tensor"));
  if (!found.is_cpu() || found.layout() != at::kStrided)
    raise_type_error(c10::str("flex_attention: ", what, " is no dense tensor of the CPU"));
  return found;
}

inductor::Compiled* graph_of(PyObject* o) {
  if (o == Py_None) return nullptr;
  inductor::Compiled* const found = compiled_of(o);
  if (!found) raise_type_error("flex_attention: a function is no compiled graph");
  return found;
}

std::vector<at::IValue> values_of(PyObject* list) {
  const PyRef items = checked(PySequence_Fast(list, "flex_attention: buffers are a list"));
  std::vector<at::IValue> found;
  for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(items.get()); i < n; ++i)
    found.emplace_back(a_tensor(PySequence_Fast_GET_ITEM(items.get(), i), "a buffer"));
  return found;
}

// (query, key, value, scale, count, indices, full_count, full_indices, rows, columns)
Operands operands_of(PyObject* given) {
  PyObject* t[7] = {};
  double scale = 1;
  long long rows = 0, columns = 0;
  if (!PyArg_ParseTuple(given, "OOOdOOOOLL", &t[0], &t[1], &t[2], &scale, &t[3], &t[4], &t[5],
                        &t[6], &rows, &columns))
    throw python_error();
  Operands found{a_tensor(t[0], "query"),
                 a_tensor(t[1], "key"),
                 a_tensor(t[2], "value"),
                 scale,
                 {a_tensor(t[3], "a count of blocks"), a_tensor(t[4], "a list of blocks"),
                  tensor_or_none(t[5], "a count of blocks"),
                  tensor_or_none(t[6], "a list of blocks"), rows, columns},
                 nullptr,
                 nullptr};
  if (found.blocks.full_count.defined() != found.blocks.full_indices.defined())
    raise_type_error("flex_attention: a count of blocks without their list");
  return found;
}

PyObject* three(const Tensor& a, const Tensor& b, const Tensor& c) {
  return Py_BuildValue("(NNN)", wrap(a), wrap(b), wrap(c));
}

PyObject* py_layout(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* given = nullptr;
    int backward = 0;
    if (!PyArg_ParseTuple(args, "O!p:flex_layout", &PyTuple_Type, &given, &backward))
      throw python_error();
    const auto found = at::native::flex::layout_of(operands_of(given), backward != 0);
    return Py_BuildValue("(NLL)", new_bool(found.few), static_cast<long long>(found.rows),
                         static_cast<long long>(found.columns));
  });
}

PyObject* py_forward(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *given = nullptr, *full = nullptr, *partial = nullptr, *buffers = nullptr;
    if (!PyArg_ParseTuple(args, "O!OOO:flex_forward", &PyTuple_Type, &given, &full, &partial,
                          &buffers))
      throw python_error();
    inductor::FlexGraphs graphs;
    graphs.full = graph_of(full), graphs.partial = graph_of(partial);
    graphs.buffers = values_of(buffers);
    const auto found = inductor::flex_forward(operands_of(given), graphs);
    tell_of_waiting_kernels();
    return three(found.out, found.logsumexp, found.largest);
  });
}

PyObject* py_backward(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *given = nullptr, *out = nullptr, *sums = nullptr, *grad = nullptr,
             *grad_sums = nullptr, *functions = nullptr, *buffers = nullptr, *parts = nullptr;
    if (!PyArg_ParseTuple(args, "O!OOOOO!OO!:flex_backward", &PyTuple_Type, &given, &out, &sums,
                          &grad, &grad_sums, &PyTuple_Type, &functions, &buffers, &PyList_Type,
                          &parts))
      throw python_error();
    PyObject* f[4] = {};
    if (!PyArg_ParseTuple(functions, "OOOO", &f[0], &f[1], &f[2], &f[3])) throw python_error();
    inductor::FlexGraphs graphs;
    graphs.full = graph_of(f[0]), graphs.partial = graph_of(f[1]);
    graphs.full_gradient = graph_of(f[2]), graphs.partial_gradient = graph_of(f[3]);
    graphs.buffers = values_of(buffers);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parts); ++i)
      graphs.sums.push_back(values_of(PyList_GET_ITEM(parts, i)));
    const Operands operands = operands_of(given);
    const at::native::flex::Results results{a_tensor(out, "out"), a_tensor(sums, "logsumexp"),
                                            Tensor()};
    const Tensor to_out = a_tensor(grad, "the gradient");
    const Tensor to_sums = tensor_or_none(grad_sums, "the gradient of logsumexp");
    const auto type = operands.query.scalar_type();
    TORCH_CHECK(results.out.scalar_type() == type && results.logsumexp.scalar_type() == type &&
                    to_out.scalar_type() == type &&
                    (!to_sums.defined() || to_sums.scalar_type() == type) &&
                    to_out.sizes() == results.out.sizes() &&
                    results.logsumexp.sizes() == operands.query.sizes().slice(0, 3) &&
                    (!to_sums.defined() || to_sums.sizes() == results.logsumexp.sizes()) &&
                    results.out.sizes().slice(0, 3) == operands.query.sizes().slice(0, 3) &&
                    results.out.size(3) == operands.value.size(3),
                "flex_attention: results and gradients do not fit the operands");
    const auto found = inductor::flex_backward(operands, results, to_out, to_sums, graphs);
    tell_of_waiting_kernels();
    return three(found.query, found.key, found.value);
  });
}

PyMethodDef functions[] = {
    {"flex_layout", py_layout, METH_VARARGS,
     "flex_layout(operands, backward): (few queries, rows, columns) of tiles"},
    {"flex_forward", py_forward, METH_VARARGS,
     "flex_forward(operands, full, partial, buffers): output, logarithms of sums, largest scores"},
    {"flex_backward", py_backward, METH_VARARGS,
     "flex_backward(operands, out, logsumexp, grad, grad_logsumexp, functions, buffers, parts): "
     "gradients of queries, keys and values"},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool add_flex_functions(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

} // namespace torch::python
