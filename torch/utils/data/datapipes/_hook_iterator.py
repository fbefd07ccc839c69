"""Passes over a pipe: one valid iterator at a time, a count of what it has given out, and the state
that a restored snapshot leaves."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["Pass", "one_iterator"]


class _SnapshotState(enum.Enum):
    """Where a pipe is between the beginning of a program and its passes."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


class Pass:
    """An iterator of a pipe. It ends, with an error, when the pipe begins another."""

    def __init__(
        self, pipe: IterDataPipe, function: Callable[[IterDataPipe], Iterator[Any]]
    ) -> None:
        state = pipe.__dict__
        state["_valid_iterator_id"] = state.get("_valid_iterator_id", 0) + 1
        state["_number_of_samples_yielded"] = 0
        state["_snapshot_state"] = _SnapshotState.Iterating
        self._pipe = pipe
        self._number = state["_valid_iterator_id"]
        pipe.reset()
        self._iterator = self._advance(lambda: self._begin(function))

    def _begin(self, function: Callable[[IterDataPipe], Iterator[Any]]) -> Iterator[Any]:
        made = function(self._pipe)
        return made if made is self._pipe else iter(made)

    def _advance(self, step: Callable[[], Any]) -> Any:
        """Runs code of the pipe itself, within which a base class's __iter__ is no new pass."""
        state = self._pipe.__dict__
        state["_advancing"] = True
        try:
            return step()
        finally:
            state["_advancing"] = False

    def __iter__(self) -> Pass:
        return self

    def __next__(self) -> Any:
        state = self._pipe.__dict__
        if state["_valid_iterator_id"] != self._number:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created "
                f"from the same IterDataPipe: {self._pipe!r}\nThis may be caused by multiple "
                "references to the same IterDataPipe; `.fork()` gives several."
            )
        item = self._advance(lambda: next(self._iterator))
        state["_number_of_samples_yielded"] += 1
        return item

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._iterator, name)


def one_iterator(
    function: Callable[[IterDataPipe], Iterator[Any]],
) -> Callable[[IterDataPipe], Iterator[Any]]:
    """An __iter__ that begins a Pass, or goes on with the one that a snapshot was restored to."""

    @functools.wraps(function)
    def begin(self: IterDataPipe) -> Iterator[Any]:
        state = self.__dict__
        if state.get("_advancing"):
            return function(self)  # a base class's __iter__, called by a derived one
        forwarded = state.pop("_fast_forward_iterator", None)
        if forwarded is not None and state.get("_snapshot_state") is _SnapshotState.Restored:
            state["_snapshot_state"] = _SnapshotState.Iterating
            return forwarded
        return Pass(self, function)

    return begin
