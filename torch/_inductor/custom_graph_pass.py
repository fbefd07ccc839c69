"""Base classes of functions that users put between the stages of the compiler. Each says by `uuid`
what it is, so that a stored result of another version of it is not taken."""

from __future__ import annotations

import functools
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
from torch import fx

__all__ = [
    "CustomGraphModulePass",
    "CustomGraphPass",
    "CustomGraphPassType",
    "CustomInferenceAwareGraphPass",
    "CustomPartitionerFn",
    "CustomPartitionerFnType",
    "get_hash_for_files",
]


class _Identified(ABC):
    @abstractmethod
    def uuid(self) -> object | None:
        """Something that pickles and differs whenever the function does. None: results are not
        cached."""


class CustomGraphPass(_Identified):
    """A function of a graph, which it changes in place."""

    @abstractmethod
    def __call__(self, graph: fx.Graph) -> None:
        """Changes the graph."""


class CustomGraphModulePass(_Identified):
    """A function of a module with a graph, which it changes in place."""

    @abstractmethod
    def __call__(self, gm: fx.GraphModule) -> None:
        """Changes the module."""


class CustomInferenceAwareGraphPass(CustomGraphPass):
    """A function of a graph that is told whether derivatives are needed."""

    @abstractmethod
    def __call__(self, graph: fx.Graph, is_inference: bool) -> None:
        """Changes the graph."""


class CustomPartitionerFn(_Identified):
    """Divides a joint graph into forward and backward."""

    @abstractmethod
    def __call__(
        self, gm: fx.GraphModule, joint_inputs: Sequence[object], **kwargs: object
    ) -> tuple[fx.GraphModule, fx.GraphModule]:
        """The two graphs; kwargs hold num_fwd_outputs."""


CustomGraphPassType = CustomGraphPass | Callable[[fx.Graph], None] | None
CustomPartitionerFnType = CustomPartitionerFn | None


@functools.lru_cache(16)
def get_hash_for_files(paths: tuple[str, ...], extra: str = "") -> bytes:
    """A digest of the contents of files, for uuid()."""
    from pathlib import Path

    parts = [torch.__version__.encode(), extra.encode(), *(Path(p).read_bytes() for p in paths)]
    return hashlib.sha256(b"\0".join(parts)).digest()
