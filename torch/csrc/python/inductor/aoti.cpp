// torch._C._aoti: compiled models in files. torch._inductor.package is the face of it.
#include <torch/csrc/python/inductor/inductor.h>

#include <memory>
#include <new>
#include <unordered_map>

#include <torch/csrc/inductor/aoti_file.h>
#include <torch/csrc/inductor/aoti_model.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner_cpu.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner_cuda.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {
namespace {

using at::Tensor;
using inductor::AOTIModelContainerRunner;
using inductor::AOTIModelPackageLoader;

// A runner by itself, or the loader that holds one.
struct PyRunner {
  PyObject_HEAD std::unique_ptr<AOTIModelPackageLoader> loader;
  std::unique_ptr<AOTIModelContainerRunner> runner;
  AOTIModelContainerRunner* get() const { return loader ? loader->get_runner() : runner.get(); }
};
PyTypeObject LoaderType = type_object("torch._C._aoti.AOTIModelPackageLoader");
PyTypeObject CpuType = type_object("torch._C._aoti.AOTIModelContainerRunnerCpu");
PyTypeObject CudaType = type_object("torch._C._aoti.AOTIModelContainerRunnerCuda");

PyRunner* runner_of(PyObject* self) { return reinterpret_cast<PyRunner*>(self); }
AOTIModelContainerRunner& held(PyObject* self) {
  AOTIModelContainerRunner* found = runner_of(self)->get();
  if (!found) raise(PyExc_RuntimeError, "the compiled model was not loaded");
  return *found;
}

// ---- making one
PyObject* new_runner(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  new (&runner_of(self)->loader) std::unique_ptr<AOTIModelPackageLoader>();
  new (&runner_of(self)->runner) std::unique_ptr<AOTIModelContainerRunner>();
  return self;
}
void free_runner(PyObject* self) {
  runner_of(self)->loader.~unique_ptr();
  runner_of(self)->runner.~unique_ptr();
  Py_TYPE(self)->tp_free(self);
}

size_t count_of(Py_ssize_t given) {
  if (given < 1) raise(PyExc_ValueError, "the number of instances must be positive");
  return static_cast<size_t>(given);
}

int init_loader(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> int {
    const char* names[] = {"model_package_path", "model_name",   "run_single_threaded",
                           "num_runners",        "device_index", nullptr};
    const char *path = nullptr, *name = "model";
    int single = 0, device = -1;
    Py_ssize_t count = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|spni", const_cast<char**>(names), &path,
                                     &name, &single, &count, &device))
      throw python_error();
    if (device < -1 || device > 127) raise(PyExc_ValueError, "device_index is out of range");
    runner_of(self)->loader = std::make_unique<AOTIModelPackageLoader>(
        path, name, single != 0, count_of(count), static_cast<c10::DeviceIndex>(device));
    return 0;
  });
}
int init_cpu(PyObject* self, PyObject* args, PyObject*) {
  return guarded([&]() -> int {
    const char* path = nullptr;
    Py_ssize_t count = 1;
    if (!PyArg_ParseTuple(args, "s|n", &path, &count)) throw python_error();
    runner_of(self)->runner =
        std::make_unique<inductor::AOTIModelContainerRunnerCpu>(path, count_of(count));
    return 0;
  });
}
int init_cuda_runner(PyObject* self, PyObject* args, PyObject*) {
  return guarded([&]() -> int {
    const char *path = nullptr, *device = "cuda", *unused = nullptr;
    Py_ssize_t count = 1;
    if (!PyArg_ParseTuple(args, "s|nss", &path, &count, &device, &unused)) throw python_error();
    runner_of(self)->runner =
        std::make_unique<inductor::AOTIModelContainerRunnerCuda>(path, count_of(count), device);
    return 0;
  });
}

// ---- running
std::vector<Tensor> tensors_of(PyObject* list) {
  const PyRef items = checked(PySequence_Fast(list, "a compiled model takes a list of tensors"));
  std::vector<Tensor> tensors;
  for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(items.get()); i < n; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!is_tensor(item)) raise_type_error("a compiled model takes a list of tensors");
    tensors.push_back(tensor_of(item));
  }
  return tensors;
}
PyObject* list_of_tensors(std::vector<Tensor>&& tensors) {
  PyRef list = checked(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                    checked(wrap(std::move(tensors[i]))).release());
  return list.release();
}

PyObject* run(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *inputs = nullptr, *stream = nullptr;
    if (!PyArg_ParseTuple(args, "O|O:run", &inputs, &stream)) throw python_error();
    AOTIModelContainerRunner& runner = held(self);
    std::vector<Tensor> given = tensors_of(inputs), found;
    {
      NoGil off;
      found = runner.boxed_run(std::move(given));
    }
    return list_of_tensors(std::move(found));
  });
}
// The same, and the list gives its tensors up.
PyObject* boxed_run(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *inputs = nullptr, *stream = nullptr;
    if (!PyArg_ParseTuple(args, "O!|O:boxed_run", &PyList_Type, &inputs, &stream))
      throw python_error();
    AOTIModelContainerRunner& runner = held(self);
    std::vector<Tensor> given = tensors_of(inputs), found;
    check_status(PyList_SetSlice(inputs, 0, PyList_GET_SIZE(inputs), nullptr));
    {
      NoGil off;
      found = runner.boxed_run(std::move(given));
    }
    return list_of_tensors(std::move(found));
  });
}

// ---- what it says of itself
PyObject* texts(const std::vector<std::string>& values) {
  PyRef list = checked(PyList_New(0));
  for (const std::string& value : values)
    check_status(PyList_Append(list.get(), checked(wrap(value)).get()));
  return list.release();
}
template <class M, class F> PyObject* dict_of(const M& map, const F& to_python) {
  PyRef dict = checked(PyDict_New());
  for (const auto& [name, value] : map)
    check_status(
        PyDict_SetItem(dict.get(), checked(wrap(name)).get(), checked(to_python(value)).get()));
  return dict.release();
}
PyObject* text_dict(const std::unordered_map<std::string, std::string>& map) {
  return dict_of(map, [](const std::string& value) { return wrap(value); });
}

PyObject* get_call_spec(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* { return texts(held(self).get_call_spec()); });
}
PyObject* get_metadata(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const auto& found = held(self).model().file().metadata;
    return text_dict({found.begin(), found.end()});
  });
}
PyObject* get_constant_fqns(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    held(self);
    return texts(runner_of(self)->loader->get_constant_fqns());
  });
}
PyObject* names_to_fqns(PyObject* self, PyObject*) {
  return guarded(
      [&]() -> PyObject* { return text_dict(held(self).getConstantNamesToOriginalFQNs()); });
}
PyObject* names_to_dtypes(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    return dict_of(held(self).getConstantNamesToDtypes(),
                   [](int32_t value) { return wrap(static_cast<int64_t>(value)); });
  });
}
// The kinds of the flat inputs: "tensor", "int", "float" or "bool".
PyObject* input_kinds(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    static const char* const kNames[] = {"tensor", "int", "float", "bool"};
    std::vector<std::string> kinds;
    for (const inductor::AotiInput& input : held(self).model().file().inputs)
      kinds.emplace_back(kNames[static_cast<size_t>(input.kind)]);
    return texts(kinds);
  });
}

// ---- constants
std::unordered_map<std::string, Tensor> tensor_map(PyObject* dict) {
  std::unordered_map<std::string, Tensor> found;
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &key, &value)) {
    if (!PyUnicode_Check(key) || !is_tensor(value))
      raise_type_error("constants are given as a dictionary of names and tensors");
    found[std::string(utf8(key))] = tensor_of(value);
  }
  return found;
}
PyObject* update_constants(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    const char* names[] = {"constants_map", "use_inactive", "validate_full_updates", "user_managed",
                           nullptr};
    PyObject* map = nullptr;
    int inactive = 0, full = 0, managed = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!pp|p", const_cast<char**>(names),
                                     &PyDict_Type, &map, &inactive, &full, &managed))
      throw python_error();
    AOTIModelContainerRunner& runner = held(self);
    const auto values = tensor_map(map);
    runner.update_constant_buffer(values, inactive != 0, full != 0, managed != 0);
    Py_RETURN_NONE;
  });
}
PyObject* extract_constants(PyObject* self, PyObject* inactive) {
  return guarded([&]() -> PyObject* {
    return dict_of(held(self).extract_constants_map(PyObject_IsTrue(inactive) == 1),
                   [](const Tensor& value) { return wrap(value); });
  });
}
PyObject* run_const_fold(PyObject* self, PyObject* inactive) {
  return guarded([&]() -> PyObject* {
    held(self).run_const_fold(PyObject_IsTrue(inactive) == 1);
    Py_RETURN_NONE;
  });
}
PyObject* swap_constants(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    held(self).swap_constant_buffer();
    Py_RETURN_NONE;
  });
}
PyObject* free_inactive(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    held(self).free_inactive_constant_buffer();
    Py_RETURN_NONE;
  });
}

PyMethodDef runner_methods[] = {
    {"run", run, METH_VARARGS, nullptr},
    {"boxed_run", boxed_run, METH_VARARGS, nullptr},
    {"get_call_spec", get_call_spec, METH_NOARGS, nullptr},
    {"get_constant_names_to_original_fqns", names_to_fqns, METH_NOARGS, nullptr},
    {"get_constant_names_to_dtypes", names_to_dtypes, METH_NOARGS, nullptr},
    {"update_constant_buffer", as_method(update_constants), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"extract_constants_map", extract_constants, METH_O, nullptr},
    {"run_const_fold", run_const_fold, METH_O, nullptr},
    {"swap_constant_buffer", swap_constants, METH_NOARGS, nullptr},
    {"free_inactive_constant_buffer", free_inactive, METH_NOARGS, nullptr},
    {"input_kinds", input_kinds, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef loader_methods[] = {
    {"run", run, METH_VARARGS, nullptr},
    {"boxed_run", boxed_run, METH_VARARGS, nullptr},
    {"get_call_spec", get_call_spec, METH_NOARGS, nullptr},
    {"get_metadata", get_metadata, METH_NOARGS, nullptr},
    {"get_constant_fqns", get_constant_fqns, METH_NOARGS, nullptr},
    {"load_constants", as_method(update_constants), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"update_constant_buffer", as_method(update_constants), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"extract_constants_map", extract_constants, METH_O, nullptr},
    {"run_const_fold", run_const_fold, METH_O, nullptr},
    {"swap_constant_buffer", swap_constants, METH_NOARGS, nullptr},
    {"free_inactive_constant_buffer", free_inactive, METH_NOARGS, nullptr},
    {"input_kinds", input_kinds, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// ---- functions
PyObject* checksum(PyObject*, PyObject* object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) < 0) return nullptr;
  const uint64_t found = inductor::aoti_checksum(view.buf, static_cast<size_t>(view.len));
  PyBuffer_Release(&view);
  return PyLong_FromUnsignedLongLong(found);
}
PyObject* dtype_number(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    if (!is_dtype(object)) raise_type_error("dtype_number() takes a dtype");
    return PyLong_FromLong(static_cast<long>(dtype_value(object)));
  });
}
PyObject* load_metadata(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char *path = nullptr, *name = "model";
    if (!PyArg_ParseTuple(args, "s|s", &path, &name)) throw python_error();
    return text_dict(AOTIModelPackageLoader::load_metadata_from_package(path, name));
  });
}
PyObject* model_names(PyObject*, PyObject* path) {
  return guarded([&]() -> PyObject* {
    return texts(AOTIModelPackageLoader::model_names(std::string(utf8(path))));
  });
}

PyMethodDef functions[] = {
    {"checksum", checksum, METH_O, "checksum(bytes): as files of compiled models hold it"},
    {"dtype_number", dtype_number, METH_O, "dtype_number(dtype): as files hold it"},
    {"load_metadata_from_package", load_metadata, METH_VARARGS, nullptr},
    {"model_names", model_names, METH_O, "model_names(path): the models of a package"},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "torch._C._aoti",
                          nullptr,
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

bool add_runner(PyObject* module, PyTypeObject& type, initproc init, PyMethodDef* methods) {
  type.tp_basicsize = sizeof(PyRunner);
  type.tp_flags = Py_TPFLAGS_DEFAULT;
  type.tp_new = new_runner;
  type.tp_init = init;
  type.tp_dealloc = free_runner;
  type.tp_methods = methods;
  return add_type(module, &type);
}

} // namespace

bool init_aoti(PyObject* module) {
  PyRef space(PyModule_Create(&definition));
  return space && add_runner(space.get(), LoaderType, init_loader, loader_methods) &&
         add_runner(space.get(), CpuType, init_cpu, runner_methods) &&
         add_runner(space.get(), CudaType, init_cuda_runner, runner_methods) &&
         PyModule_AddObjectRef(module, "_aoti", space.get()) == 0;
}

} // namespace torch::python
