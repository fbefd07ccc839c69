// torch._C._CUDAGraph: recording and replaying graphs. torch.cuda.CUDAGraph is its subclass.
#include <torch/csrc/python/cuda/cuda.h>

#include <memory>
#include <new>

#include <torch/csrc/python/args/keyword_args.h>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGraph.h>

namespace torch::python {
namespace {

using c10::cuda::CUDAGraph;

struct PyGraph {
  PyObject_HEAD CUDAGraph graph;
};
PyTypeObject GraphType = type_object("torch._C._CUDAGraph");

CUDAGraph& graph_of(PyObject* self) { return reinterpret_cast<PyGraph*>(self)->graph; }

PyObject* graph_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) new (&graph_of(self)) CUDAGraph;
  return self;
}
void graph_dealloc(PyObject* self) {
  std::destroy_at(&graph_of(self));
  Py_TYPE(self)->tp_free(self);
}

// A pool is a pair of numbers, the second of which counts.
uint64_t pool_number(PyObject* pool) {
  unsigned long long first = 0, second = 0;
  if (!PyTuple_Check(pool) || !PyArg_ParseTuple(pool, "KK", &first, &second)) {
    PyErr_Clear();
    raise_type_error("pool must be what graph_pool_handle() or CUDAGraph.pool() returned");
  }
  return second;
}

c10::cuda::CUstreamCaptureMode mode_named(std::string_view name) {
  if (name == "global") return c10::cuda::CU_STREAM_CAPTURE_MODE_GLOBAL;
  if (name == "thread_local") return c10::cuda::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  TORCH_CHECK(name == "relaxed", "Unknown capture error mode. Expected `global`, `thread_local`, ",
              "or `relaxed`, got ", name);
  return c10::cuda::CU_STREAM_CAPTURE_MODE_RELAXED;
}

PyObject* capture_begin(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    KeywordArgs a("capture_begin", {"pool", "capture_error_mode"}, 2, 0, args, n, names);
    const uint64_t pool = a.present(0) ? pool_number(a[0]) : 0;
    if (a.present(1) && !PyUnicode_Check(a[1])) a.wrong_type(1, "str");
    graph_of(self).capture_begin(pool, mode_named(a.present(1) ? utf8(a[1]) : "global"));
    return new_none();
  });
}
PyObject* capture_end(PyObject* self, PyObject*) {
  return guarded([&] {
    graph_of(self).capture_end();
    return new_none();
  });
}
PyObject* replay(PyObject* self, PyObject*) {
  return guarded([&] {
    graph_of(self).replay();
    return new_none();
  });
}
PyObject* reset(PyObject* self, PyObject*) {
  return guarded([&] {
    graph_of(self).reset();
    return new_none();
  });
}
PyObject* instantiate(PyObject*, PyObject*) { return new_none(); }
PyObject* pool(PyObject* self, PyObject*) {
  return guarded([&] {
    return Py_BuildValue("(KK)", 0ull, static_cast<unsigned long long>(graph_of(self).pool()));
  });
}
PyObject* debug_dump(PyObject* self, PyObject* path) {
  return guarded([&] {
    PyRef text = checked(PyOS_FSPath(path));
    if (!PyUnicode_Check(text.get())) raise_type_error("debug_dump(): expected a path as text");
    graph_of(self).debug_dump(utf8(text.get()).data());
    return new_none();
  });
}
PyObject* raw_graph(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromVoidPtr(graph_of(self).raw_graph()); });
}
PyObject* raw_executable(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromVoidPtr(graph_of(self).raw_executable()); });
}
PyObject* enable_debug_mode(PyObject*, PyObject*) { return new_none(); }
PyObject* pool_handle(PyObject*, PyObject*) {
  const auto number = c10::cuda::CUDACachingAllocator::new_graph_pool();
  return Py_BuildValue("(KK)", 0ull, static_cast<unsigned long long>(number));
}

PyMethodDef methods[] = {
    {"capture_begin", as_method(capture_begin), METH_FASTCALL | METH_KEYWORDS,
     "capture_begin(pool=None, capture_error_mode='global')\n\nStarts a recording."},
    {"capture_end", capture_end, METH_NOARGS, "Ends the recording."},
    {"instantiate", instantiate, METH_NOARGS, "Nothing: capture_end() has done it."},
    {"replay", replay, METH_NOARGS, "Queues the recorded work on the current stream."},
    {"reset", reset, METH_NOARGS, "Forgets the recording."},
    {"pool", pool, METH_NOARGS, "The graph's memory, for other graphs to share."},
    {"debug_dump", debug_dump, METH_O,
     "debug_dump($self, debug_path, /)\n--\n\nWrites the recording to a file, in the dot "
     "language."},
    {"enable_debug_mode", enable_debug_mode, METH_NOARGS,
     "Nothing: a recording is always kept for debug_dump()."},
    {"raw_cuda_graph", raw_graph, METH_NOARGS, "The driver's graph as a number."},
    {"raw_cuda_graph_exec", raw_executable, METH_NOARGS,
     "The driver's executable graph as a number."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef functions[] = {{"_graph_pool_handle", pool_handle, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_cuda_graph(PyObject* module) {
  GraphType.tp_basicsize = sizeof(PyGraph);
  GraphType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  GraphType.tp_new = graph_new;
  GraphType.tp_dealloc = graph_dealloc;
  GraphType.tp_methods = methods;
  GraphType.tp_doc = "Work recorded once and queued again as a whole.";
  return add_type(module, &GraphType) && PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
