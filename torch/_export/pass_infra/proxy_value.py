"""A value of a graph that is being written: its example, and what stands for it in the graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import torch
from torch import fx

__all__ = ["ProxyValue"]

T = TypeVar("T")


class ProxyValue(Generic[T]):
    """`data` is the example, `proxy` the node or the proxy of it."""

    def __init__(self, data: T, proxy: fx.Proxy | fx.Node) -> None:
        self.data = data
        self.proxy_or_node = proxy

    @property
    def node(self) -> fx.Node:
        """The node in the new graph."""
        held = self.proxy_or_node
        return held if isinstance(held, fx.Node) else held.node

    @property
    def proxy(self) -> fx.Proxy:
        """A proxy of the node."""
        held = self.proxy_or_node
        if not isinstance(held, fx.Proxy):
            raise RuntimeError(f"ProxyValue doesn't have attribute proxy: {self}")
        return held

    def to_tensor(self) -> torch.Tensor:
        """The example, which must be a tensor."""
        if not self.is_tensor():
            raise AssertionError(f"expected a tensor, got {type(self.data)}")
        return self.data

    def is_tensor(self) -> bool:
        """Whether the example is a tensor."""
        return isinstance(self.data, torch.Tensor)

    def __iter__(self) -> Iterator[T]:
        yield from self.data

    def __bool__(self) -> bool:
        return bool(self.data)
