"""How the sizes of an input may vary: the choices a tracer makes per dimension, and what a user
promises about one."""

import dataclasses
import enum
from typing import Any

from torch._guards import Source


class DimDynamic(enum.Enum):
    """How a size becomes a symbol."""

    DYNAMIC = 0  # a symbol of its own
    DUCK = 1  # the symbol of an earlier size with the same value
    STATIC = 2  # a number
    SIZE_LIKE_UNBACKED = 3  # a symbol without a value
    INFER_STRIDE = 4  # of a stride: an expression of the sizes where one fits
    UNBACKED = 5
    OBLIVIOUS_SIZE = 6  # a symbol that may be 0 or 1 too, although questions take it as larger


@dataclasses.dataclass(frozen=True)
class Constraint:
    """What a user promises about a size. Breaking it is an error, or a warning if `warn_only`."""

    warn_only: bool


@dataclasses.dataclass(frozen=True)
class StrictMinMaxConstraint(Constraint):
    """The size takes every value of the range `vr`; the program may not narrow it."""

    vr: Any

    def render(self, source: Source) -> str:
        """The promise as a relation."""
        return f"{self.vr.lower} <= {source.name()} <= {self.vr.upper}"


@dataclasses.dataclass(frozen=True)
class RelaxedUnspecConstraint(Constraint):
    """The size takes more than one value."""

    def render(self, source: Source) -> str:
        """The promise as a call."""
        return f"RelaxedUnspecConstraint({source.name()})"


DimConstraint = StrictMinMaxConstraint | RelaxedUnspecConstraint | None


@dataclasses.dataclass(frozen=True)
class EqualityConstraint(Constraint):
    """Sizes that a user promises to be equal, in pairs of sources, and to be expressions of
    others."""

    source_pairs: list = dataclasses.field(default_factory=list)
    derived_equalities: list = dataclasses.field(default_factory=list)
    phantom_symbols: list = dataclasses.field(default_factory=list)
    relaxed_sources: set = dataclasses.field(default_factory=set)


@dataclasses.dataclass(frozen=True)
class SymbolicContext:
    """Base of what says how the sizes of one input become symbols."""


@dataclasses.dataclass(frozen=True)
class SymIntSymbolicContext(SymbolicContext):
    """Of an integer input: whatever it is told it may be."""

    constraint: DimConstraint


@dataclasses.dataclass(frozen=True)
class StatelessSymbolicContext(SymbolicContext):
    """Of a tensor: a choice per size and stride, and what is promised of each."""

    dynamic_sizes: list
    dynamic_strides: list = None  # type: ignore[assignment]
    constraint_sizes: list = None  # type: ignore[assignment]
    constraint_strides: list = None  # type: ignore[assignment]
    specialize_on: list | None = None
    view_base_context: SymbolicContext | None = None

    def __post_init__(self) -> None:
        ndim = len(self.dynamic_sizes)
        defaults = {
            "dynamic_strides": DimDynamic.INFER_STRIDE,
            "constraint_sizes": None,
            "constraint_strides": None,
        }
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, [value] * ndim)
        allowed = (DimDynamic.INFER_STRIDE, DimDynamic.DYNAMIC, DimDynamic.DUCK, DimDynamic.STATIC)
        for stride in self.dynamic_strides:
            if stride not in allowed:
                raise ValueError(f"a stride cannot be {stride}")


@dataclasses.dataclass(frozen=True)
class StatefulSymbolicContext(StatelessSymbolicContext):
    """Keeps the symbols of a tensor, so that it gets the same ones when it is met again under the
    same source."""

    tensor_source: Source = None  # type: ignore[assignment]
    shape_env_to_source_to_symbol_cache: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tensor_source is None:
            raise ValueError("a stateful context needs the source of its tensor")


@dataclasses.dataclass(frozen=True)
class SubclassSymbolicContext(StatefulSymbolicContext):
    """Of a tensor subclass: contexts of the tensors inside it."""

    inner_contexts: dict = dataclasses.field(default_factory=dict)


class ConvertIntKey:
    """A step from a truth value to the integer symbol behind it."""

    def __str__(self) -> str:
        return ".cast_symbool_to_symint_guardless()"

    def get(self, value: bool) -> int:
        """1 for true, 0 for false."""
        return int(value)


@dataclasses.dataclass(frozen=True)
class CallMethodKey:
    """A step along a path to an unbacked symbol in an output: the result of a method."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}()"

    def get(self, value: Any) -> Any:
        """The result of the method of `value`."""
        return getattr(value, self.name)()


@dataclasses.dataclass(frozen=True)
class InnerTensorKey:
    """A step to the tensor inside a subclass."""

    inner_name: str

    def __str__(self) -> str:
        return f".{self.inner_name}"

    def get(self, value: Any) -> Any:
        """The attribute of `value`."""
        return getattr(value, self.inner_name)


@dataclasses.dataclass(frozen=True)
class DivideByKey:
    """A step from a multiple of a symbol to the symbol."""

    divisor: Any

    def __str__(self) -> str:
        return f".__floordiv__({self.divisor})"

    def get(self, value: int) -> int:
        """The quotient."""
        return value // self.divisor
