// See autograd_hooks.h.
#include <torch/csrc/python/autograd/hooks.h>

#include <torch/csrc/python/tensor/wrap.h>

namespace torch::python {
namespace {

using at::Tensor;
using autograd::TensorVec;

PyObject* ordered_dict_class = nullptr;
PyObject* removable_handle_class = nullptr;

// A dictionary of hooks. Dropped with the GIL, from whichever thread frees the graph.
class HookDict {
 public:
  explicit HookDict(PyObject* dict) : dict_(PyRef::borrow(dict)) {}
  ~HookDict() {
    if (!python_exists()) {
      dict_.release();
      return;
    }
    WithGil gil;
    dict_ = PyRef();
  }
  HookDict(const HookDict&) = delete;
  HookDict& operator=(const HookDict&) = delete;
  PyObject* get() const { return dict_.get(); }
  // A list of the hooks as they are now: each may remove itself or others while they run.
  PyRef values() const {
    PyRef items = checked(PyMapping_Values(dict_.get()));
    return checked(PySequence_Fast(items.get(), "hooks must be a dictionary"));
  }

 private:
  PyRef dict_;
};

std::string name_of(PyObject* hook) {
  PyRef name(PyObject_GetAttrString(hook, "__name__"));
  if (!name || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    return "<unknown>";
  }
  return text_of(name.get());
}

// What a hook gives for a gradient; it may not be another kind of tensor.
Tensor replacement(PyObject* hook, PyObject* result, const Tensor& before) {
  if (!is_tensor(result)) {
    raise_type_error(c10::str("expected Variable, but hook returned ", type_name(result)));
  }
  const Tensor& now = tensor_of(result);
  if (!before.defined()) return now;
  TORCH_CHECK(now.scalar_type() == before.scalar_type(), "hook '", name_of(hook),
              "' has changed the type of value (was ", before.scalar_type(), " got ",
              now.scalar_type(), ")");
  TORCH_CHECK(now.device().type() == before.device().type(), "hook '", name_of(hook),
              "' has changed the type of value (was on ", before.device(), " got ", now.device(),
              ")");
  TORCH_CHECK(now.sizes() == before.sizes(), "hook '", name_of(hook),
              "' has changed the size of value");
  return now;
}

struct GradientHook final : autograd::TensorHook {
  explicit GradientHook(PyObject* dict) : hooks(dict) {}
  Tensor call(const Tensor& grad) override {
    WithGil gil;
    PyRef list = hooks.values();
    PyRef value = checked(wrap(grad));
    bool changed = false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
      PyObject* hook = PySequence_Fast_GET_ITEM(list.get(), i);
      PyRef result = checked(PyObject_CallOneArg(hook, value.get()));
      if (result.get() == Py_None) continue;
      replacement(hook, result.get(), grad);
      value = std::move(result);
      changed = true;
    }
    return changed ? tensor_of(value.get()) : Tensor();
  }
  HookDict hooks;
};

struct PostAccumulateHook final : autograd::TensorHook {
  explicit PostAccumulateHook(PyObject* dict) : hooks(dict) {}
  Tensor call(const Tensor& leaf) override {
    WithGil gil;
    PyRef list = hooks.values();
    PyRef value = checked(wrap(leaf));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
      PyRef result =
          checked(PyObject_CallOneArg(PySequence_Fast_GET_ITEM(list.get(), i), value.get()));
      if (result.get() != Py_None) {
        raise(PyExc_RuntimeError, "Tensor post accumulate grad hooks should return None.");
      }
    }
    return {};
  }
  HookDict hooks;
};

// Takes over what a node hook returned: None, a tensor where there is one gradient, or a tuple of
// as many.
void take_result(PyObject* hook, PyObject* result, TensorVec& grads) {
  if (result == Py_None) return;
  PyRef tuple = PyTuple_Check(result) ? PyRef::borrow(result) : checked(PyTuple_Pack(1, result));
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(tuple.get()));
  TORCH_CHECK(count == grads.size(), "hook '", name_of(hook),
              "' has returned an incorrect number of values (got ", count, ", but expected ",
              grads.size(), ")");
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i));
    grads[i] = item == Py_None ? Tensor() : replacement(hook, item, grads[i]);
  }
}

struct NodeDictHook final : autograd::NodeHook {
  NodeDictHook(PyObject* dict, bool pre) : hooks(dict), before(pre) {}
  void call(TensorVec& inputs, TensorVec& outputs) override {
    WithGil gil;
    PyRef list = hooks.values();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
      PyObject* hook = PySequence_Fast_GET_ITEM(list.get(), i);
      PyRef entering = gradients_tuple(inputs);
      if (before) {
        take_result(hook, checked(PyObject_CallOneArg(hook, entering.get())).get(), inputs);
        continue;
      }
      PyRef leaving = gradients_tuple(outputs);
      PyRef result =
          checked(PyObject_CallFunctionObjArgs(hook, leaving.get(), entering.get(), nullptr));
      take_result(hook, result.get(), outputs);
    }
  }
  HookDict hooks;
  bool before;
};

PyRef new_hook_dict() {
  PyObject* cls = cached_attribute(ordered_dict_class, "collections", "OrderedDict");
  if (!cls) throw python_error();
  return checked(PyObject_CallNoArgs(cls));
}

} // namespace

int traverse_tensor_hooks(const Tensor& tensor, visitproc visit, void* arg) {
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor);
  if (!meta) return 0;
  // A hook of a non-leaf is held by the node too, which must be this tensor's alone.
  const long owners = !meta->grad_fn ? 1 : meta->grad_fn.use_count() == 1 ? 2 : 0;
  for (const auto& hook : meta->hooks) {
    if (hook.use_count() != owners) continue;
    if (auto* mine = dynamic_cast<GradientHook*>(hook.get())) Py_VISIT(mine->hooks.get());
  }
  for (const auto& hook : meta->post_accumulate) {
    if (hook.use_count() != 1) continue;
    if (auto* mine = dynamic_cast<PostAccumulateHook*>(hook.get())) Py_VISIT(mine->hooks.get());
  }
  return 0;
}

void clear_tensor_hooks(const Tensor& tensor) noexcept {
  autograd::AutogradMeta* meta = autograd::meta_of(tensor);
  if (!meta) return;
  autograd::clear_hooks(tensor);
  // The list is empty before a hook's end runs Python code.
  const auto dropped = std::move(meta->post_accumulate);
  meta->post_accumulate.clear();
}

PyRef gradients_tuple(const TensorVec& grads) {
  PyRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(grads.size())));
  for (size_t i = 0; i < grads.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked(wrap(grads[i])).release());
  }
  return tuple;
}

std::shared_ptr<autograd::TensorHook> make_gradient_hook(PyObject* hooks) {
  return std::make_shared<GradientHook>(hooks);
}
std::shared_ptr<autograd::TensorHook> make_post_accumulate_hook(PyObject* hooks) {
  return std::make_shared<PostAccumulateHook>(hooks);
}

PyObject* add_node_hook(autograd::Node& node, PyObject* hook, bool before) {
  autograd::NodeHooks& all = node.ensure_hooks();
  auto& list = before ? all.pre : all.post;
  PyRef dict;
  for (const auto& known : list) {
    if (auto* mine = dynamic_cast<NodeDictHook*>(known.get()))
      dict = PyRef::borrow(mine->hooks.get());
  }
  if (!dict) {
    dict = new_hook_dict();
    list.push_back(std::make_shared<NodeDictHook>(dict.get(), before));
  }
  PyObject* cls = cached_attribute(removable_handle_class, "torch.utils.hooks", "RemovableHandle");
  if (!cls) throw python_error();
  PyRef handle = checked(PyObject_CallOneArg(cls, dict.get()));
  PyRef id = checked(PyObject_GetAttrString(handle.get(), "id"));
  check_status(PyObject_SetItem(dict.get(), id.get(), hook));
  return handle.release();
}

void set_tensor_hooks(const Tensor& tensor, PyObject* hooks) {
  if (!hooks) {
    autograd::clear_hooks(tensor);
    return;
  }
  if (!PyDict_Check(hooks)) raise_type_error("_backward_hooks must be a dictionary or None");
  autograd::clear_hooks(tensor);
  autograd::register_hook(tensor, make_gradient_hook(hooks));
}

void set_post_accumulate_hooks(const Tensor& tensor, PyObject* hooks) {
  if (hooks && !PyDict_Check(hooks)) {
    raise_type_error("_post_accumulate_grad_hooks must be a dictionary or None");
  }
  if (!hooks && !autograd::meta_of(tensor)) return;
  auto& list = autograd::ensure_meta(tensor).post_accumulate;
  // What was there goes last: a hook's end may run Python code, which must find the list in order.
  const auto dropped = std::exchange(list, {});
  if (hooks) list.push_back(make_post_accumulate_hook(hooks));
}

} // namespace torch::python
