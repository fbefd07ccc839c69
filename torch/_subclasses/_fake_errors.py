"""What goes wrong with tensors that have no data, as exceptions that callers tell apart."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch._ops import OpOverload


@dataclasses.dataclass
class UnsupportedFakeTensorException(RuntimeError):
    """A tensor of this kind has no fake form."""

    reason: str


@dataclasses.dataclass
class DynamicOutputShapeException(RuntimeError):
    """The shape of the operator's result depends on data."""

    func: OpOverload


@dataclasses.dataclass
class DataDependentOutputException(RuntimeError):
    """The operator's result is read from data."""

    func: OpOverload


@dataclasses.dataclass
class UnsupportedOperatorException(RuntimeError):
    """The operator has no form for fake tensors."""

    func: OpOverload


@dataclasses.dataclass
class UnsupportedMutationAliasingException(RuntimeError):
    """The operator writes to or returns memory in a way that cannot be followed."""

    reason: str


@dataclasses.dataclass
class MetadataMismatchError(RuntimeError):
    """A fake result differs from the real one."""

    reason: str
