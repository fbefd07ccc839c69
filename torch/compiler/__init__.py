"""What programs tell a compiler about their functions. There is no compiler yet (torch.compile runs
functions as they are), so the marks are accepted and have nothing to change."""

from __future__ import annotations

import functools

import torch
from torch import _later
from torch._compile import NotCompiledWarning

__all__ = [
    "NotCompiledWarning",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe",
    "list_backends",
    "load_cache_artifacts",
    "load_compiled_function",
    "nested_compile_region",
    "reset",
    "save_cache_artifacts",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph",
    "wrap_numpy",
]

_STANCES = (
    "default",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
    "eager_then_compile",
)
_default_backend = "inductor"


def compile(*args, **kwargs):
    """torch.compile."""
    return torch.compile(*args, **kwargs)


def reset() -> None:
    """Forgets all compiled code."""
    from torch._C._dynamo.eval_frame import reset_all

    reset_all()


def is_compiling() -> bool:
    """Whether the code is being compiled or exported: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether the code is being traced: never."""
    return False


def is_exporting() -> bool:
    """Whether the code is being exported: never."""
    return False


def disable(fn=None, recursive=True, *, reason=None):
    """Marks a function as not to be compiled; usable as a decorator."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    return fn


def allow_in_graph(fn):
    """Marks a function, or several, as opaque to the compiler."""
    return fn


def assume_constant_result(fn):
    """Marks a function whose result does not change."""
    return fn


def nested_compile_region(fn=None, options=None, *, max_reuse_entries=None):
    """Marks a function to be compiled once and used in many places."""
    if fn is None:
        return functools.partial(nested_compile_region, options=options)
    return fn


def substitute_in_graph(
    original_fn,
    *,
    can_constant_fold_through=False,
    skip_signature_check=False,
    is_embedded_type=False,
):
    """A decorator for what a compiler shall use in place of original_fn."""
    if not callable(original_fn):
        raise TypeError("substitute_in_graph expects a callable")

    def mark(traceable_fn):
        if not callable(traceable_fn):
            raise TypeError("substitute_in_graph expects a callable")
        return traceable_fn

    return mark


def list_backends(exclude_tags=("debug", "experimental")):
    """Names of the backends that are there: those of torch._dynamo.register_backend."""
    from torch import _dynamo

    return _dynamo.list_backends(exclude_tags)


def set_default_backend(backend) -> None:
    """The backend torch.compile uses when none is named."""
    global _default_backend
    _default_backend = backend


def get_default_backend() -> str:
    """What set_default_backend set."""
    return _default_backend


class set_stance:
    """When to compile and when to run eagerly; a function, a context manager and a decorator.
    Everything runs eagerly, so that only the name is checked."""

    def __init__(
        self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None
    ) -> None:
        if stance not in _STANCES:
            raise RuntimeError(
                f"invalid torch.compile stance '{stance}', expected one of {_STANCES}"
            )
        self.stance = stance

    def __call__(self, fn):
        return fn

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc) -> None:
        return None


def set_enable_guard_collectives(enabled) -> bool:
    """Returns what it was before: off."""
    return False


def cudagraph_mark_step_begin() -> None:
    """Says that a new step begins; nothing is recorded into graphs behind the program's back."""
    return None


def wrap_numpy(fn):
    """A function of NumPy arrays as a function of tensors."""
    from torch.utils import _pytree as pytree

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        import numpy

        args, kwargs = pytree.tree_map_only(torch.Tensor, lambda t: t.numpy(), (args, kwargs))
        return pytree.tree_map_only(numpy.ndarray, torch.as_tensor, fn(*args, **kwargs))

    return wrapped


def keep_portable_guards_unsafe(guard_entries):
    """Which guards to keep: all."""
    return [True] * len(guard_entries)


keep_tensor_guards_unsafe = skip_all_guards_unsafe = keep_portable_guards_unsafe
skip_guard_on_all_nn_modules_unsafe = skip_guard_on_globals_unsafe = keep_portable_guards_unsafe
skip_guard_on_inbuilt_nn_modules_unsafe = keep_portable_guards_unsafe

globals().update(
    _later.names(__name__, "load_cache_artifacts load_compiled_function save_cache_artifacts")
)
