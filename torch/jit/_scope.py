"""The names a function can see while it is compiled: layers that are looked up in turn, never
copied. What the caller of torch.jit.script sees is the layer for annotations that are text."""

from __future__ import annotations

import builtins
import contextlib
import inspect
import types
from collections.abc import Iterator, Mapping


class Scope:
    """Names in layers; the first layer that has a name wins."""

    __slots__ = ("layers",)

    def __init__(self, *layers: Mapping[str, object]) -> None:
        self.layers = layers

    def __contains__(self, name: str) -> bool:
        return any(name in layer for layer in self.layers)

    def __getitem__(self, name: str) -> object:
        for layer in self.layers:
            if name in layer:
                return layer[name]
        raise KeyError(name)


_callers: list[dict[str, object]] = [{}]


def caller_names() -> dict[str, object]:
    """What is visible where torch.jit.script was called; annotations may name local classes."""
    return _callers[-1]


@contextlib.contextmanager
def called_from(frame: types.FrameType | None) -> Iterator[None]:
    """Lets annotations see the local names of a frame."""
    local = frame is not None and frame.f_locals is not frame.f_globals
    _callers.append(dict(frame.f_locals) if local else _callers[-1])
    try:
        yield
    finally:
        _callers.pop()


def closure_of(fn: types.FunctionType) -> dict[str, object]:
    """The variables of enclosing functions that a function uses and that are set."""
    out: dict[str, object] = {}
    code = getattr(fn, "__code__", None)
    for name, cell in zip(code.co_freevars if code else (), fn.__closure__ or (), strict=False):
        with contextlib.suppress(ValueError):  # not set yet
            out[name] = cell.cell_contents
    return out


def scope_of(fn: types.FunctionType, names: Mapping[str, object] | None = None) -> Scope:
    """Every name that the body of a function can see; `names` are known beside its own."""
    fn = inspect.unwrap(fn) if not hasattr(fn, "__code__") else fn
    return Scope(closure_of(fn), getattr(fn, "__globals__", {}), names or {}, vars(builtins))


def type_scope_of(
    fn: types.FunctionType, names: Mapping[str, object], caller: Mapping[str, object]
) -> Scope:
    """Every name that the annotations of a function can see."""
    fn = inspect.unwrap(fn) if not hasattr(fn, "__code__") else fn
    own = getattr(fn, "__globals__", {})
    return Scope(closure_of(fn), names, caller, own, vars(builtins))
