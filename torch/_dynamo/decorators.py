"""What programs tell the tracer about their functions and tensors: marks, in the form of
decorators and contexts. A rule for a function goes to the one registry of trace rules; a mark on a
tensor is an attribute of the tensor that the tracer looks for."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch
from torch._dynamo import config
from torch._dynamo.eval_frame import (
    Stance,
    disable,
    run,
    set_stance_value,
    skip,
)

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "disable_nested_graph_breaks",
    "disallow_in_graph",
    "dont_skip_tracing",
    "error_on_graph_break",
    "forbid_in_graph",
    "graph_break",
    "is_dynamo_disable_recursive",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "patch_dynamo_config",
    "run",
    "set_recursion_limit",
    "set_stance",
    "skip",
    "skip_frame",
    "step_unsupported",
    "substitute_in_graph",
]

F = TypeVar("F", bound=Callable)


# ---- functions


def _for_each(fn: Callable | Sequence[Callable], mark: Callable[[Callable], None]) -> Callable:
    for one in fn if isinstance(fn, (list, tuple)) else (fn,):
        if not callable(one):
            raise AssertionError("allow_in_graph expects a callable")
        mark(one)
    return fn


def _rule(name: str) -> Callable[[Callable], None]:
    from torch._dynamo import trace_rules

    return lambda fn: trace_rules.register(fn, getattr(trace_rules, name))


def allow_in_graph(fn: F) -> F:
    """A function, or several, that become one node of the graph each instead of being traced
    into."""
    return _for_each(fn, _rule("GRAPH"))


def disallow_in_graph(fn: F) -> F:
    """A function, or several, that end the graph where they are called."""
    return _for_each(fn, _rule("SKIP"))


def forbid_in_graph(fn: F) -> F:
    """A function, or several, whose call while tracing is an error."""

    def mark(one: Callable) -> None:
        _rule("FORBID")(one)
        one._dynamo_forbidden = True

    return _for_each(fn, mark)


def assume_constant_result(fn: F) -> F:
    """A function that is called once while tracing, and whose result never changes."""
    fn._dynamo_marked_constant = True
    return fn


def nonstrict_trace(traceable_fn: F) -> F:
    """A function that is not traced into by the tracer of bytecode and is by later stages."""
    if not callable(traceable_fn):
        raise AssertionError("nonstrict_trace expects a callable")

    @functools.wraps(traceable_fn)
    def wrapped(*args: object, **kwargs: object) -> object:
        return traceable_fn(*args, **kwargs)

    _rule("NONSTRICT")(wrapped)
    wrapped._dynamo_nonstrict_trace = True
    return wrapped


def substitute_in_graph(
    original_fn: Callable,
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
    is_embedded_type: bool = False,
) -> Callable[[F], F]:
    """A decorator for what the tracer uses in place of a function without bytecode."""
    if not callable(original_fn) and not is_embedded_type:
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)!r}")

    def mark(traceable_fn: F) -> F:
        from torch._dynamo import trace_rules

        if not callable(traceable_fn):
            raise TypeError(
                f"@substitute_in_graph(...) expects a function but got {type(traceable_fn)!r}"
            )
        if not skip_signature_check:
            _check_signatures(original_fn, traceable_fn)
        trace_rules.register(original_fn, ("substitute", traceable_fn))

        @functools.wraps(traceable_fn)
        def wrapped(*args: object, **kwargs: object) -> object:
            return original_fn(*args, **kwargs)

        wrapped.__torch_dynamo_original__ = original_fn
        wrapped.__torch_dynamo_polyfill__ = traceable_fn
        wrapped.__torch_dynamo_can_constant_fold_through__ = can_constant_fold_through
        return wrapped

    return mark


def _check_signatures(original_fn: Callable, traceable_fn: Callable) -> None:
    try:
        wanted, given = inspect.signature(original_fn), inspect.signature(traceable_fn)
    except ValueError:
        return
    names = [[p.name for p in s.parameters.values() if p.kind is not p.POSITIONAL_ONLY]
             for s in (wanted, given)]  # fmt: skip
    if len(wanted.parameters) != len(given.parameters) or not set(names[0]) <= set(
        given.parameters
    ):
        raise TypeError(
            f"Signature mismatch between {original_fn} and {traceable_fn}: {wanted} != {given}"
        )


def graph_break(msg: str = "") -> None:
    """Ends the graph here when traced; otherwise does nothing."""


def skip_frame(msg: str = "") -> None:
    """The function that calls this is not compiled; outside of a trace nothing happens."""


def step_unsupported(msg: str = "") -> None:
    """Ends the graph here when traced; otherwise does nothing."""


def is_dynamo_disable_recursive(method: Callable) -> bool | None:
    """Whether a function was marked by disable, with what it calls (True) or by itself (False);
    None for functions that were not."""
    if not getattr(method, "_torchdynamo_disable", False):
        return None
    return bool(getattr(method, "_torchdynamo_disable_recursive", False))


# ---- settings for a while


def set_recursion_limit(limit: int) -> None:
    """How deep Python's calls may be nested while functions are traced; -1 for the usual depth."""
    if limit != -1 and limit < 1:
        raise ValueError(f"set_recursion_limit: expected a number of 1 or more, or -1, got {limit}")
    global recursion_limit
    recursion_limit = None if limit == -1 else limit


# What set_recursion_limit asked for.
recursion_limit: int | None = None


def disable_nested_graph_breaks(fn: Callable | None = None) -> object:
    """Breaks inside of functions that are called end the graph before the call; a context and a
    decorator."""
    patch = patch_dynamo_config(nested_graph_breaks=False)
    return patch if fn is None else patch(fn)


class DynamoConfigPatchProxy(contextlib.ContextDecorator):
    """Settings of the tracer changed for a while, also inside of traced code."""

    def __init__(self, changes: dict[str, object]) -> None:
        self.changes = changes
        self._patches: list[object] = []

    def __enter__(self) -> None:
        patch = config.patch(self.changes)
        patch.__enter__()
        self._patches.append(patch)

    def __exit__(self, *error: object) -> None:
        self._patches.pop().__exit__(*error)


def patch_dynamo_config(
    arg1: str | dict[str, object] | None = None, arg2: object = None, **kwargs: object
) -> DynamoConfigPatchProxy:
    """config.patch that the tracer follows too."""
    changes = dict(kwargs)
    if isinstance(arg1, str):
        changes[arg1] = arg2
    elif arg1:
        changes.update(arg1)
    return DynamoConfigPatchProxy(changes)


def dont_skip_tracing(fn: Callable | None = None) -> object:
    """Traces into files that are skipped otherwise; a context and a decorator."""
    patch = patch_dynamo_config(dont_skip_tracing=True)
    return patch if fn is None else patch(fn)


class ErrorOnGraphBreakDecoratorContextManager(contextlib.ContextDecorator):
    """Whether a graph break is an error, for a region of code."""

    # What the innermost region says; None outside of any.
    current: bool | None = None

    def __init__(self, error_on_graph_break: bool) -> None:
        self.error_on_graph_break = error_on_graph_break
        self._before: list[bool | None] = []

    def __enter__(self) -> None:
        cls = ErrorOnGraphBreakDecoratorContextManager
        self._before.append(cls.current)
        cls.current = self.error_on_graph_break

    def __exit__(self, *error: object) -> None:
        ErrorOnGraphBreakDecoratorContextManager.current = self._before.pop()


def breaks_are_errors() -> bool:
    """Whether the region that runs now makes graph breaks errors."""
    return bool(ErrorOnGraphBreakDecoratorContextManager.current)


def leave_regions() -> None:
    """Outside of any region from now on."""
    ErrorOnGraphBreakDecoratorContextManager.current = None


def error_on_graph_break(
    error_on_graph_break: bool,
) -> ErrorOnGraphBreakDecoratorContextManager:
    """A region in which a graph break is an error, or is none; unlike fullgraph=True it can be
    switched off inside."""
    return ErrorOnGraphBreakDecoratorContextManager(error_on_graph_break)


class set_stance(contextlib.ContextDecorator):
    """When to compile and when to run eagerly; takes effect at once, and as a context or decorator
    for a while."""

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable | None = None,
    ) -> None:
        self.stance = Stance(stance, skip_guard_eval_unsafe, force_backend)
        self.prev = set_stance_value(self.stance)

    def __call__(self, fn: F) -> F:
        set_stance_value(self.prev)

        @functools.wraps(fn)
        def wrapper(*args: object, **kwargs: object) -> object:
            before = set_stance_value(self.stance)
            try:
                return fn(*args, **kwargs)
            finally:
                set_stance_value(before)

        return wrapper

    def __enter__(self) -> None:
        set_stance_value(self.stance)

    def __exit__(self, *error: object) -> None:
        set_stance_value(self.prev)

    def clone(self) -> set_stance:
        """The same stance, taken anew."""
        return set_stance(
            self.stance.stance,
            skip_guard_eval_unsafe=self.stance.skip_guard_eval_unsafe,
            force_backend=self.stance.backend,
        )


# ---- tensors


def _indices(index: int | Iterable[int]) -> list[int]:
    return [index] if isinstance(index, int) else list(index)


def _attribute(t: torch.Tensor, name: str, kind: type = set) -> object:
    if not hasattr(t, name):
        setattr(t, name, kind())
    return getattr(t, name)


def _check_tensor(t: object, name: str) -> None:
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"{name} expects a tensor, got {type(t).__name__}")


def mark_dynamic(
    t: torch.Tensor,
    index: int | Iterable[int],
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: list[Callable[[int], bool]] | None = None,
) -> None:
    """Says that a size varies, within bounds; compiling for one value alone is then an error."""
    _check_tensor(t, "mark_dynamic")
    for place in _indices(index):
        _attribute(t, "_dynamo_dynamic_indices").add(place)
        if min is not None or max is not None:
            ranges = _attribute(t, "_dynamo_dynamic_range")
            ranges.add(DimRange(place, min, max))
        if hint_override is not None:
            _attribute(t, "_dynamo_hint_overrides", dict)[place] = hint_override
        if specialize_on:
            _attribute(t, "_specialize_on", dict)[place] = list(specialize_on)


class DimRange(tuple):
    """The bounds of a size: (dimension, min, max)."""

    __slots__ = ()

    def __new__(cls, dim: int, min: int | None, max: int | None) -> DimRange:
        return super().__new__(cls, (dim, min, max))

    def __getnewargs__(self) -> tuple[int, int | None, int | None]:
        return tuple(self)

    dim = property(lambda self: self[0])
    min = property(lambda self: self[1])
    max = property(lambda self: self[2])


def maybe_mark_dynamic(t: torch.Tensor, index: int | Iterable[int]) -> None:
    """Says that a size varies; compiling for one value alone is no error."""
    _check_tensor(t, "maybe_mark_dynamic")
    _attribute(t, "_dynamo_weak_dynamic_indices").update(_indices(index))


def mark_unbacked(
    t: torch.Tensor,
    index: int | Iterable[int],
    hint_override: int | None = None,
    strict: bool = False,
    specialize_on: list[Callable[[int], bool]] | None = None,
) -> None:
    """Says that nothing may be assumed of a size."""
    _check_tensor(t, "mark_unbacked")
    name = "_dynamo_strict_unbacked_indices" if strict else "_dynamo_unbacked_indices"
    for place in _indices(index):
        _attribute(t, name).add(place)
        if hint_override is not None:
            _attribute(t, "_dynamo_hint_overrides", dict)[place] = hint_override
        if specialize_on:
            _attribute(t, "_specialize_on", dict)[place] = list(specialize_on)


def mark_static(t: torch.Tensor | type, index: int | Iterable[int] | None = None) -> None:
    """Says that sizes do not vary: those of one tensor, or for a class of modules its integers."""
    if inspect.isclass(t):
        t._dynamo_marked_static = True
        return
    _check_tensor(t, "mark_static")
    places = range(t.dim()) if index is None else _indices(index)
    _attribute(t, "_dynamo_static_indices").update(places)


def mark_static_address(t: torch.Tensor, guard: bool = True) -> None:
    """Says that a tensor stays where it is; with `guard` that is checked."""
    if not isinstance(t, torch.Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t)}")
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"


def override_optimization_hint(t: torch.Tensor, index: int, hint: int) -> None:
    """The value of a varying size that optimisations reckon with."""
    _check_tensor(t, "override_optimization_hint")
    _attribute(t, "_dynamo_hint_overrides", dict)[index] = hint


# ---- recompilations

# What the program wants to have said about itself when a function is compiled again.
_user_contexts: list[Callable[[], str]] = []
_USER_CONTEXT_LIMIT = 256


def register_hook_for_recompile_user_context(hook: Callable[[], str]) -> None:
    """The text that hook() returns (256 characters of it) is noted with each compilation of a
    function that was compiled before: the epoch of the training, for example."""
    _user_contexts.append(hook)


def reset_recompile_user_contexts() -> None:
    """Forgets the hooks of register_hook_for_recompile_user_context."""
    _user_contexts.clear()


def user_contexts() -> list[str] | None:
    """What the hooks say now; None without hooks."""
    return [hook()[:_USER_CONTEXT_LIMIT] for hook in _user_contexts] or None
