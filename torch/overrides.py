"""__torch_function__: how classes and modes take over calls of torch's functions.

The decision whether some argument overrides is made in C++ on every call; what is here serves
functions that are written in Python, modes, and programs that ask which functions can be
overridden."""

from __future__ import annotations

import contextlib
import functools
import types as types_module
import warnings
from collections.abc import Iterator

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
    "redispatch_function",
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
        index = next(
            (i for i, other in enumerate(found) if issubclass(cls, get_type_fn(other))), len(found)
        )
        found.insert(index, arg)
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


def redispatch_function(func, types, args, kwargs):
    """Calls `func` past one level of __torch_function__: its own question whether something
    overrides it is answered no, while the operators inside of a Python function ask as always."""
    if isinstance(func, types_module.FunctionType):
        before = _C._skip_next_torch_function(True)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            _C._skip_next_torch_function(before)
    with _C.DisableTorchFunction():
        return func(*args, **(kwargs or {}))


def wrap_torch_function(dispatcher):
    """A decorator that makes a function overridable; dispatcher(*args) gives the arguments that
    count.
    """
    return functools.partial(_made_overridable, dispatcher)


# ---- what can be overridden
# -----------------------------------------------------------------------------------
# Every public function of the namespaces below asks its arguments, with these exceptions: functions
# that have no tensor to ask (factories, settings), and those whose tensors decide nothing.

_NOT_OVERRIDABLE = {
    "torch": """
        arange are_deterministic_algorithms_enabled as_strided as_tensor asarray
        autocast_decrement_nesting autocast_increment_nesting bartlett_window blackman_window
        broadcast_shapes can_cast clear_autocast_cache compile compiled_with_cxx11_abi cond
        cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu
        cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable
        eig empty empty_permuted empty_quantized empty_strided enable_grad eye fill from_dlpack
        from_file from_numpy frombuffer full get_autocast_cpu_dtype get_autocast_dtype
        get_autocast_gpu_dtype get_autocast_ipu_dtype get_autocast_xla_dtype get_default_device
        get_default_dtype get_deterministic_debug_mode get_device_module
        get_float32_matmul_precision get_num_interop_threads get_num_threads get_printoptions
        get_rng_state hamming_window hann_window init_num_threads initial_seed
        is_anomaly_check_nan_enabled is_anomaly_enabled is_autocast_cache_enabled
        is_autocast_cpu_enabled is_autocast_enabled is_autocast_ipu_enabled is_autocast_xla_enabled
        is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled
        is_storage is_tensor is_vulkan_available is_warn_always_enabled kaiser_window lift
        lift_fresh lift_fresh_copy linspace load logspace lstsq manual_seed matrix_rank
        mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights
        mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer normal ones parse_schema promote_types
        rand rand_like randint randint_like randn randn_like randperm range result_type save
        scalar_tensor seed set_anomaly_enabled set_autocast_cache_enabled set_autocast_cpu_dtype
        set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
        set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype
        set_autocast_xla_enabled set_default_device set_default_dtype set_default_tensor_type
        set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal
        set_grad_enabled set_num_interop_threads set_num_threads set_printoptions set_rng_state
        set_vital set_warn_always solve sparse_bsc_tensor sparse_bsr_tensor
        sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor
        sym_constrain_range sym_constrain_range_for_size sym_fresh_size symeig tensor
        thread_safe_generator to_dlpack tril_indices triu_indices typename
        use_deterministic_algorithms vander vmap while_loop zeros
    """,
    "torch.nn.functional": """
        assert_int_or_pair grouped_mm handle_torch_function hardsigmoid hardswish
        has_torch_function has_torch_function_unary has_torch_function_variadic redirect
        scaled_grouped_mm
        scaled_mm sigmoid tanh upsample upsample_bilinear upsample_nearest
    """,
    "torch.fft": "fftfreq rfftfreq",
    "torch.Tensor": """
        __class__ __delattr__ __delitem__ __dict__ __dir__ __doc__ __getattribute__ __getnewargs__
        __getstate__ __hash__ __init__ __init_subclass__ __iter__ __module__ __new__ __reduce__
        __setattr__ __sizeof__ __str__ __subclasshook__ __torch_dispatch__ __torch_function__
        __weakref__ _addmm_activation _conj _conj_physical _fix_weakref _is_all_true _is_any_true
        _is_zerotensor _lazy_clone _make_subclass _make_wrapper_subclass _neg_view
        _rev_view_func_unsafe
        _to_sparse _to_sparse_bsc _to_sparse_bsr _to_sparse_csc _to_sparse_csr
        _use_count _view_func _view_func_unsafe as_subclass eig lstsq new new_empty
        new_empty_strided new_full new_ones new_tensor new_zeros reinforce solve stride symeig
        to_padded_tensor to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr
        unflatten
    """,
}


def _not_overridable(namespace) -> set[str]:
    return set(_NOT_OVERRIDABLE.get(namespace, "").split())


@functools.cache
def get_ignored_functions():
    """The public functions that cannot be overridden."""
    found = set()
    for namespace, owner in _namespaces():
        for name in _not_overridable(namespace):
            member = getattr(owner, name, None)
            if callable(member) and getattr(member, "__hash__", None):
                found.add(member)
    return found


@functools.cache
def get_default_nowrap_functions():
    """The getters whose result keeps its class in Tensor.__torch_function__."""
    return torch._tensor._functions_without_wrapping()


def _namespaces():
    for name in ("torch", "functional", "nn.functional", "linalg", "fft", "special"):
        owner = torch
        for part in () if name == "torch" else name.split("."):
            owner = getattr(owner, part, None)
        if owner is not None:
            yield ("torch" if owner is torch else f"torch.{name}"), owner
    yield "torch.Tensor", torch.Tensor


def _is_helper(name, member) -> bool:
    """Whether a member is a private part of other methods, written in Python."""
    private = name[0] == "_" and not name.startswith("__")
    return private and isinstance(member, types_module.FunctionType)


def _members(prefix, owner):
    """The names and values in a namespace that may be overridable."""
    ignored = _not_overridable(prefix)
    names = owner.__all__ if owner is torch.functional else dir(owner)
    for name in sorted(set(names) - ignored):
        # Functions that write in place are left to the methods of the same name.
        if owner is not torch.Tensor and (name[0] == "_" or name[-1] == "_"):
            continue
        member = getattr(owner, name, None)
        if _is_helper(name, member):
            continue
        if owner is torch.Tensor and not callable(member) and hasattr(member, "__get__"):
            yield f"{name}.__get__", member.__get__
        elif callable(member) and not isinstance(member, (type, types_module.ModuleType)):
            yield name, member


@functools.cache
def _overridable():
    """Functions by namespace, and the public name of each."""
    by_namespace, names = {}, {}
    ignored = get_ignored_functions()
    for prefix, owner in _namespaces():
        found = by_namespace[owner] = []
        for name, member in _members(prefix, owner):
            home = getattr(member, "__module__", None) or "torch"
            if getattr(member, "__hash__", None) is None or member in ignored:
                continue
            if not home.startswith("torch"):
                continue
            found.append(member)
            names.setdefault(member, f"{prefix}.{name}")
    return by_namespace, names


def get_overridable_functions():
    """The functions that can be overridden, by the namespace they are in."""
    return {owner: list(found) for owner, found in _overridable()[0].items()}


def resolve_name(f):
    """The public name of an overridable function, e.g. "torch.Tensor.add"; None for others."""
    if isinstance(f, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return str(f)
    return _overridable()[1].get(f)


# Overridable although their names say that they are nobody's business.
_PRIVATE_FUNCTIONS = """
    _assert_async _functional_assert_async _native_batch_norm_legit _fused_rms_norm _rowwise_prune
    segment_reduce _sym_acos _sym_asin _sym_atan _sym_cos _sym_cosh _sym_sin _sym_sinh _sym_tan
    _sym_tanh _wrapped_linear_prepack _wrapped_quantized_linear_prepacked _fw_primal_copy
    _make_dual_copy _conj_copy _neg_view_copy _sparse_broadcast_to_copy _reshape_alias_copy
    _indices_copy _values_copy
""".split()


def _operator_signature(function, inspect):
    """The parameters of the shortest form of the operator with a function's name."""
    kind = inspect.Parameter
    is_method = type(function).__name__ in ("method_descriptor", "method-wrapper")
    first = kind("self" if is_method else "input", kind.POSITIONAL_OR_KEYWORD)
    packet = getattr(torch.ops.aten, function.__name__, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket) or function.__name__ == "__get__":
        return inspect.Signature([first])
    schemas = [getattr(packet, name)._schema for name in packet.overloads()]
    schema = min(schemas, key=lambda s: sum(not a.has_default_value() for a in s.arguments))
    parameters = [
        kind(
            first.name if a.name == "self" else a.name.replace("from", "from_"),
            kind.KEYWORD_ONLY if a.kwarg_only else kind.POSITIONAL_OR_KEYWORD,
            default=a.default_value if a.has_default_value() else kind.empty,
        )
        for a in schema.arguments
    ]
    # A Python signature has no parameter without a default after one with.
    parameters.sort(key=lambda p: (p.kind, p.default is not kind.empty))
    return inspect.Signature(parameters)


def _testing_override(function):
    """A function with the parameters of `function` that does nothing."""
    import inspect

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = _operator_signature(function, inspect)

        def override(*args, **kwargs):  # an operator has more forms than one
            return -1

    else:

        def override(*args, **kwargs) -> object:
            signature.bind(*args, **kwargs)
            return -1

    override.__name__ = getattr(function, "__name__", "override")
    override.__signature__ = signature.replace(
        parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
        return_annotation=signature.empty,
    )
    return override


@functools.cache
def get_testing_overrides():
    """For each overridable function a function of the same parameters that gives -1."""
    functions = [f for found in _overridable()[0].values() for f in found]
    functions += [getattr(torch, name) for name in _PRIVATE_FUNCTIONS if hasattr(torch, name)]
    init = torch.nn.init
    functions += [init.uniform_, init.normal_, init.constant_, init.kaiming_uniform_]
    return {f: _testing_override(f) for f in functions}


@functools.cache
def _get_tensor_methods():
    return set(get_overridable_functions()[torch.Tensor])


def is_tensor_method_or_property(func):
    """Whether func is a method or an accessor of torch.Tensor."""
    return func in _get_tensor_methods() or getattr(func, "__name__", "") == "__get__"


def is_tensor_like(inp) -> bool:
    """Whether inp is a tensor or of a class that overrides torch's functions."""
    return type(inp) is torch.Tensor or hasattr(inp, "__torch_function__")


# ---- modes ---------------------------------------------------------------------------------------
# -------------


class TorchFunctionMode:
    """Takes over every call of an overridable function on this thread inside a with statement."""

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} does not define __torch_function__")

    def __enter__(self):
        _push_mode(self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> None:
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


def _push_mode(mode) -> None:
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
def _enable_torch_function() -> Iterator[None]:
    state = _C._get_torch_function_state()
    _C._set_torch_function_state(_C._TorchFunctionState.ENABLED)
    try:
        yield
    finally:
        _C._set_torch_function_state(state)


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Lets __torch_dispatch__ be called from inside itself."""
    with _C._RestorePythonTLSSnapshot():
        yield
