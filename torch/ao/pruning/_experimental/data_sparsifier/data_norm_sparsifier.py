"""Zeros where the norm of a block of data is smallest."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.ao.pruning._experimental.data_sparsifier.base_data_sparsifier import BaseDataSparsifier
from torch.ao.pruning.sparsifier.weight_norm_sparsifier import block_mask

__all__ = ["DataNormSparsifier"]


class DataNormSparsifier(BaseDataSparsifier):
    """In the share `sparsity_level` of the blocks with the smallest norm, `zeros_per_block` values
    are zero: the smallest ones. Data of more than two dimensions is taken as rows of its last."""

    def __init__(
        self,
        data_list: list[tuple[str, Any]] | None = None,
        sparsity_level: float = 0.5,
        sparse_block_shape: tuple[int, int] = (1, 4),
        zeros_per_block: int | None = None,
        norm: str = "L1",
    ) -> None:
        if norm not in ("L1", "L2"):
            raise AssertionError(f"only L1 and L2 norms are supported, got {norm!r}")
        if zeros_per_block is None:
            zeros_per_block = sparse_block_shape[0] * sparse_block_shape[1]
        self.norm = norm
        super().__init__(
            data_list,
            sparsity_level=sparsity_level,
            sparse_block_shape=sparse_block_shape,
            zeros_per_block=zeros_per_block,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "norm": self.norm}

    def update_mask(
        self,
        name: str,
        data: Tensor,
        sparsity_level: float,
        sparse_block_shape: tuple[int, int],
        zeros_per_block: int,
        **kwargs: Any,
    ) -> None:
        size = sparse_block_shape[0] * sparse_block_shape[1]
        if not 0 <= zeros_per_block <= size:
            raise ValueError(
                f"expected from 0 to {size} zeros in a block of {sparse_block_shape}, got "
                f"{zeros_per_block}"
            )
        mask = self.get_mask(name)
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.fill_(1)
            return
        rows = data.reshape(-1, data.shape[-1])
        norms = rows.abs() if self.norm == "L1" else rows * rows
        level = min(sparsity_level, 1.0)
        chosen = block_mask(norms, level, tuple(sparse_block_shape), zeros_per_block)
        mask.copy_(chosen.reshape(data.shape))
