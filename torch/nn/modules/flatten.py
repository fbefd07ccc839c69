"""Joining and splitting dimensions as modules."""

from __future__ import annotations

import torch
from torch.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins the dimensions start_dim to end_dim into one."""

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim=-1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one dimension into several."""

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim, unflattened_size) -> None:
        super().__init__()
        if isinstance(dim, int):
            self._require_ints(unflattened_size)
        elif isinstance(dim, str):
            self._require_named(unflattened_size)
        else:
            raise TypeError("invalid argument type for dim parameter")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def _require_named(self, sizes) -> None:
        if not isinstance(sizes, tuple):
            raise TypeError(
                f"unflattened_size must be a tuple of tuples, but found type {type(sizes).__name__}"
            )
        for i, element in enumerate(sizes):
            if not isinstance(element, tuple):
                raise TypeError(
                    "unflattened_size must be tuple of tuples, but found element of type "
                    f"{type(element).__name__} at pos {i}"
                )

    def _require_ints(self, sizes) -> None:
        if not isinstance(sizes, tuple | list):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(sizes).__name__}"
            )
        for i, element in enumerate(sizes):
            if not isinstance(element, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(element).__name__} at pos {i}"
                )

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
