"""A pipe from any iterable."""

from __future__ import annotations

import contextlib
import copy

from torch.utils.data.datapipes.datapipe import IterDataPipe, length_of

__all__ = ["IterableWrapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe):
    """The items of an iterable, by default of a copy made for each pass where it can be copied."""

    def __init__(self, iterable, deepcopy=True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self):
        source = self.iterable
        if self.deepcopy:
            # Open files and generators cannot be copied: they are read once, as they are.
            with contextlib.suppress(TypeError):
                source = copy.deepcopy(source)
        yield from source

    def __len__(self) -> int:
        return length_of(self, self.iterable)
