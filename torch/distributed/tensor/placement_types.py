"""How a tensor lies on one dimension of a mesh of devices: cut along a dimension, whole on each, or
as parts that a reduction makes whole. A placement also knows how a value is cut and joined; which
collectives do it is said in `_redistribute`."""

from __future__ import annotations

from dataclasses import dataclass

import torch

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """The base of all placements, and the questions one asks them."""

    def is_shard(self, dim: int | None = None) -> bool:
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


def cut(size: int, parts: int, index: int) -> tuple[int, int]:
    """(length, offset) of part `index` of `size` elements in parts of the rounded-up length; parts
    past the end are empty and begin at the end."""
    step = -(-size // parts)
    begin = min(index * step, size)
    return min(step, size - begin), begin


@dataclass(frozen=True)
class Shard(Placement):
    """Each device holds its part of the tensor's dimension `dim`. Where the length does not divide,
    the first devices hold one part of the rounded length each and the last what is left."""

    dim: int

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """Length and offset of one rank's part of a dimension."""
        return cut(curr_local_size, num_chunks, rank)

    _local_shard_size_and_offset = local_shard_size_and_offset

    @staticmethod
    def _local_shard_size_on_dim(
        size_on_dim: int, num_chunks: int, rank: int, return_offset: bool = False
    ) -> tuple[int, int]:
        length, offset = cut(size_on_dim, num_chunks, rank)
        return length, offset if return_offset else -1

    def _split_tensor(
        self,
        tensor: torch.Tensor,
        num_chunks: int,
        *,
        with_padding: bool = True,
        contiguous: bool = True,
    ) -> tuple[list[torch.Tensor], list[int]]:
        """The parts of a tensor, and how much each was padded to the length of the first."""
        if not -tensor.ndim <= self.dim < tensor.ndim:
            raise AssertionError(f"Sharding dim {self.dim} greater than tensor ndim {tensor.ndim}")
        size = tensor.size(self.dim)
        longest = cut(size, num_chunks, 0)[0]
        parts, pads = [], []
        for index in range(num_chunks):
            length, offset = cut(size, num_chunks, index)
            part = tensor.narrow(self.dim, offset, length)
            if with_padding and size:
                pads.append(longest - length)
                part = padded(part, self.dim, longest - length)
            parts.append(part.contiguous() if contiguous else part)
        return parts, pads


@dataclass(frozen=True, repr=False)
class _StridedShard(Shard):
    """A Shard that cuts after all plain ones of its dimension, whatever their place in the mesh:
    data parallelism cuts what tensor parallelism has cut already. `split_factor` is how many parts
    there were before."""

    split_factor: int = 1

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


def padded(tensor: torch.Tensor, dim: int, count: int) -> torch.Tensor:
    """The tensor with `count` zeros more at the end of a dimension."""
    if not count:
        return tensor
    shape = list(tensor.shape)
    shape[dim] = count
    return torch.cat([tensor, tensor.new_zeros(shape)], dim)


@dataclass(frozen=True)
class Replicate(Placement):
    """Each device holds the whole tensor."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each device holds a tensor of the whole size; `reduce_op` over them gives the value."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return "P" if self.reduce_op == "sum" else f"P({self.reduce_op})"

    def before(self, part: torch.Tensor) -> torch.Tensor:
        """The part as the collective takes it."""
        return part

    def after(self, whole: torch.Tensor) -> torch.Tensor:
        """The value that the collective's result stands for."""
        return whole

    def share(self, whole: torch.Tensor, count: int) -> torch.Tensor:
        """A part of which `count` equal ones give the value."""
        if self.reduce_op == "sum":
            return whole / count
        if self.reduce_op in ("avg", "min", "max"):
            return whole.clone()
        raise RuntimeError(f"Replicate to {self!r} is not possible: no equal parts give the value")


_Partial = Partial


@dataclass(frozen=True)
class _NormPartial(Partial):
    """Norms of parts of a vector; the norm of the whole comes from the sum of their powers."""

    norm_type: float = 2.0

    @staticmethod
    def of(norm_type: float) -> Partial:
        """The placement for norms of that order; extremes and counts are plain reductions."""
        if norm_type in (float("inf"), float("-inf")):
            return Partial("max" if norm_type > 0 else "min")
        return Partial("sum") if norm_type in (0, 1) else _NormPartial("sum", norm_type)

    def __repr__(self) -> str:
        return f"_NormPartial({self.norm_type})"

    def __str__(self) -> str:
        return f"_NormP({self.norm_type})"

    def before(self, part: torch.Tensor) -> torch.Tensor:
        """The power of the part's norm."""
        return part**self.norm_type

    def after(self, whole: torch.Tensor) -> torch.Tensor:
        """The root of the sum of powers."""
        return whole ** (1.0 / self.norm_type)

    def share(self, whole: torch.Tensor, count: int) -> torch.Tensor:
        """A norm of which `count` equal ones give the whole."""
        return whole / count ** (1.0 / self.norm_type)
