// torch._to_functional_tensor and its family: functions of torch._C, which torch/__init__.py shows
// under the names that programs know.
#include <torch/csrc/python/dispatch/functional.h>

#include <ATen/functional/FunctionalTensor.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {
namespace {

using namespace at::functional;

const at::Tensor& tensor_argument(PyObject* o, const char* function) {
  if (!is_tensor(o))
    raise_type_error(std::string(function) + "(): expected a Tensor, got " + type_name(o));
  return tensor_of(o);
}

Cell& cell_argument(PyObject* o, const char* function) {
  FunctionalImpl* impl = functional_impl(tensor_argument(o, function));
  TORCH_CHECK(impl != nullptr, function, "(): expected a functional tensor");
  return impl->cell;
}

// ---- making and reading
PyObject* py_to(PyObject*, PyObject* o) {
  return guarded([&] { return wrap(to_functional(tensor_argument(o, "_to_functional_tensor"))); });
}
PyObject* py_from(PyObject*, PyObject* o) {
  return guarded([&] { return wrap(cell_argument(o, "_from_functional_tensor").value); });
}
PyObject* py_is(PyObject*, PyObject* o) {
  return guarded(
      [&] { return new_bool(is_tensor(o) && functional_impl(tensor_of(o)) != nullptr); });
}
PyObject* py_is_base(PyObject*, PyObject* o) {
  return guarded(
      [&] { return new_bool(cell_argument(o, "_is_functional_tensor_base").steps.empty()); });
}
PyObject* py_sync(PyObject*, PyObject* o) {
  return guarded([&] {
    cell_argument(o, "_sync");
    sync(tensor_of(o), tensor_space());
    return new_none();
  });
}
PyObject* py_freeze(PyObject*, PyObject* o) {
  return guarded([&] {
    cell_argument(o, "_freeze_functional_tensor").alias->frozen = true;
    return new_none();
  });
}
PyObject* py_replace(PyObject*, PyObject* args) {
  PyObject *self = nullptr, *other = nullptr;
  if (!PyArg_ParseTuple(args, "OO:_functionalize_replace", &self, &other)) return nullptr;
  return guarded([&] {
    cell_argument(self, "_functionalize_replace");
    const at::Tensor& value = tensor_argument(other, "_functionalize_replace");
    TORCH_CHECK(functional_impl(value) == nullptr,
                "_functionalize_replace(): the value must not be a functional tensor");
    replace(tensor_of(self), value, tensor_space());
    return new_none();
  });
}
PyObject* py_commit(PyObject*, PyObject* o) {
  return guarded([&] {
    cell_argument(o, "_functionalize_commit_update");
    commit(tensor_of(o), tensor_space());
    return new_none();
  });
}
PyObject* py_unsafe_set(PyObject*, PyObject* args) {
  PyObject *self = nullptr, *source = nullptr;
  if (!PyArg_ParseTuple(args, "OO:_functionalize_unsafe_set", &self, &source)) return nullptr;
  return guarded([&] {
    cell_argument(self, "_functionalize_unsafe_set");
    set_memory(tensor_of(self), tensor_argument(source, "_functionalize_unsafe_set"));
    return new_none();
  });
}

// ---- settings of the thread
PyObject* py_enable(PyObject*, PyObject* args, PyObject* kwargs) {
  const char* names[] = {"reapply_views", nullptr};
  int reapply = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:_enable_functionalization",
                                   const_cast<char**>(names), &reapply))
    return nullptr;
  return guarded([&] {
    TORCH_CHECK(!is_enabled(), "functionalisation is enabled already on this thread");
    set_reapplies_views(reapply != 0);
    set_enabled(true);
    return new_none();
  });
}
PyObject* py_disable(PyObject*, PyObject*) {
  return guarded([] {
    set_enabled(false);
    return new_none();
  });
}
PyObject* py_reapply(PyObject*, PyObject* on) {
  return guarded([&] {
    const int truth = PyObject_IsTrue(on);
    check_status(truth);
    return new_bool(set_reapplies_views(truth != 0));
  });
}
PyObject* py_crosscheck(PyObject*, PyObject* on) {
  return guarded([&] {
    const int truth = PyObject_IsTrue(on);
    check_status(truth);
    return new_bool(set_crosschecks(truth != 0));
  });
}
PyObject* py_reapply_tls(PyObject*, PyObject*) { return new_bool(reapplies_views()); }

// ---- reports of writes
template <class F> PyObject* ask(PyObject* o, const char* function, F&& question) {
  return guarded([&]() -> PyObject* { return wrap(question(cell_argument(o, function))); });
}
PyObject* py_data_written(PyObject*, PyObject* o) {
  return ask(o, "_functionalize_has_data_mutation", [](Cell& c) { return c.alias->writes > 0; });
}
PyObject* py_metadata_written(PyObject*, PyObject* o) {
  return ask(o, "_functionalize_has_metadata_mutation", [](Cell& c) { return c.metadata_written; });
}
PyObject* py_storage_changed(PyObject*, PyObject* o) {
  return ask(o, "_functionalize_was_storage_changed", [](Cell& c) { return c.storage_changed; });
}
PyObject* py_storage_resized(PyObject*, PyObject* o) {
  return ask(o, "_functionalize_was_inductor_storage_resized",
             [](Cell& c) { return c.alias->storage_resizes > 0; });
}
PyObject* py_all_hidden(PyObject*, PyObject* o) {
  return ask(o, "_functionalize_are_all_mutations_hidden_from_autograd",
             [](Cell& c) { return c.alias->hidden_writes >= c.alias->writes; });
}
PyObject* py_all_without_grad(PyObject*, PyObject* o) {
  return ask(o, "_functionalize_are_all_mutations_under_no_grad_or_inference_mode", [](Cell& c) {
    return c.alias->hidden_writes + c.alias->writes_without_grad >= c.alias->writes;
  });
}
PyObject* py_one_of_many(PyObject*, PyObject* o) {
  return ask(o, "_functionalize_is_multi_output_view", [](Cell& c) { return c.one_of_many; });
}
PyObject* py_symbolic(PyObject*, PyObject* o) {
  return ask(o, "_functionalize_is_symbolic",
             [](Cell& c) { return c.value.unsafeGetTensorImpl()->has_symbolic_sizes(); });
}
int64_t number(uint64_t n) { return static_cast<int64_t>(n); }
PyObject* py_count_writes(PyObject*, PyObject* o) {
  return ask(o, "_functionalize_mutation_counter", [](Cell& c) { return number(c.alias->writes); });
}
PyObject* py_count_changes(PyObject*, PyObject* o) {
  return ask(o, "_functionalize_storage_changed_counter",
             [](Cell& c) { return number(c.alias->storage_changes); });
}
PyObject* py_count_resizes(PyObject*, PyObject* o) {
  return ask(o, "_functionalize_inductor_storage_resized_counter",
             [](Cell& c) { return number(c.alias->storage_resizes); });
}
PyObject* py_storage_size(PyObject*, PyObject* args) {
  PyObject* o = nullptr;
  int before = 0;
  if (!PyArg_ParseTuple(args, "Op:_functionalize_get_storage_size", &o, &before)) return nullptr;
  return ask(o, "_functionalize_get_storage_size", [&](Cell& c) {
    return number(before ? c.alias->first_nbytes : c.alias->storage->nbytes());
  });
}
PyObject* py_hide(PyObject*, PyObject* o) {
  return guarded([&] {
    Alias& alias = *cell_argument(o, "_functionalize_mark_mutation_hidden_from_autograd").alias;
    alias.hidden_writes = alias.writes;
    return new_none();
  });
}
PyObject* py_mark_changed(PyObject*, PyObject* o) {
  return guarded([&] {
    Cell& cell = cell_argument(o, "_functionalize_mark_storage_changed");
    cell.storage_changed = true;
    ++cell.alias->storage_changes;
    return new_none();
  });
}

// _functionalize_mirror_shape(wrapper, elem): a subclass that wraps a functional tensor looks as it
// does, down to the storage that tells who shares memory.
PyObject* py_mirror_shape(PyObject*, PyObject* args) {
  PyObject *wrapper = nullptr, *elem = nullptr;
  if (!PyArg_ParseTuple(args, "OO:_functionalize_mirror_shape", &wrapper, &elem)) return nullptr;
  return guarded([&] {
    at::TensorImpl* to =
        tensor_argument(wrapper, "_functionalize_mirror_shape").unsafeGetTensorImpl();
    const at::TensorImpl& from =
        *tensor_argument(elem, "_functionalize_mirror_shape").unsafeGetTensorImpl();
    if (from.has_symbolic_sizes()) {
      to->set_symbolic_geometry(from.sym_sizes(), from.sym_strides(), from.sym_storage_offset());
    } else {
      to->set_geometry(from.sizes(), from.strides(), from.storage_offset());
    }
    to->set_dtype(from.dtype());
    to->set_storage(from.storage());
    to->set_conj(from.is_conj());
    to->set_neg(from.is_neg());
    return new_none();
  });
}

// _functionalize_call(func, args, kwargs): calls an operator with functionalisation on and views as
// views.
class Enabled {
 public:
  Enabled() : keys_(c10::tls_dispatch_keys), views_(set_reapplies_views(true)) {
    set_enabled(true);
    const uint64_t bit = c10::DispatchKeySet(c10::DispatchKey::Functionalize).raw();
    c10::tls_dispatch_keys.excluded &= ~bit;
  }
  ~Enabled() {
    c10::tls_dispatch_keys = keys_;
    set_reapplies_views(views_);
  }
  Enabled(const Enabled&) = delete;
  Enabled& operator=(const Enabled&) = delete;

 private:
  c10::LocalDispatchKeySet keys_;
  bool views_;
};
PyObject* py_call(PyObject*, PyObject* args) {
  PyObject *func = nullptr, *given = nullptr, *kwargs = nullptr;
  if (!PyArg_ParseTuple(args, "OO!O!:_functionalize_call", &func, &PyTuple_Type, &given,
                        &PyDict_Type, &kwargs))
    return nullptr;
  return guarded([&] {
    Enabled on;
    return PyObject_Call(func, given, kwargs);
  });
}

// The wrapper has a gradient where what it stands for has one.
PyObject* py_mirror(PyObject*, PyObject* args) {
  PyObject *source = nullptr, *target = nullptr;
  if (!PyArg_ParseTuple(args, "OO:_mirror_autograd_meta_to", &source, &target)) return nullptr;
  return guarded([&] {
    const at::Tensor& from = tensor_argument(source, "_mirror_autograd_meta_to");
    const at::Tensor& to = tensor_argument(target, "_mirror_autograd_meta_to");
    if (from.requires_grad() != to.requires_grad())
      autograd::set_requires_grad(to, from.requires_grad());
    return new_none();
  });
}

PyMethodDef functions[] = {
    {"_to_functional_tensor", py_to, METH_O, nullptr},
    {"_from_functional_tensor", py_from, METH_O, nullptr},
    {"_is_functional_tensor", py_is, METH_O, nullptr},
    {"_is_functional_tensor_base", py_is_base, METH_O, nullptr},
    {"_sync", py_sync, METH_O, nullptr},
    {"_functionalize_sync", py_sync, METH_O, nullptr},
    {"_freeze_functional_tensor", py_freeze, METH_O, nullptr},
    {"_functionalize_replace", py_replace, METH_VARARGS, nullptr},
    {"_functionalize_commit_update", py_commit, METH_O, nullptr},
    {"_functionalize_unsafe_set", py_unsafe_set, METH_VARARGS, nullptr},
    {"_enable_functionalization", as_method(py_enable), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_disable_functionalization", py_disable, METH_NOARGS, nullptr},
    {"_functionalize_enable_reapply_views", py_reapply, METH_O, nullptr},
    {"_functionalize_enable_crossref", py_crosscheck, METH_O, nullptr},
    {"_functionalization_reapply_views_tls", py_reapply_tls, METH_NOARGS, nullptr},
    {"_functionalize_has_data_mutation", py_data_written, METH_O, nullptr},
    {"_functionalize_has_metadata_mutation", py_metadata_written, METH_O, nullptr},
    {"_functionalize_was_storage_changed", py_storage_changed, METH_O, nullptr},
    {"_functionalize_was_inductor_storage_resized", py_storage_resized, METH_O, nullptr},
    {"_functionalize_are_all_mutations_hidden_from_autograd", py_all_hidden, METH_O, nullptr},
    {"_functionalize_are_all_mutations_under_no_grad_or_inference_mode", py_all_without_grad,
     METH_O, nullptr},
    {"_functionalize_is_multi_output_view", py_one_of_many, METH_O, nullptr},
    {"_functionalize_is_symbolic", py_symbolic, METH_O, nullptr},
    {"_functionalize_mutation_counter", py_count_writes, METH_O, nullptr},
    {"_functionalize_storage_changed_counter", py_count_changes, METH_O, nullptr},
    {"_functionalize_inductor_storage_resized_counter", py_count_resizes, METH_O, nullptr},
    {"_functionalize_get_storage_size", py_storage_size, METH_VARARGS, nullptr},
    {"_functionalize_mark_mutation_hidden_from_autograd", py_hide, METH_O, nullptr},
    {"_functionalize_mark_storage_changed", py_mark_changed, METH_O, nullptr},
    {"_functionalize_mirror_shape", py_mirror_shape, METH_VARARGS, nullptr},
    {"_functionalize_call", py_call, METH_VARARGS, nullptr},
    {"_mirror_autograd_meta_to", py_mirror, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_functional(PyObject* module) {
  // The names for torch/__init__.py, so that they stand in one list.
  PyRef names(PyList_New(0));
  for (const PyMethodDef* f = functions; names && f->ml_name; ++f) {
    PyRef name(PyUnicode_FromString(f->ml_name));
    if (!name || PyList_Append(names.get(), name.get()) < 0) return false;
  }
  return names && PyModule_AddFunctions(module, functions) == 0 &&
         add_object(module, "_functional_tensor_names", names.release());
}

} // namespace torch::python
