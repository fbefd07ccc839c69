"""Modes that see operators before anything else does: above autograd, autocast and the definitions
of operators that are made of others. They are handled by the fallback of the dispatch key
PreDispatch, which calls carry only while such a mode is in force. Functionalisation comes before
recording, as among the modes below autograd."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import _C
from torch.utils import _pytree as pytree

if TYPE_CHECKING:
    from torch._ops import OpOverload
    from torch.utils._python_dispatch import TorchDispatchMode

_ModeKey = _C._TorchDispatchModeKey
_ORDER = (_ModeKey.PROXY, _ModeKey.FUNCTIONAL)  # the last one in force is asked first
_PRE = _C.DispatchKeySet(_C.DispatchKey.PreDispatch)


class _Modes(threading.local):
    def __init__(self) -> None:
        self.by_key: dict[_ModeKey, TorchDispatchMode] = {}


_modes = _Modes()


def get_mode(key: _ModeKey) -> TorchDispatchMode | None:
    """The mode of a slot, or None."""
    return _modes.by_key.get(key)


def count() -> int:
    """How many modes are in force."""
    return len(_modes.by_key)


@functools.cache
def _install() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    _C._library_fallback(_C.DispatchKey.PreDispatch, _handle)
    with TorchDispatchMode():
        pass  # from the first handler on, calls look for others


@contextlib.contextmanager
def _in_force(by_key: dict[_ModeKey, TorchDispatchMode]) -> Iterator[None]:
    """A block with exactly these modes."""
    before, _modes.by_key = _modes.by_key, by_key
    include = _C._dispatch_tls_local_include_set() - _PRE
    exclude = _C._dispatch_tls_local_exclude_set() - _PRE
    try:
        with _C._ForceDispatchKeyGuard(include | _PRE if by_key else include, exclude):
            yield
    finally:
        _modes.by_key = before


def with_mode(
    key: _ModeKey, mode: TorchDispatchMode | None
) -> contextlib.AbstractContextManager[None]:
    """A block in which `mode` is in force in a slot; None empties the slot."""
    _install()
    others = {k: m for k, m in _modes.by_key.items() if k != key}
    return _in_force(others if mode is None else {**others, key: mode})


def no_modes() -> contextlib.AbstractContextManager[None]:
    """A block that no mode sees."""
    return _in_force({})


def _types(args: tuple, kwargs: dict[str, object]) -> tuple[type, ...]:
    """Classes of tensor arguments that have handlers of their own."""
    plain = (torch.Tensor, torch.nn.Parameter)
    leaves = pytree.tree_leaves((args, kwargs))
    kinds = [type(t) for t in leaves if isinstance(t, torch.Tensor) and type(t) not in plain]
    return tuple(dict.fromkeys(kinds))


def _handle(func: OpOverload, *args: object, **kwargs: object) -> object:
    """The fallback of the key: asks the uppermost mode, with those below still in force."""
    for key in reversed(_ORDER):
        mode = _modes.by_key.get(key)
        if mode is None:
            continue
        with with_mode(key, None):
            out = mode.__torch_dispatch__(func, _types(args, kwargs), args, kwargs)
            return func(*args, **kwargs) if out is NotImplemented else out
    with _in_force({}):
        return func(*args, **kwargs)
