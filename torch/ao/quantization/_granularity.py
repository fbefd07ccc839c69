"""How fine the grid of a tensor is: one for all of it, or for slices, groups, rows or blocks. And
the base of observers that are described by such a granularity."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node

_PLACE = "torch.ao.quantization.observer"


class MappingType(Enum):
    """How real numbers are laid on levels."""

    SYMMETRIC = auto()
    SYMMETRIC_NO_CLIPPING_ERR = auto()
    ASYMMETRIC = auto()


class ZeroPointDomain(Enum):
    """Whether a zero point is a level, a real number, or missing."""

    INT = auto()
    FLOAT = auto()
    NONE = auto()


class TorchAODType(Enum):
    """Integers of few bits for programs that cannot name torch.int4 and its kind."""

    INT1 = auto()
    INT2 = auto()
    INT3 = auto()
    INT4 = auto()
    INT5 = auto()
    INT6 = auto()
    INT7 = auto()


@dataclass(frozen=True)
class Granularity:
    """The base of all."""


@dataclass(frozen=True)
class PerTensor(Granularity):
    """One grid for the tensor."""


@dataclass(frozen=True)
class PerAxis(Granularity):
    """A grid for each slice along an axis."""

    axis: int


@dataclass(frozen=True)
class PerGroup(Granularity):
    """A grid for each run of `group_size` numbers of a row."""

    group_size: int


@dataclass(frozen=True)
class PerBlock(Granularity):
    """A grid for each block of a given size."""

    block_size: tuple[int, ...]


class PerRow(Granularity):
    """A grid for each row, for products of float8."""


class PerToken(Granularity):
    """A grid for each vector along the last dimension, found at run time."""


def get_block_size(input_shape: tuple[int, ...], granularity: Granularity) -> tuple[int, ...]:
    """The size of the blocks that share a grid."""
    shape = tuple(input_shape)
    if not isinstance(granularity, Granularity):
        raise ValueError("Please provide an instance of Granularity, not subclass of it")
    if isinstance(granularity, PerTensor):
        return shape
    if isinstance(granularity, PerAxis):
        block = list(shape)
        block[granularity.axis] = 1
        return tuple(block)
    if isinstance(granularity, PerBlock):
        return tuple(granularity.block_size)
    if isinstance(granularity, PerRow | PerToken):
        return (1,) * (len(shape) - 1) + (shape[-1],)
    if isinstance(granularity, PerGroup):
        if len(shape) != 2:
            raise AssertionError(f"Expecting input shape dim to be 2 for per group, got {shape}")
        return (1, granularity.group_size)
    raise ValueError(f"Unsupported Granularity: {granularity}")


class AffineQuantizedObserverBase(nn.Module, metaclass=ABCMeta):
    """An observer that says how fine its grid is and can write its operators into a graph."""

    @classmethod
    def with_args(cls, **kwargs: object) -> Callable[..., nn.Module]:
        """A maker with these arguments."""
        from torch.ao.quantization.observer import _Maker

        return _Maker(partial(cls, **kwargs))

    def __init__(
        self,
        mapping_type: MappingType,
        target_dtype: torch.dtype,
        granularity: Granularity,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float | None = None,
        scale_dtype: torch.dtype | None = None,
        zero_point_dtype: torch.dtype | None = None,
        preserve_zero: bool = True,
        zero_point_domain: ZeroPointDomain | None = ZeroPointDomain.INT,
        **kwargs: object,
    ) -> None:
        super().__init__()
        if granularity is None:
            raise AssertionError("granularity is None")
        if zero_point_domain is None:
            raise ValueError("Please use ZeroPointDomain.NONE instead of None")
        self.mapping_type, self.target_dtype = mapping_type, target_dtype
        self.granularity, self.block_size = granularity, None
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.scale_dtype, self.zero_point_dtype = scale_dtype, zero_point_dtype
        self.preserve_zero, self.zero_point_domain = preserve_zero, zero_point_domain
        self.original_dtype: torch.dtype | None = None
        for name, value in kwargs.items():
            setattr(self, name, value)

    @abstractmethod
    def forward(self, input: Tensor) -> Tensor:
        """Notes the values and returns them."""

    @abstractmethod
    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scale and zero point for what was seen."""

    def convert(self, model: GraphModule, observer_node: Node) -> None:
        """Replaces this observer's call in a graph by rounding to its grid and back, per tensor."""
        if not isinstance(self.granularity, PerTensor):
            raise NotImplementedError(
                f"{type(self).__name__}.convert of granularity {self.granularity} on cpu"
            )
        scale, zero_point = self.calculate_qparams()
        low, high = self.quant_min, self.quant_max
        grid = (float(scale), int(zero_point), low, high, self.target_dtype)
        ops = torch.ops.quantized_decomposed
        with model.graph.inserting_before(observer_node):
            levels = model.graph.call_function(
                ops.quantize_per_tensor.default, (observer_node.args[0], *grid)
            )
            values = model.graph.call_function(ops.dequantize_per_tensor.default, (levels, *grid))
        observer_node.replace_all_uses_with(values)
        model.graph.erase_node(observer_node)


for _class in (
    MappingType,
    ZeroPointDomain,
    TorchAODType,
    Granularity,
    PerTensor,
    PerAxis,
    PerGroup,
    PerBlock,
    PerRow,
    PerToken,
    AffineQuantizedObserverBase,
):
    _class.__module__ = _PLACE
get_block_size.__module__ = _PLACE
