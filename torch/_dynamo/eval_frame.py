"""torch.compile as a callable: which functions it wraps and how, what is asked before a frame is
compiled, and the switches around it (disable, run, set_stance). The work per call is done in C++
(torch/csrc/dynamo/eval_frame.h); what happens on a miss begins here."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch._C._dynamo import eval_frame as _c
from torch._C._dynamo.eval_frame import (
    CodeCache,
    CompiledEntry,
    CompiledFunction,
    DisabledFunction,
    _debug_get_cache_entry_list,
    reset_code,
    skip_code,
)
from torch._dynamo import config, exc
from torch._dynamo.backends.registry import lookup_backend

__all__ = [
    "OptimizeContext",
    "_debug_get_cache_entry_list",
    "disable",
    "innermost_fn",
    "is_dynamo_supported",
    "optimize",
    "optimize_assert",
    "remove_from_cache",
    "reset_code",
    "run",
    "skip_code",
]

_VERSIONS = ((3, 10), (3, 11), (3, 12), (3, 13))
_FUNCTIONS = (CompiledFunction, DisabledFunction)
# What a program asked for by set_stance; the C part knows force_eager by itself.
STANCES = (
    "default",
    "eager_then_compile",
    "aot_eager_then_compile",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
)


@dataclasses.dataclass(frozen=True)
class Stance:
    """When to compile and when to run eagerly."""

    stance: str = "default"
    skip_guard_eval_unsafe: bool = False
    backend: str | Callable | None = None


_stance = Stance()


def is_dynamo_supported() -> bool:
    """Whether functions can be traced on this Python."""
    return sys.version_info[:2] in _VERSIONS


def check_if_dynamo_supported() -> None:
    """Raises where functions cannot be traced."""
    if not is_dynamo_supported():
        version = ".".join(str(part) for part in sys.version_info[:2])
        raise RuntimeError(f"Python {version} not yet supported for torch.compile: not tested")


# ---- one frame

# One frame is compiled at a time, because a trace changes settings of the process. The thread that
# compiles may come here again: a backend or the handler of a signal calls compiled functions.
_compiling = threading.RLock()


def _forget_other_threads() -> None:
    """In the child of a fork nobody is left who would release the lock."""
    global _compiling
    _compiling = threading.RLock()


os.register_at_fork(after_in_child=_forget_other_threads)


def _settings() -> _c.ThreadSettings:
    """What a compilation changes in its thread and process. Each part of it is put back where it
    was changed; but the handler of a signal may raise while that is under way."""
    from torch import _guards
    from torch._dynamo import utils

    local = _guards._local
    attributes = (
        (local, "tracing_context"),
        (local, "compile_context"),
        (torch.compiler, "_is_compiling_flag"),
    )
    return _c.ThreadSettings(attributes, utils.current_stages)


class FrameCompiler:
    """What the entry calls when no compiled form fits: asks the stance, the settings and the
    limits, then compiles. One belongs to each torch.compile."""

    def __init__(
        self, backend: Callable, fullgraph: bool, dynamic: bool | None, **hooks: object
    ) -> None:
        self.backend = backend
        self.fullgraph = fullgraph
        self.dynamic = dynamic
        # Forms of one function for this torch.compile; None: what the settings say.
        self.recompile_limit: int | None = hooks.pop("recompile_limit", None)
        self.hooks = hooks
        # By the identity of the backend, which the translation keeps alive.
        self._converts: dict[int, Callable] = {}
        # Code of the functions that were wrapped, which is compiled wherever it comes from.
        self.wrapped: weakref.WeakSet[types.CodeType] = weakref.WeakSet()

    def __getstate__(self) -> dict[str, object]:
        # Code cannot be pickled; whoever reads the compiler back wraps functions anew.
        return {name: value for name, value in self.__dict__.items() if name != "wrapped"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, wrapped=weakref.WeakSet())

    def convert(self, backend: Callable) -> Callable:
        """The translation of frames; loaded with the first."""
        if id(backend) not in self._converts:
            from torch._dynamo.convert_frame import ConvertFrame

            self._converts[id(backend)] = ConvertFrame(
                backend,
                self.fullgraph,
                self.dynamic,
                self.recompile_limit,
                keeps=all(hook is None for hook in self.hooks.values()),
                guard_filter_fn=self.hooks.get("guard_filter_fn"),
                guard_export_fn=self.hooks.get("guard_export_fn"),
            )
        return self._converts[id(backend)]

    def __call__(
        self,
        code: types.CodeType,
        fn_globals: dict[str, object],
        closure: tuple[types.CellType, ...] | None,
        values: dict[str, object],
        cache: CodeCache,
    ) -> CompiledEntry | bool | None:
        if config.disable or (_is_layer(fn_globals, values) and code not in self.wrapped):
            return False
        backend = _stance.backend or self.backend
        # Some of the settings are the process's: they are noted and put back while no other thread
        # compiles.
        with _compiling:
            settings = _settings()
            try:
                # A thread may have made it while this one waited, or came here.
                if cache.entries and threading.active_count() > 1:
                    found = _made_meanwhile(code, closure, values, cache, backend)
                    if found is not None:
                        return found
                made = self._compile(code, fn_globals, closure, values, cache, backend)
                if isinstance(made, CompiledEntry):
                    # Before another thread comes to ask.
                    cache.entries.insert(0, made)
                return made
            except BaseException as error:
                exc.close_contexts(error)
                raise
            finally:
                settings.put_back()

    def _compile(
        self,
        code: types.CodeType,
        fn_globals: dict[str, object],
        closure: tuple[types.CellType, ...] | None,
        values: dict[str, object],
        cache: CodeCache,
        backend: Callable,
    ) -> CompiledEntry | bool | None:
        from torch._dynamo import recompiles

        known = any(entry.backend is backend for entry in cache.entries)
        why = None
        if not self._stance_allows(code, cache, values):
            return False
        if known:
            frame = _frame_of(code, closure, values)
            found = recompiles.failures(cache, backend, frame)
            limit = recompiles.is_over_limit(cache, backend, self.recompile_limit)
            fail = self.hooks.get("guard_fail_fn")
            if fail is not None and found:
                fail(GuardFail("; ".join(found[0].texts), code))
            if limit is not None:
                recompiles.refuse(code, limit, found, self.fullgraph)
                cache.run_only = True
                return False
            why = functools.partial(recompiles.report, code, found, {"L": frame, "G": fn_globals})
        convert = self.convert(backend)
        return convert(code, fn_globals, closure, values, cache, code in self.wrapped, why)

    def _stance_allows(
        self, code: types.CodeType, cache: CodeCache, values: dict[str, object]
    ) -> bool:
        stance = _stance.stance
        if stance == "default":
            return True
        if stance == "fail_on_recompile":
            raise RuntimeError(
                "Detected recompile when torch.compile stance is 'fail_on_recompile'. "
                f"filename: '{code.co_filename}', function name: '{code.co_name}', "
                f"line number: {code.co_firstlineno}"
            )
        if stance in ("eager_then_compile", "aot_eager_then_compile"):
            if cache.__dict__.get("ran_eagerly", False):
                return True
            cache.__dict__["ran_eagerly"] = True
            cache.__dict__["state"] = _sizes_seen(code, values)
            return False
        return stance != "eager_on_recompile"


def _sizes_seen(code: types.CodeType, values: dict[str, object]) -> dict[str, object]:
    """What a call that runs eagerly teaches: the compilation of the next finds what varies."""
    from torch._dynamo import pgo

    state = pgo.load(code)
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            state.setdefault(f"L[{name!r}]", [*value.shape])
        elif type(value) in (int, float):
            state.setdefault(f"L[{name!r}]", value)
    return state


def _frame_of(
    code: types.CodeType, closure: tuple[types.CellType, ...] | None, values: dict[str, object]
) -> dict[str, object]:
    """The parameters and cells of a frame, as guards read them."""
    return {**values, **dict(zip(code.co_freevars, closure or (), strict=False))}


def _made_meanwhile(
    code: types.CodeType,
    closure: tuple[types.CellType, ...] | None,
    values: dict[str, object],
    cache: CodeCache,
    backend: Callable,
) -> CompiledEntry | None:
    """What another thread compiled while this one waited, if it fits."""
    frame = _frame_of(code, closure, values)
    for entry in cache.entries:
        if entry.backend is backend and (entry.guards is None or entry.guards.check(frame)):
            return entry
    return None


class GuardFail(NamedTuple):
    """What guard_fail_fn is told."""

    reason: str
    orig_code: types.CodeType


def is_module(fn: object) -> bool:
    """Whether it is a torch.nn.Module. A program that never imported torch.nn has none."""
    found = sys.modules.get("torch.nn.modules.module")
    return found is not None and isinstance(fn, found.Module)


def _is_layer(fn_globals: dict[str, object], values: dict[str, object]) -> bool:
    """Whether a frame is a method of a layer of torch.nn without layers inside. Called from code
    that runs as it is, a graph of its own would hold one operator."""
    if not str(fn_globals.get("__name__")).startswith("torch.nn.modules."):
        return False
    layer = values.get("self")
    if not isinstance(layer, torch.nn.Module):
        return False
    # A layer that is being made has no table of layers yet.
    return not layer.__dict__.get("_modules")


# ---- what is wrapped


def innermost_fn(fn: Callable, unaltered_fn_attr: str = "_torchdynamo_orig_callable") -> Callable:
    """The function that wrappers of this package were put around."""
    while hasattr(fn, unaltered_fn_attr):
        inner = getattr(fn, unaltered_fn_attr)
        if not callable(inner):
            raise AssertionError(f"A callable function is expected, but {type(inner)} is provided.")
        fn = inner
    return fn


def caller_of(target: Callable) -> types.FunctionType:
    """A function with bytecode that calls something without."""

    def inner(*args: object, **kwargs: object) -> object:
        return target(*args, **kwargs)

    functools.update_wrapper(inner, target, updated=())
    return inner


class OptimizeContext:
    """Wraps functions and modules so that calls are compiled."""

    def __init__(
        self, callback: FrameCompiler | None, *, run_only: bool = False, export: bool = False
    ) -> None:
        self.callback = callback
        self.run_only = run_only
        self.export = export

    @property
    def backend(self) -> Callable | None:
        """The backend whose forms are used."""
        return None if self.callback is None else self.callback.backend

    def _wrap(self, function: types.FunctionType) -> CompiledFunction:
        if self.callback is not None:
            self.callback.wrapped.add(function.__code__)
        return CompiledFunction(function, self.callback, self.backend, self.run_only)

    def __call__(self, fn: Callable) -> Callable:
        if is_module(fn):
            from torch._dynamo.optimized_module import OptimizedModule

            return OptimizedModule(innermost_module(fn), self)
        if inspect.isclass(fn):
            # Instances are made as ever; what is called is compiled.
            call = _call_of_class(fn)
            if call is not None:
                fn.__call__ = self._wrap(call)
            return fn
        if not callable(fn):
            raise AssertionError(f"A callable function is expected, but {type(fn)} is provided.")
        if isinstance(fn, types.MethodType):
            inner = innermost_fn(fn.__func__)
            if isinstance(inner, types.FunctionType):
                return types.MethodType(self._wrap(inner), fn.__self__)
            return self._wrap(caller_of(fn))
        if isinstance(fn, CompiledFunction):
            fn = innermost_fn(fn)
        if isinstance(fn, types.FunctionType):
            return self._wrap(fn)
        return self._wrap(caller_of(fn))

    def __enter__(self) -> None:
        if config.raise_on_ctx_manager_usage:
            raise RuntimeError(
                "torch._dynamo.optimize(...) is used with a context manager. Please refer to "
                "https://pytorch.org/tutorials/intermediate/torch_compile_tutorial.html to use "
                "torch._dynamo.optimize(...) as an annotation/decorator. "
            )
        self._before = _c.set_eval_frame(False if self.run_only else self.callback)

    def __exit__(self, *error: object) -> None:
        _c.set_eval_frame(self._before)


def _call_of_class(cls: type) -> types.FunctionType | None:
    """What a call of an instance runs, with bytecode of its own. Modules get one that calls their
    base's, so that hooks take part."""
    own = cls.__dict__.get("__call__")
    if isinstance(own, types.FunctionType):
        return own
    if not issubclass(cls, torch.nn.Module):
        return None

    def __call__(self: torch.nn.Module, *args: object, **kwargs: object) -> object:
        return super(cls, self).__call__(*args, **kwargs)

    return __call__


def innermost_module(mod: torch.nn.Module) -> torch.nn.Module:
    """The module inside wrappers of torch.compile."""
    from torch._dynamo.optimized_module import OptimizedModule

    while isinstance(mod, OptimizedModule):
        mod = mod._orig_mod
    return mod


def __getattr__(name: str) -> object:
    if name == "OptimizedModule":  # needs torch.nn
        from torch._dynamo.optimized_module import OptimizedModule

        return OptimizedModule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---- the public functions


def optimize(
    backend: str | Callable = "inductor",
    *,
    nopython: bool = False,
    error_on_graph_break: bool | None = None,
    guard_export_fn: Callable | None = None,
    guard_fail_fn: Callable | None = None,
    guard_filter_fn: Callable | None = None,
    disable: bool = False,
    dynamic: bool | None = None,
    recompile_limit: int | None = None,
    package: object = None,
    rebuild_ctx: object = None,
) -> Callable:
    """The decorator behind torch.compile."""
    if disable or config.disable or os.environ.get("TORCHDYNAMO_DISABLE") == "1":
        return lambda fn=None: fn
    check_if_dynamo_supported()
    callback = FrameCompiler(
        lookup_backend(backend),
        nopython,
        dynamic,
        guard_export_fn=guard_export_fn,
        guard_fail_fn=guard_fail_fn,
        guard_filter_fn=guard_filter_fn,
        recompile_limit=recompile_limit,
    )
    return OptimizeContext(callback)


def optimize_assert(
    backend: str | Callable, *, dynamic: bool | None = None, export: bool = False, **hooks: object
) -> Callable:
    """optimize, where a graph break is an error."""
    callback = FrameCompiler(lookup_backend(backend), True, dynamic, **hooks)
    return OptimizeContext(callback, export=export)


def run(fn: Callable | None = None) -> Callable:
    """fn with code that is compiled already, and no new."""
    context = OptimizeContext(None, run_only=True)
    return context if fn is None else context(innermost_fn(fn))


def disable(
    fn: Callable | None = None,
    recursive: bool = True,
    *,
    reason: str | None = None,
    wrapping: bool = True,
) -> Callable:
    """Marks a function as not to be compiled, with everything it calls unless recursive=False."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason, wrapping=wrapping)
    if not recursive:
        inner = innermost_fn(fn)
        if isinstance(inner, types.FunctionType):
            skip_code(inner.__code__)
        inner._torchdynamo_disable = True
        inner._torchdynamo_disable_msg = reason
        return inner
    if is_module(fn):
        from torch._dynamo.optimized_module import OptimizedModule

        wrapped = OptimizedModule(innermost_module(fn))
        object.__setattr__(wrapped, "_compiled_call", _marked(caller_of(fn), reason))
        object.__setattr__(wrapped, "_compiled_forward", wrapped._compiled_call)
        return wrapped
    if inspect.isclass(fn) and issubclass(fn, torch.nn.Module):
        fn.__call__ = _marked(_call_of_class(fn), reason)
        return fn
    if inspect.isclass(fn):
        for name, value in list(vars(fn).items()):
            if isinstance(value, types.FunctionType):
                setattr(fn, name, _marked(value, reason))
        return fn
    if isinstance(fn, types.MethodType):
        return types.MethodType(_marked(fn.__func__, reason), fn.__self__)
    return _marked(innermost_fn(fn), reason)


def _marked(fn: Callable, reason: str | None) -> DisabledFunction:
    made = DisabledFunction(fn)
    made._torchdynamo_disable = True
    made._torchdynamo_disable_msg = reason
    made._torchdynamo_disable_recursive = True
    return made


def skip(fn: Callable | None = None) -> Callable:
    """Marks a function as not to be compiled; what it calls is."""
    return skip if fn is None else disable(fn, recursive=False)


def remove_from_cache(f: Callable | types.CodeType) -> None:
    """Forgets what was compiled for a function."""
    if isinstance(f, types.CodeType):
        reset_code(f)
    elif hasattr(f, "__code__"):
        reset_code(f.__code__)
    elif isinstance(getattr(f, "forward", None), types.MethodType):
        reset_code(f.forward.__code__)
    else:
        from torch._dynamo import reset

        reset()


def set_stance_value(new: Stance) -> Stance:
    """Sets the stance; returns the one before."""
    global _stance
    if new.stance not in STANCES:
        raise RuntimeError(
            f"invalid torch.compile stance '{new.stance}', expected one of {STANCES}"
        )
    if new.stance != "default" and new.backend is not None:
        raise RuntimeError(
            f"non-default stance cannot have force_backend set: stance '{new.stance}', "
            f"force_backend {new.backend!r}"
        )
    if new.backend is not None:
        new = dataclasses.replace(new, backend=lookup_backend(new.backend))
    before, _stance = _stance, new
    _c.set_force_eager(new.stance == "force_eager")
    _c.set_forced_backend(new.backend)
    return before


class TorchPatcher:
    """What marks functions of torch that the tracer leaves alone. Rules say so here
    (torch._dynamo.trace_rules), so there is nothing to be done."""

    @staticmethod
    def patch() -> None:
        """Does nothing."""
