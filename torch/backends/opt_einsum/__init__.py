"""The order of products in torch.einsum: its own greedy search; opt_einsum is not used."""

from __future__ import annotations

from typing import Any as _Any

__all__ = ["get_opt_einsum", "is_available"]

enabled = False
strategy = None


def is_available() -> _Any:
    """Whether opt_einsum is used."""
    return False


def get_opt_einsum() -> _Any:
    """The opt_einsum package, or None."""
    return None
