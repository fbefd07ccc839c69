"""Types of tensors for gradual checking: a tuple of dimensions, each a number, a symbol or Dyn,
which says that nothing is known."""

from collections.abc import Callable
from typing import Any

from torch.fx._compatibility import compatibility
from torch.fx.experimental.unification import Var


@compatibility(is_backward_compatible=False)
class TensorType:
    """A tensor of known rank: TensorType((1, 2, Dyn))."""

    def __init__(self, dim: Any) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Any:
        """The dimensions."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    @staticmethod
    def __class_getitem__(*args: Any) -> "TensorType":
        dims = args[0]
        return TensorType(tuple(dims) if isinstance(dims, tuple | list) else (dims,))


class _DynType:
    """The type of Dyn."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return "Dyn"

    def __repr__(self) -> str:
        return "Dyn"


Dyn = _DynType()


def _says_nothing(kind: Any) -> bool:
    return kind == Dyn or isinstance(kind, Var)


def _each_dim(relation: Callable[[Any, Any], bool], t1: Any, t2: Any) -> bool:
    """Whether a relation holds between two tensor types dimension by dimension."""
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)):
        return False
    left, right = t1.__args__, t2.__args__
    return len(left) == len(right) and all(map(relation, left, right))


@compatibility(is_backward_compatible=False)
def is_consistent(t1: Any, t2: Any) -> bool:
    """Whether two types may be types of one value: equal where both say something."""
    silent = _says_nothing(t1) or _says_nothing(t2)
    return silent or t1 == t2 or _each_dim(is_consistent, t1, t2)


@compatibility(is_backward_compatible=False)
def is_more_precise(t1: Any, t2: Any) -> bool:
    """Whether the first type says all that the second says."""
    return _says_nothing(t2) or t1 == t2 or _each_dim(is_more_precise, t1, t2)
