"""What programs tell the compiler about their functions, and what they ask it. `import torch` loads
none of the compiler: each function loads it when it is called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import IO, TypeVar

import torch
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

F = TypeVar("F", bound=Callable)
_default_backend: str | Callable = "inductor"
# Set while a program is compiled or exported without bytecode being read.
_is_compiling_flag = False
_is_exporting_flag = False
# Steps that the program said to have begun.
cudagraph_steps = 0


def compile(*args: object, **kwargs: object) -> Callable:
    """torch.compile."""
    return torch.compile(*args, **kwargs)


def reset() -> None:
    """Forgets all compiled code."""
    import torch._dynamo

    torch._dynamo.reset()


# ---- questions


def is_compiling() -> bool:
    """Whether the code is being compiled or exported."""
    return _is_compiling_flag


def is_dynamo_compiling() -> bool:
    """Whether the code is being traced; the tracer replaces the call by True."""
    return False


def is_exporting() -> bool:
    """Whether the code is being exported."""
    return _is_exporting_flag


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """Names of the backends that are there."""
    import torch._dynamo

    return torch._dynamo.list_backends(exclude_tags)


def set_default_backend(backend: str | Callable) -> None:
    """The backend torch.compile uses when none is named."""
    global _default_backend
    _default_backend = backend


def get_default_backend() -> str | Callable:
    """What set_default_backend set."""
    return _default_backend


# ---- marks


def disable(
    fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None
) -> Callable:
    """Marks a function as not to be compiled; usable as a decorator."""
    import torch._dynamo

    return torch._dynamo.disable(fn, recursive, reason=reason)


def allow_in_graph(fn: F) -> F:
    """Marks a function, or several, as opaque to the compiler."""
    import torch._dynamo

    return torch._dynamo.allow_in_graph(fn)


def assume_constant_result(fn: F) -> F:
    """Marks a function whose result does not change."""
    import torch._dynamo

    return torch._dynamo.assume_constant_result(fn)


def nested_compile_region(
    fn: Callable | None = None, options: object = None, *, max_reuse_entries: int | None = None
) -> Callable:
    """Marks a function to be compiled once and used in many places."""
    if fn is None:
        return functools.partial(nested_compile_region, options=options)
    from torch._higher_order_ops.invoke_subgraph import mark_compile_region

    return mark_compile_region(fn)


def substitute_in_graph(
    original_fn: Callable,
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
    is_embedded_type: bool = False,
) -> Callable[[F], F]:
    """A decorator for what the compiler uses in place of original_fn."""
    import torch._dynamo

    return torch._dynamo.substitute_in_graph(
        original_fn,
        can_constant_fold_through=can_constant_fold_through,
        skip_signature_check=skip_signature_check,
        is_embedded_type=is_embedded_type,
    )


def set_stance(
    stance: str = "default",
    *,
    skip_guard_eval_unsafe: bool = False,
    force_backend: str | Callable | None = None,
) -> object:
    """When to compile and when to run eagerly; a function, a context manager and a decorator."""
    import torch._dynamo

    return torch._dynamo.set_stance(
        stance, skip_guard_eval_unsafe=skip_guard_eval_unsafe, force_backend=force_backend
    )


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Whether ranks agree on their guards; returns what it was before."""
    from torch._dynamo import config

    before = config.enable_guard_collectives
    config.enable_guard_collectives = enabled
    return before


def cudagraph_mark_step_begin() -> None:
    """Says that a new step begins: memory that recorded graphs gave out in the step before may be
    used again. Who records graphs compares cudagraph_steps with what it was."""
    global cudagraph_steps
    cudagraph_steps += 1


def wrap_numpy(fn: Callable) -> Callable:
    """A function of NumPy arrays as a function of tensors."""
    from torch.utils import _pytree as pytree

    @functools.wraps(fn)
    def wrapped(*args: object, **kwargs: object) -> object:
        import numpy

        args, kwargs = pytree.tree_map_only(torch.Tensor, lambda t: t.numpy(), (args, kwargs))
        return pytree.tree_map_only(numpy.ndarray, torch.as_tensor, fn(*args, **kwargs))

    return wrapped


# ---- which guards to keep (guard_filter_fn)


def keep_portable_guards_unsafe(guard_entries: Sequence[object]) -> list[bool]:
    """Guards that mean something in another process."""
    unportable = ("ID_MATCH", "CLOSURE_MATCH", "WEAKREF_ALIVE", "DICT_VERSION")
    return [entry.guard_type not in unportable for entry in guard_entries]


def keep_tensor_guards_unsafe(
    guard_entries: Sequence[object], keep_parameters: bool = False
) -> list[bool]:
    """Guards on tensors, without those on parameters."""
    return [
        entry.guard_type == "TENSOR_MATCH"
        and (keep_parameters or not isinstance(entry.value, torch.nn.Parameter))
        for entry in guard_entries
    ]


def skip_all_guards_unsafe(guard_entries: Sequence[object]) -> list[bool]:
    """No guards at all."""
    return [False] * len(guard_entries)


def skip_guard_on_all_nn_modules_unsafe(guard_entries: Sequence[object]) -> list[bool]:
    """Guards but those on modules."""
    return [not entry.orig_guard.source.is_unspecialized_nn_module() for entry in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: Sequence[object]) -> list[bool]:
    """Guards but those on modules of torch.nn."""
    return [
        not entry.orig_guard.source.is_unspecialized_builtin_nn_module() for entry in guard_entries
    ]


def skip_guard_on_globals_unsafe(guard_entries: Sequence[object]) -> list[bool]:
    """Guards but those on globals."""
    return [not entry.is_global for entry in guard_entries]


def save_cache_artifacts() -> tuple[bytes, object] | None:
    """What the compiler of this process keeps on disk, as bytes for another machine of this kind,
    and a description of it; None where there is nothing."""
    from torch._inductor.cache_store import save_artifacts

    return save_artifacts()


def load_cache_artifacts(serialized_artifacts: bytes) -> object | None:
    """Puts what save_cache_artifacts() returned into the caches of this machine. Returns the
    description, or None where the bytes are damaged. They hold machine code: load only what you
    would run."""
    from torch._inductor.cache_store import load_artifacts

    return load_artifacts(serialized_artifacts)


def load_compiled_function(
    file: IO[bytes],
    *,
    f_globals: dict[str, object] | None = None,
    external_data: dict[str, torch.Tensor] | None = None,
) -> Callable:
    """A function that torch.compile(fn, fullgraph=True).aot_compile((args, kwargs)) compiled and
    its save_compiled_function(path) wrote, read from an open file. It raises RuntimeError for
    arguments that it was not compiled for. `f_globals` are the caller's globals, compared with the
    constants of the graph; `external_data` gives tensors in place of those in the file."""
    from torch._dynamo import aot_compile

    return aot_compile.load_compiled_function(
        file, f_globals=f_globals, external_data=external_data
    )
