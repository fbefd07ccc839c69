"""__torch_dispatch__ from Python: modes that see every operator below autograd, and help for
wrapper subclasses."""

import contextlib

import torch
from torch import _C

__all__ = ["TorchDispatchMode", "return_and_correct_aliasing"]


class TorchDispatchMode:
    """Takes over every operator call on this thread inside a with statement, below autograd."""

    def __init__(self, _dispatch_key=None) -> None:
        self._dispatch_key = _dispatch_key
        self.old_dispatch_mode_flags = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(f"{type(self).__name__} does not define __torch_dispatch__")

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode belongs to the compiler rather than to a user."""
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Whether the mode does not see what the compiler does inside."""
        return False

    def __enter__(self):
        _push_mode(self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> None:
        _pop_mode(getattr(self, "_mode_key", None))

    @classmethod
    def push(cls, *args, **kwargs):
        """An instance (an old spelling of calling the class)."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets every call through."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _push_mode(mode) -> None:
    # A mode of the infrastructure goes to its slot below all others.
    if getattr(mode, "_mode_key", None) is None:
        _C._push_on_torch_dispatch_stack(mode)
    else:
        _C._set_dispatch_mode(mode)


def _pop_mode(k=None):
    return _C._pop_torch_dispatch_stack() if k is None else _C._pop_torch_dispatch_stack(k)


def _get_current_dispatch_mode():
    depth = _C._len_torch_dispatch_stack()
    return _C._get_dispatch_stack_at(depth - 1) if depth else None


def _get_current_dispatch_mode_stack():
    return [_C._get_dispatch_stack_at(i) for i in range(_C._len_torch_dispatch_stack())]


def is_in_torch_dispatch_mode(include_infra_modes=True) -> bool:
    """Whether a dispatch mode is active on this thread."""
    modes = _get_current_dispatch_mode_stack()
    return any(include_infra_modes or not mode.is_infra_mode() for mode in modes)


def any_torch_dispatch_mode_on_stack():
    """Whether a dispatch mode is active on this thread."""
    return _C._len_torch_dispatch_stack() > 0


@contextlib.contextmanager
def _pop_mode_temporarily(k=None):
    mode = _pop_mode(k)
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes():
    """All modes are off inside."""
    modes = []
    while _C._len_torch_dispatch_stack():
        modes.append(_pop_mode())
    try:
        yield modes[::-1]
    finally:
        for mode in reversed(modes):
            _push_mode(mode)


# ---- wrapper subclasses
# ---------------------------------------------------------------------------------------


def is_traceable_wrapper_subclass(t):
    """Whether t is a tensor made of inner tensors that it can name and be rebuilt from."""
    return isinstance(t, torch.Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t) -> bool:
    """The same for a class."""
    return (
        issubclass(t, torch.Tensor)
        and t is not torch.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """The wrapper t rebuilt with callback(name, inner) in place of each inner tensor."""
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    result = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    if result.shape != outer_size or result.stride() != tuple(outer_stride):
        raise AssertionError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to "
            f"{outer_size} and "
            f"stride {outer_stride}, but got {result.shape} and {result.stride()}"
        )
    return result


def _aliases(entry):
    """The alias letters of an argument or a return, and whether it is written to."""
    info = entry.alias_info
    return (set(info.before_set), info.is_write) if info is not None else (set(), False)


def _bind(schema, args, kwargs):
    """The value of each argument of the schema that was passed."""
    bound = {}
    for i, argument in enumerate(schema.arguments):
        if i < len(args) and not argument.kwarg_only:
            bound[argument.name] = args[i]
        elif argument.name in kwargs:
            bound[argument.name] = kwargs[argument.name]
    return bound


def _share_storage(source, result) -> None:
    """Makes the storage of a view that a subclass returned the storage of what it views."""
    if (
        not isinstance(source, torch.Tensor)
        or not isinstance(result, torch.Tensor)
        or source is result
    ):
        return
    with torch.no_grad(), _C._DisableTorchDispatch():
        geometry = result.storage_offset(), result.shape, result.stride()
        result.set_(source.untyped_storage(), *geometry)


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a wrapper subclass returns from __torch_dispatch__, with the aliasing that the schema
    promises.

    In-place and out= operators return the argument itself; views share their base's storage."""
    schema = func._schema
    bound = _bind(schema, args, kwargs or {})
    arguments = {argument.name: _aliases(argument) for argument in schema.arguments}
    returns = [_aliases(entry) for entry in schema.returns]
    if not any(letters for letters, _ in returns):
        return out

    def owner(letters):
        for name, (own, _) in arguments.items():
            if own & letters and name in bound:
                return bound[name]
        return None

    single = len(returns) == 1 and not isinstance(out, (tuple, list))
    results = [out] if single else list(out)
    if len(returns) == 1 and not single:
        returns = returns * len(results)
    for i, (letters, written) in enumerate(returns):
        source = owner(letters) if letters else None
        if source is None:
            continue
        if written:
            results[i] = source
        elif func.is_view:
            for view in results[i] if isinstance(results[i], (list, tuple)) else [results[i]]:
                _share_storage(source, view)
    if single:
        return results[0]
    return type(out)(results)
