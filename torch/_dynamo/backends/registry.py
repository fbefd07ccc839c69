"""Backends by name: those of this package, those that a program registers, and those that
installed packages offer under the entry point "torch_dynamo_backends". A backend is a function of
(GraphModule, example inputs) that returns something callable."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from torch._dynamo.exc import InvalidBackend

if TYPE_CHECKING:
    import importlib.metadata

    import torch
    from torch import fx

_ENTRY_POINTS = "torch_dynamo_backends"
# What the backend for ONNX Runtime needs.
_ONNX = ("onnx", "onnxscript", "onnxruntime")
# Names of PyTorch whose compilers are not here: they are known, and asking for one says so.
_ABSENT = frozenset("cudagraphs onnxrt openxla openxla_eval tvm tensorrt ts aot_ts".split())


class CompiledFn(Protocol):
    """What a backend returns."""

    def __call__(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]: ...


CompilerFn = Callable[["fx.GraphModule", list], CompiledFn]

_COMPILER_FNS: dict[str, CompilerFn] = {}
_BACKENDS: dict[str, importlib.metadata.EntryPoint | None] = {}
_TAGS: dict[str, frozenset[str]] = {}


def register_backend(
    compiler_fn: CompilerFn | None = None, name: str | None = None, tags: Sequence[str] = ()
) -> Callable:
    """Makes a backend known by name; usable as a decorator."""
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise TypeError(f"register_backend: expected a function, got {type(compiler_fn)}")
    name = name or compiler_fn.__name__
    if name in _COMPILER_FNS and not _is_made_again(_COMPILER_FNS[name], compiler_fn):
        raise AssertionError(f"duplicate name: {name}")
    _COMPILER_FNS[name] = compiler_fn
    _BACKENDS.setdefault(name, None)
    _TAGS[name] = frozenset(tags)
    return compiler_fn


def _is_made_again(old: CompilerFn, new: CompilerFn) -> bool:
    """Whether a function is another one of the same text: the import of its module was interrupted
    and is done again."""
    codes = [getattr(fn, "__code__", None) for fn in (old, new)]
    return old is not new and codes[0] is not None and codes[0] == codes[1]


def register_debug_backend(
    compiler_fn: CompilerFn | None = None, name: str | None = None
) -> Callable:
    """register_backend for one that list_backends leaves out."""
    return register_backend(compiler_fn, name=name, tags=("debug",))


def register_experimental_backend(
    compiler_fn: CompilerFn | None = None, name: str | None = None
) -> Callable:
    """register_backend for one that list_backends leaves out."""
    return register_backend(compiler_fn, name=name, tags=("experimental",))


def lookup_backend(compiler_fn: str | CompilerFn) -> CompilerFn:
    """The function of a backend."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    _look_for(compiler_fn)
    if compiler_fn not in _BACKENDS:
        if compiler_fn in _ABSENT:
            raise NotImplementedError(
                f"lookup_backend: {compiler_fn!r} is not implemented in this version"
            )
        raise InvalidBackend(name=compiler_fn)
    if compiler_fn not in _COMPILER_FNS:
        entry = _BACKENDS[compiler_fn]
        assert entry is not None
        register_backend(compiler_fn=entry.load(), name=compiler_fn)
    return _COMPILER_FNS[compiler_fn]


def is_known(name: str) -> bool:
    """Whether a backend has this name, also one that does not exist here."""
    _look_for(name)
    return name in _BACKENDS or name in _ABSENT


def is_absent(backend: str | CompilerFn) -> bool:
    """Whether a name is that of a compiler which does not exist here."""
    return isinstance(backend, str) and backend in _ABSENT and backend not in _BACKENDS


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """Names of the backends, without those that have one of the tags."""
    _lazy_import()
    excluded = frozenset(exclude_tags or ())
    return sorted(name for name in _BACKENDS if not _TAGS.get(name, frozenset()) & excluded)


def _look_for(name: str) -> None:
    """Reads what installed packages offer unless the name is registered: that takes longer than to
    compile a small function."""
    _import_own()
    if name not in _COMPILER_FNS:
        _lazy_import()


@functools.cache
def _import_own() -> None:
    from torch._dynamo.backends import debugging, inductor  # noqa: F401  (they register)


@functools.cache
def _lazy_import() -> None:
    _import_own()
    _import_onnxrt()
    _discover_entrypoint_backends()


def _import_onnxrt() -> None:
    """Registers the backend for ONNX Runtime if its packages are installed."""
    from importlib.util import find_spec

    if all(find_spec(name) is not None for name in _ONNX):
        from torch._dynamo.backends import onnxrt  # noqa: F401  (it registers)


@functools.cache
def _discover_entrypoint_backends() -> None:
    import importlib.metadata

    found = importlib.metadata.entry_points(group=_ENTRY_POINTS)
    for name in found.names:
        _BACKENDS.setdefault(name, found[name])
