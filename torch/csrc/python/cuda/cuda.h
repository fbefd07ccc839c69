// torch.Stream, torch.Event and the functions of torch._C behind torch.cuda. Nothing here loads the
// driver before it is called.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <c10/cuda/CUDAEvent.h>

namespace torch::python {

struct PyStream {
  PyObject_HEAD c10::cuda::CUDAStream stream;
  PyObject* before; // while entered: the stream that was current; a list for nested entries
  PyObject* weakrefs;
};
struct PyEvent {
  PyObject_HEAD c10::cuda::CUDAEvent event;
  PyObject* weakrefs;
};
extern PyTypeObject StreamType;
extern PyTypeObject EventType;

inline bool is_stream(PyObject* o) { return PyObject_TypeCheck(o, &StreamType); }
inline bool is_event(PyObject* o) { return PyObject_TypeCheck(o, &EventType); }
// The CPU has one stream, the order of the program; its device index is -1 and nothing ever waits
// for it.
inline bool is_cpu_stream(PyObject* o) {
  return reinterpret_cast<PyStream*>(o)->stream.device_index() < 0;
}
inline c10::cuda::CUDAStream stream_value(PyObject* o) {
  TORCH_CHECK(!is_cpu_stream(o), "Expected a stream of a cuda device, but got one of the cpu");
  return reinterpret_cast<PyStream*>(o)->stream;
}
inline c10::cuda::CUDAEvent& event_value(PyObject* o) {
  return reinterpret_cast<PyEvent*>(o)->event;
}
// torch.cuda.Stream and torch.cuda.Event objects.
PyObject* wrap_stream(c10::cuda::CUDAStream stream);
// An object of `type`, a subtype of StreamType.
PyObject* new_stream(PyTypeObject* type, c10::cuda::CUDAStream stream);

// A device argument of a torch.cuda function: None is the current device, a number its index.
c10::DeviceIndex cuda_index(PyObject* device);

bool init_cuda(PyObject* module);
bool init_cuda_graph(PyObject* module);
bool init_cuda_memory(PyObject* module);
bool init_cuda_profiler(PyObject* module);
bool init_cuda_stream(PyObject* module);
bool init_cudnn(PyObject* module);

} // namespace torch::python
