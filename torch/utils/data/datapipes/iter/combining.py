"""Steps that join pipes or split one."""

from __future__ import annotations

import collections
import copy as _copy
import warnings

from torch.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe, length_of
from torch.utils.data.datapipes.utils.common import warn_if_unpicklable

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]


def _check_pipes(datapipes) -> None:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `IterDataPipe`")


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """Pipes one after the other."""

    def __init__(self, *datapipes) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __iter__(self):
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of one item of each pipe, until the shortest ends."""

    def __init__(self, *datapipes) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __iter__(self):
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """One item of each pipe in turn, until the shortest ends."""

    def __init__(self, *datapipes) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes
        self._row = []

    def __iter__(self):
        for row in zip(*self.datapipes, strict=False):
            self._row = list(row)
            while self._row:
                yield self._row.pop(0)

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes) * len(self.datapipes)

    def reset(self) -> None:
        """Drops the items of a row that was begun."""
        self._row = []


class _Source:
    """A pipe that several children read: what one is ahead of the others is kept for them. A child
    that begins again begins a new pass for all."""

    def __init__(self, datapipe, children, buffer_size, name) -> None:
        if children < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {children} is found")
        self.datapipe = datapipe
        self.buffer_size = buffer_size
        self.name = name
        self.buffers = [collections.deque() for _ in range(children)]
        self.begun = [False] * children
        self.ended = [False] * children
        self.iterator = None

    def __getstate__(self):
        # A copy begins a pass of its own.
        count = len(self.buffers)
        buffers = [collections.deque() for _ in range(count)]
        fresh = {"buffers": buffers, "begun": [False] * count, "ended": [False] * count}
        return {**self.__dict__, **fresh, "iterator": None}

    def begin(self, child):
        """The pass that a child begins to read."""
        if self.iterator is None or self.begun[child]:
            if self.iterator is not None and self.begun != self.ended:
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. The buffer is "
                    "emptied, and each child reads from the start again.",
                    stacklevel=6,
                )
            self.buffers = [collections.deque() for _ in self.buffers]
            self.begun = [False] * len(self.buffers)
            self.ended = [False] * len(self.buffers)
            self.iterator = iter(self.datapipe)
        self.begun[child] = True
        return self.iterator

    def room(self) -> None:
        """Refuses to keep more than was allowed."""
        if self.buffer_size >= 0 and max(map(len, self.buffers)) > self.buffer_size:
            raise BufferError(
                f"{self.name} buffer overflow, buffer size {self.buffer_size} is insufficient."
            )

    def deliver(self, item):
        """Puts an item into the buffers of the children it is for."""
        raise NotImplementedError(f"{type(self).__name__} does not define deliver")

    def read(self, child):
        """The items of one child, whose pass begins at once."""
        return self._items(child, self.begin(child))

    def _items(self, child, iterator):
        while True:
            if self.iterator is not iterator:
                raise RuntimeError(
                    "This iterator has been invalidated because another child of the same "
                    f"{self.name} began a new pass"
                )
            if self.buffers[child]:
                yield self.buffers[child].popleft()
                continue
            try:
                item = next(iterator)
            except StopIteration:
                self.ended[child] = True
                return
            self.deliver(item)
            self.room()


def _same(item) -> int:
    return item


class _ForkSource(_Source):
    def __init__(self, datapipe, children, buffer_size, copy) -> None:
        super().__init__(datapipe, children, buffer_size, "ForkerIterDataPipe")
        copies = {None: _same, "shallow": _copy.copy, "deep": _copy.deepcopy}
        if copy not in copies:
            raise ValueError(f"Unknown copy method `{copy}`: None, 'shallow' or 'deep'")
        self.copy = copies[copy]

    def deliver(self, item) -> None:
        for buffer in self.buffers:
            buffer.append(self.copy(item))


class _DemuxSource(_Source):
    def __init__(self, datapipe, children, classifier_fn, drop_none, buffer_size) -> None:
        super().__init__(datapipe, children, buffer_size, "DemultiplexerIterDataPipe")
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none

    def deliver(self, item) -> None:
        which = self.classifier_fn(item)
        if which is None and self.drop_none:
            return
        if which is None or not 0 <= which < len(self.buffers):
            raise ValueError(
                "Output of the classification fn should be between 0 and "
                f"{len(self.buffers) - 1}. {which} is returned."
            )
        self.buffers[which].append(item)


class _ChildDataPipe(IterDataPipe):
    """One of the pipes that a split gives."""

    def __init__(self, main_datapipe, instance_id, sized) -> None:
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id
        self._sized = sized

    def __iter__(self):
        return self.main_datapipe.read(self.instance_id)

    def __len__(self) -> int:
        if not self._sized:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return length_of(self, self.main_datapipe.datapipe)


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """Several pipes that each give all items."""

    def __new__(cls, datapipe, num_instances, buffer_size=1000, copy=None) -> list[_ChildDataPipe]:
        source = _ForkSource(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(source, i, True) for i in range(num_instances)]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Several pipes among which a function divides the items."""

    def __new__(
        cls, datapipe, num_instances, classifier_fn, drop_none=False, buffer_size=1000
    ) -> list[_ChildDataPipe]:
        warn_if_unpicklable(classifier_fn)
        source = _DemuxSource(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(source, i, False) for i in range(num_instances)]
