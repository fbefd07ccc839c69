"""The level that handles a call, as kernels of higher-order operators see it. Wrappers say which
level a tensor belongs to (aten/src/ATen/functorch/Level.h), so that an operator on unwrapped values
is handled by the levels below; only tensors made there must be told from those of the level."""

import contextlib
from collections.abc import Iterator

from torch._C import _functorch as _F
from torch._C._functorch import TransformType

__all__ = [
    "FuncTorchInterpreter",
    "VmapInterpreter",
    "below",
    "compare_functorch_state",
    "current_state",
    "interpreter_of",
    "retrieve_all_functorch_interpreters",
    "retrieve_current_functorch_interpreter",
]

_KINDS = {
    "vmap": TransformType.Vmap,
    "grad": TransformType.Grad,
    "jvp": TransformType.Jvp,
    "functionalize": TransformType.Functionalize,
}


@contextlib.contextmanager
def below(level: int) -> Iterator[None]:
    """A block for calls on values of a level: what is made there belongs to older levels."""
    scope = _F._enter_below(level)
    try:
        yield
    finally:
        del scope


class FuncTorchInterpreter:
    """One level of the stack of transforms."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._key = _KINDS[_F._level_kinds()[level - 1]]

    def level(self) -> int:
        """Its number, from 1."""
        return self._level

    def key(self) -> TransformType:
        """Which transform it belongs to."""
        return self._key

    def lower(self) -> contextlib.AbstractContextManager:
        """A block for calls on unwrapped values."""
        return below(self._level)


class VmapInterpreter(FuncTorchInterpreter):
    """A level of vmap."""

    def batch_size(self) -> int:
        """The length of the dimension that is mapped."""
        return _F._vmap_info(self._level)[0]

    def randomness(self) -> str:
        """What random operators do: "error", "same" or "different"."""
        return _F._vmap_info(self._level)[1]


def interpreter_of(level: int) -> FuncTorchInterpreter:
    """The level of a number."""
    is_vmap = _F._level_kinds()[level - 1] == "vmap"
    return VmapInterpreter(level) if is_vmap else FuncTorchInterpreter(level)


def retrieve_all_functorch_interpreters() -> list[FuncTorchInterpreter]:
    """All levels, oldest first."""
    return [interpreter_of(i + 1) for i in range(len(_F._level_kinds()))]


def retrieve_current_functorch_interpreter() -> FuncTorchInterpreter:
    """The newest level."""
    levels = retrieve_all_functorch_interpreters()
    if not levels:
        raise RuntimeError("no function transform is running")
    return levels[-1]


def current_state() -> list[tuple]:
    """What runs now, oldest first: the transform, its level and, of vmap, the randomness."""
    if not _F._level_kinds():
        return []
    return [_described(level) for level in retrieve_all_functorch_interpreters()]


def _described(level: FuncTorchInterpreter) -> tuple:
    own = (level.key().name, level.level())
    return (*own, level.randomness()) if isinstance(level, VmapInterpreter) else own


def compare_functorch_state(states: list[tuple]) -> bool:
    """Whether these transforms run now."""
    return current_state() == states
