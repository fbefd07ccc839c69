"""Calls of autograd functions in a trace. Their gradient is the program's own, so that each call is
one node that calls Python again; an archive cannot hold it."""

from __future__ import annotations

import contextlib
import threading
import typing
from collections.abc import Callable, Iterator

import torch
from torch.autograd.function import _SingleLevel
from torch.jit import _trace_state
from torch.jit import _types as T

if typing.TYPE_CHECKING:
    from torch.jit._trace import Recorder

_lock = threading.Lock()
_watchers = 0
_plain_apply = _SingleLevel.__dict__.get("apply", torch._C._FunctionBase.__dict__["apply"])


def _apply(cls: type, *args: object) -> object:
    run = _plain_apply.__get__(None, cls)
    recorder = _trace_state.recorder()
    # The library's own functions are made of operators, which an archive can hold.
    if recorder is None or recorder.paused or cls.__module__.startswith("torch."):
        return run(*args)
    with recorder.pause():
        out = run(*args)
    _record_call(recorder, cls, args, out)
    return out


@contextlib.contextmanager
def autograd_functions() -> Iterator[None]:
    """Lets traces see calls of autograd functions while it is open."""
    global _watchers
    with _lock:
        _watchers += 1
        if _watchers == 1:
            _SingleLevel.apply = classmethod(_apply)
    try:
        yield
    finally:
        with _lock:
            _watchers -= 1
            if _watchers == 0:
                del _SingleLevel.apply


def _record_call(recorder: Recorder, cls: type, args: tuple[object, ...], out: object) -> None:
    results = out if isinstance(out, tuple) else (out,)
    if not all(isinstance(v, torch.Tensor) for v in results):
        raise RuntimeError(
            f"{cls.__name__}.apply returned {type(out).__name__} with something else than tensors, "
            "which a trace cannot hold"
        )
    tensors = [recorder.tensor(v) for v in args if isinstance(v, torch.Tensor)]
    returns = T.tuple_of(*[T.Tensor] * len(out)) if isinstance(out, tuple) else T.Tensor
    node = recorder.node("prim::PythonOp", tensors, [returns], function=_again(cls, args))
    recorder.take_input(out, node.output())


def _again(cls: type, args: tuple[object, ...]) -> Callable[..., object]:
    """A function of the tensors alone; other arguments stay what they were."""
    fixed = [None if isinstance(v, torch.Tensor) else v for v in args]
    places = [i for i, v in enumerate(args) if isinstance(v, torch.Tensor)]

    def call(*tensors: torch.Tensor) -> object:
        given = list(fixed)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        return cls.apply(*given)

    call.__name__ = call.__qualname__ = cls.__name__
    return call
