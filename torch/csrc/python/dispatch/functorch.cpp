// torch._C._functorch: pushing and popping levels, wrapping and unwrapping tensors. The transforms
// themselves are Python (torch/_functorch).
#include <torch/csrc/python/dispatch/functorch.h>

#include <ATen/functorch/Interpret.h>
#include <ATen/functorch/Level.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/functorch/jvp.h>
#include <torch/csrc/python/tensor/tensor.h>
#include <torch/csrc/python/tensor/wrap.h>
#include <torch/csrc/python/types/enum_type.h>

namespace torch::python {
namespace {

using namespace at::functorch;
using at::Tensor;

const Tensor& tensor_argument(PyObject* o) {
  if (!is_tensor(o)) raise_type_error(std::string("expected a Tensor, not ") + type_name(o));
  const Tensor& t = tensor_of(o);
  TORCH_CHECK_NOT_IMPLEMENTED(t.layout() != c10::Layout::Jagged,
                              "function transforms are not implemented for nested tensors, got one "
                              "of dtype ",
                              t.scalar_type(), " on ", t.device());
  return t;
}

// ---- levels
Randomness randomness_of(const char* text) {
  const std::string_view name = text;
  if (name == "error") return Randomness::Error;
  if (name == "same") return Randomness::Same;
  if (name == "different") return Randomness::Different;
  throw c10::Error(c10::str(
      "Only allowed values for randomness are 'error', 'different', or 'same'. Got ", name));
}
PyObject* vmap_enter(PyObject*, PyObject* args) {
  long long size = 0;
  const char* randomness = "error";
  if (!PyArg_ParseTuple(args, "L|s", &size, &randomness)) return nullptr;
  return guarded([&] {
    TORCH_CHECK(size >= 0, "vmap: the batch size must not be negative, got ", int64_t(size));
    return wrap(push_level(LevelKind::Vmap, size, randomness_of(randomness))->depth);
  });
}
template <LevelKind kKind> PyObject* level_enter(PyObject*, PyObject*) {
  return guarded([] {
    if (kKind == LevelKind::Jvp) functorch::enable_jvp();
    return wrap(push_level(kKind)->depth);
  });
}
template <LevelKind kKind> PyObject* level_exit(PyObject*, PyObject*) {
  return guarded([] { return wrap(pop_level(kKind)); });
}
PyObject* current_level(PyObject*, PyObject*) {
  return guarded([] {
    const int64_t depth = static_cast<int64_t>(level_stack().size());
    return depth == 0 ? new_none() : wrap(depth);
  });
}
// The kinds of the open levels, outermost first.
PyObject* level_kinds(PyObject*, PyObject*) {
  return guarded([] {
    const auto& levels = level_stack();
    PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(levels.size())));
    for (size_t i = 0; i < levels.size(); ++i) {
      const char* name = levels[i]->kind == LevelKind::Vmap   ? "vmap"
                         : levels[i]->kind == LevelKind::Grad ? "grad"
                         : levels[i]->kind == LevelKind::Jvp  ? "jvp"
                                                              : "functionalize";
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                       checked(PyUnicode_FromString(name)).release());
    }
    return out.release();
  });
}
// (batch size, randomness) of a vmap level.
PyObject* vmap_info(PyObject*, PyObject* depth) {
  return guarded([&] {
    const long long at = PyLong_AsLongLong(depth);
    if (at == -1 && PyErr_Occurred()) throw python_error();
    const LevelPtr& level = level_at(at);
    const char* name = level->randomness == Randomness::Error  ? "error"
                       : level->randomness == Randomness::Same ? "same"
                                                               : "different";
    return Py_BuildValue("(Ls)", static_cast<long long>(level->batch_size), name);
  });
}

// Whether gradients were recorded where a level was opened.
PyObject* grad_mode_outside(PyObject*, PyObject* depth) {
  return guarded([&] {
    const long long at = PyLong_AsLongLong(depth);
    if (at == -1 && PyErr_Occurred()) throw python_error();
    return new_bool(level_at(at)->grad_mode_outside);
  });
}

// ---- vmap
PyObject* add_batch_dim(PyObject*, PyObject* args) {
  PyObject* tensor = nullptr;
  long long dim = 0, depth = 0;
  if (!PyArg_ParseTuple(args, "OLL", &tensor, &dim, &depth)) return nullptr;
  return guarded([&] {
    const Tensor& t = tensor_argument(tensor);
    const LevelPtr& level = level_at(depth);
    TORCH_CHECK(level->kind == LevelKind::Vmap, "level ", int64_t(depth), " is not one of vmap");
    TORCH_CHECK_INDEX(dim >= 0 && dim < t.dim(), "batch dimension ", int64_t(dim),
                      " is out of range for a tensor of ", t.dim(), " dimensions");
    TORCH_CHECK(t.sizes()[static_cast<size_t>(dim)] == level->batch_size, "dimension ",
                int64_t(dim), " has size ", t.sizes()[static_cast<size_t>(dim)],
                ", the level has a batch of ", level->batch_size);
    return wrap(wrap_batched(t, dim, level));
  });
}
PyObject* remove_batch_dim(PyObject*, PyObject* args) {
  PyObject* tensor = nullptr;
  long long depth = 0, size = 0, out_dim = 0;
  if (!PyArg_ParseTuple(args, "OLLL", &tensor, &depth, &size, &out_dim)) return nullptr;
  return guarded([&] {
    const Tensor& t = tensor_argument(tensor);
    const int64_t rank = t.dim() + 1;
    TORCH_CHECK_INDEX(out_dim >= -rank && out_dim < rank,
                      "Dimension out of range (expected to be in range of [", -rank, ", ", rank - 1,
                      "], but got ", int64_t(out_dim), ")");
    const int64_t to = out_dim < 0 ? out_dim + rank : out_dim;
    if (const WrapperImpl* w = wrapper_at(t, *level_at(depth)))
      return wrap(move_dim(w->value, w->bdim, to));
    // The same for every sample.
    std::vector<int64_t> sizes(t.sizes().begin(), t.sizes().end());
    sizes.insert(sizes.begin() + to, size);
    return wrap(t.unsqueeze(to).expand(sizes));
  });
}

// ---- grad and jvp
PyObject* wrap_for_grad(PyObject*, PyObject* args) {
  PyObject* tensor = nullptr;
  long long depth = 0;
  int differentiable = 0;
  if (!PyArg_ParseTuple(args, "OL|p", &tensor, &depth, &differentiable)) return nullptr;
  return guarded([&] {
    const Tensor out = wrap_grad(tensor_argument(tensor), level_at(depth));
    if (differentiable) {
      TORCH_CHECK(out.is_floating_point() || out.is_complex(),
                  "only Tensors of floating point dtype can require gradients");
      autograd::set_requires_grad(out, true);
    }
    return wrap(out);
  });
}
PyObject* wrap_for_jvp(PyObject*, PyObject* args) {
  PyObject *primal = nullptr, *tangent = nullptr;
  long long depth = 0;
  if (!PyArg_ParseTuple(args, "OOL", &primal, &tangent, &depth)) return nullptr;
  return guarded([&] {
    const Tensor &p = tensor_argument(primal), &t = tensor_argument(tangent);
    TORCH_CHECK(p.is_floating_point() || p.is_complex(),
                "Expected primal to be floating point or complex, but got: ", p.scalar_type());
    TORCH_CHECK(p.sizes() == t.sizes(),
                "Trying to set a forward gradient that has a different size than that of the "
                "original Tensor, this is not supported. Tensor is of size ",
                p.sizes(), " while the given forward gradient is of size ", t.sizes(), ".");
    TORCH_CHECK(p.scalar_type() == t.scalar_type(),
                "the tangent must have the dtype of its primal, ", p.scalar_type(), ", but has ",
                t.scalar_type());
    const LevelPtr& level = level_at(depth);
    const BelowLevel scope(*level);
    // Operators write tangents in place; the caller's stays as it is.
    return wrap(wrap_jvp(p, t.clone(), level));
  });
}
PyObject* unwrap_at(PyObject*, PyObject* args) {
  PyObject* tensor = nullptr;
  long long depth = 0;
  if (!PyArg_ParseTuple(args, "OL", &tensor, &depth)) return nullptr;
  return guarded([&] {
    const Tensor& t = tensor_argument(tensor);
    const WrapperImpl* w = wrapper_at(t, *level_at(depth));
    if (w == nullptr) return PyRef::borrow(tensor).release();
    return wrap(w->value);
  });
}
// (primal, tangent or None) of a level.
PyObject* unwrap_dual(PyObject*, PyObject* args) {
  PyObject* tensor = nullptr;
  long long depth = 0;
  if (!PyArg_ParseTuple(args, "OL", &tensor, &depth)) return nullptr;
  return guarded([&] {
    const Tensor& t = tensor_argument(tensor);
    const WrapperImpl* w = wrapper_at(t, *level_at(depth));
    return w == nullptr ? wrap(std::make_tuple(t, Tensor()))
                        : wrap(std::make_tuple(w->value, w->tangent));
  });
}
// The tangent of a result that does not depend on the inputs: it belongs to older levels.
PyObject* zero_tangent(PyObject*, PyObject* args) {
  PyObject* tensor = nullptr;
  long long depth = 0;
  if (!PyArg_ParseTuple(args, "OL", &tensor, &depth)) return nullptr;
  return guarded([&] {
    const BelowLevel scope(*level_at(depth));
    return wrap(at::zeros_like(tensor_argument(tensor)));
  });
}

// ---- functionalize
PyObject* functional_enter(PyObject*, PyObject* remove_views) {
  return guarded([&] {
    const int truth = PyObject_IsTrue(remove_views);
    check_status(truth);
    const LevelPtr level = push_level(LevelKind::Functionalize);
    level->removes_views = truth != 0;
    return wrap(level->depth);
  });
}
PyObject* wrap_functional_tensor(PyObject*, PyObject* args) {
  PyObject* tensor = nullptr;
  long long depth = 0;
  if (!PyArg_ParseTuple(args, "OL", &tensor, &depth)) return nullptr;
  return guarded([&] {
    const LevelPtr& level = level_at(depth);
    TORCH_CHECK(level->kind == LevelKind::Functionalize, "level ", int64_t(depth),
                " is not one of functionalize");
    return wrap(wrap_functional(tensor_argument(tensor), level));
  });
}
// (value, whether it was written) of a tensor of the level.
PyObject* unwrap_functional_tensor(PyObject*, PyObject* args) {
  PyObject* tensor = nullptr;
  long long depth = 0;
  if (!PyArg_ParseTuple(args, "OL", &tensor, &depth)) return nullptr;
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_argument(tensor);
    const LevelPtr& level = level_at(depth);
    PyRef value = checked(wrap(functional_value(t, level)));
    return PyTuple_Pack(2, value.get(), was_written(t, level) ? Py_True : Py_False);
  });
}

// ---- values of a level, for rules written in Python
void leave_below(PyObject* capsule) {
  delete static_cast<BelowLevel*>(PyCapsule_GetPointer(capsule, "torch.below"));
}
// Until the object that is returned goes, what operators make belongs to older levels.
PyObject* enter_below(PyObject*, PyObject* depth) {
  return guarded([&]() -> PyObject* {
    const long number = PyLong_AsLong(depth);
    if (number == -1 && PyErr_Occurred()) throw python_error();
    auto* scope = new BelowLevel(*level_at(number));
    PyObject* held = PyCapsule_New(scope, "torch.below", leave_below);
    if (held == nullptr) delete scope;
    return held;
  });
}

void bring_back(PyObject* capsule) {
  delete static_cast<LevelsSetAside*>(PyCapsule_GetPointer(capsule, "torch.levels"));
}
// Until the object that is returned goes, no level is open.
PyObject* set_levels_aside(PyObject*, PyObject*) {
  auto* scope = new LevelsSetAside();
  PyObject* held = PyCapsule_New(scope, "torch.levels", bring_back);
  if (held == nullptr) delete scope;
  return held;
}

// ---- inspection
PyObject* is_wrapped(PyObject*, PyObject* o) {
  return guarded([&] { return new_bool(wrapper_of(tensor_argument(o)) != nullptr); });
}
PyObject* is_batched(PyObject*, PyObject* o) {
  return guarded([&] {
    const WrapperImpl* w = wrapper_of(tensor_argument(o));
    return new_bool(w != nullptr && w->level->kind == LevelKind::Vmap);
  });
}
PyObject* is_grad_tracking(PyObject*, PyObject* o) {
  return guarded([&] {
    const WrapperImpl* w = wrapper_of(tensor_argument(o));
    return new_bool(w != nullptr &&
                    (w->level->kind == LevelKind::Grad || w->level->kind == LevelKind::Jvp));
  });
}
PyObject* get_unwrapped(PyObject*, PyObject* o) {
  return guarded([&] {
    const WrapperImpl* w = wrapper_of(tensor_argument(o));
    TORCH_CHECK(w != nullptr, "No wrappers present!");
    return wrap(w->value);
  });
}
// -1 for a plain tensor, -2 for one whose level has ended.
PyObject* get_level(PyObject*, PyObject* o) {
  return guarded([&] {
    const WrapperImpl* w = wrapper_of(tensor_argument(o));
    const bool dead = w != nullptr && !w->level->alive && w->level->kind != LevelKind::Vmap;
    return wrap(w == nullptr ? int64_t(-1) : dead ? int64_t(-2) : w->level->depth);
  });
}
PyObject* get_bdim(PyObject*, PyObject* o) {
  return guarded([&] {
    const WrapperImpl* w = wrapper_of(tensor_argument(o));
    return wrap(w == nullptr ? int64_t(-1) : w->bdim);
  });
}

// The depth of the level a tensor belongs to; 0 for a plain tensor and for one whose level ended.
PyObject* depth_of(PyObject*, PyObject* o) {
  return guarded([&] {
    const WrapperImpl* w = wrapper_of(tensor_argument(o));
    return wrap(w == nullptr || !w->level->alive ? int64_t(0) : w->level->depth);
  });
}

// ---- shapes of batches
// reshape_dim_into(source, dim, tensor): dimension `source` becomes the outer part of `dim`.
PyObject* reshape_dim_into(PyObject*, PyObject* args) {
  long long source = 0, dim = 0;
  PyObject* tensor = nullptr;
  if (!PyArg_ParseTuple(args, "LLO", &source, &dim, &tensor)) return nullptr;
  return guarded([&] {
    const Tensor& t = tensor_argument(tensor);
    const int64_t rank = t.dim();
    TORCH_CHECK_INDEX(source >= -rank && source < rank, "dimension ", int64_t(source),
                      " is out of range for a tensor of ", rank, " dimensions");
    TORCH_CHECK_INDEX(dim >= -(rank - 1) && dim < rank - 1, "dimension ", int64_t(dim),
                      " is out of range for the other ", rank - 1, " dimensions");
    const int64_t to = dim < 0 ? dim + rank - 1 : dim;
    const Tensor moved = move_dim(t, source < 0 ? source + rank : source, to);
    std::vector<int64_t> sizes(moved.sizes().begin(), moved.sizes().end());
    sizes[static_cast<size_t>(to)] *= sizes[static_cast<size_t>(to) + 1];
    sizes.erase(sizes.begin() + to + 1);
    return wrap(moved.reshape(sizes));
  });
}
// reshape_dim_outof(dim, size, tensor): the outer `size` parts of `dim` become a dimension.
PyObject* reshape_dim_outof(PyObject*, PyObject* args) {
  long long source = 0, size = 0;
  PyObject* tensor = nullptr;
  if (!PyArg_ParseTuple(args, "LLO", &source, &size, &tensor)) return nullptr;
  return guarded([&] {
    const Tensor& t = tensor_argument(tensor);
    const int64_t rank = t.dim();
    TORCH_CHECK_INDEX(source >= -rank && source < rank, "dimension ", int64_t(source),
                      " is out of range for a tensor of ", rank, " dimensions");
    const int64_t at = source < 0 ? source + rank : source;
    std::vector<int64_t> sizes(t.sizes().begin(), t.sizes().end());
    const int64_t length = sizes[static_cast<size_t>(at)];
    TORCH_CHECK(size > 0 ? length % size == 0 : size == 0 && length == 0, "dimension ", at,
                " of size ", length, " cannot be cut into ", int64_t(size), " parts");
    sizes[static_cast<size_t>(at)] = size;
    sizes.insert(sizes.begin() + at + 1, size > 0 ? length / size : 0);
    return wrap(t.reshape(sizes));
  });
}

// ---- settings of the fallback of vmap
using Setting = std::atomic<bool> FallbackSettings::*;
template <Setting kSetting> PyObject* get_setting(PyObject*, PyObject*) {
  return new_bool(fallback_settings().*kSetting);
}
template <Setting kSetting> PyObject* set_setting(PyObject*, PyObject* value) {
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  fallback_settings().*kSetting = truth != 0;
  return new_none();
}

constexpr EnumMember kTransforms[] = {
    {"Torch", 0}, {"Vmap", 1}, {"Grad", 2}, {"Jvp", 3}, {"Functionalize", 4}};

PyMethodDef functions[] = {
    {"dlevel", depth_of, METH_O, nullptr},
    {"reshape_dim_into", reshape_dim_into, METH_VARARGS, nullptr},
    {"reshape_dim_outof", reshape_dim_outof, METH_VARARGS, nullptr},
    {"_is_vmap_fallback_enabled", get_setting<&FallbackSettings::allowed>, METH_NOARGS, nullptr},
    {"_set_vmap_fallback_enabled", set_setting<&FallbackSettings::allowed>, METH_O, nullptr},
    {"_set_vmap_fallback_warning_enabled", set_setting<&FallbackSettings::warns>, METH_O, nullptr},
    {"_vmap_increment_nesting", vmap_enter, METH_VARARGS, nullptr},
    {"_vmap_decrement_nesting", level_exit<LevelKind::Vmap>, METH_NOARGS, nullptr},
    {"_grad_increment_nesting", level_enter<LevelKind::Grad>, METH_NOARGS, nullptr},
    {"_grad_decrement_nesting", level_exit<LevelKind::Grad>, METH_NOARGS, nullptr},
    {"_jvp_increment_nesting", level_enter<LevelKind::Jvp>, METH_NOARGS, nullptr},
    {"_jvp_decrement_nesting", level_exit<LevelKind::Jvp>, METH_NOARGS, nullptr},
    {"_func_increment_nesting", functional_enter, METH_O, nullptr},
    {"_func_decrement_nesting", level_exit<LevelKind::Functionalize>, METH_NOARGS, nullptr},
    {"_wrap_functional_tensor", wrap_functional_tensor, METH_VARARGS, nullptr},
    {"_unwrap_functional_tensor", unwrap_functional_tensor, METH_VARARGS, nullptr},
    {"maybe_current_level", current_level, METH_NOARGS, nullptr},
    {"_level_kinds", level_kinds, METH_NOARGS, nullptr},
    {"_enter_below", enter_below, METH_O, nullptr},
    {"_set_levels_aside", set_levels_aside, METH_NOARGS, nullptr},
    {"_vmap_info", vmap_info, METH_O, nullptr},
    {"_grad_mode_outside", grad_mode_outside, METH_O, nullptr},
    {"_add_batch_dim", add_batch_dim, METH_VARARGS, nullptr},
    {"_remove_batch_dim", remove_batch_dim, METH_VARARGS, nullptr},
    {"_wrap_for_grad", wrap_for_grad, METH_VARARGS, nullptr},
    {"_unwrap_for_grad", unwrap_at, METH_VARARGS, nullptr},
    {"_wrap_for_jvp", wrap_for_jvp, METH_VARARGS, nullptr},
    {"_unwrap_dual", unwrap_dual, METH_VARARGS, nullptr},
    {"_zero_tangent", zero_tangent, METH_VARARGS, nullptr},
    {"is_functorch_wrapped_tensor", is_wrapped, METH_O, nullptr},
    {"is_batchedtensor", is_batched, METH_O, nullptr},
    {"is_gradtrackingtensor", is_grad_tracking, METH_O, nullptr},
    {"get_unwrapped", get_unwrapped, METH_O, nullptr},
    {"maybe_get_level", get_level, METH_O, nullptr},
    {"maybe_get_bdim", get_bdim, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyObject* transforms_active(PyObject*, PyObject*) { return new_bool(!level_stack().empty()); }
PyMethodDef outer_functions[] = {
    {"_are_functorch_transforms_active", transforms_active, METH_NOARGS, nullptr},
    {"_debug_only_are_vmap_fallback_warnings_enabled", get_setting<&FallbackSettings::warns_always>,
     METH_NOARGS, nullptr},
    {"_debug_only_display_vmap_fallback_warnings", set_setting<&FallbackSettings::warns_always>,
     METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

bool init_functorch(PyObject* module) {
  PyRef space(PyModule_New("torch._C._functorch"));
  return space && add_enum(space.get(), "torch._C._functorch.TransformType", kTransforms, 5) &&
         PyModule_AddFunctions(space.get(), functions) >= 0 &&
         PyModule_AddFunctions(module, outer_functions) >= 0 &&
         PyDict_SetItemString(PyImport_GetModuleDict(), "torch._C._functorch", space.get()) >= 0 &&
         add_object(module, "_functorch", space.release());
}

} // namespace torch::python
