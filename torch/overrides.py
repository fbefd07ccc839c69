"""__torch_function__: how classes and modes take over calls of torch's functions.

The decision whether some argument overrides is made in C++ on every call; what is here serves
functions that are written in Python, modes, and programs that ask which functions can be
overridden."""

import contextlib
import functools
import warnings

import torch
from torch import _C
from torch._C import (
    _disabled_torch_function_impl,
    _is_torch_function_mode_enabled,
)
from torch._C import (
    _has_torch_function as has_torch_function,
)
from torch._C import (
    _has_torch_function_unary as has_torch_function_unary,
)
from torch._C import (
    _has_torch_function_variadic as has_torch_function_variadic,
)

__all__ = [
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "resolve_name",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "wrap_torch_function",
    "enable_reentrant_dispatch",
]


def _get_overloaded_args(relevant_args, get_type_fn=None):
    """Arguments whose classes override, one per class, subclasses before the classes they derive
    from.
    """
    if get_type_fn is None:
        get_type_fn = type
    if not _C._is_torch_function_enabled():
        return []
    found, seen = [], set()
    for arg in relevant_args:
        cls = get_type_fn(arg)
        if cls in seen:
            continue
        method = getattr(cls, "__torch_function__", None)
        if method is None or method is _disabled_torch_function_impl or cls is torch.Tensor:
            continue
        seen.add(cls)
        at = next(
            (i for i, other in enumerate(found) if issubclass(cls, get_type_fn(other))), len(found)
        )
        found.insert(at, arg)
    return found


def _ask_mode(function, types, args, kwargs):
    """The innermost mode's result; calls it makes go to the modes around it."""
    with _pop_mode_temporarily() as mode:
        return mode.__torch_function__(function, types, args, kwargs)


def _handlers(overloaded):
    """What may take a call over, in the order of asking: the mode, then the arguments."""
    if _is_torch_function_mode_enabled():
        yield _ask_mode
    for arg in overloaded:
        method = arg.__torch_function__
        bound_to = getattr(method, "__self__", None)
        if bound_to is arg and method.__func__ is not _disabled_torch_function_impl:
            warnings.warn(
                "Defining your `__torch_function__ as a plain method is deprecated and will be "
                "an error in "
                "future, please define it as a classmethod.",
                DeprecationWarning,
                stacklevel=3,
            )
        yield method


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Asks the mode and the overriding arguments in turn until one does not decline."""
    overloaded = _get_overloaded_args(relevant_args)
    types = tuple(map(type, overloaded))
    for handler in _handlers(overloaded):
        result = handler(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    mode = _get_current_function_mode()
    raise TypeError(
        f"no implementation found for '{public_api.__module__}.{public_api.__name__}' on types "
        f"that implement __torch_function__: {list(types)}"
        + ("" if mode is None else f" nor in mode {mode}")
    )


def redirect(function, arguments):
    """Hands a call of an overridable function of this package to whoever overrides it.

    `arguments` is the `locals()` of the function at its entry. What has no default is passed on by
    position and the rest by name, and every argument counts as one that may override, so that a
    function says nothing twice:

        if has_torch_function_unary(input):
            return redirect(glu, locals())
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    needed = code.co_argcount - len(function.__defaults__ or ())
    args = [arguments[name] for name in names[:needed]]
    kwargs = {name: arguments[name] for name in names[needed:]}
    return handle_torch_function(function, (*args, *kwargs.values()), *args, **kwargs)


def _made_overridable(dispatcher, func):
    @functools.wraps(func)
    def public(*args, **kwargs):
        counted = dispatcher(*args, **kwargs)
        if not has_torch_function(counted):
            return func(*args, **kwargs)
        return handle_torch_function(public, counted, *args, **kwargs)

    return public


def wrap_torch_function(dispatcher):
    """A decorator that makes a function overridable; dispatcher(*args) gives the arguments that
    count.
    """
    return functools.partial(_made_overridable, dispatcher)


# ---- what can be overridden
# -----------------------------------------------------------------------------------

_NOT_OVERRIDABLE = (
    "typename is_tensor is_storage set_default_tensor_type set_default_device get_default_device "
    "set_rng_state get_rng_state manual_seed initial_seed seed get_default_dtype "
    "set_default_dtype set_printoptions "
    "get_printoptions tensor as_tensor asarray from_numpy frombuffer arange empty "
    "empty_permuted empty_strided eye full "
    "linspace logspace ones rand randint randn randperm range scalar_tensor sparse_coo_tensor "
    "sparse_csr_tensor "
    "tril_indices triu_indices zeros bartlett_window blackman_window hamming_window hann_window "
    "kaiser_window vander "
    "compile cond set_num_threads get_num_threads set_num_interop_threads "
    "get_num_interop_threads is_grad_enabled "
    "set_grad_enabled is_inference_mode_enabled broadcast_shapes can_cast promote_types "
    "from_file from_dlpack "
    "use_deterministic_algorithms are_deterministic_algorithms_enabled "
    "set_deterministic_debug_mode "
    "get_deterministic_debug_mode set_float32_matmul_precision get_float32_matmul_precision "
    "set_warn_always "
    "is_warn_always_enabled set_flush_denormal compiled_with_cxx11_abi sym_float sym_int "
    "sym_ite sym_max sym_min sym_not "
    "sym_sqrt sym_sum is_vulkan_available"
).split()

_NOT_OVERRIDABLE_METHODS = (
    "__delitem__ __dir__ __getattribute__ __init__ __init_subclass__ __new__ __reduce__ "
    "__setattr__ __sizeof__ "
    "__subclasshook__ __torch_dispatch__ __torch_function__ __weakref__ __class__ "
    "__getnewargs__ __str__ __iter__ __hash__ "
    "_make_subclass _make_wrapper_subclass as_subclass __getstate__ __delattr__ new new_empty "
    "new_full "
    "new_ones new_tensor new_zeros "
    "__cuda_array_interface__ type typename is_meta"
).split()


@functools.cache
def get_ignored_functions():
    """The public functions that cannot be overridden."""
    found = {getattr(torch, name) for name in _NOT_OVERRIDABLE if hasattr(torch, name)}
    for name in _NOT_OVERRIDABLE_METHODS:
        member = getattr(torch.Tensor, name, None)
        if callable(member) and getattr(member, "__hash__", None):
            found.add(member)
    return found


@functools.cache
def get_default_nowrap_functions():
    """The getters whose result keeps its class in Tensor.__torch_function__."""
    return torch._tensor._functions_without_wrapping()


def _namespaces():
    yield "torch", torch, [*torch.__all__, *torch.functional.__all__]
    yield "torch.functional", torch.functional, torch.functional.__all__
    for name in ("nn.functional", "linalg", "fft", "special"):
        module = torch
        for part in name.split("."):
            module = getattr(module, part, None)
        if module is not None:
            yield f"torch.{name}", module, dir(module)
    yield "torch.Tensor", torch.Tensor, dir(torch.Tensor)


@functools.cache
def _overridable():
    """Functions by namespace, and the public name of each."""
    by_namespace, names = {}, {}
    ignored = get_ignored_functions()
    for prefix, owner, members in _namespaces():
        found = []
        for name in sorted(set(members)):
            if owner is not torch.Tensor and name.startswith("_"):
                continue
            member = getattr(owner, name, None)
            if owner is torch.Tensor and name.startswith("_") and not name.startswith("__"):
                continue
            if not callable(member) and hasattr(member, "__get__"):
                for suffix in ("__get__", "__set__"):
                    accessor = getattr(member, suffix, None)
                    if accessor is not None:
                        found.append(accessor)
                        names.setdefault(accessor, f"{prefix}.{name}.{suffix}")
                continue
            if not callable(member) or isinstance(member, type) or name in _NOT_OVERRIDABLE_METHODS:
                continue
            if member in ignored or name in ("__weakref__", "__doc__"):
                continue
            found.append(member)
            names.setdefault(member, f"{prefix}.{name}")
        by_namespace[owner] = found
    return by_namespace, names


def get_overridable_functions():
    """The functions that can be overridden, by the namespace they are in."""
    return {owner: list(found) for owner, found in _overridable()[0].items()}


def resolve_name(f):
    """The public name of an overridable function, e.g. "torch.Tensor.add"; None for others."""
    if isinstance(f, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return str(f)
    return _overridable()[1].get(f)


def get_testing_overrides():
    """For each overridable function a function of the same arguments that does nothing."""

    def dummy(*args, **kwargs):
        return -1

    return {f: dummy for found in _overridable()[0].values() for f in found}


@functools.cache
def _get_tensor_methods():
    return set(get_overridable_functions()[torch.Tensor])


def is_tensor_method_or_property(func):
    """Whether func is a method or an accessor of torch.Tensor."""
    return func in _get_tensor_methods() or getattr(func, "__name__", "") == "__get__"


def is_tensor_like(inp):
    """Whether inp is a tensor or of a class that overrides torch's functions."""
    return type(inp) is torch.Tensor or hasattr(inp, "__torch_function__")


# ---- modes ---------------------------------------------------------------------------------------
# -------------


class TorchFunctionMode:
    """Takes over every call of an overridable function on this thread inside a with statement."""

    inner: "TorchFunctionMode"

    def __init__(self):
        pass

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} does not define __torch_function__")

    def __enter__(self):
        _push_mode(self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        _pop_mode()

    @classmethod
    def push(cls, *args, **kwargs):
        """An instance (an old spelling of calling the class)."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`",
            stacklevel=2,
        )
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call through."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _push_mode(mode):
    _C._push_on_torch_function_stack(mode)


def _pop_mode():
    return _C._pop_torch_function_stack()


def _get_current_function_mode():
    depth = _C._len_torch_function_stack()
    return _C._get_function_stack_at(depth - 1) if depth else None


def _get_current_function_mode_stack():
    return [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]


@contextlib.contextmanager
def _pop_mode_temporarily():
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _enable_torch_function():
    state = _C._get_torch_function_state()
    _C._set_torch_function_state(_C._TorchFunctionState.ENABLED)
    try:
        yield
    finally:
        _C._set_torch_function_state(state)


@contextlib.contextmanager
def enable_reentrant_dispatch():
    """Lets __torch_dispatch__ be called from inside itself."""
    with _C._RestorePythonTLSSnapshot():
        yield
